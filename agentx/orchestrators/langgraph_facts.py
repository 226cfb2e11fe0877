"""What happens in a graph as facts of the history: messages and tool calls, and the gate before a call."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast
from uuid import UUID

from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    Draft,
    ToolCallExecuted,
    ToolStatus,
)
from agentx.storage.extras import LANGGRAPH, needs
from agentx.synthesis.gates.action_gate import GateVerdict
from agentx.workspace import Workspace

with needs(LANGGRAPH):
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, LLMResult
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command, interrupt

ARGUMENT_CHARACTERS = 1_000
"""Characters of one argument that an event keeps."""

_Result = ToolMessage | Command[Any]


class GraphFacts(BaseCallbackHandler):
    """A callback by which a graph's messages and tool calls become facts: its thread is their run.

    The human messages of a graph's input count as the user's words: demands in them become rules. Do not pass
    it to a graph whose input an agent writes. Results of tools count as material.

    Args:
        workspace: The open workspace.
        agent: Role of the agent.

    Attributes:
        raise_error: What cannot be recorded stops the graph.
        run_inline: Facts are recorded in the order in which they happen.
    """

    raise_error = True
    run_inline = True

    def __init__(self, workspace: Workspace, *, agent: str = "langgraph") -> None:
        self._ws = workspace
        self._actor = f"agent:{agent}"
        self._runs: dict[UUID, str] = {}
        self._calls: dict[UUID, tuple[str, dict[str, Any], float]] = {}

    def on_chain_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain's signature
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        """Record the human messages of a graph's input."""
        if parent_run_id is not None:
            return
        thread = self._runs[run_id] = _thread(metadata)
        for message in _human(inputs):
            key = f"langgraph:{thread}:{message.id}" if message.id else ""
            if message.text.strip():
                self._ws.say(str(message.text), key=key)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_more: Any) -> None:
        """Record a graph's answer: the last message of its state, if it calls no tool."""
        thread = self._runs.pop(run_id, None)
        messages = outputs.get("messages") if isinstance(outputs, Mapping) else None
        last = messages[-1] if isinstance(messages, list) and messages else None
        if thread is None or not isinstance(last, AIMessage) or last.tool_calls:
            return
        if text := str(last.text).strip():
            model = str(last.response_metadata.get("model_name", ""))
            answer = AgentMessageSent(body=self._ws.body(text), model=model, final=True)
            key = f"langgraph:{thread}:{last.id}" if last.id else ""
            self._ws.record(Draft(data=answer, actor=self._actor, run=thread, key=key))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_more: Any) -> None:  # noqa: ARG002
        """Forget a graph that failed."""
        self._runs.pop(run_id, None)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        """Note the thread of a model's call."""
        del serialized, messages
        self._runs[run_id] = _thread(metadata)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_more: Any) -> None:
        """Record what the model said beside tool calls; its answer is the graph's."""
        thread = self._runs.pop(run_id, "")
        for generation in (one for some in response.generations for one in some):
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if isinstance(message, AIMessage) and message.tool_calls and message.text.strip():
                model = str(message.response_metadata.get("model_name", ""))
                thought = AgentThoughtProcess(body=self._ws.body(str(message.text)), model=model)
                self._ws.record(Draft(data=thought, actor=self._actor, run=thread))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_more: Any) -> None:  # noqa: ARG002
        """Forget a model's call that failed."""
        self._runs.pop(run_id, None)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        """Note a tool's call."""
        del input_str
        self._runs[run_id] = _thread(metadata)
        self._calls[run_id] = (str(serialized.get("name", "")), inputs or {}, time.monotonic())

    def on_tool_end(self, output: Any, *, run_id: UUID, **_more: Any) -> None:
        """Record a tool's call with its result."""
        name, arguments, began = self._calls.pop(run_id, ("", {}, time.monotonic()))
        call_id = output.tool_call_id if isinstance(output, ToolMessage) else str(run_id)
        failed = isinstance(output, ToolMessage) and output.status == "error"
        _record(
            self._ws,
            self._actor,
            self._runs.pop(run_id, ""),
            call_id,
            name,
            arguments,
            "FAILED" if failed else "SUCCEEDED",
            str(output.text if isinstance(output, ToolMessage) else output),
            duration_ms=int((time.monotonic() - began) * 1000),
        )

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Record a tool's call that failed."""
        name, arguments, began = self._calls.pop(run_id, ("", {}, time.monotonic()))
        _record(
            self._ws,
            self._actor,
            self._runs.pop(run_id, ""),
            str(more.get("tool_call_id") or run_id),
            name,
            arguments,
            "FAILED",
            f"{type(error).__name__}: {error}",
            duration_ms=int((time.monotonic() - began) * 1000),
        )


