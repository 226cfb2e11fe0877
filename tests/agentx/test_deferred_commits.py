"""Commits that wait in memory to be written together: nobody sees disorder, and nothing is lost."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agentx import Workspace
from agentx.recording import write_path
from agentx.storage.git.growing_pack import GrowingPack
from agentx.storage.git.objects import object_id
from agentx.storage.git.pack_file import Pack

_WRITES = 12


def _text(ws, seq):
    """The content that the event wrote."""
    (event,) = [event for event in ws.events(after=seq - 1) if event.seq == seq]
    return ws.engine.git.repo.read_blob(event.data.changes[0].after).decode()


@pytest.fixture
def slow(monkeypatch):
    """Commits stay in memory until something else writes them."""
    monkeypatch.setattr(write_path, "LAG_S", 3_600)
    monkeypatch.setattr(write_path, "_SOON_S", 3_600)


def _git(ws, *arguments):
    return subprocess.check_output(["git", "-C", ws.root, *arguments], text=True).strip()


def _packs(ws):
    return list(ws.root.glob(".git/objects/pack/*.pack"))


def _write(ws, count=_WRITES):
    for number in range(count):
        ws.tools.write_file(f"f{number % 3}.txt", f"content {number}\n")


def test_each_write_becomes_a_commit_and_all_of_them_one_pack(ws, slow):
    ws.flush()
    before, packs = int(_git(ws, "rev-list", "--count", "HEAD")), len(_packs(ws))
    _write(ws)
    assert int(_git(ws, "rev-list", "--count", "HEAD")) == before
    ws.flush()
    assert int(_git(ws, "rev-list", "--count", "HEAD")) == before + _WRITES
    assert len(_packs(ws)) == packs + 1
    assert _git(ws, "fsck", "--strict", "--no-dangling") == ""
    assert _git(ws, "status", "--porcelain") == ""
    assert len(_git(ws, "reflog", "--format=%H").splitlines()) >= _WRITES
    assert not list(ws.root.glob(".git/objects/pack/*.keep"))


def test_git_sees_a_commit_soon_after_the_write(ws):
    _write(ws, 1)
    wanted = ws.engine.git.head
    deadline = time.monotonic() + 30
    while _git(ws, "rev-parse", "HEAD") != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _git(ws, "rev-parse", "HEAD") == wanted


def test_another_process_finds_a_commit_for_each_write(ws, slow, elsewhere):
    ws.flush()
    before = int(_git(ws, "rev-list", "--count", "HEAD"))
    _write(ws)
    found = elsewhere(
        ws, "print(ws.state.seq, sum(1 for _ in ws.engine.git.repo.log()), ws.engine.git.pending)"
    )
    assert found == f"{ws.state.seq} {before + _WRITES} []"


def test_two_open_workspaces_that_write_in_turn_wait_for_each_other(ws, slow, lexical):
    with Workspace.open(ws.root, settings=lexical) as other:
        for number in range(6):
            ws.tools.write_file("ours.txt", f"{number}\n")
            other.tools.write_file("theirs.txt", f"{number}\n")
        assert other.tools.read_file("ours.txt").text == "5"
    ws.flush()
    assert ws.verify().sound
    assert _git(ws, "fsck", "--strict", "--no-dangling") == ""


def test_a_branch_that_git_moved_meanwhile_is_followed(ws, slow):
    ws.tools.write_file("a.txt", "one\n")
    ws.flush()
    ws.tools.write_file("a.txt", "two\n")
    tree, parent = _git(ws, "rev-parse", "HEAD^{tree}"), _git(ws, "rev-parse", "HEAD")
    theirs = _git(
        ws, "-c", "user.name=Pat", "-c", "user.email=p@x", "commit-tree", tree, "-p", parent, "-m", "Theirs"
    )
    _git(ws, "update-ref", "refs/heads/main", theirs)
    ws.flush()
    assert _git(ws, "log", "-2", "--format=%H").splitlines()[1] == theirs
    assert _git(ws, "show", "HEAD:artifacts/a.txt") == "two"
    assert ws.verify().sound


_DIES = """
import os, sys
from agentx import Workspace
from agentx.recording import write_path
write_path.LAG_S = write_path._SOON_S = 3_600
ws = Workspace.open(sys.argv[1])
for number in range(12):
    print(ws.tools.write_file("a.txt", f"content {number}\\n").seq, flush=True)
    ws.tools.write_file(f"f{number % 3}.txt", f"content {number}\\n")
