"""A fork has the history up to a moment, byte for byte and commit for commit, and shares nothing with where it came from."""

import os
import shutil
import subprocess
import sys
from itertools import takewhile

import pytest

from agentx import Workspace
from agentx.core.layout import is_workspace
from agentx.engine.moment_parser import NoSuchMoment
from agentx.settings import Settings
from agentx.storage.events.types import Draft, WorkspaceForked, WriteReverted
from agentx.storage.git.packs.packing import Packer
from agentx.storage.log.history import HistoryDamaged
from agentx.transfer.fork import ForkRefused

RULE = "From now on, never create a requirements.txt file."


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A workspace with a rule, a moved file, long texts and more than one sealed segment."""
    root = tmp_path_factory.mktemp("template") / "task"
    settings = Settings(environ=dict(os.environ), cache_dir=root.parent / "no-models")
    with Workspace.create(root, title="A task", settings=settings) as ws:
        ws.tools.write_file("a.txt", "one\n")
        ws.say(RULE)
        ws.tools.write_file("a.txt", "two\n")
        ws.tools.move_file("a.txt", "deep/b.txt")
        (ws.artifacts / "run.sh").write_bytes(b"#!/bin/sh\n")
        (ws.artifacts / "run.sh").chmod(0o755)
        (ws.artifacts / "link").symlink_to("run.sh")
        ws.status()
        for number in range(30):
            ws.say(f"{number} " + "x" * 5_000)
            ws.say(f"{number} " + "y" * 10_000)
        ws.say("Always write British English.")  # concluded, so opening has nothing to read again
        ws.tools.delete_file("deep/b.txt")
        ws.tools.write_file("deep/b.txt/c.txt", "three\n")
    assert (root / "history/000/002.jsonl").exists()
    return root


@pytest.fixture
def filled(template, tmp_path, lexical):
    """A copy of it, open."""
    root = shutil.copytree(template, tmp_path / "task", symlinks=True)
    with Workspace.open(root, settings=lexical) as ws:
        yield ws


def log_of(root):
    files = [*sorted(root.glob("history/[0-9]*/*.jsonl")), root / "history.jsonl"]
    return b"".join(path.read_bytes() for path in files).splitlines(keepends=True)


def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


def files(ws):
    return {
        path.relative_to(ws.artifacts).as_posix(): (
            path.is_symlink(),
            os.access(path, os.X_OK),
            path.read_bytes(),
        )
        for path in ws.artifacts.rglob("*")
        if path.is_file()
    }


def is_sound(root):
    assert git(root, "fsck", "--strict", "--no-progress", "--no-dangling") == ""
    assert git(root, "status", "--porcelain") == ""


def test_a_fork_of_now_has_all_of_it_and_an_event_of_its_own(filled, tmp_path):
    before = log_of(filled.root)
    with filled.fork(tmp_path / "new") as fork:
        assert log_of(fork.root)[: len(before)] == before
        mark = next(fork.events(after=len(before)))
        assert mark.data == WorkspaceForked(at=len(before), hash=filled.state.hash)
        assert fork.state_at(len(before)).digest == filled.state.digest
        assert files(fork) == files(filled)
        assert fork.status().outside == fork.status().damage == fork.status().notes == ()
        commits = git(filled.root, "rev-list", "main").split()
        assert git(fork.root, "rev-list", "main").split()[1:] == commits
        assert fork.rebuild().state_digest == fork.state.digest
    is_sound(tmp_path / "new")
    assert log_of(filled.root) == before


def test_a_fork_of_any_moment_is_as_it_was_then(filled, tmp_path):
    filled.restore(".", 2)
    filled.undo()
    last, whole = filled.state.seq, log_of(filled.root)
    held = {
        int(trailer.rpartition("-")[2]): commit
        for commit, trailer in (
            line.split()
            for line in git(
                filled.root, "log", "--format=%H %(trailers:key=AgentX-Event,valueonly,separator=)"
            ).splitlines()
        )
    }
    for at in [1, 2, 3, 4, 5, 8, *range(9, last, 30), last - 1]:
        root = tmp_path / f"fork-{at}"
        with filled.fork(root, at) as fork:
            assert log_of(root)[:at] == whole[:at]
            assert fork.state_at(at).digest == filled.state_at(at).digest
            got = files(fork)
            assert fork.status().outside == fork.status().damage == fork.status().notes == ()
        is_sound(root)
        base = held[max((through for through in held if through <= at), default=0)] if min(held) <= at else ""
        commits = git(root, "rev-list", "main").split()
        assert base in commits if base else len(commits) <= 2
        filled.restore(".", at)
        assert got == files(filled)
        filled.undo()


def test_a_fork_shares_no_file_with_where_it_came_from(filled, tmp_path):
    filled.fork(tmp_path / "new").close()
    inodes = {path.stat().st_ino for path in filled.root.rglob("*") if path.is_file()}
    forked = [path for path in (tmp_path / "new").rglob("*") if path.is_file() and not path.is_symlink()]
    assert not {path.stat().st_ino for path in forked} & inodes
    assert not (tmp_path / "new/.git/objects/info/alternates").exists()
    assert git(tmp_path / "new", "remote") == ""


@pytest.mark.parametrize("packed", [False, True])
def test_a_fork_holds_nothing_that_happened_later(filled, tmp_path, packed):
    then = filled.state.seq
    filled.tools.write_file("later.txt", "secret plans\n")
    filled.say("forget it")
    filled.flush()
    if packed:  # where the newer is the base of the older
        Packer(filled.root / ".git").run()
        assert not list((filled.root / ".git/objects").glob("??/*"))
    filled.fork(tmp_path / "new", then).close()
    reached = set(git(tmp_path / "new", "rev-list", "--objects", "--no-object-names", "--all").split())
    held = git(tmp_path / "new", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert set(held) == reached
    texts = [git(tmp_path / "new", "cat-file", "-p", oid) for oid in held]
    assert not [
        text for text in texts if "later.txt" in text or "forget it" in text or "secret plans" in text
    ]


def test_what_a_fork_copies_is_counted(filled, tmp_path):
    told = []
    filled.fork(tmp_path / "new", progress=lambda *done: told.append(done)).close()
    commits = git(filled.root, "rev-list", "main").split()
    copied = git(filled.root, "rev-list", "--objects", "--no-object-names", commits[0]).split()
    assert ("Writing objects", len(copied), len(copied)) in told


def test_work_in_a_fork_and_in_the_other_goes_apart(filled, tmp_path):
    with filled.fork(tmp_path / "new") as fork, filled.fork(tmp_path / "other") as other:
        fork.tools.write_file("a.txt", "fork\n")
        filled.tools.write_file("a.txt", "here\n")
        assert (fork.artifacts / "a.txt").read_text() == "fork\n"
        assert (filled.artifacts / "a.txt").read_text() == "here\n"
        marks = [
            event.hash
            for ws in (fork, other)
            for event in ws.events()
            if isinstance(event.data, WorkspaceForked)
        ]
        assert len(set(marks)) == 2
        with fork.fork(tmp_path / "grandchild") as grandchild:
            assert [e.type for e in grandchild.events()].count("WorkspaceForked") == 2


def test_what_a_person_edited_is_on_record_before_the_fork(filled, tmp_path):
    (filled.artifacts / "mine.txt").write_text("mine\n")
    with filled.fork(tmp_path / "new") as fork:
        assert fork.tools.read_file("mine.txt").text == "mine"
        assert fork.status().outside == ()


def test_what_is_concluded_only_later_is_concluded_anew(filled, tmp_path):
    said = next(e.seq for e in filled.events() if e.type == "UserMessageSent")
    with filled.fork(tmp_path / "new", said) as fork:
        assert [item.text for item in fork.memory("constraint")] == [RULE]


def test_a_write_that_came_to_nothing_is_none_in_the_fork(filled, tmp_path):
    lost = filled.tools.write_file("lost.txt", "never\n")
    (filled.artifacts / "lost.txt").unlink()
    reverted = WriteReverted(event=lost.seq, path="lost.txt", reason="a full disk")
    filled.record(Draft(data=reverted, actor="engine:recovery"))
    filled.say("go on")
    with filled.fork(tmp_path / "new", lost.seq) as fork:
        assert next(fork.events(after=lost.seq + 1)).data == reverted


def test_a_fork_of_a_task_beside_a_project_has_the_files_itself(tmp_path, lexical):
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("print()\n")
    with Workspace.create(project / ".task", artifacts="..", settings=lexical) as ws:
        with ws.fork(tmp_path / "new") as fork:
            fork.tools.write_file("main.py", "print(1)\n")
            assert fork.artifacts == tmp_path / "new/artifacts"
            assert fork.status().outside == ()
        assert (project / "main.py").read_text() == "print()\n"
        with pytest.raises(ForkRefused, match="inside the workspace"):
            ws.fork(project / "below")


def test_a_fork_is_made_where_nothing_lies(filled, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    (tmp_path / "empty").mkdir()
    for place, why in (("full", "already exists"), ("task/artifacts/sub", "inside"), ("task", "inside")):
        with pytest.raises(ForkRefused, match=why):
            filled.fork(tmp_path / place)
    for at in (0, -1, filled.state.seq + 9):
        with pytest.raises(NoSuchMoment):
            filled.fork(tmp_path / "new", at)
    assert not (tmp_path / "new").exists()
    filled.fork(tmp_path / "empty").close()
    filled.fork(tmp_path / "below/deep").close()
    assert [path.name for path in tmp_path.glob(".agentx-tmp*")] == []


def test_a_damaged_history_is_not_forked(filled, tmp_path):
    git(filled.root, "rev-parse", "HEAD")
    segment = filled.root / "history/000/001.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    filled.close()
    segment.write_bytes(b"".join([lines[0], lines[1].replace(b"a.txt", b"b.txt"), *lines[2:]]))
    person = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
    git(filled.root, "add", "history")
    git(filled.root, *person, "commit", "-qm", "Change what happened")
    with Workspace.open(filled.root, settings=filled.settings) as ws, pytest.raises(HistoryDamaged):
        ws.fork(tmp_path / "new")
    assert not is_workspace(tmp_path / "new")


KILLED = """
import os, sys, time
from agentx import Workspace
from agentx.transfer import fork as forks
from agentx.storage.files import nofollow
from pathlib import Path
step, seen = int(sys.argv[3]), 0
nofollow._at_once = lambda: nofollow._step_by_step  # whose calls an audit hook hears
def counted(event, arguments):
    global seen
    if event in ("open", "os.mkdir", "os.rename"):
        if any(name.startswith(".agentx-tmp-fork-new") for name in os.listdir(os.path.dirname(sys.argv[2]))):
            seen += 1
            if seen == step:
                os._exit(9)
