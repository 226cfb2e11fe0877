"""Which files of a tree Git would ignore: the ``.gitignore`` files in it, each for what lies below it."""

import re
import warnings
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from agentx.storage.files import nofollow
from agentx.storage.files.paths import MAX_PATH_BYTES

_MAX_STARS = 3


class IgnoreRules:
    """The ``.gitignore`` files of a tree, read as they are needed.

    Args:
        root: Top of the tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec] = {}

    def ignores(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path below the root is ignored; the deepest ``.gitignore`` that speaks of it decides.

        Directories above it are not looked at: whoever walks the tree does not enter an ignored directory.
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
            # The default depends on what else is installed, and re2 raises errors of its own.
            self._specs[folder] = GitIgnoreSpec(patterns, backend="simple")
        return self._specs[folder]


def _lines(path: Path) -> list[str]:
    """The lines of a file; none where it is missing, a link (as with Git), or not a regular file."""
    try:
        return [line.removesuffix("\r") for line in nofollow.read_text(path, "replace").split("\n")]
    except OSError:
        return []


def _patterns(line: str) -> list[GitIgnoreSpecPattern]:
    """A line as a pattern; one that is none (a lone ``!``, an impossible range) is passed over, as Git does.

    So is one with many stars in a name: each multiplies the time that a hostile file name costs.
    """
    if len(line) > MAX_PATH_BYTES or any(name.count("*") > _MAX_STARS for name in line.split("/")):
        return []
    try:
        # Classes like `[[:alpha:]]` are warned of.
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            return [GitIgnoreSpecPattern(line)]
    except (ValueError, re.error):
        return []
