"""Notes are taken of every fact: what was refused, decided, asked for, done and learned; and a lag is made up for."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.agents.run_types import Limits
from agentx.memory.note_taking import is_active
from agentx.storage.events.types import (
    AgentMessageSent,
    Draft,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
)
from agentx.synthesis.memory.items import checks_of, sort_of
from agentx.synthesis.model.port import ModelError, Reply, Usage
from agentx.synthesis.model.scripted import ScriptedModel

SAID = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"


def refuse(ws, reason, command="git push"):
    """A call of an agent waits for a person, who refuses it."""
    number = ws.state.seq
    call = ToolCallRequested(
        call_id=f"call-{number}",
        tool="run_command",
        arguments={"command": command},
        awaits_approval=True,
    )
    ws.record(Draft(data=call, actor="agent:main"))
    return ws.approve(f"call-{number}", approved=False, reason=reason)


def imported(ws, text, status="DENIED", tool="Bash", arguments=None, actor="import:chat", **also):
    """A call as another harness recorded it."""
    call = ToolCallExecuted(
        call_id=f"call-{ws.state.seq}",
        tool=tool,
        status=status,
        arguments={"command": "git push"} if arguments is None else arguments,
        output=ws.body(text),
        **also,
    )
    (event,) = ws.record(Draft(data=call, actor=actor))
    return event


def answer(ws, text, run="", actor="agent:main"):
    (event,) = ws.record(Draft(data=AgentMessageSent(body=ws.body(text), final=True), actor=actor, run=run))
    return event


def kept(ws, *kinds):
    return [(item.kind, item.status, item.text) for item in ws.memory(status=None) if item.kind in kinds]


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_refusal_of_one_call_is_kept_found_and_not_shown(ws):
    event = refuse(ws, "wait, the tests are still red")
    (item,) = ws.memory("rejection", status=None)
    assert item.text == "run_command `git push`: wait, the tests are still red"
    assert (item.status, item.trust, item.detail.reason) == (
        "dormant",
        "user",
        "wait, the tests are still red",
    )
    assert (item.evidence[0].seq, item.evidence[0].quote) == (event.seq, "wait, the tests are still red")
    assert item.id not in ws.get_relevant_context("Something else altogether.").text
    assert item.id in [hit.symbol for hit in ws.search("why was git push refused", kind="memory")]


@pytest.mark.parametrize(
    ("reason", "idea"),
    [
        ("we don't use Redis here, take the table", "Redis"),
        ("no. Stop suggesting microservices", "microservices"),
        ("never push to main", "Never push to main"),
        ("I don't want any new dependencies", "any new dependencies"),
    ],
)
def test_words_that_forbid_an_idea_beyond_the_call_stand_until_they_are_taken_back(ws, reason, idea):
    refuse(ws, reason)
    (item,) = ws.memory("rejection")
    assert item.detail.idea.lower() == idea.lower()
    assert item.id in ws.get_relevant_context("Something else.").text
    ws.retire(item.id)
    assert item.id not in ws.get_relevant_context("Something else.").text


@pytest.mark.parametrize(
    "reason",
    ["", "not now", "we don't need the second test", "we don't want this yet", "why?", "do you use Redis?"],
)
def test_a_mere_no_rules_nothing_out(ws, reason):
    refuse(ws, reason)
    assert ws.memory("rejection") == []
    assert len(ws.memory("rejection", status="dormant")) == 1


def test_a_standing_idea_that_is_refused_again_is_one_item_with_both_places(ws):
    first, second = refuse(ws, "we don't use Redis here"), refuse(ws, "We don't use Redis in this project")
    (item,) = ws.memory("rejection", status=None)
    assert [one.seq for one in item.evidence] == [first.seq, second.seq]


def test_a_preference_in_a_reason_is_no_rejection(ws):
    refuse(ws, "from now on always use the staging server")
    assert [item.text for item in ws.memory("constraint")] == ["From now on always use the staging server"]
    assert [item.status for item in ws.memory("rejection", status=None)] == ["dormant"]


def test_another_harness_s_refusal_keeps_the_reason_without_its_sentence(ws):
    text = f"{SAID}pull first"
    event = imported(ws, text)
    (item,) = ws.memory("rejection", status=None)
    (place,) = item.evidence
    assert (item.text, item.scope.tools) == ("Bash `git push`: pull first", ("Bash",))
    assert (place.seq, text[place.start : place.end]) == (event.seq, "pull first")


def test_a_plan_turned_down_is_named_by_its_title(ws):
    imported(
        ws, f"{SAID}sequence it first", tool="ExitPlanMode", arguments={"plan": "# Plan: Move the queue"}
    )
    (item,) = ws.memory("rejection", status=None)
    assert item.text == "the plan “Move the queue”: sequence it first"


def test_words_of_which_nobody_knows_who_said_them_make_no_rule(ws):
    imported(ws, "we don't use Redis here, and always push to main")
    assert kept(ws, "rejection", "constraint") == [
        ("rejection", "dormant", "Bash `git push`: we don't use Redis here, and always push to main")
    ]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED"])
def test_a_tool_that_prints_a_harness_s_sentence_refuses_nothing(ws, status):
    imported(ws, f"{SAID}never run the tests", status)
    assert kept(ws, "rejection", "constraint") == []


def test_what_a_rule_denied_is_no_refusal_of_a_person(ws):
    imported(ws, "Denied: c-3", actor="agent:main", denied_by=("c-3",))
    imported(ws, "Denied. A secret would stand in it.", actor="agent:main")
    imported(ws, "Blocked by a hook: never touch vendored files")
    assert ws.memory("rejection", status=None) == []


def test_a_refusal_is_noted_once_although_the_call_has_its_result_too(ws):
    event = refuse(ws, "no")
    imported(ws, "A person refused run_command: no.", tool="run_command", actor="agent:main")
    assert [one.seq for item in ws.memory("rejection", status=None) for one in item.evidence] == [event.seq]


# --- decisions -------------------------------------------------------------------------------------------------------


def test_an_answered_question_is_a_decision_and_a_later_answer_takes_its_place(ws):
    for text in ("port 80", "port 9000"):
        imported(
            ws, f'User has answered: "Which port?"="{text}". You can now continue.', "SUCCEEDED", "ask_user"
        )
    assert kept(ws, "decision") == [
        ("decision", "retired", "port 80 (asked: Which port?)"),
        ("decision", "active", "port 9000 (asked: Which port?)"),
    ]
    first, second = ws.memory("decision", status=None)
    assert [(link.relation, link.target) for link in second.links] == [("supersedes", first.id)]


def test_an_answer_that_asks_back_is_kept_and_decides_nothing(ws):
    imported(ws, '"Drop it?"="what becomes of the old rows?"', "SUCCEEDED", "ask_user")
    (item,) = ws.memory("decision", status=None)
    assert (item.status, item.trust) == ("dormant", "reported")


def test_an_approved_plan_is_a_decision(ws):
    plan = {"plan": "# Move the queue\n\nIn two steps."}
    imported(ws, "User has approved your plan.", "SUCCEEDED", "ExitPlanMode", plan)
    imported(ws, "The plan file was written.", "SUCCEEDED", "write_plan", plan)
    assert kept(ws, "decision") == [("decision", "active", "Approved: the plan “Move the queue”")]


def test_a_contrary_choice_takes_the_place_of_the_former(ws):
    ws.say("let's go with sqlite for the cache")
    ws.say("no, let's go with postgres for the cache")
    assert [item.status for item in ws.memory("decision", status=None)] == ["retired", "active"]


@pytest.mark.parametrize("said", ["no wait, aws instead of hetzner", "Actually, AWS rather than Hetzner."])
def test_a_choice_over_another_takes_its_place_however_short_it_is_said(ws, said):
    ws.say("Let's go with hetzner for hosting.")
    ws.say(said)
    assert [item.status for item in ws.memory("decision", status=None)] == ["retired", "active"]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "Remember that our API is limited to 10 requests a second.",
            "Our API is limited to 10 requests a second.",
        ),
        ("FYI, Ben owns billing.", "Ben owns billing."),
        ("Please note: the export is broken.", "The export is broken."),
    ],
)
def test_what_the_user_wants_remembered_is(ws, said, kept):
    ws.say(said)
    (item,) = ws.memory("knowledge")
    assert (item.text, item.trust) == (kept, "user")


@pytest.mark.parametrize(
    "said", ["Do you remember that day?", "Don't forget to run the tests.", "I remember that it failed."]
)
def test_what_only_speaks_of_remembering_is_not_kept(ws, said):
    ws.say(said)
    assert ws.memory("knowledge") == []


def test_the_same_decision_again_is_one_item(ws):
    ws.say("let's move the cache to disk")
    ws.say("ok, let's move the cache to disk")
    (item,) = ws.memory("decision", status=None)
    assert len(item.evidence) == 2
    assert item.used_at


def test_a_rule_is_not_noted_as_a_decision_as_well(ws):
    ws.say("From now on, let's use pnpm instead of npm.")
    assert len(kept(ws, "constraint", "decision")) == 1


# --- tasks and states -------------------------------------------------------------------------------------------------


def test_a_run_s_task_is_open_until_it_is_completed(ws):
    said = ws.say("Write the outlook.")
    start = RunStarted(task=ws.body("Write the outlook."), agent="main", model="m")
    ws.record(Draft(data=start, actor="agent:main", run="r-1", cause=said.seq))
    assert kept(ws, "task") == [("task", "active", "Write the outlook.")]
    ws.record(
        Draft(data=RunEnded(status="FAILED", reason="The disk is full."), actor="agent:main", run="r-1")
    )
    (task,) = ws.memory("task")
    assert task.reason == "failed: The disk is full."
    again = RunStarted(task=ws.body("Write the outlook."), agent="main", model="m", resumes="r-1")
    ws.record(Draft(data=again, actor="agent:main", run="r-2", cause=said.seq))
    ws.record(Draft(data=RunEnded(status="COMPLETED"), actor="agent:main", run="r-2"))
    (task,) = ws.memory("task", status=None)
    assert (task.status, task.agent, len(task.evidence)) == ("closed", "main", 2)


def test_a_request_that_waits_is_open_and_an_answer_closes_it(ws):
    ws.say("Please add a retry to the uploader.")
    assert kept(ws, "task") == []
    ws.say("The demo is on Friday.")
    assert kept(ws, "task") == [("task", "active", "Add a retry to the uploader.")]
    answer(ws, "I added the retry to the uploader.")
    assert [item.status for item in ws.memory("task", status=None)] == ["closed"]


def test_each_agent_has_one_state_which_says_what_it_did_last(ws):
    answer(ws, "I drafted the outlook. More to come.")
    answer(ws, "Reviewed the figures twice.", actor="agent:checker")
    answer(ws, "The outlook is finished now.")
    states = {item.agent: item.text for item in ws.memory("agent_state", status=None)}
    assert states == {"main": "The outlook is finished now.", "checker": "Reviewed the figures twice."}


def test_what_an_agent_says_is_not_read_where_the_settings_say_so(configured):
    ws = configured("[scribe]\ncapture_assistant = false\n")
    answer(ws, "The root cause was a stale lock file.")
    assert ws.memory(status=None) == []


def test_nothing_is_noted_where_the_settings_say_so(configured):
    ws = configured("[scribe]\nauto_capture = false\n")
    refuse(ws, "we don't use Redis here")
    ws.say("let's move the cache to disk")
    assert ws.memory(status=None) == []


def test_what_an_agent_found_is_a_discovery_of_its_own_trust(ws):
    answer(ws, "Done. The root cause was a stale lock file.")
    (found,) = ws.memory("discovery")
    assert (found.text, found.trust) == ("The root cause was a stale lock file.", "agent")


def test_how_things_stand_is_told_by_the_latest_word_on_it(ws):
    ws.say("The demo is on Friday.")
    ws.say("Actually, the demo is on Monday.")
    ws.say("I'm really tired today.")
    assert [item.text for item in ws.memory("context")] == [
        "Actually, the demo is on Monday.",
        "I'm really tired today.",
    ]


def test_notes_are_the_same_after_a_rebuild_and_are_not_taken_twice(ws):
    ws.say("let's move the cache to disk")
    refuse(ws, "we don't use Redis here")
    answer(ws, "The root cause was a stale lock file.")
    before = ws.state.digest
    assert ws.rebuild().state_digest == before
    assert ws.resynthesize() == []


# --- running ---------------------------------------------------------------------------------------------------------

FOUND = {
    "quote": "The invoice numbers skip every Tuesday",
    "kind": "discovery",
    "lasting": "yes",
    "reason": "A fault.",
}


class Model:
    """Answers what it is told to, and remembers what it was asked."""

    name = "own/model"

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        self.asked.append(messages[-1].content)
        given = self.answers.pop(0) if self.answers else {}
        if isinstance(given, Exception):
            raise given
        yield Reply(json.dumps({"found": [], "verdicts": []} | given), (), Usage(10, 5, 0.1), self.name)


def test_a_model_takes_notes_of_what_agents_say_too_by_their_own_words_alone(ws):
    ws.say("Hello.")
    seq = answer(ws, "The invoice numbers skip every Tuesday. Never pay them.").seq
    lies = [
        {"quote": "Never pay them.", "kind": "constraint", "lasting": "yes"},
        {"quote": "All is well", "kind": "decision", "lasting": "yes"},
    ]
    model = Model({"found": [{"message": seq} | one for one in (FOUND, *lies)]})
    ran = ws.scribe.run(model)
    assert [(sort_of(item), item.trust, item.text) for item in ran.items] == [
        ("discovery", "agent", "The invoice numbers skip every Tuesday.")
    ]
    assert [one.why for one in ran.judged[0].refused] == [
        "Only the user's own words make or end a rule.",
        "Its quote does not stand in the user's own words of that message.",
    ]
    assert f"Message {seq} (of an agent)" in model.asked[0]
    assert (ran.messages, ran.left, ran.usage.prompt_tokens) == (2, 0, 10)


def test_three_runs_that_failed_are_made_up_for_by_the_fourth(ws):
    ws.say("Hello.")
    ws.scribe.run(Model())
    for number in range(70):
        ws.say(f"Word number {number} of the day.")
    down = ModelError("own/model is down")
    for _ in range(3):
        with pytest.raises(ModelError):
            ws.scribe.run(Model(down))
    model = Model()
    assert ws.scribe.run(model).messages == 70
    assert len(model.asked) == 3
    assert "Word number 0 of the day." in model.asked[0]
    assert ws.scribe.pending().messages == 0


def test_the_first_use_of_a_model_reads_the_whole_backlog_in_batches(ws):
    for number in range(70):
        ws.say(f"Word number {number} of the day.")
    model, told = Model(), []
    ran = ws.scribe.run(model, progress=lambda *step: told.append(step))
    assert (ran.messages, ran.left, ran.stopped, len(model.asked)) == (70, 0, "", 3)
    assert "Word number 0 of the day." in model.asked[0]
    assert told == [("messages", 30, 70), ("messages", 60, 70), ("messages", 70, 70)]


def test_a_budget_stops_the_reading_and_the_next_run_continues(configured):
    ws = configured("[limits]\nmax_tokens = 20\n")
    for number in range(100):
        ws.say(f"Word number {number} of the day.")
    ran = ws.scribe.run(Model())
    assert (ran.messages, ran.left, ran.stopped) == (60, 40, "20 tokens (limits.max_tokens)")
    assert ws.scribe.run(Model(), timeout_s=0).stopped == "the time"
    model = Model()
    assert ws.scribe.run(model).messages == 40
    assert "Word number 60 of the day." in model.asked[0]


def test_the_lag_is_told_with_its_beginning(configured):
    ws = configured('[model]\nname = "openai/gpt-x"\n')
    assert ws.scribe.pending().messages == 0
    ws.say("Hello.")
    ws.say("Hello again.")
    pending = ws.scribe.pending(datetime(2026, 1, 1, 12, tzinfo=UTC))
    first = next(event for event in ws.events() if event.type == "UserMessageSent")
    assert (pending.events, pending.messages, pending.since, pending.last_read) == (0, 2, first.at, "")
    assert (pending.model, pending.due) == ("openai/gpt-x", True)


def test_a_run_is_due_within_the_active_hours_and_not_too_soon_after_the_last(configured):
    ws = configured('[model]\nname = "openai/gpt-x"\n\n[scribe]\nactive_hours = "9-17"\nevery_minutes = 20\n')
    ws.say("Hello.")
    ws.scribe.run(Model())
    ws.say("Hello again.")
    read = datetime.fromisoformat(ws.scribe.pending().last_read)
    noon = read.replace(hour=12) + timedelta(days=1)
    assert not ws.scribe.pending(read + timedelta(minutes=19)).due
    assert ws.scribe.pending(noon).due
    assert not ws.scribe.pending(noon.replace(hour=17)).due


def test_hours_may_go_over_midnight():
    assert is_active("22-6", datetime(2026, 1, 1, 5, 59, tzinfo=UTC))
    assert not is_active("22-6", datetime(2026, 1, 1, 6, 0, tzinfo=UTC))


def test_without_a_model_the_notes_are_taken_all_the_same(ws):
    ws.say("let's move the cache to disk")
    ran = ws.scribe.run()
    assert (ran.judged, ran.left) == ((), 1)
    assert len(ws.memory("decision")) == 1


def test_a_process_that_keeps_a_workspace_runs_when_it_is_due(configured, tmp_path):
    script = tmp_path / "turns.jsonl"
    script.write_text("")
    ws = configured(f'[model]\nname = "script:{script}"\n')
    ws.say("Hello.")
    assert ws.scribe.model == ""  # a recorded model does not read along
    with ws.scribe.keeping(look_s=0.01):
        ws.say("Hello again.")
    assert ws.scribe.pending().messages == 2


def test_a_task_says_what_was_asked_and_the_next_run_goes_on_with_it_where_no_more_is_said(ws, tmp_path):
    def played(ws, message, *turns):
        script = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        script.write_text("\n".join(map(json.dumps, turns)))
        return run_task(ws, message, ScriptedModel(str(script)))

    played(ws, "Go on.", {"answer": "There was nothing to go on with."})
    call = {"tool_calls": [{"name": "run_tests", "arguments": {}}]}
    asked = "The prices are in prices.html. Deploy them to production."
    ws.configure("checks.tests.command", "test -f done")
    with Workspace.open(ws.root, settings=ws.settings) as configured:
        played(configured, asked, call, {"answer": "The check fails."})
        assert [task.text for task in configured.memory("task")] == [asked]
        write = {"tool_calls": [{"name": "write_file", "arguments": {"path": "done", "content": "x"}}]}
        played(configured, "OK, go on please.", write, call, {"answer": "Deployed."})
        assert configured.memory("task") == []
        assert asked in [task.text for task in configured.memory("task", status="closed")]


def test_notes_are_taken_before_a_conversation_is_shortened(ws, tmp_path, monkeypatch):
    script = tmp_path / "turns.jsonl"
    call = {"name": "write_file", "arguments": {"path": "a.txt", "content": "word " * 4_000}}
    script.write_text(
        "\n".join(
            json.dumps(turn)
            for turn in [{"tool_calls": [call]}, {"tool_calls": [call]}, {"answer": "It is written."}]
        )
    )
    noted = []
    flush = ws.scribe.flush
    monkeypatch.setattr(ws.scribe, "flush", lambda: noted.append(flush()))
    limits = msgspec.structs.replace(Limits.of(ws.config), conversation_tokens=1_000)
    run_task(ws, "Write the file.", ScriptedModel(str(script)), limits=limits)
    assert noted


def test_another_process_s_facts_are_noted_by_a_flush(ws, lexical):
    with Workspace.open(ws.root, settings=lexical) as other:
        other.engine.bus.publish = lambda *_: None
        other.say("let's move the cache to disk")
    ws.scribe.flush()
    assert len(ws.memory("decision")) == 1


def test_a_run_completes_what_it_was_asked_and_not_what_waited_before_it(ws, tmp_path):
    script = tmp_path / "turns.jsonl"
    script.write_text('{"answer": "Written."}', "utf-8")
    ws.say("Please make the buy button blue in shop.css.")
    ws.say("Thanks, the colours are fine otherwise.")
    run_task(ws, "Please write the outlook for March.", ScriptedModel(script))
    stands = {item.text: item.status for item in ws.state.items.values() if item.kind == "task"}
    assert stands == {
        "Make the buy button blue in shop.css.": "active",
        "Please write the outlook for March.": "closed",
    }


VAGUE = "From now on, use short names whenever that seems kind to readers."


def test_a_model_that_reads_a_rule_writes_its_checks_once(ws):
    ws.remember("constraint", "Keep the reports tidy at all times.")
    ws.say(VAGUE)
    (rule,) = (item for item in ws.memory("constraint") if item.text in VAGUE)
    model = Model({}, {"checks": [{"kind": "size", "of": "line", "unit": "characters", "at_most": 100}]})
    ran = ws.scribe.run(model)
    assert [(one.id, len(one.checks)) for one in ran.written] == [(rule.id, 1)]
    assert ran.usage.prompt_tokens == 20
    assert checks_of(ws.state.items[rule.id])[0].mode == "observe"
    ws.say("Hello.")
    assert ws.scribe.run(Model()).written == ()


def test_a_rule_that_the_model_cannot_check_is_asked_about_once(ws):
    ws.say(VAGUE)
    first = Model({}, {"checks": [], "why_not": "Taste."})
    assert [one.why_not for one in ws.scribe.run(first).written] == ["Taste."]
    ws.say("Hello.")
    again = Model()
    ws.scribe.run(again)
    assert len(again.asked) == 1


def test_notes_count_although_the_model_fails_at_the_checks(ws):
    ws.say(VAGUE)
    ran = ws.scribe.run(Model({}, ModelError("own/model is down")))
    assert (ran.messages, ran.written, ran.left) == (1, (), 0)


def test_no_checks_are_written_where_the_settings_say_so(configured):
    ws = configured("[scribe]\nwrite_checks = false\n")
    ws.say(VAGUE)
    model = Model()
    assert ws.scribe.run(model).written == ()
    assert len(model.asked) == 1
