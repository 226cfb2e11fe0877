"""The cache of a workspace, ``.agentx/``: its contents can be deleted at any time and are rebuilt."""

import contextlib
from pathlib import Path

from agentx.storage.files import nofollow

CACHE = ".agentx"


def make_cache(root: Path) -> None:
    """Create the cache directory if possible.

    It ignores itself, so the workspace's ``.gitignore`` need not list it.
    """
    with contextlib.suppress(OSError):
        nofollow.make_directory(root / CACHE)
        ignore = root / CACHE / ".gitignore"
        with contextlib.suppress(FileNotFoundError):
            if nofollow.status(ignore).st_size:  # a process that died while writing left an empty file
                return
        nofollow.write(ignore, b"*\n")
