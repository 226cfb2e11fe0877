"""Git trees as bytes: one tree is made from another by changing some of its entries.

A tree is a row of ``mode SP name NUL oid`` without separators, the oid as 20 bytes, sorted by name, a directory's name
counting as if it ended in ``/`` (https://git-scm.com/book/en/v2/Git-Internals-Git-Objects). To change an entry that is
there costs a look along the row; nothing is parsed.
"""

from collections.abc import Iterator, Mapping

import msgspec

from agentx.storage.git.objects import ObjectDamaged

DIRECTORY = b"40000"
SUBMODULE = b"160000"

_OID_BYTES = 20


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
    added: dict[bytes, Entry] = {}
    for name, new in changes.items():
        span = _span(tree, name)
        if span is None:
            added |= {name: new} if new is not None else {}
        elif new is not None and (new.mode == DIRECTORY) != tree.startswith(DIRECTORY, span[0]):
            added[name] = new  # it has its place elsewhere among the names
        else:
            tree = tree[: span[0]] + (b"" if new is None else _row(name, new)) + tree[span[1] :]
    return _insert(tree, added) if added else tree


def _insert(tree: bytes, added: Mapping[bytes, Entry]) -> bytes:
    """Put entries in their places; one of the same name goes."""
    rows = [
        (_place(name, tree, start), tree[start:end]) for name, start, end in _spans(tree) if name not in added
    ]
    for name, new in added.items():
        row = _row(name, new)
        rows.append((_place(name, row, 0), row))
    return b"".join(row for _, row in sorted(rows))


def _place(name: bytes, tree: bytes, start: int) -> bytes:
    return name + b"/" if tree.startswith(DIRECTORY, start) else name


def _row(name: bytes, entry: Entry) -> bytes:
    return b"".join((entry.mode, b" ", name, b"\0", bytes.fromhex(entry.oid)))


def entries(tree: bytes) -> Iterator[Entry]:
    """Every entry of a tree."""
    for _, start, end in _spans(tree):
        yield Entry(tree[start : tree.index(b" ", start)], tree[end - _OID_BYTES : end].hex())


def find(tree: bytes, name: bytes) -> Entry | None:
    """The entry of a name; ``None`` where there is none."""
    span = _span(tree, name)
    if span is None:
        return None
    start, end = span
    return Entry(tree[start : tree.index(b" ", start)], tree[end - _OID_BYTES : end].hex())


def _span(tree: bytes, name: bytes) -> tuple[int, int] | None:
    """Begin and end of the entry of a name."""
    start, whole, length = 0, len(tree), len(name)
    while start < whole:
        nul = tree.find(b"\0", start)
        end = nul + 1 + _OID_BYTES
        if nul < 0 or end > whole:
            raise ObjectDamaged("A tree of Git cannot be read: it ends in the middle of an entry.")
        if tree.startswith(name, nul - length) and tree.find(b" ", start) == nul - length - 1:
            return start, end
        start = end
    return None


def _spans(tree: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Name, begin and end of each entry."""
    start = 0
    while start < len(tree):
        space = tree.find(b" ", start)
        nul = tree.find(b"\0", space)
        end = nul + 1 + _OID_BYTES
        if space < 0 or nul < 0 or end > len(tree):
            raise ObjectDamaged("A tree of Git cannot be read: it ends in the middle of an entry.")
        yield tree[space + 1 : nul], start, end
        start = end
