"""Git trees as bytes: one tree is made from another by changing some of its entries.

A tree is a row of ``mode SP name NUL oid`` without separators, the oid as 20 bytes, sorted by name, a directory's name
counting as if it ended in ``/`` (https://git-scm.com/book/en/v2/Git-Internals-Git-Objects). To change an entry that is
there costs a look along the row, all of it in C: a folder gets an entry more with every file, and is written anew for each.
"""

import re
from bisect import bisect
from collections.abc import Iterator, Mapping

import msgspec

from agentx.storage.git.objects import ObjectDamaged

DIRECTORY = b"40000"
SUBMODULE = b"160000"

_OID_BYTES = 20

_ENTRY = re.compile(rb"[0-7]+ [^\0]*\0.{20}", re.DOTALL)
_ENTRIES = re.compile(rb"(?:[0-7]+ [^\0]*\0.{20})*+", re.DOTALL)

_MODE_BYTES = (len(SUBMODULE), len(DIRECTORY))
"""A mode has so many."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a tree.

    Attributes:
        mode: As it stands in the tree: ``100644``, ``100755``, ``120000``, ``40000``, ``160000``.
        oid: In hex.
    """

    mode: bytes
    oid: str


def edit(tree: bytes, changes: Mapping[bytes, Entry | None]) -> bytes:
    """The tree that differs in some entries.

    Args:
        tree: The tree as it is.
        changes: New entry by name; ``None`` takes the name away, where it is there.
    """
    added: dict[bytes, bytes] = {}
    for name, new in changes.items():
        start, end = _span(tree, name) or (0, 0)
        row = b"" if new is None else _row(name, new)
        if row and (start == end or row.startswith(DIRECTORY) != tree.startswith(DIRECTORY, start)):
            added[_place(row)], row = row, b""  # of another sort it has its place elsewhere among the names
        tree = tree[:start] + row + tree[end:]
    return _insert(tree, added) if added else tree


def _insert(tree: bytes, added: Mapping[bytes, bytes]) -> bytes:
    """Put entries in, each by the place that it has among the names."""
    _require_whole(tree)
    starts = [found.start() for found in _ENTRY.finditer(tree)]
    pieces, done = list[bytes](), 0
    for place in sorted(added):
        behind = bisect(starts, place, key=lambda start: _place(tree, start))
        start = starts[behind] if behind < len(starts) else len(tree)
        pieces += [tree[done:start], added[place]]
        done = start
    return b"".join([*pieces, tree[done:]])


def _place(tree: bytes, start: int = 0) -> bytes:
    """What an entry is sorted by."""
    name = tree[tree.index(b" ", start) + 1 : tree.index(b"\0", start)]
    return name + b"/" if tree.startswith(DIRECTORY, start) else name


def _row(name: bytes, entry: Entry) -> bytes:
    return b"".join((entry.mode, b" ", name, b"\0", bytes.fromhex(entry.oid)))


def entries(tree: bytes) -> Iterator[Entry]:
    """Every entry of a tree."""
    _require_whole(tree)
    return (_entry(*found.span(), tree) for found in _ENTRY.finditer(tree))


def find(tree: bytes, name: bytes) -> Entry | None:
    """The entry of a name; ``None`` where there is none."""
    span = _span(tree, name)
    return _entry(*span, tree) if span else None


def _entry(start: int, end: int, tree: bytes) -> Entry:
    return Entry(tree[start : tree.index(b" ", start)], tree[end - _OID_BYTES : end].hex())


def _span(tree: bytes, name: bytes) -> tuple[int, int] | None:
    """Begin and end of the entry of a name."""
    wanted = b" " + name + b"\0"
    at = tree.find(wanted)
    while at >= 0:
        for start in (at - length for length in _MODE_BYTES):
            if _begins(tree, start) and _ENTRY.match(tree, start):
                return start, at + len(wanted) + _OID_BYTES
        at = tree.find(wanted, at + 1)
    _require_whole(tree)
    return None


def _begins(tree: bytes, start: int) -> bool:
    """Whether an entry begins here: what looks like one may stand in an oid, or at the end of a longer name."""
    before = _ENTRIES.match(tree, 0, start) if start >= 0 else None
    return before is not None and before.end() == start


def _require_whole(tree: bytes) -> None:
    if not _ENTRIES.fullmatch(tree):
        raise ObjectDamaged("A tree of Git cannot be read: it ends in the middle of an entry.")
