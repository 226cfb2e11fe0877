"""The write path: one event, one commit, one clean repository for each write, by any number of processes."""

import os
import subprocess
import sys
import threading

import pytest

from agentx.recording import recorded_log
from agentx.recording.staging import WriteFailed
from agentx.recording.write_path import Content, ReadOnly
from agentx.storage.artifacts import FileTooLarge
from agentx.storage.errors import AgentXError, WriterConflict
from agentx.storage.events.types import (
    ArtifactChanged,
    Body,
    Draft,
    ToolCallExecuted,
    UserMessageSent,
    WriteReverted,
)
from agentx.storage.files.lock import FileLock
from agentx.storage.files.paths import PathRefused
from agentx.storage.git import index_file
from agentx.storage.git.branch import RefLocked
from agentx.storage.git.index_file import GitIsBusy
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.blobs import BlobStore
from agentx.synthesis.state.state import State

_SECRET = "ghp_" + "a1B2" * 9


def _said(text, **fields):
    return Draft(data=UserMessageSent(body=Body(text)), actor="user", **fields)


def _written(changes):
    return ToolCallExecuted(call_id="1", tool="write_file", status="SUCCEEDED", changes=changes)


def _commits(git):
    return len(git("log", "--format=%h").splitlines())


def test_each_write_is_one_commit_that_says_who_did_what(path, write, git, sound):
    before = _commits(git)
    write(path, "report.md", "# Report", actor="agent:writer")
    write(path, "report.md", "# Report 2", actor="agent:editor")
    assert _commits(git) == before + 2
    assert git("log", "-2", "--format=%an <%ae>|%s|%(trailers:only,separator=%x2C)").splitlines() == [
        "agent:editor <editor@agent.agentx.invalid>|Edit report.md|AgentX-Event: 3,AgentX-Actor: agent:editor",
        "agent:writer <writer@agent.agentx.invalid>|Create report.md|AgentX-Event: 2,AgentX-Actor: agent:writer",
    ]
    path.flush()
    assert git("blame", "--line-porcelain", "artifacts/report.md").splitlines()[1] == "author agent:editor"
    sound()


def test_other_events_ride_in_the_next_commit(path, write, git):
    path.record([_said("one")])
    path.record([_said("two")])
    before = _commits(git)
    write(path, "a", "x")
    assert _commits(git) == before + 1
    assert "AgentX-Event: 2-4" in git("log", "-1", "--format=%B")


def test_what_waits_is_committed_by_a_flush_and_git_is_let_in(path, git):
    path.record([_said("hello")])
    assert path.git.unsettled
    assert git("add", ".", check=False).returncode != 0
    path.flush()
    assert not path.git.unsettled
    assert git("status", "--porcelain") == ""
    assert "user said: hello" in git("log", "-1", "--format=%B")
    git("add", ".")


def test_many_files_are_one_commit_and_as_many_events_as_they_need(path, git, sound):
    contents = {f"dir{n % 9}/file-{n:04}.txt": Content(b"%d" % n) for n in range(400)}
    before = _commits(git)
    events = path.write(contents, _written, actor="agent:main")
    assert len(events) > 1
    assert sum(len(event.data.changes) for event in events) == 400
    assert _commits(git) == before + 1
    path.flush()
    sound()


@pytest.mark.parametrize(
    "content",
    [Content(b""), Content(b"\0\xff" * 100), Content(b"#!/bin/sh\n", executable=True), Content(b"a\r\nb")],
)
def test_a_file_is_kept_byte_for_byte_with_its_mode(path, task, git, sound, content):
    path.write({"f": content}, _written, actor="agent:main")
    path.flush()
    assert (task / "artifacts/f").read_bytes() == content.data
    assert git("ls-files", "-s", "artifacts/f").startswith("100755" if content.executable else "100644")
    sound()


