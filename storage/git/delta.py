"""Deltas between Git objects, and the choice of a base for each (gitformat-pack, "Deltified representation").

The objects of a workspace resemble one another in few ways. The live log is append-only, so each of its blobs
is a prefix of a later one. A tree differs from its predecessor in an entry or two. A file is edited in
places. So there are few candidates for a base: the latest objects that began or ended with the same bytes.
"""

from collections import deque

import msgspec

from agentx.storage.git.objects import ObjectDamaged

MAX_DEPTH = 50
"""Maximum number of deltas to follow for one object; Git's own limit."""

LARGEST_BYTES = 1 << 20
"""Larger objects are stored without a delta."""

_KEY_BYTES = 40
_MEMORY_BYTES = 64 << 20
_GOOD_BYTES = 32
_BLOCK = 16
_AMBIGUOUS = -1
_COPY_BYTES = 0x10000
_INSERT_BYTES = 127
_MORE = 0x80


class Base(msgspec.Struct):
    """An object that can be the base of deltas.

    Attributes:
        at: Its offset in the pack.
        depth: Number of deltas between it and a whole object.
        root: That whole object; ``None`` if this is one.
        content: ``None`` once it is dropped from memory.
    """

    at: int
    depth: int
    content: bytes | None
    root: "Base | None" = None

    def resembles(self, content: bytes) -> bool:
        """Return whether a content has a similar size."""
        return self.content is not None and len(content) < 2 * len(self.content) < 4 * len(content)


class Bases:
    """The most recently written objects of one kind, within 64 MB."""

    def __init__(self) -> None:
        self._by_start: dict[bytes, Base] = {}
        self._by_end: dict[bytes, Base] = {}
        self._latest: Base | None = None
        self._order: deque[tuple[Base, bytes, bytes]] = deque()
        self._size = 0

    def best(self, content: bytes, height: int) -> tuple[Base, bytes] | None:
        """Return the base that gives the shortest delta, and that delta; ``None`` if no base is left.

        Args:
            content: The content to be written.
            height: Length of the delta chain that already depends on it.
        """
        best: tuple[Base, bytes] | None = None
        for base in self._candidates(content):
            if base.content is None or base.depth + 1 + height > MAX_DEPTH:
                continue
            made = delta(base.content, content)
            if best is None or len(made) < len(best[1]):
                best = base, made
            if len(made) <= _GOOD_BYTES:
                break
        return best

    def _candidates(self, content: bytes) -> list[Base]:
        start, end = self._by_start.get(content[:_KEY_BYTES]), self._by_end.get(content[-_KEY_BYTES:])
        found = [start.root if start is not None else None, start, end]
        if start is end is None and self._latest is not None and self._latest.resembles(content):
            found.append(self._latest)
        return list({id(base): base for base in found if base is not None}.values())

    def add(self, base: Base, content: bytes) -> None:
        """Remember a written object; drop the oldest if memory is used up."""
        start, end = content[:_KEY_BYTES], content[-_KEY_BYTES:]
        self._by_start[start] = self._by_end[end] = self._latest = base
        self._order.append((base, start, end))
        self._size += len(content)
        while self._size > _MEMORY_BYTES:
            oldest, start, end = self._order.popleft()
            self._size -= len(oldest.content or b"")
            oldest.content = None
            for known, key in ((self._by_start, start), (self._by_end, end)):
                if known.get(key) is oldest:
                    del known[key]


def delta(base: bytes, target: bytes, *, search: bool = True) -> bytes:
    """Return a delta that builds ``target`` from pieces of ``base``.

    Args:
        base: What the delta copies from.
        target: What it builds.
        search: Whether what was appended to the base is searched for pieces of it, which takes longer than
            all the rest.

    >>> delta(b"abc", b"abcd").hex()
    '030490030164'
    """
    out = bytearray(_size(len(base)) + _size(len(target)))
    room = min(len(base), len(target))
    start = len(base) if target.startswith(base) else _same(base, 0, target, 0, room)
    end = _same_end(base, target, room - start)
    _copy(out, 0, start)
    if start == len(base) and not search:
        _insert(out, target[start:])
        return bytes(out)
    _between(out, base[: len(base) - end], start, target[: len(target) - end])
    _copy(out, len(base) - end, end)
    return bytes(out)


