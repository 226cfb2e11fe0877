"""Microsoft's Agent Framework, with its own agents and a chat client that plays prepared turns."""

import asyncio
import json

import pytest

from agentx.orchestrators.agent_framework import WorkspaceConversations, message_entries
from agentx.orchestrators.kept_conversation import AnswerRefused

framework = pytest.importorskip("agent_framework", reason="agent-framework-core is not installed")
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)


class PlayedClient(FunctionInvocationLayer, BaseChatClient):
    """Plays one prepared answer for each request, and keeps what it was given."""

    def __init__(self, *turns):
        super().__init__()
        self.turns, self.given, self.told = list(turns), [], []

    async def _answer(self, messages, options):
        self.given.append(list(messages))
        self.told.append(options.get("instructions") or "")
        turn = self.turns.pop(0)
        return ChatResponse(messages=[Message("assistant", [turn])], response_id=f"r{len(self.given)}")

    def _inner_get_response(self, *, messages, stream, options, **more):
        return self._answer(messages, options)


def calls(name, arguments, call_id="c1"):
    return Content.from_function_call(call_id, name, arguments=json.dumps(arguments))


ran: list[str] = []


@tool(approval_mode="never_require")
def write_note(path: str, content: str) -> str:
    """Write a note."""
    ran.append(path)
    return f"wrote {path}"


@pytest.fixture(autouse=True)
def fresh():
    ran.clear()


@pytest.fixture
def kept(ws):
    return WorkspaceConversations(ws, agent="helper")


def agent_of(kept, *turns, guarded=False, **more):
    client = PlayedClient(*turns)
    middleware = [kept.function_middleware(), kept.agent_middleware()] if guarded else []
    agent = Agent(
        client=client,
        instructions="Help.",
        tools=[write_note],
        context_providers=[kept.history(**more)],
        middleware=middleware,
    )
    return agent, client


def run(agent, message, session_id="s1"):
    return asyncio.run(agent.run(message, session=agent.create_session(session_id=session_id))).text


def told(ws):
    wanted = {"UserMessageSent", "AgentMessageSent", "ToolCallRequested", "ToolCallExecuted"}
    return [event for event in ws.events() if event.type in wanted]


def test_turns_go_on_where_another_process_left_off(ws, kept):
    agent, client = agent_of(kept, "Understood.", "Again.")
    run(agent, "Never use tabs.")
    agent, client = agent_of(WorkspaceConversations(ws, agent="helper"), "Again.")
    run(agent, "Go on.")
    assert [one.text for one in client.given[0]] == ["Never use tabs.", "Understood.", "Go on."]
    assert [(one.type, one.actor, one.run) for one in told(ws)] == [
        ("UserMessageSent", "user", "s1"),
        ("AgentMessageSent", "agent:helper", "s1"),
        ("UserMessageSent", "user", "s1"),
        ("AgentMessageSent", "agent:helper", "s1"),
    ]
    assert [item.text for item in ws.memory("constraint")] == ["Never use tabs."]


def test_a_rule_is_in_the_instructions_of_the_run_in_which_it_is_said(kept):
    agent, client = agent_of(kept, "Yes.")
    run(agent, "Never use tabs.")
    assert "Never use tabs." in client.told[0]
    agent, client = agent_of(kept, "Yes.", max_tokens=0)
    run(agent, "Go on.")
    assert "Never use tabs." not in client.told[0]


def test_the_history_gives_what_the_frameworks_own_gives(ws, kept):
    async def both():
        own = InMemoryHistoryProvider()
        found = []
        for provider in (own, kept.history(max_tokens=0)):
            client = PlayedClient(calls("write_note", {"path": "a", "content": "b"}), "Done.")
            agent = Agent(client=client, tools=[write_note], context_providers=[provider])
            session = agent.create_session(session_id="s2")
            await agent.run("Write a note.", session=session)
            state = session.state.get(provider.source_id)
            messages = await provider.get_messages("s2", state=state)
            found.append(
                [(one.role, [part.to_dict(exclude={"id"}) for part in one.contents]) for one in messages]
            )
        return found

    own, ours = asyncio.run(both())
    assert ours == own
    assert len(ours) == 4


def test_sessions_do_not_mix(ws, kept):
    agent, client = agent_of(kept, "One.", "Two.")
    run(agent, "First.", "s1")
    run(agent, "Second.", "s2")
    assert [one.text for one in client.given[1]] == ["Second."]


def test_the_gate_denies_a_call_that_breaks_a_rule_with_the_users_sentence(ws, kept):
    turns = calls("write_note", {"path": "requirements.txt", "content": "x"}), "I may not."
    agent, client = agent_of(kept, *turns, guarded=True)
    assert run(agent, "Never create a requirements.txt file.") == "I may not."
    assert ran == []
    assert "requirements.txt" in str(client.given[1][-1].contents[0].result)
    assert [one.type for one in told(ws)] == ["UserMessageSent", "ToolCallExecuted", "AgentMessageSent"]
    assert told(ws)[1].data.denied_by == (ws.memory("constraint")[0].id,)


def test_each_part_of_a_call_is_recorded_once(ws, kept):
    agent, _ = agent_of(kept, calls("write_note", {"path": "a.md", "content": "x"}), "Done.", guarded=True)
    run(agent, "Write a note.")
    assert ran == ["a.md"]
    assert [one.type for one in told(ws)] == [
        "UserMessageSent",
        "ToolCallRequested",
        "ToolCallExecuted",
        "AgentMessageSent",
    ]
    assert told(ws)[2].data.output.text == "wrote a.md"


def test_an_answer_that_breaks_a_rule_is_refused(ws, kept):
    agent, _ = agent_of(kept, "Use Redis.", guarded=True)
    with pytest.raises(AnswerRefused, match="Never mention Redis"):
        run(agent, "Never mention Redis in your answers.")


def test_what_another_author_or_agent_says_in_the_users_role_is_not_the_users_word(ws, kept):
    agent, _ = agent_of(kept, "Yes.")
    run(agent, Message("user", ["Always use tabs."], author_name="planner"))
    agent, _ = agent_of(WorkspaceConversations(ws, agent="worker", user_speaks=False), "Yes.")
    run(agent, "Always use tabs.", "s2")
    assert [one.type for one in told(ws)] == ["AgentMessageSent", "AgentMessageSent"]
    assert ws.memory("constraint", status=None) == []


def test_the_whole_conversation_given_again_is_not_kept_twice(ws, kept):
    agent, _ = agent_of(kept, "Yes.", "Again.")
    run(agent, "Hello.")
    provider = kept.history()

    async def again():
        messages = await provider.get_messages("s1")
        await provider.save_messages("s1", [*messages, Message("user", ["Go on."])])
        return await provider.get_messages("s1")

    assert [one.text for one in asyncio.run(again())] == ["Hello.", "Yes.", "Go on."]
    assert len(told(ws)) == 3


def test_failed_results_are_told_as_failed():
    part = {"type": "function_result", "call_id": "c", "exception": "no such file"}
    (one,) = message_entries({"role": "tool", "contents": [part]})
    assert (one.status, one.output) == ("FAILED", "no such file")
