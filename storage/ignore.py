"""Which files of a tree Git would ignore: the ``.gitignore`` files in it, each for what lies below it."""

from pathlib import Path

from pathspec import GitIgnoreSpec


class IgnoreRules:
    """The ``.gitignore`` files of a tree, read as they are needed.

    Args:
        root: Top of the tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec | None] = {}

    def ignores(self, path: str, *, directory: bool = False) -> bool:
        """Whether a path below the root is ignored; the deepest ``.gitignore`` that speaks of it decides.

        Directories above it are not looked at: whoever walks the tree does not enter an ignored directory.
        """
        parts = path.split("/")
        for depth in range(len(parts) - 1, -1, -1):
            spec = self._spec("/".join(parts[:depth]))
            if spec is None:
                continue
            below = "/".join(parts[depth:]) + ("/" if directory else "")
            verdict = spec.check_file(below).include
            if verdict is not None:
                return verdict
        return False

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            try:
                lines = (self._root / folder / ".gitignore").read_text("utf-8", "replace").splitlines()
            except OSError:
                self._specs[folder] = None
            else:
                self._specs[folder] = GitIgnoreSpec.from_lines(lines) if lines else None
        return self._specs[folder]
