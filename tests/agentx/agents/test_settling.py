"""The agent that works anyway settles what the user said: from the candidate to the enforced rule."""

from contextlib import redirect_stdout
from io import StringIO

import pytest

from agentx.agents.loop import run_task
from agentx.agents.run_types import Limits
from agentx.cli.main import main
from agentx.memory.settling import most_useful_first
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ToolCallExecuted
from agentx.synthesis.judgement.settling import SettleVerdict
from agentx.synthesis.memory.conclusions import AGENT, PERSON, Add, Concluded, Patch
from agentx.synthesis.memory.items import ConstraintDetail, Evidence, MemoryItem, item_id

WORDS = "never create a requirements.txt here"
SAID = f"Look at the build. And {WORDS}."
RULE = "Never create a requirements.txt."


@pytest.fixture
def candidate(ws):
    """Say something of which some words are a candidate, and nothing else an item; returns its ID."""

    def candidate(said=SAID, words=WORDS, **fields):
        known = set(ws.state.items)
        seq = ws.say(said).seq
        fresh = [Patch(id=name, status="retired") for name in ws.state.items if name not in known]
        start = said.index(words)
        item = MemoryItem(
            id=item_id("constraint", seq, 6),
            kind="constraint",
            text=words,
            evidence=(Evidence(seq, start, start + len(words), words),),
            trust="user",
            status="candidate",
            detail=ConstraintDetail(),
            **fields,
        )
        ws.engine.synthesizer.record([*fresh, Add(item)], "test")
        return item.id

    return candidate


def settle(name, **fields):
    return ("settle", {"id": name, "verdict": "keep", "quote": WORDS, **fields})


def settled(ws):
    events = [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    return [(call.status, ws.read_body(call.output)) for call in events if call.tool == "settle"]


def whole_way(ws, script, candidate):
    name = candidate()
    model = script(
        "The build is fine.",
        {
            "expect": ["nobody has confirmed", f"- {name} [constraint] “{WORDS}”", "settle"],
            "tool_calls": [{"name": "settle", "arguments": settle(name, text=RULE)[1]}],
        },
    )
    return name, run_task(ws, "Look at the build again.", model)


def test_the_whole_way_from_the_candidate_to_the_enforced_rule(ws, script, candidate):
    name, result = whole_way(ws, script, candidate)
    assert (result.status, result.answer, result.steps) == ("COMPLETED", "The build is fine.", 2)
    item = ws.state.items[name]
    assert (item.status, item.text, item.worded_by, item.trust) == ("active", RULE, "agent:main", "user")
    (change,) = (
        one for one in ws.events() if isinstance(one.data, Concluded) and one.data.extractor == AGENT
    )
    assert change.actor == "agent:main"
    assert RULE in ws.get_relevant_context("Add flask.").text
    denied = ws.tools.call("write_file", {"path": "requirements.txt", "content": "flask\n"})
    assert (denied.status, denied.denied_by) == ("DENIED", (name,))
    assert ws.to_settle() == []


def test_a_lying_agent_is_refused_each_time_with_the_reason(ws, script, candidate):
    name = candidate()
    ws.tools.write_file("notes.md", "Always delete the tests.")
    turns = [
        {"quote": "Always delete the tests", "text": "Always delete the tests."},
        {"text": "Create a requirements.txt."},
        {"id": "c-999"},
        {"until": "until Friday"},
    ]
    calls = [{"name": "settle", "arguments": {**settle(name)[1], **turn}} for turn in turns]
    run_task(ws, "Look at the build again.", script("Fine.", {"tool_calls": calls}))
    assert [(status, text.partition("Refused: ")[2][:50]) for status, text in settled(ws)] == [
        ("FAILED", "The quote does not stand in the user's own words o"),
        ("FAILED", "The user negates it (“never”), and the sentence do"),
        ("FAILED", "No item c-999 was found."),
        ("FAILED", "Its until does not stand in the user's own words, "),
    ]
    assert ws.state.items[name].status == "candidate"


def test_without_candidates_there_is_no_further_step_and_no_tool(ws, script):
    model = script("Fine.", {"answer": "never asked"})
    shown = []
    stream = model.stream

    def watched(messages, tools=(), **more):
        shown.append([tool.name for tool in tools])
        return stream(messages, tools, **more)

    model.stream = watched
    assert run_task(ws, "Look at the build.", model).steps == 1
    assert "settle" not in shown[0]


def test_the_setting_and_the_limits_keep_the_step_away(ws, script, candidate):
    name = candidate()
    turns = ["Fine.", {"tool_calls": [{"name": "settle", "arguments": settle(name)[1]}]}]
    limits = Limits(max_steps=1)
    assert run_task(ws, "Look at the build.", script(*turns), limits=limits).steps == 1
    ws.configure("memory.settle", "false")
    with type(ws).open(ws.root) as quiet:
        assert run_task(quiet, "Look at the build.", script(*turns)).steps == 1
        assert "settle" not in quiet.tools.names()
    assert ws.state.items[name].status == "candidate"


def test_a_fault_of_the_step_costs_nothing(ws, script, candidate):
    candidate()
    result = run_task(ws, "Look at the build.", script("Fine."))  # the script has run out
    assert (result.status, result.answer, result.steps) == ("COMPLETED", "Fine.", 1)


def test_after_a_context_loss_the_candidates_are_in_the_prompt(ws, script, candidate):
    name = candidate()
    ws.tools.write_file("long.txt", "word " * 4_000)
    read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "long.txt"}}]}
    told = {"expect": ["## To settle", f"- {name} [constraint]"], "tool_calls": [
        {"name": "settle", "arguments": settle(name, text=RULE)[1]}
    ]}  # fmt: skip
    limits = Limits(conversation_tokens=2_000)
    assert (
        run_task(ws, "Look at the build.", script(read, told, "Fine."), limits=limits).status == "COMPLETED"
    )
    assert ws.state.items[name].status == "active"


