"""Pydantic AI, with its own agents and models that play functions."""

import asyncio

import pytest

from agentx.orchestrators.pydantic_ai import WorkspaceHistory, message_entries

pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel


class Played:
    """Plays one prepared answer for each request, and keeps what it was given."""

    def __init__(self, *turns):
        self.turns, self.given = list(turns), []
        self.model = FunctionModel(self.answer)

    def answer(self, messages, info):
        self.given.append((messages, info))
        turn = self.turns.pop(0)
        return ModelResponse(parts=[TextPart(turn)] if isinstance(turn, str) else list(turn))


@pytest.fixture
def history(ws):
    return WorkspaceHistory(ws, "main", agent="helper")


def turn(agent, history, message):
    async def go():
        done = await agent.run(message, message_history=await history.load())
        await history.save(done.all_messages())
        return done.output

    return asyncio.run(go())


def told(ws):
    wanted = {"UserMessageSent", "AgentMessageSent", "ToolCallRequested", "ToolCallExecuted"}
    return [event for event in ws.events() if event.type in wanted]


def test_history_comes_back_as_it_was_and_turns_go_on(ws, history):
    played = Played("Understood.", "Again.")
    agent = Agent(played.model)
    turn(agent, history, "Never use tabs.")
    turn(agent, WorkspaceHistory(ws, "main", agent="helper"), "Go on.")
    messages = played.given[1][0]
    assert [message.parts[0].content for message in messages] == ["Never use tabs.", "Understood.", "Go on."]
    assert [(one.type, one.actor) for one in told(ws)] == [
        ("UserMessageSent", "user"),
        ("AgentMessageSent", "agent:helper"),
        ("UserMessageSent", "user"),
        ("AgentMessageSent", "agent:helper"),
    ]
    assert [item.text for item in ws.memory("constraint")] == ["Never use tabs."]


def test_loaded_messages_are_equal_to_those_that_were_saved(history):
    parts = [ThinkingPart("Hm."), TextPart("Yes.")]
    agent = Agent(Played(parts).model)

    async def both():
        done = await agent.run(["Look at this.", BinaryContent(b"\x89PNG", media_type="image/png")])
        await history.save(done.all_messages())
        return done.all_messages(), await history.load()

    saved, loaded = asyncio.run(both())
    dumped = ModelMessagesTypeAdapter.dump_python(saved, mode="json")
    assert ModelMessagesTypeAdapter.dump_python(loaded, mode="json") == [
        {**one, **({"instructions": None} if one["kind"] == "request" else {})} for one in dumped
    ]


def test_saving_twice_records_nothing_twice(ws, history):
    turn(Agent(Played("Yes.").model), history, "Hello.")
    before = ws.state.seq
    asyncio.run(history.save(asyncio.run(history.load())))
    assert ws.state.seq == before


def test_a_history_processor_makes_the_message_durable_before_the_model_is_asked(ws, history):
    seen = []

    def answer(messages, info):
        seen.append([item.text for item in ws.memory("constraint")])
        return ModelResponse(parts=[TextPart("Yes.")])

    agent = Agent(FunctionModel(answer), capabilities=[ProcessHistory(history.keep)])
    turn(agent, history, "Never use tabs.")
    assert seen == [["Never use tabs."]]
    assert [one.type for one in told(ws)] == ["UserMessageSent", "AgentMessageSent"]


def test_the_tools_of_the_workspace_go_through_the_gate_and_are_recorded_once(ws, history):
    ws.say("Never create a requirements.txt file.")
    played = Played(
        [ToolCallPart("write_file", {"path": "requirements.txt", "content": "x"}, tool_call_id="c1")],
        [ToolCallPart("write_file", {"path": "a.md", "content": "# A\n"}, tool_call_id="c2")],
        "Done.",
    )
    agent = Agent(played.model, toolsets=[history.toolset()])
    assert turn(agent, history, "Write it.") == "Done."
    denied = played.given[1][0][-1].parts[0]
    assert (denied.outcome, "requirements.txt" in denied.content) == ("failed", True)
    assert (ws.artifacts / "a.md").read_text() == "# A\n"
    calls = [(one.data.status, one.actor, one.run) for one in told(ws) if one.type == "ToolCallExecuted"]
    assert calls == [("DENIED", "agent:helper", "main"), ("SUCCEEDED", "agent:helper", "main")]


def test_the_toolset_offers_what_is_asked_for_with_the_schemas_of_the_workspace(ws, history):
    model = TestModel(call_tools=[])
    turn(Agent(model, toolsets=[history.toolset(["read_file"])]), history, "Hello.")
    (tool,) = model.last_model_request_parameters.function_tools
    (schema,) = [one for one in ws.tools.schemas() if one.name == "read_file"]
    assert (tool.name, tool.parameters_json_schema) == ("read_file", schema.parameters)


def test_foreign_tools_are_recorded_with_their_result(ws, history):
    played = Played([ToolCallPart("look", {"at": "x"}, tool_call_id="c1")], "Done.")
    agent = Agent(played.model)

    @agent.tool_plain
    def look(at: str) -> str:
        return f"saw {at}"

    turn(agent, history, "Look.")
    (call,) = [one for one in told(ws) if one.type == "ToolCallExecuted"]
    assert (call.data.tool, call.data.arguments, call.data.output.text) == ("look", {"at": "x"}, "saw x")


def test_instructions_are_the_context_and_are_not_kept_with_each_message(ws, history):
    ws.say("Never use tabs.")
    played = Played("Yes.")
    turn(Agent(played.model, instructions=history.instructions()), history, "Write code.")
    assert "Never use tabs." in played.given[0][1].instructions
    assert all(item.get("instructions") is None for item in history.conversation.items())


def test_an_answer_that_breaks_a_rule_is_sent_back_with_the_users_sentence(ws, history):
    ws.say("Never mention Redis in your answers.")
    played = Played("Use Redis.", "Use files.")
    agent = Agent(played.model)
    agent.output_validator(history.check)
    assert turn(agent, history, "What now?") == "Use files."
    assert "Never mention Redis" in str(played.given[1][0][-1])
    assert [ws.read_body(one.data.body) for one in told(ws) if one.type == "UserMessageSent"] == [
        "Never mention Redis in your answers.",
        "What now?",
    ]


def test_what_one_agent_prompts_another_is_not_the_users_word(ws):
    turn(Agent(Played("Yes.").model), WorkspaceHistory(ws, "inner", user_speaks=False), "Always use tabs.")
    assert [one.type for one in told(ws)] == ["AgentMessageSent"]


def test_what_the_framework_asks_is_nobodys_word():
    feedback = {"part_kind": "retry-prompt", "content": "Try again.", "tool_name": None}
    system = {"part_kind": "system-prompt", "content": "Always use tabs."}
    assert list(message_entries({"kind": "request", "parts": [feedback, system]})) == []
