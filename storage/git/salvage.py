"""A damaged pack, taken apart: every object of it that is whole becomes a loose one.

A pack is a row of compressed objects, some of them deltas against others (gitformat-pack). Where its index can be read,
it says where each begins; otherwise the row is walked as far as it goes. An object's name is the hash of its content, so
what is whole proves itself.
"""

import hashlib
import struct
import zlib
from pathlib import Path

import msgspec

from agentx.storage import nofollow
from agentx.storage.durable import write_file
from agentx.storage.git.objects import loose_path

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
_HASH_BYTES = 20
_FIRST = 12
_FANOUT_AT = 8
_MORE = 0x80


class _Piece(msgspec.Struct, frozen=True):
    """What stands at one place: a content, or a delta and what it is against (a place or a name)."""

    kind: int
    content: bytes
    base: int | str
    end: int


def salvage(git_dir: Path, pack: Path) -> tuple[int, int]:
    """Write what is whole in a pack as loose objects.

    Args:
        git_dir: The ``.git`` directory.
        pack: The ``.pack`` file; its index may be damaged or missing.

    Returns:
        How many objects were saved, and how many are known to be lost.
    """
    data, named = _bytes(pack), _index(_bytes(pack.with_suffix(".idx")))
    pieces = _pieces(data, sorted(named.values()))
    saved: dict[str, int] = {}
    contents: dict[int, tuple[int, bytes]] = {}
    left = dict(pieces)
    while left:  # a delta waits until its base is there
        ready = {at: found for at, piece in left.items() if (found := _resolve(at, piece, contents, saved))}
        for at, (kind, content) in ready.items():
            contents[at] = (kind, content)
            saved[_write(git_dir, _KINDS[kind], content)] = at
            del left[at]
        if not ready:
            break
    return len(saved), max(len(named.keys() - saved.keys()), len(left))


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
    """Where each object begins, by its name, as far as an index of version 2 says so."""
    try:
        (count,) = struct.unpack_from(">I", content, _FANOUT_AT + 255 * 4)
        names_at = _FANOUT_AT + 256 * 4
        offsets = struct.unpack_from(f">{count}I", content, names_at + count * (_HASH_BYTES + 4))
    except (struct.error, MemoryError):
        return {}
    names = (content[names_at + n * _HASH_BYTES :][:_HASH_BYTES].hex() for n in range(count))
    return dict(zip(names, offsets, strict=True))


def _pieces(data: bytes, places: list[int]) -> dict[int, _Piece]:
    """What can be inflated, by where it begins: as the index says, and in a row as long as each follows the last."""
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
        kind = byte >> 4 & 7
        while byte & _MORE:
            byte, place = data[place], place + 1
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
        stream = zlib.decompressobj()
        content = stream.decompress(memoryview(data)[place:])
    except (IndexError, zlib.error):
        return None
    if not stream.eof or kind not in {*_KINDS, _OFFSET_DELTA, _NAMED_DELTA}:
        return None
    return _Piece(kind, content, base, len(data) - len(stream.unused_data))


def _resolve(
    at: int, piece: _Piece, contents: dict[int, tuple[int, bytes]], saved: dict[str, int]
) -> tuple[int, bytes] | None:
    """Kind and content of an object whose base, if it has one, is there."""
    del at
    if piece.kind in _KINDS:
        return piece.kind, piece.content
    place = saved.get(piece.base, -1) if isinstance(piece.base, str) else piece.base
    if place not in contents:
        return None
    kind, base = contents[place]
    try:
        return kind, _applied(base, piece.content)
    except IndexError:
        return None


def _applied(base: bytes, delta: bytes) -> bytes:
    """What a delta makes of its base."""
    at = 0
    for _ in range(2):  # the sizes of base and result
        while delta[at] & _MORE:
            at += 1
        at += 1
    out = bytearray()
    while at < len(delta):
        code, at = delta[at], at + 1
        if not code & _MORE:
            out += delta[at : at + code]
            at += code
            continue
        values = []
        for bits in (range(4), range(4, 7)):
            value = 0
            for shift, bit in enumerate(bits):
                if code & 1 << bit:
                    value, at = value | delta[at] << 8 * shift, at + 1
            values.append(value)
        start, length = values[0], values[1] or 1 << 16
        out += base[start : start + length]
    return bytes(out)
