"""Answers a host's questions in the process that has the workspace open."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agentx.mcp import memory_calls, prompts, resources, work_calls
from agentx.mcp.catalogue import TOOLS, Arguments, McpTool, RememberWanted, listed, tools_of
from agentx.mcp.messages import McpAnswer, McpRequest, bounded, role_of
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import one_line
from agentx.workspace import Workspace

HANDLERS: dict[str, Callable[[Workspace, Any, str], McpAnswer]] = {
    "context": memory_calls.context,
    "search": memory_calls.search,
    "settle": memory_calls.settle,
    "check": memory_calls.check,
    "tasks": memory_calls.tasks,
    "history": memory_calls.history,
    "read_memory": memory_calls.read_memory,
    "diff": work_calls.diff,
    "restore": work_calls.restore,
    "undo": work_calls.undo,
    "grade": work_calls.grade,
}
"""What answers each tool that is no tool of the workspace; ``remember`` may ask, too."""


def answer(ws: Workspace, request: McpRequest) -> McpAnswer:
    """Answer one question; every error of ours is an answer that says what to do."""
    try:
        match request.kind:
            case "call":
                made = _call(ws, request)
            case "tools":
                made = McpAnswer(listed=_tools(ws, request))
            case "resources":
                made = resources.listed(ws, str(request.arguments.get("cursor") or ""))
            case "read":
                made = resources.read(ws, request.name)
            case "prompt":
                made = prompts.prompt(ws, request.name, request.arguments, role_of(request.agent))
    except (AgentXError, OSError, ValueError) as error:
        what = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
        return McpAnswer(text=bounded(what, "see `agentx log`"), failed=True)
    return msgspec.structs.replace(made, text=bounded(made.text, "ask for less, or for a later part"))


def _call(ws: Workspace, request: McpRequest) -> McpAnswer:
    tool = TOOLS.get(request.name)
    if tool is None or tool not in tools_of(request.profile) or not _is_allowed(ws, tool):
        names = ", ".join(one.name for one in tools_of(request.profile) if _is_allowed(ws, one))
        raise UsageError(f"Unknown tool {one_line(request.name)[:80]!r}. The tools are: {names}.")
    agent = role_of(request.agent)
    if tool.arguments is None:
        return work_calls.own_tool(
            ws, tool.name, request.arguments, agent, request.call_id, may_ask=request.may_ask
        )
    given = _checked(tool, tool.arguments, request.arguments)
    if isinstance(given, RememberWanted):
        return memory_calls.remember(ws, given, agent, may_ask=request.may_ask)
    return HANDLERS[tool.name](ws, given, agent)


def _checked(tool: McpTool, wanted: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    try:
        return msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(wanted)) or "none"
        raise UsageError(f"{tool.name}: {error}. Its arguments: {known}.") from error


def _is_allowed(ws: Workspace, tool: McpTool) -> bool:
    return tool.arguments is not None or tool.name in ws.tools.names()


def _tools(ws: Workspace, request: McpRequest) -> list[dict[str, Any]]:
    own = {schema.name: schema for schema in ws.tools.schemas()}
    return [
        listed(tool, own[tool.name].parameters, own[tool.name].description)
        if tool.arguments is None
        else listed(tool)
        for tool in tools_of(request.profile)
        if _is_allowed(ws, tool)
    ]
