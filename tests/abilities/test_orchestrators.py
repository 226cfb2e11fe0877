"""Frameworks for agents that keep their conversations and rules in a workspace, as the docs show."""

import asyncio

import pytest

from agentx import Workspace

RULE = "Never create a setup.cfg file."


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("AGENTX_CACHE_DIR", str(tmp_path / "no-models"))
    with Workspace.create(tmp_path / "task") as opened:
        yield opened


def rules(ws):
    return [item.text for item in ws.memory("constraint")]


def test_a_conversation_without_a_framework_is_kept_and_held_to_the_rules(ws):
    """``KeptConversation`` keeps messages, gives the context, asks the gate and checks answers."""
    from agentx.orchestrators.kept_conversation import KeptConversation

    talk = KeptConversation(ws, "thread", agent="bot")
    talk.append([{"role": "user", "content": f"{RULE} And never mention Redis in your answers."}])
    assert RULE in talk.context(max_tokens=1_000)
    assert talk.gate("write_file", {"path": "setup.cfg", "content": "x"}, "call-1")
    assert not talk.gate("look", {"at": "here"}, "call-2")
    talk.did("look", {"at": "here"}, "call-2", "found nothing")
    assert talk.check("Use Redis.")
    assert not talk.check("Use files.")
    talk.append([{"role": "assistant", "content": "Use files."}])
    assert [item["content"] for item in talk.items()][-1] == "Use files."
    assert [event.actor for event in ws.events() if event.type == "AgentMessageSent"] == ["agent:bot"]


def test_the_openai_agents_sdk_keeps_its_session(ws):
    """``WorkspaceSession`` keeps items exactly, pops and clears them, and rules come from the user's."""
    pytest.importorskip("agents")
    from agentx.orchestrators.openai_agents import WorkspaceSession

    async def work():
        session = WorkspaceSession("thread", ws, agent="helper")
        items = [{"role": "user", "content": RULE}, {"role": "assistant", "content": "Understood."}]
        await session.add_items(items)
        again = WorkspaceSession("thread", ws, agent="helper")
        assert await again.get_items() == items
        assert await again.pop_item() == items[-1]
        await again.clear_session()
        assert await again.get_items() == []

    asyncio.run(work())
    assert rules(ws) == [RULE]


def test_pydantic_ai_keeps_its_history(ws):
    """``WorkspaceHistory`` loads what it saved, and its tools are the workspace's."""
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from agentx.orchestrators.pydantic_ai import WorkspaceHistory

    history = WorkspaceHistory(ws, "thread", agent="writer")
    agent = Agent(TestModel(call_tools=["list_directory"]), toolsets=[history.toolset(["list_directory"])])

    async def turn():
        done = await agent.run(RULE, message_history=await history.load())
        await history.save(done.all_messages())
        return await history.load()

    assert len(asyncio.run(turn())) == 4
    assert rules(ws) == [RULE]
    assert "list_directory" in [event.data.tool for event in ws.events() if event.type == "ToolCallExecuted"]


def test_the_agent_framework_keeps_its_conversations(ws):
    """``WorkspaceConversations`` keeps the messages of each session apart."""
    pytest.importorskip("agent_framework")
    from agent_framework import Message

    from agentx.orchestrators.agent_framework import WorkspaceConversations

    kept = WorkspaceConversations(ws, agent="planner")

    async def work():
        history = kept.history()
        await history.save_messages("one", [Message("user", [RULE])])
        return await history.get_messages("one"), await history.get_messages("two")

    one, two = asyncio.run(work())
    assert [message.text for message in one] == [RULE]
    assert two == []


def test_the_proxy_of_litellm_takes_a_callback(ws):
    """``proxy_callback`` gives LiteLLM's proxy a handler for a workspace."""
    pytest.importorskip("litellm")
    from agentx.orchestrators.litellm_proxy import proxy_callback

    assert proxy_callback(str(ws.root), agent="helper") is not None


@pytest.fixture
def graph(ws):
    """A graph of LangGraph whose tool writes a file, as in the docs."""
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    from agentx.orchestrators.langgraph import AgentXSaver, AgentXStore, gate

    def write_file(path: str, content: str) -> str:
        """Write a file."""
        return f"wrote {path}"

    def agent(state: MessagesState):
        last = state["messages"][-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage("Done.")]}
        call = {"name": "write_file", "args": {"path": "setup.cfg", "content": "x"}, "id": "c1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([write_file], wrap_tool_call=gate(ws)))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", lambda s: "tools" if s["messages"][-1].tool_calls else END)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=AgentXSaver(ws), store=AgentXStore(ws))


def test_a_graph_of_langgraph_keeps_its_checkpoints_and_the_rules(ws, graph):
    """A graph's messages become facts, its calls pass the gate, and its state is found again."""
    from agentx.orchestrators.langgraph import AgentXSaver, GraphFacts

    config = {"configurable": {"thread_id": "anna"}, "callbacks": [GraphFacts(ws)]}
    done = graph.invoke({"messages": [("user", RULE)]}, config)
    assert rules(ws) == [RULE]
    assert done["messages"][2].status == "error"
    saved = AgentXSaver(ws).get_tuple({"configurable": {"thread_id": "anna"}})
    assert [message.text for message in saved.checkpoint["channel_values"]["messages"]][-1] == "Done."


def test_items_of_langgraphs_store_are_kept(ws):
    """``AgentXStore`` puts, gets, lists and deletes items as LangGraph's own store does."""
    pytest.importorskip("langgraph")
    from agentx.orchestrators.langgraph import AgentXStore

    store = AgentXStore(ws)
    store.put(("users", "anna"), "taste", {"colour": "blue"})
    assert AgentXStore(ws).get(("users", "anna"), "taste").value == {"colour": "blue"}
    assert [item.key for item in store.search(("users",))] == ["taste"]
    store.delete(("users", "anna"), "taste")
    assert store.get(("users", "anna"), "taste") is None


@pytest.mark.xfail(strict=True, reason="the store refuses text that is a subclass of str, as LangChain's is")
def test_the_store_takes_the_text_of_a_message(ws):
    """``AgentXStore.put`` takes what ``InMemoryStore`` takes, such as a message's ``text``."""
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage

    from agentx.orchestrators.langgraph import AgentXStore

    store = AgentXStore(ws)
    store.put(("a",), "b", {"text": AIMessage("hi").text})
    assert store.get(("a",), "b").value == {"text": "hi"}