def _same(base: bytes, at: int, target: bytes, place: int, room: int) -> int:
    """Count the equal bytes from two offsets on (bisection, so that slices do the comparing)."""
    low, high = 0, room
    while low < high:
        middle = (low + high + 1) // 2
        if base[at + low : at + middle] == target[place + low : place + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_end(base: bytes, target: bytes, room: int) -> int:
    low, high = 0, room
    while low < high:
        middle = (low + high + 1) // 2
        if base[len(base) - middle : len(base) - low] == target[len(target) - middle : len(target) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _between(out: bytearray, base: bytes, start: int, target: bytes) -> None:
    """Encode the part that differs: find blocks of the base in it by content."""
    if len(target) - start < 2 * _BLOCK:
        _insert(out, target[start:])
        return
    blocks: dict[bytes, int] = {}
    for at in range(0, len(base) - _BLOCK + 1, _BLOCK):
        block = base[at : at + _BLOCK]
        blocks[block] = _AMBIGUOUS if block in blocks else at
    at = literal = start
    while at + _BLOCK <= len(target):
        found = blocks.get(target[at : at + _BLOCK], _AMBIGUOUS)
        if found == _AMBIGUOUS:
            at += 1
            continue
        length = _same(base, found, target, at, min(len(base) - found, len(target) - at))
        _insert(out, target[literal:at])
        _copy(out, found, length)
        at = literal = at + length
    _insert(out, target[literal:])


def _copy(out: bytearray, at: int, length: int) -> None:
    while length > 0:
        piece = min(length, _COPY_BYTES)
        operation, operands = 0x80, bytearray()
        for bit, value in enumerate(at.to_bytes(4, "little") + (piece & 0xFFFF).to_bytes(2, "little")):
            if value:
                operation |= 1 << bit
                operands.append(value)
        out.append(operation)
        out += operands
        at, length = at + piece, length - piece


def _insert(out: bytearray, literal: bytes) -> None:
    for at in range(0, len(literal), _INSERT_BYTES):
        piece = literal[at : at + _INSERT_BYTES]
        out.append(len(piece))
        out += piece


def _size(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def result_size(delta: bytes, base_bytes: int) -> tuple[int, int]:
    """Return the size that a delta declares for its result, and the offset of its instructions.

    Args:
        delta: The delta, or its first bytes.
        base_bytes: Size of the base, which the delta declares too.

    Raises:
        ObjectDamaged: It is for a base of another size, or cut off.
    """
    try:
        declared, at = _number(delta, 0)
        result, at = _number(delta, at)
    except IndexError:
        raise ObjectDamaged("A delta of Git is cut off.") from None
    if declared != base_bytes:
        raise ObjectDamaged(f"A delta of Git is for a base of {declared:,} bytes, which has {base_bytes:,}.")
    return result, at


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Decode a number of seven bits a byte; return it and the offset behind it."""
    value = shift = 0
    while True:
        byte, at = content[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & _MORE:
            return value, at


def apply(base: bytes, delta: bytes) -> bytes:
    """Apply a delta to its base; the caller bounds the declared :func:`result_size`.

    >>> apply(b"abc", bytes.fromhex("030490030164"))
    b'abcd'

    Raises:
        ObjectDamaged: It is cut off, or does not produce the declared size.
    """
    size, at = result_size(delta, len(base))
    out = bytearray()
    try:
        while at < len(delta) and len(out) <= size:
            code, at = delta[at], at + 1
            if not code & _MORE:
                if not code or at + code > len(delta):
                    raise ObjectDamaged("A delta of Git holds an invalid instruction.")
                out += delta[at : at + code]
                at += code
                continue
            start = length = 0
            for bit in range(7):
                if code & 1 << bit:
                    if bit < 4:  # noqa: PLR2004 - four bytes of the place, three of the length
                        start |= delta[at] << 8 * bit
                    else:
                        length |= delta[at] << 8 * (bit - 4)
                    at += 1
            out += base[start : start + (length or _COPY_BYTES)]
    except IndexError:
        raise ObjectDamaged("A delta of Git is cut off.") from None
    if len(out) != size:
        raise ObjectDamaged(f"A delta of Git makes {len(out):,} bytes where it declares {size:,}.")
    return bytes(out)