def gate(
    workspace: Workspace,
    *,
    agent: str = "langgraph",
    writes: Mapping[str, str | Sequence[str]] = MappingProxyType({}),
) -> Callable[[ToolCallRequest, Callable[[ToolCallRequest], _Result]], _Result]:
    """Return a ``wrap_tool_call`` for a ``ToolNode``: what breaks a rule of the user is not run.

    A call that is denied gets a tool message with the rule and its sentence, and is recorded. For one that
    needs approval the graph is interrupted; ``Command(resume=True)`` lets it run.

    Args:
        workspace: The open workspace.
        agent: Role of the agent.
        writes: By tool, the argument or arguments that name files which it writes
            (``{"export": "dest"}``); none for a tool that writes no file. For other tools counts what
            ``agentx.toml`` declares, else every string that is a path under a rule.
    """
    declared = {tool: (names,) if isinstance(names, str) else tuple(names) for tool, names in writes.items()}

    def guard(request: ToolCallRequest, execute: Callable[[ToolCallRequest], _Result]) -> _Result:
        call = request.tool_call
        verdict = workspace.gates.before(
            "", tool=call["name"], arguments=call["args"], agent=agent, writes=declared.get(call["name"])
        )
        refused = verdict.verdict == "deny"
        if verdict.verdict == "ask":
            question = {"tool": call["name"], "arguments": call["args"], "reason": verdict.reason}
            refused = interrupt(question) is not True
        if not refused:
            return execute(request)
        told = f"Denied. {verdict.reason}{_sentences(workspace, verdict)}"
        thread = request.runtime.config.get("configurable", {}).get("thread_id", "")
        _record(
            workspace,
            f"agent:{agent}",
            str(thread),
            call["id"] or "",
            call["name"],
            call["args"],
            "DENIED",
            told,
            denied_by=verdict.denied_by or verdict.asked_by,
        )
        return ToolMessage(told, tool_call_id=call["id"] or "", name=call["name"], status="error")

    return guard


def _sentences(workspace: Workspace, verdict: GateVerdict) -> str:
    """Return the user's sentences from which the rules came that deny a call."""
    items = workspace.state.items
    quotes = [
        f"{name}: “{evidence.quote}”"
        for name in verdict.denied_by
        if name in items
        for evidence in items[name].evidence[:1]
        if evidence.quote and evidence.quote not in verdict.reason
    ]
    return f" ({'; '.join(quotes)})" if quotes else ""


def _record(  # noqa: PLR0913 - the fields of one fact
    workspace: Workspace,
    actor: str,
    thread: str,
    call_id: str,
    tool: str,
    arguments: Mapping[str, Any],
    status: ToolStatus,
    output: str,
    *,
    denied_by: tuple[str, ...] = (),
    duration_ms: int = 0,
) -> None:
    command = arguments.get("command", "")
    data = ToolCallExecuted(
        call_id=call_id,
        tool=tool,
        status=status,
        arguments={name: _short(value) for name, value in arguments.items()},
        output=workspace.body(output),
        command=command[:ARGUMENT_CHARACTERS] if isinstance(command, str) else "",
        denied_by=denied_by,
        duration_ms=duration_ms,
    )
    workspace.record(Draft(data=data, actor=actor, run=thread))


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return value if len(text) <= ARGUMENT_CHARACTERS else f"{text[:ARGUMENT_CHARACTERS]}…"


def _thread(metadata: Mapping[str, Any] | None) -> str:
    return str((metadata or {}).get("thread_id", ""))


def _human(inputs: Any) -> Sequence[HumanMessage]:
    """Return the human messages of a graph's input, as LangGraph reads it."""
    given = inputs.get("messages", ()) if isinstance(inputs, Mapping) else ()
    found: list[HumanMessage] = []
    for one in given if isinstance(given, list | tuple) else [given]:
        if isinstance(one, HumanMessage):
            found.append(one)
        elif isinstance(one, Mapping) and one.get("role") in ("user", "human"):
            found.append(HumanMessage(one.get("content", ""), id=one.get("id")))
        elif isinstance(one, tuple) and one and one[0] in ("user", "human"):
            found.append(HumanMessage(cast("tuple[str, str]", one)[1]))
        elif isinstance(one, str):
            found.append(HumanMessage(one))
    return found
