"""Take a damaged pack apart: every intact object in it becomes a loose object.

A pack is a sequence of compressed objects, some of them deltas against others (gitformat-pack). If its index
can be read, it gives the offset of each object. Otherwise the sequence is read as far as possible. An
object's name is the hash of its content, so an intact object proves itself.
"""

import contextlib
import hashlib
import itertools
import struct
import zlib
from pathlib import Path

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git import delta
from agentx.storage.git.objects import LARGEST, ObjectDamaged, inflate, loose_path, read_loose, require_size

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
_HASH_BYTES = 20
_FIRST = 12
_IS_LARGE = 1 << 31
_FANOUT_AT = 8
_MORE = 0x80
_PART_BYTES = 1 << 14


class _Piece(msgspec.Struct, frozen=True):
    """An object at one offset: a content, or a delta and its base (an offset or a name)."""

    kind: int
    size: int
    base: int | str
    body: int
    end: int = 0


def salvage(git_dir: Path, pack: Path) -> tuple[int, int]:
    """Write the intact objects of a pack as loose objects.

    Args:
        git_dir: The ``.git`` directory.
        pack: The ``.pack`` file; its index may be damaged or missing.

    Returns:
        The number of objects saved, and the number known to be lost.
    """
    data, named = _bytes(pack), _index(_bytes(pack.with_suffix(".idx")))
    pieces = _pieces(data, sorted(named.values()))
    saved: dict[str, int] = {}
    placed: dict[int, str] = {}
    left = dict(pieces)
    while left:  # a delta waits until its base was saved
        ready = [at for at, piece in left.items() if _is_ready(piece, placed, saved)]
        for at in ready:
            with contextlib.suppress(ObjectDamaged):
                kind, content = _resolve(git_dir, data, left[at], placed)
                placed[at] = oid = _write(git_dir, kind, content)
                saved[oid] = at
            del left[at]
        if not ready:
            break
    return len(saved), len(named.keys() - saved.keys()) if named else len(pieces) - len(saved)


def _write(git_dir: Path, kind: str, content: bytes) -> str:
    whole = f"{kind} {len(content)}\0".encode() + content
    oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    if not nofollow.exists(loose_path(git_dir, oid)):
        write_file(loose_path(git_dir, oid), zlib.compress(whole, 1), 0o444)
    return oid


def _bytes(path: Path) -> bytes:
    try:
        return nofollow.read(path)
    except OSError:
        return b""


def _index(content: bytes) -> dict[str, int]:
    """Return the offset of each object by name, as far as an index of version 2 is readable."""
    try:
        (count,) = struct.unpack_from(">I", content, _FANOUT_AT + 255 * 4)
        names_at = _FANOUT_AT + 256 * 4
        offsets_at = names_at + count * (_HASH_BYTES + 4)
        offsets = list(struct.unpack_from(f">{count}I", content, offsets_at))
        for n, offset in enumerate(offsets):
            if offset & _IS_LARGE:  # it lies beyond 2 GB: the place of its offset of 64 bits
                large_at = offsets_at + count * 4 + (offset & ~_IS_LARGE) * 8
                (offsets[n],) = struct.unpack_from(">Q", content, large_at)
    except (struct.error, MemoryError):
        return {}
    starts = range(names_at, names_at + count * _HASH_BYTES, _HASH_BYTES)
    names = (content[at : at + _HASH_BYTES].hex() for at in starts)
    return dict(zip(names, offsets, strict=True))


def _pieces(data: bytes, places: list[int]) -> dict[int, _Piece]:
    """Return the objects that can be inflated, by offset.

    Offsets come from the index; from each, the objects that follow it are read as well.
    """
    found: dict[int, _Piece] = {}
    following = _FIRST
    for start in [*places, -1]:
        while following not in found and (piece := _piece(data, following)) is not None:
            found[following] = piece
            following = piece.end
        if start >= _FIRST and start not in found and (piece := _piece(data, start)) is not None:
            found[start] = piece
            following = piece.end
    return found


def _piece(data: bytes, at: int) -> _Piece | None:
    try:
        place, byte = at + 1, data[at]
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & _MORE:
            byte, place = data[place], place + 1
            size |= (byte & 0x7F) << shift
            shift += 7
        base: int | str = 0
        if kind == _OFFSET_DELTA:
            byte, place = data[place], place + 1
            distance = byte & 0x7F
            while byte & _MORE:
                byte, place = data[place], place + 1
                distance = (distance + 1) << 7 | byte & 0x7F
            base = at - distance
        elif kind == _NAMED_DELTA:
            base, place = data[place : place + _HASH_BYTES].hex(), place + _HASH_BYTES
        if kind not in {*_KINDS, _OFFSET_DELTA, _NAMED_DELTA} or size > LARGEST[_KINDS.get(kind, "blob")]:
            return None
        piece = _Piece(kind, size, base, place)
        _, end = _inflated(data, piece)
    except (IndexError, ObjectDamaged):
        return None
    return msgspec.structs.replace(piece, end=end)


def _inflated(data: bytes, piece: _Piece) -> tuple[bytes, int]:
    """Return the content of a piece, and the offset of its end."""
    stream, parts = zlib.decompressobj(), itertools.count(piece.body, _PART_BYTES)
    try:
        content = inflate(stream, piece.size, lambda: data[(at := next(parts)) : at + _PART_BYTES])
    except zlib.error as error:
        raise ObjectDamaged(f"An object of a pack is damaged: {error}.") from error
    if content is None or not stream.eof:
        raise ObjectDamaged("An object of a pack does not inflate to its size.")
    return content, min(next(parts), len(data)) - len(stream.unused_data)


def _is_ready(piece: _Piece, placed: dict[int, str], saved: dict[str, int]) -> bool:
    """Return whether the base of a piece, if it has one, was saved."""
    if piece.kind in _KINDS:
        return True
    return piece.base in saved if isinstance(piece.base, str) else piece.base in placed


def _resolve(git_dir: Path, data: bytes, piece: _Piece, placed: dict[int, str]) -> tuple[str, bytes]:
    """Return kind and content of an object; its base is read back, so that only one is in memory."""
    content, _ = _inflated(data, piece)
    if piece.kind in _KINDS:
        return _KINDS[piece.kind], content
    oid = piece.base if isinstance(piece.base, str) else placed[piece.base]
    kind, base = read_loose(loose_path(git_dir, oid), oid) or ("", b"")
    require_size(oid, kind, delta.result_size(content, len(base))[0])
    return kind, delta.apply(base, content)
