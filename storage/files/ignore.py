"""Ignored files as Git defines them: the ``.gitignore`` files of a tree, each for the files below it."""

from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from agentx.storage.files import nofollow
from agentx.storage.files.paths import MAX_PATH_BYTES
from agentx.storage.matching import globs
from agentx.storage.matching.matcher import Undecided

_MAX_STARS = 3


class IgnoreRules:
    """The ``.gitignore`` files of a tree, read on demand.

    Args:
        root: Top of the tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec] = {}

    def ignores(self, path: str, *, directory: bool = False) -> bool:
        """Return whether a path below the root is ignored; the deepest matching ``.gitignore`` decides.

        Parent directories are not checked: a walk of the tree does not enter an ignored directory.
        """
        parts = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split("/")
        for depth in range(len(parts) - 1, -1, -1):
            spec = self._spec("/".join(parts[:depth]))
            below = "/".join(parts[depth:]) + ("/" if directory else "")
            verdict = spec.check_file(below).include
            if verdict is not None:
                return verdict
        return False

    def _spec(self, folder: str) -> GitIgnoreSpec:
        if folder not in self._specs:
            lines = _lines(self._root / folder / ".gitignore")
            patterns = [pattern for line in lines for pattern in _patterns(line)]
            # Set explicitly: the default depends on the installed packages, and re2 raises other errors.
            self._specs[folder] = GitIgnoreSpec(patterns, backend="simple")
        return self._specs[folder]


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; none if it is missing, a link (as in Git), or not a regular file."""
    try:
        return [line.removesuffix("\r") for line in nofollow.read_text(path, "replace").split("\n")]
    except OSError:
        return []


def _patterns(line: str) -> list[GitIgnoreSpecPattern]:
    """Parse a line as a pattern; an invalid one (a lone ``!``, an impossible range) is skipped, as in Git.

    So is one with many stars in a name: each of them multiplies the time that a hostile file name costs.
    """
    if len(line) > MAX_PATH_BYTES or any(name.count("*") > _MAX_STARS for name in line.split("/")):
        return []
    try:
        return [globs.pattern(line)]
    except Undecided:
        return []
