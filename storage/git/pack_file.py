"""Read and write pack files and their indexes in Git's format (gitformat-pack, version 2).

A pack becomes visible when its index gets its name; both are on disk before that.
"""

import hashlib
import itertools
import mmap
import os
import struct
import tempfile
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory
from agentx.storage.git import delta
from agentx.storage.git.objects import ObjectDamaged, ObjectTooLarge, inflate, require_size

KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
OFFSET_DELTA, NAMED_DELTA = 6, 7
TEMPORARY = "tmp_agentx_"
"""Prefix of files that a crashed packer leaves; ``git gc`` removes such files too."""

_INDEX_MAGIC = b"\xfftOc\x00\x00\x00\x02"
_FANOUT = struct.Struct(">256I")
_OIDS_AT = len(_INDEX_MAGIC) + _FANOUT.size
_HASH_BYTES = 20
_INDEXED_BYTES = _HASH_BYTES + 4 + 4
"""The index has at least a name, a checksum and an offset for each object."""

HEADER = struct.Struct(">4sII")
"""Of a pack: ``PACK``, the version, and the number of objects."""

_LARGE = 1 << 31

NAMES = {number: kind for kind, number in KINDS.items()}
_DEEPEST = 4_095
"""Git creates no longer delta chains."""

_LARGEST_DELTA_BYTES = 64 << 20
_DELTA_WEIGHT = 32
_CHAIN_BYTES = 4 << 30
"""Limit for the summed inflated sizes along one chain; a byte of a delta counts as much as 32 of a result.

A megabyte can declare thousands of deltas, each of which is within the limit.
"""

_READ_BYTES = 1 << 14
_HEAD_BYTES = 4_096
"""A table of Huffman codes, of some 300 bytes, can come before the first byte."""

_CACHED_BYTES = 1 << 20
_CACHED = 64


class PackDamaged(ObjectDamaged):
    """A pack file or its index is damaged."""


class PackEntry(msgspec.Struct, frozen=True):
    """One object of a pack, as stored.

    Attributes:
        at: Offset of its first byte.
        kind: Git's number of its kind; 6 and 7 for a delta.
        size: Inflated size of the object or delta, in bytes.
        base: Offset of the base of an offset delta; 0 for others.
        body: Offset of the compressed content; for a delta that names its base, offset of that name.
        end: Offset of the next entry.
    """

    at: int
    kind: int
    size: int
    base: int
    body: int
    end: int


