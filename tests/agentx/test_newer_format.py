"""A workspace from a newer version opens for reading: all of it can be read, and nothing on the disk changes."""

import hashlib
import os

import pytest

from agentx import Workspace
from agentx.core.layout import FORMAT
from agentx.recording.write_path import ReadOnly
from agentx.storage.events.types import Draft, WorkspaceCreated


def snapshot(root):
    """Every file but the caches, with its content."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and ".agentx" not in path.parts
    }


@pytest.fixture
def newer(ws, lexical):
    ws.say("Never create a requirements.txt file.")
    ws.tools.write_file("a.md", "The walrus sleeps.\n")
    ws.record(Draft(data=WorkspaceCreated(title="From the future", format=FORMAT + 1), actor="user"))
    ws.close()
    with Workspace.open(ws.root, settings=lexical) as newer:
        yield newer


def test_it_says_so_once_and_reads_everything(newer):
    before = snapshot(newer.root)
    (note,) = newer.status().notes
    assert "newer version" in note
    assert "pip install --upgrade" in note
    assert newer.state.title == "From the future"
    assert [hit.path for hit in newer.search("walrus", kind="artifact")] == ["a.md"]
    assert "requirements.txt" in newer.get_relevant_context("x", tier=3).text
    assert newer.memory("constraint")
    assert newer.tools.read_file("a.md").text == "The walrus sleeps."
    assert newer.tools.call("list_directory", {}).status == "SUCCEEDED"
    assert newer.tools.summarize_directory_purpose().text
    assert newer.tools.summarize_decisions().text
    assert newer.tools.search_memory("walrus").hits
    assert newer.check_answer("x") == ()
    assert newer.rebuild().state_digest == newer.state.digest
    assert newer.settle()
    assert newer.resynthesize() == []
    assert len(list(newer.events())) == newer.state.seq
    newer.close()
    assert snapshot(newer.root) == before


WRITES = {
    "say": lambda ws: ws.say("Hello."),
    "say at length": lambda ws: ws.say("Hello. " * 5_000),
    "write": lambda ws: ws.tools.write_file("b.md", "new and long " * 5_000),
    "edit": lambda ws: ws.tools.edit_file("a.md", "walrus", "otter"),
    "move": lambda ws: ws.tools.move_file("a.md", "b.md"),
    "delete": lambda ws: ws.tools.delete_file("a.md"),
    "undo": lambda ws: ws.undo(),
    "restore": lambda ws: ws.restore(".", 1),
    "add": lambda ws: ws.add([__file__]),
    "remember": lambda ws: ws.remember("rule", "a rule"),
    "retire": lambda ws: ws.retire(ws.memory("constraint")[0].id),
}


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_refused_with_the_sentence_and_leaves_no_trace(newer, name):
    before = snapshot(newer.root)
    with pytest.raises(ReadOnly, match="newer version"):
        WRITES[name](newer)
    assert snapshot(newer.root) == before
    assert not os.path.lexists(newer.root / ".git" / "index.lock")


def test_a_persons_edits_and_an_agents_calls_leave_no_trace_either(newer):
    (newer.artifacts / "mine.md").write_text("by hand")
    before = snapshot(newer.root)
    assert newer.status().outside == ()
    with newer.watching():
        pass
    assert newer.tools.call("write_file", {"path": "b.md", "content": "x"}).status == "FAILED"
    assert newer.tools.call("nothing", "{").status == "FAILED"
    newer.flush()
    newer.close()
    assert snapshot(newer.root) == before
