"""A workspace whose Git objects inflate to gigabytes: every command ends in little memory, with a result or a sentence."""

import resource
import subprocess
import zlib
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.storage.git.exchange.remotes import RemoteFailed
from agentx.storage.git.objects import LARGEST
from agentx.transfer.push_pull import RemoteRefused

ROOM = 1 << 30
PLACES = (
    "HEAD",
    "HEAD^{tree}",
    "HEAD:artifacts",
    "HEAD:history.jsonl",
    "HEAD:artifacts/outlook.md",
    "HEAD~1",
)
LOOKS = (
    ["status"],
    ["log"],
    ["log", "outlook.md"],
    ["verify"],
    ["doctor"],
    ["diff", "HEAD~1"],
    ["search", "Revenue"],
    ["context", "Revenue"],
    ["memory", "list"],
)


@contextmanager
def little_memory():
    """A gigabyte more than is used now, for Python and libraries alike."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def git(root, *arguments):
    return subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def explode(root, oid, *, declared):
    """Put a bomb in the place of a loose object."""
    kind = git(root, "cat-file", "-t", oid)
    packer = zlib.compressobj(9)
    begin = packer.compress(f"{kind} {declared}\0".encode()) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    path = root / ".git/objects" / oid[:2] / oid[2:]
    path.unlink(missing_ok=True)
    path.write_bytes(begin + block * 3_000)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("declared", [3_000 << 20, 100])
@pytest.mark.parametrize("place", PLACES)
def test_every_look_at_a_workspace_with_a_bomb_ends_in_little_memory(root, call, place, declared):
    """The object of 3 MB that inflated to 3 GB took 5.9 GB on `status`."""
    explode(root, git(root, "rev-parse", place), declared=declared)
    (root / ".git/agentx-whole").unlink(missing_ok=True)
    with little_memory():
        for words in LOOKS:
            done = call(*words)
            assert "fault in AgentX" not in done.err + done.out, (words, done)
            assert "Traceback" not in done.err, (words, done)
            assert "MemoryError" not in done.err, (words, done)
        done = call("repair")
        assert "fault in AgentX" not in done.err + done.out, done


def test_a_pull_of_an_object_over_the_limit_is_refused(root, tmp_path, monkeypatch):
    """Git brings it, within its own limit of memory; it is not taken over."""
    bare = tmp_path / "backup.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    with Workspace.open(root) as ws:
        ws.push(url=str(bare))
        head = ws.engine.git.head
        monkeypatch.setitem(LARGEST, "tree", 5_000)
        big = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=bare, input=b"x", capture_output=True, check=True
        )
        rows = "".join(f"100644 blob {big.stdout.decode().strip()}\tfile{n}\n" for n in range(1_000))
        made = subprocess.run(
            ["git", "mktree"], cwd=bare, input=rows, text=True, capture_output=True, check=True
        )
        rows = git(bare, "ls-tree", head) + f"\n040000 tree {made.stdout.strip()}\tmore\n"
        top = subprocess.run(
            ["git", "mktree"], cwd=bare, input=rows, text=True, capture_output=True, check=True
        )
        who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
        tip = git(bare, *who, "commit-tree", top.stdout.strip(), "-p", head, "-m", "x")
        git(bare, "update-ref", "refs/heads/main", tip)
        with pytest.raises(RemoteRefused, match="over the limit"):
            ws.pull()
        assert ws.engine.git.head == head


def test_git_is_bounded_in_memory_too(root, tmp_path):
    """A tree of more than a gigabyte in a pack from elsewhere."""
    bare = tmp_path / "backup.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    with Workspace.open(root) as ws:
        ws.push(url=str(bare))
        tip = git(bare, "rev-parse", "main")
        rows = git(bare, "ls-tree", tip) + f"\n040000 tree {'ab' * 20}\tmore\n"
        top = subprocess.run(
            ["git", "mktree", "--missing"], cwd=bare, input=rows, text=True, capture_output=True, check=True
        )
        who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
        new = git(bare, *who, "commit-tree", top.stdout.strip(), "-p", tip, "-m", "x")
        git(bare, "update-ref", "refs/heads/main", new)
        packer = zlib.compressobj(9)
        begin = packer.compress(f"tree {3_000 << 20}\0".encode()) + packer.flush(zlib.Z_FULL_FLUSH)
        (bare / "objects/ab").mkdir(exist_ok=True)
        (bare / "objects/ab" / ("ab" * 19)).write_bytes(begin + packer.compress(bytes(1 << 20)))
        with pytest.raises(RemoteFailed, match="too large"):
            ws.pull()
