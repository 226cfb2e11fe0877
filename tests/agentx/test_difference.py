"""What differs between two moments: files by path, with their lines, and memory, item by item."""

import os

import pytest

from agentx.engine.moment_parser import NoSuchMoment
from agentx.history.diff import FieldDiff
from agentx.storage.events.types import Draft, RunStarted, ToolCallExecuted


def told(made):
    return [(file.what, file.old_path, file.path, file.added, file.removed) for file in made.files]


def test_files_that_came_changed_moved_and_went_with_their_lines(ws):
    ws.tools.write_file("stays.txt", "as it is\n")
    ws.tools.write_file("changed.txt", "one\ntwo\nthree\n")
    ws.tools.write_file("moved.txt", "a\nb\nc\n")
    ws.tools.write_file("gone.txt", "x\ny\n")
    then = ws.state.seq
    ws.tools.write_file("changed.txt", "one\n2\nthree\nfour\n")
    ws.tools.move_file("moved.txt", "there/moved.txt")
    ws.tools.edit_file("there/moved.txt", "b\n", "B\n")
    ws.tools.delete_file("gone.txt")
    ws.tools.write_file("new.txt", "n\n")
    ws.tools.write_file("brief.txt", "here for a moment\n")
    ws.tools.delete_file("brief.txt")
    assert told(ws.diff(then)) == [
        ("changed", "", "changed.txt", 2, 1),
        ("deleted", "", "gone.txt", 0, 2),
        ("added", "", "new.txt", 1, 0),
        ("moved", "moved.txt", "there/moved.txt", 1, 1),
    ]
    assert ws.diff(then).files[0].patch == ""
    assert "-two\n+2\n" in ws.diff(then, patches=True).files[0].patch


def test_a_file_that_was_changed_and_set_back_does_not_differ(ws):
    ws.tools.write_file("a.txt", "one")
    then = ws.state.seq
    ws.tools.write_file("a.txt", "two")
    ws.tools.move_file("a.txt", "b.txt")
    ws.undo()
    ws.undo()
    made = ws.diff(then)
    assert (made.files, made.first, made.last) == ((), then, ws.state.seq)


def test_binary_files_and_modes_are_told_without_lines(ws):
    (ws.artifacts / "logo.png").write_bytes(b"\x89PNG\0one")
    ws.tools.write_file("run.sh", "#!/bin/sh\n")
    ws.status()
    then = ws.state.seq
    (ws.artifacts / "logo.png").write_bytes(b"\x89PNG\0three")
    (ws.artifacts / "run.sh").chmod(0o755)
    os.symlink("run.sh", ws.artifacts / "link")
    ws.status()
    link, logo, run = ws.diff(then).files
    assert (link.what, link.path) == ("added", "link")
    assert (logo.binary, logo.added, logo.old_bytes, logo.new_bytes) == (True, 0, 8, 10)
    assert (run.what, run.added, run.mode) == ("changed", 0, "executable")


def test_memory_that_came_changed_and_ended(ws):
    stays = ws.remember("rule", "Measure twice.")
    rule = ws.remember("rule", "Cut once.")
    ended = ws.remember("decision", "We use Postgres.")
    then = ws.state.seq
    ws.edit_memory(rule.id, "Cut twice.")
    ws.pin(rule.id)
    ws.retire(ended.id)
    ws.say("From now on, never create a requirements.txt file.")
    brief = ws.remember("task", "Call Ann.")
    ws.retire(brief.id)
    items = {item.id: item for item in ws.diff(then).items}
    assert stays.id not in items
    assert items[rule.id].what == "changed"
    assert items[rule.id].fields == (
        FieldDiff("text", "Cut once.", "Cut twice."),
        FieldDiff("pinned", "no", "yes"),
    )
    assert (items[ended.id].what, items[ended.id].status) == ("ended", "retired")
    assert items[brief.id].what == "came and ended"
    (rest,) = items.keys() - {rule.id, ended.id, brief.id}
    assert (items[rest].what, items[rest].kind, items[rest].fields) == ("came", "constraint", ())


def test_by_default_it_is_the_latest_turn_up_to_now(ws):
    ws.tools.write_file("before.txt", "b")
    said = ws.say("Write something.")
    start = RunStarted(task=ws.body("Write something."), agent="main", model="m")
    ws.record(Draft(data=start, actor="agent:main", run="r-1", cause=said.seq))
    ws.tools.write_file("after.txt", "a")
    made = ws.diff()
    assert (made.first, made.last) == (said.seq - 1, ws.state.seq)
    assert [file.path for file in made.files] == ["after.txt"]
    assert made.last_at == next(event for event in ws.events(after=made.last - 1)).at
    again = ws.say("And something else.")
    assert ws.diff().first == again.seq - 1


def test_a_fresh_workspace_differs_from_nothing_by_what_it_has(ws):
    ws.tools.write_file("a.txt", "one")
    made = ws.diff(0)
    assert (made.first_at, [file.what for file in made.files]) == ("", ["added"])


def test_the_earlier_moment_stands_first(ws):
    ws.say("Hello.")
    with pytest.raises(NoSuchMoment, match="give the earlier one first"):
        ws.diff(2, 1)


def test_a_content_that_is_no_longer_kept_is_said_so(ws):
    ws.engine.write_path.defer(None)  # so that the object is a file, which can be removed
    written = ws.tools.write_file("a.txt", "one")
    ws.tools.write_file("a.txt", "two")
    (event,) = [e for e in ws.events() if e.seq == written.seq and isinstance(e.data, ToolCallExecuted)]
    oid = event.data.changes[0].after
    (ws.root / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    (file,) = ws.diff(written.seq).files
    assert (file.what, file.missing, file.added) == ("changed", True, 0)
