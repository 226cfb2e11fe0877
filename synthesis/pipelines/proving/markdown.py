r"""Markdown written by agents: its prose without code, its sections, and the entries of its lists.

Lines are counted from 1 and ended by ``\n``, ``\r\n`` or ``\r``. A fence that is never closed contains all
that follows it, as in CommonMark 0.31.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from agentx.synthesis.chunking.headings import Heading, fenced, markdown_headings
from agentx.synthesis.pipelines.proving.phrase_search import tokens

_OPENS = re.compile(
    r"(?P<ticks>`+)|(?P<comment><!--)|(?P<link>\]\()|(?P<address><?\b(?:https?|ftp|file|mailto):)|</?[A-Za-z]"
)
_TICKS = re.compile(r"`+|\n[ \t]*\n")
_TARGET = re.compile(r"\]\((?:[^()\n]|\([^()\n]*\))*+\)")
_ADDRESS = re.compile(r"<?\w+:[^\s<>]+>?")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
_NO_BREAK = re.compile(r"[^\n]")
_NUMBER = re.compile(
    r"^(?:(?:chapter|section|part|step|appendix)\s+)?(?:\d++(?:\.\d++)*+|[ivxlc]++|[a-z])[.):](?!\d)\s*"
    r"|^\d+(?:\.\d+)*+\s+",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?P<indent> {0,3})(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_ORDERED = re.compile(r" {0,3}(\d{1,9})[.)]")
_TABLE_ROW = re.compile(r" {0,3}\|")
_QUOTE = re.compile(r" {0,3}>")


class Section(msgspec.Struct, frozen=True):
    """A heading and the text below it.

    Attributes:
        line: Line of the heading; 0 for the text before the first.
        level: From 1; 0 for the text before the first.
        above: The titles of the enclosing headings, outermost first, its own last.
        own: Its lines before the next heading of any level, without the heading.
        first: The line where ``own`` begins.
        whole: Its lines before the next heading of its level or above.
    """

    line: int
    level: int
    above: tuple[str, ...]
    own: tuple[str, ...]
    first: int
    whole: tuple[str, ...]

    @property
    def title(self) -> str:
        """The words of its heading."""
        return self.above[-1] if self.above else ""


class MarkdownEntry(msgspec.Struct, frozen=True):
    """A list item with everything that belongs to it, or a paragraph, a table, or a code block.

    Attributes:
        line: Its first line.
        lines: Its lines as written.
        listed: Whether it is a list item.
    """

    line: int
    lines: tuple[str, ...]
    listed: bool

    @property
    def text(self) -> str:
        """Its words in one line, without the list mark."""
        item = _ITEM.match(self.lines[0]) if self.listed else None
        first = self.lines[0][item.end() :] if item else self.lines[0]
        return " ".join(part for line in (first, *self.lines[1:]) if (part := line.strip()))


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text, without a byte order mark.

    >>> lines_of("one\r\ntwo")
    ['one', 'two']
    """
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def stripped(lines: Sequence[str]) -> list[str]:
    """Return lines without blank ones at either end."""
    said = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[said[0] : said[-1] + 1]) if said else []


def prose(text: str, *, spans: bool = False) -> list[str]:
    """Return the lines of a text with everything but prose blanked: code, comments, tags, and link targets.

    With ``spans``, code within a line is kept.

    >>> prose("Call `record()` once.")
    ['Call            once.']
    """
    lines = lines_of(text)
    rest = "\n".join("" if code else line for line, code in zip(lines, fenced(lines), strict=True))
    kept: list[str] = []
    end = 0
    closing = rest.rfind("-->")
    while opened := _OPENS.search(rest, end):
        stop = _stop(rest, opened, closing)
        kept.append(rest[end : opened.start()])
        hidden = rest[opened.start() : stop]
        stays = stop == opened.end() or (spans and opened.lastgroup == "ticks")
        kept.append(hidden if stays else _NO_BREAK.sub(" ", hidden))
        end = stop
    return "".join([*kept, rest[end:]]).split("\n")


