"""Flows of a workspace: written down, changed, ended, found, and shown to whoever is about to act."""

import json

import numpy as np
import pytest

from agentx.agents.loop import run_task
from agentx.memory.editing import NoSuchItem
from agentx.memory.flows import MAX_CHARACTERS, called_for, read_steps
from agentx.search.phrase_vectors import Meanings
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, TaskGraded, UserMessageSent
from agentx.synthesis.embedding.port import ModelUnavailable
from agentx.synthesis.memory.items import FlowRecord
from agentx.synthesis.model.scripted import ScriptedModel
from agentx.synthesis.state.flows import called, graded

STEPS = ["Back up what is there.", "Build.", "Ask QA, and wait."]


class Canned:
    """An embedder that knows what means the same: real ones are measured elsewhere."""

    name, dimensions, batch = "canned", 50, 1

    def __init__(self, *same, fails=False):
        self.same, self.fails, self.asked = same, fails, []

    def embed_query(self, text):
        if self.fails:
            raise ModelUnavailable("It is gone.")
        self.asked.append(text)
        place = 0 if text in self.same else len(self.asked)
        return np.eye(50, dtype=np.float32)[place]

    def embed_passages(self, texts):
        return [self.embed_query(text) for text in texts]


def embed_with(ws, embedder):
    ws.engine.indexer._embedder = embedder


@pytest.fixture
def deploy(ws):
    return ws.flows.add("deploy to  production", STEPS, triggers=["ship to prod"], needs_approval=True)


def test_a_flow_is_written_down_changed_and_ended_and_each_is_an_event_of_the_person(ws, deploy):
    assert (deploy.text, deploy.kind, deploy.trust, deploy.status) == (
        "deploy to production",
        "flow",
        "user",
        "active",
    )
    assert (deploy.detail.steps, deploy.detail.triggers) == (tuple(STEPS), ("ship to prod",))
    assert deploy.detail.needs_approval
    changed = ws.flows.edit(deploy.id, name="deploy the site", triggers=["go live"], needs_approval=False)
    assert (changed.text, changed.detail.triggers) == ("deploy the site", ("go live",))
    assert not changed.detail.needs_approval
    assert ws.flows.find("Deploy the site")[0] == changed
    assert ws.flows.retire("deploy the site").status == "retired"
    assert ws.flows.all() == []
    assert [item.id for item in ws.flows.all(None)] == [deploy.id]
    assert {event.actor for event in ws.events() if event.type == "Concluded"} == {"user"}
    assert ws.rebuild().state_digest == ws.state.digest


def test_other_steps_begin_another_record_and_other_words_do_not(ws, deploy):
    ws.engine.synthesizer.record([graded(deploy, TaskGraded(task="deploy", passed=True))], "test")
    assert ws.flows.edit(deploy.id, triggers=["go live"]).detail.succeeded == 1
    assert ws.flows.edit(deploy.id, steps=STEPS).detail.succeeded == 1
    edited = ws.flows.edit(deploy.id, steps=STEPS[:2]).detail
    assert (edited.version, edited.succeeded, edited.earlier) == (2, 0, (FlowRecord(1, 1, 0),))
    again = ws.flows.edit(deploy.id, steps=STEPS).detail
    assert (again.version, again.earlier) == (3, edited.earlier)
    assert again.since >= edited.since > ""
    assert ws.rebuild().state_digest == ws.state.digest


@pytest.mark.parametrize(
    ("name", "steps", "says"),
    [
        (" ", STEPS, "needs a name"),
        ("x", [" "], "needs steps"),
        ("x", [str(number) for number in range(41)], "at most 40 steps"),
        ("x", ["a" * (MAX_CHARACTERS + 1)], "at most 40 steps and 5,000 characters"),
        ("Deploy to Production", STEPS, "A flow of that name already exists"),
    ],
)
def test_what_can_be_no_flow_is_refused_and_nothing_is_recorded(ws, deploy, name, steps, says):
    before = ws.state.seq
    with pytest.raises(UsageError, match=says):
        ws.flows.add(name, steps)
    assert ws.state.seq == before
    with pytest.raises(UsageError, match="is a rule, not a flow"):
        ws.flows.retire(ws.remember("rule", "Be calm.").id)
    with pytest.raises(NoSuchItem):
        ws.flows.edit("f-99", name="x")


def test_the_biggest_flow_fits_into_one_event(ws):
    made = ws.flows.add("ü" * 1000, ["ß" * 1000, "é" * 1000], triggers=["à" * 1000, "ö" * 999])
    assert len(list(ws.events(made.created_seq - 1))) == 1


def test_words_decide_where_they_can_and_no_model_is_asked(ws, deploy):
    embedder = Canned()
    embed_with(ws, embedder)
    (found,) = ws.flows.check("Please ship this to prod.")
    assert (found.item.id, found.by) == (deploy.id, "words")
    assert embedder.asked == []


