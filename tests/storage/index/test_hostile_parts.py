"""A part that somebody damaged or made up is not used: the table answers, and the background makes it again."""

import os
import resource
import stat
from zlib import crc32

import msgspec
import numpy as np
import pytest

from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.part import Part, PartDamaged, _PartHeader
from agentx.storage.index.parts import IndexParts
from agentx.storage.index.port import Filter
from agentx.storage.index.table_rows import TableRows

from .test_parts import ALL, agree, chunks, ids, listed, names, vectors

ROWS = 600
HEAD = 16
GIGABYTE = 1 << 30


@pytest.fixture
def both(directory):
    """An index in one part, and the reference with the same rows."""
    made = LanceIndex(directory), InMemoryIndex()
    for index in made:
        index.put(chunks(0, ROWS), vectors(0, ROWS))
    assert made[0].flush()
    made[0].maintain()
    return made


@pytest.fixture
def part(both, directory):
    (path,) = directory.glob("*.part")
    return path


def changed(path, at, content):
    """Write some bytes of a file to a new one in its place: the old one may be mapped."""
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole[:at] + content + whole[at + len(content) :])


def with_header(path, change):
    whole = path.read_bytes()
    length = int.from_bytes(whole[HEAD : HEAD + 8], "little")
    header = msgspec.msgpack.decode(whole[HEAD + 8 : HEAD + 8 + length], type=_PartHeader)
    made = msgspec.msgpack.encode(change(header))
    assert HEAD + 8 + len(made) <= min(start for _, start, _, _ in header.arrays.values())
    changed(path, HEAD, len(made).to_bytes(8, "little") + made)


def with_array(header, name, **fields):
    kind, start, count, checksum = header.arrays[name]
    old = {"kind": kind, "start": start, "count": count, "checksum": checksum} | fields
    return msgspec.structs.replace(header, arrays=header.arrays | {name: tuple(old.values())})


def is_made_again(directory, reference):
    """Answers are those of the reference: from the table at first, and from new parts after the background's turn."""
    again = LanceIndex(directory)
    agree(again, reference)
    for n in range(5):  # of a word in each row there is a column; of others, postings
        query = f"word number{n}"
        assert again.search_text(query, 5, ALL) == reference.search_text(query, 5, ALL)
    assert again.get(["m00007"]) == reference.get(["m00007"])
    assert isinstance(again._catch_up(), TableRows)
    again.maintain()
    assert isinstance(again._catch_up(), IndexParts)
    agree(again, reference)
    assert names(directory) == listed(directory)


LIES = {
    "an array behind the end": lambda h: with_array(h, "chunks", start=h.size + 64),
    "an array before the beginning": lambda h: with_array(h, "vectors", start=-64),
    "an array of a negative length": lambda h: with_array(h, "chunks", count=-1),
    "an array that is too long": lambda h: with_array(h, "chunks", count=2**40),
    "an array of objects": lambda h: with_array(h, "vectors", kind="|O8"),
    "an array of an unknown type": lambda h: with_array(h, "ids", kind="nonsense"),
    "a missing array": lambda h: msgspec.structs.replace(
        h, arrays={name: one for name, one in h.arrays.items() if name != "terms"}
    ),
    "more rows": lambda h: msgspec.structs.replace(h, rows=h.rows + 1),
    "no rows": lambda h: msgspec.structs.replace(h, rows=0),
    "billions of rows": lambda h: msgspec.structs.replace(h, rows=2**40),
    "billions of dimensions": lambda h: msgspec.structs.replace(h, dimensions=2**40),
    "other dimensions": lambda h: msgspec.structs.replace(h, dimensions=h.dimensions * 2),
    "another size": lambda h: msgspec.structs.replace(h, size=h.size - 64),
    "fewer postings than terms": lambda h: with_array(h, "posted counts", count=1),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused_without_memory_for_what_it_claims(both, part, directory, lie):
    with_header(part, LIES[lie])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PartDamaged):
        Part(part)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1_024 < GIGABYTE // 8
    is_made_again(directory, both[1])


def test_a_header_of_an_impossible_length_is_refused(both, part, directory):
    changed(part, HEAD, (2**63).to_bytes(8, "little"))
    with pytest.raises(PartDamaged):
        Part(part)
    is_made_again(directory, both[1])