def _stop(text: str, opened: re.Match[str], closing: int) -> int:
    """Return where the hidden part ends; if it is prose after all, the end of what opened it."""
    start, behind = opened.span()
    match opened.lastgroup:
        case "comment":
            if closing >= behind:
                return text.index("-->", behind) + len("-->")
            return len(text) if not text[text.rfind("\n", 0, start) + 1 : start].strip() else behind
        case "ticks":  # if the code span is not closed in its paragraph, only the ticks
            ends = (
                found
                for found in _TICKS.finditer(text, behind)
                if found[0] == opened[0] or found[0][0] == "\n"
            )
            end = next(ends, None)
            return end.end() if end and end[0] == opened[0] else behind
        case "link":
            found = _TARGET.match(text, start)
        case "address":
            found = _ADDRESS.match(text, start)
        case _:
            found = _TAG.match(text, start)
    return found.end() if found else behind


def sections(text: str) -> Iterator[Section]:
    """Yield the text before the first heading, then each section in order."""
    lines = lines_of(text)
    headings = list(markdown_headings(lines))
    starts, ends = [*(heading.line for heading in headings), len(lines)], _ends(headings, len(lines))
    yield Section(0, 0, (), tuple(lines[: starts[0]]), 1, tuple(lines[: starts[0]]))
    above: list[Heading] = []
    for number, heading in enumerate(headings):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        begin = heading.line + heading.height
        yield Section(
            line=heading.line + 1,
            level=heading.level,
            above=tuple(one.title for one in above),
            own=tuple(lines[begin : starts[number + 1]]),
            first=begin + 1,
            whole=tuple(lines[begin : ends[number]]),
        )


def _ends(headings: Sequence[Heading], end: int) -> list[int]:
    """Return for each heading the line of the next one of its level or above."""
    nearest = dict.fromkeys(range(1, 7), end)
    found: list[int] = []
    for heading in reversed(headings):
        found.append(min(nearest[level] for level in range(1, heading.level + 1)))
        nearest[heading.level] = heading.line
    return found[::-1]


def entries(lines: Sequence[str], first: int = 1) -> Iterator[MarkdownEntry]:
    """Yield the entries of some lines: each outermost list item, and each paragraph, table or code block.

    The lines are those of a section, without headings.
    """
    kept: list[str] = []
    begin, inside, was_code = first, 0, ""
    for number, (line, code) in enumerate(zip(lines, fenced(lines), strict=True)):
        # Within a paragraph, only the number 1 begins a list (CommonMark 0.31, 5.2).
        ordered = _ORDERED.match(line) if kept and kept[-1].strip() else None
        is_wrapped = ordered is not None and int(ordered[1]) != 1 and not _ORDERED.match(kept[0])
        item = None if code or is_wrapped else _ITEM.match(line)
        outermost = item is not None and len(item["indent"]) < max(inside, 1)
        if kept and (outermost or not _goes_on(line, code, was_code, inside, blank=not kept[-1].strip())):
            yield _entry(begin, kept, listed=inside > 0)
            kept = []
        if not kept and (code or line.strip()):
            begin, inside = first + number, len(item[0]) or 1 if item else 0
        if kept or code or line.strip():
            kept.append(line)
        was_code = code
    if kept:
        yield _entry(begin, kept, listed=inside > 0)


def _goes_on(line: str, code: str, was_code: str, inside: int, *, blank: bool) -> bool:
    """Return whether a line continues the entry before it.

    ``inside`` is the column of an item's text, 0 outside of lists.
    """
    if code and was_code:
        return True
    if inside:
        return not line.strip() or not blank or line[:1] in {" ", "\t"}
    return bool(line.strip()) and not blank and bool(code) == bool(was_code)


def _entry(line: int, lines: list[str], *, listed: bool) -> MarkdownEntry:
    while not lines[-1].strip():
        lines.pop()
    return MarkdownEntry(line, tuple(lines), listed)


def is_plain(entry: MarkdownEntry) -> bool:
    """Return whether an entry is a paragraph or a list item, and not a table, quotation or code block."""
    first = entry.lines[0]
    return entry.listed or not (_TABLE_ROW.match(first) or _QUOTE.match(first) or next(fenced((first,))))


def title_words(title: str) -> tuple[str, ...]:
    """Return the stems of a title's words, without its number or letter, so that two titles can be compared.

    >>> title_words("2.1 Core functions") == title_words("Chapter 3: core *function*")
    True
    """
    said = tokens(_NUMBER.sub("", title.strip())) or tokens(title)
    return tuple(token.stem for token in said) or (title.strip(),)
