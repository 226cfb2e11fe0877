"""The loop in a real workspace; only the words of the model are given."""

import re
import signal
import subprocess
import sys

import pytest

from agentx.agents.loop import NothingToDo, run_task
from agentx.agents.run_types import Approval, Limits, Observer
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    ApprovalDecided,
    ContextProvided,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.synthesis.model.litellm_client import LiteLLMClient

WRITE = ("write_file", {"path": "a.txt", "content": "hello\n"})
NO_REQUIREMENTS = "Never create a requirements.txt file; use pyproject.toml instead."
NO_MUSK = "When writing about Tesla's future, never mention Elon Musk."


def history(ws, *types):
    through = ws.state.seq
    found = []
    for event in ws.events(after=0):
        if isinstance(event.data, types or object):
            found.append(event)
        if event.seq >= through:
            return found
    return found


def results(ws):
    return [event.data for event in history(ws, ToolCallExecuted)]


def test_an_answer_that_suggests_what_was_ruled_out_goes_back_once_with_the_sentence_and_its_date(ws, script):
    ws.say("Stop suggesting pop-ups.")
    (rejection,) = ws.memory("rejection")
    model = script(
        "A pop-up could bring more readers.", {"expect": ["“Stop suggesting pop-ups.”"], "answer": "A link."}
    )
    result = run_task(ws, "How do we get more readers?", model)
    assert (result.status, result.answer, result.violations) == ("COMPLETED", "A link.", ())
    (sent_back,) = results(ws)
    assert (sent_back.status, sent_back.denied_by) == ("DENIED", (rejection.id,))
    assert f"ruled out on {rejection.created_at[:10]}" in sent_back.output.text


def test_after_a_cut_the_prompt_holds_what_was_ruled_out_and_in_little_room_it_is_the_lowest_tier(ws, script):
    ws.say("Stop suggesting pop-ups.")
    ws.tools.write_file("long.txt", "a line of a long file\n" * 300)
    read = ("read_file", {"path": "long.txt"})
    cut = {"expect": ["characters more are left out", "Stop suggesting pop-ups."], "answer": "It is long."}
    limits = Limits(conversation_tokens=1_000, context_tokens=1_000)
    result = run_task(ws, "What is in the file?", script(read, read, cut), limits=limits)
    assert (result.status, result.answer) == ("COMPLETED", "It is long."), result.reason
    assert {event.data.tier for event in history(ws, ContextProvided)} == {0}


def test_a_task_runs_to_its_answer_and_every_part_of_it_is_an_event(ws, script):
    result = run_task(
        ws, "Write hello.", script({"thought": "I write.", "tool_calls": [call(WRITE)]}, "Done.")
    )
    assert (result.status, result.answer, result.steps, result.reason) == ("COMPLETED", "Done.", 2, "")
    assert (ws.root / "artifacts" / "a.txt").read_text() == "hello\n"
    kinds = (
        UserMessageSent,
        RunStarted,
        ContextProvided,
        AgentThoughtProcess,
        ToolCallExecuted,
        AgentMessageSent,
        RunEnded,
    )
    assert [event.type for event in history(ws, *kinds)] == [
        "UserMessageSent",
        "RunStarted",
        "ContextProvided",
        "AgentThoughtProcess",
        "ToolCallExecuted",
        "ContextProvided",
        "AgentMessageSent",
        "RunEnded",
    ]
    own = [event for event in history(ws) if event.run]
    assert {event.run for event in own} == {result.run}
    assert {event.actor for event in own if not event.actor.startswith("engine")} == {"agent:main"}
    end = history(ws, RunEnded)[0].data
    assert (end.steps, end.prompt_tokens) == (2, result.usage.prompt_tokens)


def call(pair):
    return {"name": pair[0], "arguments": pair[1]}


