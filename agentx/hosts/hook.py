"""The entry point of every hook: ``agentx hook HOST``, called by the host with a payload on standard input.

Invariant: it never stops the host, except to deny what a rule denies. Whatever goes wrong, it ends in time
with the host's answer for "go on". It is one request to the server; for what it does without one see
:mod:`agentx.hosts.away`.

Loads the standard library alone, and little of it.
"""

import json
import os
import resource
import select
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM
from _socket import socket as Socket  # noqa: N812 - the module `socket` would double the time of the import

from agentx.client import place
from agentx.client.identity import identity
from agentx.hosts import away
from agentx.hosts.action import BEFORE, END, PROMPT, START, HostAction, HostReply, shortened
from agentx.hosts.host import Host, load
from agentx.hosts.place import workspace_of
from agentx.storage.errors import AgentXError

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

METHOD = "hook"

SETTLE = "--settle"
"""After a host: its agent has the tool ``settle`` of AgentX's MCP server, and is asked to use it."""

WARM = "--warm"
"""Instead of a host, with a workspace: have a server open it and record what was spooled."""

WAIT_S = {START: 1.2, PROMPT: 1.2, BEFORE: 0.9, END: 0.8}
"""How long to wait for the server's answer, by moment.

Claude Code ends hooks of a session's end after 1.5 s.
"""

STARTING_S = {START: 4.0, PROMPT: 2.5}
"""How long to wait, by moment, where a server had to be started first.

A session's first prompt may give a rule that its first tool call breaks. Other moments do not wait.
"""

WAIT = "AGENTX_HOOK_WAIT_S"
"""Variable with another time to wait, for all moments."""

_OTHER_WAIT_S = 0.8
_LOOK_S = 0.03
_READ_S = 5.0
_MOST_BYTES = 32 << 20
_MOST_REQUEST = 6 << 20
_DOWN_S = 2.0
"""After a server did not answer in time, it is not asked again for this long."""

_DOWN = "unresponsive"
_PIECE = 1 << 16
_ANEW = {-32001, -32004}
"""Errors of a server that is about to exit."""

_FAILED, _INSIDE_RUN = -32000, -32002
_LOCKS, _MARK = 10, 1 << 40
"""The limit by which a process of an agent's run is known; see :func:`agentx.settings.is_marked`."""


class AgentsHook(AgentXError):
    """The server knows this hook as started by an agent's command."""


class NotRecorded(AgentXError):
    """The server answered that it cannot record here, and why, as in a workspace that is read-only."""


def main(arguments: "list[str]") -> int:
    """Answer one hook; return the exit status.

    Args:
        arguments: The name of the host.
    """
    if arguments[:1] == [WARM]:
        warm(arguments[1], place.environment())
        return 0
    try:
        host = load(arguments[0])
    except (IndexError, KeyError):
        sys.stderr.write("agentx: usage: agentx hook HOST; a host that `agentx install` set up calls it.\n")
        return 1
    try:
        printed, status = respond(host, _stdin(), place.environment(), settles=SETTLE in arguments)
    except Exception:  # noqa: BLE001 - whatever it is, the host goes on
        printed, status = host.write(HostAction(host=host.name), HostReply())
    try:
        data = printed.encode()
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        pass
    return status


def respond(
    host: Host, data: bytes, environ: "Mapping[str, str]", *, settles: bool = False
) -> "tuple[str, int]":
    """Return what to print for a host, and the exit status.

    Args:
        host: The host.
        data: The payload as it was sent.
        environ: The environment of the hook.
        settles: Whether the agent has the tool ``settle``.
    """
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        return host.write(HostAction(host=host.name), HostReply())
    action = host.read(payload, environ)
    action.settles = settles
    if not action.moment:
        return host.write(action, HostReply())
    try:
        reply = _reply(host, action, environ)
    except Exception:  # noqa: BLE001 - whatever it is, the host goes on
        reply = HostReply()
    return host.write(action, reply)


def _reply(host: Host, action: HostAction, environ: "Mapping[str, str]") -> HostReply:
    # The session's project rules, wherever its agent changes to.
    project = environ.get(host.project_variable) if host.project_variable else ""
    workspace, action.sharing = workspace_of(project, environ) if project else ("", "")
    if not workspace:
        workspace, action.sharing = workspace_of(action.cwd or ".", environ)
    if not workspace:
        return HostReply()
    try:  # noqa: SIM105 - contextlib would have to be loaded
        host.mark(action, environ)
    except OSError:
        pass
    key = os.urandom(12).hex()
    try:
        if environ.get("AGENTX_RUN") or 0 <= resource.getrlimit(_LOCKS)[1] <= _MARK:
            return _inside_run(action, workspace, environ)
        if place.is_off(environ):
            in_process = __import__("agentx.hosts.served.serving", fromlist=["in_process"]).in_process
            return HostReply.of(in_process(workspace, action.as_dict(), key))
        found = ask(action, workspace, environ, key)
    except AgentsHook:
        return _inside_run(action, workspace, environ)
    except AgentXError as error:
        return away.answer(action, workspace, environ, key, why=str(error))
    return away.answer(action, workspace, environ, key) if found is None else found


def _inside_run(action: HostAction, workspace: str, environ: "Mapping[str, str]") -> HostReply:
    """Answer a hook that an agent's command started: nobody here is the user, and nothing is recorded."""
    return (
        away.check(action, away.read_checks(workspace, environ)) if action.moment == BEFORE else HostReply()
    )