def test_meaning_is_asked_where_words_do_not_decide_and_each_flow_is_embedded_once(ws, deploy):
    embedder = Canned("let everybody have it", called(deploy))
    embed_with(ws, embedder)
    (found,) = ws.flows.check("let everybody have it")
    assert (found.item.id, found.by) == (deploy.id, "meaning")
    assert ws.flows.check("sing a song") == []
    assert embedder.asked == ["let everybody have it", called(deploy), "sing a song"]
    embed_with(ws, Canned(fails=True))
    assert ws.flows.check("let nobody have it") == []


class HalfNear(Canned):
    """An embedder by which all texts are near, and none is near enough."""

    def embed_query(self, text):
        common = np.eye(50, dtype=np.float32)[49]
        return super().embed_query(text) * np.float32(0.55**0.5) + common * np.float32(0.45**0.5)


def test_a_flow_that_is_not_near_enough_is_told_of_to_a_person_alone(ws, deploy):
    embed_with(ws, HalfNear())
    assert ws.flows.check("let everybody have it") == []
    assert ws.flows.nearest("let everybody have it").item.id == deploy.id
    assert called_for(ws.engine, ws.state, "let everybody have it") == []
    embed_with(ws, Canned())
    assert ws.flows.nearest("sing a song") is None


def test_what_was_embedded_is_kept_in_the_cache_and_a_damaged_cache_is_made_again(ws):
    for number in range(20):
        ws.flows.add(f"procedure {number}", STEPS)
    first, second, third = Canned(), Canned(), Canned()
    for embedder in (first, second, third):
        ws.engine.meanings = Meanings(ws.engine.indexer, ws.root, ws.root / ".agentx" / "meanings")
        embed_with(ws, embedder)
        assert ws.flows.check("sing a song") == []
        if embedder is second:
            (ws.root / ".agentx" / "meanings").write_bytes(b"damaged")
    assert (len(first.asked), second.asked, len(third.asked)) == (21, [], 21)


def test_a_context_asks_for_meaning_only_where_the_model_is_loaded_already(ws, deploy):
    opened = []
    ws.engine.indexer._open_embedder = lambda: (opened.append(1), "none")
    assert called_for(ws.engine, ws.state, "let everybody have it", load=False) == []
    assert opened == []
    embed_with(ws, Canned("let everybody have it", called(deploy)))
    (found,) = called_for(ws.engine, ws.state, "let everybody have it", load=False)
    assert found.item.id == deploy.id


def test_the_flow_stands_in_the_context_of_what_calls_for_it_and_is_shown_again_to_the_byte(
    ws, deploy, tmp_path
):
    (tmp_path / "turns.jsonl").write_text(json.dumps({"answer": "Done."}))
    run_task(ws, "Deploy the fix to production.", ScriptedModel(tmp_path / "turns.jsonl"))
    (shown,) = (event for event in ws.events() if event.type == "ContextProvided")
    assert deploy.id in shown.data.items
    ws.flows.retire(deploy.id)
    again = ws.get_relevant_context(as_of=shown.seq)
    assert again.exact
    assert "  3. Ask QA, and wait." in again.text
    assert "Ask QA" not in ws.get_relevant_context("Deploy the fix to production.").text


def test_an_earlier_context_has_the_flow_of_then(ws, deploy):
    ws.record(Draft(data=UserMessageSent(body=ws.body("hello")), actor="user"))
    ws.flows.edit(deploy.id, steps=["Do not."])
    then = ws.get_relevant_context("deploy to production", as_of=deploy.created_seq)
    assert "1. Back up what is there." in then.text


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. One\n2. Two\n", ["One", "Two"]),
        (
            "# Title\n\nSome words.\n\n1) One,\n   with more\n2) Two\n\n## Next\nignored\n",
            ["One, with more", "Two"],
        ),
        ("- [ ] One\n- [x] Two\n  - a part of two\n", ["One", "Two a part of two"]),
        ("  * One\n  * Two\n", ["One Two"]),
    ],
)
def test_the_steps_are_the_items_of_a_list_in_markdown(text, steps):
    assert read_steps(text) == steps
    with pytest.raises(UsageError, match="numbered list"):
        read_steps("no list")


def test_a_lesson_is_shown_before_the_step_that_it_concerns(ws):
    ws.flows.add("publish the pages", ["Build the pages", "Upload them to the host"])
    rule = ws.remember("rule", "Upload to the host after six only.")
    context = ws.get_relevant_context("Please publish the pages.").text
    shown = ["  1. Build the pages", f"  before 2: [{rule.id}] {rule.text}", "  2. Upload them to the host"]
    assert "\n".join(shown) in context
    verdict = ws.gates.before("Publish the pages.")
    lines = [
        (line.id, line.why) for part in verdict.sections if part.name == "flow" for line in part.lines[1:]
    ]
    assert lines == [("1", ""), (rule.id, "before step 2"), ("2", "")]