def test_what_the_user_demands_stands_before_the_model_at_each_step(ws, script):
    ws.say(NO_REQUIREMENTS)
    turn = {"expect": ["Never create a requirements.txt file"], "tool_calls": [call(WRITE)]}
    assert (
        run_task(ws, "Write hello.", script(turn, {**turn, "tool_calls": [], "answer": "Done."})).status
        == "COMPLETED"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("write_file", '{"path": ', "not JSON"),
        ("write_file", "[1]", "not a JSON object"),
        ("write_file", {"path": 3}, "content"),
        ("launch_rocket", {}, "Unknown tool 'launch_rocket'"),
        ("write_file", {"path": "../x", "content": "x"}, "artifacts"),
    ],
    ids=["malformed", "no object", "wrong types", "unknown tool", "outside"],
)
def test_a_call_that_cannot_be_meant_is_explained_to_the_model(ws, script, name, arguments, told):
    result = run_task(ws, "Go.", script((name, arguments), {"expect": [told], "answer": "I see."}))
    assert result.answer == "I see."
    assert [data.status for data in results(ws)] == ["FAILED"]


def test_a_denied_write_tells_the_rule_and_the_users_sentence(ws, script):
    ws.say(NO_REQUIREMENTS)
    denied = ("write_file", {"path": "requirements.txt", "content": "x\n"})
    run_task(
        ws, "Add the dependency.", script(denied, {"expect": ["Denied", NO_REQUIREMENTS], "answer": "I see."})
    )
    (data,) = results(ws)
    assert data.status == "DENIED"
    assert data.denied_by
    assert not (ws.root / "artifacts" / "requirements.txt").exists()


def test_an_answer_that_breaks_a_rule_is_sent_back_once(ws, script):
    ws.say(NO_MUSK)
    again = {
        "expect": ["Denied. This answer was not delivered", NO_MUSK],
        "answer": "Tesla's future is bright.",
    }
    model = script("Tesla's future is Elon Musk.", again)
    result = run_task(ws, "Tell me about Tesla's future.", model)
    assert (result.answer, result.violations) == ("Tesla's future is bright.", ())
    (denial,) = results(ws)
    assert (denial.tool, denial.status, denial.arguments) == (
        "answer",
        "DENIED",
        {"text": "Tesla's future is Elon Musk."},
    )
    assert denial.denied_by
    assert [event.data.body.text for event in history(ws, AgentMessageSent)] == ["Tesla's future is bright."]


def test_the_second_time_it_is_delivered_and_what_it_breaks_is_said(ws, script):
    ws.say(NO_MUSK)
    result = run_task(ws, "Tell me about Tesla's future.", script(*["Tesla's future is Elon Musk."] * 2))
    assert result.status == "COMPLETED"
    assert result.violations
    assert "sent back once and still breaks" in result.reason
    (denial,) = history(ws, ToolCallExecuted)
    (said,) = history(ws, AgentMessageSent)
    assert said.cause == denial.seq
    assert history(ws, RunEnded)[0].data.reason == result.reason


def test_the_same_call_over_and_over_is_stopped(ws, script):
    look = ("list_directory", {})
    result = run_task(ws, "Look.", script(*[look] * 9), limits=Limits(max_repeats=3))
    assert result.status == "LIMIT_REACHED"
    assert "list_directory with the same arguments 4 times in a row" in result.reason
    assert len(results(ws)) == 3


def test_a_model_that_says_nothing_is_asked_again_and_then_left(ws, script):
    result = run_task(ws, "Go.", script(*[{"thought": ""}] * 9), limits=Limits(max_repeats=2))
    assert result.status == "LIMIT_REACHED"
    assert [data.status for data in results(ws)] == ["FAILED"] * 2


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (Limits(max_steps=2), "2 steps; .*limits.max_steps"),
        (Limits(max_tokens=10), "10 tokens; .*limits.max_tokens"),
        (Limits(max_time_s=0), "0 seconds; .*limits.max_time_s"),
        (Limits(max_cost_usd=0), "0 USD; .*limits.max_cost_usd"),
    ],
)
def test_a_limit_ends_the_run_and_the_next_goes_on(ws, script, limits, named):
    turns = [("list_directory", {"path": ".", "depth": depth}) for depth in (1, 2)] + ["Done."]
    result = run_task(ws, "Go.", script(*turns), limits=limits)
    assert result.status == "LIMIT_REACHED"
    assert re.search(named, result.reason)
    assert run_task(ws, "", script(*turns)).answer == "Done."


