"""Split files into passages: where a text can be cut, how long each is, and which matter for a task.

A file of the long-term memory grows by a section with every item, and is read again for each. So everything
known about a passage is cached by its text: what did not change is never counted twice.
"""

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Any

import msgspec

from agentx.storage.index import bm25
from agentx.storage.index.analysis import analyse, query_terms
from agentx.synthesis.chunking import outline
from agentx.synthesis.chunking.headings import markdown_headings
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.tokens import count_tokens

_PIECE = 4_000
"""Number of characters from which a text is counted in pieces, and minimum size of a piece."""

_KEPT_CHARS = 16_000_000
"""Number of characters of cached passages; far more than a long pipeline reads."""

_LONGEST_GIST = 240
_LONGEST_HEADING = 80

_MARKDOWN = frozenset({"", ".md", ".markdown", ".mdx"})
_MARKS = re.compile(r"\n(?= {0,3}(?:#|```|~~~|(?:=+|-+)[ \t]*\r?(?:\n|\Z))|\.\.\.\r?\n)")
"""Matches before each Markdown line, except the first, that begins a section or prevents another from
beginning one.
"""

_HEAD = re.compile(r"(?:[ \t]*\r?\n| {0,3}#{1,6}[ \t].*\n|\|.*\n[ \t]*\|?[ \t]*:?-[-:| \t]*\r?\n)*")
"""Matches what is above the entries: headings, and the first rows of a table."""

_ENTRY = re.compile(r"\n[ \t]*\r?\n(?=\S)|\n(?=(?:[-*+]|\d{1,4}[.)])[ \t]|\|)")
_LINE = re.compile(r"\n(?=\S)")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=\S)|(?<=[。！？])(?=\S)")
_NO_PROSE = re.compile(r"\s*(?:$|<!--|```|~~~|[-=|:\s]+$|#{1,6}(?:\s|$))")
_CJK_END = re.compile(r"[。！？]")

_FORMS = (("entry", "entries", _ENTRY), ("line", "lines", _LINE), ("sentence", "sentences", _SENTENCE))


Mark = tuple[int, int, str]
"""Where a section begins, its level, and the words of its heading."""


