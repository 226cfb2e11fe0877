"""Damage to the log: never committed, noticed by an open process, restored from any place that holds it."""

import contextlib
import errno
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.integrity.repair import repair
from agentx.integrity.verify import verify
from agentx.recording import heal_log
from agentx.storage.errors import AgentXError
from agentx.storage.events.codec import Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import Body, Draft, Lost, UserMessageSent
from agentx.storage.log.history import History, HistoryDamaged, HistoryWriteFailed

LIVE = "history.jsonl"
OURS = ("-c", "user.name=agentx", "-c", "user.email=engine@engine.agentx.invalid")


@pytest.fixture
def log(task):
    return task / LIVE


@pytest.fixture
def held(git):
    """The log that the newest commit holds."""
    return lambda commit="HEAD": git("show", f"{commit}:{LIVE}").encode()


def flip(path, number=2, mark=b'"data"', offset=12):
    """Flip one bit in a line, as it lies on the disk; the line as it was."""
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    start = sum(map(len, lines[: number % len(lines)]))
    at = start + lines[number].index(mark) + offset
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([content[at] ^ 1]))
    return lines[number]


def said(text):
    return Draft(data=UserMessageSent(body=Body(text)), actor="user")


def some(path, write, count=4):
    for number in range(count):
        write(path, "a.txt", str(number))
    path.flush()


# --- an open process ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("replaced", [False, True])
def test_an_open_process_notices_damage_and_commits_none_of_it(
    path, write, log, task, held, sound, caplog, replaced
):
    """It says so, leaves everything as it is, and restores the log before its next write."""
    some(path, write)
    path.record([said("not committed yet")])
    whole, committed = log.read_bytes(), held()
    flip(log)
    if replaced:  # as `sed -i` does
        shutil.copyfile(log, task / "copy")
        os.replace(task / "copy", log)
    damaged = log.read_bytes()
    path.refresh()
    path.edits.scan()
    path.flush()
    assert (log.read_bytes(), held()) == (damaged, committed)
    assert "was changed in a part that was already read" in path.notes[-1]
    assert "is damaged" in caplog.text
    write(path, "a.txt", "on")
    path.flush()
    assert log.read_bytes().startswith(whole)
    assert held() == log.read_bytes()
    assert not path.health.unsound
    sound()


@pytest.mark.parametrize("number", [1, -1])
def test_an_event_that_stands_in_no_commit_comes_back_from_the_process_that_knows_it(
    path, write, log, sound, number
):
    """The log in memory is as good as a commit."""
    some(path, write)
    path.record([said("one"), said("two")])
    whole = log.read_bytes()
    flip(log, number)
    write(path, "a.txt", "on")
    path.flush()
    assert log.read_bytes().startswith(whole)
    sound()


def test_a_log_that_is_cut_off_or_gone_beside_an_open_process_comes_back(path, write, log, sound):
    """Also what stood in no commit yet."""
    some(path, write)
    for harm in (lambda: log.write_bytes(log.read_bytes()[:300]), log.unlink):
        path.record([said("kept in memory")])
        whole = log.read_bytes()
        harm()
        path.refresh()
        path.flush()
        assert path.health.unsound
        write(path, "a.txt", f"on {len(whole)}")
        assert log.read_bytes().startswith(whole)
    path.flush()
    sound()


def test_damage_before_a_seal_is_restored_in_the_segment(path, reopen, write, log, task, sound):
    """Another process has read neither the damage nor the seal."""
    some(path, write)
    other = reopen()
    flip(log)
    other.refresh()
    assert other.health.unsound
    write(path, "a.txt", "healed")
    path.record([said("word " * 700) for _ in range(30)])
    path.flush()
    assert (task / "history/000/001.jsonl").exists()
    other.refresh()
    assert not other.health.unsound
    write(other, "a.txt", "other")
    other.flush()
    sound()


