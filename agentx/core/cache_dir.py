"""The cache of a workspace, ``.agentx/``: whatever lies there can be deleted at any time and is made again."""

import contextlib
from pathlib import Path

from agentx.storage.files import nofollow

CACHE = ".agentx"


def make_cache(root: Path) -> None:
    """Make the directory, where it can be made. It ignores itself, so that no ``.gitignore`` of the workspace need name it."""
    with contextlib.suppress(OSError):
        nofollow.make_directory(root / CACHE)
        ignore = root / CACHE / ".gitignore"
        with contextlib.suppress(FileNotFoundError):
            if nofollow.status(ignore).st_size:  # a process that died while it wrote left an empty one
                return
        nofollow.write(ignore, b"*\n")