ws = Workspace.open(sys.argv[1])
sys.addaudithook(counted)
ws.fork(Path(sys.argv[2])).close()
ws.close()
"""


def test_a_fork_that_was_cut_off_leaves_no_half_of_one(filled, tmp_path, lexical, in_a_process):
    root, new = filled.root, tmp_path / "new"
    filled.close()
    environ = {**os.environ, "AGENTX_CACHE_DIR": str(tmp_path / "no-models")}
    for step in (1, 5, 20, 60, 150, 300):
        done = in_a_process(KILLED, root, new, step, environ=environ)
        assert done.returncode == 9, done.stderr
        assert not new.exists()
    with Workspace.open(root, settings=lexical) as ws, ws.fork(new) as fork:
        assert fork.state_at(ws.state.seq).digest == ws.state.digest
    assert [path.name for path in tmp_path.glob(".agentx-tmp*")] == []


def test_a_fork_beside_a_writer_is_of_one_moment(ws, elsewhere, tmp_path):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = (
        "import sys\nfrom agentx import Workspace\nws = Workspace.open(sys.argv[1])\nn = 0\n"
        "while True:\n    n += 1\n    ws.tools.write_file(f'{n % 7}.txt', str(n))\n    print(n, flush=True)\n"
    )
    environ["AGENTX_CACHE_DIR"] = str(tmp_path / "no-models")
    command = [sys.executable, "-c", code, str(ws.root)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as writer:
        try:
            for number in range(3):
                list(takewhile(lambda line: int(line) % 5, writer.stdout))
                with ws.fork(tmp_path / f"fork-{number}") as fork:
                    assert fork.status().outside == fork.status().damage == ()
                    at = next(e.data.at for e in fork.events() if isinstance(e.data, WorkspaceForked))
                    assert fork.state_at(at).digest == ws.state_at(at).digest
                is_sound(tmp_path / f"fork-{number}")
        finally:
            writer.kill()