def ask(action: HostAction, workspace: str, environ: "Mapping[str, str]", key: str) -> "HostReply | None":
    """Return the server's reply; ``None`` if it does not answer in time. Without a server, one is started.

    Raises:
        AgentsHook: An agent's command started this hook.
        NotRecorded: The server cannot record here.
        PlaceRefused: No server can run, since the runtime directory is not private to this user.
    """
    where = place.runtime_dir(environ)
    down = f"{where}/{_DOWN}"
    try:
        if time.time() - os.stat(down).st_mtime < _DOWN_S:
            return None
    except OSError:
        pass
    end = time.monotonic() + wait_s(action.moment, environ)
    connection = None
    try:
        try:
            connection = _connected(where, end)
        except (FileNotFoundError, ConnectionRefusedError):
            _start(workspace, environ)
            if action.moment not in STARTING_S:
                return None
            end = time.monotonic() + wait_s(action.moment, environ, STARTING_S)
            connection = _connected_later(where, end)
        found, anew = _asked(connection, _request(action, workspace, key), end)
    except TimeoutError:
        if action.moment in WAIT_S:  # another may only be slow
            _touch(down)
        return None
    except (OSError, ValueError):
        return None
    finally:
        if connection is not None:
            connection.close()
    if anew:
        _start(workspace, environ)
    return found


def _connected(where: str, end: float) -> Socket:
    """Return a connection to the server."""
    place.check(where)
    connection = Socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(_left(end))
        connection.connect(f"{where}/{place.SOCKET}")
    except BaseException:
        connection.close()
        raise
    return connection


def _connected_later(where: str, end: float) -> Socket:
    """Return a connection to a server that is being started.

    Raises:
        TimeoutError: It was not there in time.
    """
    while True:
        time.sleep(_LOOK_S)
        try:
            return _connected(where, end)
        except (FileNotFoundError, ConnectionRefusedError):
            _left(end)


def wait_s(moment: str, environ: "Mapping[str, str]", usual: "Mapping[str, float]" = WAIT_S) -> float:
    """Return how long to wait for the server's answer at a moment: ``AGENTX_HOOK_WAIT_S``, or as usual."""
    try:
        own = float(environ.get(WAIT, ""))
    except ValueError:
        own = 0.0
    return own if own > 0 else usual.get(moment, _OTHER_WAIT_S)


def _request(action: HostAction, workspace: str, key: str) -> bytes:
    params = {"workspace": workspace, "key": key, "action": action.as_dict()}
    message = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": params, "agentx": identity()}
    line = json.dumps(message).encode()
    if len(line) > _MOST_REQUEST:
        action.output = shortened(action.output, _PIECE)
        action.text = shortened(action.text, _PIECE)
        action.arguments = {
            name: value if len(str(value)) <= _PIECE else shortened(str(value), _PIECE)
            for name, value in action.arguments.items()
        }
        params["action"] = action.as_dict()
        line = json.dumps(message).encode()
    return line + b"\n"


def _asked(connection: Socket, line: bytes, end: float) -> "tuple[HostReply | None, bool]":
    """Send a request; return the reply, and whether another server is to be started.

    Raises:
        TimeoutError: It did not come in time.
        OSError: The server went away.
        AgentsHook: An agent's command started this hook.
        NotRecorded: The server cannot record here.
    """
    connection.settimeout(_left(end))
    connection.sendall(line)
    heard = b""
    while b"\n" not in heard:
        connection.settimeout(_left(end))
        piece = connection.recv(_PIECE)
        if not piece:
            return None, False
        heard += piece
    answer: dict[str, Any] = json.loads(heard)
    if "error" in answer:
        code = answer["error"].get("code")
        if code == _INSIDE_RUN:
            raise AgentsHook
        if code == _FAILED and (why := answer["error"].get("message")):
            raise NotRecorded(str(why))
        return None, code in _ANEW
    result = answer.get("result")
    return (HostReply.of(result) if isinstance(result, dict) else None), False


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _start(workspace: str, environ: "Mapping[str, str]") -> None:
    """Start a server in the background, and have it open the workspace, for the next hook."""
    start_detached = __import__("agentx.client.client", fromlist=["start_detached"]).start_detached
    try:  # noqa: SIM105 - contextlib would have to be loaded
        start_detached(environ, ("-P", "-m", "agentx", "hook", WARM, workspace))
    except OSError:
        pass


def warm(workspace: str, environ: "Mapping[str, str]") -> None:
    """Start a server if none runs, and have it open a workspace and record what was spooled."""
    client = __import__("agentx.client.client", fromlist=["Client"])
    try:
        with client.Client.connect(environ) as server:
            server.call(METHOD, workspace=workspace, key=WARM, action={"host": "", "moment": WARM})
    except (client.ServerUnavailable, client.ServerLost, client.RequestFailed, place.PlaceRefused, OSError):
        pass  # the next hook tries again


def _touch(path: str) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        os.utime(path)
    except OSError:
        pass


def _stdin() -> bytes:
    """Return standard input, as far as it comes in time and is not too much."""
    end, parts, size = time.monotonic() + _READ_S, [], 0
    while size <= _MOST_BYTES and (left := end - time.monotonic()) > 0:
        if not select.select([0], [], [], left)[0]:
            break
        piece = os.read(0, 1 << 20)
        if not piece:
            break
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)
