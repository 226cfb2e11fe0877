"""Whether anybody changed the repository beside the engine, answered from a few file stamps."""

import os
import time
from pathlib import Path

_WATCHED = ("", "HEAD", "refs/heads", "refs/heads/main", "objects/pack")
"""A file that is renamed into a directory, or removed from it, changes the time of the directory."""

_SETTLED_NS = 50_000_000
"""A file that was changed less than this before it was looked at may change again without a new time."""

_Stamp = tuple[tuple[int, int, int, int], ...]


class RepositoryStamp:
    """Remembers how the repository was when it was last looked at in full.

    Args:
        git_dir: The repository.
    """

    def __init__(self, git_dir: Path) -> None:
        self._names = [str(git_dir / name) for name in _WATCHED]
        self._seen: _Stamp = ()
        self._next: _Stamp = ()

    def unchanged(self) -> bool:
        """Return whether nothing was switched, moved, packed or begun since the last :meth:`note`."""
        try:
            stamp = tuple(map(_identity, self._names))
        except OSError:
            stamp = ()
        self._next = stamp
        return bool(stamp) and stamp == self._seen

    def note(self) -> None:
        """Everything is as it was at the last question; a later question compares with that."""
        newest = max((changed for *_, changed in self._next), default=0)
        self._seen = self._next if time.time_ns() - newest > _SETTLED_NS else ()


def _identity(name: str) -> tuple[int, int, int, int]:
    info = os.stat(name)
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns
