"""Objects that inflate to far more than they take: sizes are checked before anything is inflated to them."""

import hashlib
import random
import tracemalloc
import zlib

import pytest

from agentx.storage.git import delta
from agentx.storage.git.checked_reader import ObjectReader
from agentx.storage.git.checking import loose_fault
from agentx.storage.git.objects import LARGEST, ObjectDamaged, ObjectTooLarge, blob_id, read_loose, write_blob
from agentx.storage.git.pack_file import KINDS, NAMED_DELTA, OFFSET_DELTA, PackWriter
from agentx.storage.git.packs.packing import Packer
from agentx.storage.git.packs.salvage import salvage

OID = "ab" * 20
MOST_BYTES = 40 << 20
"""A little more than the largest real object here, and far less than any bomb."""


def stream(header, zeros):
    """A zlib stream of a header and many zeros; without its checksum, which no reader may come to."""
    packer = zlib.compressobj(9)
    begin = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return begin + block * (zeros >> 20)


@pytest.fixture
def git_dir(tmp_path):
    (tmp_path / "objects/pack").mkdir(parents=True)
    return tmp_path


@pytest.fixture(autouse=True)
def bounded():
    """Whatever a test does takes little memory."""
    tracemalloc.start()
    yield
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < MOST_BYTES


def put(git_dir, content, oid=OID):
    path = git_dir / "objects" / oid[:2] / oid[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def packed(git_dir, *entries):
    """A pack of entries: name, kind, declared size, body, and place of the base."""
    writer = PackWriter(git_dir / "objects/pack")
    places = [writer.add(*entry(writer) if callable(entry) else entry) for entry in entries]
    return writer.finish(), places


def number(value):
    return delta._size(value)


def copies(base_bytes, size):
    """A delta that copies the beginning of its base again and again."""
    piece = bytearray()
    delta._copy(piece, 0, 0x10000)
    return number(base_bytes) + number(size) + bytes(piece) * (size // 0x10000)


# --- loose objects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LARGEST)
def test_a_loose_object_that_declares_too_much_is_not_inflated(git_dir, kind):
    path = put(git_dir, stream(f"{kind} {3 << 30}\0".encode(), 64 << 20))
    with pytest.raises(ObjectTooLarge, match=rf"a {kind} of 3,221,225,472 bytes, over the limit"):
        read_loose(path, OID)
    with pytest.raises(ObjectTooLarge):
        ObjectReader(git_dir).read(OID)


@pytest.mark.parametrize("size", [0, 10, 1 << 20])
def test_a_loose_object_that_inflates_to_more_than_it_declares_is_damaged(git_dir, size):
    path = put(git_dir, stream(b"blob %d\0" % size, 256 << 20))
    with pytest.raises(ObjectDamaged, match=f"does not inflate to {size:,} bytes"):
        read_loose(path, OID)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"blob",
        b"blob 3",
        b"blob -1\0",
        b"blob 01\0abc",
        b"blob 3 \0abc",
        b"blob 1e9\0",
        b"blob \xd9\xa3\0abc",
        b"snake 3\0abc",
        b"blob 99999999999999999999\0",
        b"blob 4\0abc",
        b"blob 2\0abc",
        b"x" * 10_000,
    ],
)
def test_a_loose_object_with_another_header_is_damaged(git_dir, header):
    for content in (zlib.compress(header), stream(header, 64 << 20)):
        with pytest.raises(ObjectDamaged):
            read_loose(put(git_dir, content), hashlib.sha1(header).hexdigest())


def test_a_loose_object_of_empty_blocks_ends(git_dir):
    """Compressed bytes that inflate to nothing."""
    packer = zlib.compressobj(9)
    begin = packer.compress(b"blob 3\0abc") + packer.flush(zlib.Z_FULL_FLUSH)
    with pytest.raises(ObjectDamaged):
        read_loose(put(git_dir, begin + packer.flush(zlib.Z_FULL_FLUSH) + b"\0\0\0\xff\xff" * 1_000_000), OID)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, (1 << 18) - 7, 1 << 18, (1 << 18) + 1, 3_000_000])
