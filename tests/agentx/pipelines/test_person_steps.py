"""Stages that a person does or approves: asked once, resumable, and refused with a reason."""

import json

import pytest

from agentx.cli.main import main as agentx
from agentx.pipelines.runner import Runner
from agentx.pipelines.tracked import pipelines
from agentx.pipelines.upkeep.out_of_date import mark, overview
from agentx.workspace import Workspace
from tests.agentx.pipelines.conftest import Author

BOOK = """\
pipeline: book
items: {chapter: 2}
files:
  outline: {path: outline.md}
  preface: {path: preface.md}
  draft: {path: "drafts/{{ chapter.id }}.md"}
roles:
  architect: {writes: [{file: outline, marker: DONE}]}
  chief: {by: person, task: "Is the outline right?", reads: [{file: outline}]}
  author: {by: person, task: Write the preface., writes: [{file: preface, checks: [{sections: [Thanks]}]}]}
  writer: {reads: [{file: outline}], writes: [{file: draft, marker: DONE}]}
stages:
  - {id: outline, role: architect}
  - {id: accept, role: chief, after: outline}
  - {id: preface, role: author}
  - {id: write, role: writer, for_each: chapter, after: accept}
"""


def good(path, prompt):
    more = "Four chapters.\n\n" if "four chapters" in prompt else ""
    return f"About {path}.\n\n{more}<!-- DONE -->\n"


@pytest.fixture
def book(desk):
    desk.path.write_text(BOOK, "utf-8")
    return desk


def waiting(ws):
    return [call.call_id for call in ws.state.pending.values()]


def test_a_person_is_asked_once_and_the_rest_goes_on_when_they_approve(book):
    ended = book.run(good)
    assert ended.status == "WAITING"
    assert set(ended.waiting) == {"accept", "preface"}
    (asked,) = [call for call in waiting(book.ws) if call.startswith("accept")]
    assert f"agentx approve {asked}" in ended.waiting["accept"]
    assert ended.waiting["accept"].startswith("Is the outline right? Look at outline.md: ")
    every = waiting(book.ws)
    assert book.run(good).status == "WAITING"
    assert waiting(book.ws) == every
    assert book.author.prompts == []  # nothing else can be done
    book.ws.approve(asked)
    assert book.run(good).proved == 4
    assert len(book.author.prompts) == 2


def test_a_refusal_has_the_stage_done_again_with_its_reason_and_asks_again(book):
    book.run(good)
    (before,) = [call for call in waiting(book.ws) if call.startswith("accept")]
    book.ws.approve(before, approved=False, reason="I want four chapters")
    book.run(good)
    assert [prompt for prompt in book.author.prompts if "I want four chapters" in prompt]
    assert "Four chapters." in book.text("outline.md")
    (after,) = [call for call in waiting(book.ws) if call.startswith("accept")]
    assert after != before
    assert not book.ws.memory("rejection")  # the words are for the next draft
    seen = pipelines(book.ws.engine).of("book")
    assert seen.seen["accept"].keys() == {"outline.md"}


def test_what_a_person_writes_is_checked_and_they_are_told_what_is_missing(book):
    book.run(good)
    asked = next(call for call in waiting(book.ws) if call.startswith("preface"))
    (book.ws.artifacts / "preface.md").write_text("Hello.\n")
    book.ws.approve(asked)
    ended = book.run(good)
    assert "Section 'Thanks' is missing" in ended.waiting["preface"]
    asked = next(call for call in waiting(book.ws) if call.startswith("preface"))
    (book.ws.artifacts / "preface.md").write_text("## Thanks\n\nTo all.\n")
    book.ws.approve(asked)
    assert "preface" not in book.run(good).waiting
    assert pipelines(book.ws.engine).of("book").proved.keys() >= {"preface", "outline"}


def test_an_outline_that_is_written_again_is_approved_again_unless_it_is_the_same(book):
    book.run(good)
    for call in waiting(book.ws):
        (book.ws.artifacts / "preface.md").write_text("## Thanks\n\nTo all.\n")
        book.ws.approve(call)
    assert book.run(good).status == "COMPLETED"
    (book.ws.artifacts / "outline.md").unlink()
    assert book.run(good).status == "COMPLETED"
    (book.ws.artifacts / "outline.md").unlink()
    ended = book.run(lambda path, prompt: good(path, prompt).replace("About", "All about"))
    assert ended.status == "WAITING"
    assert set(ended.waiting) == {"accept"}


def test_an_approval_is_out_of_date_when_what_was_approved_changes(book):
    book.run(good)
    for call in waiting(book.ws):
        (book.ws.artifacts / "preface.md").write_text("## Thanks\n\nTo all.\n")
        book.ws.approve(call)
    assert book.run(good).status == "COMPLETED"
    now = Runner(book.ws.engine, book.path)
    assert overview(book.ws.engine, now.plan, now.files).steps == ()
    mine = book.text("outline.md").replace("About", "Much about")
    (book.ws.artifacts / "outline.md").write_text(mine)
    book.ws.engine.edits.scan()
    states = {one.step: one.state for one in mark(book.ws.engine, now.plan, now.files).steps}
    assert (states["outline"], states["accept"]) == ("changed", "stale")
    ended = book.run(good)
    assert (set(ended.waiting), book.text("outline.md")) == ({"accept"}, mine)


@pytest.mark.parametrize("early", [False, True])
def test_a_yes_is_for_what_the_person_was_shown_and_they_are_asked_again_if_it_changes(book, early):
    book.run(good)
    (before,) = [call for call in waiting(book.ws) if call.startswith("accept")]
    (book.ws.artifacts / "outline.md").write_text("Another outline.\n\n<!-- DONE -->\n")
    book.ws.engine.edits.scan()
    if early:
        book.ws.approve(before)
    ended = book.run(good)
    (after,) = [call for call in waiting(book.ws) if call.startswith("accept")]
    assert after != before
    assert ("has changed since it was shown" in ended.waiting["accept"]) is early
    assert "accept" not in pipelines(book.ws.engine).of("book").proved
    book.ws.approve(after)
    assert book.run(good).proved == 4


def test_another_process_resumes_what_was_asked(book):
    book.run(good)
    with Workspace.open(book.ws.root, settings=book.ws.settings) as ws:
        ws.approve(next(call for call in waiting(ws) if call.startswith("accept")))
        ended = Runner(ws.engine, book.path, lambda _name: Author(good)).run()
    assert ended.proved == 4


def test_the_status_shows_first_what_waits_for_a_person(book, capsys):
    book.run(good)
    (asked,) = [call for call in waiting(book.ws) if call.startswith("accept")]
    assert agentx(["-C", str(book.ws.root), "pipeline", "status"]) == 0
    shown = capsys.readouterr().out
    assert shown.index(f"? accept  agentx approve {asked}") < shown.index("+About outline.md.")
    assert shown.index("+About outline.md.") < shown.index("chapter")
    assert agentx(["-C", str(book.ws.root), "pipeline", "status", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[1]["cells"][0]["calls"] == [asked]
    assert agentx(["-C", str(book.ws.root), "approve", asked]) == 0
    told = capsys.readouterr().out
    assert f"Approved {asked}" in told
    assert "About outline.md." in told
