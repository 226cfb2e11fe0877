"""AgentXSaver beside LangGraph's own savers: the same chat, turn by turn, in one process.

    python -m tests.bench.langgraph_savers [--turns 400] [--folder DIR] [--savers memory,sqlite,agentx] [--faults]

A turn is a question, a model's call of a tool, the tool's output and an answer: four checkpoints or more. The model is
a function, so what is measured is LangGraph with its saver. Processor time is that of this process (`time.process_time`).
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("AGENTX_NO_SERVER", "1")
warnings.filterwarnings("ignore")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from agentx import Workspace
from agentx.orchestrators.langgraph import AgentXSaver

WORDS = [
    "the",
    "a",
    "of",
    "to",
    "in",
    "request",
    "handler",
    "returns",
    "order",
    "payment",
    "test",
    "fails",
    "because",
    "field",
    "user",
    "value",
    "when",
    "retry",
    "line",
    "error",
    "session",
    "token",
    "cache",
    "file",
    "module",
    "function",
    "call",
    "result",
    "expected",
    "actual",
    "timeout",
    "before",
    "after",
    "config",
    "database",
    "row",
    "index",
    "query",
    "update",
    "delete",
    "insert",
    "warning",
    "build",
    "deploy",
    "branch",
    "commit",
    "merge",
    "review",
    "customer",
    "invoice",
    "total",
    "refund",
]
SAVERS = ("memory", "sqlite", "agentx")


def text(seed: str, characters: int) -> str:
    """Return text of words that no other seed gives, so that nothing is alike by chance."""
    rng, parts, length = random.Random(seed), [], 0
    while length < characters:
        word = rng.choice(WORDS) if rng.random() < 0.8 else f"{rng.getrandbits(32):x}"
        parts.append(word)
        length += len(word) + 1
    return " ".join(parts)


def build(saver):
    """Return a graph of an agent with a tool, whose model is a function."""

    def agent(state):
        messages = state["messages"]
        turn = sum(isinstance(one, HumanMessage) for one in messages)
        if isinstance(messages[-1], HumanMessage):
            call = {"name": "search", "args": {"query": text(f"q{turn}", 60)}, "id": f"call-{turn}"}
            answer = AIMessage(text(f"think{turn}", 120), tool_calls=[call], id=f"think-{turn}")
        else:
            answer = AIMessage(text(f"answer{turn}", 700), id=f"answer-{turn}")
        answer.response_metadata = {
            "model_name": "some-model-1",
            "finish_reason": "stop",
            "id": f"resp-{turn}",
        }
        answer.usage_metadata = {"input_tokens": 900, "output_tokens": 180, "total_tokens": 1080}
        return {"messages": [answer]}

    def tools(state):
        (call,) = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(text(call["id"], 2_000), tool_call_id=call["id"], name="search")]}

    def onward(state):
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", onward, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=saver)


class Opened:
    """A saver with what it is kept in."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder / name
        self.workspace = self.connection = None
        if name == "memory":
            self.saver = InMemorySaver()
        elif name == "sqlite":
            self.folder.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(self.folder / "checkpoints.sqlite", check_same_thread=False)
            self.saver = SqliteSaver(self.connection)
        else:
            made = (self.folder / "history.jsonl").exists()
            self.workspace = Workspace.open(self.folder) if made else Workspace.create(self.folder)
            self.saver = AgentXSaver(self.workspace)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        if self.workspace is not None:
            self.workspace.close()

    def size(self) -> int:
        return size(self.folder) if self.folder.exists() else 0


def size(folder: Path) -> int:
    """Return the bytes that a directory takes on the disk."""
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


CONFIG = {"configurable": {"thread_id": "chat"}}


def chat(name: str, graph, turn: int) -> tuple[float, float]:
    """Run one turn; return its processor and wall time, in seconds."""
    message = HumanMessage(text(f"user{turn}", 250), id=f"user-{turn}")
    cpu, wall = time.process_time(), time.perf_counter()
    graph.invoke({"messages": [message]}, CONFIG, durability="sync")
    return time.process_time() - cpu, time.perf_counter() - wall


def load(name: str, folder: Path) -> dict[str, float]:
    """Open a saver and return how long it takes to have the latest state: first and again."""
    opened = Opened(name, folder)
    took = {}
    for which in ("first", "again"):
        began = time.process_time()
        state = build(opened.saver).get_state(CONFIG)
        took[which] = round(time.process_time() - began, 4)
    took["messages"] = len(state.values["messages"])
    opened.close()
    return took


