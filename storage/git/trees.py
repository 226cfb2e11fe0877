"""Git trees as bytes: derive a tree from another by changing some of its entries.

A tree is a sequence of ``mode SP name NUL oid`` without separators, the oid as 20 bytes. It is sorted by
name; a directory's name sorts as if it ended in ``/``
(https://git-scm.com/book/en/v2/Git-Internals-Git-Objects). Trees are edited as bytes for speed: changing an
existing entry costs one search in C. A folder gains an entry with every file, and is rewritten each time.
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
"""Possible lengths of a mode."""


class RawTreeEntry(msgspec.Struct, frozen=True):
    """One entry of a tree.

    Attributes:
        mode: As stored: ``100644``, ``100755``, ``120000``, ``40000``, ``160000``.
        oid: In hex.
    """

    mode: bytes
    oid: str


def edit(tree: bytes, changes: Mapping[bytes, RawTreeEntry | None]) -> bytes:
    """Return the tree with some entries changed.

    Args:
        tree: The current tree.
        changes: New entry by name; ``None`` removes the name, if it is there.
    """
    added: dict[bytes, bytes] = {}
    for name, new in changes.items():
        start, end = _span(tree, name) or (0, 0)
        row = b"" if new is None else b"".join((new.mode, b" ", name, b"\0", bytes.fromhex(new.oid)))
        if row and (start == end or row.startswith(DIRECTORY) != tree.startswith(DIRECTORY, start)):
            # A new entry, or a file that becomes a directory (or the reverse), sorts elsewhere.
            added[_place(row)], row = row, b""

        tree = tree[:start] + row + tree[end:]
    return _insert(tree, added) if added else tree


def _insert(tree: bytes, added: Mapping[bytes, bytes]) -> bytes:
    """Insert entries at their places in the sort order."""
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
    """Return the sort key of an entry."""
    name = tree[tree.index(b" ", start) + 1 : tree.index(b"\0", start)]
    return name + b"/" if tree.startswith(DIRECTORY, start) else name


def entries(tree: bytes) -> Iterator[RawTreeEntry]:
    """Yield every entry of a tree."""
    _require_whole(tree)
    return (_entry(*found.span(), tree) for found in _ENTRY.finditer(tree))


def find(tree: bytes, name: bytes) -> RawTreeEntry | None:
    """Return the entry of a name; ``None`` if there is none."""
    span = _span(tree, name)
    return _entry(*span, tree) if span else None


def _entry(start: int, end: int, tree: bytes) -> RawTreeEntry:
    return RawTreeEntry(tree[start : tree.index(b" ", start)], tree[end - _OID_BYTES : end].hex())


def _span(tree: bytes, name: bytes) -> tuple[int, int] | None:
    """Return start and end of the entry of a name."""
    wanted = b" " + name + b"\0"
    at = tree.find(wanted)
    while at >= 0:
        for start in (at - length for length in _MODE_BYTES if at >= length):
            # The same bytes may occur in an oid, or at the end of a longer name.
            before = _ENTRIES.match(tree, 0, start)
            if before is not None and before.end() == start and _ENTRY.match(tree, start):
                return start, at + len(wanted) + _OID_BYTES
        at = tree.find(wanted, at + 1)
    _require_whole(tree)
    return None


def _require_whole(tree: bytes) -> None:
    if not _ENTRIES.fullmatch(tree):
        raise ObjectDamaged("A tree of Git cannot be read: it ends in the middle of an entry.")
