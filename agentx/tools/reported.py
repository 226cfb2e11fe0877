"""Record what an agent outside AgentX said and did, as a script or host reports it.

The reporter is an agent: nothing that it says counts as the user's words, and nothing as a result of AgentX's
own tools. A person speaks with `agentx say`.
"""

import re
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from agentx.engine.engine import Engine
from agentx.policy.workspace_gates import Gates
from agentx.storage.errors import UsageError
from agentx.storage.events.types import (
    REPORTED,
    AgentMessageSent,
    Draft,
    Event,
    ToolCallExecuted,
    ToolStatus,
)
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import encodable
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.tools.toolbox import Toolbox
from agentx.tools.toolset import bounded

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_COMMAND_CHARACTERS = 1_000
_MODEL_CHARACTERS = 200


class ReportedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call and its result.

    Attributes:
        tool: Name of the tool; not one of AgentX's own.
        arguments: Its arguments.
        output: What it returned, or why it was denied.
        status: ``SUCCEEDED``, ``FAILED`` or ``DENIED``; by default as the exit status says.
        command: The command line, if it ran one.
        exit_code: Its exit status.
        id: Id of the call; a second report with the same id is not recorded.
        duration_ms: Its duration.
    """

    tool: str
    arguments: Mapping[str, Any] = {}
    output: str = ""
    status: str = ""
    command: str = ""
    exit_code: int | None = None
    id: str = ""
    duration_ms: int = 0


def agent_actor(name: str) -> str:
    """Return the actor of an agent's name.

    Raises:
        UsageError: It is not a name, or one that only people or AgentX have.

    >>> agent_actor("ci-bot")
    'agent:ci-bot'
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not an agent's name: use letters, digits, '-', '_' and '.'.")
    return f"agent:{name}"


def report_answer(
    engine: Engine, text: str, agent: str, *, final: bool = True, model: str = "", key: str = ""
) -> tuple[Event, tuple[Violation, ...]]:
    """Record what an agent said to the user.

    Returns:
        The event, and the rules of the user that the text breaks.

    Raises:
        UsageError: The text is empty.
    """
    if not text.strip():
        raise UsageError("The answer is empty.")
    actor = agent_actor(agent)
    said, broken = answer_event(engine, text, agent, final=final, model=model)
    return _recorded(engine, Draft(data=said, actor=actor, key=_key(actor, key))), broken


def answer_event(
    engine: Engine, text: str, agent: str, *, final: bool = True, model: str = ""
) -> tuple[AgentMessageSent, tuple[Violation, ...]]:
    """Return the event of an agent's answer, and the rules of the user that the text breaks."""
    text = encodable(text)
    evaluation = engine.evaluate_answer(text)
    broken = (*evaluation.stopping, *Gates(engine).before_answer(text, agent=agent))
    said = AgentMessageSent(
        body=engine.write_path.body(text),
        final=final,
        model=clean(model)[:_MODEL_CHARACTERS],
        kept=evaluation.kept,
        broke=tuple(dict.fromkeys(one.item_id for one in broken)),
    )
    return said, broken


def report_call(engine: Engine, call: ReportedCall, agent: str) -> Event:
    """Record a tool call of an agent and its result, or that it was denied.

    Raises:
        UsageError: The tool is one of AgentX's own, or the status does not exist.
    """
    actor = agent_actor(agent)
    tool = encodable(call.tool).strip()
    if not tool:
        raise UsageError("A tool call needs the tool's name.")
    if tool in Toolbox(engine).names():
        raise UsageError(f"{tool} is a tool of AgentX, which records its own calls: `agentx tool {tool} …`.")
    made = call_event(engine, call)
    return _recorded(engine, Draft(data=made, actor=actor, key=_key(actor, made.call_id)))


def call_event(engine: Engine, call: ReportedCall) -> ToolCallExecuted:
    """Return the event of a tool call of an agent.

    Raises:
        UsageError: The status does not exist.
    """
    return ToolCallExecuted(
        call_id=clean(encodable(call.id))[:200] or uuid.uuid4().hex[:12],
        tool=clean(encodable(call.tool).strip())[:64],
        status=_status(call),
        arguments=bounded(call.arguments),
        output=engine.write_path.body(encodable(call.output)),
        command=clean(encodable(call.command))[:_COMMAND_CHARACTERS],
        exit_code=call.exit_code,
        duration_ms=max(0, call.duration_ms),
    )


def _status(call: ReportedCall) -> ToolStatus:
    given = call.status.upper()
    if given in ("SUCCEEDED", "FAILED", "DENIED"):
        return given  # type: ignore[return-value]
    if given:
        raise UsageError(f"Unknown status {call.status!r}; use succeeded, failed or denied.")
    return "FAILED" if call.exit_code else "SUCCEEDED"


def _key(actor: str, name: str) -> str:
    return f"{REPORTED}{actor}:{encodable(name)[:200]}" if name else ""


def _recorded(engine: Engine, draft: Draft) -> Event:
    (event,) = engine.write_path.record([draft])
    return event