def test_damage_in_a_sealed_segment_is_noticed_by_the_next_open_although_a_snapshot_is_there(
    path, reopen, write, task, sound, monkeypatch
):
    """A sealed segment that was touched since the snapshot is read again."""
    monkeypatch.setattr("agentx.recording.recorded_log.SNAPSHOT_EVENTS", 1)
    path.record([said("word " * 700) for _ in range(40)])
    path.flush()
    assert any((task / ".agentx/snapshots").iterdir())
    path.close()
    sealed = task / "history/000/001.jsonl"
    whole = sealed.read_bytes()
    flip(sealed)
    later = reopen()
    assert "history/000/001.jsonl, line" in later.health.unsound
    write(later, "a.txt", "on")
    later.flush()
    assert sealed.read_bytes() == whole
    sound()


def test_a_blob_that_is_damaged_before_its_commit_is_committed_as_it_was(path, task, git, sound):
    """The event names it by its content."""
    body = path.body("a long text " * 3_000)
    blob = next((task / "history/blobs").glob("??/*"))
    blob.write_bytes(b"x" + blob.read_bytes()[1:])
    path.record([Draft(data=UserMessageSent(body=body), actor="user")])
    path.flush()
    assert "is damaged, so it was not committed" in " ".join(path.notes)
    assert git("ls-tree", "-r", "--name-only", "HEAD", "history") == ""


# --- what a person's Git did to the log ---------------------------------------------------------------------


def _checkout(git):
    git("checkout", "-q", "HEAD~3", "--", LIVE)
    git("commit", "-q", "-m", "An older log")


def _revert(git):
    git("revert", "--no-edit", "HEAD~1..HEAD", check=True)


def _shortened(git):
    task = Path(git("rev-parse", "--show-toplevel").strip())
    lines = (task / LIVE).read_bytes().splitlines(keepends=True)
    (task / LIVE).write_bytes(b"".join(lines[:2]))
    git("commit", "-q", "-am", "A shorter log")


def _merge(git):
    git("switch", "-q", "-c", "side", "HEAD~2")
    git("commit", "-q", "--allow-empty", "-m", "Side")
    git("merge", "-q", "-s", "ours", "-m", "The older side", "main")
    git("branch", "-q", "-f", "main", "side")
    git("switch", "-q", "main")


def _damaged(git):
    flip(Path(git("rev-parse", "--show-toplevel").strip()) / LIVE)
    git("commit", "-q", "-am", "A damaged log")


@pytest.mark.parametrize("between_sessions", [False, True])
@pytest.mark.parametrize("change", [_checkout, _revert, _shortened, _merge, _damaged])
def test_a_person_who_commits_an_older_log_drops_no_event(
    path, write, reopen, git, held, sound, change, between_sessions
):
    """The commit stays; the log is restored from those before it, and the next commit holds all of it."""
    log = path.root / LIVE
    path.body("a long text " * 3_000)
    some(path, write, count=6)
    whole = log.read_bytes()
    if between_sessions:
        path.close()
    change(git)
    person = git("rev-parse", "HEAD").strip()
    if change is not _damaged:
        assert len(log.read_bytes()) < len(whole)
    now = reopen() if between_sessions else path
    now.edits.scan()
    write(now, "b.txt", "on")
    now.flush()
    assert log.read_bytes().startswith(whole)
    assert held() == log.read_bytes()
    assert person in git("log", "--format=%H")
    sound()
    assert verify(now.root).sound, verify(now.root).findings


def test_segments_and_blobs_that_a_person_took_out_of_a_commit_are_in_the_next_one(
    path, write, task, git, sound
):
    """Everything that an event names stays reachable from the branch."""
    body = path.body("a long text " * 3_000)
    path.record([Draft(data=UserMessageSent(body=body), actor="user")])
    path.record([said("word " * 700) for _ in range(40)])
    some(path, write)
    before = git("ls-tree", "-r", "HEAD", "history")
    git("rm", "-q", "-r", "history")
    git("commit", "-q", "-m", "Clean up")
    write(path, "b.txt", "on")
    path.flush()
    assert git("ls-tree", "-r", "HEAD", "history") == before
    sound()


# --- what earlier versions left -----------------------------------------------------------------------------


