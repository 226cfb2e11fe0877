"""What a pipeline appended to its long-term memory stays when people restore, undo or accept other versions of it."""

import re

import pytest

from agentx.history.undo_restore import NothingToUndo
from agentx.pipelines.runner import PipelineStopped, redo
from agentx.policy.amendments import amend
from agentx.storage.events.types import ToolCallExecuted
from agentx.synthesis.pipelines.definition.reading import read
from agentx.synthesis.pipelines.definition.steps import resolve
from tests.agentx.pipelines.conftest import Desk, well

GLOSSARY = "meta/glossary.md"


def edit(desk: Desk, old: str, new: str, text: str = "") -> None:
    """Edit the glossary as a person does, in a text that may be an older one."""
    text = text or desk.text(GLOSSARY)
    assert old in text
    (desk.ws.artifacts / GLOSSARY).write_text(text.replace(old, new), "utf-8")


def terms(desk: Desk) -> dict[str, str]:
    """Return the terms that are remembered, with their definitions."""
    active = (item for item in desk.ws.state.items.values() if item.status == "active")
    texts = [item.text for item in active if item.kind == "knowledge"]
    assert len(set(texts)) == len(texts)
    return dict(text.split(": ", 1) for text in texts)


def in_the_middle(desk: Desk, item: str, change, after: str = "drafts"):
    """Return an author who writes well, and a person who changes something while an item is written."""

    def write(path, prompt):
        if path == f"{after}/{item}.md":
            change()
        return well(path, prompt)

    return write


ALL = {f"term0{number}": f"what 0{number} is about" for number in (1, 2, 3)}


def test_the_restore_that_the_product_advises_keeps_what_later_steps_remembered(desk):
    write = in_the_middle(desk, "02", lambda: edit(desk, "**term01**: what", "**term01**: That what"))
    ended = desk.run(write)
    assert ended.status == "COMPLETED"
    changed, breach = ended.incidents
    assert changed.startswith("meta/glossary.md was changed from outside while the pipeline ran (event ")
    assert "To accept the change, run `agentx pipeline amend meta/glossary.md --reason …`" in breach
    assert "**term03**" in desk.text(GLOSSARY)
    with pytest.raises(PipelineStopped) as stopped:
        desk.run()
    assert "Both keep what was appended since." in str(stopped.value)
    (seq,) = re.findall(r"agentx restore meta/glossary\.md --at (\d+)", str(stopped.value))
    event = desk.ws.restore(GLOSSARY, int(seq))
    text = desk.text(GLOSSARY)
    assert "That what" not in text
    assert [text.count(f"- **term0{number}**: what 0{number}") for number in (1, 2, 3)] == [1, 1, 1]
    assert re.fullmatch(
        r"meta/glossary\.md is append-only, so it keeps what was appended since: 4 lines of events \d+ and \d+\. "
        r"To change that, edit the file and run `agentx pipeline amend meta/glossary\.md --reason …`\.",
        event.data.noted,
    )
    assert terms(desk) == ALL
    assert not desk.facts("FileAmended")  # memory had it right all the time
    assert desk.run().status == "COMPLETED"
    assert not desk.author.prompts
    redo(desk.ws.engine, resolve(*read(desk.path)), "write", "03", "it is dull")
    assert desk.run().status == "COMPLETED"
    assert "**term02**" in desk.author.prompts[0]
    assert desk.text(GLOSSARY) == text


def test_a_restore_of_a_time_before_the_file_keeps_all_that_was_appended(desk):
    desk.run()
    text = desk.text(GLOSSARY)
    desk.ws.restore(GLOSSARY, 3)
    assert desk.text(GLOSSARY) == text
    desk.ws.restore(".", 3)
    assert desk.text(GLOSSARY) == text
    assert not (desk.ws.artifacts / "outline.md").exists()
    assert terms(desk) == ALL


def test_an_undo_takes_nothing_from_the_long_term_memory_that_the_engine_added(desk):
    desk.run()
    text = desk.text(GLOSSARY)
    while True:
        try:
            desk.ws.undo()
        except NothingToUndo:
            break
    assert desk.text(GLOSSARY) == text
    assert not (desk.ws.artifacts / "drafts" / "01.md").exists()
    edit(desk, "**term01**", "**word01**")
    desk.ws.undo()
    assert desk.text(GLOSSARY) == text


def test_an_undo_takes_back_what_an_agent_appended(desk):
    desk.run()
    text = desk.text(GLOSSARY)
    desk.ws.tools.write_file(GLOSSARY, text + "- **more**: a mistake\n")
    desk.ws.undo()
    assert desk.text(GLOSSARY) == text


def test_accepting_an_older_version_from_an_editor_gives_it_what_it_lacks(desk):
    opened: list[str] = []
    write = in_the_middle(desk, "02", lambda: opened.append(desk.text(GLOSSARY)))
    assert desk.run(write).status == "COMPLETED"
    edit(desk, "**term01**: what", "**term01**: That what", opened[0])
    assert "term02" not in desk.text(GLOSSARY)
    with pytest.raises(PipelineStopped):
        desk.run()
    event = amend(desk.ws.engine, GLOSSARY, "a better word", actor="user")
    assert re.match(
        r"meta/glossary\.md is append-only, so it keeps what was appended since: 4 lines of events \d+ and \d+\. "
        r"To leave that out, remove it again and amend the file with `--as-is`\.",
        event.data.kept,
    )
    text = desk.text(GLOSSARY)
    assert [text.count(f"**term0{number}**") for number in (1, 2, 3)] == [1, 1, 1]
    assert "That what" in text
    assert terms(desk) == ALL | {"term01": "That what 01 is about"}
    assert desk.run().status == "COMPLETED"


def test_what_a_person_corrects_is_remembered_as_they_wrote_it_and_what_they_remove_is_forgotten(desk):
    desk.run()
    edit(desk, "- **term02**: what 02 is about", "Nothing.")
    edit(desk, "what 01 is about", "a word")
    event = amend(desk.ws.engine, GLOSSARY, "wrong", actor="user")
    assert event.data.kept == ""
    assert terms(desk) == {"term01": "a word", "term03": "what 03 is about"}
    seq = event.seq
    desk.ws.restore(GLOSSARY, seq - 2)
    assert terms(desk) == ALL
    edit(desk, "a word" if "a word" in desk.text(GLOSSARY) else "what 01 is about", "a word")
    amend(desk.ws.engine, GLOSSARY, "wrong", actor="user")
    redo(desk.ws.engine, resolve(*read(desk.path)), "write", "01", "it is dull")
    assert desk.run().status == "COMPLETED"
    assert terms(desk)["term02"] == "what 02 is about"


def test_the_latest_entries_go_only_where_a_person_says_so(desk):
    desk.run()
    text = desk.text(GLOSSARY)
    gone = text[text.index("\n## Chapter 03") :]
    edit(desk, gone, "")
    amend(desk.ws.engine, GLOSSARY, "too many", actor="user")
    assert desk.text(GLOSSARY) == text
    edit(desk, gone, "")
    event = amend(desk.ws.engine, GLOSSARY, "too many", actor="user", as_is=True)
    assert event.data.kept == ""
    assert gone not in desk.text(GLOSSARY)
    assert "term03" not in terms(desk)
    assert desk.run().status == "COMPLETED"


def test_files_of_no_pipeline_come_back_as_they_were(ws):
    ws.tools.write_file("notes.md", "One.\n")
    at = ws.state.seq
    ws.tools.write_file("notes.md", "One.\nTwo.\n")
    event = ws.restore("notes.md", at)
    assert (ws.artifacts / "notes.md").read_text() == "One.\n"
    assert isinstance(event.data, ToolCallExecuted)
    assert event.data.noted == ""
