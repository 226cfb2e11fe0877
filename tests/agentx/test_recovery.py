"""A process dies at any moment of a write: what was acknowledged is there, and the workspace is whole."""

import os
import signal
import subprocess
import sys

import pytest

from agentx.storage.artifacts import Artifacts
from agentx.storage.events.codec import Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import AgentMessageSent, Body, Draft, ToolCallExecuted, WriteReverted
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.git import content_journal
from agentx.storage.git.objects import blob_id, loose_path
from agentx.storage.git.recovery.git_repair import RepositoryDamaged
from agentx.storage.log.history import LIVE, SEGMENT_BYTES, History, count_segments

_PROGRAM = """
import os, sys
from pathlib import Path
from agentx.core.event_bus import Bus
from agentx.storage.log import history
from agentx.storage.artifacts import Artifacts
from agentx.storage.events.types import Body, Draft, ToolCallExecuted, UserMessageSent
from agentx.storage.git.index_file import IndexFile
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.history import HistoryWriter
from agentx.synthesis.memory.record_codec import record_codec
from agentx.recording.write_path import Content, WritePath

root = Path(sys.argv[1])
path = WritePath(root, record_codec(), Artifacts(root / "artifacts", 1_000_000), Bus())
path.load()
path.recover()

def write(**files):
    contents = {name: None if text is None else Content(text.encode()) for name, text in files.items()}
    made = path.write(
        contents, lambda changes: ToolCallExecuted(call_id="1", tool="write_file", status="SUCCEEDED", changes=changes),
        actor="agent:main",
    )
    print(made[-1].seq, flush=True)

def die_before(owner, name, calls=1):
    kept, left = getattr(owner, name), [calls]
    def dying(*arguments, **named):
        left[0] -= 1
        if not left[0]:
            os._exit(9)
        return kept(*arguments, **named)
    setattr(owner, name, dying)

def die_after(owner, name, calls=1):
    kept, left = getattr(owner, name), [calls]
    def dying(*arguments, **named):
        result = kept(*arguments, **named)
        left[0] -= 1
        if not left[0]:
            os._exit(9)
        return result
    setattr(owner, name, dying)

def tear():
    def torn(fd, content):
        os.write(fd, content[: len(content) // 2])
        os._exit(9)
    history.write_all = torn

"""

_ACKNOWLEDGED = 'write(a="a1", b="b1", gone="g1")\nwrite(c="c1")\n'
_FATAL = 'write(a="a2", b="b2", new="n2", gone=None)\n'

_BEFORE = {
    "before the blobs": 'die_before(GitRepository, "stage_blob")',
    "amid the blobs": 'die_before(GitRepository, "stage_blob", 2)',
    "before the temporary files": 'die_before(Artifacts, "prepare")',
    "amid the temporary files": 'die_after(Artifacts, "prepare", 2)',
    "before the append": 'die_before(HistoryWriter, "append")',
    "amid the append": "tear()",
}
_AFTER = {
    "after the append": 'die_after(HistoryWriter, "append")',
    "after the first file": 'die_after(Artifacts, "put")',
    "after the second file": 'die_after(Artifacts, "put", 2)',
    "after the removal": 'die_after(Artifacts, "remove")',
    "before the tree": 'die_before(GitRepository, "update_tree")',
    "before the commit": 'die_before(GitRepository, "commit")',
    "before the ref": 'die_before(GitRepository, "move_ref")',
    "after the ref": 'die_after(GitRepository, "move_ref")',
}
_SETTLING = {
    "before the index": 'write(a="a2", b="b2", new="n2", gone=None)\ndie_before(IndexFile, "refresh")\npath.flush()',
    "amid the index": 'write(a="a2", b="b2", new="n2", gone=None)\ndie_before(os, "replace")\npath.flush()',
    "after the index": 'write(a="a2", b="b2", new="n2", gone=None)\ndie_after(IndexFile, "refresh")\npath.flush()',
}


@pytest.fixture
def die(task, in_a_process):
    """Run a program in another process, which dies at its fault; the events that it acknowledged."""

    def die(code):
        done = in_a_process(_PROGRAM + code, task)
        assert done.returncode == 9, done.stderr
        return [int(line) for line in done.stdout.split()]

    return die