def test_another_version_is_made_again(both, part, directory):
    changed(part, 0, b"AGENTX part 1\n\0\0")
    with pytest.raises(PartDamaged, match="another version"):
        Part(part)
    is_made_again(directory, both[1])


@pytest.mark.parametrize("first", [0, 4_096, 0.5])
def test_zeros_are_found(both, part, directory, first):
    size = part.stat().st_size
    at = int(first * size) if isinstance(first, float) else first
    changed(part, at, bytes(size - at))
    is_made_again(directory, both[1])


ARRAYS = (
    "chunks", "row ends", "chunk sums", "lengths", "seq", "to_seq", "embedded", "ids", "rows of ids", "kind", "path",
    "vectors", "terms", "term ends", "posted rows", "dense terms", "dense counts", "dense sums", "path values",
)  # fmt: skip


@pytest.mark.parametrize("filling", [b"\xff", b"\x80"])
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_other_bytes_is_found_when_it_is_used(both, part, directory, name, filling):
    kind, start, count, _ = Part(part)._arrays[name]
    changed(part, start, filling * (count * int(kind[2:])))
    is_made_again(directory, both[1])


@pytest.mark.parametrize("name", ["row ends", "rows of ids", "kind", "posted rows", "term ends"])
def test_numbers_of_rows_beyond_the_end_are_refused_though_their_checksum_is_right(
    both, part, directory, name
):
    kind, start, count, _ = Part(part)._arrays[name]
    made = np.frombuffer(part.read_bytes(), kind, count, start).copy()
    made[:] = 2**30
    changed(part, start, made.tobytes())
    with_header(part, lambda header: with_array(header, name, checksum=crc32(made.tobytes())))
    is_made_again(directory, both[1])


def test_flipped_bits_never_show_other_text_nor_end_the_process(both, part, directory):
    whole, dice = part.read_bytes(), np.random.default_rng(7)
    known = {chunk.id: chunk for chunk in chunks(0, ROWS)}
    for turn in range(60):
        flipped = bytearray(whole)
        for place in dice.integers(0, len(whole), 1 + turn % 40):
            flipped[place] ^= 1 << int(dice.integers(8))
        part.unlink(missing_ok=True)
        part.write_bytes(flipped)
        index = LanceIndex(directory)
        near = vectors(90_000 + turn, 90_001 + turn)[0]
        for where in (ALL, Filter(kinds=("tool",))):
            hits = index.search_text(f"number{turn * 7} w{turn}", 9, where) + index.search_vector(
                near, 9, where
            )
            assert all(known[hit.chunk.id] == hit.chunk for hit in hits)
            assert all(np.isfinite(hit.score) for hit in hits)
            assert len(hits) >= 9
        index.close()


@pytest.mark.parametrize("what", ["symlink", "symlink to itself", "directory", "full directory", "fifo"])
def test_what_is_not_a_file_is_removed_and_what_a_link_leads_to_stays(both, part, directory, tmp_path, what):
    content = part.read_bytes()
    part.unlink()
    aside = tmp_path / "elsewhere"
    match what:
        case "symlink":
            aside.write_bytes(content)
            part.symlink_to(aside)
        case "symlink to itself":
            part.symlink_to(part)
        case "directory":
            part.mkdir()
        case "full directory":
            part.mkdir()
            (part / "file").write_text("theirs")
        case "fifo":
            os.mkfifo(part)
    is_made_again(directory, both[1])
    assert not os.path.lexists(part)
    assert aside.exists() == (what == "symlink")
    assert all(stat.S_ISREG(os.lstat(directory / name).st_mode) for name in names(directory))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_part_that_cannot_be_read_is_made_again(both, part, directory):
    part.chmod(0)
    is_made_again(directory, both[1])


def test_a_damaged_part_is_not_merged_into_another(both, part, directory):
    _, reference = both
    _, start, count, _ = Part(part)._arrays["chunks"]
    changed(part, start, os.urandom(count))
    again = LanceIndex(directory)
    for each in (again, reference):
        each.put(chunks(ROWS, 3 * ROWS), vectors(ROWS, 3 * ROWS))
    again.flush()
    again.maintain()
    agree(again, reference)  # a damaged passage is known by its checksum, which a merge copies
    again.maintain()
    assert isinstance(again._catch_up(), IndexParts)
    agree(again, reference)
    assert ids(again.search_text("number33", 1, ALL)) == ["m00033"]