def test_a_model_that_fails_ends_the_run_with_its_sentence(ws, script):
    model = script(WRITE)
    result = run_task(ws, "Write hello.", model)
    assert result.status == "FAILED"
    assert "run out" in result.reason
    assert history(ws, RunEnded)[0].data.reason == result.reason


class Interrupts(Observer):
    def __init__(self, error, at_step):
        self.error = error
        self.at_step = at_step

    def step_started(self, number, context):
        if number == self.at_step:
            raise self.error


def test_ctrl_c_ends_a_run_cleanly_and_the_next_goes_on_where_it_stood(ws, script):
    turns = [WRITE, {"expect": ["Write hello."], "answer": "Done."}]
    result = run_task(ws, "Write hello.", script(*turns), observer=Interrupts(KeyboardInterrupt(), 2))
    assert result.status == "INTERRUPTED"
    assert run_task(ws, "", script(*turns)).answer == "Done."
    first, second = history(ws, RunStarted)
    assert (second.data.resumes, second.cause) == (first.run, first.cause)
    assert len(results(ws)) == 1


def test_a_run_whose_process_died_is_closed_and_goes_on(ws, script):
    turns = [WRITE, "Done."]
    with pytest.raises(SystemExit):
        run_task(ws, "Write hello.", script(*turns), observer=Interrupts(SystemExit(), 2))
    assert history(ws, RunEnded) == []
    assert run_task(ws, "", script(*turns)).answer == "Done."
    assert [event.data.status for event in history(ws, RunEnded)] == ["INTERRUPTED", "COMPLETED"]


def test_a_fault_of_our_own_is_recorded_and_raised(ws, script):
    with pytest.raises(ZeroDivisionError):
        run_task(ws, "Go.", script("Done."), observer=Interrupts(ZeroDivisionError("x"), 1))
    assert "ZeroDivisionError" in history(ws, RunEnded)[0].data.reason


def test_a_new_message_joins_an_unfinished_conversation(ws, script):
    run_task(ws, "Write hello.", script(WRITE))
    result = run_task(
        ws, "Make it short.", script(WRITE, {"expect": ["Write hello.", "Make it short."], "answer": "Ok."})
    )
    assert result.answer == "Ok."


def test_a_new_message_after_an_answer_opens_a_conversation(ws, script):
    run_task(ws, "Write hello.", script(WRITE, "Done."))
    second = script("Bye.")  # a conversation that went on would be at its third turn
    assert run_task(ws, "And now?", second).answer == "Bye."
    assert history(ws, RunStarted)[1].data.resumes == ""


def test_without_a_message_and_without_anything_unfinished_there_is_nothing_to_do(ws, script):
    with pytest.raises(NothingToDo, match="agentx run"):
        run_task(ws, "", script("Done."))
    assert history(ws, RunStarted) == []


def test_a_second_run_in_the_same_workspace_is_refused(ws, script):
    with (
        FileLock(ws.root / ".git" / "agentx-run.lock").hold(),
        pytest.raises(WorkspaceBusy, match="Another run is active in this workspace"),
    ):
        run_task(ws, "Go.", script("Done."))


def test_what_the_user_says_while_it_runs_reaches_the_model(ws, chat_server):
    class Says(Observer):
        def tool_ended(self, call, result):
            ws.say("Please use capital letters.")

    chat_server.will_call(("a", "list_directory", "{}"))
    chat_server.will_say("OK.")
    run_task(
        ws, "Look.", LiteLLMClient("openai/tiny", api_key="k", api_base=chat_server.base), observer=Says()
    )
    *_, result, said = chat_server.requests[1]["messages"]
    assert result["role"] == "tool"
    assert said == {"role": "user", "content": "Please use capital letters."}


@pytest.fixture
def careful(ws):
    """A workspace in which writing needs a person's word."""
    ws.configure("tools.approve", '["write_file"]')
    from agentx import Workspace

    with Workspace.open(ws.root) as careful:
        yield careful


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_waits_for_a_persons_word_and_the_next_run_goes_on(careful, script, approved):
    told = "Wrote" if approved else "refused"
    turns = [WRITE, {"expect": [told], "answer": "Done."}]
    waiting = run_task(careful, "Write hello.", script(*turns))
    assert waiting.status == "WAITING"
    assert f"agentx approve {waiting.waiting.call_id}" in waiting.reason
    assert run_task(careful, "", script(*turns)).status == "WAITING"
    careful.approve(waiting.waiting.call_id, approved=approved)
    assert run_task(careful, "", script(*turns)).answer == "Done."
    assert (careful.root / "artifacts" / "a.txt").exists() == approved
    assert len(results(careful)) == 1


