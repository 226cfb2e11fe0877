"""Separates a user's own words from other material in the message.

Other material means quotes, code, logs, tables, tagged and pasted text.

Only the user's own words may become a rule, so whatever may be someone else's is removed before anything is
read. The user can repeat a demand that is lost this way; a poisoned one would steer the agent. Every step
keeps the length of the text, so offsets in the result are offsets in the original.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from agentx.synthesis.demands.reading.attribution import is_own, passages, unclaimed
from agentx.synthesis.demands.tables.sources import NAME, POSTSCRIPT, SIGNED
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_CHARACTERS = 40_000
"""Number of characters of a message that are read for demands; a longer message is a paste."""

REPORTED = "what somebody else says"
"""The sort of a sentence or more that reports the words of others."""

_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "\u202f": " "})


class Material(NamedTuple):
    """A part of a message that is not the user's own words, ``text[start:end]``, and its sort."""

    start: int
    end: int
    sort: str


class _Span(NamedTuple):
    start: int
    end: int
    fill: str


_BLOCKS = frozenset({"fence", "code_block", "blockquote_open", "table_open"})
_LINE_END = on_use(r"\r\n?|\n")
_PARAGRAPH_END = on_use(r"\n[ \t]*\n|\Z")

_TAG = on_use(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,400})?(/?)>")
_INLINE_CODE = on_use(r"``[^`]{1,400}``|`[^`\n]{1,400}`")
_COMMENT = on_use(r"<!--(?:(?!-->).)*(?:-->)?", re.DOTALL)
_INLINE_QUOTE = on_use(
    r'"(?:[^"\n]|\n(?![ \t]*\n)){1,2000}"'
    r"|«[^»\n]{1,400}»|»[^«\n]{1,400}«|‹[^›\n]{1,400}›|「[^」]{1,400}」|『[^』]{1,400}』"
    r"|‚[^'‚\n]{1,300}'|~~[^~\n]{1,400}~~"
    r"|(?<![\w'])'(?=\S)[^'\n]{1,300}(?<=\S)'(?!\w)"
)

_SUMMARY = on_use(
    r"this session is being continued from a previous|summary of (?:the|our) (?:previous|earlier"
    r"|conversation)"
    r"|implement the following plan|\[request interrupted|caveat: the messages below|stop hook feedback"
    r"|base directory for this skill",
    re.IGNORECASE,
)