os.kill(os.getpid(), 9)
"""


def test_what_was_in_memory_when_its_process_died_is_committed_by_the_next(ws):
    ws.close()
    done = subprocess.run([sys.executable, "-c", _DIES, ws.root], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    seqs = [int(line) for line in done.stdout.split()]
    with Workspace.open(ws.root) as again:
        assert [_text(again, seq) for seq in seqs] == [f"content {n}\n" for n in range(12)]
        assert again.verify().sound
    assert _git(again, "fsck", "--strict", "--no-dangling") == ""
    clone = ws.root.parent / "clone"
    subprocess.run(["git", "clone", "-q", ws.root, clone], check=True)
    with Workspace.open(clone) as cloned:  # each content is reachable from the branch
        assert _text(cloned, seqs[0]) == "content 0\n"


def test_a_live_process_commits_what_another_had_in_memory_when_it_died(ws):
    done = subprocess.run([sys.executable, "-c", _DIES, ws.root], capture_output=True, text=True, check=False)
    first = int(done.stdout.split()[0])
    ws.tools.write_file("more.txt", "more\n")
    ws.flush()
    assert _text(ws, first) == "content 0\n"
    assert ws.verify().sound
    clone = ws.root.parent / "clone"
    subprocess.run(["git", "clone", "-q", ws.root, clone], check=True)
    with Workspace.open(clone) as cloned:
        assert _text(cloned, first) == "content 0\n"


def test_groups_of_commits_grow_one_pack_until_the_turn_ends(ws, slow):
    ws.flush()
    before = set(_packs(ws))
    for _ in range(3):
        _write(ws)
        with ws.engine.write_path.exclusive():
            ws.engine.git.write_deferred()
    assert len(set(_packs(ws)) - before) == 1
    ws.flush()
    _write(ws)
    ws.flush()
    assert len(set(_packs(ws)) - before) == 2  # what was synced is not replaced
    ws.flush()
    assert _git(ws, "fsck", "--strict", "--no-dangling") == ""


def test_a_single_commit_is_no_pack(ws, slow):
    ws.flush()
    packs = _packs(ws)
    _write(ws, 1)
    ws.flush()
    assert _packs(ws) == packs


def test_a_pack_whose_writer_died_is_released(ws):
    _write(ws)
    ws.flush()
    pack = _packs(ws)[0]
    keep = pack.with_suffix(".keep")
    keep.write_bytes(b"agentx\n")
    theirs = ws.root / ".git/objects/pack/pack-of-theirs.keep"
    theirs.write_bytes(b"mine\n")
    ws.close()
    Workspace.open(ws.root).close()
    assert not keep.exists()
    assert theirs.exists()


def test_an_object_is_a_delta_of_the_one_before_if_that_is_short(tmp_path):
    pack = GrowingPack(tmp_path)
    logs = [b"".join(b"line %d of the log\n" % n for n in range(count)) for count in range(100, 200)]
    for log in logs:
        pack.add(object_id("blob", log), "blob", log)
    path = pack.write()
    pack.release()
    assert path.stat().st_size < 30 * len(logs[0])
    with Pack(path) as found:
        assert [found.read(object_id("blob", log)) for log in logs] == [("blob", log) for log in logs]


def test_a_disk_that_is_full_for_a_moment_loses_no_commit(ws, slow, monkeypatch):
    _write(ws)

    def fail(_pack):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as full:
        full.setattr(GrowingPack, "write", fail)
        ws.engine.write_path.defer(None)  # tries, and keeps them
    _write(ws, 1)
    ws.flush()
    assert ws.verify().sound
    assert _git(ws, "fsck", "--strict", "--no-dangling") == ""
