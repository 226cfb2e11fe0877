"""Find the sections of prose and of configuration files by their heading lines, in one pass."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agentx.synthesis.chunking.pieces import OutlineEntry

SEPARATOR = " > "
"""Separator between a heading and its subheading in a symbol."""

MAX_TITLE = 100
"""Maximum length of a heading, in characters."""

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r"\s*$|\t| {4}| {0,3}(?:[>#|]|[-*+][ \t]|\d{1,9}[.)][ \t])")
_ADORNMENT = re.compile(r"([-=~^\"'`#*+.:_<>])\1{2,}\s*$")
_TABLE = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:[#;].*)?$")
_YAML_KEY = re.compile(r"([A-Za-z_][\w.-]*):(?:\s|$)")


class Heading(msgspec.Struct, frozen=True):
    """A heading: the index of its first line, its number of lines, its level from 1, and its text."""

    line: int
    height: int
    level: int
    title: str


def markdown_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield ATX and setext headings (CommonMark 0.31, 4.2 and 4.3) outside fenced code and front matter."""
    index = 0
    if lines and lines[0].rstrip() == "---":  # front matter
        marks = (n + 1 for n in range(1, min(len(lines), 200)) if lines[n].rstrip() in {"---", "..."})
        index = next(marks, 0)
    for number, code in enumerate(fenced(lines[index:]), start=index):
        if code:
            continue
        line = lines[number].rstrip("\r")
        if atx := _ATX.match(line):
            yield Heading(number, 1, len(atx[1]), _title(re.sub(r"(^|[ \t])#+[ \t]*$", "", atx[2] or "")))
        elif number > index and (under := _SETEXT.match(line)) and not _NO_PARAGRAPH.match(lines[number - 1]):
            yield Heading(number - 1, 2, 1 if under[1][0] == "=" else 2, _title(lines[number - 1]))


def fenced(lines: Iterable[str]) -> Iterator[str]:
    """Yield for each line the fence of its code block (CommonMark 0.31, 4.5); empty outside code.

    A fence line belongs to its block.
    """
    fence = ""
    for line in lines:
        opened = _FENCE.match(line)
        behind = line[opened.end() :] if opened else ""
        if opened and not fence and not (opened[1][0] == "`" and "`" in behind):
            fence = opened[1]
            yield fence
            continue
        yield fence
        if opened and fence and opened[1].startswith(fence) and not behind.strip():
            fence = ""


def underlined_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield reStructuredText headings: a title with a row of one punctuation character below it.

    A row above the title is optional. Levels follow the order in which the styles first appear.
    """
    styles: list[tuple[str, bool]] = []
    for number in range(1, len(lines)):
        row = _ADORNMENT.match(lines[number])
        title = lines[number - 1].strip()
        if row is None or not title or _ADORNMENT.match(lines[number - 1]):
            continue
        if len(lines[number].rstrip()) < len(title):
            continue
        above = lines[number - 2].rstrip() if number > 1 else ""
        over = above == lines[number].rstrip()
        if above and not over:
            continue
        style = (row[1], over)
        if style not in styles:
            styles.append(style)
        yield Heading(number - 1 - over, 2 + over, styles.index(style) + 1, _title(title))


def table_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield the ``[table]`` lines of TOML and INI files."""
    for number, line in enumerate(lines):
        if found := _TABLE.match(line):
            yield Heading(number, 1, 1, _title(found[1]))


def key_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield the keys of the outermost mapping of a YAML file."""
    for number, line in enumerate(lines):
        if found := _YAML_KEY.match(line):
            yield Heading(number, 1, 1, found[1])


def sections(headings: Sequence[Heading], lines: Sequence[str], kind: str) -> list[OutlineEntry]:
    """Return headings as outline entries; a section ends at the next heading of its level or above."""
    ends = [len(lines)] * len(headings)
    open_ones: list[int] = []
    entries: list[OutlineEntry] = []
    for index, heading in enumerate(headings):
        while open_ones and headings[open_ones[-1]].level >= heading.level:
            ends[open_ones.pop()] = heading.line
        open_ones.append(index)
        # The first text line shortly after the heading, unless another heading or code comes first.
        after = heading.line + heading.height
        text = next((line.strip() for line in lines[after : after + 4] if line.strip()), "")
        entries.append(
            OutlineEntry(
                symbol=SEPARATOR.join(headings[i].title for i in open_ones if headings[i].title),
                kind=kind,
                start_line=heading.line + 1,
                end_line=0,
                signature=f"{'#' * heading.level} {heading.title}" if kind == "heading" else heading.title,
                doc="" if text.startswith(("#", "```", "~~~", "[")) else text[:160],
            )
        )
    return [msgspec.structs.replace(entry, end_line=end) for entry, end in zip(entries, ends, strict=True)]


def _title(text: str) -> str:
    return re.sub(r"[*`]|\s+", lambda m: " " if m[0].isspace() else "", text).strip()[:MAX_TITLE]
