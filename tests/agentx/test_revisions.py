"""Undo and restore: earlier contents come back exactly, as new events, and nothing is ever lost by it."""

import os
import shutil

import pytest

from agentx import Workspace
from agentx.history.undo_restore import NoSuchMoment, NothingToUndo, files_between
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft, WriteReverted
from agentx.storage.files.paths import PathRefused


def files(ws):
    return {
        path.relative_to(ws.artifacts).as_posix(): path.read_text()
        for path in ws.artifacts.rglob("*")
        if path.is_file()
    }


def test_a_chain_of_undos_goes_back_to_the_beginning(ws):
    ws.tools.write_file("a.txt", "one")
    ws.tools.edit_file("a.txt", "one", "two")
    ws.tools.move_file("a.txt", "b.txt")
    ws.tools.delete_file("b.txt")
    seen = []
    for _ in range(4):
        ws.undo()
        seen.append(files(ws))
    assert seen == [{"b.txt": "two"}, {"a.txt": "two"}, {"a.txt": "one"}, {}]
    with pytest.raises(NothingToUndo):
        ws.undo()
    assert ws.rebuild().state_digest == ws.state.digest


def test_a_change_after_an_undo_is_the_next_to_be_taken_back(ws):
    ws.tools.write_file("a.txt", "one")
    ws.tools.write_file("a.txt", "two")
    ws.undo()
    ws.tools.write_file("a.txt", "three")
    ws.undo()
    assert files(ws) == {"a.txt": "one"}
    ws.undo()
    assert files(ws) == {}


def test_an_undo_takes_back_a_persons_edit_before_the_agents(ws):
    ws.tools.write_file("a.txt", "agent")
    (ws.artifacts / "a.txt").write_text("person")
    ws.undo()
    assert files(ws) == {"a.txt": "agent"}
    ws.restore("a.txt", ws.state.seq - 1)
    assert files(ws) == {"a.txt": "person"}


def test_an_undo_brings_back_modes_and_links(ws):
    path = ws.artifacts / "run.sh"
    ws.tools.write_file("run.sh", "#!/bin/sh\n")
    path.chmod(0o755)
    ws.status()
    ws.undo()
    assert not os.access(path, os.X_OK)
    os.symlink("run.sh", ws.artifacts / "link")
    ws.status()
    (ws.artifacts / "link").unlink()
    (ws.artifacts / "link").write_text("a file now")
    ws.status()
    ws.undo()
    assert os.readlink(ws.artifacts / "link") == "run.sh"


def test_an_undo_survives_the_end_of_a_process(ws, elsewhere):
    ws.tools.write_file("a.txt", "one")
    ws.tools.write_file("a.txt", "two")
    elsewhere(ws, "ws.undo()")
    assert files(ws) == {"a.txt": "one"}
    ws.undo()
    assert files(ws) == {}


def test_a_restore_brings_back_a_file_a_directory_or_everything(ws):
    ws.tools.write_file("src/a.py", "a1")
    ws.tools.write_file("src/b.py", "b1")
    ws.tools.write_file("doc.md", "d1")
    then = ws.state.seq
    ws.tools.write_file("src/a.py", "a2")
    ws.tools.delete_file("src/b.py")
    ws.tools.write_file("src/c.py", "c2")
    ws.tools.write_file("doc.md", "d2")
    ws.restore("src/a.py", then)
    assert files(ws) == {"src/a.py": "a1", "src/c.py": "c2", "doc.md": "d2"}
    ws.restore("src", then)
    assert files(ws) == {"src/a.py": "a1", "src/b.py": "b1", "doc.md": "d2"}
    ws.restore(".", then)
    assert files(ws) == {"src/a.py": "a1", "src/b.py": "b1", "doc.md": "d1"}
    ws.undo()
    assert files(ws)["doc.md"] == "d2"


def test_a_restore_keeps_what_a_person_did_meanwhile_in_the_history(ws):
    ws.tools.write_file("a.txt", "one")
    then = ws.state.seq
    (ws.artifacts / "a.txt").write_text("person")
    (ws.artifacts / "new.txt").write_text("theirs")
    ws.restore(".", then)
    assert files(ws) == {"a.txt": "one"}
    ws.undo()
    assert files(ws) == {"a.txt": "person", "new.txt": "theirs"}


def test_a_restore_after_everything_was_deleted_brings_it_back(ws):
    ws.tools.write_file("src/a.py", "a1")
    then = ws.state.seq
    shutil.rmtree(ws.artifacts)
    ws.restore(".", then)
    assert files(ws) == {"src/a.py": "a1"}


def test_a_moment_or_a_name_that_never_was_is_a_sentence(ws):
    ws.tools.write_file("a.txt", "one")
    for path, at in (("a.txt", 0), ("a.txt", -1), ("a.txt", 99), ("never.txt", ws.state.seq)):
        with pytest.raises(NoSuchMoment):
            ws.restore(path, at)
    with pytest.raises(PathRefused):
        ws.restore("../a.txt", 2)


