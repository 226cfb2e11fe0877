"""Take a damaged pack apart: every intact object in it becomes a loose object.

If the pack's index can be read, it gives the offset of each object. Otherwise the pack is read from its start
as far as possible. An object's name is the hash of its content, so an intact object proves itself.
"""

import contextlib
import hashlib
import struct
import zlib
from collections import defaultdict
from pathlib import Path

from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git import delta
from agentx.storage.git.objects import LARGEST, ObjectDamaged, loose_path, read_loose, require_size
from agentx.storage.git.pack_file import NAMED_DELTA, NAMES, OFFSET_DELTA, PackEntry, read_entry, unpacked

_HASH_BYTES = 20
_FIRST = 12
_IS_LARGE = 1 << 31
_FANOUT_AT = 8


def salvage(git_dir: Path, pack: Path) -> tuple[int, int]:
    """Write the intact objects of a pack as loose objects.

    Args:
        git_dir: The ``.git`` directory.
        pack: The ``.pack`` file; its index may be damaged or missing.

    Returns:
        The number of objects saved, and the number known to be lost.
    """
    data, named = _bytes(pack), _index(_bytes(pack.with_suffix(".idx")))
    found = _entries(data, sorted(named.values()))
    deltas: defaultdict[int | str, list[PackEntry]] = defaultdict(list)
    ready: list[tuple[PackEntry, str]] = []
    for entry in found.values():
        if entry.kind in NAMES:
            ready.append((entry, ""))
        elif entry.kind == OFFSET_DELTA:
            deltas[entry.base].append(entry)
        else:
            deltas[data[entry.body : entry.body + _HASH_BYTES].hex()].append(entry)
    saved: set[str] = set()
    while ready:  # a delta waits until its base was saved
        entry, base = ready.pop()
        with contextlib.suppress(ObjectDamaged):
            oid = _save(git_dir, data, entry, base)
            saved.add(oid)
            ready += ((waiting, oid) for key in (entry.at, oid) for waiting in deltas.pop(key, ()))
    return len(saved), len(named.keys() - saved) if named else len(found) - len(saved)


def _save(git_dir: Path, data: bytes, entry: PackEntry, base: str) -> str:
    """Write an object as a loose object; return its name.

    The base of a delta is read back, so that only one is in memory.
    """
    content, _ = unpacked(data, entry) or (b"", 0)
    kind = NAMES.get(entry.kind, "")
    if not kind:
        kind, whole = read_loose(loose_path(git_dir, base), base) or ("", b"")
        require_size(base, kind, delta.result_size(content, len(whole))[0])
        content = delta.apply(whole, content)
    content = f"{kind} {len(content)}\0".encode() + content
    oid = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    if not nofollow.exists(loose_path(git_dir, oid)):
        write_file(loose_path(git_dir, oid), zlib.compress(content, 1), 0o444)
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


def _entries(data: bytes, places: list[int]) -> dict[int, PackEntry]:
    """Return the objects that can be inflated, by offset; each offset is tried once.

    Offsets come from the index; from each, the objects that follow it are read as well.
    """
    found: dict[int, PackEntry] = {}
    tried: set[int] = set()
    for start in [_FIRST, *places]:
        at = start
        while at >= _FIRST and at not in tried:
            tried.add(at)
            with contextlib.suppress(IndexError):
                entry = read_entry(data, at)
                limit = LARGEST[NAMES.get(entry.kind, "blob")]
                if entry.kind in {*NAMES, OFFSET_DELTA, NAMED_DELTA} and entry.size <= limit:
                    whole = unpacked(data, entry)
                    if whole is not None:
                        found[at] = entry
                        at = whole[1]
    return found