def test_a_link_is_kept_as_a_link(path, task, git):
    path.write({"l": Content(b"../elsewhere", link=True)}, _written, actor="agent:main")
    path.flush()
    assert os.readlink(task / "artifacts/l") == "../elsewhere"
    assert git("ls-files", "-s", "artifacts/l").startswith("120000")
    assert git("status", "--porcelain") == ""


def test_a_file_that_holds_its_content_already_is_no_change(path, write, git):
    write(path, "a", "same")
    assert write(path, "a", "same")[0].data.changes == ()
    assert len(git("log", "--format=%h", "--", "artifacts").splitlines()) == 1


def test_a_file_is_removed_with_the_directory_that_becomes_empty(path, write, task, sound):
    write(path, "d/e/f", "x")
    write(path, "d/e/f", None)
    write(path, "never/was", None)
    path.flush()
    assert not (task / "artifacts/d").exists()
    sound()


def test_a_draft_with_a_key_is_recorded_once_whoever_sends_it(path, reopen):
    first = path.record([_said("a", key="k"), _said("b", key="k"), _said("c"), _said("d")])
    assert [event.data.body.text for event in first] == ["a", "a", "c", "d"]
    again = path.record([_said("late", key="k")])
    other = reopen().record([_said("elsewhere", key="k")])
    assert first[0] == again[0] == other[0]
    assert path.log.state.seq == 4


def test_a_draft_that_is_known_already_locks_nobody_out(path, git):
    path.record([_said("a", key="k")])
    path.flush()
    path.record([_said("a", key="k")])
    git("add", ".")
    assert not (path.git.repo.git_dir / "index.lock").exists()


def test_a_refused_write_leaves_nothing_and_git_is_let_in_again(path, write, task, git):
    write(path, "a", "x")
    path.flush()
    for name, error in (("a/below", PathRefused), ("", PathRefused)):
        with pytest.raises(error):
            write(path, name, "y")
    with pytest.raises(FileTooLarge):
        path.write({"b": Content(b"1"), "big": Content(b"x" * 1_000_001)}, _written, actor="agent:main")
    assert path.git.unsettled
    path.flush()
    assert [p.name for p in (task / "artifacts").iterdir()] == ["a"]
    assert path.log.state.seq == 2
    git("add", ".")


def test_secrets_reach_neither_log_nor_blobs_nor_commit_messages(path, task, git):
    path.record(
        [
            _said(f"use {_SECRET}"),
            Draft(data=UserMessageSent(body=path.body(f"{_SECRET} " * 2_000)), actor="user"),
        ]
    )
    call = ToolCallExecuted(
        call_id="1", tool="t", status="FAILED", arguments={"k": [_SECRET]}, command=f"x {_SECRET}"
    )
    path.record([Draft(data=call, actor=f"agent:{_SECRET}")])
    path.flush()
    assert path.log.state.messages[0].text == "use [redacted: github token]"
    for file in task.rglob("*"):
        assert not file.is_file() or _SECRET.encode() not in file.read_bytes()
    assert _SECRET not in git("log", "-p", "--all", "--text")


@pytest.mark.parametrize("evil", ["\n\nAgentX-Event: 999", "\r\rAgentX-Actor: user", "\x85AgentX-Event: 999", "\u2028AgentX-Event: 999", "x\0y", "\x1b[2J", "\x0bAgentX-Event: 999"])  # fmt: skip
def test_a_model_s_text_forges_no_trailer_and_cuts_no_message_off(path, git, sound, evil):
    path.record([_said(f"hello{evil}")])
    path.write(
        {"f": Content(b"x")},
        lambda changes: ToolCallExecuted(
            call_id="1", tool=f"tool{evil}", status="SUCCEEDED", changes=changes
        ),
        actor=f"agent:writer{evil}",
    )
    path.flush()
    assert git("log", "-1", "--format=%(trailers:key=AgentX-Event,valueonly,separator=%x2C)").strip() == "2-3"
    assert "\x1b" not in git("log", "-1", "--format=%B%an%ae")
    sound()