def test_a_write_that_was_cut_off_is_neither_undone_nor_restored(tmp_path):
    with Workspace.create(tmp_path / "task") as ws:
        ws.tools.write_file("a.md", "first\n")
        ws.tools.write_file("b.md", "kept\n")
        cut_off = ws.tools.write_file("a.md", "second\n").seq
        # As the recovery after a crash leaves it: the announced write is not on the disk.
        ws.engine.write_path.record(
            [Draft(data=WriteReverted(event=cut_off, path="a.md", reason="lost"), actor="engine:recovery")]
        )
        ws.restore("a.md", at=ws.state.seq)
        assert (ws.artifacts / "a.md").read_text() == "first\n"
        ws.undo()  # the restore itself
        undone = ws.undo()
        assert [made.path for made in undone.data.changes] == ["b.md"]


def test_a_moment_inside_a_change_of_several_events_means_the_whole_change(ws, tmp_path):
    project = tmp_path / "project"
    for number in range(150):
        (project / "deep" / f"{number:03}").mkdir(parents=True)
        (project / "deep" / f"{number:03}" / "same-name-in-every-directory.txt").write_text(str(number))
    ws.import_project(project)
    began = ws.state.seq
    ws.tools.move_file("deep", "other")
    parts = [event.seq for event in ws.events(after=began) if event.type == "ToolCallExecuted"]
    assert len(parts) > 1
    ws.tools.delete_file("other")
    ws.restore(".", parts[0])
    assert len(files(ws)) == 150
    assert all(path.startswith("other/") for path in files(ws))


def test_a_restore_brings_a_moved_file_back_under_either_name(ws):
    ws.tools.write_file("a.txt", "one")
    ws.tools.write_file("b.txt", "stays")
    then = ws.state.seq
    ws.tools.move_file("a.txt", "c.txt")
    ws.tools.edit_file("c.txt", "one", "two")
    ws.tools.move_file("c.txt", "d.txt")
    ws.restore("d.txt", then)
    assert files(ws) == {"a.txt": "one", "b.txt": "stays"}
    ws.undo()
    ws.restore("a.txt", then)
    assert files(ws) == {"a.txt": "one", "b.txt": "stays"}


def test_a_restore_of_a_moved_directory_takes_the_files_back_with_it(ws):
    ws.tools.write_file("src/a.py", "a")
    ws.tools.write_file("src/__init__.py", "")
    ws.tools.write_file("test/__init__.py", "")
    then = ws.state.seq
    ws.tools.move_file("src", "lib")
    ws.tools.write_file("lib/new.py", "n")
    ws.restore("lib", then)
    assert files(ws) == {"src/a.py": "a", "src/__init__.py": "", "test/__init__.py": ""}


def test_a_name_that_another_file_has_taken_leaves_the_moved_one_where_it_is(ws):
    ws.tools.write_file("a.txt", "old")
    then = ws.state.seq
    ws.tools.move_file("a.txt", "b.txt")
    ws.tools.write_file("a.txt", "new")
    ws.restore("a.txt", then)
    assert files(ws) == {"a.txt": "old", "b.txt": "old"}


def test_a_restore_puts_a_directory_in_the_place_of_a_file_and_back(ws):
    ws.tools.write_file("a/b.txt", "one")
    then = ws.state.seq
    ws.tools.delete_file("a/b.txt")
    ws.tools.write_file("a", "a file")
    ws.restore(".", then)
    assert files(ws) == {"a/b.txt": "one"}
    ws.undo()
    assert files(ws) == {"a": "a file"}


def test_a_write_that_changes_nothing_is_an_event_but_no_change_and_no_commit(ws):
    ws.tools.write_file("a.txt", "one")
    head = ws.engine.git.head
    again = ws.tools.write_file("a.txt", "one")
    (event,) = [event for event in ws.events() if event.seq == again.seq]
    assert event.data.changes == ()
    assert ws.engine.git.head == head
    ws.undo()
    assert files(ws) == {}


def test_an_undo_finds_the_latest_change_however_long_ago_it_was(ws):
    ws.tools.write_file("a.txt", "one")
    ws.tools.write_file("a.txt", "two")
    ws.record(*[Draft(data=AgentThoughtProcess(body=Body(str(n))), actor="agent:main") for n in range(1_500)])
    ws.undo()
    assert files(ws) == {"a.txt": "one"}
    ws.undo()
    assert files(ws) == {}
    with pytest.raises(NothingToUndo):
        ws.undo()


def test_what_lay_there_then_is_read_from_the_commit_before_and_the_events_behind_it(ws):
    ws.tools.write_file("early.txt", "early")
    ws.tools.write_file("a.txt", "one")
    then = ws.state.seq
    for number in range(5):
        ws.say(f"Message {number}.")
    between = ws.state.seq
    ws.tools.write_file("late.txt", "late")
    history, read = ws.engine.log.history, []
    real = history.read
    history.read = lambda after=0, *rest, **more: read.append(after) or real(after, *rest, **more)
    found = files_between(ws.engine, between)
    history.read = real
    assert set(found.then) == {"early.txt", "a.txt"}
    assert set(found.now) == {"early.txt", "a.txt", "late.txt"}
    assert min(read) >= then - 1