def _files(task):
    return {p.name: p.read_text() for p in (task / "artifacts").rglob("*") if p.is_file()}


_EARLIER = {"a": "a1", "b": "b1", "c": "c1", "gone": "g1"}
_LATER = {"a": "a2", "b": "b2", "c": "c1", "new": "n2"}


@pytest.mark.parametrize("fault", _BEFORE)
def test_a_crash_before_the_event_is_durable_leaves_nothing_of_it(task, die, sound, fault):
    assert die(f"{_ACKNOWLEDGED}{_BEFORE[fault]}\n{_FATAL}") == [2, 3]
    events = sound()
    assert [event.seq for event in events] == [1, 2, 3]
    assert _files(task) == _EARLIER
    assert not list(task.rglob(f"{TEMPORARY_PREFIX}*"))


@pytest.mark.parametrize("fault", _AFTER)
def test_a_crash_after_the_event_is_durable_is_rolled_forward(task, die, sound, git, fault):
    assert die(f"{_ACKNOWLEDGED}{_AFTER[fault]}\n{_FATAL}") == [2, 3]
    events = sound()
    assert [type(event.data).__name__ for event in events][1:] == ["ToolCallExecuted"] * 3
    assert _files(task) == _LATER
    assert not list(task.rglob(f"{TEMPORARY_PREFIX}*"))
    assert git("log", "-1", "--format=%an", "--", "artifacts") == "agent:main\n"


@pytest.mark.parametrize("fault", _SETTLING)
def test_a_crash_while_git_s_index_is_brought_up_is_no_matter(task, die, sound, fault):
    assert die(_ACKNOWLEDGED + _SETTLING[fault]) == [2, 3, 4]
    sound()
    assert _files(task) == _LATER


def test_a_crash_leaves_git_locked_only_until_the_next_session(task, die, sound, git):
    die(f"{_ACKNOWLEDGED}{_AFTER['after the ref']}\n{_FATAL}")
    assert git("add", ".", check=False).returncode != 0
    sound()
    git("add", ".")


