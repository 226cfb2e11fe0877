"""The cache of a workspace, ``.agentx/``: whatever lies there can be deleted at any time and is made again."""

import contextlib
from pathlib import Path

CACHE = ".agentx"


def make_cache(root: Path) -> None:
    """Make the directory, where it can be made. It ignores itself, so that no ``.gitignore`` of the workspace need name it."""
    with contextlib.suppress(OSError):
        (root / CACHE).mkdir(exist_ok=True)
        ignore = root / CACHE / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
