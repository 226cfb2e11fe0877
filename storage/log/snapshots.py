"""Snapshots: what was folded from the log up to one event, so that opening costs the tail and not the history.

A snapshot is a cache. It is written atomically and not synced, carries a checksum, and is used only where the log still
holds the event that it was taken behind; anything wrong with one means that it is passed over.

A file is one line of JSON, the label, and then the content.
"""

import contextlib
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.log.history import History, Position

KEPT = 2
"""So many are kept: a second one in case that the log was set back behind the newest, or that it is torn."""

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
        folder: Where they lie; made with the first.
        history: The log that they are checked against.
        version: Of everything that the content depends on but the events: the fold, the set of event types. A snapshot
            of another version is passed over.
        sealed: Also pass over one if a sealed segment before it was touched since: it may be damaged, and only
            reading it shows that.
    """

    def __init__(self, folder: Path, history: History, version: str, *, sealed: bool = False) -> None:
        self._folder = folder
        self._history = history
        self._version = version
        self._sealed = sealed

    def load(self, decode: Callable[[bytes], _Content]) -> tuple[_Content, Position] | None:
        """The newest that can be used, with the position that :meth:`agentx.storage.log.history.History.read` goes on from.

        Args:
            decode: Makes the content from its bytes; a snapshot for which it raises a ``ValueError`` is passed over.
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
        """Keep what was folded up to an event.

        Args:
            seq: The event.
            own_hash: Its hash.
            content: What was folded. Where damage was found on the way, save nothing: it would not be told again.

        Returns:
            Whether it is kept now; a full disk or missing rights are no error, for it is a cache.
        """
        position = self._history.locate(seq, own_hash)
        if position is None:
            return False
        segments = self._segments(position)
        label = msgspec.json.encode(_Label(self._version, position, _checksum(content), segments))
        try:
            self._write(f"{seq:012}-{own_hash[:16]}{_SUFFIX}", label + b"\n" + content)
        except OSError:
            return False
        return True

    def clear(self) -> None:
        """Delete them all."""
        for path in self._newest_first():
            nofollow.remove(path, missing_ok=True)

    def _write(self, name: str, content: bytes) -> None:
        nofollow.make_directory(self._folder, parents=True)
        fd, temporary = nofollow.temporary(self._folder, TEMPORARY_PREFIX)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
            nofollow.replace(temporary, self._folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                nofollow.remove(temporary)
            raise
        kept = self._newest_first()[:KEPT]
        for path in nofollow.listed(self._folder):  # and what a crash left of a temporary file
            if path not in kept:
                nofollow.remove(path, missing_ok=True)

    def _segments(self, position: Position) -> str:
        return self._history.stamp(position.segment) if self._sealed else ""

    def _newest_first(self) -> list[Path]:
        """By the time of writing, for a log that was set back has new snapshots of lower events."""
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