@pytest.mark.parametrize("call", ["_start_live", "_seal"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_the_log_is_sealed_loses_nothing(die, sound, call, when):
    acknowledged = die(f'die_{when}(HistoryWriter, "{call}", 2)\nfor n in range(400): write(a=str(n) * 40)\n')
    events = sound()
    assert {event.seq for event in events} >= set(acknowledged)
    assert len(acknowledged) > 100


def test_a_process_that_is_killed_at_any_moment_loses_nothing_that_it_acknowledged(task, sound):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = _PROGRAM + 'n = 0\nwhile True:\n    n += 1\n    write(a=f"{n}", **{f"f{n % 7}": f"{n}" * 100})\n'
    acknowledged = 1
    for count in (1, 3, 8, 15, 25):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(task)],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(count):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
        assert [event.seq for event in sound()][-1] >= acknowledged


def test_a_file_that_a_person_changed_after_the_crash_is_kept_and_recorded(task, die, sound, reopen):
    die(f"{_ACKNOWLEDGED}{_AFTER['after the append']}\n{_FATAL}")
    (task / "artifacts/a").write_text("person")
    (task / "artifacts/gone").write_text("person")
    sound()
    assert _files(task) == _LATER | {"a": "person", "gone": "person"}
    kept = [
        made.after
        for event in reopen().log.history.read()
        for made in getattr(event.data, "changes", ())
        if made.path == "a"
    ]
    assert len(kept) == 3


def test_a_write_whose_content_is_lost_is_told_as_reverted(task, die, sound):
    die(f"{_ACKNOWLEDGED}{_AFTER['after the append']}\n{_FATAL}")
    lost = [made.after for line in _events(task) for made in line.data.changes if made.path == "new"][-1]
    loose_path(task / ".git", lost).unlink()
    (task / ".git" / content_journal.NAME).unlink()
    events = sound()
    assert [
        (event.data.path, event.data.event) for event in events if isinstance(event.data, WriteReverted)
    ] == [("new", 4)]
    assert _files(task) == {name: text for name, text in _LATER.items() if name != "new"}


@pytest.mark.parametrize("harm", ["missing", "empty", "cut off"])
def test_a_content_whose_git_object_is_lost_comes_back_from_the_content_journal(task, die, sound, harm):
    die(f"{_ACKNOWLEDGED}{_AFTER['after the append']}\n{_FATAL}")
    for line in _events(task):
        for made in line.data.changes:
            if made.after:
                path = loose_path(task / ".git", made.after)
                whole = path.read_bytes()
                path.unlink()
                if harm != "missing":
                    path.write_bytes(whole[: len(whole) // 2] if harm == "cut off" else b"")
    assert not any(isinstance(event.data, WriteReverted) for event in sound())
    assert _files(task) == _LATER


def _events(task):
    return [e for e in History(task, Codec(FACTS)).read() if isinstance(e.data, ToolCallExecuted)]


def test_a_truncated_blob_of_a_write_is_made_again_from_the_file(task, die, sound):
    die(f"{_ACKNOWLEDGED}{_AFTER['before the tree']}\n{_FATAL}")
    for made in _events(task)[-1].data.changes:
        if made.after:
            blob = loose_path(task / ".git", made.after)
            blob.chmod(0o644)
            blob.write_bytes(blob.read_bytes()[:5])
    sound()
    assert _files(task) == _LATER


def test_a_torn_line_is_kept_where_a_person_can_look_at_it(task, die, sound):
    die(f"{_ACKNOWLEDGED}tear()\n{_FATAL}")
    sound()
    assert '"why": "torn' in (task / "history/orphans.jsonl").read_text()


def test_a_log_that_lost_its_tail_is_restored_from_the_last_commit(task, die, reopen, write, sound):
    die(f"{_ACKNOWLEDGED}path.flush()\nos._exit(9)\n")
    lines = (task / LIVE).read_bytes().splitlines(keepends=True)
    (task / LIVE).write_bytes(b"".join(lines[:1]))
    path = reopen()
    assert "ends at event 1" in path.health.unsound
    write(path, "d", "d1")
    path.flush()
    assert [event.seq for event in sound()] == [1, 2, 3, 4]


def _object(git, which):
    return git("rev-parse", {
        "commit": "HEAD", "tree": "HEAD^{tree}", "artifacts": "HEAD:artifacts", "log": "HEAD:history.jsonl",
    }[which]).strip()  # fmt: skip


@pytest.mark.parametrize("harm", ["half", "empty", "zeros"])
@pytest.mark.parametrize("which", ["commit", "tree", "artifacts", "log"])
def test_an_object_that_a_power_cut_left_truncated_is_made_again(task, die, sound, git, which, harm):
    die(f"{_ACKNOWLEDGED}{_FATAL}os._exit(9)\n")
    path = loose_path(task / ".git", _object(git, which))
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes({"half": whole[: len(whole) // 2], "empty": b"", "zeros": b"\0" * len(whole)}[harm])
    assert [event.seq for event in sound()] == [1, 2, 3, 4]
    assert _files(task) == _LATER


@pytest.mark.parametrize("content", [b"", b"\0" * 41, b"0" * 20])
def test_a_branch_whose_file_a_power_cut_emptied_names_its_last_commit_again(task, die, sound, git, content):
    die(f"{_ACKNOWLEDGED}{_FATAL}os._exit(9)\n")
    head = git("rev-parse", "HEAD").strip()
    (task / ".git/refs/heads/main").write_bytes(content)
    assert [event.seq for event in sound()] == [1, 2, 3, 4]
    assert head in git("log", "--format=%H").split()


def test_a_repository_without_one_whole_commit_is_told_and_nothing_else_is_touched(task, die, reopen, git):
    die(f"{_ACKNOWLEDGED}os._exit(9)\n")
    before = (task / LIVE).read_bytes()
    for commit in git("rev-list", "HEAD").split():
        loose_path(task / ".git", commit).chmod(0o644)
        loose_path(task / ".git", commit).write_bytes(b"")
    with pytest.raises(RepositoryDamaged, match=r"history\.jsonl and artifacts are untouched"):
        reopen()
    assert (task / LIVE).read_bytes() == before


def test_what_a_dead_process_left_undone_is_finished_by_one_that_lives(task, die, sound, reopen, write):
    living = reopen()
    die(f"{_ACKNOWLEDGED}{_AFTER['after the append']}\n{_FATAL}")
    write(living, "mine", "m1")
    assert _files(task) == _LATER | {"mine": "m1"}
    assert living.git.manifest().keys() == _files(task).keys()
    assert len(sound()) == 5


def test_a_write_that_was_interrupted_while_its_files_got_their_names_is_finished(
    path, write, task, sound, monkeypatch
):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Artifacts, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(path, "a", "a1")
    write(path, "b", "b1")
    assert _files(task) == {"a": "a1", "b": "b1"}
    assert [type(event.data) for event in sound()[1:]] == [ToolCallExecuted, ToolCallExecuted]


def _cut_the_power(task):
    """Another run of the machine finds the lock of the one that went down."""
    lock = task / ".git/index.lock"
    pid, seq = lock.read_text().split()[1:3]
    lock.write_text(f"agentx {pid} {seq} an-earlier-boot")


@pytest.mark.parametrize("left", [None, b"", b"b", b"b\0", b"b1"])
def test_after_a_power_cut_files_that_were_not_on_the_disk_yet_are_made_again(task, die, sound, left):
    die(f'{_ACKNOWLEDGED}path.flush()\nwrite(b="b2")\nwrite(d="d1")\nos._exit(9)')
    _cut_the_power(task)
    (task / "artifacts/d").unlink()
    if left is not None:
        (task / "artifacts/b").write_bytes(left)
    events = sound()
    assert _files(task) == _EARLIER | {"b": "b2", "d": "d1"}
    assert [type(event.data) for event in events[1:]] == [ToolCallExecuted] * 4


@pytest.mark.parametrize(
    "harmed", [["HEAD~1:history.jsonl"], ["HEAD~1:history.jsonl", "HEAD"], ["HEAD~1^{tree}"]]
)
def test_after_a_power_cut_that_damaged_what_was_durable_it_is_made_again(task, die, sound, git, harmed):
    """The mark says that the commit is whole; where it is not, the look begins with the first commit."""
    die(f'{_ACKNOWLEDGED}path.flush()\nwrite(d="d1")\nos._exit(9)')
    _cut_the_power(task)
    for name in harmed:
        path = loose_path(task / ".git", git("rev-parse", name).strip())
        path.chmod(0o644)
        path.write_bytes(b"")
    assert [event.seq for event in sound()] == [1, 2, 3, 4]
    assert _files(task) == _EARLIER | {"d": "d1"}


def test_after_a_power_cut_in_the_first_turn_a_damaged_object_is_made_again(task, die, sound, git):
    """No commit was durable then, so that each is looked at."""
    die(f"{_ACKNOWLEDGED}os._exit(9)\n")
    lock = task / ".git/index.lock"
    lock.write_text(f"agentx {lock.read_text().split()[1]} 0 an-earlier-boot")
    path = loose_path(task / ".git", git("rev-parse", "HEAD:history.jsonl").strip())
    path.chmod(0o644)
    path.write_bytes(b"")
    assert [event.seq for event in sound()] == [1, 2, 3]
    assert _files(task) == _EARLIER


def test_a_tree_that_is_made_again_is_durable_when_the_workspace_is_open(task, die, reopen, git, monkeypatch):
    """The next end of a turn syncs what was written in it, and this tree may be of an earlier one."""
    die(f"{_ACKNOWLEDGED}os._exit(9)\n")
    tree = loose_path(task / ".git", git("rev-parse", "HEAD^{tree}").strip())
    tree.unlink()
    synced = set()
    kept = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), kept(fd)))
    reopen()
    assert {tree.stat().st_ino, tree.parent.stat().st_ino} <= synced


def test_no_turn_replaces_an_object_that_an_earlier_one_made_durable(path, write, task):
    """A sealed segment is the log that the last commit holds: its blob is durable already."""
    write(path, "a", "a1")
    while (task / LIVE).stat().st_size < SEGMENT_BYTES - 2_000:
        path.record([Draft(data=AgentMessageSent(body=Body("word " * 300)), actor="agent:main")])
    path.flush()
    durable = {p: p.stat().st_ino for p in (task / ".git/objects").glob("??/*")}
    write(path, "a", "a" * 3_000)
    path.record([Draft(data=AgentMessageSent(body=Body("word " * 300)), actor="agent:main")] * 2)
    write(path, "a", "a1")
    path.flush()
    assert count_segments(task) == 1
    assert {p: p.stat().st_ino for p in durable if p.exists()} == durable


@pytest.mark.parametrize("left", [b"b2", b"b2 and", b"b2\0\0\0\0\0\0\0", b"b2 and more"])
@pytest.mark.parametrize("last", ['b="b1"', 'b="other"', "b=None"])
def test_after_a_power_cut_a_part_of_an_earlier_write_is_no_edit(task, die, sound, left, last):
    """The name of the last write was lost, and the content of the one before was not synced."""
    die(f'{_ACKNOWLEDGED}path.flush()\nwrite(b="b2 and more")\nwrite({last})\nos._exit(9)')
    _cut_the_power(task)
    (task / "artifacts/b").write_bytes(left)
    events = sound()
    wanted = {name: text for name, text in {**_EARLIER, **eval(f"dict({last})")}.items() if text}
    assert _files(task) == wanted
    assert [type(event.data) for event in events[1:]] == [ToolCallExecuted] * 4


def test_after_a_power_cut_what_a_person_wrote_is_kept(task, die, sound):
    die(f'{_ACKNOWLEDGED}path.flush()\nwrite(b="b2")\nos._exit(9)')
    _cut_the_power(task)
    (task / "artifacts/b").write_text("bus")
    sound()
    assert _files(task) == _EARLIER | {"b": "bus"}


def test_without_a_power_cut_a_file_that_a_person_took_back_stays_so(task, die, sound):
    die(f'{_ACKNOWLEDGED}path.flush()\nwrite(b="b2")\nos._exit(9)')
    (task / "artifacts/b").write_text("b1")
    sound()
    assert _files(task) == _EARLIER


def test_at_the_end_of_a_turn_everything_that_was_written_is_synced(path, write, task, monkeypatch):
    write(path, "a/b", "x" * 100)
    synced = set()
    kept = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), kept(fd)))
    path.flush()
    objects = (task / ".git/objects").glob("??/*")
    branch = [task / ".git/refs/heads/main", task / ".git/logs/refs/heads/main"]
    wanted = [task / "artifacts/a/b", task / "artifacts/a", *branch]
    commit = path.git.head
    made = [p for p in objects if p.parent.name + p.name in {commit, path.git.tree}]
    assert {p.stat().st_ino for p in [*wanted, *made]} <= synced
    assert len(made) == 2