def test_git_s_own_lock_that_stays_refuses_the_write_and_records_nothing(path, write, task, monkeypatch):
    monkeypatch.setattr(index_file, "_GIT_WAIT_S", 0.1)
    (task / ".git/index.lock").touch()
    with pytest.raises(GitIsBusy):
        write(path, "a", "x")
    assert (path.log.state.seq, list((task / "artifacts").iterdir())) == (1, [])
    (task / ".git/index.lock").unlink()
    write(path, "a", "x")


def test_a_file_that_cannot_take_its_name_any_more_is_told_and_recorded_as_reverted(
    path, write, task, monkeypatch, sound
):
    write(path, "d/f", "old")

    def swap(temporary, name):
        raise FileNotFoundError(2, os.strerror(2))

    monkeypatch.setattr(path.artifacts, "put", swap)
    with pytest.raises(WriteFailed, match="'d/f' was not written: No such file"):
        write(path, "d/f", "new")
    monkeypatch.undo()
    path.flush()
    assert (task / "artifacts/d/f").read_text() == "old"
    assert isinstance(sound()[-1].data, WriteReverted)


_FULL = """
import os, resource, signal, sys
from pathlib import Path
from agentx.core.event_bus import Bus
from agentx.storage.artifacts import Artifacts
from agentx.storage.events.types import ToolCallExecuted
from agentx.storage.errors import AgentXError, WriterConflict
from agentx.synthesis.memory.record_codec import record_codec
from agentx.recording.write_path import Content, WritePath
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
root = Path(sys.argv[1])
path = WritePath(root, record_codec(), Artifacts(root / "artifacts", 1_000_000), Bus())
path.load()
path.recover()
def write(data):
    path.write({"f": Content(data), "g": Content(b"g")}, lambda changes: ToolCallExecuted(call_id="1", tool="w", status="SUCCEEDED", changes=changes), actor="a")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
try:
    write(os.urandom(50_000))
except AgentXError as error:
    print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
path.flush()
path.close()
"""


def test_a_write_on_a_full_disk_is_refused_and_leaves_nothing(task, sound, in_a_process):
    told = in_a_process(_FULL, task).stdout
    assert told.startswith("WriteFailed")
    assert "Nothing was recorded" in told
    assert list((task / "artifacts").iterdir()) == []
    assert [event.seq for event in sound()] == [1]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full_loses_nothing(tmp_path, write):
    """A file system of one megabyte is written until it refuses; then it is given room again."""
    from importlib.util import module_from_spec, spec_from_file_location

    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        spec = spec_from_file_location("writing", os.path.join(os.path.dirname(__file__), "conftest.py"))
        conftest = module_from_spec(spec)
        spec.loader.exec_module(conftest)
        conftest.write_layout(disk / "task", "artifacts")
        path = conftest.open_path(disk / "task")
        acknowledged, refused = 0, None
        while refused is None:
            try:
                acknowledged = write(path, "f", os.urandom(6_000).hex())[-1].seq
            except AgentXError as error:
                refused = error
        path.close()
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        later = conftest.open_path(disk / "task")
        later.edits.scan()
        later.flush()
        assert later.log.state.seq >= acknowledged > 5
        assert not later.log.damage
        later.close()
        checked = subprocess.run(
            ["git", "-C", disk / "task", "fsck", "--strict", "--no-progress", "--no-dangling"],
            check=True,
            capture_output=True,
        )
        assert checked.stdout == b""
        clean = subprocess.run(
            ["git", "-C", disk / "task", "status", "--porcelain"], check=True, capture_output=True
        )
        assert clean.stdout == b""
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


