"""Parse the user's statements besides demands: decisions, requests, context, findings and lessons.

One row of :data:`SHAPES` is one way of saying it. It matches a clause by its beginning or by its
characteristic words. Precision comes before recall: what is not clearly one of these stays in the
conversation, where it can be found.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agentx.storage.text import one_line
from agentx.synthesis.attribution.material import REPORTED, material, own_words, straighten
from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span, clauses, sentences
from agentx.synthesis.language.words import content_words
from agentx.synthesis.scribe.answers import GivenAnswer, agreed, read_answer, with_question
from agentx.synthesis.scribe.claims import claim_of
from agentx.synthesis.scribe.orders import VERBS, asks
from agentx.synthesis.state.answered import names_option, proposes

MAX_STATEMENTS = 3
"""Maximum number of statements noted of one message."""

MAX_QUOTE = 400
_MIN_WORDS = 2
_FEW_WORDS = 3
"""A choice with at most so many content words is understood only with what it answers."""

_SHORT = 200
"""Characters of a message that is read in the light of what the agent asked."""

_LINKING = 12
"""Characters between two plain statements that are one note, such as "and"."""

Sort = Literal["decision", "task", "context", "discovery", "learning", "knowledge"]


class Statement(NamedTuple):
    """A statement in a message.

    Attributes:
        span: Its position in the message.
        topic: For a context: what it is about. There is one context per topic at a time.
        over: For a decision: the former choice.
        sure: Whether it is explicit; otherwise it is a candidate.
        answers: Whether it answers what the agent asked or proposed.
        replies: Whether it was said in reply to that, without answering it.
        proposed: Whether its text is the agent's proposal, because the user only agreed.
        plain: Whether it is a plain statement, without a word that marks it as a decision or a note.
    """

    sort: Sort
    text: str
    span: Span
    topic: str = ""
    over: str = ""
    sure: bool = True
    answers: bool = False
    replies: bool = False
    proposed: bool = False
    plain: bool = False


class _Shape:
    def __init__(
        self, sort: Sort, pattern: str, *, topic: str = "", whole: bool = False, behind: bool = False
    ) -> None:
        self.sort, self.pattern, self.topic = sort, _compiled(pattern), topic
        self.whole, self.behind = whole, behind


def _compiled(pattern: str) -> re.Pattern[str]:
    return on_use(pattern, re.IGNORECASE)


_LOOKING = (
    "see|check|look|discuss|talk|pause|wait|think|find|investigate|verify|test|review|ask|understand|debug"
    "|figure|explore|go over|take|hope"
    "|say|assume|continue|move on|run|commit|push|merge|rebase|read|recap|summari[sz]e|try again|start over"
    "|chat|brainstorm|walk|do (?:a|an|some|the) "
    "|keep (?:going|on)|respond|reply|play|consider|compare|know|hear|get (?:back|going)|imagine|suppose"
    "|pretend|make sure|not|me\\b|give|be|have a|proceed|reflect|practice|dive|analy[sz]e"
)
"""Verbs of exploring or continuing, which do not make a choice."""

_CHOOSE = (
    r"(?:go(?:ing)? (?:with|for|back to)|opt(?:ing)? for|stick(?:ing)? (?:with|to)"
    r"|settl(?:e|ing) (?:on|for)|choos(?:e|ing)|pick(?:ing)?)"
)
_NUMBERED = (
    r"(?:(?:option|approach|variant|choice|proposal|solution|alternative|suggestion|number|no\.?"
    r"|#)\s*#?[A-H0-9]\b|[A-H1-9]\)|#\d)"
)

SHAPES: tuple[_Shape, ...] = (
    _Shape(
        "knowledge",
        r"(?:please )?(?:remember|keep in mind|bear in mind|don'?t forget|do not forget|note|for the record"
        r"|fyi|just so you know|for your information)(?: (?:that|this(?! (?:is|was|has|will)))\b[:,]?"
        r"|(?= this (?:is|was|has|will)\b)|\s*[:,–—-])\s*"
        r"(?!(?:to|you (?:should|must|have)|always|never)\b)(?=\w)",
        behind=True,
    ),
    _Shape(
        "decision",
        r"(?:(?:wait|actually|scratch that|on second thoughts?|i changed my mind)\b[\s,.:–—-]*)?"
        r"(?:let'?s |we'?ll |i'?ll |please |make (?:it|that) )?(?:use |go with |take )?"
        r"(?!(?:of|what|why|how|who|when|where|that|this|it|do|doing|is|are|was)\b)[\w.+/-]+"
        r"(?: [\w.+/-]+){0,2} (?:instead of|rather than) [\w.+/-]+(?: [\w.+/-]+){0,2}[.!]*$",
    ),
    _Shape(
        "decision",
        rf"let'?s (?:just |only |simply |completely |first |then |now |all |really )*(?!{_LOOKING})\w+",
    ),
    _Shape(
        "decision",
        rf"(?:i'?d|i would|i'?ll|i will|we'?ll|we will|we|i|i'?m|we'?re)"
        rf"(?: (?:just|rather|now|then|probably|definitely))* (?:am |are )?{_CHOOSE}\b",
    ),
    _Shape("decision", rf"(?:(?:just|then|please|yes|yeah) )*{_CHOOSE}\b(?! through| over)"),
    _Shape(
        "decision",
        rf"(?:i think |i guess |i like |i prefer |i'd prefer |i'd say |use |do |take |implement "
        rf"|yes to )?{_NUMBERED}",
    ),
    _Shape(
        "decision",
        r"(?:[A-H]\)?|#?\d\)?) (?:is|seems|looks|sounds) (?:the )?(?:right|fine|correct|best|good|better)\b"
        r"|#?\d(?: and \d)?(?:,| please) (?:but|please|i|we|and)\b",
    ),
    _Shape(
        "decision",
        r"(?:the |my |our |final )*decision(?: is| was)?\s*[:–—-]|(?:it'?s|it is|that'?s) decided\b"
        r"|final answer\b",
    ),
    _Shape(
        "learning",
        r"(?:the |a |one )?lessons?(?: learn(?:ed|t))?(?: here| is| was)?\s*[:–—-]|lesson learn"
        r"|(?:we|i)(?:'ve| have)? learn(?:ed|t) (?:that|the hard|from|not|to)\b|note to self\b",
    ),
    _Shape(
        "learning",
        r"(?:no,? )?(?:(?:that|this|it)(?:'s| is| was)|you(?:'re| are)"
        r"|the (?:first|second|last) (?:part|point|one) is) "
        r"(?:(?:not|n't) (?:correct|right|true|how|what)|wrong|incorrect)\b(?=\W*\w)",
        whole=True,
    ),
    _Shape("discovery", r"(?:it |as it )?turn(?:s|ed) out\b"),
    _Shape(
        "discovery",
        r"(?:i|we)(?:'ve| have)? (?:just |also |only |now |recently )*"
        r"(?:found (?:out|that|a|an|the|two|several|some)|noticed|discovered|realiz?sed|realized|figured out"
        r"|tracked (?:it|this) down)\b(?! time)",
    ),
    _Shape(
        "discovery",
        r"(?:the|a|our|another|one) (?:actual |real |root |main |underlying |other |big |only )*"
        r"(?:cause|problem|issue|bug|reason|culprit|catch|gap|gotcha)(?: with [^,.;]{2,60}| here| there)? "
        r"(?:is|was|seems to be|turned out)\b",
    ),
    _Shape(
        "discovery",
        r"(?:i think |it seems |so |looks like )*(?:we(?:'ve| have)?(?: got)?|there(?:'s| is| are)) "
        r"(?:an? |another |some )?(?:bugs?|race|regression|leak|deadlock|memory leak|security hole)\b",
    ),
    _Shape(
        "discovery",
        r"[^?]{0,120}?\b(?:never (?:actually|really) worked|(?:just )?happened again"
        r"|keeps? (?:failing|crashing|happening)|always fails"
        r"|only (?:fails|happens|crashes) (?:when|if|on|with|in))\b",
    ),
    _Shape(
        "context",
        r"[^?]{0,60}?\b(?:in a (?:big |bit of a )?(?:hurry|rush)|short on time|out of time|no (?:rush|hurry)"
        r"|take your time|time is (?:short|tight|running out)|pressed for time"
        r"|under (?:a lot of )?(?:time )?pressure)\b",
        topic="time",
        whole=True,
    ),
    _Shape(
        "context",
        r"[^?]{0,40}?\b(?:the |our |my |a )(?:hard )?(?:deadline|demo|release|launch|presentation|exam"
        r"|code freeze|deploy|go-live|submission) (?:is|'s) (?:due |set |planned |scheduled )?"
        r"(?:on |in |at |for |by )?(?:today|tomorrow|tonight|this|next|monday|tuesday|wednesday|thursday"
        r"|friday|saturday|sunday|the|\d)",
        topic="time",
        whole=True,
    ),
    _Shape(
        "context",
        r"(?:the |our |my )?(?:(?:top|main|first|highest|current|number one|biggest|new) )*priorit(?:y|ies)"
        r"(?: (?:now|today|this week|right now))? (?:is|are|now)\b"
        r"|(?:the )?most important (?:thing|part)(?: (?:now|today|right now|for us|for me))? is\b",
        topic="priority",
        whole=True,
    ),
    _Shape(
        "context",
        r"(?:i'?m|i am|i feel|i'?ve been|i have been)(?: feeling)?"
        r"(?: (?:a bit|really|so|very|pretty|quite|just|too|kind of|kinda|completely|totally|feeling))* "
        r"(?:tired|exhausted|frustrated|annoyed|stressed|overwhelmed|burn(?:ed|t) out|sick"
        r"|in a (?:good|bad) mood|fed up|worn out|low on energy|full of energy)\b",
        topic="mood",
        whole=True,
    ),
)

_OVER = _compiled(r".*?\b(?:instead of|rather than) (?P<over>.+?)[.!]*$")
_LEAD = _compiled(
    r"(?:(?:yes|yep|yeah|yup|no|nah|wait|ok|okay|sure|right|so|and|but|hmm+|ah+|oh|well|great|cool|nice"
    r"|perfect|good|actually|alright|lol|then|uh|um|hm|fine|thanks|awesome|in that case|i think|maybe"
    r"|makes sense|got it|i see|true|for now|now|btw|by the way|also|hey|hi|hello|good news|sorry"
    r"|anyway)\b[\s,.!:;–—-]*|[^\w\s#`(]+\s*|\d[.)]\s+(?=[a-z]))+"
)
_ASKS = re.compile(r"\?\s*$")
_REQUEST = _compiled(
    rf"(?:please |now |then |also |next,? |first,? )*"
    rf"(?:(?:can|could|would|will) you (?:please |also |now |just |first )*|i(?:'d like| want| need) you to "
    rf"|we need to |i want to |help me (?:to )?)?(?:please )?(?P<verb>{VERBS})\b"
    rf"(?!\s*(?:is|was|are|were|has|:|\?))"
)


_LOOSE_END = re.compile(r"[ ,;]+(?:but|and|so|or)$", re.IGNORECASE)
_REQUEST_CHARACTERS = 200
_PARAGRAPH = 2
"""Line breaks between two sentences that belong together. Pasted material between them has more."""


@lru_cache(maxsize=32)
def statements(text: str, question: str = "") -> tuple[Statement, ...]:
    """Return what a user's message says besides demands, in order.

    Args:
        text: The message.
        question: What the agent asked or proposed before it; empty for nothing.

    >>> [(s.sort, s.text) for s in statements("ok, let's go with the second layout. The demo is on Friday")]
    [('decision', "Let's go with the second layout."), ('context', 'The demo is on Friday')]
    """
    own, original = own_words(text), straighten(text)
    plain = _with_reports(own, text)
    parts = list(sentences(plain))
    answer = None if goes_on(text) else read_answer(plain, parts, question)
    found: list[Statement] = []
    for number, sentence in enumerate(parts):
        if answer and answer.first <= number <= answer.last:
            if number == answer.first:
                found.append(_answer(original, parts, answer, question))
            continue
        one = _of_sentence(plain, original, sentence)
        if one and one.sort == "decision" and number <= 1 and (proposes(question) or names_option(one.text)):
            one = _in_context(one, question)
        one = one or _claim(plain, original, parts, number)
        if one is None:
            continue
        if not own[one.span.start : one.span.end].strip():  # a report
            one = one._replace(sure=False)
        if (
            found
            and one.plain
            and found[-1].plain
            and found[-1].sort == one.sort
            and _follows(plain, found[-1], one)
        ):
            found[-1] = _joined(original, found[-1], one)
        elif not (one.sort == "task" and any(other.sort == "task" for other in found)):
            found.append(one)
    return tuple(found[:MAX_STATEMENTS])


def _with_reports(plain: str, text: str) -> str:
    """Return the user's own words, with the sentences that report what others say.

    "Legal says that we keep them for a year" makes no rule, but it may be a fact: a candidate. Longer reports
    stay masked: their later sentences do not say whose words they are.
    """
    if plain == straighten(text):
        return plain
    for one in material(text):
        words = straighten(text[one.start : one.end])
        if one.sort == REPORTED and len(words) <= MAX_QUOTE and len(list(sentences(words.strip()))) == 1:
            plain = plain[: one.start] + words + plain[one.end :]
    return plain


def _of_sentence(plain: str, original: str, sentence: Span) -> Statement | None:
    asked = bool(_ASKS.search(plain, sentence.start, sentence.end))
    for clause in clauses(plain, sentence):
        start, words = _bare(plain, clause)
        for shape in SHAPES:
            match = shape.pattern.match(words)
            if not match or (asked and (shape.sort != "decision" or clause.end == sentence.end)):
                continue
            # From the beginning of the shape, from after its opening, or the full sentence.
            span = Span(start + match.end(), sentence.end) if shape.behind else Span(start, clause.end)
            span = sentence if shape.whole else span
            if made := _statement(shape.sort, original, span, shape.topic):
                over = _OVER.match(made.text) if made.sort == "decision" else None
                return made._replace(over=over["over"]) if over else made
    start, words = _bare(plain, sentence)
    if (match := _REQUEST.match(words)) and (not asked or "you" in match.group().lower()):
        return _statement("task", original, Span(start + match.start("verb"), sentence.end))
    return None


def _answer(original: str, parts: Sequence[Span], answer: GivenAnswer, question: str) -> Statement:
    """Return an answer as a statement that can be understood without the question."""
    start = parts[answer.first].start
    span = Span(start, min(parts[answer.last].end, start + MAX_QUOTE))
    said = one_line(original[span.start : span.end]).strip(" ,;:")
    proposed = agreed(question) if answer.mere else ""
    text = proposed or with_question(said[:1].upper() + said[1:], question, MAX_QUOTE)
    return Statement(answer.sort, text, span, sure=answer.sure, answers=True, proposed=bool(proposed))


def _in_context(one: Statement, question: str) -> Statement:
    """Return a choice with what it answers; its text names that if it does not speak for itself."""
    if not question:
        return one
    few = len(content_words(one.text)) <= _FEW_WORDS
    text = with_question(one.text, question, MAX_QUOTE) if few else one.text
    return one._replace(text=text, answers=True, sure=True)


def _claim(plain: str, original: str, parts: Sequence[Span], number: int) -> Statement | None:
    """Return a plain decision or fact, with the sentence before it if it refers to that."""
    sentence = parts[number]
    start, words = _bare(plain, sentence)
    claim = claim_of(words)
    if claim is None:
        return None
    if claim.points:
        before = parts[number - 1] if number else sentence
        near = not number or plain.count("\n", before.end, sentence.start) <= 1
        if (
            not number
            or not near
            or sentence.end - before.start > MAX_QUOTE
            or asks(plain[before.start : before.end])
        ):
            return None
        start = before.start
    made = _statement(claim.sort, original, Span(start, sentence.end))
    return made._replace(sure=claim.sure, plain=True, replies=len(plain) <= _SHORT) if made else None


def _follows(plain: str, before: Statement, one: Statement) -> bool:
    """Return whether two plain statements are said in one breath."""
    between = plain[before.span.end : one.span.start]
    near = len(between.strip(" .,;!?-")) <= _LINKING and between.count("\n") <= 1
    return near and one.span.end - before.span.start <= MAX_QUOTE


def _joined(original: str, before: Statement, one: Statement) -> Statement:
    made = _statement(one.sort, original, Span(before.span.start, one.span.end)) or one
    return made._replace(sure=before.sure or one.sure, plain=True, replies=one.replies)


def first_sentence(text: str) -> Span | None:
    """Return the first sentence of an agent's answer with content; ``None`` if there is none."""
    plain = own_words(text)
    for one in sentences(plain):
        if len(content_words(plain[one.start : one.end].replace(NAME, "x"))) >= _MIN_WORDS:
            return Span(one.start, min(one.end, one.start + MAX_QUOTE))
    return None


def request(text: str) -> Span | None:
    """Return what a message asks for, with its context: its first sentences, as many as make a short text.

    >>> said = "The prices are in prices.html. Deploy them to production."
    >>> request(said) == Span(0, len(said))
    True
    """
    first = first_sentence(text)
    if first is None:
        return Span(0, len(text)) if goes_on(text) else None
    plain, end = own_words(text), first.end
    for one in sentences(plain):
        if one.start >= end:
            if one.end - first.start > _REQUEST_CHARACTERS or plain.count("\n", end, one.start) > _PARAGRAPH:
                break
            end = one.end
    return Span(first.start, end)


_GOES_ON = _compiled(
    r"(?:(?:please|now|ok(?:ay)?|yes|good|so)[,.]? )*"
    r"(?:go on|go ahead|continue|carry on|keep going|proceed|resume)"
    r"(?: (?:please|now|with (?:it|that|this|the (?:task|work))))*[.!… ]*$"
)


def goes_on(message: str) -> bool:
    """Return whether a message asks only to continue what was begun.

    >>> goes_on("OK, go on please."), goes_on("Go on with the second chapter.")
    (True, False)
    """
    return bool(_GOES_ON.match(message.strip()))


_FOUND = _compiled(
    r"\b(?:root cause (?:is|was)|i (?:found|discovered|noticed)(?: out)? (?:that|the|a|an)\b"
    r"|(?:it )?turns out|the (?:actual |real |underlying )*(?:bug|cause|problem|culprit|failure) "
    r"(?:is|was)\b)"
)


def findings_of_agent(text: str) -> Iterator[Span]:
    """Yield the places where an agent's answer says what it found."""
    plain = own_words(text)
    for one in sentences(plain):
        if _FOUND.search(plain, one.start, one.end) and not _ASKS.search(plain, one.start, one.end):
            yield Span(one.start, min(one.end, one.start + MAX_QUOTE))


def _bare(plain: str, clause: Span) -> tuple[int, str]:
    """Return a clause without its opening words, and where it starts."""
    words = plain[clause.start : clause.end]
    lead = _LEAD.match(words)
    start = clause.start + (lead.end() if lead else 0)
    return start, plain[start : clause.end]


def _statement(sort: Sort, original: str, span: Span, topic: str = "") -> Statement | None:
    span = Span(span.start, min(span.end, span.start + MAX_QUOTE))
    text = _LOOSE_END.sub("", one_line(original[span.start : span.end]).strip(" ,;:"))
    empty = not content_words(text)
    if empty and sort != "decision":
        return None
    return Statement(sort, text[:1].upper() + text[1:], span, topic, sure=not empty)
