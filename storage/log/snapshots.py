"""Snapshots: state folded from the log up to one event, so that opening reads only the events after it.

A snapshot is a cache. It is written atomically and not synced, carries a checksum, and is used only if the
log still holds the event that it was taken after. A snapshot with any problem is ignored.

A file is one line of JSON, the label, and then the content.
"""

import contextlib
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_temporary
from agentx.storage.log.history import History, Position

KEPT = 2
"""Number of snapshots kept.

The second one is for when the log was set back to before the newest, or the newest is torn.
"""

_SUFFIX = ".snapshot"

_Content = TypeVar("_Content")


class _Label(msgspec.Struct, frozen=True):
    version: str
    position: Position
    checksum: str
    segments: str = ""


class Snapshots:
    """The snapshots of one workspace.

    Args:
        folder: Their folder; created with the first.
        history: The log that they are checked against.
        version: Identifies what the content depends on besides the events: the fold, the set of event types.
            A snapshot of another version is ignored.
        sealed: Also ignore a snapshot if a sealed segment before it changed since: the segment may be
            damaged, and only reading it shows that.
    """

    def __init__(self, folder: Path, history: History, version: str, *, sealed: bool = False) -> None:
        self._folder = folder
        self._history = history
        self._version = version
        self._sealed = sealed

    def load(self, decode: Callable[[bytes], _Content]) -> tuple[_Content, Position] | None:
        """Load the newest usable snapshot.

        Args:
            decode: Converts its bytes to the content; a snapshot for which it raises a ``ValueError`` is
                ignored.

        Returns:
            The content, and the position from which :meth:`agentx.storage.log.history.History.read`
            continues; ``None`` without a usable snapshot.
        """
        for path in self._newest_first():
            with contextlib.suppress(OSError, ValueError, RecursionError):
                head, _, content = nofollow.read(path).partition(b"\n")
                label = msgspec.json.decode(head, type=_Label)
                if (
                    label.version == self._version
                    and label.checksum == _checksum(content)
                    and label.segments == self._segments(label.position)
                    and self._history.holds(label.position)
                ):
                    return decode(content), label.position
        return None

    def save(self, seq: int, own_hash: str, content: bytes) -> bool:
        """Save the state folded up to an event.

        Args:
            seq: The event.
            own_hash: Its hash.
            content: The folded state. If damage was found while folding, save nothing: it would not be
                reported again.

        Returns:
            Whether it was saved. A full disk or missing rights raise no error, because it is a cache.
        """
        position = self._history.locate(seq, own_hash)
        if position is None:
            return False
        segments = self._segments(position)
        label = msgspec.json.encode(_Label(self._version, position, _checksum(content), segments))
        try:
            nofollow.make_directory(self._folder, parents=True)
            temporary = write_temporary(self._folder, label + b"\n" + content, 0o600, sync=False)
            nofollow.replace(temporary, self._folder / f"{seq:012}-{own_hash[:16]}{_SUFFIX}")
            kept = self._newest_first()[:KEPT]
            for path in nofollow.listed(self._folder):  # also removes temporary files left by a crash
                if path not in kept:
                    nofollow.remove(path, missing_ok=True)
        except OSError:
            return False
        return True

    def clear(self) -> None:
        """Delete all snapshots."""
        for path in self._newest_first():
            nofollow.remove(path, missing_ok=True)

    def _segments(self, position: Position) -> str:
        return self._history.stamp(position.segment) if self._sealed else ""

    def _newest_first(self) -> list[Path]:
        """Return the snapshots by time of writing; if the log was set back, newer ones have lower events."""
        found = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            nofollow.entries(self._folder) as entries,
        ):
            for entry in entries:
                if entry.name.endswith(_SUFFIX):
                    with contextlib.suppress(FileNotFoundError):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
        return [self._folder / name for _, name in sorted(found, reverse=True)]


def _checksum(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
