"""What a turn of a framework takes that is kept in a workspace, beside the framework's own store, and the size on disk.

Both keep the same turns by turns, in one process: a message of the user, a call with its result, an answer. A framework
that is not installed is left out.
"""

import asyncio
import importlib.util
import random
import statistics
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from agentx import Workspace
from agentx.orchestrators.agent_framework import WorkspaceConversations
from agentx.orchestrators.kept_conversation import KeptConversation
from agentx.orchestrators.openai_agents import WorkspaceSession
from agentx.orchestrators.pydantic_ai import WorkspaceHistory
from tests.figures import Figure, number

from .peer_memory import text
from .scale import Scale

RESULT_WORDS = 150
"""Words of a tool's result; a message has 30 and an answer 60."""

Keep = Callable[[int], Awaitable[object]]


def orchestrators(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Measure every framework that is installed."""
    for name, module, make in (
        ("openai-agents", "agents", _openai_agents),
        ("pydantic-ai", "pydantic_ai", _pydantic_ai),
        ("agent-framework", "agent_framework", _agent_framework),
    ):
        if importlib.util.find_spec(module):
            yield from _measured(name, scratch / name, scale.framework_turns, make)
    yield from _proxied(scratch / "proxy", scale.framework_turns)


def _measured(name: str, place: Path, turns: int, make: Callable[[Workspace, Path], Any]) -> Iterator[Figure]:
    place.mkdir(parents=True)
    own_place = place / "own"
    own_place.mkdir()
    ws = Workspace.create(place / "w")
    ours, own, load, load_own, close, what = make(ws, own_place)
    took = asyncio.run(_by_turns(turns, ours, own))
    loaded = asyncio.run(_by_turns(20, lambda _: load(), lambda _: load_own()))
    ws.close()
    close()
    for key, said, (mine, its) in (("keep", "keeps a turn", took), ("load", f"loads {turns} turns", loaded)):
        yield Figure(
            f"{name}_{key}_ratio",
            f"{name} {said}: processor time, times that of its own store",
            mine / its,
            beside=f"{number(mine * 1000)} ms beside {number(its * 1000)} ms of {what}",
        )
    size, own_size = _bytes(place / "w"), _bytes(own_place)
    yield Figure(
        f"{name}_disk_ratio",
        f"{name}: disk after {turns} turns, times that of its own store",
        size / own_size,
        beside=f"{number(size / 1e6)} MB beside {number(own_size / 1e6)} MB of {what}",
    )


async def _by_turns(turns: int, *keeps: Keep) -> list[float]:
    """Return the median processor time of each, in seconds; each turn begins with another one."""
    took: list[list[float]] = [[] for _ in keeps]
    for turn in range(turns):
        order = list(range(len(keeps)))
        for which in order if turn % 2 else reversed(order):
            began = time.process_time()
            await keeps[which](turn)
            took[which].append(time.process_time() - began)
    return [statistics.median(one) for one in took]


def _bytes(place: Path) -> int:
    """Return the bytes that a directory takes on disk."""
    return sum(path.lstat().st_blocks * 512 for path in place.rglob("*"))


def _turn(turn: int) -> tuple[str, str, str, str]:
    """Return what the user says, the id of the call, what it returns, and the answer."""
    words = text(turn, 30), text(turn + 1_000_000, RESULT_WORDS), text(turn + 2_000_000, 60)
    return f"Look at {words[0]}.", f"call_{random.Random(turn).getrandbits(64):x}", words[1], f"{words[2]}."


def _openai_agents(ws: Workspace, place: Path) -> tuple[Any, ...]:
    from agents import SQLiteSession

    def items(turn: int) -> list[Any]:
        said, call, result, answer = _turn(turn)
        asked = {"type": "function_call", "call_id": call, "name": "look", "arguments": '{"at": "here"}'}
        content = [{"type": "output_text", "text": answer, "annotations": []}]
        return [
            {"role": "user", "content": said},
            asked,
            {"type": "function_call_output", "call_id": call, "output": result},
            {
                "id": f"m{turn}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            },
        ]

    ours, own = WorkspaceSession("main", ws), SQLiteSession("main", place / "own.db")
    return (
        lambda turn: ours.add_items(items(turn)),
        lambda turn: own.add_items(items(turn)),
        ours.get_items,
        own.get_items,
        own.close,  # it leaves a write-ahead log of 4 MB until then
        "SQLiteSession",
    )


def _pydantic_ai(ws: Workspace, place: Path) -> tuple[Any, ...]:
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    whole: list[Any] = []
    history = WorkspaceHistory(ws, "main")
    file = place / "messages.json"

    def grown(turn: int) -> list[Any]:
        if len(whole) < 4 * (turn + 1):
            said, call, result, answer = _turn(turn)
            whole.extend(
                [
                    ModelRequest(parts=[UserPromptPart(said)]),
                    ModelResponse(parts=[ToolCallPart("look", {"at": "here"}, tool_call_id=call)]),
                    ModelRequest(parts=[ToolReturnPart("look", result, tool_call_id=call)]),
                    ModelResponse(parts=[TextPart(answer)]),
                ]
            )
        return whole

    async def own(turn: int) -> None:
        file.write_bytes(ModelMessagesTypeAdapter.dump_json(grown(turn)))

    async def load_own() -> None:
        ModelMessagesTypeAdapter.validate_json(file.read_bytes())

    return (
        lambda turn: history.save(grown(turn)),
        own,
        history.load,
        load_own,
        lambda: None,
        "a JSON file, written whole, unsynced",
    )


def _agent_framework(ws: Workspace, place: Path) -> tuple[Any, ...]:
    from agent_framework import Content, FileHistoryProvider, Message

    def messages(turn: int) -> list[Any]:
        said, call, result, answer = _turn(turn)
        return [
            Message("user", [said]),
            Message("assistant", [Content.from_function_call(call, "look", arguments='{"at": "here"}')]),
            Message("tool", [Content.from_function_result(call, result=result)]),
            Message("assistant", [answer]),
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is experimental
        own = FileHistoryProvider(place)
    ours = WorkspaceConversations(ws).history()
    return (
        lambda turn: ours.save_messages("main", messages(turn)),
        lambda turn: own.save_messages("main", messages(turn)),
        lambda: ours.get_messages("main"),
        lambda: own.get_messages("main"),
        lambda: None,
        "FileHistoryProvider, unsynced",
    )


def _proxied(place: Path, turns: int) -> Iterator[Figure]:
    """Measure what the callback of the proxy adds to a request: the whole conversation is sent each time."""
    with Workspace.create(place) as ws:
        talk = KeptConversation(ws, "main", host="litellm-proxy")
        messages: list[Any] = []
        heard: list[float] = []
        shown: list[float] = []
        for turn in range(turns):
            said, _, _, answer = _turn(turn)
            messages.append({"role": "user", "content": said})
            began = time.process_time()
            talk.hear(messages)
            heard.append(time.process_time() - began)
            began = time.process_time()
            talk.context()
            shown.append(time.process_time() - began)
            began = time.process_time()
            talk.answer(answer, key=str(turn))
            heard[-1] += time.process_time() - began
            messages.append({"role": "assistant", "content": answer})
    yield Figure(
        "proxy_record_ms",
        f"LiteLLM's proxy: recording a request and its answer, in a conversation of {turns} turns",
        statistics.median(heard) * 1000,
        beside=f"the last ten {number(statistics.median(heard[-10:]) * 1000)} ms",
    )
    yield Figure("proxy_context_ms", "LiteLLM's proxy: the context", statistics.median(shown) * 1000)
