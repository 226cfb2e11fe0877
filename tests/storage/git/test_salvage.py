"""A damaged pack is taken apart by what its index says, also where offsets have 64 bits."""

import hashlib
import subprocess
import sys
import zlib

import pytest

from agentx.storage.git.delta import delta
from agentx.storage.git.objects import blob_id
from agentx.storage.git.pack_file import KINDS, NAMED_DELTA, OFFSET_DELTA, PackWriter, read_entry
from agentx.storage.git.packs import salvage as module
from agentx.storage.git.packs.salvage import salvage


@pytest.mark.parametrize("limit", ["0x7fffffff", "0x20"])
def test_every_whole_object_behind_a_damaged_one_is_found_by_the_index(tmp_path, limit):
    """Git writes offsets from ``limit`` on into the table of large offsets, as it does beyond 2 GB."""

    def git(*arguments, **named):
        done = subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True, **named)
        return done.stdout.decode()

    git("init", "-q")
    texts = [hashlib.sha256(str(number).encode()).hexdigest().encode() * 9 for number in range(40)]
    names = [git("hash-object", "-w", "--stdin", input=text).strip() for text in texts]
    name = git(
        "pack-objects", "-q", "--window=0", ".git/objects/pack/pack", input="\n".join(names).encode()
    ).strip()
    pack = tmp_path / f".git/objects/pack/pack-{name}.pack"
    index = pack.with_suffix(".idx")
    index.unlink()
    git("index-pack", f"--index-version=2,{limit}", str(pack))
    lines = (line.split() for line in git("show-index", input=index.read_bytes()).splitlines())
    offsets = sorted((int(offset), oid) for offset, oid, *_ in lines)
    git("prune-packed", "-q")
    content = bytearray(pack.read_bytes())
    begin, damaged = offsets[3]
    content[begin : offsets[4][0]] = bytes(offsets[4][0] - begin)
    pack.chmod(0o644)
    pack.write_bytes(content)
    assert salvage(tmp_path / ".git", pack) == (39, 1)
    for oid, text in zip(names, texts, strict=True):
        path = tmp_path / ".git/objects" / oid[:2] / oid[2:]
        assert path.exists() is (oid != damaged), text


def chain(git_dir, length, kind=OFFSET_DELTA):
    """A pack of one object and a chain of deltas, each against the one before."""
    (git_dir / "objects/pack").mkdir(parents=True)
    writer = PackWriter(git_dir / "objects/pack")
    before = b"the first version of a text\n"
    at = writer.add(bytes.fromhex(blob_id(before)), KINDS["blob"], len(before), zlib.compress(before))
    for number in range(length):
        text = before + b"line %d\n" % number
        made, name = delta(before, text), bytes.fromhex(blob_id(before)) if kind == NAMED_DELTA else b""
        at = writer.add(bytes.fromhex(blob_id(text)), kind, len(made), name + zlib.compress(made), at)
        before = text
    return writer.finish()


@pytest.mark.parametrize("kind", [OFFSET_DELTA, NAMED_DELTA])
def test_the_work_grows_with_the_number_of_objects_not_with_its_square(tmp_path, kind):
    calls = []
    for length in (50, 200):
        git_dir = tmp_path / str(length)
        pack = chain(git_dir, length, kind)
        counted = 0

        def count(_frame, event, _argument):
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            saved = salvage(git_dir, pack)
        finally:
            sys.setprofile(None)
        assert saved == (length + 1, 0)
        calls.append(counted)
    assert calls[1] < 4.4 * calls[0]


def test_each_offset_is_tried_once_though_much_is_damaged(tmp_path, monkeypatch):
    pack = chain(tmp_path, 40)
    content = bytearray(pack.read_bytes())
    content[14:-20] = bytes(len(content) - 34)
    pack.chmod(0o644)
    pack.write_bytes(content)
    tried = []
    monkeypatch.setattr(module, "read_entry", lambda _data, at: tried.append(at) or read_entry(_data, at))
    assert salvage(tmp_path, pack) == (0, 41)
    assert len(tried) == len(set(tried)) == 41
