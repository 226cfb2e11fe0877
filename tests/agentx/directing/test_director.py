"""The director over a real workspace: what is recorded, what serves on, what a replay gives."""

import json
import shutil

import pytest

from agentx import Workspace
from agentx.agents.turn import DueTime
from agentx.directing.directed_runs import run_directed
from agentx.directing.director import LEFT_OUT, Director
from agentx.directing.executors import Function, Outcome
from agentx.storage.events.direction_events import (
    DirectiveFailed,
    DirectiveIssued,
    FieldExplained,
    ReusePolicy,
)
from agentx.storage.events.types import Draft
from agentx.synthesis.directing import fields
from agentx.synthesis.directing.fields import FieldUnresolved
from agentx.synthesis.model.litellm_client import LiteLLMClient
from agentx.synthesis.model.port import ModelError
from agentx.synthesis.state.state import RECENT_INSTRUCTIONS
from tests.agentx.test_judging import Model

WORDS = "titles from the last five mails"


def directive(prompt="Look.", valid_for_runs=2, **parts):
    policy = {"valid_for_runs": valid_for_runs, **parts.pop("policy", {})}
    return {
        "analysis_summary": "All is well.",
        "strategy": "Go on.",
        "reflection": "None.",
        "executor_system_prompt": prompt,
        "reuse_policy": policy,
        **parts,
    }


class Down:
    name = "down/model"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        raise ModelError("down/model cannot be reached; try later", retryable=True)
        yield


def events(ws, payload):
    return [event for event in ws.events() if isinstance(event.data, payload)]


def send(ws, model=None, titles=None, **options):
    mails = []

    def send_email(titles: list[str]) -> str:
        """Send a mail."""
        mails.append(titles)
        return "sent"

    def work(assignment):
        assignment.tools.call("send_email", {"titles": titles or [f"Title {len(assignment.prompt)}"]})
        return "Sent 1."

    return run_directed(ws.engine, Function("f", work), {"send_email": send_email}, model=model, **options)


def test_a_model_directs_and_its_directive_serves_its_runs(ws):
    ws.say("Mail me the news.")
    model = Model(directive("One {{run_number}}."), directive("Two."))
    prompts = [send(ws, model).prompt for _ in range(3)]
    asked = f"\n\n{LEFT_OUT}\n- Mail me the news."
    assert prompts == [f"One 1.{asked}", f"One 2.{asked}", f"Two.{asked}"]
    issued, _ = events(ws, DirectiveIssued)
    assert (issued.actor, issued.data.why, issued.data.model, issued.data.cost_usd) == (
        "agent:director",
        "there is no directive yet",
        "own/model",
        0.5,
    )
    assert [run.directive for run in ws.state.runs][:2] == [issued.seq] * 2
    assert "Mail me the news." in model.asked[0][1].content


def test_it_is_shown_runs_checkpoints_knowledge_rules_failures_and_its_own_directives(ws):
    ws.say("Mail me the news. Never use Comic Sans.")
    first = directive(
        "Look.",
        valid_for_runs=1,
        checkpoints_to_create=[{"type": "milestone", "text": "It works.", "actionable": "Keep it."}],
        knowledge_to_create=[{"topic": "mail", "text": "The server sleeps at night."}],
    )
    model = Model(first, directive())
    send(ws, model)
    run_directed(ws.engine, Function("f", lambda a: Outcome(status="FAILED", reason="no net")), model=model)
    run_directed(ws.engine, Function("f", lambda a: "x"), model=Model(directive()))
    shown = model.asked[1][1].content
    for text in (
        "Never use Comic Sans",
        "It works. Actionable: Keep it.",
        "mail: The server sleeps at night.",
        "send_email: 1 succeeded",
        "Strategy: Go on.",
        "Sent 1.",
    ):
        assert text in shown
    last = Model(directive())
    Director(ws.engine, last).direct("asked")
    assert "r-2 FAILED: no net" in last.asked[0][1].content


def test_checkpoints_and_knowledge_are_memory_and_what_is_learned_twice_is_one_item(ws):
    def learn(text):
        known = [{"topic": "Mail", "text": text}]
        Director(ws.engine, Model(directive(knowledge_to_create=known))).direct("x")
        return [item.text for item in ws.memory("knowledge")]

    assert learn("The mail server sleeps from 6 to 7.") == ["The mail server sleeps from 6 to 7."]
    assert learn("The mail server sleeps from 6 to 7.") == ["The mail server sleeps from 6 to 7."]
    assert len(ws.memory("knowledge")[0].evidence) == 2
    assert learn("The mail server sleeps from 8 to 9.") == ["The mail server sleeps from 8 to 9."]


def test_an_answer_that_cannot_be_used_is_asked_for_once_more_with_what_was_wrong(ws):
    model = Model("I would rather not.", directive("Look."))
    assert send(ws, model).prompt == "Look."
    assert "not a JSON object" in model.asked[1][-1].content
    assert events(ws, DirectiveIssued)[0].data.cost_usd == 1.0


