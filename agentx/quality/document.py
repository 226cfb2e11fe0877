"""Check a document: spelling, usage, links, headings, code fences and to-do markers."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec

from agentx.quality.markdown_lines import MarkdownText, blot, is_markdown, parse_markdown
from agentx.quality.typos import SpellingUnavailable, misspellings
from agentx.quality.usage import usage_mistakes
from agentx.storage.extras import QUALITY
from agentx.storage.text import encodable
from agentx.synthesis.checks.check_report import printable

MAX_CHARS = 500_000
"""Only this many characters of a document are checked."""
MAX_FINDINGS = 500
MAX_SHOWN = 200
"""Characters of a word, heading or target that a message quotes."""

_TO_DO = re.compile(r"\b(?:TODO|FIXME|XXX|TBD)\b")
_HOST = re.compile(r"[\w.:-]+")

Problem = tuple[int, str, str]
"""Line number (from 1), rule, message."""


class DocumentFinding(msgspec.Struct, frozen=True):
    """One problem in a document; as text ``path:line: message [rule]``.

    Attributes:
        path: The document.
        line: Line number, from 1.
        rule: ``spelling``, ``usage``, ``link``, ``heading``, ``fence`` or ``todo``.
        message: The problem, on one line.
    """

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        """Return the finding in the usual format of linters."""
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


class DocumentReport(msgspec.Struct, frozen=True):
    """The problems in a document.

    Attributes:
        path: The document.
        findings: By line; 500 at most.
        omitted: Number of further findings.
        notes: What was not checked, and why.
    """

    path: str
    findings: tuple[DocumentFinding, ...]
    omitted: int = 0
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The report for a person or an agent: one finding a line, then the number omitted and the notes."""
        more = [f"... and {self.omitted} more"] if self.omitted else []
        return "\n".join([*map(str, self.findings), *more, *self.notes])


def check_document(
    path: str,
    text: str,
    *,
    language: str = "en",
    extra_words: Sequence[str] = (),
    exists: Callable[[str], bool],
    read: Callable[[str], str | None] | None = None,
) -> DocumentReport:
    r"""Check prose: spelling (typos), usage (proselint), and in Markdown also links, headings and fences.

    Code, addresses and tags do not count as prose. Nothing is fetched: external addresses are only checked
    for their form. Spelling and usage are checked in English only.

    Args:
        path: Path of the document, relative to the tree; the suffix distinguishes Markdown from plain text.
        text: The document.
        language: ``en`` (either spelling), ``en-GB`` or ``en-US``; any other skips spelling and usage.
        extra_words: Further words to accept.
        exists: Returns whether a file or directory exists at a path relative to the tree.
        read: Returns the text of another document of the tree, to check anchors in it. Without it, anchors in
            other documents pass.

    Example:
        >>> text = "# Plan\n\nWe recieved [it](gone.md).\n"
        >>> report = check_document("a.md", text, exists=lambda path: False)
        >>> print(report.text)
        a.md:3: the link leads to gone.md, which does not exist [link]
        a.md:3: 'recieved' is misspelt: received [spelling]
    """
    notes = []
    if len(text) > MAX_CHARS:
        notes.append(f"only the first {MAX_CHARS} characters of {path} were checked")
        text = text[:MAX_CHARS]
    text = encodable(text).replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")
    problems: list[Problem] = []
    if is_markdown(path):
        parsed = parse_markdown(text)
        prose = parsed.prose
        problems += [*_headings(parsed), *_links(path, parsed, exists, read)]
        problems += [(line, "fence", "the code fence is never closed") for line in parsed.open_fences]
    else:
        prose = blot(text).split("\n")
    problems += [
        (n, "todo", f"left to do: {_short(line)}") for n, line in enumerate(prose, 1) if _TO_DO.search(line)
    ]
    if language.replace("_", "-").partition("-")[0] != "en":
        notes.append(f"spelling and usage are checked in English only, not in {language}")
    elif QUALITY.missing():
        notes.append(f"spelling and usage were not checked. {QUALITY.why_missing()}")
    else:
        known = frozenset(word.lower() for word in extra_words)
        try:
            problems += [
                (line, "spelling", f"{_short(word)!r} is misspelt: {correction}")
                for line, word, correction in misspellings(
                    prose, language=language.replace("_", "-"), known=known
                )
            ]
        except SpellingUnavailable as error:
            notes.append(f"spelling was not checked. {error}")
        problems += [(line, "usage", _short(message)) for line, message in usage_mistakes(prose)]
    found = [DocumentFinding(path, *problem) for problem in sorted(dict.fromkeys(problems))]
    return DocumentReport(path, tuple(found[:MAX_FINDINGS]), max(0, len(found) - MAX_FINDINGS), tuple(notes))