class Pack:
    """A pack file opened for reading; use it in a ``with``.

    Args:
        path: Its ``.pack`` file.

    Raises:
        PackDamaged: The pack or its index is not of version 2, is damaged, or does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._data, self._index = _mapped(path), _mapped(path.with_suffix(".idx"))
        except (OSError, ValueError) as error:
            raise PackDamaged(f"{path} cannot be read: {error}.") from error
        if self._data[:4] != b"PACK" or self._index[: len(_INDEX_MAGIC)] != _INDEX_MAGIC:
            raise PackDamaged(f"{path} is not a pack of version 2.")
        if len(self._index) < _OIDS_AT:
            raise PackDamaged(f"The index of {path} is cut off.")
        self._fanout = _FANOUT.unpack_from(self._index, len(_INDEX_MAGIC))
        self.count: int = self._fanout[255]
        whole = _OIDS_AT + self.count * _INDEXED_BYTES + 2 * _HASH_BYTES
        if len(self._index) < whole or list(self._fanout) != sorted(self._fanout):
            raise PackDamaged(f"The index of {path} is not one of {self.count} objects.")
        self._crc_at = _OIDS_AT + self.count * _HASH_BYTES
        self._offsets_at = self._crc_at + self.count * 4
        self._cache: dict[int, tuple[str, bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data.close()
        self._index.close()

    def __contains__(self, oid: bytes) -> bool:
        return self._find(oid) is not None

    def _find(self, oid: bytes) -> int | None:
        """Return the position of an object in the index."""
        low, high = self._fanout[oid[0] - 1] if oid[0] else 0, self._fanout[oid[0]]
        place = bisect_left(range(high), oid, low, key=self._oid)
        return place if place < high and self._oid(place) == oid else None

    def oids(self) -> Iterator[str]:
        """Yield the name of every object, in hex."""
        return (self._oid(place).hex() for place in range(self.count))

    def beginning(self, prefix: str) -> Iterator[str]:
        """Yield the names, in hex, that begin with a prefix."""
        first = bytes.fromhex(prefix + "0" * (2 * _HASH_BYTES - len(prefix)))
        place = bisect_left(range(self.count), first, key=self._oid)
        while place < self.count and (name := self._oid(place).hex()).startswith(prefix):
            yield name
            place += 1

    def read(self, oid: str) -> tuple[str, bytes] | None:
        """Return kind and content of an object, or ``None`` if it is not in this pack.

        Its hash is not checked. Sizes are checked before anything is inflated to them.

        Raises:
            ObjectTooLarge: It, or a base of its deltas, is over a limit.
            ObjectDamaged: It cannot be read.
        """
        place = self._find(bytes.fromhex(oid))
        if place is None:
            return None
        try:
            return self._unpack(oid, self._offset(place))
        except (IndexError, struct.error, zlib.error) as error:
            raise PackDamaged(f"The Git object {oid} is damaged in {self.path}: {error}.") from error

    def _unpack(self, oid: str, at: int) -> tuple[str, bytes]:
        """Follow the deltas back to a whole object, then apply them, one at a time."""
        waiting: list[PackEntry] = []
        entered: set[int] = set()
        while (known := self._cache.get(at)) is None:
            if at in entered or len(waiting) > _DEEPEST:
                raise PackDamaged(
                    f"The Git object {oid} is damaged in {self.path}: its delta chain has no base."
                )
            entered.add(at)
            if not HEADER.size <= at < len(self._data) - _HASH_BYTES:
                raise PackDamaged(f"{self.path} has no object at byte {at}.")
            entry = read_entry(self._data, at)
            if entry.kind in NAMES:
                require_size(oid, NAMES[entry.kind], entry.size)
                known = NAMES[entry.kind], self.content(entry)
                break
            waiting.append(entry)
            at = self._base(entry)
        kind, content = known
        work = 0
        for entry in reversed(waiting):
            work += self._weigh(oid, kind, entry, len(content))
            if work > _CHAIN_BYTES:
                raise ObjectTooLarge(
                    f"The Git object {oid} is a chain of deltas of more than {_CHAIN_BYTES:,} bytes, "
                    "so it is not read."
                )
            content = delta.apply(content, self.content(entry))
            if len(content) <= _CACHED_BYTES:  # it may be the base of other deltas
                self._cache[entry.at] = kind, content
                if len(self._cache) > _CACHED:
                    self._cache.pop(next(iter(self._cache)), None)
        return kind, content

    def _weigh(self, oid: str, kind: str, entry: PackEntry, base_bytes: int) -> int:
        """Return the cost of applying a delta, by its declared sizes."""
        if entry.size > _LARGEST_DELTA_BYTES:
            raise ObjectTooLarge(
                f"The Git object {oid} is a delta of {entry.size:,} bytes, so it is not read."
            )
        body = _body(entry)
        start = zlib.decompressobj().decompress(self._data[body : body + _HEAD_BYTES], 20)
        size, _ = delta.result_size(start, base_bytes)
        require_size(oid, kind, size)
        return size + _DELTA_WEIGHT * entry.size

    def content(self, entry: PackEntry) -> bytes:
        """Inflate a whole object, or a delta, to its declared size.

        Raises:
            PackDamaged: It inflates to another size, or not at all.
        """
        found = unpacked(self._data, entry)
        if found is None:
            raise PackDamaged(f"{self.path} is damaged at byte {entry.at}.")
        return found[0]

    def _base(self, entry: PackEntry) -> int:
        """Return the offset of a delta's base."""
        if entry.kind == OFFSET_DELTA:
            return entry.base
        if entry.kind == NAMED_DELTA:
            place = self._find(self._data[entry.body : entry.body + _HASH_BYTES])
            if place is not None:
                return self._offset(place)
        raise PackDamaged(f"{self.path} is damaged at byte {entry.at}.")

    def _oid(self, place: int) -> bytes:
        at = _OIDS_AT + place * _HASH_BYTES
        return self._index[at : at + _HASH_BYTES]

    def _offset(self, place: int) -> int:
        (offset,) = struct.unpack_from(">I", self._index, self._offsets_at + place * 4)
        if offset >= _LARGE:
            large = self._offsets_at + self.count * 4 + (offset - _LARGE) * 8
            if large + 8 > len(self._index):
                raise PackDamaged(f"The index of {self.path} has no offset for one of its objects.")
            (offset,) = struct.unpack_from(">Q", self._index, large)
        return int(offset)

    def entries(self) -> Iterator[tuple[bytes, PackEntry]]:
        """Yield every object's name (20 bytes) and entry, in the order of the file.

        Raises:
            PackDamaged: An entry does not match the index.
        """
        places = sorted((self._offset(place), place) for place in range(self.count))
        # Git also creates empty packs, which have no last entry to end.
        ends = [*(at for at, _ in places[1:]), len(self._data) - _HASH_BYTES][: self.count]
        for (at, place), end in zip(places, ends, strict=True):
            (crc,) = struct.unpack_from(">I", self._index, self._crc_at + place * 4)
            if not HEADER.size <= at < end or zlib.crc32(self._data[at:end]) != crc:
                raise PackDamaged(f"{self.path} is damaged at byte {at}.")
            entry = read_entry(self._data, at, end)
            if entry.body > end or entry.base < 0:
                raise PackDamaged(f"{self.path} is damaged at byte {at}.")
            yield self._oid(place), entry

    def raw(self, start: int, end: int) -> bytes:
        """Return the bytes of the file between two offsets."""
        return self._data[start:end]


