import msgspec
import pytest

from agentx.agents.conversation import ANSWER, UNKNOWN_OUTCOME, Conversation
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    Body,
    ContextProvided,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
)
from agentx.synthesis.model.port import ChatMessage, ToolCall

STARTED = RunStarted(task=Body("go"), agent="main", model="m")
HELLO = UserMessageSent(body=Body("Fix the test."))
STEP = ContextProvided()


def did(call_id, tool="read_file", output="text", **arguments):
    return ToolCallExecuted(
        call_id=call_id, tool=tool, status="SUCCEEDED", arguments=arguments, output=Body(output)
    )


@pytest.fixture
def replay():
    """Fold payloads of one run, from seq 1; a tuple gives run and cause of its own."""

    def replay(*payloads, start=1):
        conversation = Conversation(start, lambda body: body.text)
        for seq, payload in enumerate(payloads, start=1):
            data, run, cause = payload if isinstance(payload, tuple) else (payload, "r-1", start)
            actor = "user" if isinstance(data, UserMessageSent) else "agent:main"
            conversation.apply(
                Event(
                    seq=seq,
                    at="",
                    type=type(data).__name__,
                    v=1,
                    actor=actor,
                    data=data,
                    run=run,
                    cause=cause,
                )
            )
        return conversation

    return replay


def test_a_step_is_one_message_of_the_model_and_the_results_of_its_calls(replay):
    thought = AgentThoughtProcess(body=Body("I look."))
    conversation = replay(HELLO, STARTED, STEP, thought, did("a", path="a.py"), did("b", path="b.py"), STEP)
    assert conversation.messages == [
        ChatMessage("user", "Fix the test."),
        ChatMessage(
            "assistant",
            "I look.",
            (ToolCall("a", "read_file", '{"path":"a.py"}'), ToolCall("b", "read_file", '{"path":"b.py"}')),
        ),
        ChatMessage("tool", "text", tool_call_id="a"),
        ChatMessage("tool", "text", tool_call_id="b"),
    ]


def test_calls_of_two_steps_are_two_messages(replay):
    roles = [message.role for message in replay(HELLO, STARTED, STEP, did("a"), STEP, did("b")).messages]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


def test_a_call_without_a_result_is_told_as_unknown(replay):
    conversation = replay(HELLO, STARTED, STEP, ToolCallRequested(call_id="a", tool="run_command"))
    assert conversation.messages[-1] == ChatMessage("tool", UNKNOWN_OUTCOME, tool_call_id="a")


def test_a_result_that_comes_in_a_later_run_belongs_to_its_call(replay):
    requested = ToolCallRequested(call_id="a", tool="run_command", awaits_approval=True)
    waiting = RunEnded(status="WAITING")
    conversation = replay(HELLO, STARTED, STEP, requested, waiting, (STARTED, "r-2", 1), (did("a"), "r-2", 0))
    assert conversation.messages[-1] == ChatMessage("tool", "text", tool_call_id="a")
    assert conversation.belongs("r-2")


def test_what_the_user_says_while_a_call_waits_stands_behind_its_result(replay):
    requested = ToolCallRequested(call_id="a", tool="run_command", awaits_approval=True)
    more = UserMessageSent(body=Body("And be quick."))
    conversation = replay(HELLO, STARTED, STEP, requested, more, did("a"), STEP)
    assert [message.role for message in conversation.messages] == ["user", "assistant", "tool", "user"]
    assert conversation.message == "And be quick."


def test_words_whose_calls_were_lost_are_left_out(replay):
    conversation = replay(HELLO, STARTED, STEP, AgentThoughtProcess(body=Body("I look.")), STEP)
    assert conversation.messages == [ChatMessage("user", "Fix the test.")]


def test_an_answer_that_was_sent_back_stands_there_with_the_objection(replay):
    conversation = replay(HELLO, STARTED, STEP, did("x", ANSWER, "Denied.", text="Elon Musk"), STEP)
    assert conversation.messages[1:] == [
        ChatMessage("assistant", "Elon Musk"),
        ChatMessage("user", "Denied."),
    ]


def test_other_runs_and_what_was_before_are_no_part_of_it(replay):
    answer = AgentMessageSent(body=Body("Done."), final=True)
    conversation = replay(
        HELLO, (STARTED, "r-0", 1), (answer, "r-0", 0), HELLO, STARTED, (did("z"), "", 0), start=4
    )
    assert conversation.messages == [ChatMessage("user", "Fix the test.")]


def test_only_a_user_is_heard(replay):
    conversation = Conversation(1, lambda body: body.text)
    conversation.apply(Event(seq=1, at="", type="UserMessageSent", v=1, actor="import:chat", data=HELLO))
    assert conversation.messages == []


def test_a_long_conversation_loses_its_oldest_results_first(replay):
    steps = [
        step
        for name in "abcd"
        for step in (STEP, did(name, output=name * 5_000, path="x", content="y" * 900))
    ]
    conversation = replay(HELLO, STARTED, *steps, STEP)
    before = conversation.messages
    conversation.shrink(30_000)
    assert conversation.messages == before
    conversation.shrink(20_000)
    sizes = [len(message.content) for message in conversation.messages if message.role == "tool"]
    assert sizes[0] < 500
    assert sizes[-1] == 5_000
    assert sum(sizes) < 20_000
    first = conversation.messages[1].tool_calls[0]
    assert len(first.arguments) < 600
    assert msgspec.json.decode(first.arguments)["path"] == "x"


def test_arguments_that_are_no_json_are_shortened_as_well(replay):
    conversation = replay(HELLO, STARTED, STEP)
    conversation.call(ToolCall("a", "write_file", '{"path": "' + "x" * 5_000))
    conversation.result("a", "not JSON")
    conversation.begin_step()
    conversation.shrink(100)
    assert conversation.messages[1].tool_calls[0].arguments == "{}"