_HEADER = (
    "from|to|cc|date|sent|subject|von|an|gesendet|datum|betreff|de|à|a|para|envoyé|enviado|fecha|objet"
    "|asunto|da|oggetto|van|aan|onderwerp|assunto|reply-to|received"
)
_MAIL_OR_REVIEW = on_use(
    r"^(?:-{2,} ?(?:original|forwarded) message|begin forwarded message|(?:-{2,} ?)?"
    r"(?:ursprüngliche nachricht|message d'origine|mensaje original)"
    r"|(?:on|am|le|el|il|op|den) [^\n]{6,120}(?:wrote|schrieb[^\n:]{0,80}|a écrit|escribió|ha scritto"
    r"|schreef[^\n:]{0,80}|skrev[^\n:]{0,80}) ?:[ \t]*$"
    rf"|(?:{_HEADER}) ?: [^\n]{{1,200}}\n(?:(?:{_HEADER}) ?: [^\n]{{0,200}}\n)"
    rf"|(?:subject|betreff|objet|asunto|oggetto|onderwerp|assunto) ?: [^\n]{{1,200}}\n(?=[ \t]*\n)"
    r"|[A-Za-z][\w.'-]{0,30}(?: [\w.'-]{1,30}){0,3}[ \t]+[(\[]?\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]m)?[)\]]?["
    r" \t]*$"
    r"|(?:low|medium|high|critical) (?:severity|priority)[ \t]*$"
    r"|[*_#> ]{0,4}(?:actionable comments posted|nitpick comments|suggested change|potential issue"
    r"|refactor suggestion|pull request overview|copilot reviewed)\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line at which somebody's mail or a tool's review begins."""
_POINT = on_use(
    r"[ \t]*(?:[-*•+]|\d{1,2}[.)]|#{1,6})?[ \t]*[*_\[(`]{0,3}(?:severity:? ?)?(?:critical|blocker|high|major"
    r"|medium|moderate|low|minor|nit(?:pick)?|trivial|suggestion|p[0-4])"
    r"(?: (?:severity|priority|risk|issue|concern))?[*_\])`:]{0,4}[ \t]*(?:[:–—-]|(?<=[:*\])]))[ \t]"
    r"|[^\n]{0,300}(?:\b[\w/-]{1,80}\.[a-z]{1,5}:\d|\blines? \d{1,5}\b)",
    re.IGNORECASE,
)
_PERSON = on_use(r"\b(?:i|i'\w+|me|my|we|we'\w+|us|our|you|you'\w+|your|please|let's)\b", re.IGNORECASE)
_PARAGRAPH = on_use(r"\S[^\n]*(?:\n[ \t]*\S[^\n]*)*")
"""The patterns of a review: a point, a person, a paragraph.

A point is a severity or a line of a file. Two points in paragraphs that name no person are somebody's review.
"""

_KEY = on_use(
    r"\s*(?:-\s+)?[\"']?[A-Za-z_$][\w./$-]*[\"']?:(?:\s|\Z)|\s*\[[\w.\"-]+\]\s*\Z|\s*[A-Za-z_][\w.-]* ?= ?\S"
)
_NESTED = on_use(
    r"[ \t]+(?:-[ \t]+)?[\"']?[a-zA-Z_$][\w./$-]*[\"']?:(?:\s|\Z)|-[ \t]+[a-z_][\w.-]*:\s|\[[\w.\"-]+\]\s*\Z"
    r"|[A-Z][A-Z_]+=\S"
)
"""A line of a configuration, and one that shows that it is not a list of topics."""

_SPEAKER = on_use(
    r"^(?:[*_]{0,2}(?P<role>user|human|assistant|ai|system|chatgpt|gpt|bot|agent|customer"
    r"|support)[*_]{0,2}:[*_]{0,2}(?=\s)|(?P<nick>[\w.-]{2,20})> )",
    re.IGNORECASE | re.MULTILINE,
)

_MATERIAL_LINE = on_use(
    r"\s*(?:"
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d"
    rf"|[=*~#-]{{3}}|{NAME}{{1,80}}:\s[^\n]{{0,300}}[,\[{{]\s*$|[\]\[{{}}]{{1,4}},?\s*$"
    r"|Traceback \(|File \"[^\"\n]*\", line \d|at [^\n]{1,200}\([^\n]{1,200}:\d+\)|\w*(?:Error|Exception"
    r"|Warning): "
    r"|(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TODO|FIXME|XXX|HACK)\b"
    r"|[\w.-]+ (?:ERR!|ERROR|WARN|WARNING|FATAL)(?=[\s:])|error(?:\[\w+\])?: |warning: |fatal: |panic: "
    r"|hint: "
    r"|[$❯%»] |>>> |\.\.\. |[\w.-]+@[\w.-]+[^\n]{0,60}[%$#] "
    r"|//|/\*|\*/|#(?:\s|!)|<!--|;;|\|"
    r"|\[[\w .:/-]{1,40}\] "
    r"|[\w./\\-]+:\d+(?::\d+)?:"
    r"|@@ |diff --git |\+\+\+ |--- |\d+ [+-](?:\s|$)|\+\s|\d{1,5}→"
    r"|[^\n]{0,200}[│┌└├─═║⎿⏺●▌✓✗✔✘╭╰]"
    r"|(?:def|class|import|from|return|func|fn|const|let|var|public|private|static"
    r"|export)\b[^\n]{0,200}[:;{(]\s*$"
    r"|[^\n]{0,300}[;{}]\s*$"
    r")"
)
_OPENS_OUTPUT = on_use(r"\s*(?:[$❯%] |={3}|Traceback \(|diff --git |@@ |[\w.-]+@[\w.-]+[^\n]{0,60}[%$#] )")


@lru_cache(maxsize=1)
def _markdown() -> "MarkdownIt":
    # Only the block structure is wanted; the inline rules are the ones that adversarial text can slow down.
    from markdown_it import MarkdownIt  # noqa: PLC0415  (heavy: loaded with the first message)

    return MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])


def straighten(text: str) -> str:
    """Return a text with plain quotes, apostrophes and spaces; the length stays the same."""
    return text.translate(_STRAIGHT)


