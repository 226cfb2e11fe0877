"""Files in passages: where a text can be cut, how many tokens each passage has, what it says in a sentence.

A file of the long-term memory grows by a section with every item and is read again for each, so whatever is known of a passage is
kept by its text: what did not change is never counted twice.
"""

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

import msgspec

from agentx.storage.index.analysis import analyse
from agentx.synthesis.chunking import outline
from agentx.synthesis.chunking.headings import markdown_headings
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.language.tokens import count_tokens

_PIECE = 4_000
"""Characters from which on a text is counted in pieces, each of at least so many."""

_KEPT_CHARS = 16_000_000
"""Characters of passages that are remembered; far more than a long pipeline reads."""

_LONGEST_GIST = 240
_LONGEST_HEADING = 80

_MARKDOWN = frozenset({"", ".md", ".markdown", ".mdx"})
_MARKS = re.compile(r"\n(?= {0,3}(?:#|```|~~~|(?:=+|-+)[ \t]*\r?(?:\n|\Z))|\.\.\.\r?\n)")
"""Before each line of Markdown, but for the first, that begins a section or tells that another does not."""

_HEAD = re.compile(r"(?:[ \t]*\r?\n| {0,3}#{1,6}[ \t].*\n|\|.*\n[ \t]*\|?[ \t]*:?-[-:| \t]*\r?\n)*")
"""What stands over entries: headings, and the first rows of a table."""

_ENTRY = re.compile(r"\n[ \t]*\r?\n(?=\S)|\n(?=(?:[-*+]|\d{1,4}[.)])[ \t]|\|)")
_LINE = re.compile(r"\n(?=\S)")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=\S)|(?<=[。！？])(?=\S)")
_NO_PROSE = re.compile(r"\s*(?:$|<!--|```|~~~|[-=|:\s]+$|#{1,6}(?:\s|$))")
_CJK_END = re.compile(r"[。！？]")

_FORMS = (("entry", "entries", _ENTRY), ("line", "lines", _LINE), ("sentence", "sentences", _SENTENCE))


Mark = tuple[int, int, str]
"""Where a section begins, its level, and the words of its heading."""


class Passage:
    """A stretch of text, with what is known of it; each is found out when it is first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tokens(self) -> int:
        """How many tokens it has."""
        return count_tokens(self.text)

    @cached_property
    def gist(self) -> str:
        """Its first sentence, shortened where it is long; empty where it has none."""
        prose = "\n".join(_prose(self.text))
        first = next(iter(sentences(prose)), None)
        said = " ".join(prose[first.start : first.end].split()) if first else ""
        end = _CJK_END.search(said)
        said = said[: end.end()] if end else said
        return said if len(said) <= _LONGEST_GIST else said[:_LONGEST_GIST].rsplit(" ", 1)[0] + " …"

    @cached_property
    def terms(self) -> Counter[str]:
        """How often each index term occurs in it."""
        return Counter(analyse(self.text))


class _Kept:
    """The passages that were met last, by their text; bounded, and safe to share between threads."""

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
"""What is known of a text."""


def tokens_of(text: str) -> int:
    """How many tokens a text has, counted piece by piece, so that of one that grew only the end is counted anew.

    Pieces end where a line does and the next does not begin with white space: no token spans such a place.
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


class Section:
    """A passage that a file can be cut at.

    Attributes:
        heading: Its heading; empty for an entry of a list, a line or a sentence.
        text: All of it, its heading too; it ends with a line feed.
        first_line: From 1.
        last_line: Inclusive.
    """

    def __init__(self, heading: str, text: str, first_line: int, last_line: int) -> None:
        self.heading, self.text, self.first_line, self.last_line = heading, text, first_line, last_line

    @cached_property
    def tokens(self) -> int:
        """How many tokens it has."""
        return tokens_of(self.text)

    @cached_property
    def brief(self) -> str:
        """One line for it: its heading and its first sentence; empty where it says nothing."""
        gist = passage(self.text).gist
        said = f"{self.heading}: {gist}" if self.heading and gist else self.heading or gist
        return f"- {said}\n" if said else ""

    @cached_property
    def brief_tokens(self) -> int:
        """How many tokens that line has."""
        return passage(self.brief).tokens

    @cached_property
    def terms(self) -> Counter[str]:
        """How often each index term occurs in it."""
        return passage(self.text).terms


class Sections(msgspec.Struct, frozen=True):
    """A file in its sections.

    Attributes:
        head: What stands before the first.
        one: What one of them is called: section, entry, line, sentence; ``many`` for more.
    """

    head: str
    sections: tuple[Section, ...]
    one: str = "section"
    many: str = "sections"

    def counted(self, count: int) -> str:
        """So many of them, in words."""
        return f"{count:,} {self.one if count == 1 else self.many}"


@lru_cache(maxsize=16)
def sections_of(path: str, text: str) -> Sections:
    r"""Cut a file into sections: at the shallowest headings of which there are two, or else into entries, lines or sentences.

    Code is cut at its definitions.

    Args:
        path: Its suffix tells the structure.
        text: It ends with a line feed.

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
        starts = starts[1:]  # a title of the whole file, which belongs to what stands before
    if len(starts) > 1:
        return Sections(text[: starts[0][0]], tuple(_between(text, starts)))
    return _without_headings(text)


class _Marks:
    """Where the sections of files begin; of a file that grew only what comes behind its last heading is looked at."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: OrderedDict[str, tuple[str, list[Mark]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, path: str, text: str) -> Sequence[Mark]:
        with self._lock:
            before, known = self._last.pop(path, ("", []))
        has_front_matter = text.startswith("---")  # where it ends is said further on
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
    """The headings of Markdown; only lines that matter are looked at."""
    starts = [0]
    for mark in _MARKS.finditer(text):
        start = mark.end()
        if text[start : start + 4].lstrip()[:1] in {"=", "-"}:
            starts.append(text.rfind("\n", 0, mark.start()) + 1)  # what is underlined
        starts.append(start)
    starts = list(dict.fromkeys(starts))
    lines = [
        text[start:].split("\n", 1)[0] if start == starts[-1] else text[start : text.find("\n", start)]
        for start in starts
    ]
    for heading in markdown_headings(lines):
        yield starts[heading.line], heading.level, heading.title


@lru_cache(maxsize=32)
def _outlined(path: str, text: str) -> tuple[Mark, ...]:
    """The same of what a file of another kind defines; depth by what encloses it."""
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
    return Sections("", (Section("", text, 1, text.count("\n")),) if text else (), "section", "sections")


def _between(text: str, starts: Sequence[tuple[int, str]]) -> Iterator[Section]:
    line, before = 1, 0
    ends = [start for start, _ in starts[1:]] + [len(text)]
    for (start, title), end in zip(starts, ends, strict=True):
        line += text.count("\n", before, start)
        own = text[start:end]
        yield Section(
            title[:_LONGEST_HEADING],
            own if own.endswith("\n") else own + "\n",
            line,
            line + max(own.count("\n") - 1, 0),
        )
        before = start


def _prose(text: str) -> Iterator[str]:
    """The first lines of a passage that say something."""
    said = 0
    for line in text[:4_000].split("\n"):
        if not _NO_PROSE.match(line):
            said += 1
            yield line
        elif said:
            return