def measure(turns: int, names: tuple[str, ...], folder: Path) -> dict:
    """Run the chat with each saver in turn; return the figures."""
    opened = [Opened(name, folder) for name in names]
    graphs = {one.name: build(one.saver) for one in opened}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    sizes: dict[str, dict[int, int]] = {name: {} for name in names}
    for turn in range(1, turns + 1):
        for one in opened if turn % 2 else reversed(opened):
            took[one.name].append(chat(one.name, graphs[one.name], turn))
        if turn in (turns // 4, turns // 2):
            for one in opened:
                if one.workspace is not None:
                    one.workspace.flush()
                sizes[one.name][turn] = one.size()
    for one in opened:
        one.close()
        sizes[one.name][turns] = one.size()
    part = max(turns // 8, 1)
    figures = {}
    for name, times in took.items():
        ends = {"first": times[:part], "last": times[-part:], "all": times}
        figures[name] = {
            "cpu_ms_a_turn": {
                when: round(sum(c for c, _ in some) / len(some) * 1e3, 2) for when, some in ends.items()
            },
            "wall_ms_a_turn": {
                when: round(sum(w for _, w in some) / len(some) * 1e3, 2) for when, some in ends.items()
            },
            "bytes": sizes[name],
        }
        if name == "agentx":
            whole = folder / name
            figures[name]["of_which"] = {
                "history": size(whole / "history") + (whole / "history.jsonl").stat().st_size,
                ".git": size(whole / ".git"),
                ".agentx": size(whole / ".agentx"),
            }
        if name != "memory":
            command = [
                sys.executable,
                "-m",
                "tests.bench.langgraph_savers",
                "--load",
                name,
                "--folder",
                str(folder),
            ]
            figures[name]["load_cpu_s"] = json.loads(
                subprocess.run(command, check=True, capture_output=True).stdout
            )
    return figures


def steps(name: str, folder: Path, turns: int, first: int) -> None:
    """Run turns in this process, each told once it is acknowledged; an error of the saver is told, too."""
    opened = Opened(name, folder)
    graph = build(opened.saver)
    for turn in range(first, first + turns):
        try:
            chat(name, graph, turn)
            print(turn, flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
    opened.close()


def faults(name: str, folder: Path) -> dict[str, str]:
    """Kill a process between steps, let two work on one thread, and tear the end of the store off."""

    def started(where: Path, turns: int, first: int) -> subprocess.Popen:
        command = [sys.executable, "-m", "tests.bench.langgraph_savers", "--steps", f"{name},{turns},{first}"]
        return subprocess.Popen([*command, "--folder", str(where)], stdout=subprocess.PIPE, text=True)

    def questions(where: Path) -> set[str]:
        opened = Opened(name, where)
        found = {
            message.id
            for state in build(opened.saver).get_state_history(CONFIG)
            for message in state.values.get("messages", ())
            if isinstance(message, HumanMessage)
        }
        opened.close()
        return found

    told = {}
    with started(folder / "killed", 1_000, 1) as process:
        lines = [process.stdout.readline() for _ in range(20)]
        process.kill()
        lines += process.stdout.readlines()
    held = questions(folder / "killed")
    lost = [line for line in lines if f"user-{line.strip()}" not in held]
    told["killed"] = f"{len(lines)} turns acknowledged, {len(lost)} lost"
    Opened(name, folder / "shared").close()
    both = [started(folder / "shared", 15, 1 + 1_000 * number) for number in range(2)]
    lines = [line.strip() for process in both for line in process.communicate()[0].splitlines()]
    held = questions(folder / "shared")
    done = [line for line in lines if line.isdigit()]
    lost = [line for line in done if f"user-{line}" not in held]
    told["two processes"] = (
        f"{len(done)} of 30 turns acknowledged, {len(lost)} lost; {sorted(set(lines) - set(done))}"
    )
    with started(folder / "torn", 15, 1) as process:
        process.communicate()
    file = next(path for end in ("history.jsonl", "*.sqlite") for path in (folder / "torn" / name).glob(end))
    os.truncate(file, file.stat().st_size - 300)
    try:
        told["torn"] = f"{len(questions(folder / 'torn'))} of 15 turns left"
    except Exception as error:
        told["torn"] = f"{type(error).__name__}: {error}"
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--savers", default=",".join(SAVERS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--load", default="")
    parser.add_argument("--steps", default="")
    parser.add_argument("--faults", action="store_true", help="look at faults, and measure nothing")
    given = parser.parse_args()
    if given.steps:
        name, turns, first = given.steps.split(",")
        steps(name, given.folder, int(turns), int(first))
        return
    if given.faults:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            found = {name: faults(name, Path(folder)) for name in given.savers.split(",") if name != "memory"}
        print(json.dumps(found, indent=2))
        return
    if given.load:
        print(json.dumps(load(given.load, given.folder)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        print(json.dumps(measure(given.turns, tuple(given.savers.split(",")), Path(folder)), indent=2))


if __name__ == "__main__":
    main()