def test_after_two_wrong_answers_the_last_good_directive_serves_on_and_the_failure_is_on_record(ws):
    send(ws, Model(directive("Good.", valid_for_runs=1)))
    run = send(ws, Model("no", "no"))
    assert run.prompt == "Good."
    [failed] = events(ws, DirectiveFailed)
    assert (failed.data.serves, failed.data.cost_usd) == (events(ws, DirectiveIssued)[0].seq, 1.0)
    assert send(ws, Model(directive("Better."))).prompt == "Better."


def test_with_the_model_down_a_prompt_is_composed_where_there_is_none_and_reused_where_there_is(ws):
    ws.say("Mail me the news.")
    assert "Mail me the news." in send(ws, Down()).prompt
    composed = events(ws, DirectiveIssued)[-1]
    assert composed.data.model == "deterministic"
    for _ in range(composed.data.policy.valid_for_runs):
        send(ws, Down())
    assert [event.seq for event in events(ws, DirectiveIssued)] == [composed.seq]
    assert len(events(ws, DirectiveFailed)) == 1 + composed.data.policy.valid_for_runs
    assert send(ws, Model(directive("Better: mail me the news."))).prompt == "Better: mail me the news."


def test_why_is_the_same_after_a_replay_and_follows_the_record(ws, tmp_path, lexical):
    director = Director(ws.engine)
    assert director.decide().why == "there is no directive yet"
    send(ws)
    assert not director.decide().direct
    said = ws.say("Reddit too.")
    assert director.decide().cause == said.seq
    digest, why = ws.status().digest, director.decide()
    root = ws.root
    ws.close()
    shutil.rmtree(root / ".agentx")
    with Workspace.open(root, settings=lexical) as again:
        assert (again.status().digest, Director(again.engine).decide()) == (digest, why)


def test_what_the_user_said_while_the_director_thought_ends_its_directive_at_once(ws):
    model = Model(
        directive(policy={"invalidate_on": ["user_instructions_changed"]}),
        meanwhile=lambda: ws.say("Stop mails."),
    )
    Director(ws.engine, model).direct("x")
    assert Director(ws.engine).decide().direct


def test_a_field_in_words_is_explained_by_the_model_once_and_looked_up_from_then_on(ws):
    told = directive("Sent:\n{{sent}}", policy={"dynamic_fields": {"sent": WORDS}})
    model = Model(told, {"resolver": "values(tool=send_email, path=titles[*])"})
    prompts = [send(ws, model).prompt for _ in range(2)]
    assert prompts[0] == "Sent:\n(none)"
    assert prompts[1].startswith('Sent:\n- "Title')
    [said] = events(ws, FieldExplained)
    assert (said.data.words, said.data.resolver) == (WORDS, "values(tool=send_email, path=titles[*])")


def test_a_value_in_place_of_a_resolver_holds_for_one_run(ws):
    told = directive("Mood: {{mood}}", policy={"dynamic_fields": {"mood": "how the user feels"}})
    model = Model(told, {"value": "calm"}, {"value": "glad"})
    assert [send(ws, model).prompt for _ in range(2)] == ["Mood: calm", "Mood: glad"]


@pytest.mark.parametrize(
    ("field", "told"), [({"x": "hours_since_last_run"}, "nothing ran yet"), ({"x": WORDS}, WORDS)]
)
def test_a_field_without_a_value_stops_the_run_before_the_executor_is_told_anything(ws, field, told):
    policy = ReusePolicy(5, (), field)
    ws.record(
        Draft(
            data=DirectiveIssued(why="x", summary="", strategy="", prompt=ws.body("{{x}}"), policy=policy),
            actor="agent:director",
        )
    )
    with pytest.raises(FieldUnresolved, match=told):
        run_directed(ws.engine, Function("f", lambda assignment: pytest.fail("it ran")))
    assert ws.state.last_run.status == "FAILED"
    assert told in ws.state.last_run.reason


def test_rules_stand_behind_a_prompt_that_was_written_before_them(ws):
    model = Model(directive("Look.", valid_for_runs=9))
    send(ws, model)
    ws.say("Never mention Elon Musk.")
    prompt = send(ws, model).prompt
    assert prompt == "Look.\n\nHold to this:\n- Never mention Elon Musk."


def test_a_due_time_is_run_once(ws):
    due = DueTime("news", "2026-01-01T06:00:00Z")
    assert send(ws, due=due) is not None
    ws.engine.write_path.flush()
    before = ws.state.seq
    with Workspace.open(ws.root, settings=ws.engine.settings) as other:
        assert send(other, due=due) is None
    assert ws.status().events == before