def test_a_long_file_that_waited_is_written_whole(careful, script):
    content = "line\n" * 5_000
    turns = [("write_file", {"path": "a.txt", "content": content}), "Done."]
    waiting = run_task(careful, "Write it.", script(*turns)).waiting
    careful.approve(waiting.call_id, approved=True)
    assert run_task(careful, "", script(*turns)).answer == "Done."
    assert (careful.root / "artifacts" / "a.txt").read_text() == content


@pytest.mark.parametrize("approved", [True, False])
def test_a_person_who_is_there_is_asked(careful, script, approved):
    asked = []
    result = run_task(
        careful,
        "Write hello.",
        script(WRITE, "Done."),
        ask_person=lambda waiting: asked.append(waiting.tool) or Approval(approved=approved),
    )
    assert result.answer == "Done."
    assert asked == ["write_file"]
    assert [data.status for data in results(careful)] == ["SUCCEEDED" if approved else "DENIED"]


def test_a_persons_reason_reaches_the_record_the_agent_and_memory(careful, script):
    why = "We don't write text files here."
    turns = [WRITE, {"expect": [f"A person refused write_file: {why}"], "answer": "I see."}]
    result = run_task(
        careful, "Write hello.", script(*turns), ask_person=lambda _: Approval(approved=False, reason=why)
    )
    assert result.answer == "I see."
    (decided,) = [event.data for event in careful.events() if isinstance(event.data, ApprovalDecided)]
    assert (decided.approved, decided.reason) == (False, why)
    (item,) = careful.memory("rejection")
    assert item.detail.idea == "text files"


def test_a_real_client_and_a_real_server_do_a_task_end_to_end(ws, chat_server):
    chat_server.will_call(
        ("same", "write_file", '{"path": "a.txt", "content": "hello"}'),
        ("same", "read_file", '{"path": "a.txt"}'),
        thought="I write and read.",
    )
    chat_server.will_call(("same", "list_directory", "{}"))
    chat_server.will_say("All done.")
    model = LiteLLMClient("openai/tiny", api_key="k", api_base=chat_server.base)
    result = run_task(ws, "Write hello.", model)
    assert (result.status, result.answer) == ("COMPLETED", "All done. ")
    assert result.usage.prompt_tokens == 33
    assert [data.status for data in results(ws)] == ["SUCCEEDED"] * 3
    last = chat_server.requests[2]["messages"]
    assert [message["role"] for message in last] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    ids = [message["tool_call_id"] for message in last if message["role"] == "tool"]
    assert len(set(ids)) == 3
    assert {tool["function"]["name"] for tool in chat_server.requests[0]["tools"]} >= {
        "write_file",
        "search_memory",
    }


PROGRAM = """
import sys
from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.agents.run_types import Observer
from agentx.synthesis.model.litellm_client import LiteLLMClient

class Tells(Observer):
    def text_arrived(self, text):
        print(text, flush=True)

with Workspace.open(sys.argv[1]) as ws:
    print(run_task(ws, "Go.", LiteLLMClient("openai/x", api_key="k", api_base=sys.argv[2]), observer=Tells()).status)
"""


def test_ctrl_c_in_the_middle_of_an_answer_ends_the_process_and_keeps_the_history(ws, chat_server):
    chat_server.will_hang({"content": "Well"})
    command = [sys.executable, "-c", PROGRAM, str(ws.root), chat_server.base]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "Well\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("INTERRUPTED\n", "", 0)
    assert ws.state.last_run.status == "INTERRUPTED"


def test_an_interrupt_after_the_end_of_a_run_does_not_end_it_again(ws, script, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ws.gates, "after_run", interrupted)
    result = run_task(ws, "Say something.", script("Something."))
    assert result.status == "COMPLETED"
    assert [event.data.status for event in history(ws, RunEnded)] == ["COMPLETED"]
