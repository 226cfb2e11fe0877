"""Stamps of working files that were read, kept in a file, so that the next process reads none of them again.

A file whose status is that of its stamp has the content that it had then, as Git's index assumes. The file of
stamps is a cache: it is believed only on the boot of the machine that wrote it, since after a power cut a
file may have its status and not its content.
"""

import contextlib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.index_file import this_boot

_SUM_BYTES = 16


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """File status as the file system reports it, and the tree entry of the content at that time."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    oid: str
    mode: int

    @property
    def entry(self) -> TreeEntry:
        """The tree entry of the content."""
        return TreeEntry(self.oid, self.mode)


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    root: str
    boot: str
    stamps: dict[str, Stamp]


_decode = msgspec.msgpack.Decoder(_Kept).decode


def load_stamps(place: Path, root: Path) -> dict[str, Stamp]:
    """Return the stamps of the files below a directory by path.

    Empty if none were kept, or if they are damaged, of another directory, or of before the machine started.
    """
    with contextlib.suppress(OSError, msgspec.DecodeError, RecursionError):
        content = nofollow.read(place)
        if content[:_SUM_BYTES] == _sum(content[_SUM_BYTES:]):
            kept = _decode(memoryview(content)[_SUM_BYTES:])
            if kept.boot and (kept.root, kept.boot) == (str(root), this_boot()):
                return kept.stamps
    return {}


def keep_stamps(place: Path, root: Path, stamps: Mapping[str, Stamp]) -> None:
    """Write the stamps of the files below a directory; a file that cannot be written is skipped."""
    boot = this_boot()
    if not boot:
        return
    content = msgspec.msgpack.encode(_Kept(str(root), boot, dict(stamps)))
    beside = place.with_name(f"{place.name}.new")
    with contextlib.suppress(OSError, UnicodeEncodeError):
        nofollow.write(beside, _sum(content) + content, mode=0o600)
        nofollow.replace(beside, place)


def _sum(content: bytes) -> bytes:
    return blake2b(content, digest_size=_SUM_BYTES).digest()