def test_a_long_text_whose_event_a_crash_took_is_kept_and_leaves_nothing_untracked(task, die, sound, git):
    die('path.body("x" * 20_000)\nos._exit(9)')
    sound()
    (blob,) = (task / "history/blobs").glob("??/*")
    assert git("ls-files", str(blob)) != ""


def test_a_long_text_of_a_session_that_could_not_be_flushed_is_kept_by_the_next_of_the_same_process(
    path, task, sound, git
):
    path.body("x" * 20_000)
    path.close()
    sound()
    (blob,) = (task / "history/blobs").glob("??/*")
    assert git("ls-files", str(blob)) != ""


def test_after_a_power_cut_no_lock_on_the_branch_and_no_torn_index_stand_in_the_way(task, die, sound):
    die(f"{_ACKNOWLEDGED}os._exit(9)")
    _cut_the_power(task)
    (task / ".git/refs/heads/main.lock").touch()
    index = task / ".git/index"
    index.write_bytes(index.read_bytes()[:40])
    assert [event.seq for event in sound()] == [1, 2, 3]
    assert not (task / ".git/refs/heads/main.lock").exists()
    assert _files(task) == _EARLIER


def test_writes_of_one_file_whose_contents_are_all_lost_are_all_told_as_reverted(task, die, sound):
    two = 'kept = path.commit\npath.commit = lambda **_: None\nwrite(a="a2")\nwrite(a="a3")\nos._exit(9)'
    die(f"{_ACKNOWLEDGED}path.flush()\n{two}")
    for content in (b"a2", b"a3"):
        loose_path(task / ".git", blob_id(content)).unlink()
    (task / ".git" / content_journal.NAME).unlink()
    (task / "artifacts/a").write_text("a1")
    events = sound()
    assert [event.data.event for event in events if isinstance(event.data, WriteReverted)] == [5, 4]
    assert _files(task) == _EARLIER
