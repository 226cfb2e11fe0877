"""What a pipeline's agents may do to files that are written once, and to those that only grow."""

import pytest

from agentx.pipelines.runner import PipelineStopped, redo
from agentx.policy.amendments import amend
from agentx.synthesis.pipelines.definition.reading import read
from agentx.synthesis.pipelines.definition.steps import resolve
from tests.agentx.pipelines.conftest import well


def reopened(desk, stage, item=""):
    plan = resolve(*read(desk.path))
    return redo(desk.ws.engine, plan, stage, item, "it is out of date")


def test_a_static_file_waits_for_a_persons_word_before_it_is_written_again(desk):
    desk.run()
    reopened(desk, "outline")
    ended = desk.run(lambda path, prompt: well(path, prompt).replace("Three", "Four"))
    assert ended.status == "WAITING"
    assert "agentx approve" in ended.reason
    assert "Three" in desk.text("outline.md")
    (call,) = [one for one in desk.ws.state.pending.values() if one.awaits_approval]
    desk.ws.approve(call.call_id, reason="a chapter was added")
    ended = desk.run(lambda path, prompt: well(path, prompt).replace("Three", "Four"))
    assert ended.status == "COMPLETED"
    assert "Four" in desk.text("outline.md")
    (amended,) = desk.facts("FileAmended")
    assert (amended.path, amended.reason, amended.call_id) == (
        "outline.md",
        "a chapter was added",
        call.call_id,
    )


def test_a_person_who_refuses_has_it_stay_as_it_is(desk):
    desk.run()
    reopened(desk, "outline")
    changed = lambda path, prompt: well(path, prompt).replace("Three", "Four")  # noqa: E731
    desk.run(changed)
    (call,) = [one for one in desk.ws.state.pending.values() if one.awaits_approval]
    desk.ws.approve(call.call_id, approved=False, reason="three are enough")
    ended = desk.run(changed)
    assert ended.status != "COMPLETED"
    assert "three are enough" in " ".join(one.reason for one in desk.facts("RunEnded"))
    assert "Three" in desk.text("outline.md")


def test_a_persons_own_edit_of_a_static_file_is_their_word(desk):
    desk.run()
    (desk.ws.artifacts / "outline.md").write_text("# Mine\n\nNow.\n\n<!-- OUTLINE_DONE -->\n", "utf-8")
    assert desk.run().status == "COMPLETED"
    (amended,) = desk.facts("FileAmended")
    assert amended.path == "outline.md"


def test_an_append_only_file_that_was_edited_in_the_middle_stops_the_pipeline_until_it_is_settled(desk):
    desk.run()
    path = desk.ws.artifacts / "meta" / "glossary.md"
    whole = path.read_text("utf-8")
    path.write_text(whole.replace("term01", "word01"), "utf-8")
    with pytest.raises(PipelineStopped, match=r"meta/glossary\.md.*append-only"):
        desk.run()
    amend(desk.ws.engine, "meta/glossary.md", "a better word", actor="user")
    assert desk.run().status == "COMPLETED"


def test_what_a_person_adds_to_an_append_only_file_is_no_breach(desk):
    desk.run()
    path = desk.ws.artifacts / "meta" / "glossary.md"
    with path.open("a", encoding="utf-8") as file:
        file.write("- **mine**: added by hand\n")
    assert desk.run().status == "COMPLETED"


def test_a_stage_that_is_done_again_has_what_rests_on_it_done_again_too(desk):
    desk.run()
    reopened(desk, "write", "02")
    desk.run()
    again = [(one.stage, one.item) for one in desk.facts("Dispatched")[7:]]
    assert again == [("write", "02"), ("review", "02"), ("write", "03"), ("review", "03")]
    assert desk.text("meta/glossary.md").count("**term02**") == 1


def test_an_agent_outside_of_the_pipeline_is_held_to_the_classes_as_well(desk):
    desk.run()
    result = desk.ws.tools.call("write_file", {"path": "meta/glossary.md", "content": "gone"})
    assert result.status in ("DENIED", "FAILED")
    assert "append-only" in result.output
    asked = desk.ws.tools.call("write_file", {"path": "outline.md", "content": "mine"})
    assert asked.approval_needed


