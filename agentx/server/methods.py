"""The methods of the server: those of :class:`agentx.workspace.Workspace` by name, and commands.

A handler is called in a worker thread with the caller, the parameters, and a function that sends
notifications. It returns what msgspec can encode.
"""

import inspect
import typing
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from typing import Any

import msgspec

from agentx.server.calls import Emit, Later, ServedCall
from agentx.server.errors import PARAMS, Refused
from agentx.server.following import Followers, Stream
from agentx.workspace import Workspace

Handler = Callable[[ServedCall, dict[str, Any], Emit], Any]

PAGE_EVENTS = 1_000
"""Maximum number of events in one answer of ``events``."""


class Method(msgspec.Struct, frozen=True):
    """A method.

    Attributes:
        handler: Its function, or ``MODULE:NAME`` of it, imported at the first call.
        reads: Whether it only reads, so that a process inside an agent's run may call it.
    """

    handler: Handler | str
    reads: bool = False

    def load(self) -> Handler:
        """Return the function."""
        if not isinstance(self.handler, str):
            return self.handler
        module, name = self.handler.split(":")
        found: Handler = getattr(import_module(module), name)
        return found


def _of_workspace(name: str, *, reads: bool) -> Method:
    """Return the method that calls a method of a workspace by keyword arguments of the declared types."""
    function = getattr(Workspace, name)
    signature = inspect.signature(function)

    def handler(call: ServedCall, params: dict[str, Any], emit: Emit) -> Any:
        with call.workspace(params) as found:
            arguments = _checked(function, signature, params)
            if "progress" in signature.parameters:
                arguments["progress"] = lambda step, done, total: emit(
                    "progress", {"step": step, "done": done, "total": total}
                )
            return getattr(found.workspace, name)(**arguments)

    return Method(handler, reads=reads)


_NOT_GIVEN = {"self", "actor", "progress", "follow", "timeout_s", "by", "model"}
"""Parameters that no request can set: the actor comes from the connection."""


def _checked(
    function: Callable[..., Any], signature: inspect.Signature, given: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments for a function, converted to their declared types."""
    types = _types(function)
    known = [name for name in signature.parameters if name not in _NOT_GIVEN]
    if unknown := [name for name in given if name not in known and name != "workspace"]:
        raise Refused(PARAMS, f"Unknown parameter {unknown[0]!r}; known: workspace, {', '.join(known)}.")
    for name in known:
        if signature.parameters[name].default is inspect.Parameter.empty and name not in given:
            raise Refused(PARAMS, f"The parameter {name!r} is missing.")
    try:
        return {name: msgspec.convert(given[name], types[name]) for name in known if name in given}
    except msgspec.ValidationError as error:
        raise Refused(PARAMS, f"A parameter has the wrong type: {error}.") from error


def _types(function: Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(function)


def _state(call: ServedCall, params: dict[str, Any], _emit: Emit) -> Any:
    with call.workspace(params) as found:
        return found.workspace.state


def _events(call: ServedCall, params: dict[str, Any], emit: Emit) -> Any:
    """Return up to ``limit`` events after ``after``; with ``follow``, send each, and future ones."""
    after, limit, follow = (
        params.get("after", 0),
        params.get("limit", PAGE_EVENTS),
        params.get("follow", False),
    )
    if type(after) is not int or type(limit) is not int or after < 0 or limit < 1 or type(follow) is not bool:
        raise Refused(PARAMS, "`after` and `limit` are whole numbers, and `follow` is true or false.")
    if follow:
        stream = Stream(call, call.workspace(params), after, emit)
        return Later(lambda finish: FOLLOWERS.add(stream, finish))
    most = min(limit, PAGE_EVENTS)
    with call.workspace(params) as found:
        listed = list(islice(found.workspace.events(after), most))
    return {"events": listed, "more": len(listed) == most}


FOLLOWERS = Followers()
"""The streams of this process."""

METHODS: dict[str, Method] = {
    "command.run": Method("agentx.server.command_lines:run", reads=True),
    "mcp": Method("agentx.server.agent_calls:handle"),
    "events": Method(_events, reads=True),
    "inspect.open": Method("agentx.server.inspecting:open_inspector"),
    "hook": Method("agentx.hosts.served.serving:hook"),
    "state": Method(_state, reads=True),
    **{
        name: _of_workspace(name, reads=True)
        for name in (
            *("boot", "bisect", "check_answer", "diff", "get_relevant_context", "memory", "moment"),
            *("search", "status", "state_at", "to_settle", "verify"),
        )
    },
    **{
        name: _of_workspace(name, reads=False)
        for name in (
            *(
                "approve",
                "edit_memory",
                "flush",
                "maintain",
                "merge",
                "pin",
                "rebuild",
                "remember",
                "restore",
            ),
            *("retire", "review", "say", "settle", "undo"),
        )
    },
}
"""Every method that a worker thread answers, by name. ``command.run`` decides by its command."""