def test_a_whole_object_of_any_size_is_read(git_dir, size):
    for content in (bytes(size), bytes(range(256)) * (size // 256 + 1)):
        oid = write_blob(git_dir, content)
        assert ObjectReader(git_dir).read(oid) == ("blob", content)


def test_an_object_up_to_the_limit_is_read(git_dir, monkeypatch):
    monkeypatch.setitem(LARGEST, "blob", 100)
    assert ObjectReader(git_dir).read(write_blob(git_dir, b"x" * 100))[1] == b"x" * 100
    path = put(git_dir, zlib.compress(b"blob 101\0" + b"x" * 101))
    with pytest.raises(ObjectTooLarge):
        read_loose(path, OID)


def test_an_object_that_is_too_large_is_told_of(git_dir):
    path = put(git_dir, stream(b"blob %d\0" % (3 << 30), 16 << 20))
    fault = loose_fault(git_dir, OID, path)
    assert fault is not None
    assert "over the size limit" in fault.what
    assert fault.whole


def test_the_packer_leaves_bombs_where_they_are(git_dir):
    paths = [
        put(git_dir, stream(b"tree %d\0" % (3 << 30), 64 << 20), OID),
        put(git_dir, stream(b"blob 3\0", 256 << 20), "cd" * 20),
        put(git_dir, stream(b"commit 3\0", 256 << 20), "ef" * 20),
    ]
    (git_dir / "HEAD").write_text(f"{OID}\n")
    (git_dir / "packed-refs").write_text(f"{'cd' * 20} refs/heads/a\n{'ef' * 20} refs/heads/b\n")
    report = Packer(git_dir).run()
    assert set(report.damaged) == {OID, "cd" * 20, "ef" * 20}
    assert all(path.exists() for path in paths)


# --- packs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_object_that_declares_too_much_is_not_inflated(git_dir, kind):
    packed(git_dir, (bytes.fromhex(OID), KINDS[kind], 3 << 30, stream(b"", 64 << 20)))
    with pytest.raises(ObjectTooLarge, match=f"a {kind} of 3,221,225,472"):
        ObjectReader(git_dir).read(OID)


def test_a_packed_object_that_inflates_to_more_than_it_declares_is_damaged(git_dir):
    pack, _ = packed(git_dir, (bytes.fromhex(OID), KINDS["blob"], 10, stream(b"", 256 << 20)))
    with pytest.raises(ObjectDamaged):
        ObjectReader(git_dir).read(OID)
    assert salvage(git_dir, pack) == (0, 1)


@pytest.mark.parametrize("how", ["result", "delta", "base", "lie", "inserts"])
def test_a_delta_bomb_is_not_applied(git_dir, how):
    base, base_oid = bytes(0x10000), bytes.fromhex("11" * 20)
    size = {"base": 3 << 30}.get(how, len(base))
    made = {
        "result": copies(len(base), 3 << 30)[:1_000_000],
        "base": copies(3 << 30, 0x10000),
        "lie": copies(len(base), 0x10000) + copies(len(base), 256 << 20)[6:],
        "inserts": number(len(base)) + number(0x10000) + b"\1a" * 100_000,
    }.get(how, b"")
    declared, body = (3 << 30, stream(b"", 64 << 20)) if how == "delta" else (len(made), zlib.compress(made))
    writer = PackWriter(git_dir / "objects/pack")
    at = writer.add(base_oid, KINDS["blob"], size, zlib.compress(base))
    writer.add(bytes.fromhex(OID), OFFSET_DELTA, declared, body, at)
    pack = writer.finish()
    with pytest.raises(ObjectDamaged):
        ObjectReader(git_dir).read(OID)
    salvage(git_dir, pack)
    assert ObjectReader(git_dir).exists(OID)


def test_a_long_chain_of_deltas_is_bounded_as_a_whole(git_dir, monkeypatch):
    """Each result is within the limit; all of them together are not."""
    monkeypatch.setattr("agentx.storage.git.pack_file._CHAIN_BYTES", 64 << 20)
    size = 4 << 20
    writer = PackWriter(git_dir / "objects/pack")
    at = writer.add(bytes.fromhex("11" * 20), KINDS["blob"], size, zlib.compress(bytes(size)))
    made = copies(size, size)
    for step in range(200):
        at = writer.add(step.to_bytes(20, "big"), OFFSET_DELTA, len(made), zlib.compress(made), at)
    writer.finish()
    with pytest.raises(ObjectTooLarge, match="a chain of deltas of more than"):
        ObjectReader(git_dir).read((199).to_bytes(20, "big").hex())


@pytest.mark.parametrize("seed", range(5))
def test_a_delta_of_any_content_is_applied(git_dir, seed):
    """A table of Huffman codes comes before the sizes."""
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randrange(1, 9)) for _ in range(150)]
    base, target = (b"".join(chance.choices(words, k=5_000)) for _ in range(2))
    made = delta.delta(base, target)
    oid = blob_id(target)
    writer = PackWriter(git_dir / "objects/pack")
    at = writer.add(bytes.fromhex(blob_id(base)), KINDS["blob"], len(base), zlib.compress(base))
    writer.add(bytes.fromhex(oid), OFFSET_DELTA, len(made), zlib.compress(made, 9), at)
    writer.finish()
    assert ObjectReader(git_dir).read(oid) == ("blob", target)


