"""What a person does to memory by hand: each change recorded under their name, and gone from the prompt when it ends."""

import pytest

from agentx import Workspace
from agentx.memory.editing import NoSuchItem
from agentx.storage.errors import AgentXError, UsageError
from agentx.synthesis.memory.checks import PathCheck
from agentx.synthesis.memory.conclusions import Add
from agentx.synthesis.memory.items import MemoryItem, Scope
from agentx.tools.toolset import WriteDenied


def test_an_item_is_added_edited_pinned_and_retired_and_each_is_an_event_of_the_person(ws):
    item = ws.remember("knowledge", "The\n API  speaks JSON.", scope=Scope(topic="api"))
    assert (item.text, item.status, item.trust) == ("The API speaks JSON.", "active", "user")
    assert ws.edit_memory(item.id, "The API speaks CBOR.").short == "The API speaks CBOR."
    assert ws.pin(item.id).pinned
    assert "CBOR" in ws.get_relevant_context("weather").text
    assert not ws.pin(item.id, pinned=False).pinned
    assert ws.retire(item.id).status == "retired"
    assert "CBOR" not in ws.get_relevant_context("weather").text
    changes = [event for event in ws.events() if event.type == "Concluded"]
    assert {event.actor for event in changes} == {"user"}
    assert len(changes) == 5
    assert ws.rebuild().state_digest == ws.state.digest


def test_the_reason_of_a_person_who_retires_an_item_is_kept_with_it(ws):
    item = ws.remember("rule", "Print the dates in red.", score=6)
    assert ws.retire(item.id, reason="The dates\n are fixed now.").reason == "The dates are fixed now."
    assert ws.rebuild().state_digest == ws.state.digest


def test_a_rule_said_in_other_words_is_checked_in_those_words(ws):
    item = ws.remember("constraint", "Never create a requirements.txt file.")
    assert isinstance(item.detail.checks[0], PathCheck)
    ws.edit_memory(item.id, "Never create a setup.py file.")
    ws.tools.write_file("requirements.txt", "")
    with pytest.raises(WriteDenied):
        ws.tools.write_file("setup.py", "")


def test_an_item_that_is_there_for_now_says_until_when(ws):
    ws.remember("constraint", "Never touch db.py.", until="until Friday")
    assert "(until Friday)" in ws.get_relevant_context("x").text


def test_a_proposal_is_settled_once(ws):
    candidates = [
        Add(MemoryItem(id=name, kind="constraint", text=name, status="candidate"))
        for name in ("c-90", "c-91")
    ]
    ws.engine.synthesizer.record(candidates, "test")
    assert ws.status().candidates == 2
    assert "c-90" not in ws.get_relevant_context("x").text
    assert (ws.review("c-90", accept=True).status, ws.review("c-91", accept=False).status) == (
        "active",
        "retired",
    )
    assert ws.memory("constraint")[0].trust == "user"
    with pytest.raises(UsageError, match="not a candidate"):
        ws.review("c-90", accept=True)


def test_what_another_process_remembers_can_be_ended_here_at_once(ws, elsewhere):
    name = elsewhere(ws, "print(ws.remember('rule', 'Run the tests first.').id)")
    assert ws.retire(name).status == "retired"


def test_ids_of_items_are_never_given_twice(ws, lexical):
    first = [ws.remember("rule", f"rule {n}").id for n in range(3)]
    ws.close()
    with Workspace.open(ws.root, settings=lexical) as again:
        more = [again.remember("rule", f"rule {n}").id for n in range(3)]
    assert len({*first, *more}) == 6


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ws: ws.retire("c-99"),
        lambda ws: ws.pin("\n"),
        lambda ws: ws.edit_memory("c-99", "text"),
        lambda ws: ws.review("c-99", accept=True),
        lambda ws: ws.remember("constraint", " \n "),
        lambda ws: ws.remember("hot_issue", "It fails."),
        lambda ws: ws.remember("nothing", "text"),
        lambda ws: ws.remember("rule", "x" * 100_000),
        lambda ws: ws.edit_memory(ws.remember("rule", "a rule").id, ""),
    ],
)
def test_what_cannot_be_meant_is_a_sentence_and_changes_nothing(ws, wrong):
    with pytest.raises(AgentXError) as error:
        wrong(ws)
    assert len(str(error.value)) < 300
    assert [item.text for item in ws.memory(status=None)] in ([], ["a rule"])


def test_an_unknown_item_is_named_as_such(ws):
    with pytest.raises(NoSuchItem, match="memory list"):
        ws.retire("c-99")


def test_an_edited_rejection_rules_out_what_it_says_now(ws):
    item = ws.remember("rejection", "No microservices.")
    edited = ws.edit_memory(item.id, "No event sourcing.")
    assert (edited.text, edited.detail.idea) == ("No event sourcing.", "No event sourcing.")


def test_a_rule_added_with_a_low_score_stands_as_its_score_says(ws):
    said = [ws.remember("rule", f"Read gauge {score}.", score=score).status for score in (9, 5, 4, 2)]
    assert said == ["active", "active", "dormant", "retired"]
    for wrong in (0.5, 11, float("nan")):
        with pytest.raises(UsageError, match="from 1 to 10"):
            ws.remember("rule", "Read the gauge.", score=wrong)


def test_what_is_too_long_to_remember_is_refused_and_what_no_encoding_holds_is_replaced(ws):
    with pytest.raises(UsageError, match="text is too long: an item holds"):
        ws.remember("rule", "日本" * 3_000)
    item = ws.remember("decision", "Use \ud800 caf\u202e\x1b[2J.")
    assert item.text == "Use \ufffd caf[2J."
    with pytest.raises(UsageError, match="text is too long: an item holds"):
        ws.edit_memory(item.id, "日本" * 3_000)
    assert ws.rebuild().state_digest == ws.state.digest
