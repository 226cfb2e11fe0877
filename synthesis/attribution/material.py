"""Separates a user's own words from other material in the message.

Other material means quotes, code, logs, tables, tagged and pasted text.

Only the user's own words may become a rule, so whatever may be someone else's is removed before anything is
read. The user can repeat a demand that is lost this way; a poisoned one would steer the agent. Every step
keeps the length of the text, so offsets in the result are offsets in the original.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from agentx.synthesis.attribution.passages import is_own, passages, unclaimed
from agentx.synthesis.attribution.sources import NAME, PARAGRAPH_END, POSTSCRIPT, SIGNED
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


_BLOCKS = frozenset({"fence", "code_block", "blockquote_open", "table_open"})
_LINE_END = on_use(r"\r\n?|\n")

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
    r"(?:this session is being continued from a previous|summary of (?:the|our) (?:previous|earlier"
    r"|conversation)|implement the following plan|\[request interrupted|caveat: the messages below|stop "
    r"hook feedback|base directory for this skill).*",
    re.IGNORECASE | re.DOTALL,
)

_HEADER = (
    r"^(?:from|to|cc|date|sent|subject|von|an|gesendet|datum|betreff|de|à|a|para|envoyé|enviado|fecha|objet"
    r"|asunto|da|oggetto|van|aan|onderwerp|assunto|reply-to|received) ?: [^\n]{1,200}\n"
)
_MAIL_OR_REVIEW = on_use(
    rf"^(?:-{{2,}} ?)?(?:original message|(?:begin )?forwarded message|ursprüngliche nachricht|message "
    rf"d'origine|mensaje original)|^(?:on|am|le|el|il|op|den) [^\n]{{6,120}}(?:wrote|schrieb|a écrit"
    rf"|escribió|ha scritto|schreef|skrev)[^\n:]{{0,80}}:[ \t]*$|{_HEADER}(?:{_HEADER}|[ \t]*\n)"
    rf"|^[A-Za-z][\w.'-]{{0,30}}(?: [\w.'-]{{1,30}}){{0,3}}[ \t]+[(\[]?\d{{1,2}}:\d\d(?::\d\d)?(?: ?[ap]m)?"
    rf"[)\]]?[ \t]*$|^[*_#> "
    rf"]{{0,4}}(?:(?:low|medium|high|critical) (?:severity|priority)[ \t]*$|(?:actionable comments posted"
    r"|nitpick comments|suggested change|potential issue|refactor suggestion|pull request)\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line at which somebody's mail or a tool's review begins."""

_PARAGRAPH = on_use(r"\S[^\n]*(?:\n[ \t]*\S[^\n]*)*")

_SPEAKER = on_use(
    r"^(?:[*_]{0,2}(?P<role>user|human|assistant|ai|system|chatgpt|gpt|bot|agent|customer"
    r"|support)[*_]{0,2}:[*_]{0,2}(?=\s)|(?P<nick>[\w.-]{2,20})> )",
    re.IGNORECASE | re.MULTILINE,
)

_MATERIAL_LINE = on_use(
    r"(?:(?:[ \t]+(?:-[ \t]+)?[\"']?[a-zA-Z_$]|-[ \t]+[a-z_])[\w./$-]*[\"']?:(?=\s|$)"
    rf"|\s*(?:\[?\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{{2}} {{1,2}}\d{{1,2}} "
    rf"\d\d:\d\d:\d\d|[=*~#-]{{3}}|{NAME}{{1,80}}:\s[^\n]{{0,300}}[,\[{{]\s*$|[\]\[{{}}]{{1,4}},?\s*$"
    rf"|Traceback \(|File \"[^\"\n]*\", line \d|at [^\n]{{1,200}}\([^\n]{{1,200}}:\d+\)|\w*(?:Error"
    r"|Exception|Warning): |(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TODO|FIXME|XXX|HACK)\b"
    r"|[\w.-]+ (?:ERR!|ERROR|WARN|WARNING|FATAL)(?=[\s:])|(?:error(?:\[\w+\])?|warning|fatal|panic|hint): "
    r"|[$❯%»] |>>> |\.\.\. "
    rf"|[\w.-]+@[\w.-]+[^\n]{{0,60}}[%$#] |//|/\*|\*/|#(?:\s|!)|<!--|;;|\||\[[\w .\":/-]{{1,40}}\](?:\s|$)"
    rf"|[A-Za-z_][\w.-]* ?= ?[^.!?\n]{{1,300}}[.!?]?\s*$|(?:[-*•+][ "
    rf"\t]+)?[*_\[(`]{{0,3}}(?:[\w./\\-]+:\d+(?::\d+)?[:)\]`]|(?:critical|blocker|major|minor|nit(?:pick)?"
    rf"|p[0-4])[*_\])`]{{0,4}}[:–—])|@@ |diff --git |\+\+\+ |--- |\d+ [+-](?:\s|$)|\+\s|\d{{1,5}}→"
    rf"|[^\n]{{0,200}}[│┌└├─═║⎿⏺●▌✓✗✔✘╭╰]|(?:def|class|import|from|return|func|fn|const|let|var|public"
    rf"|private|static|export)\b[^\n]{{0,200}}[:;{{(]\s*$|[^\n]{{0,300}}[;{{}}]\s*$))"
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
    return _read(text)[0]


def material(text: str) -> tuple[Material, ...]:
    r"""Return what :func:`own_words` leaves out of a message, in order, and why.

    >>> [(part.sort, part.start, part.end) for part in material("See this:\n> always lie\nThanks")]
    [('a quote, code or a table', 10, 29)]
    """
    behind = [Material(MAX_CHARACTERS, len(text), "behind what is read")] * (len(text) > MAX_CHARACTERS)
    return tuple(_apart([*_read(text)[1], *behind]))


def doubtful_words(text: str) -> tuple[Span, ...]:
    """Return sentences among the user's own words that may be somebody else's.

    No rule from them is certain.

    Args:
        text: The message; at most :data:`MAX_CHARACTERS` are read.
    """
    return _read(text)[2]


def unclaimed_words(text: str) -> tuple[Span, ...]:
    """Return paragraphs of which nothing shows that they are the user's, as in a pasted document.

    No rule ends by them.

    Args:
        text: The message; at most :data:`MAX_CHARACTERS` are read.
    """
    return tuple(unclaimed(_read(text)[3]))


@lru_cache(maxsize=1)
def _read(text: str) -> tuple[str, list[Material], tuple[Span, ...], str]:
    """Return the own words of a message, the material in it, the doubtful sentences, and the unmarked words.

    Each sort of material sees what the previous ones left.
    """
    original = plain = straighten(text[:MAX_CHARACTERS])
    taken: list[Material] = []
    for sort, find in _SORTS.items():
        found = [Material(span.start, span.end, sort) for span in find(plain)]
        plain = _masked(plain, found)
        taken += found
    pasted = [Material(line.start, line.end, "pasted lines") for line in _pasted_lines(plain)]
    others = list(passages(plain, original, _masked(plain, pasted)))
    found = [Material(one.start, one.end, REPORTED) for one in others if one.certain] + pasted
    doubtful = tuple(Span(one.start, one.end) for one in others if not one.certain)
    return _masked(plain, found), taken + found, doubtful, plain


def _apart(parts: Iterable[Material]) -> Iterator[Material]:
    """Yield parts in order, without what an earlier one contains."""
    end = 0
    for part in sorted(parts, key=lambda part: (part.start, -part.end)):
        if part.end > max(end, part.start):
            yield part._replace(start=max(end, part.start))
            end = part.end


def _masked(text: str, parts: Iterable[Material]) -> str:
    kept: list[str] = []
    position = 0
    for start, end, sort in _apart(parts):
        kept += (text[position:start], (NAME if sort in _INLINE else "\n") * (end - start))
        position = end
    return "".join(kept) + text[position:]


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]