class Passage:
    """A piece of text with lazily computed properties."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tokens(self) -> int:
        """Number of tokens."""
        return count_tokens(self.text)

    @cached_property
    def gist(self) -> str:
        """Its first sentence, shortened if it is long; empty if it has none."""
        prose = "\n".join(_prose(self.text))
        first = next(iter(sentences(prose)), None)
        said = " ".join(prose[first.start : first.end].split()) if first else ""
        end = _CJK_END.search(said)
        said = said[: end.end()] if end else said
        return said if len(said) <= _LONGEST_GIST else said[:_LONGEST_GIST].rsplit(" ", 1)[0] + " …"

    @cached_property
    def terms(self) -> Counter[str]:
        """Number of occurrences of each index term."""
        return Counter(analyse(self.text))


class _Kept:
    """A bounded cache of the latest passages by text; thread-safe."""

    def __init__(self, most_chars: int) -> None:
        self._most, self._chars = most_chars, 0
        self._known: OrderedDict[str, Passage] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, text: str) -> Passage:
        with self._lock:
            found = self._known.get(text)
            if found is None:
                found = self._known[text] = Passage(text)
                self._chars += len(text)
                while self._chars > self._most:
                    self._chars -= len(self._known.popitem(last=False)[0])
            else:
                self._known.move_to_end(text)
            return found


passage = _Kept(_KEPT_CHARS).of
"""Returns the cached passage of a text."""


def tokens_of(text: str) -> int:
    """Count the tokens of a text piece by piece, so that only the end of a grown text is counted again.

    Pieces end at a line end that is not followed by white space: no token spans such a place.
    """
    return sum(passage(piece).tokens for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE:
        end = text.find("\n", start + _PIECE) + 1
        while 0 < end < len(text) and text[end].isspace():
            end = text.find("\n", end) + 1
        if not 0 < end < len(text):
            break
        yield text[start:end]
        start = end
    yield text[start:]


class FileSection:
    """A passage that a file can be cut at.

    Attributes:
        heading: Its heading; empty for a list entry, a line or a sentence.
        text: The complete text including its heading; it ends with a line feed.
        first_line: From 1.
        last_line: Inclusive.
    """

    def __init__(self, heading: str, text: str, first_line: int, last_line: int) -> None:
        self.heading, self.text, self.first_line, self.last_line = heading, text, first_line, last_line

    @cached_property
    def tokens(self) -> int:
        """Number of tokens."""
        return tokens_of(self.text)

    @cached_property
    def brief(self) -> str:
        """A one-line summary: its heading and its first sentence; empty if it has no content."""
        gist = passage(self.text).gist
        said = f"{self.heading}: {gist}" if self.heading and gist else self.heading or gist
        return f"- {said}\n" if said else ""

    @cached_property
    def brief_tokens(self) -> int:
        """Number of tokens of the summary."""
        return passage(self.brief).tokens

    @cached_property
    def terms(self) -> Counter[str]:
        """Number of occurrences of each index term."""
        return passage(self.text).terms


class Sections(msgspec.Struct, frozen=True):
    """A file split into sections.

    Attributes:
        head: The text before the first section.
        one: What a section is called: section, entry, line, sentence. ``many`` is the plural.
    """

    head: str
    sections: tuple[FileSection, ...]
    one: str = "section"
    many: str = "sections"

    def counted(self, count: int) -> str:
        """Return a number of sections in words."""
        return f"{count:,} {self.one if count == 1 else self.many}"


@lru_cache(maxsize=16)
def sections_of(path: str, text: str) -> Sections:
    r"""Split a file into sections.

    The sections begin at the shallowest headings that occur at least twice. Without such headings, they are
    entries, lines or sentences. Code is split at its definitions.

    The suffix of the path determines the structure. The text ends with a line feed.

    >>> found = sections_of("a.md", "# Terms\n\n## One\n\nFirst.\n\n## Two\n\nNext.\n")
    >>> found.head, [one.heading for one in found.sections]
    ('# Terms\n\n', ['One', 'Two'])
    """
    is_markdown = PurePosixPath(path).suffix.lower() in _MARKDOWN
    marks = _marks_of(path, text) if is_markdown else _outlined(path, text)
    often = Counter(level for _, level, _ in marks)
    level = min((level for level, count in often.items() if count > 1), default=0)
    starts = [(start, title) for start, depth, title in marks if depth <= level]
    if starts and (marks[0][1] < level or not text[starts[0][0] : starts[1][0]].strip().count("\n")):
        starts = starts[1:]  # the first heading is a title of the whole file, and belongs to the head
    if len(starts) > 1:
        return Sections(text[: starts[0][0]], tuple(_between(text, starts)))
    return _without_headings(text)


class _Marks:
    """Caches where sections begin, so that only the new end of a grown file is parsed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: OrderedDict[str, tuple[str, list[Mark]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, path: str, text: str) -> Sequence[Mark]:
        with self._lock:
            before, known = self._last.pop(path, ("", []))
        has_front_matter = text.startswith("---")  # only a later part of the text says where it ends
        grew = before and not has_front_matter and text.startswith(before)
        start = len(before) if grew else 0
        marks = known[:-1] if grew else []
        marks += [(start + place, level, title) for place, level, title in _markdown(text[start:])]
        with self._lock:
            self._last[path] = (text[: marks[-1][0]] if marks else "", marks)
            while len(self._last) > self._most:
                self._last.popitem(last=False)
        return marks


_marks_of = _Marks(32).of


def _markdown(text: str) -> Iterator[Mark]:
    """Yield the headings of Markdown; only relevant lines are parsed."""
    starts = [0]
    for mark in _MARKS.finditer(text):
        start = mark.end()
        if text[start : start + 4].lstrip()[:1] in {"=", "-"}:
            starts.append(text.rfind("\n", 0, mark.start()) + 1)  # the underlined line
        starts.append(start)
    starts = list(dict.fromkeys(starts))
    lines = [text[start : end if (end := text.find("\n", start)) >= 0 else len(text)] for start in starts]
    for heading in markdown_headings(lines):
        yield starts[heading.line], heading.level, heading.title


@lru_cache(maxsize=32)
def _outlined(path: str, text: str) -> tuple[Mark, ...]:
    """Return the same for the definitions of other kinds of files, with their nesting depth."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    open_ends: list[int] = []
    marks = []
    for entry in outline(path, text):
        while open_ends and open_ends[-1] < entry.start_line:
            open_ends.pop()
        open_ends.append(entry.end_line)
        marks.append((lines[entry.start_line - 1], len(open_ends), entry.symbol))
    return tuple(marks)


def _without_headings(text: str) -> Sections:
    head = _HEAD.match(text)
    begins = head.end() if head else 0
    for one, many, boundary in _FORMS:
        cuts = [begins, *(found.end() for found in boundary.finditer(text, begins))]
        starts = [(start, "") for start in cuts if text[start : start + 1].strip() or start == begins]
        if len(starts) > 1:
            return Sections(text[:begins], tuple(_between(text, starts)), one, many)
    return Sections("", (FileSection("", text, 1, text.count("\n")),) if text else (), "section", "sections")


def _between(text: str, starts: Sequence[tuple[int, str]]) -> Iterator[FileSection]:
    line, before = 1, 0
    ends = [start for start, _ in starts[1:]] + [len(text)]
    for (start, title), end in zip(starts, ends, strict=True):
        line += text.count("\n", before, start)
        own = text[start:end]
        last = line + max(own.count("\n") - 1, 0)
        yield FileSection(title[:_LONGEST_HEADING], own if own.endswith("\n") else own + "\n", line, last)
        before = start


def _prose(text: str) -> Iterator[str]:
    """Yield the first lines of a passage that have content."""
    said = 0
    for line in text[:4_000].split("\n"):
        if not _NO_PROSE.match(line):
            said += 1
            yield line
        elif said:
            return


class Wanted:
    """Ranks sections by their relevance for a task.

    The item that it is for has the values ``id``, ``number`` and ``title``.
    """

    def __init__(self, about: str, item: Mapping[str, Any]) -> None:
        self._about, self._item = about, item

    # most dispatches cut nothing and need neither
    @cached_property
    def _terms(self) -> Mapping[str, int]:
        return query_terms(self._about)

    @cached_property
    def _named(self) -> list[re.Pattern[str]]:
        return [re.compile(pattern, re.IGNORECASE) for pattern in _names(self._item)]

    def order(self, sections: Sequence[FileSection]) -> list[int]:
        """Return indices of sections by relevance: by heading, then by search (BM25), then the latest."""
        counts = [one.terms for one in sections]
        weights = bm25.weigh(self._terms, _Within(self._terms, counts))
        rank = [
            (any(name.search(one.heading) for name in self._named), bm25.score(weights, found, found.total()))
            for one, found in zip(sections, counts, strict=True)
        ]
        return sorted(range(len(sections)), key=lambda n: (*rank[n], n), reverse=True)


class _Within:
    """BM25 statistics over the sections of one file."""

    def __init__(self, terms: Mapping[str, int], counts: Sequence[Counter[str]]) -> None:
        self._docs, self._length = len(counts), sum(found.total() for found in counts)
        self._often = Counter(term for found in counts for term in terms.keys() & found.keys())

    def totals(self) -> tuple[int, int]:
        """Return the number of sections, and of terms in all of them.

        There is at least 1 term, because lengths are divided by it.
        """
        return self._docs, max(self._length, 1)

    def frequency(self, term: str) -> int:
        """Return the number of sections that contain a term."""
        return self._often[term]


def _names(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield patterns that find an item in a heading: its key or number, and its title."""
    key, title = str(item.get("id", "")), str(item.get("title", "")).strip()
    if key and not key.isdigit():
        yield rf"(?<!\w){re.escape(key)}(?!\w)"
    number = key if key.isdigit() else "" if re.search(r"\d", key) else str(item.get("number", ""))
    if number.isdigit():
        yield rf"(?<!\d)(?<!\d\.)0*{int(number)}(?!\d|\.\d)"
    if len(title) > 2:  # noqa: PLR2004 - less than a word
        yield re.escape(title)