def test_the_users_demands_bind_every_agent_that_is_sent_out(desk):
    desk.ws.say("Never mention Elon Musk.")
    desk.run()
    assert all("Never mention Elon Musk" in prompt for prompt in desk.author.prompts)


MINE = "# Mine\n\nFour chapters, I say.\n\n<!-- OUTLINE_DONE -->\n"


def architects(desk):
    return [prompt for prompt in desk.author.prompts if "You are architect" in prompt]


@pytest.mark.parametrize("waits", [False, True])
def test_what_a_person_made_of_a_static_file_since_they_wanted_it_done_again_is_that(desk, waits):
    desk.run()
    reopened(desk, "outline")
    changed = lambda path, prompt: well(path, prompt).replace("Three", "Five")  # noqa: E731
    if waits:
        assert desk.run(changed).status == "WAITING"
    (desk.ws.artifacts / "outline.md").write_text(MINE, "utf-8")
    told: list[str] = []
    assert desk.run(changed, note=told.append).status == "COMPLETED"
    assert (desk.text("outline.md"), architects(desk)) == (MINE, [])
    assert told == [
        "outline is done by what you made of outline.md; `agentx pipeline redo outline --reason …` has it written again."
    ]
    assert any(
        "You are writer" in prompt and "Four chapters, I say" in prompt for prompt in desk.author.prompts
    )
    assert not desk.ws.state.pending
    assert not [one for one in desk.facts("RunEnded") if one.status == "FAILED"]
    reopened(desk, "outline")  # their latest word is that it be written anew
    assert desk.run(changed).status == "WAITING"
    (call,) = desk.ws.state.pending.values()
    desk.ws.approve(call.call_id)
    assert desk.run(changed).status == "COMPLETED"
    assert "Five" in desk.text("outline.md")


def test_what_a_person_made_of_a_static_file_before_they_wanted_it_done_again_is_not_that(desk):
    desk.run()
    (desk.ws.artifacts / "outline.md").write_text(MINE, "utf-8")
    reopened(desk, "outline")
    assert desk.run().status == "WAITING"
    assert len(architects(desk)) == 1


def test_what_a_person_made_of_a_static_file_and_is_not_in_order_is_not_written_over(desk):
    desk.run()
    reopened(desk, "outline")
    (desk.ws.artifacts / "outline.md").write_text("# Mine\n\nI was interr", "utf-8")
    ended = desk.run()
    assert (ended.status, desk.author.prompts) == ("FAILED", [])
    assert "You changed outline.md, so nobody is sent to write over it" in ended.failed["outline"]
    assert "Its last line is not `<!-- OUTLINE_DONE -->`" in ended.failed["outline"]
    (desk.ws.artifacts / "outline.md").unlink()  # then it is written anew
    assert desk.run().status == "COMPLETED"
    assert (desk.text("outline.md"), len(architects(desk))) == (well("outline.md", ""), 1)


NOTED = """\
pipeline: noted
files:
  draft: {path: draft.md}
  notes: {path: notes.md, class: append-only}
roles:
  writer:
    writes: [{file: draft, marker: DONE}]
    appends: [{to: notes, from: draft, under: Draft}]
  auditor:
    reads: [{file: notes}]
    writes: [{file: notes}]
stages:
  - {id: write, role: writer}
  - {id: audit, role: auditor, after: write}
"""


def test_who_adds_to_a_file_of_the_long_term_memory_is_given_all_that_has_to_stay(desk):
    desk.path.write_text(NOTED, "utf-8")

    def write(path, prompt):
        if path == "draft.md":
            return f"It is the {'second' if 'out of date' in prompt else 'first'}.\n\n<!-- DONE -->\n"
        held = desk.text("notes.md")
        return held + "Audited.\n" if held in prompt else None

    assert desk.run(write).status == "COMPLETED"
    reopened(desk, "write")
    assert desk.run(write).status == "COMPLETED"
    assert [desk.text("notes.md").count(said) for said in ("first", "second", "Audited")] == [1, 1, 2]
