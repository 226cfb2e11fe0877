"""The content journal: makes new contents durable by one append, before Git's own files are.

An event names the contents that it wrote, so they must be on the disk before it. A blob of Git is a new file
in one of 256 directories, which takes two syncs: of the file and of its directory. So a write appends the
blob to one file, ``.git/agentx-contents``, and syncs that. Git's files are synced at the end of a turn; then
the journal is emptied. After a crash, the next open writes what it holds as blobs (:func:`write_back`).

A record is a magic number, the length of a blob when compressed, its length and id, and its compressed
content. The id proves it: what a crash tore, or a full disk cut off, is skipped up to the next record. All of
this runs under the workspace's lock.
"""

import contextlib
import os
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, write_all
from agentx.storage.git import objects

NAME = "agentx-contents"

LARGEST_BYTES = 256 * 1024
"""A larger content is synced as a file at once, so that the journal stays small."""

FULL_BYTES = 16 << 20
"""Once it is as long, blobs are synced as files until it is emptied."""

SHARED_BYTES = 256 << 10
"""While several processes write, the journal is emptied only once it is as long."""

_MAGIC = b"\xa9AxC"
_HEADER = struct.Struct(">4sII20s")


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

    def add(self, oid: str, size: int, packed: bytes) -> None:
        """Append a blob; it is durable after :meth:`sync`.

        Args:
            oid: Its id, in hex.
            size: Its length in bytes.
            packed: Its compressed content.

        Raises:
            OSError: It could not be written.
        """
        fd = self._open()
        before = os.lseek(fd, 0, os.SEEK_END)
        self._dirty = True
        try:
            write_all(fd, _HEADER.pack(_MAGIC, len(packed), size, bytes.fromhex(oid)) + packed)
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

        While other processes add to it, too, that is left until there are many.

        Args:
            synced: Blobs that are durable there already.

        Raises:
            OSError: The disk refuses; the journal is kept.
        """
        content = _read(self._path)
        if not content:
            return
        others = {oid: blob for oid, blob in _records(content, synced) if oid not in synced}
        if others and len(content) < SHARED_BYTES:
            return
        _write(self._git_dir, others)
        clear(self._git_dir)

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


def clear(git_dir: Path) -> None:
    """Remove everything from the journal, durably: a purge relies on it.

    Raises:
        OSError: The disk refuses.
    """
    fd = nofollow.open_descriptor(git_dir / NAME, os.O_WRONLY)
    try:
        os.ftruncate(fd, 0)
        os.fdatasync(fd)
    finally:
        os.close(fd)


def write_back(git_dir: Path, only: Collection[str] | None = None) -> None:
    """Write what the journal holds as blobs, after a crash. An intact blob is synced and kept.

    Args:
        git_dir: The ``.git`` directory.
        only: The ids of the blobs that are lacking; all by default.

    Raises:
        OSError: The disk refuses.
    """
    found = _records(_read(git_dir / NAME))
    _write(git_dir, {oid: blob for oid, blob in found if only is None or oid in only})


def _write(git_dir: Path, blobs: Mapping[str, bytes]) -> None:
    """Write blobs durably; those that are there are synced."""
    for blob in blobs.values():
        objects.write_unsynced(git_dir, "blob", blob)
    objects.sync_loose(git_dir, blobs)


def _read(path: Path) -> bytes:
    try:
        return nofollow.read(path)
    except FileNotFoundError:
        return b""


def _records(content: bytes, known: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield id and content of each intact blob; for the ids in ``known``, the content is empty."""
    at = content.find(_MAGIC)
    while 0 <= at <= len(content) - _HEADER.size:
        _, length, size, raw = _HEADER.unpack_from(content, at)
        oid, start = raw.hex(), at + _HEADER.size
        end = start + length
        if oid in known and (end == len(content) or content.startswith(_MAGIC, end)):
            found: bytes | None = b""
        else:
            found = objects.blob_of(oid, size, content[start:end])
        if found is not None:
            yield oid, found
        # What a crash tore leads to no record: then the next one is anywhere behind its beginning.
        at = content.find(_MAGIC, at + 1 if found is None else end)
