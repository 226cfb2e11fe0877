"""The content journal: makes new contents durable by one append, before Git's own files are.

An event names the contents that it wrote, so they must be on the disk before it. A blob of Git is a new file
in one of 256 directories, which takes two syncs: of the file and of its directory. So a write appends the
blob to one file, ``.git/agentx-contents``, and syncs that. Git's files are synced at the end of a turn; then
the journal is emptied. After a crash, the next open writes what it holds as blobs (:func:`write_back`).

A record is a magic number, the length and id of a blob, and the bytes of its loose object. The id proves it:
what a crash tore, or a full disk cut off, is skipped up to the next record. All of this runs under the
workspace's lock.
"""

import contextlib
import os
import struct
from collections.abc import Collection, Iterator
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, write_all
from agentx.storage.git import objects

NAME = "agentx-contents"

LARGEST_BYTES = 256 * 1024
"""A blob whose loose object is larger is synced as a file at once, so that the journal stays small."""

FULL_BYTES = 16 << 20
"""Once it is as long, blobs are synced as files until it is emptied."""

_MAGIC = b"\xa9AxC"
_HEADER = struct.Struct(">4sI20s")


class ContentJournal:
    """The journal of one repository.

    Args:
        git_dir: The ``.git`` directory.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._path = git_dir / NAME
        self._fd = -1
        self._dirty = False

    def add(self, oid: str, stream: bytes) -> None:
        """Append a blob, given as the bytes of its loose object; it is durable after :meth:`sync`.

        Raises:
            OSError: It could not be written.
        """
        fd = self._open()
        before = os.lseek(fd, 0, os.SEEK_END)
        self._dirty = True
        try:
            write_all(fd, _HEADER.pack(_MAGIC, len(stream), bytes.fromhex(oid)) + stream)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, before)
            raise

    def sync(self) -> None:
        """Make durable what was added.

        Raises:
            OSError: The disk refuses.
        """
        if self._dirty:
            os.fdatasync(self._fd)
            self._dirty = False

    @property
    def full(self) -> bool:
        """Whether nothing should be added before it is emptied."""
        return self._fd >= 0 and os.fstat(self._fd).st_size > FULL_BYTES

    def empty(self, synced: Collection[str]) -> None:
        """Make each blob in the journal durable in Git's own files, then remove all from the journal.

        Args:
            synced: Blobs that are durable there already.

        Raises:
            OSError: The disk refuses; the journal is kept.
        """
        content = _read(self._path)
        if not content:
            return
        for oid, blob in _records(content, synced):
            if oid not in synced:  # of another process, which may not have synced it
                objects.write_blob(self._git_dir, blob)
        fd = self._open()
        os.ftruncate(fd, 0)
        os.fdatasync(fd)  # a purge relies on it

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> int:
        if self._fd >= 0 and os.fstat(self._fd).st_nlink:
            return self._fd
        self.close()
        flags = os.O_RDWR | os.O_APPEND
        try:
            self._fd = nofollow.open_descriptor(self._path, flags)
        except FileNotFoundError:
            self._fd = nofollow.open_descriptor(self._path, flags | os.O_CREAT)
            sync_directory(self._git_dir)
        return self._fd


def is_used(git_dir: Path) -> bool:
    """Return whether the journal holds anything."""
    try:
        return nofollow.status(git_dir / NAME).st_size > 0
    except OSError:
        return False


def write_back(git_dir: Path) -> None:
    """Write what the journal holds as blobs, after a crash. An intact blob is synced and kept.

    Raises:
        OSError: The disk refuses.
    """
    for _, blob in _records(_read(git_dir / NAME)):
        objects.write_blob(git_dir, blob)


def _read(path: Path) -> bytes:
    try:
        return nofollow.read(path)
    except FileNotFoundError:
        return b""


def _records(content: bytes, known: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield id and content of each intact blob; for the ids in ``known``, the content is empty."""
    at = content.find(_MAGIC)
    while 0 <= at <= len(content) - _HEADER.size:
        _, length, raw = _HEADER.unpack_from(content, at)
        oid, start = raw.hex(), at + _HEADER.size
        end = start + length
        if oid in known and (end == len(content) or content.startswith(_MAGIC, end)):
            found: bytes | None = b""
        else:
            found = objects.blob_of(oid, content[start:end])
        if found is not None:
            yield oid, found
        # What a crash tore leads to no record: then the next one is anywhere behind its beginning.
        at = content.find(_MAGIC, at + 1 if found is None else end)