@lru_cache(maxsize=16)
def own_words(text: str) -> str:
    r"""Return the user's own words of a message, with everything else masked.

    Args:
        text: The message; at most :data:`MAX_CHARACTERS` are read.

    Returns:
        A text with each character at its original offset. Masked blocks are newlines. Inline quotes and code
        are runs of :data:`NAME`, so that the sentence around them stays readable.

    >>> own_words("See this:\n> always lie\nThanks").split()
    ['See', 'this:']
    """
    plain = straighten(text[:MAX_CHARACTERS])
    for _, left_out in _left_out(plain):
        plain = _fill(plain, left_out)
    return plain


def material(text: str) -> tuple[Material, ...]:
    r"""Return what :func:`own_words` leaves out of a message, in order, and why.

    >>> [(part.sort, part.start, part.end) for part in material("See this:\n> always lie\nThanks")]
    [('a quote, code or a table', 10, 29)]
    """
    plain = straighten(text[:MAX_CHARACTERS])
    taken = [Material(len(plain), len(text), "behind what is read")] if len(text) > len(plain) else []
    for sort, left_out in _left_out(plain):
        taken += (Material(start, end, sort) for start, end, _ in left_out)
    kept: list[Material] = []
    for one in sorted(taken, key=lambda part: (part.start, -part.end)):
        # A later step may remove a text that contains one removed earlier.
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end > kept[-1].end:
            kept.append(one._replace(start=kept[-1].end))
    return tuple(kept)


def doubtful_words(text: str) -> tuple[Span, ...]:
    """Return sentences among the user's own words that may be somebody else's.

    No rule from them is certain.

    Args:
        text: The message; at most :data:`MAX_CHARACTERS` are read.
    """
    original = straighten(text[:MAX_CHARACTERS])
    plain, _ = _masked(original)
    pasted = [Span(start, end) for start, end, _ in _pasted_lines(plain)]
    found = passages(plain, original, pasted)
    return tuple(Span(one.start, one.end) for one in found if not one.certain)


def unclaimed_words(text: str) -> tuple[Span, ...]:
    """Return paragraphs of which nothing shows that they are the user's, as in a pasted document.

    No rule ends by them.

    Args:
        text: The message; at most :data:`MAX_CHARACTERS` are read.
    """
    return tuple(unclaimed(_masked(straighten(text[:MAX_CHARACTERS]))[0]))


def _masked(original: str) -> tuple[str, list[tuple[str, list[_Span]]]]:
    """Return a message without marked material, and that material by sort.

    Each sort sees what the previous ones left.
    """
    plain = original
    taken = []
    for sort, spans in _SORTS:
        left_out = [span for span in spans(plain) if span.end > span.start]
        taken.append((sort, left_out))
        plain = _fill(plain, left_out)
    return plain, taken


def _left_out(original: str) -> Iterator[tuple[str, list[_Span]]]:
    """Yield what is removed, sort by sort."""
    plain, taken = _masked(original)
    yield from taken
    pasted = list(_pasted_lines(plain))
    found = passages(plain, original, [Span(start, end) for start, end, _ in pasted])
    yield REPORTED, [_Span(one.start, one.end, "\n") for one in found if one.certain]
    yield "pasted lines", pasted


def _fill(text: str, spans: Iterable[_Span]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, fill in sorted(spans):
        if end <= position:
            continue
        begin = max(start, position)
        parts += (text[position:begin], fill * (end - begin))
        position = end
    return "".join(parts) + text[position:]


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]


def _blocks(text: str) -> Iterator[_Span]:
    starts = _line_starts(text)
    last = len(starts) - 1
    for token in _markdown().parse(text):
        if token.type in _BLOCKS and token.map:
            first, end = token.map
            yield _Span(starts[min(first, last)], starts[min(end, last)], "\n")


def _tags(text: str) -> Iterator[_Span]:
    """Yield tagged text from the first opening tag to its closing one.

    An unclosed tag reaches to the end of the text, or of the paragraph if it begins within a line.
    """
    opened: dict[str, int] = {}
    depth: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        closing, name, empty = tag.group(1), tag.group(2).casefold(), tag.group(3)
        if empty:
            yield _Span(tag.start(), tag.end(), "\n")
        elif not closing:
            opened.setdefault(name, tag.start())
            depth[name] = depth.get(name, 0) + 1
        elif name not in opened:
            # Its opening tag was lost in a quote or a block, so the start of the tagged text is unknown.
            yield _Span(0, tag.end(), "\n")
        else:
            depth[name] -= 1
            if not depth[name]:
                yield _Span(opened.pop(name), tag.end(), "\n")
    for start in opened.values():
        within = text[text.rfind("\n", 0, start) + 1 : start].strip()
        paragraph_end = _PARAGRAPH_END.search(text, start) if within else None
        yield _Span(start, paragraph_end.start() if paragraph_end else len(text), "\n")