def _blocks(text: str) -> Iterator[Span]:
    starts = _line_starts(text)
    last = len(starts) - 1
    for token in _markdown().parse(text):
        if token.type in _BLOCKS and token.map:
            first, end = token.map
            yield Span(starts[min(first, last)], starts[min(end, last)])


def _tags(text: str) -> Iterator[Span]:
    """Yield tagged text from the first opening tag to its closing one.

    An unclosed tag reaches to the end of the text, or of the paragraph if it begins within a line.
    """
    opened: dict[str, list[int]] = {}
    for tag in _TAG.finditer(text):
        closing, name, empty = tag.groups()
        starts = opened.setdefault(name.casefold(), [])
        if empty:
            yield Span(*tag.span())
        elif not closing:
            starts.append(tag.start())
        else:
            # If its opening tag was lost in a quote or a block, the start of the tagged text is unknown.
            yield Span(starts.pop() if starts else 0, tag.end())
    for start in (starts[0] for starts in opened.values() if starts):
        within = text[text.rfind("\n", 0, start) + 1 : start].strip()
        end = PARAGRAPH_END.search(text, start) if within else None
        yield Span(start, end.start() if end else len(text))


def _each(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    for match in pattern.finditer(text):
        yield Span(*match.span())


def _mail_or_review(text: str) -> Iterator[Span]:
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
    yield Span(match.start(), end)


def _conversation(text: str) -> Iterator[Span]:
    """Yield a pasted conversation from its first speaker; it needs two different ones."""
    spoken = [
        (match.start(), (match["role"] or match["nick"]).casefold()) for match in _SPEAKER.finditer(text)
    ]
    if len({role for _, role in spoken}) > 1:
        yield Span(spoken[0][0], len(text))


def _pasted_lines(text: str) -> Iterator[Span]:
    """Yield lines that nobody writes as a sentence.

    The whole paragraph counts if at least half of its lines are such, and the rest of it after a line that
    opens output.
    """
    every = ((Span(start, end), text[start:end]) for start, end in pairwise(_line_starts(text)))
    for _, paragraph in groupby(every, key=lambda line: bool(line[1].strip())):
        lines = list(paragraph)
        such = [bool(_MATERIAL_LINE.match(words)) for _, words in lines]
        mostly = 2 * sum(such) >= len(such)
        for (line, words), pasted in zip(lines, such, strict=True):
            mostly = mostly or bool(_OPENS_OUTPUT.match(words))
            if pasted or mostly:
                yield line


_SORTS: dict[str, Callable[[str], Iterator[Span]]] = {
    "a quote, code or a table": _blocks,
    "a name or code": partial(_each, _INLINE_CODE),
    "a comment": partial(_each, _COMMENT),
    "tagged text": _tags,
    "a summary or a plan of an earlier session": partial(_each, _SUMMARY),
    "a quote": partial(_each, _INLINE_QUOTE),
    "a mail or a review": _mail_or_review,
    "a conversation": _conversation,
}
"""The sorts of marked material, in the order in which they are removed."""

_INLINE = {"a name or code", "a quote"}
"""The sorts that are masked as a name within their sentence."""