_WRITER = """
import sys
from pathlib import Path
from agentx.core.event_bus import Bus
from agentx.storage.artifacts import Artifacts
from agentx.storage.events.types import Body, Draft, ToolCallExecuted, UserMessageSent
from agentx.synthesis.memory.record_codec import record_codec
from agentx.recording.write_path import Content, WritePath
root, name = Path(sys.argv[1]), sys.argv[2]
path = WritePath(root, record_codec(), Artifacts(root / "artifacts", 1_000_000), Bus())
path.load()
path.recover()
for n in range(50):
    call = lambda changes: ToolCallExecuted(call_id=f"{name}-{n}", tool="write_file", status="SUCCEEDED", changes=changes)
    path.write({f"{name}.txt": Content(f"{name} {n}".encode()), "shared.txt": Content(f"{name} {n}".encode())}, call, actor=f"agent:{name}")
    if n % 10 == 9:
        path.flush()
path.flush()
path.close()
"""


def test_four_processes_write_and_every_event_is_there_once_in_one_line(task, git, sound, path):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(task), name], env=environ, stderr=subprocess.PIPE, text=True
        )
        for name in "abcd"
    ]
    git("gc", "-q")
    failed = [error for process in processes if (error := process.communicate()[1])]
    assert not failed
    events = [event for event in sound() if isinstance(event.data, ToolCallExecuted)]
    assert sorted(event.data.call_id for event in events) == sorted(
        f"{n}-{i}" for n in "abcd" for i in range(50)
    )
    assert not [event for event in path.log.history.read() if isinstance(event.data, ArtifactChanged)]
    assert git("log", "--merges", "--format=%h") == ""
    told = git("log", "--reverse", "--format=%(trailers:key=AgentX-Event,valueonly,separator=%x2C)").split()
    told_in_order = [
        seq for span in told for seq in range(int(span.split("-")[0]), int(span.split("-")[-1]) + 1)
    ]
    assert told_in_order == list(
        range(1, 202)
    )  # where `git gc` held the ref, the next commit holds two events
    path.refresh()
    assert path.log.state.seq == 201