@pytest.fixture
def earlier(path, write, log, git):
    """Do what an earlier version did to a damaged log: commit it, and go on."""

    def earlier(*, events=3, alone=False):
        some(path, write)
        path.close()
        flip(log)
        codec, message = Codec(FACTS), git("log", "-1", "--format=%B")
        if alone:  # as `agentx status` did
            _commit(git, "Record 0 events\n")
        last = codec.decode(log.read_bytes().splitlines(keepends=True)[-1])
        seq, own_hash = last.seq, last.hash
        for number in range(events):
            line, event = codec.encode(said(f"late {number}"), seq=seq + 1, previous=own_hash)
            with log.open("ab") as file:
                file.write(line)
            seq, own_hash = event.seq, event.hash
            _commit(git, f"{message.splitlines()[0]}\n\nAgentX-Event: {seq}\nAgentX-Actor: user\n")

    return earlier


def _commit(git, message):
    git("add", "-A")
    git(
        *OURS,
        "-c",
        "core.hooksPath=/dev/null",
        "commit",
        "-q",
        "-m",
        message,
        "--author",
        "user <user@user.agentx.invalid>",
    )


@pytest.mark.parametrize(
    "options", [{"events": 3}, {"events": 0, "alone": True}, {"events": 2, "alone": True}]
)
def test_damage_that_an_earlier_version_committed_is_restored_from_the_commit_before(
    earlier, task, log, held, reopen, write, sound, options
):
    """`verify` then knows the damaged commits, and the next commit holds the whole log."""
    earlier(**options)
    damaged = log.read_bytes()
    assert not verify(task).sound
    assert reopen().health.unsound
    assert log.read_bytes() == damaged
    done = repair(task)
    assert not done.left, done.left
    assert len(log.read_bytes()) == len(damaged)
    assert log.read_bytes() != damaged
    assert held() == log.read_bytes()
    found = verify(task)
    assert found.sound, found.findings
    now = reopen()
    write(now, "c.txt", "on")
    now.flush()
    found = verify(task)
    assert found.sound, found.findings
    if options["events"]:
        assert len([note for note in found.notes if "has it restored" in note]) == 1
    assert not repair(task).mended
    sound()


def test_a_write_heals_it_as_well(earlier, task, log, reopen, write, held, sound):
    """Without `agentx repair`."""
    earlier()
    now = reopen()
    write(now, "c.txt", "on")
    now.flush()
    assert held() == log.read_bytes()
    assert verify(task).sound, verify(task).findings
    sound()


# --- where the lines come from ------------------------------------------------------------------------------


def _reflog(git, task):
    git("update-ref", "--create-reflog", "refs/heads/other", "main~6")
    git("update-ref", "refs/heads/other", "main")


def _stash(git, task):
    git("update-ref", "refs/stash", "main~6")


def _dangling(git, task):
    pass


def _packed(git, task):
    git("repack", "-q", "-a", "-d", "--keep-unreachable")


def _remote_ref(git, task):
    git("update-ref", "refs/remotes/origin/main", "main~6")
    git("gc", "-q", "--prune=now")


def _remote(git, task):
    subprocess.run(["git", "clone", "-q", "--bare", task, task.parent / "backup.git"], check=True)
    git("remote", "add", "backup", str(task.parent / "backup.git"))


def _unreachable_at_the_remote(git, task):
    _remote(git, task)
    subprocess.run(
        ["git", "-C", task.parent / "backup.git", "update-ref", "-d", "refs/heads/main"], check=True
    )


@pytest.mark.parametrize(
    "place", [_reflog, _stash, _dangling, _packed, _remote_ref, _remote, _unreachable_at_the_remote]
)
def test_repair_searches_every_place_that_may_hold_a_line(path, write, log, task, git, place):
    """Commits that only a reflog or a stash names, objects that nothing names, packs, and remotes."""
    some(path, write, count=8)
    path.close()
    whole = log.read_bytes()
    trailers = git("log", "-1", "--format=%B")
    place(git, task)
    flip(log)
    git("add", "-A")
    tree = git("write-tree").strip()
    root = git(*OURS, "commit-tree", tree, "-m", trailers).strip()
    git("update-ref", "refs/heads/main", root)
    (task / ".git/logs/refs/heads/main").unlink()
    (task / ".git/logs/HEAD").unlink()
    if place in {_remote, _unreachable_at_the_remote}:
        git("gc", "-q", "--prune=now")
        with Workspace.open(task) as ws, pytest.raises(HistoryDamaged, match="agentx repair"):
            ws.say("on")
    done = repair(task)
    assert log.read_bytes() == whole, done
    assert [one.how for one in done.mended if one.what == LIVE], done