def test_over_http_with_the_protocol_of_openai(ws, chat_server):
    client = LiteLLMClient("openai/director", api_base=chat_server.base, api_key="sk-test", retries=0)
    chat_server.will_call(("call_1", "direct", json.dumps(directive("Look closely."))))
    assert send(ws, client).prompt == "Look closely."
    assert chat_server.requests[0]["tools"][0]["function"]["name"] == "direct"


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"prompt": "Use {{a{b}c}}."}, "does not begin a field"),
        ({"prompt": "[c-1]"}, "the prompt is empty"),
        (
            {"policy": {"dynamic_fields": {"a": "values(tool=x, path=titles[)"}}, "prompt": "{{a}}"},
            "not a valid JSONPath",
        ),
        (
            {
                "checkpoints_to_create": [{"type": "milestone", "text": "é" * 400, "actionable": "é" * 400}]
                * 8
            },
            "shorten it",
        ),
    ],
)
def test_a_directive_that_cannot_be_carried_out_or_kept_is_sent_back_with_what_is_wrong(ws, part, told):
    model = Model(directive(**part), directive("Look."))
    assert send(ws, model).prompt == "Look."
    assert told in model.asked[1][-1].content


class Broken:
    name = "own/broken"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        raise KeyError("z" * 50_000)
        yield


def test_a_client_that_breaks_in_any_way_is_a_failure_on_record_and_the_last_directive_serves_on(ws):
    send(ws, Model(directive("Good.", valid_for_runs=1)))
    assert send(ws, Broken()).prompt == "Good."
    [failed] = events(ws, DirectiveFailed)
    assert failed.data.error.startswith("own/broken failed: KeyError")


def test_an_answer_over_http_that_is_cut_off_is_asked_for_once_more(ws, chat_server):
    client = LiteLLMClient("openai/director", api_base=chat_server.base, api_key="sk-test", retries=0)
    whole = json.dumps(directive("Look closely."))
    chat_server.will_call(("call_1", "direct", whole[: len(whole) // 2]))
    chat_server.will_call(("call_2", "direct", whole))
    assert send(ws, client).prompt == "Look closely."


def test_words_of_the_user_in_braces_are_words(ws):
    ws.say("Mail me what stands in {{{name}}} and {{name}}, and { (event 3){name}}.")
    assert "{{" not in send(ws).prompt


def test_a_resolver_that_another_program_knew_is_no_empty_text_here(ws, monkeypatch):
    monkeypatch.setattr(fields, "RESOLVERS", fields.RESOLVERS | {})
    fields.resolver("orders")(lambda past: 7)
    told = directive("Orders: {{open}}", policy={"dynamic_fields": {"open": "orders that are open"}})
    model = Model(told, {"resolver": "orders()"})
    assert send(ws, model).prompt == "Orders: 7"
    del fields.RESOLVERS["orders"]
    with pytest.raises(FieldUnresolved, match=r"orders\(\)"):
        send(ws, model)
    assert ws.state.last_run.status == "FAILED"


def test_a_directive_and_calls_whose_blobs_are_gone_stop_nothing(ws):
    ws.say("Mail me the news.")
    send(ws, Model(directive("Look. " * 2_000)), titles=[f"A title {number} " * 9 for number in range(100)])
    for blob in (ws.root / "history" / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    assert send(ws).prompt.startswith("Carry this out now")
    assert events(ws, DirectiveIssued)[-1].data.why == "the directive cannot be read"


def test_no_message_is_lost_however_much_is_said_later(ws):
    ws.say("Mail me the news.")
    for number in range(RECENT_INSTRUCTIONS + 5):
        ws.say(f"Leave out number {number}.")
    prompt = send(ws).prompt
    places = [prompt.index(f"number {number}.") for number in range(RECENT_INSTRUCTIONS + 5)]
    assert [prompt.index("- Mail me the news."), *places] == sorted([prompt.index("- Mail me"), *places])


def test_what_a_run_was_doing_when_it_was_cut_off_is_not_done_again(ws):
    ws.say("Mail me the news, each title once.")
    mails = []

    def send_email(titles: list[str]) -> str:
        mails.append(titles)
        if len(mails) == 1:
            raise KeyboardInterrupt
        return "sent"

    def work(assignment):
        new = [title for title in ("One", f"Two {len(mails)}") if f'"{title}"' not in assignment.prompt]
        return assignment.tools.call("send_email", {"titles": new}).output

    with pytest.raises(KeyboardInterrupt):
        run_directed(ws.engine, Function("reader", work), {"send_email": send_email})
    run_directed(ws.engine, Function("reader", work), {"send_email": send_email})
    assert mails == [["One", "Two 0"], ["Two 1"]]
    shown = Director(ws.engine).question(ws.state, "x")[1].content
    assert "r-1, " in shown
    assert "UNKNOWN" in shown
    assert "send_email: 1 succeeded, 0 failed" in shown