def read_entry(data: bytes | mmap.mmap, at: int, end: int = 0) -> PackEntry:
    """Read the header of the object at an offset, unchecked; ``end`` is the offset of the next one if known.

    Raises:
        IndexError: The header is cut off.
    """
    byte, place = data[at], at + 1
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 0x80:
        byte, place = data[place], place + 1
        size |= (byte & 0x7F) << shift
        shift += 7
    base = 0
    if kind == OFFSET_DELTA:
        byte, place = data[place], place + 1
        distance = byte & 0x7F
        while byte & 0x80:
            byte, place = data[place], place + 1
            distance = (distance + 1) << 7 | byte & 0x7F
        base = at - distance
    return PackEntry(at, kind, size, base, place, end)


def unpacked(data: bytes | mmap.mmap, entry: PackEntry) -> tuple[bytes, int] | None:
    """Inflate an object or delta to its declared size; return it and the offset of its end.

    Returns ``None`` if it inflates to another size, or not at all.
    """
    stream, parts = zlib.decompressobj(), itertools.count(_body(entry), _READ_BYTES)
    try:
        content = inflate(stream, entry.size, lambda: data[(at := next(parts)) : at + _READ_BYTES])
    except zlib.error:
        return None
    return None if content is None else (content, min(next(parts), len(data)) - len(stream.unused_data))


def _body(entry: PackEntry) -> int:
    """Return the offset of the compressed content."""
    return entry.body + (_HASH_BYTES if entry.kind == NAMED_DELTA else 0)


