"""The OpenAI Agents SDK, with its own runner and a model that plays prepared turns."""

import asyncio

import pytest

from agentx.orchestrators.kept_conversation import KeptConversation
from agentx.orchestrators.openai_agents import HOST, WorkspaceSession, guarded, item_entries

agents = pytest.importorskip("agents", reason="openai-agents is not installed")
from openai.types.responses import ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from tests.agentx.orchestrators.played import PlayedModel, calls, says


@agents.function_tool
def write_note(path: str, content: str) -> str:
    """Write a note."""
    ran.append(path)
    return f"wrote {path}"


ran: list[str] = []


@pytest.fixture(autouse=True)
def offline():
    agents.set_tracing_disabled(True)
    ran.clear()


@pytest.fixture
def session(ws):
    return WorkspaceSession("main", ws, agent="helper")


def run(agent, message, session):
    return asyncio.run(agents.Runner.run(agent, message, session=session)).final_output


def agent_of(*turns, **more):
    model = PlayedModel(*turns)
    return agents.Agent(name="helper", instructions="Help.", model=model, tools=[write_note], **more), model


def told(ws):
    wanted = {"UserMessageSent", "AgentMessageSent", "ToolCallRequested", "ToolCallExecuted"}
    return [event for event in ws.events() if event.type in wanted]


def test_it_is_a_session_of_the_sdk(session):
    assert isinstance(session, agents.Session)


def test_turns_go_on_where_another_process_left_off(ws, session):
    agent, model = agent_of(says("Understood."), says("Again."))
    run(agent, "Never use tabs.", session)
    run(agent, "Go on.", WorkspaceSession("main", ws, agent="helper"))
    texts = [item["content"] for item in model.given[1]]
    assert (texts[0], texts[2]) == ("Never use tabs.", "Go on.")
    assert [(one.type, one.actor) for one in told(ws)] == [
        ("UserMessageSent", "user"),
        ("AgentMessageSent", "agent:helper"),
        ("UserMessageSent", "user"),
        ("AgentMessageSent", "agent:helper"),
    ]
    assert [item.text for item in ws.memory("constraint")] == ["Never use tabs."]


def test_the_session_gives_what_the_sdks_own_gives(ws, session):
    own = agents.SQLiteSession("main")
    for one in (own, session):
        agent, _ = agent_of(calls("write_note", {"path": "a", "content": "b"}), says("Done."))
        run(agent, "Write a note.", one)
    assert asyncio.run(session.get_items()) == asyncio.run(own.get_items())
    assert asyncio.run(session.get_items(2)) == asyncio.run(own.get_items(2))
    assert asyncio.run(session.pop_item()) == asyncio.run(own.pop_item())
    assert asyncio.run(session.get_items()) == asyncio.run(own.get_items())
    asyncio.run(session.clear_session())
    assert asyncio.run(session.get_items()) == []


def test_a_guarded_agent_is_denied_a_call_that_breaks_a_rule_and_told_the_users_sentence(ws, session):
    agent, model = agent_of(
        calls("write_note", {"path": "requirements.txt", "content": "x"}), says("I may not."), says("Yes.")
    )
    agent = guarded(agent, session)
    assert run(agent, "Never create a requirements.txt file.", session) == "I may not."
    assert ran == []
    (output,) = [item["output"] for item in model.given[1] if item.get("type") == "function_call_output"]
    assert "requirements.txt" in output
    assert [one.type for one in told(ws)] == ["UserMessageSent", "ToolCallExecuted", "AgentMessageSent"]
    denied = told(ws)[1].data
    assert (denied.status, denied.denied_by) == ("DENIED", (ws.memory("constraint")[0].id,))


def test_a_guarded_agent_records_each_part_of_a_call_once(ws, session):
    agent, _ = agent_of(calls("write_note", {"path": "a.md", "content": "x"}), says("Done."))
    run(guarded(agent, session), "Write a note.", session)
    assert ran == ["a.md"]
    assert [one.type for one in told(ws)] == [
        "UserMessageSent",
        "ToolCallRequested",
        "ToolCallExecuted",
        "AgentMessageSent",
    ]
    assert told(ws)[2].data.output.text == "wrote a.md"


def test_the_input_guardrail_captures_a_rule_before_the_model_runs(ws, session):
    agent, model = agent_of(says("Yes."))
    run(guarded(agent, session), "Never use tabs.", session)
    assert model.told[0].startswith("Help.")
    assert "Never use tabs." in model.told[0]


def test_the_input_guardrail_works_without_a_session_of_the_run(ws, session):
    agent, _ = agent_of(says("Yes."), says("Yes."))
    agent = guarded(agent, session)
    first = asyncio.run(agents.Runner.run(agent, "Never use tabs."))
    asyncio.run(agents.Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "Go on."}]))
    assert [ws.read_body(one.data.body) for one in told(ws)] == ["Never use tabs.", "Go on."]


def test_an_answer_that_breaks_a_rule_trips_the_output_guardrail(ws, session):
    agent, _ = agent_of(says("Use Redis."))
    agent = guarded(agent, session)
    with pytest.raises(agents.OutputGuardrailTripwireTriggered) as tripped:
        run(agent, "Never mention Redis in your answers.", session)
    (sentence,) = tripped.value.guardrail_result.output.output_info
    assert "Never mention Redis" in sentence


def test_an_agent_that_is_another_agents_tool_says_nothing_in_the_users_name(ws, session):
    inner = WorkspaceSession("inner", ws, agent="worker", user_speaks=False)
    worker, _ = agent_of(says("Worked."))
    run(guarded(worker, inner), "Always use tabs from now on.", inner)
    assert [one.type for one in told(ws)] == ["AgentMessageSent"]
    assert ws.memory("constraint", status=None) == []


def test_reasoning_hosted_calls_and_unknown_items_are_understood():
    thought = ResponseReasoningItem(
        id="r", summary=[Summary(text="Hm.", type="summary_text")], type="reasoning"
    )
    (one,) = item_entries(thought.model_dump(exclude_none=True))
    assert one.text == "Hm."
    asked, got = item_entries(
        {"type": "mcp_call", "id": "x", "name": "look", "arguments": "{}", "output": "y"}
    )
    assert (asked.tool, got.output) == ("look", "y")
    (shell,) = item_entries({"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}})
    assert (shell.tool, shell.arguments) == ("shell", {"commands": ["ls"]})
    (odd,) = item_entries({"type": "function_call", "call_id": "o", "name": "n", "arguments": "not JSON"})
    assert odd.arguments == {"arguments": "not JSON"}
    assert list(item_entries({"type": "image_generation", "id": "i"})) == []


def test_parallel_turns_of_one_session_keep_every_item(ws, session):
    async def all_at_once():
        await asyncio.gather(
            *(session.add_items([{"role": "user", "content": f"number {n}"}]) for n in range(8))
        )

    asyncio.run(all_at_once())
    kept = KeptConversation(ws, "main", host=HOST, read=item_entries).items()
    assert sorted(item["content"] for item in kept) == [f"number {n}" for n in range(8)]
