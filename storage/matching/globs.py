"""Globs that come as data, as in ``.gitignore``: matched in time that grows with the length of the path."""

import re
import warnings
from collections.abc import Iterable
from typing import Any, cast

import re2
from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexMatchResult
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from agentx.storage.matching import translation
from agentx.storage.matching.matcher import Undecided

_DIRECTORY = "ps_d"
"""The group of pathspec that says that a directory above a file matched."""

_FEW_STARS = 2
_UNBOUNDED = re.compile(r"[+*]")


def spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return globs as one test of paths.

    Raises:
        Undecided: One of them cannot be read.

    >>> spec(["*.py", "!setup.py"]).match_file("a/setup.py")
    False
    """
    return GitIgnoreSpec([pattern(line) for line in lines], backend="simple")


def pattern(line: str) -> GitIgnoreSpecPattern:
    """Return one glob.

    Raises:
        Undecided: It cannot be read.
    """
    try:
        # A class like `[[:alpha:]]` causes a FutureWarning.
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            made = GitIgnoreSpecPattern(line)
            # Each star may multiply the time of Python's engine; of one or two it is the faster one.
            few = made.regex is None or len(_UNBOUNDED.findall(made.regex.pattern)) <= _FEW_STARS
            return made if few else _Linear(line)
    except (ValueError, re.error, RecursionError, translation.NotWritten) as error:
        raise Undecided(f"The glob {line[:80]!r} cannot be read.") from error


class Starred:
    """A path with stars: ``*`` matches within one name, ``**/`` any number of directories.

    Raises:
        Undecided: It has too many of them.

    >>> Starred("drafts/**/*.md").fullmatch("drafts/b/a.md")
    True
    """

    __slots__ = ("_whole",)

    def __init__(self, path: str) -> None:
        options = re2.Options()
        options.log_errors = False
        parts = re.split(r"(\*\*/|\*\*|\*)", path)
        stars = {"**/": b"(?:.*/)?", "**": b".*", "*": b"[^/]*"}
        text = b"".join(stars.get(part) or re2.escape(_bytes(part)) for part in parts)
        try:
            self._whole = re2.compile(text, options)
        except re2.error as error:
            raise Undecided(f"The path {path[:80]!r} has too many stars.") from error

    def fullmatch(self, path: str) -> bool:
        """Return whether it matches a whole path."""
        return self._whole.fullmatch(_bytes(path)) is not None


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


class _Linear(GitIgnoreSpecPattern):
    """A glob that RE2 matches."""

    __slots__ = ("_re2",)

    def __init__(self, line: str) -> None:
        super().__init__(line)
        assert self.regex is not None
        options = re2.Options()
        options.log_errors = False
        # Without lines, `$` also matches before a line break that ends the path.
        tree = translation.parsed(self.regex.pattern.replace("|$)", r"|\n?\Z)"), multiline=False)
        written = translation.written(tree, group=_DIRECTORY)
        try:
            self._re2 = re2.compile(written.encode(), options)
        except re2.error as error:
            raise ValueError(str(error)) from error

    def match_file(self, file: str) -> RegexMatchResult | None:
        found = self._re2.search(file.encode("utf-8", "replace"))
        return RegexMatchResult(cast("re.Match[str]", _Match(found))) if found else None


class _Match:
    """What pathspec asks of a match."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def groupdict(self) -> dict[str, Any]:
        return {_DIRECTORY: self._found[1] if self._found.re.groups else None}
