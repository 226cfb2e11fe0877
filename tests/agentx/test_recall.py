"""Recall that comes by itself: every turn is captured, what matters is put in front of the agent, use keeps it alive."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.context.context_replay import replay
from agentx.core.layout import FORMAT
from agentx.factory import write_layout
from agentx.storage.events.codec import GENESIS
from agentx.storage.events.types import (
    AgentMessageSent,
    ContextProvided,
    Draft,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.model.scripted import ScriptedModel

QUESTION = "Which database does staging use?"


def recalled(context):
    return [item.id for item in context.items if item.section == "recalled"]


def items_of(context):
    return [name for name in recalled(context) if name.startswith("i:")]


def answer(ws, text):
    (event,) = ws.record(Draft(data=AgentMessageSent(body=ws.body(text), final=True), actor="agent:main"))
    return event


@pytest.fixture
def script(tmp_path):
    """A model that gives these answers, one for each run."""

    def script(*answers):
        path = tmp_path / f"turns-{len(list(tmp_path.iterdir()))}.jsonl"
        path.write_text("\n".join(json.dumps({"answer": text}) for text in answers))
        return ScriptedModel(path)

    return script


def test_five_memories_stand_before_passages_of_files_at_every_tier(ws):
    for number in range(40):
        ws.tools.write_file(f"db{number}.md", f"# Database\n\nThe staging database number {number}.\n")
    for number in range(7):
        ws.remember("knowledge", f"Staging fact {number}: its database is called pg-{number * 7}.")
    for tier in range(4):
        context = ws.get_relevant_context(QUESTION, tier=tier)
        names = recalled(context)
        assert [name[:2] for name in names[:5]] == ["i:"] * 5, tier
        assert len(names) == 5 if tier == 0 else len(names) > 10, (
            "a question is answered from all there is room for"
        )
        assert "- [k-" in context.text.partition("## Recalled")[2]


def test_a_message_of_the_user_and_of_the_agent_comes_back_in_a_later_run(ws, script):
    run_task(
        ws,
        "The staging database is called heron.",
        script("I read the runbook of the operations team. The backup of staging is called egret."),
    )
    for number in range(40):
        ws.say(f"Chapter {number} of the novel is about the sea.")
    seqs = {
        e.data.body.text: e.seq for e in ws.events() if isinstance(e.data, UserMessageSent | AgentMessageSent)
    }
    run_task(ws, "What are the names of the staging database and its backup?", script("heron, egret"))
    provided = [e for e in ws.events() if isinstance(e.data, ContextProvided)][-1]
    shown = replay(ws.engine, provided).text
    for text in seqs:
        if "staging is" in text or "staging database is" in text:
            assert text in shown


def test_what_agents_said_does_not_come_back_where_it_is_not_captured(configured):
    ws = configured("[scribe]\ncapture_assistant = false\n")
    ws.say("The staging database is called heron.")
    answered = answer(ws, "The staging database is heron, then.")
    for number in range(40):
        ws.say(f"Chapter {number} of the novel is about the sea.")
    context = ws.get_relevant_context(QUESTION)
    assert "The staging database is called heron." in context.text
    assert f"m:{answered.seq}:0" not in recalled(context)
    assert f"m:{answered.seq}:0" in [hit.id for hit in ws.search(QUESTION)]


def test_it_can_be_turned_off_and_the_number_set(configured):
    facts = [f"Staging fact {number}: its database is called pg-{number * 7}." for number in range(9)]
    off, two = (
        configured("[scribe]\nauto_recall = false\n", "off"),
        configured("[scribe]\nauto_recall_top_k = 2\n", "two"),
    )
    for ws in (off, two):
        ws.tools.write_file("db.md", "# Database\n\nThe staging database.\n")
        for fact in facts:
            ws.remember("knowledge", fact)
    context = off.get_relevant_context(QUESTION)
    assert recalled(context) == []
    assert [one.reason for one in context.omitted] == ["`scribe.auto_recall` is off"]
    assert off.search(QUESTION)
    names = recalled(two.get_relevant_context(QUESTION))
    assert [name[:2] for name in names[:3]] == ["i:", "i:", "a:"]


def test_what_says_the_same_as_something_shown_is_left_out_with_the_reason(ws):
    ws.remember("knowledge", "Run the unit tests before each deploy.")
    ws.remember("discovery", "Before every deploy, run the tests.")
    context = ws.get_relevant_context("What to run before a deploy?")
    (kept,) = items_of(context)
    (left,) = {"i:k-2", "i:k-3"} - {kept}
    assert {one.id: one.reason for one in context.omitted}[left] == f"a duplicate of {kept[2:]}"


def test_what_is_only_proposed_is_not_shown(ws):
    said = ws.say("Keep your answers short.")
    name = f"i:c-{said.seq}"
    assert name in [hit.id for hit in ws.search("How short are the answers?")]
    assert name not in ws.get_relevant_context("How short are the answers?").recalled


def test_at_an_earlier_moment_it_is_what_was_remembered_then(ws):
    first = ws.remember("knowledge", "The staging database is called heron.")
    then = ws.state.seq
    ws.retire(first.id)
    later = ws.remember("knowledge", "The staging database is called egret.")
    assert items_of(ws.get_relevant_context(QUESTION)) == [f"i:{later.id}"]
    assert items_of(ws.get_relevant_context(QUESTION, as_of=then)) == [f"i:{first.id}"]


def test_a_context_with_memories_is_shown_again_to_the_byte(ws, script):
    ws.remember("knowledge", "The staging database is called heron.")
    ws.remember("knowledge", "Staging is reset every night, its database too.")
    ws.tools.write_file("db.md", "# Database\n\nThe staging database.\n")
    answer(ws, "The staging database moved to another host. " * 40)
    for number in range(10):
        ws.say(f"Chapter {number} of the novel is about the sea.")
    run_task(ws, QUESTION, script("heron"))
    (shown,) = [event.seq for event in ws.events() if isinstance(event.data, ContextProvided)]
    again = ws.get_relevant_context(as_of=shown)
    assert [name[0] for name in recalled(again)] == ["i", "i", "m", "a"]
    assert again.exact


# --- use keeps a memory alive ----------------------------------------------------------------------------------------


@pytest.fixture
def aged(tmp_path, lexical):
    """A workspace in which two memories that are as near were made 29 days ago, and one today."""
    root, codec = tmp_path / "aged", record_codec()
    write_layout(root, "artifacts")
    (root / "agentx.toml").write_text('[memory]\nmaintain = "off"\n')

    def known(name, host):
        text = f"The staging database is called {host}."
        item = MemoryItem(id=name, kind="knowledge", text=text, trust="user")
        return Concluded(extractor="test", version=1, through=1, changes=(Add(item),))

    facts = [
        (29, WorkspaceCreated(title="x", format=FORMAT)),
        (29, known("k-1", "pg-1")),
        (29, known("k-2", "pg-2")),
    ]
    facts.append((0, known("k-3", "pg-3")))
    previous, lines = GENESIS, []
    for seq, (days, data) in enumerate(facts, 1):
        at = datetime.now(UTC) - timedelta(days=days)
        line, event = codec.encode(Draft(data=data, actor="user"), seq=seq, previous=previous, at=at)
        previous = event.hash
        lines.append(line)
    (root / "history.jsonl").write_bytes(b"".join(lines))
    with Workspace.open(root, settings=lexical) as ws:
        yield ws


def test_a_memory_that_is_used_comes_before_one_that_is_not_and_a_fresh_one_before_both(aged):
    fresh, middle, last = items_of(aged.get_relevant_context(QUESTION))
    assert fresh == "i:k-3"
    aged.record(Draft(data=ContextProvided(recalled=(last,)), actor="agent:main"))
    aged.maintain()
    state = aged.state
    used, unused = state.items[last[2:]], state.items[middle[2:]]
    assert (used.strength, used.used_at[:10]) == (2.0, state.at[:10])
    assert (unused.strength, unused.used_at) == (1.0, "")
    assert vitality(used, state.at) > 0.9
    assert vitality(unused, state.at) < 0.6
    assert items_of(aged.get_relevant_context(QUESTION))[-1] == middle


def test_what_the_loop_recalls_is_what_maintenance_counts_as_used(aged, script):
    run_task(aged, QUESTION, script("pg-3"))
    assert {item.strength for item in aged.memory("knowledge")} == {1.0}
    aged.maintain()
    assert {item.strength for item in aged.memory("knowledge")} == {2.0}
