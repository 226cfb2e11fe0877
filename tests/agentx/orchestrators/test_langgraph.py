"""Graphs of LangGraph on a workspace: checkpoints that outlive everything, each content kept once."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip(
    "langgraph", reason="langgraph is not installed: pip install 'agentx-workspace[langgraph]'"
)

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from agentx import Workspace
from agentx.orchestrators import langgraph
from agentx.orchestrators.langgraph import AgentXSaver, AgentXStore, GraphFacts, SerializerRefused, gate
from agentx.orchestrators.threads import CheckpointUnreadable
from agentx.storage.errors import UsageError

CONFIG = {"configurable": {"thread_id": "t-1"}}
LONG = "It depends on what the order says of the customer's address. " * 20


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task") as workspace:
        yield workspace


def chat(saver, **more):
    """Return a graph that answers with a long text, and adds what it was asked."""

    def agent(state: MessagesState):
        asked = state["messages"][-1].content
        return {"messages": [AIMessage(f"{asked}: {LONG}", id=f"answer-{len(state['messages'])}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    return graph.compile(checkpointer=saver, **more)


def ask(graph, text, config=CONFIG):
    return graph.invoke({"messages": [HumanMessage(text, id=text)]}, config, durability="sync")


def said(graph, config=CONFIG):
    return [message.content for message in graph.get_state(config).values.get("messages", [])]


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_a_thread_goes_on_after_the_workspace_was_closed_and_opened(ws):
    graph = chat(AgentXSaver(ws))
    ask(graph, "one")
    before = ask(graph, "two")["messages"]
    ws.close()
    with Workspace.open(ws.root) as again:
        graph = chat(AgentXSaver(again))
        assert graph.get_state(CONFIG).values["messages"] == before
        assert len(ask(graph, "three")["messages"]) == 6


def test_a_clone_without_caches_holds_every_checkpoint(ws, tmp_path):
    graph = chat(AgentXSaver(ws))
    ask(graph, "one")
    states = [(one.config, one.values) for one in graph.get_state_history(CONFIG)]
    ws.flush()
    subprocess.run(["git", "clone", "-q", ws.root, tmp_path / "clone"], check=True)
    with Workspace.open(tmp_path / "clone") as clone:
        found = chat(AgentXSaver(clone)).get_state_history(CONFIG)
        assert [(one.config, one.values) for one in found] == states


def test_each_content_is_recorded_once(ws):
    graph = chat(AgentXSaver(ws))
    for number in range(12):
        ask(graph, f"question {number}")
    log = b"".join(
        file.read_bytes() for file in [ws.root / "history.jsonl", *ws.root.glob("history/*/*.jsonl")]
    )
    assert len(said(graph)) == 24
    for number in range(12):
        assert log.count(f"question {number}: It depends".encode()) == 1


def test_steps_cost_the_same_however_long_the_chat_is(ws):
    graph, sizes = chat(AgentXSaver(ws)), []
    for number in range(40):
        before = ws.state.seq
        ask(graph, f"question {number:02}")
        sizes.append(sum(len(str(event.data)) for event in ws.events(after=before)))
    assert sizes[-1] < 1.2 * sizes[3]


def test_many_threads_in_turn_are_kept_apart(ws, monkeypatch):
    monkeypatch.setattr(langgraph, "LISTS_KEPT", 2)
    graph = chat(AgentXSaver(ws))
    configs = [{"configurable": {"thread_id": f"t-{number}"}} for number in range(5)]
    for turn in range(3):
        for config in configs:
            ask(graph, f"turn {turn} of {config['configurable']['thread_id']}", config)
    for config in configs:
        name = config["configurable"]["thread_id"]
        assert said(graph, config)[::2] == [f"turn {turn} of {name}" for turn in range(3)]


def test_the_answers_are_those_of_langgraphs_own_saver(ws):
    ours, reference = chat(AgentXSaver(ws)), chat(InMemorySaver())
    for graph in (ours, reference):
        ask(graph, "one")
        ask(graph, "two")
        graph.update_state(CONFIG, {"messages": [RemoveMessage(id="one")]})
        graph.update_state(CONFIG, {"messages": [AIMessage("instead", id="answer-1")]})
        ask(graph, "three")

    def told(graph):
        return [
            (state.values, state.next, state.metadata["source"], state.metadata["step"])
            for state in graph.get_state_history(CONFIG)
        ]

    assert told(ours) == told(reference)


def test_an_earlier_checkpoint_can_be_gone_on_from(ws):
    graph = chat(AgentXSaver(ws))
    ask(graph, "one")
    first = graph.get_state(CONFIG).config
    ask(graph, "two")
    ask(graph, "other", first)
    assert [text.partition(":")[0] for text in said(graph)] == ["one", "one", "other", "other"]
    past = [state for state in graph.get_state_history(CONFIG) if len(state.values.get("messages", [])) == 4]
    assert {state.values["messages"][2].content for state in past} == {"two", "other"}


def test_graphs_that_are_awaited_are_kept_the_same(ws):
    saver = AgentXSaver(ws)

    async def run():
        graph = chat(saver)
        await graph.ainvoke({"messages": [HumanMessage("one", id="one")]}, CONFIG)
        return [state async for state in graph.aget_state_history(CONFIG)]

    assert len(asyncio.run(run())) == 3
    assert said(chat(saver))[0] == "one"


def test_what_a_step_waits_for_is_asked_in_another_process(ws):
    def build(workspace):
        graph = StateGraph(MessagesState)
        graph.add_node("ask", lambda _state: {"messages": [AIMessage(f"you said {interrupt('which?')}")]})
        graph.add_edge(START, "ask")
        return graph.compile(checkpointer=AgentXSaver(workspace))

    ask(build(ws), "go")
    ws.close()
    with Workspace.open(ws.root) as again:
        graph = build(again)
        assert graph.get_state(CONFIG).next == ("ask",)
        done = graph.invoke(Command(resume="the red one"), CONFIG)
    assert done["messages"][-1].content == "you said the red one"


def test_values_of_every_sort_come_back_as_they_were(ws):
    values: dict[str, Any] = {
        "numbers": [0, -1, 2**63, 2**64 - 1, 1.5, -0.0, float("inf"), True, None],
        "bytes": b"\x00\xff" * 400,
        "text": "né \U0001f600 " * 200,
        "keys": {1: "one", (2, 3): "pair", "~": "mark", None: {"~": "abc"}},
        "nested": [[[{"a": [{"b": LONG}]}]]],
        "empty": [{}, [], ""],
        "set": {1, 2},
    }

    class Held(TypedDict):
        held: Any

    graph = StateGraph(Held)
    graph.add_node("same", lambda _state: {"held": values})
    graph.add_edge(START, "same")
    graph.compile(checkpointer=AgentXSaver(ws)).invoke({"held": 0}, CONFIG)
    ws.close()
    with Workspace.open(ws.root) as again:
        assert AgentXSaver(again).get_tuple(CONFIG).checkpoint["channel_values"]["held"] == values


def test_a_state_longer_than_a_line_is_kept_beside_the_log(ws):
    graph = chat(AgentXSaver(ws))
    texts = [HumanMessage(f"{number} {LONG * 2}", id=str(number)) for number in range(60)]
    graph.update_state(CONFIG, {"messages": texts}, as_node="agent")
    assert [text.partition(" ")[0] for text in said(graph)] == [str(number) for number in range(60)]
    assert ws.verify().sound
    ws.close()
    with Workspace.open(ws.root) as again:
        assert len(said(chat(AgentXSaver(again)))) == 60


# --- faults ---------------------------------------------------------------------------------------------------------

STEPS = """
import sys
from langchain_core.messages import HumanMessage
from agentx import Workspace
from tests.agentx.orchestrators.test_langgraph import AgentXSaver, ask, chat
graph = chat(AgentXSaver(Workspace.open(sys.argv[1])))
config = {"configurable": {"thread_id": sys.argv[2]}}
for number in range(int(sys.argv[3])):
    ask(graph, f"{sys.argv[4]}{number}", config)
    print(number, flush=True)
