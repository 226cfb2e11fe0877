"""A purge: what should never have been kept is gone from every byte of a workspace, and everything else still holds."""

import contextlib
import errno
import json
import os
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from agentx import Workspace
from agentx.integrity.purge import purge as purging
from agentx.integrity.purge.copies import PurgeRefused
from agentx.recording import purge_journal
from agentx.recording.staging import WriteFailed
from agentx.storage.artifacts import FileChange
from agentx.storage.events.types import Body, Draft, Purged, RunStarted, ToolCallExecuted, ToolCallRequested
from agentx.storage.git.exchange.remotes import NoRemote
from agentx.storage.git.objects import blob_id
from agentx.storage.git.packs import prune
from agentx.storage.git.packs.packing import Packer
from agentx.storage.git.packs.rewriting import Rewriter
from agentx.synthesis.state.state import State

ADDRESS = "Maria Musterfrau, Gartenweg 17, in the yellow house"
PAT = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")


def git(root, *arguments, check=True):
    done = subprocess.run(["git", *PAT, *arguments], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout.decode("utf-8", "replace")


def traces(root, words=ADDRESS):
    """Every place below a directory where some words stand: in files as they are, inflated, and in Git's objects."""
    wanted, found = words.encode(), []
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        with contextlib.suppress(FileNotFoundError):  # a lock that the keeper released, a file that it packed
            content = path.read_bytes()
            if wanted in content or wanted in inflated(content):
                found.append(path.relative_to(root).as_posix())
    listed = git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    for oid, kind in map(str.split, listed.splitlines()):
        content = subprocess.run(["git", "cat-file", kind, oid], cwd=root, capture_output=True, check=True)
        if wanted in content.stdout:
            found.append(f"{kind} {oid}")
    return found


def inflated(content):
    """What a loose object, or the first object of a file, holds."""
    try:
        return zlib.decompressobj().decompress(content)
    except zlib.error:
        return b""


def packed_bytes(root):
    """Everything in every pack, each zlib stream inflated wherever one begins: what no index names as well."""
    found = b""
    for path in (root / ".git").rglob("*.pack"):
        content = path.read_bytes()
        for place in range(len(content)):
            if content[place] == 0x78:
                found += inflated(content[place:])
    return found


def is_sound(ws, *purged):
    ws.flush()
    assert traces(ws.root) == []
    assert ADDRESS.encode() not in packed_bytes(ws.root)
    assert git(ws.root, "fsck", "--strict", "--no-progress", "--no-dangling") == ""
    assert git(ws.root, "status", "--porcelain") == ""
    events = list(ws.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.seq for event in events if isinstance(event.data, Purged)} == set(purged)
    assert State().apply_all(events).digest == ws.state.digest
    found = ws.verify()
    assert (found.findings, [one.seq for one in found.purged]) == ((), sorted(purged))


@pytest.fixture
def bare(tmp_path):
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    return tmp_path / "remote.git"


# --- every kind of copy --------------------------------------------------------------------------------------------------


def test_a_message_goes_with_what_was_concluded_from_it_and_with_its_commit_message(ws):
    ws.tools.write_file("a.txt", "one\n")
    said = ws.say(f"From now on, never write to {ADDRESS}.")
    ws.tools.write_file("a.txt", "two\n")
    later = ws.say("From now on, never create a requirements.txt file.")
    assert f"c-{said.seq}" in ws.state.items
    assert traces(ws.root)
    before = git(ws.root, "log", "--format=%an %ae %ad %cd").splitlines()
    done = ws.purge(said.seq, reason="an address")
    assert [(one.seq, one.type) for one in done.plan.events] == [
        (said.seq, "UserMessageSent"),
        (said.seq + 1, "Concluded"),
    ]
    assert list(ws.state.items) == [f"c-{later.seq}"]
    assert [event.data.reason for event in ws.events() if event.type == "EventsPurged"] == ["an address"]
    assert (
        git(ws.root, "log", "--format=%an %ae %ad %cd").splitlines()[-len(before) :] == before[-len(before) :]
    )
    assert f"UserMessageSent of event {said.seq} was purged" in git(ws.root, "log")
    assert git(ws.root, "log", "-1", "--format=%s").startswith(
        f"Purge events {said.seq}, {said.seq + 1}: an address"
    )
    is_sound(ws, said.seq, said.seq + 1)


def test_a_call_goes_with_its_request_and_its_long_output(ws):
    arguments = {"path": "x", "note": ADDRESS}
    request = ToolCallRequested(
        call_id="c1", tool="ask", arguments=arguments, whole=ws.body(json.dumps(arguments))
    )
    output = ws.body(f"{ADDRESS}\n" + "a long answer " * 1_000)
    assert output.blob
    asked, done = ws.record(
        Draft(data=request, actor="agent:main", run="r-1"),
        Draft(
            data=ToolCallExecuted(call_id="c1", tool="ask", status="SUCCEEDED", output=output),
            actor="agent:main",
            run="r-1",
        ),
    )
    other = ToolCallExecuted(call_id="c1", tool="ask", status="SUCCEEDED", output=Body("of another run"))
    (kept,) = ws.record(Draft(data=other, actor="agent:main", run="r-2"))
    ws.flush()
    ws.purge(done.seq)
    assert not list((ws.root / "history/blobs").rglob("*/*"))
    assert ws.state.pending == {}
    assert ws.engine.log.history.read(kept.seq - 1).__next__().data == other
    is_sound(ws, asked.seq, done.seq)


def test_a_run_whose_task_is_the_message_goes_with_it(ws):
    said = ws.say("Who lives there?")
    (run,) = ws.record(
        Draft(data=RunStarted(task=said.data.body, agent="main", model="m"), actor="agent:main", run="r-1")
    )
    ws.purge(said.seq)
    assert isinstance(list(ws.events())[run.seq - 1].data, Purged)


def test_the_content_of_a_file_gives_way_to_a_placeholder_in_every_earlier_commit(ws):
    ws.tools.write_file("people/list.md", f"# People\n\n{ADDRESS}\n")
    (written,) = [event for event in ws.events() if event.type == "ToolCallExecuted"]
    with pytest.raises(
        PurgeRefused, match=r"'people/list.md' still has the content .* Change or delete the file first"
    ):
        ws.purge(written.seq)
    ws.tools.write_file("other.md", "other\n")
    ws.tools.write_file("people/list.md", "# People\n")
    plan = ws.plan_purge(written.seq)
    assert (plan.contents, plan.files) == (1, ("people/list.md",))
    ws.purge(written.seq)
    shown = git(ws.root, "log", "-p", "--", "artifacts/people/list.md")
    assert f"+purged: event {written.seq}" in shown
    assert (ws.artifacts / "people/list.md").read_text() == "# People\n"
    is_sound(ws, written.seq)
    ws.restore("people/list.md", written.seq)
    assert (ws.artifacts / "people/list.md").read_text() == f"purged: event {written.seq}\n"


def test_what_a_person_edited_and_committed_goes_too(ws):
    ws.tools.write_file("a.txt", "one\n")
    ws.flush()
    (ws.artifacts / "a.txt").write_text(f"{ADDRESS}\n")
    git(ws.root, "commit", "-qam", "mine")
    (ws.artifacts / "b.txt").write_text(f"{ADDRESS}\n")
    ws.status()
    copied = [event.seq for event in ws.events() if event.type == "ArtifactChanged"]
    for name in ("a.txt", "b.txt"):
        (ws.artifacts / name).unlink()
    ws.status()
    done = ws.purge(copied[0])
    assert [one.seq for one in done.plan.events] == copied
    assert "mine" in git(ws.root, "log", "--format=%s")
    is_sound(ws, *copied)


def test_what_merely_says_the_same_is_listed_and_taken_in_on_demand(ws):
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.say("And what about another thing altogether?")
    ws.tools.write_file("a.txt", f"line\n{ADDRESS}\nmore\n")
    ws.tools.write_file("a.txt", f"line\n{ADDRESS}\nmore and more\n")
    ws.tools.write_file("a.txt", "line\nmore and more\n")
    ws.remember("knowledge", f"I know {ADDRESS} well.")
    quoting = [event.seq for event in ws.events() if event.type in ("ToolCallExecuted", "Concluded")]
    plan = ws.plan_purge(said.seq)
    assert [one.seq for one in plan.events] == [said.seq]
    assert [one.seq for one in plan.also] == [seq for seq in quoting if seq != quoting[-2]]
    assert all(ADDRESS in one.quote for one in plan.also)
    done = ws.purge(said.seq, also=True)
    assert done.plan.also == ()
    assert ws.memory() == []
    is_sound(ws, *(one.seq for one in done.plan.events))


def test_a_conclusion_that_only_ends_an_item_stays(ws):
    said = ws.say(f"From now on, never write to {ADDRESS}.")
    ws.retire(f"c-{said.seq}")
    ended = ws.state.seq
    ws.edit_memory(ws.remember("knowledge", "A fact.").id, "Another fact.")
    ws.purge(said.seq)
    assert not isinstance(list(ws.events())[ended - 1].data, Purged)
    assert [item.text for item in ws.memory()] == ["Another fact."]
    is_sound(ws, said.seq, said.seq + 1)


def test_lines_that_were_set_aside_go_too(ws):
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.flush()
    line = (ws.root / "history.jsonl").read_bytes().splitlines(keepends=True)[-1]
    kept = b'{"why": "torn", "content": "something else"}\n'
    ws.close()
    with (ws.root / "history.jsonl").open("ab") as file:
        file.write(line.replace(b'"seq"', b'"seq"')[:-20])
    with Workspace.open(ws.root, settings=ws.settings) as again:
        again.say("More.")
        again.flush()
        orphans = ws.root / "history/orphans.jsonl"
        with orphans.open("ab") as file:
            file.write(kept)
        again.say("And more.")
        again.flush()
        assert ADDRESS in orphans.read_text()
        again.purge(said.seq)
        assert orphans.read_bytes() == kept
        is_sound(again, said.seq)


def test_sealed_segments_snapshots_packs_and_the_index_hold_nothing_of_it(ws, monkeypatch):
    said = ws.say(f"Where is this: {ADDRESS}?")
    for number in range(40):
        ws.tools.write_file(f"d/{number}.txt", f"{number} {'word ' * 600}\n")
        ws.say(f"{number} {'word ' * 900}")
    assert ws.search("yellow house")
    monkeypatch.setattr("agentx.recording.recorded_log.SNAPSHOT_EVENTS", 1)
    ws.flush()
    Packer(ws.root / ".git").run()
    (ws.root / ".agentx/repaired").mkdir()
    (ws.root / ".agentx/repaired/old").write_text(ADDRESS)
    assert (ws.root / "history/000/001.jsonl").exists()
    ws.purge(said.seq)
    is_sound(ws, said.seq)
    assert ws.search("yellow house") == [] or ADDRESS not in str(ws.search("yellow house"))
    assert ws.search("word")
    assert sorted(path.name for path in (ws.root / ".git/objects/pack").iterdir() if "pack-" in path.name)
    is_sound(ws, said.seq)


def test_the_vector_of_what_is_purged_is_not_kept(ws):
    class Length:
        name, dimensions, batch = "length", 8, 8

        def embed_query(self, text):
            return np.eye(8, dtype=np.float32)[len(text) % 8]

        def embed_passages(self, texts):
            return list(map(self.embed_query, texts))

    ws.engine.indexer._embedder = Length()
    text = f"Where is this: {ADDRESS}?"
    said = ws.say(text)
    assert ws.settle()
    names = set(ws.engine.indexer._vectors)
    kept = ws.root / ".agentx/vectors"
    assert any(name in kept.read_bytes() for name in names)
    ws.purge(said.seq)
    ws.say("Another message.")
    assert ws.settle()
    assert not any(name in kept.read_bytes() for name in names)


def test_it_waits_for_a_process_that_writes_the_table_of_the_index(ws, monkeypatch):
    said = ws.say(f"Where is this: {ADDRESS}?")
    assert ws.search("yellow house")
    index = ws.engine.indexer.index
    writing, write = threading.Event(), index._database.write

    def slowly(*given):
        writing.set()
        time.sleep(1)
        return write(*given)

    monkeypatch.setattr(index._database, "write", slowly)
    flushing = threading.Thread(target=index.flush)
    flushing.start()
    writing.wait()
    ws.purge(said.seq)
    flushing.join()
    is_sound(ws, said.seq)


# --- Git beside the branch -----------------------------------------------------------------------------------------------


def test_refs_that_hold_it_go_and_others_stay(ws, bare):
    ws.tools.write_file("a.txt", "one\n")
    ws.flush()
    git(ws.root, "tag", "before")
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.push(url=str(bare))
    git(ws.root, "tag", "-a", "-m", "behind it", "behind")
    git(ws.root, "branch", "side")
    git(ws.root, "fetch", "-q", "origin")
    (ws.artifacts / "a.txt").write_text("mine\n")
    git(ws.root, "stash", "-q")
    ws.status()
    git(ws.root, "pack-refs", "--all")
    plan = ws.plan_purge(said.seq)
    assert plan.refs == ("refs/heads/side", "refs/remotes/origin/main", "refs/stash", "refs/tags/behind")
    assert plan.remotes == ("origin",)
    ws.purge(said.seq)
    assert git(ws.root, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/tags/before",
    ]
    assert len(git(ws.root, "reflog").splitlines()) <= 2
    is_sound(ws, said.seq)
    with pytest.raises(NoRemote):
        ws.push()
    git(bare, "update-ref", "-d", "refs/heads/main")
    assert ws.push(url=str(bare)).from_seq == 0


def test_a_repository_whose_objects_lie_elsewhere_is_refused(ws, tmp_path):
    said = ws.say(ADDRESS)
    ws.flush()
    for name, content in (("objects/info/alternates", "/nowhere\n"), ("shallow", "0" * 40 + "\n")):
        (ws.root / ".git" / name).write_text(content)
        with pytest.raises(PurgeRefused, match="Nothing can be purged from this repository"):
            ws.plan_purge(said.seq)
        (ws.root / ".git" / name).unlink()
    git(ws.root, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    with pytest.raises(PurgeRefused, match="other work trees"):
        ws.plan_purge(said.seq)


def test_a_clone_of_what_was_purged_opens_and_verifies(ws, tmp_path, lexical):
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.tools.write_file("a.txt", "one\n")
    ws.purge(said.seq)
    git(tmp_path, "clone", "-q", str(ws.root), "clone")
    with Workspace.open(tmp_path / "clone", settings=lexical) as clone:
        assert clone.state.digest == ws.state.digest
        is_sound(clone, said.seq)


# --- what is refused -----------------------------------------------------------------------------------------------------


def test_what_cannot_be_purged_is_refused_and_nothing_changes(ws, tmp_path):
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.flush()
    head = git(ws.root, "rev-parse", "HEAD")
    with pytest.raises(PurgeRefused, match="Event 99 does not exist; the history has events 1 to"):
        ws.purge(99)
    with pytest.raises(PurgeRefused, match=r"Event 1 \(WorkspaceCreated\) cannot be purged"):
        ws.purge(1)
    with pytest.raises(PurgeRefused, match="choose a new directory"):
        ws.purge(said.seq, backup=ws.root / "inside")
    plan = ws.plan_purge(said.seq)
    git(ws.root, "tag", "new")
    with pytest.raises(PurgeRefused, match="changed in the meantime"):
        ws.purge(said.seq, agreed=plan)
    git(ws.root, "tag", "-d", "new")
    assert git(ws.root, "rev-parse", "HEAD") == head
    ws.purge(said.seq, backup=tmp_path / "kept")
    assert ADDRESS in (tmp_path / "kept/history.jsonl").read_text()
    with pytest.raises(PurgeRefused, match="already purged"):
        ws.purge(said.seq)
    is_sound(ws, said.seq)


# --- crashes and other processes -----------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process."""


STEPS = [
    (purging, "finish"),
    (purge_journal._Purge, "_empty_caches"),
    (purge_journal._Purge, "_record"),
    (purge_journal._Purge, "_purge_git"),
    (prune, "set_refs"),
    (prune, "_pack_refs"),
    (prune, "sweep"),
    (prune, "_take_in"),
    (prune, "_remove_traces"),
    (Rewriter, "rewrite"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("place", "name"), STEPS, ids=[name for _, name in STEPS])
def test_what_is_cut_off_is_finished_by_the_next_open(ws, lexical, monkeypatch, place, name, after):
    ws.tools.write_file("a.txt", f"{ADDRESS}\n")
    ws.tools.write_file("a.txt", "two\n")
    said = ws.say(f"From now on, never write to {ADDRESS}.")
    ws.tools.write_file("b.txt", "three\n")
    digest = ws.state.digest
    real = getattr(place, name)

    def cut(*arguments, **named):
        if after:
            real(*arguments, **named)
        raise Killed

    ws._keeper.stop()  # a process that dies has no thread that goes on
    monkeypatch.setattr(place, name, cut)
    with pytest.raises(Killed):
        ws.purge(said.seq, also=True)
    monkeypatch.setattr(place, name, real)
    ws._closed = True
    ws.engine.write_path.close()
    with Workspace.open(ws.root, settings=lexical) as again:
        assert not (again.root / ".git/agentx-purge").exists()
        purged = [event.seq for event in again.events() if isinstance(event.data, Purged)]
        assert set(purged) > {said.seq}
        assert [event.type for event in again.events()].count("EventsPurged") == 1
        assert again.state.digest != digest
        is_sound(again, *purged)


def test_a_full_disk_is_told_and_the_rest_is_done_when_there_is_room(ws, monkeypatch):
    said = ws.say(f"Where is this: {ADDRESS}?")

    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(prune, "sweep", full)
        with pytest.raises(
            WriteFailed,
            match=r"could not be removed completely .*: No space .* when the workspace is next used",
        ):
            ws.purge(said.seq)
    ws.say("There is room again.")
    is_sound(ws, said.seq)


@pytest.mark.parametrize("files", [3, 40, 90, 140, 190])
def test_a_process_that_is_killed_while_it_purges_leaves_nothing_behind(ws, lexical, files, in_a_process):
    """Killed at the n-th file that it opens for writing, removes or renames, once the purge was written down."""
    ws.tools.write_file("a.txt", f"{ADDRESS}\n")
    ws.tools.write_file("a.txt", "two\n")
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.close()
    program = f"""
import os, sys
from pathlib import Path
from agentx import Workspace
from agentx.settings import Settings
left, begun = [{files}], [False]
def look(name, arguments):
    if name == "os.rename" and "agentx-purge" in str(arguments[1]):
        begun[0] = True
    if begun[0] and (name in ("os.rename", "os.remove") or (name == "open" and arguments[2] & os.O_WRONLY)):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), 9)
ws = Workspace.open(sys.argv[1], settings=Settings(environ=dict(os.environ), cache_dir=Path("no-models")))
sys.addaudithook(look)
ws.purge({said.seq}, also=True)
"""
    in_a_process(program, ws.root)
    with Workspace.open(ws.root, settings=lexical) as again:
        purged = [event.seq for event in again.events() if isinstance(event.data, Purged)]
        assert said.seq in purged
        is_sound(again, *purged)


def test_another_process_that_has_it_open_notices_and_goes_on(ws, tmp_path):
    ws.tools.write_file("a.txt", "one\n")
    said = ws.say(f"From now on, never write to {ADDRESS}.")
    program = """
import os, sys
from pathlib import Path
from agentx import Workspace
from agentx.settings import Settings
settings = Settings(environ=dict(os.environ), cache_dir=Path("no-models"))
with Workspace.open(sys.argv[1], settings=settings) as ws:
    heard = []
    ws.on("EventsPurged", heard.append)
    ws.search("yellow house")
    ws.say("I have it open. " + "word " * 1_500)
    print("ready", flush=True)
    sys.stdin.readline()
    ws.say("I go on.")
    ws.tools.write_file("b.txt", "two\\n")
    assert len(heard) == 1, heard
    assert not ws.memory(), ws.memory()
    assert "yellow" not in str(ws.search("yellow house"))
    assert "yellow" not in ws.get_relevant_context("the yellow house").text
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(ws.root)],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "ready\n"
    ws.purge(said.seq)
    ws.say("So do I.")
    _, problem = other.communicate("go\n", timeout=60)
    assert (other.returncode, problem) == (0, "")
    assert (ws.artifacts / "b.txt").read_text() == "two\n"
    is_sound(ws, said.seq, said.seq + 1)


def test_work_goes_on_after_a_purge(ws):
    said = ws.say(f"Where is this: {ADDRESS}?")
    ws.tools.write_file("a.txt", "one\n")
    ws.purge(said.seq)
    ws.tools.write_file("a.txt", "two\n")
    ws.undo()
    assert (ws.artifacts / "a.txt").read_text() == "one\n"
    second = ws.say(f"Again: {ADDRESS}.")
    ws.purge(second.seq)
    assert ws.moment("HEAD") == ws.state.seq
    assert ws.engine.commit_of(second.seq) in git(ws.root, "log", "--format=%H")
    is_sound(ws, said.seq, second.seq)


def test_an_outer_work_tree_is_purged_like_any_other(tmp_path, lexical):
    (tmp_path / "project").mkdir()
    with Workspace.create(tmp_path / "project/task", artifacts="..", settings=lexical) as ws:
        ws.tools.write_file("a.txt", f"{ADDRESS}\n")
        written = ws.state.seq
        ws.tools.delete_file("a.txt")
        assert ws.purge(written).plan.events[0].seq == written
        is_sound(ws, written)
    assert not (tmp_path / "project/a.txt").exists()


def test_a_content_that_two_events_brought_goes_with_both(ws):
    ws.tools.write_file("a.txt", f"{ADDRESS}\n")
    ws.tools.move_file("a.txt", "b.txt")
    ws.tools.delete_file("b.txt")
    seqs = [event.seq for event in ws.events() if event.type == "ToolCallExecuted"]
    done = ws.purge(seqs[0])
    assert [one.seq for one in done.plan.events] == seqs[:2]
    is_sound(ws, *seqs[:2])
    assert (
        FileChange("b.txt", before=blob_id(f"{ADDRESS}\n".encode()))
        in list(ws.events())[seqs[2] - 1].data.changes
    )


def test_nothing_at_all_is_in_the_journal_of_what_is_purged(ws, monkeypatch):
    said = ws.say(f"Where is this: {ADDRESS}?")
    seen = []
    real = purge_journal.begin
    monkeypatch.setattr(
        "agentx.integrity.purge.purge.begin",
        lambda git_dir, one: (real(git_dir, one), seen.append(Path(git_dir, purge_journal.NAME).read_text())),
    )
    ws.purge(said.seq)
    assert len(seen) == 1
    assert "yellow" not in seen[0]
