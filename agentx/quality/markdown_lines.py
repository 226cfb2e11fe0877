"""Split a Markdown text, line by line, into prose, headings, links and fences.

The invariant: the prose has as many lines as the text, each at its original line number, so that findings can
be located. Code, addresses and tags are blanked out, never moved.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it.token import Token

SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})
FRONT_MATTER_LINES = 200
"""Maximum number of lines searched for the end of a front matter."""
NEAR_LINES = 5
NEAR_CHARS = 5_000
"""How far to search for a link. The limits avoid quadratic time on a text that consists only of links."""
BLOT = "`"
"""Replaces each blanked-out character.

It is neither a letter nor a space, so that no word or phrase can form across it.
"""

# Every repetition is bounded or cannot restart inside itself, so that no text makes these patterns slow.
_NOT_PROSE = re.compile(
    r"<!--[^<]{0,2000}?-->"
    r"|</?[A-Za-z][^<>]{0,2000}>"
    r"|\b(?:https?|ftp|file|git|ssh)://\S+"
    r"|\bwww\.\S+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,200}"
    r"|\]\((?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)"
    r"|\]\[[^\[\]]*\]"
)
_TICKS = re.compile(r"(?<!\\)`+")
_HTML_ANCHOR = re.compile(r"\b(?:id|name)\s{0,9}=\s{0,9}[\"']([^\"'<>]{1,200})[\"']")
_HEADING_ANCHOR = re.compile(r"\s*\{#([\w:.-]{1,200})\}\s*$")
_REFERENCE = re.compile(r"(?<![\w\]\\])\[[^\[\]\n]{1,500}\]\[([^\[\]\n]{1,500})\]")


@dataclass(frozen=True, slots=True)
class MarkdownHeading:
    """A heading: its line (from 1), its level (from 1) and its text."""

    line: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class MarkdownLink:
    """A link or an image: its line (from 1) and its target, percent-encoded."""

    line: int
    target: str


@dataclass(slots=True)
class MarkdownText:
    """A parsed Markdown text.

    Attributes:
        prose: One string for each line of the text: its prose, with the rest blanked out or empty.
        headings: In order.
        links: Links, images and definitions of references, in order of the blocks that hold them.
        anchors: Valid targets of ``#…``: headings as GitHub and as MkDocs write them, and ids in tags.
        slugs: Number of headings for each slug; repeats get a number appended.
        undefined: Line and label of each reference that is not defined.
        open_fences: Line of each code fence that is never closed.
        has_title: Whether there is a level-1 heading, an ``h1`` tag or a title in the front matter.
    """

    prose: list[str]
    headings: list[MarkdownHeading] = field(default_factory=list)
    links: list[MarkdownLink] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    slugs: Counter[str] = field(default_factory=Counter)
    undefined: list[tuple[int, str]] = field(default_factory=list)
    open_fences: list[int] = field(default_factory=list)
    has_title: bool = False


def is_markdown(path: str) -> bool:
    """Return whether a file is Markdown, by its name."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def parse_markdown(text: str) -> MarkdownText:
    r"""Parse a Markdown text (CommonMark, with tables).

    Its line ends are ``\n``.

    Example:
        >>> parsed = parse_markdown("# Plan\n\nSee [the `api`](docs/api.md#use) now.\n")
        >>> parsed.prose
        ['# Plan`', '', 'See [the ``````````````````````) now.`', '']
        >>> parsed.links
        [MarkdownLink(line=3, target='docs/api.md#use')]
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415  (slow import: loaded with the first text)

    lines = text.split("\n")
    body, has_title = _without_front_matter(lines)
    parsed = MarkdownText(prose=[""] * len(lines), has_title=has_title)
    environment: dict[str, dict[str, dict[str, object]]] = {}
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(body), environment)
    references = environment.get("references", {})
    defined = {str(reference["href"]) for reference in references.values()}
    blocks: set[tuple[int, int]] = set()
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "inline" and token.map:
            start, end = token.map
            if (start, end) not in blocks:  # the cells of a table row share one
                blocks.add((start, end))
                _read_prose(body, start, end, parsed, frozenset(references))
            parsed.links += _links(token, body, defined)
            for child in token.children or []:
                if child.type == "html_inline":
                    parsed.anchors |= set(_HTML_ANCHOR.findall(child.content))
            if before is not None and before.type == "heading_open":
                _read_heading(before, token, parsed)
        elif token.type == "fence" and token.map:
            start, end = token.map
            last = body[end - 1].lstrip(" \t>").rstrip()
            closes = len(last) >= len(token.markup) and set(last) == {token.markup[0]}
            parsed.open_fences += [] if closes and end - 1 > start else [start + 1]
        elif token.type == "html_block":
            parsed.has_title |= "<h1" in token.content.lower()
            parsed.anchors |= set(_HTML_ANCHOR.findall(token.content))
    for reference in references.values():
        place = reference["map"]
        assert isinstance(place, list)
        parsed.links.append(MarkdownLink(place[0] + 1, str(reference["href"])))
    return parsed


def blot(block: str) -> str:
    """Blank out code, tags, addresses and link targets, keeping every line and column.

    >>> blot("Run `make it` at https://x.org/teh soon")
    'Run ````````` at ````````````````` soon'
    """
    return _NOT_PROSE.sub(lambda match: _blotted(match[0]), _blot_code(block))


def _blotted(text: str) -> str:
    return "\n".join(BLOT * len(line) for line in text.split("\n"))


def _blot_code(block: str) -> str:
    """Blank out code spans: a run of backticks up to the next run of the same length (CommonMark 6.1)."""
    runs = [match.span() for match in _TICKS.finditer(block)]
    by_length: dict[int, list[int]] = {}
    for start, end in reversed(runs):
        by_length.setdefault(end - start, []).append(start)
    parts: list[str] = []
    done = 0
    for start, end in runs:
        closers = by_length[end - start]
        while closers and closers[-1] <= max(start, done - 1):
            closers.pop()
        if start >= done and closers:
            stop = closers[-1] + end - start
            parts += [block[done:start], _blotted(block[start:stop])]
            done = stop
    return "".join([*parts, block[done:]])


def _without_front_matter(lines: list[str]) -> tuple[list[str], bool]:
    """Return the lines with a YAML front matter emptied, and whether it holds a title."""
    if lines[0].rstrip() == "---":
        for end in range(1, min(len(lines), FRONT_MATTER_LINES)):
            if lines[end].rstrip() in {"---", "..."}:
                has_title = any(line.startswith("title:") for line in lines[1:end])
                return [""] * (end + 1) + lines[end + 1 :], has_title
    return lines, False


def _read_prose(
    lines: list[str], start: int, end: int, parsed: MarkdownText, defined: frozenset[str]
) -> None:
    block = _blot_code("\n".join(lines[start:end]))
    for number, line in enumerate(block.split("\n"), start):
        for match in _REFERENCE.finditer(line):
            # markdown-it keeps labels case-folded and with single spaces, in upper case
            if " ".join(match[1].split()).lower().upper() not in defined:
                parsed.undefined.append((number + 1, match[1]))
    # The blot at the end keeps the last words of a heading or an item from joining the next block.
    parsed.prose[start:end] = (blot(block) + BLOT).split("\n")


def _links(token: "Token", lines: list[str], defined: set[str]) -> Iterator[MarkdownLink]:
    """Yield the links of a block with their lines; links through a reference are left to its definition.

    The line is found by counting line breaks. The parser does not report breaks inside a code span or a tag,
    so the next few lines are searched too.
    """
    assert token.map is not None
    at, end = token.map
    for child in token.children or []:
        if child.type in {"softbreak", "hardbreak"}:
            at = min(at + 1, end - 1)
        elif child.type in {"link_open", "image"}:
            target = str(child.attrs.get("href" if child.type == "link_open" else "src", ""))
            spellings = (f"]({target}", f"](<{target}", f"]({unquote(target)}", f"](<{unquote(target)}")
            near = range(at, min(at + NEAR_LINES, end))
            seen = next((n for n in near if any(it in lines[n][:NEAR_CHARS] for it in spellings)), None)
            if seen is not None or target not in defined:
                at = at if seen is None else seen
                yield MarkdownLink(at + 1, target)


def _read_heading(opening: "Token", token: "Token", parsed: MarkdownText) -> None:
    assert token.map is not None
    text = "".join(child.content for child in token.children or [] if child.type in {"text", "code_inline"})
    own = _HEADING_ANCHOR.search(text)
    if own:
        parsed.anchors.add(own[1])
        text = text[: own.start()]
    level = int(opening.tag[1:])
    parsed.has_title |= level == 1
    parsed.headings.append(MarkdownHeading(token.map[0] + 1, level, text.strip()))
    # As GitHub (github-slugger) and Python-Markdown's ``toc``, with non-ASCII letters kept
    github = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
    mkdocs = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())
    for slug in {github, mkdocs}:
        repeat = parsed.slugs[slug]
        parsed.slugs[slug] += 1
        parsed.anchors |= {f"{slug}-{repeat}", f"{slug}_{repeat}"} if repeat else {slug}
