"""A damaged pack is taken apart by what its index says, also where offsets have 64 bits."""

import hashlib
import subprocess

import pytest

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