@pytest.mark.parametrize("names", [(OID,), (OID, "cd" * 20), (OID, "cd" * 20, "ef" * 20)])
def test_deltas_that_lead_round_in_a_circle_end(git_dir, names):
    made = zlib.compress(copies(3, 3))
    writer = PackWriter(git_dir / "objects/pack")
    for name, base in zip(names, (*names[1:], names[0]), strict=True):
        writer.add(bytes.fromhex(name), NAMED_DELTA, 3, bytes.fromhex(base) + made)
    pack = writer.finish()
    with pytest.raises(ObjectDamaged, match="has no base"):
        ObjectReader(git_dir).read(OID)
    assert salvage(git_dir, pack) == (0, len(names))


def test_a_chain_longer_than_git_makes_is_refused(git_dir):
    writer = PackWriter(git_dir / "objects/pack")
    at = writer.add(bytes.fromhex("11" * 20), KINDS["blob"], 3, zlib.compress(b"abc"))
    made = zlib.compress(b"\3\3\x90\3")
    for step in range(4_200):
        at = writer.add(step.to_bytes(20, "big"), OFFSET_DELTA, 4, made, at)
    writer.finish()
    with pytest.raises(ObjectDamaged, match="has no base"):
        ObjectReader(git_dir).read((4_199).to_bytes(20, "big").hex())


@pytest.mark.parametrize(
    "made",
    [
        b"",
        b"\3",
        b"\3\3",
        b"\4\3\x90\3",
        b"\3\4\x90\3",
        b"\3\2\x90\3",
        b"\3\3\0",
        b"\3\3\5ab",
        b"\3\3\x90",
        b"\3\3\x91\2\3",
        b"\xff" * 30,
    ],
)
def test_a_delta_that_is_not_one_is_damaged(made):
    with pytest.raises(ObjectDamaged):
        delta.apply(b"abc", made)


def test_the_packer_merges_no_bomb(git_dir):
    """A pack whose object lies about its size stays as it is."""
    pack, _ = packed(git_dir, (bytes.fromhex(OID), KINDS["blob"], 10, stream(b"", 256 << 20)))
    for text in ("one", "two", "three"):
        oid = write_blob(git_dir, text.encode())
        with (git_dir / "packed-refs").open("a") as refs:
            refs.write(f"{oid} refs/heads/{text}\n")
    report = Packer(git_dir).run()
    assert pack.exists()
    assert report.packs == 2
    assert report.damaged
