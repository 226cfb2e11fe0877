"""Splits a message into sentences and clauses, each with its position."""

import re
from collections.abc import Iterator

import msgspec

_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]*[ \t]+(?=\S)|[\r\n]+")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|no|fig|mr|mrs|ms|dr|prof|st)|\b[A-Za-z])\.$", re.IGNORECASE
)
_LIST_ITEM = re.compile(r"\s*(?:[-*•+]|\(?\d{1,2}[.)]|\(?[A-Za-z]\))\s+")
_MAX_SENTENCE = 3_000

_CLAUSE = re.compile(
    r"(?:,|;|:|\s[-–—]{1,2}|\.{3}|…)\s*"
    r"(?=(?:so|but|because|cause|cuz|since|although|though|while|whereas|which|who|where|hence|otherwise"
    r"|however|considering"
    r"|given|especially|just like|like (?:i|you|we|the)|you know|kinda|as (?:i|you|we|per|stated)"
    r"|(?:and|then|so|but)? ?(?:i|i'm|i've|i'd|i'll|we|we're|you|it|it's|he|she|they|my|that's|this|there)"
    r"|and (?:then|also|maybe|make|when|in|on|for|how|what|can|could|please|do|does)"
    r"|(?:can|could|would|will|should|do|does|did|is|are|was|any|how|what|why|when will|may)\s(?:you|i|we|it"
    r"|they|this|that|there|do|does|about|can|should|would|kind|are|is|other|tips|will|if)"
    r"|please|let's|(?:always|never)\s+\w+\s+\w+|don't|do not|from now on|for now|no need|stop)\b)"
    r"|\s+(?:and|but)\s+(?=(?:please\s+)?(?:always|never|don't|do not|from now on|stop \w+ing)\b)"
    r"|\s+(?:so|and|but)\s+(?=(?:can|could) you\b|i prefer\b|i prioriti[sz]e\b)",
    re.IGNORECASE,
)


_LEAD = re.compile(
    r"\s*(?:so|and|but|then|also|please|ok(?:ay)?|yes|no)?,?\s*(?!(?:from (?:now|here|today)(?: on)?"
    r"(?:wards?)?|(?:going|moving) forwards?|henceforth|hereafter|by default|as a (?:general )?rule)"
    r"\s+(?!when|if|in\b|for\b|every|each|any|on\b|under|before|after|while|with|at\b)\w)(?:when|whenever|if"
    r"|once|until|unless|in|for|on|under|inside|within|from|going|as"
    r"|every time|each time|any ?time|at|with|by default|before|after|while|during|henceforth|hereafter"
    r"|otherwise|or else|this (?:week|weekend|sprint|month|quarter))\b.{0,160}",
    re.IGNORECASE | re.DOTALL,
)
"""How a part begins that is not complete on its own: a condition, a place or a time.

The comma after such a part does not split the sentence.
"""


class Span(msgspec.Struct, frozen=True):
    """A stretch of a message: ``text[start:end]``."""

    start: int
    end: int


def sentences(plain: str) -> Iterator[Span]:
    """Yield the sentences of a message's own words, without surrounding white space and list marks.

    Args:
        plain: The result of :func:`agentx.synthesis.attribution.material.own_words`.

    >>> [plain[s.start:s.end] for plain in ["Hi. Use tabs, e.g. in Go!"] for s in sentences(plain)]
    ['Hi.', 'Use tabs, e.g. in Go!']
    """
    start = 0
    for boundary in _BOUNDARY.finditer(plain):
        if "\n" not in boundary.group() and "\r" not in boundary.group():
            if _NO_END.search(plain, max(start, boundary.start() - 8), boundary.start()):
                continue
        else:  # a single line break without a full stop before it only wraps a sentence
            before = plain[max(start, boundary.start() - 1) : boundary.start()]
            following = plain[boundary.end() : boundary.end() + 6]
            broken = boundary.group() in {"\n", "\r\n"} and before not in {"", ".", "!", "?", ":"}
            if broken and following[:1].islower() and not _LIST_ITEM.match(following):
                continue
        yield from _trimmed(plain, start, boundary.start())
        start = boundary.end()
    yield from _trimmed(plain, start, len(plain))


def _trimmed(plain: str, start: int, end: int) -> Iterator[Span]:
    if item := _LIST_ITEM.match(plain, start, end):
        start = item.end()
    # The rest of a sentence whose beginning was masked starts with a comma.
    while start < end and (plain[start].isspace() or plain[start] in ",;"):
        start += 1
    while end > start and plain[end - 1].isspace():
        end -= 1
    if start < end:
        yield Span(start, min(end, start + _MAX_SENTENCE))


def clauses(plain: str, sentence: Span) -> Iterator[Span]:
    """Yield the parts of a sentence that can each be a demand, split at a new subject or a question.

    >>> text = "It is odd, so please use tabs, can you do that?"
    >>> [text[c.start:c.end] for c in clauses(text, Span(0, len(text)))]
    ['It is odd', 'so please use tabs', 'can you do that?']
    """
    start = sentence.start
    led = -1
    for cut in _CLAUSE.finditer(plain, sentence.start, sentence.end):
        if cut.start() <= start:
            continue
        if start != led and _LEAD.fullmatch(plain, start, cut.start()):
            led = start
            continue
        # ", and never …" is split before its "and", so that a comma remains.
        yield Span(start, cut.start() - (plain[cut.start() - 1] == ","))
        start = cut.end()
    if start < sentence.end:
        yield Span(start, sentence.end)