"""


def start(ws, thread, steps, name):
    return subprocess.Popen(
        [sys.executable, "-c", STEPS, ws.root, thread, str(steps), name], stdout=subprocess.PIPE, text=True
    )


def test_a_killed_process_loses_no_step_that_it_acknowledged(ws):
    ws.flush()
    with start(ws, "t-1", 1_000, "n") as process:
        acknowledged = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.readlines()
    texts = said(chat(AgentXSaver(ws)))
    asked = [text for text in texts if ":" not in text]
    assert asked[: len(acknowledged)] == [f"n{number}" for number in range(len(acknowledged))]
    assert len(ask(chat(AgentXSaver(ws)), "on")["messages"]) >= 2 * len(acknowledged) + 2
    assert ws.verify().sound


def test_a_torn_last_line_takes_only_the_step_that_was_being_written(ws):
    graph = chat(AgentXSaver(ws))
    ask(graph, "one")
    ws.close()
    log = ws.root / "history.jsonl"
    with log.open("ab") as file:
        file.write(log.read_bytes().splitlines(keepends=True)[-1][:200])
    with Workspace.open(ws.root) as again:
        graph = chat(AgentXSaver(again))
        assert len(said(graph)) == 2
        assert len(ask(graph, "two")["messages"]) == 4


def test_two_processes_on_one_thread_lose_no_checkpoint(ws):
    ask(chat(AgentXSaver(ws)), "begin")
    ws.flush()
    both = [start(ws, "t-1", 6, name) for name in ("a", "b")]
    assert [len(process.communicate()[0].split()) for process in both] == [6, 6]
    texts = {
        text
        for state in chat(AgentXSaver(ws)).get_state_history(CONFIG)
        for message in state.values.get("messages", [])
        for text in [message.content]
    }
    assert {f"{name}{number}" for name in "ab" for number in range(6)} <= texts


def test_a_purged_piece_is_said_to_be_missing(ws):
    graph = chat(AgentXSaver(ws))
    ask(graph, "the secret of the house")
    found = [event.seq for event in ws.events() if "the secret of the house" in str(event.data)]
    ws.purge(*found, reason="it was private")
    files = (file.read_bytes() for file in ws.root.rglob("*") if file.is_file())
    assert not any(b"the secret of the house" in content for content in files)
    with pytest.raises(CheckpointUnreadable, match="purged"):
        graph.get_state(CONFIG)


def test_a_purge_of_words_finds_the_checkpoints_that_repeat_them(ws):
    spoken = f"My sister's flat is on the third floor of the yellow house. {LONG}"
    event = ws.say(spoken)
    ask(chat(AgentXSaver(ws)), spoken)
    plan = ws.plan_purge(event.seq)
    kinds = {one.type for one in plan.also}
    assert kinds & {"CheckpointSaved", "CheckpointWritesSaved"}


# --- deleting -------------------------------------------------------------------------------------------------------


def test_a_deleted_thread_is_not_returned_and_stays_in_the_history(ws):
    saver = AgentXSaver(ws)
    ask(chat(saver), "one")
    before = ws.state.seq
    saver.delete_thread("t-1")
    assert saver.get_tuple(CONFIG) is None
    assert list(saver.list(None)) == []
    assert [event.type for event in ws.events(after=before)] == ["ThreadsDeleted"]
    assert "one: It depends" in "".join(str(event.data) for event in ws.events())
    assert len(ask(chat(saver), "two")["messages"]) == 2


def test_a_pruned_thread_keeps_its_latest_state(ws):
    saver = AgentXSaver(ws)
    graph = chat(saver)
    ask(graph, "one")
    latest = ask(graph, "two")["messages"]
    saver.prune(["t-1"])
    assert graph.get_state(CONFIG).values["messages"] == latest
    assert len(list(saver.list(CONFIG))) == 1
    assert len(ask(graph, "three")["messages"]) == 6


def test_a_copy_lives_on_when_its_thread_is_deleted(ws):
    saver = AgentXSaver(ws)
    graph = chat(saver)
    ask(graph, "one")
    saver.copy_thread("t-1", "t-2")
    saver.delete_thread("t-1")
    other = {"configurable": {"thread_id": "t-2"}}
    assert len(ask(graph, "two", other)["messages"]) == 4


def test_an_unknown_strategy_is_refused(ws):
    with pytest.raises(UsageError, match="keep_latest or delete"):
        AgentXSaver(ws).prune(["t-1"], strategy="all")


def test_a_config_without_a_thread_is_refused(ws):
    with pytest.raises(UsageError, match="thread_id"):
        AgentXSaver(ws).get_tuple({"configurable": {}})


def test_a_delta_channel_is_rebuilt_after_a_prune(ws):
    delta = pytest.importorskip("langgraph.channels.delta", reason="this langgraph has no delta channels")

    def add(left, right):
        return [*(left or []), *(one for some in right for one in some)]

    class Held(TypedDict):
        held: Annotated[list[int], delta.DeltaChannel(add, snapshot_frequency=1_000)]

    saver = AgentXSaver(ws)
    graph = StateGraph(Held)
    graph.add_node("more", lambda state: {"held": [len(state["held"])]})
    graph.add_edge(START, "more")
    graph = graph.compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({"held": [7]}, CONFIG)
    held = graph.get_state(CONFIG).values["held"]
    assert held == [7, 1, 7, 3, 7, 5]
    saver.prune(["t-1"])
    assert graph.get_state(CONFIG).values["held"] == held


# --- trust ----------------------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int
    y: int


def keep_a_point(ws, **more):
    class Held(TypedDict):
        at: Any

    graph = StateGraph(Held)
    graph.add_node("point", lambda _state: {"at": Point(1, 2)})
    graph.add_edge(START, "point")
    saver = AgentXSaver(ws, **more)
    graph.compile(checkpointer=saver).invoke({"at": None}, CONFIG)
    return saver.get_tuple(CONFIG).checkpoint["channel_values"]["at"]


def test_an_object_of_a_class_that_was_not_named_comes_back_as_data(ws):
    assert keep_a_point(ws) == {"x": 1, "y": 2}


def test_an_object_of_a_class_that_was_named_comes_back(ws):
    assert keep_a_point(ws, allow=[Point]) == Point(1, 2)


def test_a_workspace_from_elsewhere_is_not_read_by_a_serializer_that_makes_any_object(ws, monkeypatch):
    monkeypatch.setattr(type(ws.engine.trust), "why_restricted", lambda _self: "It came from elsewhere.")
    with pytest.raises(SerializerRefused, match="agentx trust"):
        AgentXSaver(ws, serde=JsonPlusSerializer(pickle_fallback=True))
    assert AgentXSaver(ws).get_tuple(CONFIG) is None


def test_a_secret_in_the_state_never_reaches_the_disk(ws):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    graph = chat(AgentXSaver(ws))
    ask(graph, f"my token is {token}")
    files = (file.read_bytes() for file in ws.root.rglob("*") if file.is_file())
    assert not any(token.encode() in content for content in files)
    assert "[redacted:" in said(graph)[0]


# --- facts and gates ------------------------------------------------------------------------------------------------


@tool
def write_file(path: str, content: str) -> str:
    """Write a file."""
    return f"wrote {len(content)} characters to {path}"


def with_tools(ws, *, path="report.md", tools=(write_file,)):
    """Return a graph that reads context, calls a tool once, and answers."""

    def agent(state: MessagesState):
        last = state["messages"][-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage(f"Done: {last.content}", id="answer")]}
        call = {"name": "write_file", "args": {"path": path, "content": "flask"}, "id": "call-1"}
        return {"messages": [AIMessage("I write it.", tool_calls=[call], id="call")]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode(tools, wrap_tool_call=gate(ws)))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges(
        "agent", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=AgentXSaver(ws), store=AgentXStore(ws))


def test_the_users_demands_in_a_graph_become_rules_that_its_tools_keep(ws):
    config = CONFIG | {"callbacks": [GraphFacts(ws)]}
    asked = "Add flask. Never create a requirements.txt file; use pyproject.toml instead."
    done = ask(with_tools(ws, path="requirements.txt"), asked, config)
    denied = next(one for one in done["messages"] if isinstance(one, ToolMessage))
    assert denied.status == "error"
    assert "requirements.txt" in denied.content
    (rule,) = ws.memory("constraint")
    (executed,) = [event for event in ws.events() if event.type == "ToolCallExecuted"]
    assert (executed.data.status, executed.data.denied_by, executed.run) == ("DENIED", (rule.id,), "t-1")
    assert "Never create a requirements.txt" in ws.get_relevant_context("add a package").text


def facts_of(ws):
    kinds = ("UserMessageSent", "AgentThoughtProcess", "ToolCallExecuted", "AgentMessageSent")
    return [event for event in ws.events() if event.type in kinds]


def test_calls_and_messages_of_a_graph_are_facts_of_its_thread(ws):
    config = CONFIG | {"callbacks": [GraphFacts(ws)]}
    ask(with_tools(ws), "Write the report.", config)
    user, call, answer = facts_of(ws)
    assert (user.actor, user.data.body.text) == ("user", "Write the report.")
    assert (call.data.tool, call.data.call_id, call.run) == ("write_file", "call-1", "t-1")
    assert call.data.output.text == "wrote 5 characters to report.md"
    assert (answer.data.body.text, answer.data.final, answer.run) == (
        f"Done: {call.data.output.text}",
        True,
        "t-1",
    )
    with_tools(ws).invoke(None, config)  # nothing is left to do
    assert len(facts_of(ws)) == 3


def test_what_a_model_says_beside_its_calls_is_a_thought(ws):
    call = {"name": "write_file", "args": {"path": "a.md", "content": "A"}, "id": "call-1"}
    model = FakeMessagesListChatModel(
        responses=[AIMessage("I write it.", tool_calls=[call]), AIMessage("It is written.")]
    )
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([write_file], wrap_tool_call=gate(ws)))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "agent")
    graph = graph.compile(checkpointer=AgentXSaver(ws))
    config = CONFIG | {"callbacks": [GraphFacts(ws)]}
    asyncio.run(graph.ainvoke({"messages": [("user", "Write it.")]}, config))
    told = [(event.type, event.data.body.text) for event in facts_of(ws) if event.type != "ToolCallExecuted"]
    assert told == [
        ("UserMessageSent", "Write it."),
        ("AgentThoughtProcess", "I write it."),
        ("AgentMessageSent", "It is written."),
    ]


def test_a_tool_that_fails_is_recorded_as_failed(ws):
    @tool
    def broken(path: str) -> str:
        """Break."""
        raise OSError(f"no {path}")

    call = {"name": "broken", "args": {"path": "a.md"}, "id": "call-1", "type": "tool_call"}
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([broken], handle_tool_errors=True))
    graph.add_edge(START, "tools")
    config = CONFIG | {"callbacks": [GraphFacts(ws)]}
    graph.compile().invoke({"messages": [AIMessage("", tool_calls=[call])]}, config)
    (failed,) = facts_of(ws)
    assert (failed.data.status, failed.data.tool) == ("FAILED", "broken")
    assert "no a.md" in failed.data.output.text


def test_a_call_that_needs_approval_waits_for_a_person(ws):
    ws.say("Tailwind is off the table in this project.")
    ws.flows.add("write the styles", ["Look", "Write"], needs_approval=True)

    @tool
    def run(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    def agent(state: MessagesState):
        last = state["messages"][-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage(last.content)]}
        call = {"name": "run", "args": {"command": "npm i -D tailwindcss"}, "id": "call-1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([run], wrap_tool_call=gate(ws)))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "agent")
    graph = graph.compile(checkpointer=AgentXSaver(ws))
    ask(graph, "add the styles")
    (waiting,) = graph.get_state(CONFIG).interrupts
    assert waiting.value["arguments"] == {"command": "npm i -D tailwindcss"}
    assert graph.invoke(Command(resume=True), CONFIG)["messages"][-1].content == "ran npm i -D tailwindcss"
    other = {"configurable": {"thread_id": "t-2"}}
    ask(graph, "add the styles", other)
    assert graph.invoke(Command(resume=False), other)["messages"][-1].content.startswith("Denied. ")
