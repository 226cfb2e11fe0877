"""Write Git objects durably, and check them before use.

libgit2 does not sync objects. It also does not notice a truncated one: reading it loops for ever, and writing
the same content again does not repair it. So blobs are written here. A loose object is a zlib stream of
``type size NUL content``, stored under the SHA-1 of that in ``objects/ab/cdef…``.
"""

import contextlib
import hashlib
import io
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import IO

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import make_directory, sync_directory, sync_file, write_all

_COMPRESSION = 1
"""zlib level: 6 doubles the time and saves a tenth; packing compresses again."""


_TEMPORARY = "tmp_obj_"
"""Git's own prefix for such files, so that it prunes them."""


LARGEST = {"commit": 4 << 20, "tag": 4 << 20, "tree": 64 << 20, "blob": 256 << 20}
"""Limit for the inflated size of each kind of object: zlib packs a gigabyte of zeros into a megabyte."""

_HEADER = re.compile(rb"(commit|tree|blob|tag) (0|[1-9][0-9]{0,15})")
_HEADER_BYTES = 32
_PART_BYTES = 1 << 18


_REPAIR = "; `agentx repair` may restore it."
"""What to do, the end of a message about one object."""


class ObjectDamaged(AgentXError):
    """A Git object is truncated, or its content does not match its name."""


class ObjectTooLarge(ObjectDamaged):
    """A Git object declares a size over the limit for its kind; it is not inflated."""


def require_size(oid: str, kind: str, size: int) -> None:
    """Check a size against the limit for a kind of object.

    Raises:
        ObjectTooLarge: It is over the limit.
    """
    if size > LARGEST[kind]:
        raise ObjectTooLarge(
            f"The Git object {oid} is a {kind} of {size:,} bytes, over the limit of {LARGEST[kind]:,}, "
            "so it is not read."
        )


def inflate(stream: "zlib._Decompress", size: int, more: Callable[[], bytes]) -> bytes | None:
    """Inflate exactly ``size`` bytes; ``None`` if the stream holds fewer or more.

    Memory is bounded by ``size``, whatever the stream contains.

    Args:
        stream: A decompressor; its unconsumed input is used first.
        size: The declared size.
        more: Returns further compressed bytes; empty at the end.

    Raises:
        zlib.error: The stream is invalid.
    """
    out, left = io.BytesIO(), size
    while left >= 0 and not stream.eof:
        given = stream.unconsumed_tail or more()
        part = stream.decompress(given, min(left + 1, _PART_BYTES))
        if not given and not part:
            return None
        left -= len(part)
        out.write(part)
    return out.getvalue() if left == 0 else None


def blob_id(content: bytes) -> str:
    """Return Git's id of a content, in hex.

    >>> blob_id(b"")
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def loose_path(git_dir: Path, oid: str) -> Path:
    """Return the path of a loose object."""
    return Path(f"{git_dir}/objects/{oid[:2]}/{oid[2:]}")


def read_loose(path: Path, oid: str, kinds: Collection[str] = LARGEST.keys()) -> tuple[str, bytes] | None:
    """Read a loose object; return type and content, or ``None`` if it does not exist.

    Args:
        path: Its file.
        oid: Its name, in hex.
        kinds: Contents of other kinds are neither inflated nor checked, and are returned empty.

    Raises:
        ObjectTooLarge: It declares a size over the limit for its kind.
        ObjectDamaged: It exists, but does not match its name.
    """
    try:
        with nofollow.open_file(path) as file:
            return _read(file, oid, kinds)
    except FileNotFoundError:
        return None
    except zlib.error as error:
        raise ObjectDamaged(f"The Git object {oid} is damaged: {error}{_REPAIR}") from error


def _read(file: IO[bytes], oid: str, kinds: Collection[str]) -> tuple[str, bytes]:
    stream = zlib.decompressobj()
    start = stream.decompress(file.read(_PART_BYTES), _HEADER_BYTES)
    header, _, begin = start.partition(b"\0")
    found = _HEADER.fullmatch(header)
    if found is None or len(header) == len(start):
        raise ObjectDamaged(f"The Git object {oid} is damaged: its header cannot be read{_REPAIR}")
    kind, size = found[1].decode(), int(found[2])
    if kind not in kinds:
        return kind, b""
    require_size(oid, kind, size)
    rest = inflate(stream, size - len(begin), lambda: file.read(_PART_BYTES))
    if rest is None:
        raise ObjectDamaged(
            f"The Git object {oid} is damaged: it does not inflate to {size:,} bytes{_REPAIR}"
        )
    content = begin + rest if begin else rest
    digest = hashlib.sha1(b"%s\0" % header, usedforsecurity=False)
    digest.update(content)
    if digest.hexdigest() != oid:
        raise ObjectDamaged(f"The Git object {oid} does not match its id{_REPAIR}")
    return kind, content


def write_blob(git_dir: Path, content: bytes) -> str:
    """Ensure that an intact blob is on disk as a loose object.

    Returns:
        Its id in hex.

    Raises:
        OSError: It could not be written.
    """
    whole = b"blob %d\0%s" % (len(content), content)
    oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    _store(git_dir, oid, lambda: zlib.compress(whole, _COMPRESSION), sync=True)
    return oid


def object_id(kind: str, content: bytes) -> str:
    """Return Git's id of an object, in hex."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(content)), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def blob_of(oid: str, size: int, packed: bytes) -> bytes | None:
    """Return the content of a blob from its compressed content; ``None`` if that is not intact."""
    if size > LARGEST["blob"]:
        return None
    rest = iter((packed,))
    try:
        content = inflate(zlib.decompressobj(), size, lambda: next(rest, b""))
    except zlib.error:
        return None
    return content if content is not None and blob_id(content) == oid else None