def test_what_was_set_aside_is_searched(path, write, log, task):
    """A line that only a file in .agentx/repaired holds comes back."""
    some(path, write)
    path.record([said("stands in no commit"), said("nor this")])
    path.log.writer.close()
    whole = log.read_bytes()
    place = task / ".agentx/repaired/earlier"
    place.mkdir(parents=True)
    shutil.copyfile(log, place / LIVE)
    flip(log, -2)
    repair(task)
    assert log.read_bytes() == whole


# --- lost for good ------------------------------------------------------------------------------------------


@pytest.fixture
def lossy(path, write, log):
    """The log lacks an event that no place holds: a crash came before its commit, and a bit was flipped."""

    def lossy(number=-2, mark=b'"data"'):
        some(path, write)
        path.record([said("this one will be lost"), said("this one stays")])
        path.close()
        flip(log, number, mark)
        return log.read_bytes()

    return lossy


@pytest.mark.parametrize("mark", [b'"data"', b'"actor"', b'"hash"', b'"seq"'])
def test_an_event_that_nothing_holds_stops_writes_until_a_person_accepts_the_loss(
    lossy, task, log, reopen, write, sound, mark
):
    """Then it keeps its place in the chain, and everything else stays."""
    damaged = lossy(mark=mark)
    with pytest.raises(HistoryDamaged, match=r"line \d+: event 6 cannot be read"):
        write(reopen(), "b.txt", "on")
    assert log.read_bytes() == damaged
    done = repair(task)
    assert "--accept-loss" in done.left[0].todo
    assert log.read_bytes() == damaged
    done = repair(task, accept_loss=True)
    assert not done.left, done.left
    found = verify(task)
    assert found.sound, found.findings
    assert [(purge.seq, purge.type) for purge in found.purged] == [(6, "Lost")]
    now = reopen()
    write(now, "b.txt", "on")
    now.flush()
    events = sound()
    assert isinstance(events[5].data, Lost)
    assert events[6].data.body.text == "this one stays"
    assert len(events) == 8
    assert verify(task).sound


def test_a_lost_event_at_the_end_is_set_aside_and_its_place_is_used_again(lossy, task, reopen, write, sound):
    """Nothing follows from it, so that nothing shows that it was an event; its line is kept."""
    lossy(number=-1)
    now = reopen()
    assert now.health.unsound
    write(now, "b.txt", "on")
    now.flush()
    assert b"this" in (task / "history/orphans.jsonl").read_bytes()
    sound()


# --- healing that is cut off --------------------------------------------------------------------------------

_DIE = """
import os, sys
from pathlib import Path
from agentx import Workspace
from agentx.recording import heal_log
left = [int(sys.argv[2])]
kept = heal_log.write_file
def write_file(*arguments, **named):
    if not left[0]:
        os._exit(9)
    left[0] -= 1
    kept(*arguments, **named)
heal_log.write_file = write_file
import agentx.storage.git.recovery.git_repair as place
place.write_file = write_file
Workspace.open(sys.argv[1]).say("healed")
"""


@pytest.fixture
def widely(path, write, task, log):
    """Damage in two sealed segments and the live log; all of it as it was."""
    path.record([said("word " * 700) for _ in range(60)])
    some(path, write)
    path.close()
    places = [task / "history/000/001.jsonl", task / "history/000/002.jsonl", log]
    whole = [place.read_bytes() for place in places]
    for place in places:
        flip(place, 1)
    return places, whole


@pytest.mark.parametrize("steps", [0, 2, 3, 5])
def test_a_heal_that_is_killed_is_finished_by_the_next_one(widely, task, steps, in_a_process):
    """At each file that it writes."""
    places, whole = widely
    done = in_a_process(_DIE, task, steps)
    assert done.returncode == 9, done.stderr
    assert repair(task).left == ()
    assert [place.read_bytes() for place in places] == whole


