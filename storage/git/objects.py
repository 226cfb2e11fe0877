"""Git objects, written durably and never trusted before they are checked.

libgit2 neither syncs objects nor notices that one is truncated (it spins for ever on reading it, and writing the same
content again does not repair it), so blobs go through here: a loose object is a zlib stream of ``type size NUL content``
under the SHA-1 of that, in ``objects/ab/cdef…``.
"""

import hashlib
import zlib
from pathlib import Path

from agentx.storage.durable import make_directory, replace, write_temporary
from agentx.storage.errors import AgentXError

_COMPRESSION = 1
"""zlib level: 6 doubles the time and saves a tenth; packing compresses again."""


class ObjectDamaged(AgentXError):
    """A Git object is truncated, or its content is not what its name says."""


def blob_id(content: bytes) -> str:
    """The name that Git gives a content, in hex.

    >>> blob_id(b"")
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def loose_path(git_dir: Path, oid: str) -> Path:
    """Where the loose object of that name lies."""
    return git_dir / "objects" / oid[:2] / oid[2:]


def read_loose(path: Path, oid: str) -> tuple[str, bytes] | None:
    """Read a loose object; its type and content, or ``None`` where there is none.

    Raises:
        ObjectDamaged: It is there, but is not what its name says.
    """
    try:
        compressed = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        whole = zlib.decompress(compressed)
    except zlib.error as error:
        raise ObjectDamaged(f"The Git object {oid} is damaged: {error}.") from error
    if hashlib.sha1(whole, usedforsecurity=False).hexdigest() != oid:
        raise ObjectDamaged(f"The Git object {oid} does not hold what its name says.")
    header, _, content = whole.partition(b"\0")
    return header.split(b" ")[0].decode(), content


def write_blob(git_dir: Path, content: bytes) -> str:
    """Make sure that a blob is there, whole and on the disk, as a loose object.

    Returns:
        Its id in hex.

    Raises:
        OSError: It could not be written.
    """
    oid = blob_id(content)
    path = loose_path(git_dir, oid)
    try:
        if read_loose(path, oid) is not None:
            return oid
    except ObjectDamaged:
        path.unlink(missing_ok=True)
    make_directory(path.parent)
    stream = zlib.compress(b"blob %d\0" % len(content) + content, _COMPRESSION)
    temporary = write_temporary(path.parent, stream, mode=0o444)
    try:
        replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return oid
