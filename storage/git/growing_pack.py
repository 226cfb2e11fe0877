"""The pack of an unfinished turn: it is written anew, longer, with each group of commits.

A pack for each group would leave thousands of them, which slow down every reader. So the objects of the
latest groups are kept in memory as a pack stores them, and each group replaces the pack of the one before,
while that is small. Nothing is synced: until the end of the turn, the log and the content journal have all
of it. A pack that was synced is never replaced.
"""

import contextlib
import hashlib
import os
import zlib
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.git.delta import MAX_DEPTH, delta
from agentx.storage.git.pack_file import (
    HEADER,
    KINDS,
    OFFSET_DELTA,
    entry_bytes,
    index_bytes,
)

LARGEST_BYTES = 1 << 20
"""A pack of this size is not written again: the next group begins another one."""

_TEMPORARY = "tmp_growing"
"""Not the packer's prefix, because that removes its leftovers; ``git gc`` removes both."""

_KEY_BYTES = 40
_OURS = b"agentx\n"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class GrowingPack:
    """A pack that grows by groups of objects.

    Args:
        folder: ``objects/pack``.

    Attributes:
        path: Its present file; ``None`` before the first :meth:`write`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path: Path | None = None
        self._body = bytearray()
        self._offsets: dict[bytes, int] = {}
        self._crcs: dict[bytes, int] = {}
        self._latest: dict[tuple[str, bytes], tuple[int, int, bytes]] = {}

    @property
    def is_long(self) -> bool:
        """Whether the next group should begin another pack."""
        return len(self._body) >= LARGEST_BYTES

    @property
    def oids(self) -> list[str]:
        """The name of each object, in hex."""
        return [oid.hex() for oid in list(self._offsets)]

    def add(self, oid: str, kind: str, content: bytes, body: bytes = b"") -> None:
        """Add an object, as a delta to the latest one that began with the same bytes if that is short.

        Args:
            oid: Its name, in hex.
            kind: ``blob``, ``tree`` or ``commit``.
            content: Its content.
            body: The compressed content, if known.
        """
        name, at = bytes.fromhex(oid), HEADER.size + len(self._body)
        if name in self._offsets:
            return
        entry, depth = b"", 0
        key = kind, content[:_KEY_BYTES]
        if kind != "commit" and not body:  # the live log and the trees: each resembles the one before
            base_at, base_depth, base = self._latest.get(key, (0, MAX_DEPTH, b""))
            if base_depth < MAX_DEPTH:
                made = delta(base, content, search=False)
                if 4 * len(made) < len(content):
                    entry = entry_bytes(OFFSET_DELTA, len(made), zlib.compress(made, 1), at - base_at)
                    depth = base_depth + 1
            self._latest[key] = at, depth, content
        if not entry:
            entry = entry_bytes(KINDS[kind], len(content), body or zlib.compress(content, 1), 0)
        self._offsets[name], self._crcs[name] = at, zlib.crc32(entry)
        self._body += entry

    def write(self) -> Path:
        """Write the pack, and remove the one of the last call. Nothing is synced.

        Until :meth:`release`, ``git repack`` leaves it alone.

        Raises:
            OSError: It could not be written; the last one stays.
        """
        head = HEADER.pack(b"PACK", 2, len(self._offsets))
        digest = hashlib.sha1(head, usedforsecurity=False)
        digest.update(self._body)
        checksum = digest.digest()
        target = self._folder / f"pack-{checksum.hex()}.pack"
        if target == self.path:
            return target
        try:
            self._put(target.with_suffix(".keep"), _OURS)
            self._put(target, head, self._body, checksum)
            self._put(target.with_suffix(".idx"), index_bytes(self._offsets, self._crcs, checksum))
        except BaseException:
            with contextlib.suppress(OSError):
                remove(target)
            raise
        last, self.path = self.path, target
        if last is not None:
            remove(last)
        return target

    def release(self) -> None:
        """From now on a ref reaches every object."""
        if self.path is not None:
            nofollow.remove(self.path.with_suffix(".keep"), missing_ok=True)

    def _put(self, path: Path, *parts: bytes | bytearray) -> None:
        temporary = self._folder / f"{_TEMPORARY}{path.suffix}"
        nofollow.remove(temporary, missing_ok=True)  # of a writer that died
        fd = nofollow.open_descriptor(temporary, _NEW, 0o444)
        try:
            try:
                nofollow.write_all(fd, b"".join(parts))
            finally:
                os.close(fd)
            nofollow.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                nofollow.remove(temporary, missing_ok=True)
            raise


def remove(pack: Path) -> None:
    """Remove a pack, its index first."""
    for suffix in (".idx", ".pack", ".keep"):
        nofollow.remove(pack.with_suffix(suffix), missing_ok=True)


def release_left(folder: Path) -> None:
    """Release packs whose writer died before it did."""
    for path in nofollow.listed(folder, "pack-", ".keep"):
        if nofollow.read(path) == _OURS:
            nofollow.remove(path, missing_ok=True)