def test_threads_of_one_process_write_and_every_event_is_there_once(path, write, sound):
    threads = [
        threading.Thread(target=lambda name=name: [write(path, f"{name}-{n}", "x") for n in range(10)])
        for name in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    path.flush()
    assert len(sound()) == 41


def test_what_another_process_wrote_is_folded_and_published_once_and_in_order(path, reopen, write):
    heard = []
    path._bus.subscribe("*", lambda event: heard.append(event.seq))
    other = reopen()
    write(other, "a", "1")
    other.record([_said("x")])
    path.refresh()
    write(path, "b", "2")
    path.refresh()
    assert heard == [2, 3, 4]
    assert path.log.state.encode() == _folded(path).encode()


def _folded(path):
    return type(path.log.state)().apply_all(path.log.history.read())


def test_a_commit_that_another_writer_overtook_is_made_anew(path, write, git, task, monkeypatch, sound):
    kept, overtaken = GitRepository.move_ref, []

    def overtake(self, new, expected, note):
        if not overtaken:
            overtaken.append(
                git("commit-tree", "-p", expected, "-m", "By hand", f"{expected}^{{tree}}").strip()
            )
            git("update-ref", "refs/heads/main", overtaken[0])
        kept(self, new, expected, note)

    monkeypatch.setattr(GitRepository, "move_ref", overtake)
    write(path, "a", "x")
    path.flush()
    assert git("log", "-3", "--format=%s").splitlines() == ["Create a", "By hand", "Create workspace: A task"]
    assert len(sound()) == 2


def test_a_commit_that_fails_is_owed_to_the_next_one(path, write, monkeypatch, sound, git):
    def fail(*_arguments):
        raise WriterConflict("twice")

    monkeypatch.setattr(GitRepository, "move_ref", fail)
    with pytest.raises(WriterConflict):
        write(path, "a", "x")
    monkeypatch.undo()
    write(path, "b", "y")
    path.flush()
    assert [type(event.data) for event in sound()[1:]] == [ToolCallExecuted, ToolCallExecuted]
    assert git("show", "HEAD:artifacts/a") == "x"


def test_a_write_whose_commit_must_wait_is_kept_and_committed_later(path, write, monkeypatch, sound, git):
    def locked(*_arguments):
        raise RefLocked("main.lock is held")

    with monkeypatch.context() as patch:
        patch.setattr(GitRepository, "move_ref", locked)
        write(path, "a", "x")
        write(path, "a", "y")
    assert path.git.tracked("a").oid == blob_id(b"y")
    assert path.notes == ["main.lock is held"]
    path.flush()
    assert len(sound()) == 3
    assert git("show", "HEAD:artifacts/a") == "y"


def test_in_bulk_mode_thousands_of_events_are_one_commit(path, write, git, sound):
    before = _commits(git)
    with path.bulk():
        for number in range(40):
            write(path, f"f{number}", str(number))
    assert _commits(git) == before + 1
    assert len(sound()) == 41


def test_a_content_that_no_commit_holds_among_the_artifacts_is_kept_beside_the_log(
    path, write, git, task, tmp_path
):
    with path.bulk():
        write(path, "a", "passing")
        write(path, "a", "final")
    path.flush()
    git("gc", "-q", "--prune=now")
    git("clone", "-q", "--no-local", str(task), str(tmp_path / "clone"))
    oid = blob_id(b"passing")
    assert (tmp_path / "clone/history/blobs" / oid[:2] / oid[2:]).read_text() == "passing"
    assert git("status", "--porcelain") == ""


def test_an_open_folds_what_came_behind_the_last_snapshot(path, reopen, monkeypatch):
    monkeypatch.setattr(recorded_log, "SNAPSHOT_EVENTS", 10)
    path.record([_said(f"message {number}") for number in range(10)])
    path.flush()
    path.record([_said("one more")])
    folded = []
    kept = State.apply_all

    def counting(state, events):
        events = list(events)
        folded.append(len(events))
        return kept(state, events)

    monkeypatch.setattr(State, "apply_all", counting)
    again = reopen()
    assert folded == [1]
    assert again.log.state.encode() == path.log.state.encode()


def test_a_rebuild_folds_everything_and_trusts_no_snapshot(path, monkeypatch):
    monkeypatch.setattr(recorded_log, "SNAPSHOT_EVENTS", 2)
    path.record([_said("Hello."), _said("Bye.")])
    path.flush()
    path.log.state.title = "Not what the history says"
    damage = []
    assert path.refold(damage.append).title == path.log.state.title == "A task"
    assert not damage
    assert not list((path.root / ".agentx/snapshots").iterdir())


def test_a_subscriber_that_fails_stops_nothing(path, write, caplog):
    heard = []
    path._bus.subscribe("*", lambda _: 1 / 0)
    path._bus.subscribe("*", heard.append)
    write(path, "a", "x")
    assert len(heard) == 1
    assert "A subscriber of * failed" in caplog.text


def test_a_subscriber_may_record_more_and_is_served_behind_it(path):
    heard = []

    def echo(event):
        heard.append(event.seq)
        if event.seq < 4:
            path.record([_said("more")])

    path._bus.subscribe("UserMessageSent", echo)
    path.record([_said("first")])
    assert heard == [2, 3, 4]


def test_a_read_only_workspace_records_nothing(path, write, task):
    path.make_read_only("Made by a newer version.")
    before = (task / "history.jsonl").read_bytes()
    for attempt in (lambda: write(path, "a", "x"), lambda: path.record([_said("x")])):
        with pytest.raises(ReadOnly, match="newer version"):
            attempt()
    path.flush()
    path.refresh()
    assert (task / "history.jsonl").read_bytes() == before
    assert list((task / "artifacts").iterdir()) == []


def test_the_log_is_sealed_and_committed_without_a_gap(path, write, task, git, sound):
    for n in range(150):
        write(path, "a", f"{n}")
        path.record([_said("x" * 1_500)])
    path.flush()
    sealed = git("ls-files", "history").split()
    assert sealed == [f"history/000/{n:03}.jsonl" for n in range(1, len(sealed) + 1)]
    assert len(sealed) > 3
    assert len(sound()) == 301


def test_what_an_event_names_survives_a_clone(path, tmp_path, task, git):
    body = path.body("a long text " * 2_000)
    path.record([Draft(data=UserMessageSent(body=body), actor="user")])
    path.flush()
    git("clone", "-q", "--no-hardlinks", str(task), str(tmp_path / "copy"))
    assert BlobStore(tmp_path / "copy").text(body) == "a long text " * 2_000


def test_of_two_writers_without_a_lock_the_loser_is_told_and_the_winner_alone_is_on_record(
    path, reopen, task, monkeypatch
):
    loser = reopen()
    monkeypatch.setattr(FileLock, "_acquire", lambda *_: os.open(os.devnull, os.O_RDONLY))
    with loser.exclusive():
        (winner,) = path.record([_said("I was first.")])
        with pytest.raises(WriterConflict, match="ignoring the lock"):
            loser.record([_said("I was second.")])
    assert [event.hash for event in path.log.history.read()][-1] == winner.hash
    assert loser.log.state.encode() == path.log.state.encode()
    assert "I was second." in (task / "history/orphans.jsonl").read_text()
    assert "I was second." not in (task / "history.jsonl").read_text()


def _cost(path, task, monkeypatch, write, name):
    """What one more write of a file costs: syncs, and Git objects with their bytes.

    A write just before it takes Git's mark, which is then held for seconds.
    """
    write(path, f"{name}-before", "x")
    objects = {p: p.stat().st_size for p in (task / ".git/objects").glob("??/*")}
    syncs = []
    with monkeypatch.context() as patch:
        for call in ("fsync", "fdatasync"):
            kept = getattr(os, call)
            patch.setattr(os, call, lambda fd, call=call, kept=kept: (syncs.append(call), kept(fd)))
        write(path, name, "x" * 4_000 + name)
    made = [p for p in (task / ".git/objects").glob("??/*") if p not in objects]
    return sorted(syncs), len(made), sum(p.stat().st_size for p in made)


def test_a_write_costs_the_same_syncs_and_objects_however_many_files_and_events_there_are(
    path, task, write, monkeypatch
):
    few = _cost(path, task, monkeypatch, write, "d0/e0/second")
    assert few[:2] == (["fdatasync", "fdatasync"], 7)
    contents = {f"d{n % 8}/e{n // 8 % 8}/f{n}": Content(str(n).encode()) for n in range(800)}
    path.write(contents, _written, actor="agent:main")
    for number in range(300):
        path.record([_said(f"message {number} " + "word " * 60)])
    path.flush()
    many = _cost(path, task, monkeypatch, write, "d0/e0/third")
    assert many[:2] == few[:2]
    live_log, folders = 64 * 1024, 3 * 40 * 20
    assert many[2] < few[2] + live_log + folders


def test_a_reader_waits_for_no_writer(ws, elsewhere):
    inside, done = threading.Event(), threading.Event()

    def hold():
        with ws.engine.write_path.exclusive():
            ws.record(Draft(data=UserMessageSent(body=Body("one")), actor="user"))
            inside.set()
            done.wait(30)

    writer = threading.Thread(target=hold)
    writer.start()
    inside.wait(30)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(ws.state.seq))
    reader.start()
    reader.join(30)
    done.set()
    writer.join()
    assert seen == [ws.state.seq]


def test_a_reader_takes_the_lock_only_after_others_wrote(ws, elsewhere):
    ws.say("one")
    taken, lock = [], ws.engine.write_path.lock
    real = lock.hold
    lock.hold = lambda: taken.append(1) or real()
    ws._keeper.stop()
    ws.flush()
    before = len(taken)
    assert [ws.state.seq for _ in range(3)] == [ws.state.seq] * 3
    assert len(taken) == before
    elsewhere(ws, "ws.say('two')")
    seq = ws.state.seq
    assert len(taken) > before
    assert next(ws.events(seq - 1)).seq == seq
    assert not list(ws.events(seq))
