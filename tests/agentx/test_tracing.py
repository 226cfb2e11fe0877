"""Bisect: the event that made something what it is, and what led to it, up to the user's words."""

import json

import pytest

from agentx.agents.loop import run_task
from agentx.memory.editing import NoSuchItem
from agentx.storage.artifacts import ArtifactMissing
from agentx.storage.files.paths import PathRefused
from agentx.synthesis.model.scripted import ScriptedModel


def seqs(step):
    return [cause.seq for cause in step.causes]


def test_a_rule_leads_to_the_sentence_that_made_it(ws):
    said = ws.say("Hello. From now on, never create a requirements.txt file. Thanks.")
    (rule,) = ws.memory("constraint")
    trace = ws.bisect(rule.id)
    (step,) = trace.steps
    assert (trace.item, trace.changes, step.made) == (rule, 1, True)
    assert step.event.seq == rule.created_seq
    (cause,) = step.causes
    assert (cause.seq, cause.actor) == (said.seq, "user")
    assert cause.quote == "From now on, never create a requirements.txt file."
    ws.flush()
    assert ws.bisect(rule.id).steps[0].causes[0].commit == ws.status().commit


def test_the_last_change_is_the_answer_and_all_tell_the_whole_life(ws):
    item = ws.remember("rule", "Measure twice.")
    ws.edit_memory(item.id, "Measure three times.")
    ws.edit_memory(item.id, "Measure three times.")  # changes nothing
    ws.pin(item.id)
    ws.retire(item.id)
    (last,) = ws.bisect(item.id).steps
    assert [(field.name, field.old, field.new) for field in last.fields] == [("status", "active", "retired")]
    steps = ws.bisect(item.id, every=True).steps
    assert [[field.name for field in step.fields] for step in steps] == [[], ["text"], ["pinned"], ["status"]]
    assert [step.made for step in steps] == [True, False, False, False]


def test_what_ended_a_rule_names_the_words_that_ended_it(ws):
    ws.say("From now on, never create a requirements.txt file.")
    (rule,) = ws.memory("constraint")
    ended = ws.say("You may create a requirements.txt file again.")
    (step,) = ws.bisect(rule.id).steps
    assert step.fields[0].new == "retired"
    assert ended.seq in seqs(step)


def test_a_hot_issue_leads_over_the_check_and_the_run_to_the_users_message(ws, tmp_path):
    turns = tmp_path / "turns.jsonl"
    call = {"name": "check_document", "arguments": {"path": "a.md"}}
    turns.write_text("\n".join(map(json.dumps, [{"tool_calls": [call]}, {"answer": "There it is."}])))
    ws.tools.write_file("a.md", "# Aim\n\n[nowhere](missing.md)\n")
    run_task(ws, "Look at the document.", ScriptedModel(turns))
    (issue,) = ws.memory("hot_issue")
    (step,) = ws.bisect(issue.id).steps
    assert [cause.type for cause in step.causes] == ["ToolCallExecuted", "RunStarted", "UserMessageSent"]
    assert step.causes[-1].quote == "Look at the document."


def test_a_file_leads_to_the_event_that_made_it_what_it_is_through_its_moves(ws):
    made = ws.tools.write_file("a.txt", "one").seq
    moved = ws.tools.move_file("a.txt", "b.txt").seq
    ws.tools.write_file("c.txt", "another")
    (step,) = ws.bisect(path="b.txt").steps
    assert (step.event.seq, step.made) == (moved, False)
    trace = ws.bisect(path="b.txt", every=True)
    assert [step.event.seq for step in trace.steps] == [made, moved]
    gone = ws.tools.delete_file("b.txt").seq
    assert ws.bisect(path="b.txt").steps[0].event.seq == gone


def test_what_an_undo_brought_back_leads_to_what_it_took_back(ws):
    ws.tools.write_file("a.txt", "one")
    taken_back = ws.tools.write_file("a.txt", "two").seq
    undone = ws.undo().seq
    (step,) = ws.bisect(path="a.txt").steps
    assert (step.event.seq, seqs(step)) == (undone, [taken_back])


def test_what_never_was_is_a_sentence(ws):
    with pytest.raises(NoSuchItem):
        ws.bisect("c-99")
    with pytest.raises(ArtifactMissing, match="never been a file"):
        ws.bisect(path="never.txt")
    with pytest.raises(PathRefused):
        ws.bisect(path="../a.txt")