@pytest.mark.parametrize("steps", [0, 2, 3, 5])
def test_a_full_disk_during_a_heal_loses_nothing(widely, task, monkeypatch, steps):
    """The write is refused in one sentence, and the next one heals."""
    places, whole = widely
    left, kept = [steps], heal_log.write_file

    def write_file(*arguments):
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= 1
        kept(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("agentx.recording.heal_log.write_file", write_file)
        patch.setattr("agentx.storage.git.recovery.git_repair.write_file", write_file)
        with Workspace.open(task) as ws, pytest.raises(HistoryWriteFailed, match="No space left"):
            ws.say("refused")
    with Workspace.open(task) as ws:
        ws.say("healed")
    assert all(place.read_bytes().startswith(content) for place, content in zip(places, whole, strict=True))
    assert verify(task).sound


def test_processes_that_heal_at_once_do_it_once(widely, task, elsewhere):
    """Each of their events is there."""
    places, whole = widely
    ws = type("At", (), {"root": task})

    def one(number):
        return elsewhere(ws, f"ws.say('from {number}')")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert all(place.read_bytes().startswith(content) for place, content in zip(places, whole, strict=True))
    told = [
        event.data.body.text
        for event in History(task, Codec(FACTS)).read()
        if event.type == "UserMessageSent"
    ]
    assert sorted(text for text in told if text.startswith("from")) == [
        f"from {number}" for number in range(4)
    ]
    assert verify(task).sound


# --- verify and push ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [b'"data"', b'"hash"', b'"actor"'])
@pytest.mark.parametrize("number", [1, -1])
@pytest.mark.parametrize("trailers", [False, True])
def test_verify_checks_the_log_in_the_newest_commit(path, write, log, task, git, number, mark, trailers):
    """Also one that says of itself that it holds no event, and one whose last line is damaged."""
    some(path, write)
    path.close()
    whole, message = log.read_bytes(), git("log", "-1", "--format=%B")
    flip(log, number, mark)
    git("add", "-A")
    tree = git("write-tree").strip()
    parent = "HEAD~1" if trailers else "HEAD"
    commit = git(
        *OURS, "commit-tree", tree, "-p", parent, "-m", message if trailers else "Record 0 events"
    ).strip()
    git("update-ref", "refs/heads/main", commit)
    log.write_bytes(whole)
    assert f"commit {commit[:12]}" in [
        finding.where for finding in verify(task).findings if finding.check == "commits"
    ]
    repair(task)
    assert log.read_bytes() == whole
    found = verify(task)
    assert found.sound, found.findings


def test_push_refuses_a_damaged_history(path, write, log, task, tmp_path, lexical):
    """Nothing reaches the remote, and the sentence says what to do."""
    some(path, write)
    path.close()
    backup = tmp_path / "backup.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", backup], check=True)
    flip(log)
    with Workspace.open(task, settings=lexical) as ws, pytest.raises(AgentXError, match="agentx repair"):
        ws.push(url=str(backup))
    assert subprocess.run(["git", "-C", backup, "branch"], capture_output=True, check=True).stdout == b""
    repair(task)
    with Workspace.open(task, settings=lexical) as ws:
        ws.push(url=str(backup))


def test_nothing_is_pulled_over_forked_or_purged_from_a_damaged_log(
    path, write, log, task, tmp_path, lexical
):
    """What stands in no commit yet would be lost by it."""
    some(path, write)
    path.close()
    backup = tmp_path / "backup.git"
    subprocess.run(["git", "clone", "-q", "--bare", task, backup], check=True)
    flip(log)
    damaged = log.read_bytes()
    with Workspace.open(task, settings=lexical) as ws:
        for act in (
            lambda: ws.pull(url=str(backup)),
            lambda: ws.fork(tmp_path / "fork"),
            lambda: ws.purge(2, reason="a test"),
        ):
            with pytest.raises(AgentXError, match="agentx repair"):
                act()
    assert log.read_bytes() == damaged


def test_push_refuses_a_damaged_log_that_an_earlier_version_committed(earlier, log, task, tmp_path, lexical):
    """Although the log in the directory was put right by hand."""
    earlier()
    backup = tmp_path / "backup.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", backup], check=True)
    with Workspace.open(task, settings=lexical) as ws, contextlib.suppress(AgentXError):
        ws.push(url=str(backup))
    assert subprocess.run(["git", "-C", backup, "branch"], capture_output=True, check=True).stdout == b""