def _mapped(path: Path) -> mmap.mmap:
    with nofollow.open_file(path) as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class PackWriter:
    """Writes one new pack, which is invisible before :meth:`finish`.

    Args:
        folder: ``objects/pack``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        fd, name = tempfile.mkstemp(prefix=TEMPORARY, suffix=".pack", dir=folder)
        self._path = Path(name)
        self._file = os.fdopen(fd, "w+b")
        self._file.write(HEADER.pack(b"PACK", 2, 0))
        self._end = HEADER.size
        self.offsets: dict[bytes, int] = {}
        self._crcs: dict[bytes, int] = {}

    def add(self, oid: bytes, kind: int, size: int, body: bytes, base: int = 0) -> int:
        """Append an object; return its offset.

        Args:
            oid: Its name, 20 bytes.
            kind: Git's number of its kind, or that of a delta.
            size: Inflated, in bytes.
            body: Compressed content, preceded by the name of the base if the delta names it.
            base: Offset of the base of an offset delta.
        """
        at = self._end
        entry = entry_bytes(kind, size, body, at - base)
        self._file.write(entry)
        self._end += len(entry)
        self.offsets[oid], self._crcs[oid] = at, zlib.crc32(entry)
        return at

    def discard(self) -> None:
        """Delete what was written."""
        self._file.close()
        nofollow.remove(self._path, missing_ok=True)
        nofollow.remove(self._path.with_suffix(".idx"), missing_ok=True)

    def finish(self) -> Path:
        """Sync pack and index, and give them their final names.

        Raises:
            OSError: They could not be written; nothing is visible.
        """
        self._file.seek(0)
        self._file.write(HEADER.pack(b"PACK", 2, len(self.offsets)))
        self._file.flush()
        self._file.seek(0)
        checksum = hashlib.file_digest(self._file, "sha1").digest()
        self._file.write(checksum)
        _sync(self._file)
        self._file.close()
        index = self._path.with_suffix(".idx")
        with nofollow.open_file(index, "w") as file:
            file.write(index_bytes(self.offsets, self._crcs, checksum))
            _sync(file)
        target = self._folder / f"pack-{checksum.hex()}.pack"
        self._path.replace(target)
        index.replace(target.with_suffix(".idx"))
        sync_directory(self._folder)
        return target


def entry_bytes(kind: int, size: int, body: bytes, distance: int) -> bytes:
    """Return an object as a pack stores it.

    Args:
        kind: Git's number of its kind, or that of a delta.
        size: Inflated, in bytes.
        body: Compressed content, preceded by the name of the base if the delta names it.
        distance: Of an offset delta, the number of bytes back to its base.
    """
    head, size = bytearray((kind << 4 | size & 15,)), size >> 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    if kind == OFFSET_DELTA:
        back = bytearray((distance & 0x7F,))
        while distance := distance >> 7:
            distance -= 1
            back.append(distance & 0x7F | 0x80)
        head += back[::-1]
    return bytes(head) + body


def index_bytes(offsets: Mapping[bytes, int], crcs: Mapping[bytes, int], checksum: bytes) -> bytes:
    """Return the index of a pack.

    Args:
        offsets: Offset of each object by its name, 20 bytes.
        crcs: CRC-32 of each object as stored.
        checksum: The pack's own.
    """
    oids = sorted(offsets)
    fanout = [bisect_left(oids, bytes([first + 1])) for first in range(255)] + [len(oids)]
    large = [at for oid in oids if (at := offsets[oid]) >= _LARGE]
    places = {at: place for place, at in enumerate(large)}
    small = (_LARGE + places[at] if at in places else at for at in map(offsets.__getitem__, oids))
    content = b"".join(
        (
            _INDEX_MAGIC,
            _FANOUT.pack(*fanout),
            *oids,
            struct.pack(f">{len(oids)}I", *map(crcs.__getitem__, oids)),
            struct.pack(f">{len(oids)}I", *small),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fchmod(file.fileno(), 0o444)
    os.fsync(file.fileno())
