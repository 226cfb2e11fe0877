"""Checks of content: the header, sections and patterns that a file must have."""

import posixpath
import re
from collections.abc import Iterator

from agentx.storage.matching import matcher
from agentx.synthesis.enforcement.breaches import Breach, CheckedChange, undecided
from agentx.synthesis.memory.checks import ContentCheck

_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}|=+)\s+(.+?)\s*#*\s*$|^(\S[^\n]*)\n(?:=|-|~){3,}\s*$", re.MULTILINE)
"""Headings of Markdown, AsciiDoc and reStructuredText."""

_MARKS = re.compile(r"^\s*(?:<!--|/\*+|\*+/?|//+|#+|--+|;+|%+|\"{3}|'{3})?\s*|\s*(?:-->|\*/|\"{3}|'{3})?\s*$")
"""Comment marks at both ends of a line."""

_YEAR = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:\s*[-–]\s*(?:19|20)\d\d)?(?!\d)|\bYYYY\b|[{<]year[}>]", re.IGNORECASE
)
_FIRST = re.compile(r"#!.*\n|<\?(?:php|xml)\b[^\n]*\n|# -\*- coding[^\n]*\n|\ufeff")
"""Lines that have to come before a header."""

_COMMENTS: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys((".py", ".rb", ".sh", ".yml", ".yaml", ".toml", ".r", ".pl", ".tf"), ("", "# ", "")),
    **dict.fromkeys((".js", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".c"), ("", "// ", "")),
    **dict.fromkeys((".cpp", ".h", ".hpp", ".cs", ".swift", ".scala", ".php", ".dart"), ("", "// ", "")),
    **dict.fromkeys((".html", ".htm", ".xml", ".svg", ".vue"), ("<!--\n", "", "\n-->")),
    **dict.fromkeys((".css", ".scss", ".less"), ("/*\n", "", "\n*/")),
    **dict.fromkeys((".sql", ".lua", ".hs", ".ada"), ("", "-- ", "")),
}
"""By suffix, what is written before all lines of a comment, before each, and after all."""

_HEADER_LINES = 12


def missing_contents(check: ContentCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each part that is missing, and that the file had before, if it existed."""
    if change.after is None or not change.after.strip():
        return
    before = change.before
    had_header = before is None or _has_header(check.header, before)
    if check.header and had_header and not _has_header(check.header, change.after):
        first = check.header.strip().splitlines()[0]
        correction = with_header(check.header, change.path, change.after)
        yield Breach(reason=f"{change.path} does not begin with “{first}”.", line=1, correction=correction)
    for section in check.sections:
        wanted = _plain(section)
        if wanted not in _headings(change.after) and (before is None or wanted in _headings(before)):
            yield Breach(reason=f"{change.path} has no section “{section.lstrip('# ')}”.")
    for pattern in check.patterns:
        try:
            gone = not _has(pattern, change.after) and (before is None or _has(pattern, before))
        except matcher.Undecided as why:
            yield undecided(why, change.path)
            continue
        if gone:
            yield Breach(reason=f"{change.path} has nothing that matches `{pattern}`.")


def with_header(header: str, path: str, text: str) -> str:
    r"""Return a text with the header at its beginning, as a comment of its language if that is known.

    >>> with_header("Copyright ACME", "a.py", "#!/bin/python\nx = 1\n")
    '#!/bin/python\n# Copyright ACME\n\nx = 1\n'
    """
    form = _COMMENTS.get(posixpath.splitext(path)[1].casefold())
    block = header.strip("\n")
    if form and _bare(block.splitlines()[0]) == block.splitlines()[0].strip():  # not a comment yet
        opens, mark, closes = form
        block = opens + "\n".join(f"{mark}{line}".rstrip() for line in block.splitlines()) + closes
    first = 0
    while match := _FIRST.match(text, first):
        first = match.end()
    return f"{text[:first]}{block}\n\n{text[first:].lstrip(chr(10))}"


def _has_header(header: str, text: str) -> bool:
    """Return whether a text begins with a header; comment marks, spaces and years make no difference."""
    wanted = _joined(header)
    start = "\n".join(text.splitlines()[: _HEADER_LINES + len(header.splitlines())])
    return wanted in _joined(start)


def _joined(text: str) -> str:
    lines = (_bare(line) for line in text.splitlines())
    return _YEAR.sub("YYYY", " ".join(" ".join(lines).split())).casefold()


def _bare(line: str) -> str:
    return _MARKS.sub("", line)


def _headings(text: str) -> set[str]:
    return {_plain(match[1] or match[2]) for match in _HEADING.finditer(text)}


def _plain(heading: str) -> str:
    words = re.findall(r"\w+", heading.casefold())
    return " ".join(words[1:] if words[:1] and words[0].isdigit() else words)


def _has(pattern: str, text: str) -> bool:
    return bool(matcher.lines(pattern, text, multiline=True))