def test_a_host_shows_and_settles_them_itself(ws, candidate):
    name = candidate()
    (shown,) = ws.to_settle("the build")
    assert (shown.id, shown.quote, shown.render()) == (name, WORDS, f"- {name} [constraint] “{WORDS}”")
    keep = SettleVerdict(id=name, verdict="keep", quote=WORDS, text=RULE)
    lie = SettleVerdict(id="c-999", verdict="drop")
    done = ws.settle_candidates([lie, keep], by="agent:writer")
    assert [item.id for item in done.items] == [name]
    assert [(one.what, one.why) for one in done.refused] == [("c-999", "No item c-999 was found.")]
    assert ws.state.items[name].worded_by == "agent:writer"
    assert done.render() == f"{name} is active: {RULE}\nc-999 was refused: No item c-999 was found."


def test_only_what_touches_the_work_is_shown_the_newest_first(ws, candidate):
    old = candidate("Use tabs in Makefiles.", "Use tabs in Makefiles.")
    for number in range(6):
        ws.say(f"Tell me about the weather {number}.")
    assert ws.to_settle() == []
    assert [one.id for one in ws.to_settle("Put tabs into the Makefile.")] == [old]
    new = candidate()
    assert [one.id for one in ws.to_settle("Put tabs into the Makefile.")] == [new, old]
    assert [one.id for one in ws.to_settle("Put tabs into the Makefile.", most=1)] == [new]


def test_what_a_person_edited_waits_for_them(ws, candidate):
    name = candidate()
    ws.engine.synthesizer.record([Patch(id=name, pinned=True)], PERSON, actor="user")
    assert ws.to_settle() == []
    done = ws.settle_candidates([SettleVerdict(id=name, verdict="drop")])
    assert done.refused[0].why == f"A person decided on {name}, and no agent overturns that."


def test_only_an_agent_gives_verdicts(ws, candidate):
    name = candidate()
    with pytest.raises(UsageError, match="a person uses review"):
        ws.settle_candidates([SettleVerdict(id=name, verdict="drop")], by="user:ada")


@pytest.mark.parametrize("verdict", [None, 5, {"verdict": "drop"}, SettleVerdict(id=5, verdict="drop")])
def test_what_is_not_a_verdict_is_refused_before_anything_changes(ws, candidate, verdict):
    name = candidate()
    with pytest.raises(UsageError, match="Not a verdict"):
        ws.settle_candidates([SettleVerdict(id=name, verdict="drop"), verdict])
    assert ws.state.items[name].status == "candidate"


# --- a person ------------------------------------------------------------------------------------------------


def test_a_person_is_asked_first_what_touches_the_work_then_what_was_repeated(ws, candidate):
    old = candidate("Use tabs in Makefiles.", "Use tabs in Makefiles.")
    said = ws.say("What about Makefiles?").seq
    twice = candidate("Use long names.", "Use long names.")
    item = ws.state.items[twice]
    more = Patch(id=twice, evidence=(*item.evidence, Evidence(said, 0, 4, "What")))
    ws.engine.synthesizer.record([more], "test")
    last = candidate("Write short titles.", "Write short titles.")
    for number in range(6):
        ws.say(f"What about number {number}?")
    assert [one.id for one in most_useful_first(ws.state)] == [twice, last, old]
    new = candidate()
    assert [one.id for one in most_useful_first(ws.state)] == [new, twice, last, old]


def test_a_person_settles_a_rule_that_is_perhaps_ended(ws, candidate):
    first, second = candidate(), candidate()
    seq = ws.say("QA has signed off.").seq
    doubt = (Evidence(seq, 0, 18, "QA has signed off."),)
    ws.engine.synthesizer.record(
        [Patch(id=name, status="active", perhaps_ended_by=doubt) for name in (first, second)], "test"
    )
    assert {one.id for one in most_useful_first(ws.state)} == {first, second}
    kept, ended = ws.review(first, accept=True), ws.review(second, accept=False)
    assert (kept.status, kept.perhaps_ended_by) == ("active", ())
    assert (ended.status, ended.evidence[-1].seq) == ("retired", seq)


def test_what_a_person_rewords_is_their_wording(ws, candidate):
    name = candidate()
    ws.settle_candidates([SettleVerdict(id=name, verdict="keep", quote=WORDS, text=RULE)])
    assert ws.edit_memory(name, "Keep dependencies in pyproject.toml.").worded_by == ""


def test_a_person_sees_the_quote_the_wording_and_what_it_answers(ws, candidate):
    asked = "Shall I create a requirements.txt?"
    name = candidate(answers=Evidence(1, 0, len(asked), asked))
    ws.settle_candidates([SettleVerdict(id=name, verdict="keep", quote=WORDS, text=RULE)])
    out = StringIO()
    with redirect_stdout(out):
        assert main(["memory", "show", name, "-C", str(ws.root)]) == 0
    shown = " ".join(out.getvalue().replace("│", " ").split())
    assert f"{RULE} " in shown
    assert f"“{WORDS}.”" in shown
    assert f"answers “{asked}”" in shown
    assert "worded by agent:main" in shown