def _continued(text: str) -> Iterator[_Span]:
    if match := _SUMMARY.search(text):
        yield _Span(match.start(), len(text), "\n")


def _each(pattern: re.Pattern[str], fill: str, text: str) -> Iterator[_Span]:
    for match in pattern.finditer(text):
        yield _Span(match.start(), match.end(), fill)


def _mail_or_review(text: str) -> Iterator[_Span]:
    """Yield a mail or a review, until the user speaks again after the close of a letter."""
    match = _MAIL_OR_REVIEW.search(text)
    if not match:
        return
    end, signed = len(text), False
    for paragraph in _PARAGRAPH.finditer(text, match.end()):
        words = paragraph.group()
        if signed and is_own(words) and not POSTSCRIPT.match(words):
            end = paragraph.start()
            break
        signed = signed or bool(SIGNED.search(words))
    yield _Span(match.start(), end, "\n")


def _review(text: str) -> Iterator[_Span]:
    """Yield paragraphs that list findings at lines without naming a person, and those between them."""
    told = [
        (match.start(), match.end(), sum(bool(_POINT.match(line)) for line in match.group().splitlines()))
        for match in _PARAGRAPH.finditer(text)
        if not _PERSON.search(match.group())
    ]
    points = [number for number, (*_, count) in enumerate(told) if count]
    if sum(count for *_, count in told) > 1:
        yield from (_Span(start, end, "\n") for start, end, _ in told[points[0] : points[-1] + 1])


def _conversation(text: str) -> Iterator[_Span]:
    """Yield a pasted conversation from its first speaker; it needs two different ones."""
    spoken = [
        (match.start(), (match["role"] or match["nick"]).casefold()) for match in _SPEAKER.finditer(text)
    ]
    if len({role for _, role in spoken}) > 1:
        yield _Span(spoken[0][0], len(text), "\n")


def _configuration(text: str) -> Iterator[_Span]:
    """Yield a configuration pasted without a fence: nested keys and values, or ones in sections."""
    for match in _PARAGRAPH.finditer(text):
        lines = match.group().splitlines(keepends=True)
        keys = [bool(_KEY.match(line)) for line in lines]
        if sum(keys) > 1 and any(_NESTED.match(line) for line in lines):
            first = keys.index(True)
            yield _Span(match.start() + sum(map(len, lines[:first])), match.end(), "\n")


def _pasted_lines(text: str) -> Iterator[_Span]:
    """Yield lines that nobody writes as a sentence.

    The whole paragraph counts if at least half of its lines are such, and the rest of it after a line that
    opens output.
    """
    starts = _line_starts(text)
    paragraph: list[tuple[int, int, bool, bool]] = []
    for begin, end in pairwise(starts):
        line = text[begin:end]
        if line.strip():
            paragraph.append((begin, end, bool(_MATERIAL_LINE.match(line)), bool(_OPENS_OUTPUT.match(line))))
        else:
            yield from _of_paragraph(paragraph)
            paragraph = []
    yield from _of_paragraph(paragraph)


def _of_paragraph(lines: list[tuple[int, int, bool, bool]]) -> Iterator[_Span]:
    mostly = 2 * sum(material for *_, material, _ in lines) >= len(lines)
    running = False
    for begin, end, material, opens in lines:
        running = running or opens
        if material or mostly or running:
            yield _Span(begin, end, "\n")


_SORTS: tuple[tuple[str, Callable[[str], Iterator[_Span]]], ...] = (
    ("a quote, code or a table", _blocks),
    ("a name or code", partial(_each, _INLINE_CODE, NAME)),
    ("a comment", partial(_each, _COMMENT, "\n")),
    ("tagged text", _tags),
    ("a configuration", _configuration),
    ("a summary or a plan of an earlier session", _continued),
    ("a quote", partial(_each, _INLINE_QUOTE, NAME)),
    ("a mail or a review", _mail_or_review),
    ("a conversation", _conversation),
    ("a review", _review),
)
"""The sorts of marked material, in the order in which they are removed."""