def _headings(parsed: MarkdownText) -> Iterator[Problem]:
    if not parsed.has_title and any(line.strip() for line in parsed.prose):
        yield 1, "heading", "the document has no title (no heading of level 1)"
    seen: set[tuple[str, ...]] = set()
    above: list[str] = []
    before = 0
    for heading in parsed.headings:
        if not heading.text:
            yield heading.line, "heading", "the heading is empty"
        if before and heading.level > before + 1:
            yield heading.line, "heading", f"the heading's level jumps from {before} to {heading.level}"
        before = heading.level
        missing = [""] * (heading.level - 1 - len(above))
        above = [*above[: heading.level - 1], *missing, heading.text.casefold()]
        if heading.text and tuple(above) in seen:
            yield heading.line, "heading", f"the heading {_short(heading.text)!r} occurs twice in its section"
        seen.add(tuple(above))


def _links(
    path: str, parsed: MarkdownText, exists: Callable[[str], bool], read: Callable[[str], str | None] | None
) -> Iterator[Problem]:
    anchors: dict[str, set[str] | None] = {"": parsed.anchors}

    def anchors_of(target: str) -> set[str] | None:
        if target not in anchors:
            other = read(target) if read and is_markdown(target) else None
            anchors[target] = None if other is None else parse_markdown(other[:MAX_CHARS]).anchors
        return anchors[target]

    for line, label in parsed.undefined:
        yield line, "link", f"the reference [{_short(label)}] is not defined"
    for link in parsed.links:
        problem = _link_problem(path, link.target, exists, anchors_of)
        if problem:
            yield link.line, "link", problem


def _link_problem(
    path: str, target: str, exists: Callable[[str], bool], anchors_of: Callable[[str], set[str] | None]
) -> str | None:
    """Return what is wrong with a link target, or None."""
    try:
        parts = urlsplit(target)
        host = parts.hostname
    except ValueError:
        return f"{_short(target)} is not a well-formed address"
    if not target:
        return "the link leads nowhere"
    if parts.scheme or target.startswith("//"):
        if parts.scheme not in {"http", "https", "ftp", ""}:
            return None
        if not host:
            return f"{_short(target)} is an address without a host"
        return None if _HOST.fullmatch(host) else f"{_short(target)} is not a well-formed address"
    place = _resolve(path, unquote(parts.path)) if parts.path else ""
    if place is None:
        return f"the link leads out of the tree: {_short(target)}"
    if parts.path and not exists(place):
        return f"the link leads to {_short(place)}, which does not exist"
    known = anchors_of(place)
    anchor = unquote(parts.fragment)
    if known is None or not anchor or anchor in known or anchor.lower() in known or anchor == "top":
        return None
    where = _short(place) if place else "this document"
    return f"{where} has no heading or anchor {_short('#' + anchor)}"


def _resolve(path: str, target: str) -> str | None:
    """Resolve a relative link within the tree: ``.`` for its root, None if it leads outside."""
    parts = [] if target.startswith("/") else list(PurePosixPath(path).parent.parts)
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts) or "."


def _short(text: str) -> str:
    return printable(text, MAX_SHOWN)