def write_unsynced(git_dir: Path, kind: str, content: bytes) -> str:
    """Write an object that can be rebuilt from data already on disk: neither synced nor compressed.

    It is read back only until the next packing, which compresses it well. Compressing it here would cost as
    much as all the rest of a commit. An intact loose object is kept: it may be synced and belong to an
    earlier commit, and a power cut could destroy its unsynced replacement. A damaged one is replaced.

    Args:
        git_dir: The ``.git`` directory.
        kind: ``blob``, ``tree`` or ``commit``.
        content: Its content.

    Returns:
        Its id in hex.

    Raises:
        OSError: It could not be written.
    """
    whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
    oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    _store(git_dir, oid, lambda: zlib.compress(whole, 0), sync=False)
    return oid


def _store(git_dir: Path, oid: str, stream: Callable[[], bytes], *, sync: bool) -> None:
    """Write a loose object unless it is there and intact."""
    name = oid[2:]
    folder = _open_folder(f"{git_dir}/objects/{oid[:2]}")
    try:
        if not (_is_there(folder, name) and _is_whole(loose_path(git_dir, oid), oid)):
            _write(folder, name, stream(), sync=sync)
        elif sync:
            sync_loose(git_dir, [oid])  # its writer may not have synced it, or crashed before
        else:
            # As Git does: a concurrent prune deletes old unreachable objects.
            with contextlib.suppress(OSError):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_whole(path: Path, oid: str) -> bool:
    """Return whether a loose object exists and matches its name."""
    try:
        return read_loose(path, oid) is not None
    except ObjectDamaged:
        return False


def _open_folder(folder: str) -> int:
    try:
        return nofollow.open_directory(folder)
    except FileNotFoundError:  # `git gc` removes directories that became empty
        make_directory(Path(folder))
        return nofollow.open_directory(folder)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def _write(folder: int, name: str, stream: bytes, *, sync: bool) -> None:
    """Write a file of an open directory under a temporary name and rename it; sync both if asked."""
    temporary = f"{_TEMPORARY}{os.getpid()}_{name[:16]}"
    try:
        fd = os.open(temporary, _NEW, 0o444, dir_fd=folder)
        try:
            write_all(fd, stream)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if sync:
        os.fsync(folder)


def make_directories(git_dir: Path) -> None:
    """Create the directories of loose objects in a new repository or clone, so that writes create none.

    Their names are synced.
    """
    for number in range(256):
        nofollow.make_directory(git_dir / "objects" / f"{number:02x}")  # nothing if it exists
    sync_directory(git_dir / "objects")


def sync_loose(git_dir: Path, oids: Iterable[str]) -> None:
    """Sync some loose objects; one that was packed in the meantime is durable already."""
    folders: set[Path] = set()
    for oid in oids:
        path = loose_path(git_dir, oid)
        try:
            sync_file(path)
        except FileNotFoundError:
            continue
        folders.add(path.parent)
    for folder in folders:
        sync_directory(folder)
