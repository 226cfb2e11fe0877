"""``agentx serve``: the server that keeps workspaces open, its status, and its end."""

from typing import Annotated, Any

import typer

from agentx.cli.terminal import Terminal, counted, facts, table
from agentx.client.client import Client, ServerUnavailable
from agentx.server.server import serve as serve_until_stopped
from agentx.storage.errors import UsageError

_WAIT_S = 30.0


def serve(
    terminal: Terminal,
    *,
    status: Annotated[bool, typer.Option("--status", help="Show what the server does.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the server after its requests.")] = False,
    detached: Annotated[bool, typer.Option("--detached", hidden=True)] = False,
) -> None:
    """Keep workspaces open and answer commands quickly, until Ctrl-C.

    A command that profits from it starts the server by itself, in the background.
    """
    if status and stop:
        raise UsageError("Give one of --status and --stop.")
    if status or stop:
        _ask(terminal, stop=stop)
        return
    serve_until_stopped(terminal.settings, wait_s=_WAIT_S if detached else 0.0)


def _ask(terminal: Terminal, *, stop: bool) -> None:
    try:
        with Client.connect(terminal.settings.environ, start=False) as client:
            found: dict[str, Any] = client.call("server.stop" if stop else "server.status")
    except ServerUnavailable as error:
        terminal.result({"running": False}, "No server runs.")
        terminal.note(str(error))
        return
    if stop:
        terminal.result({"stopped": True}, "The server finishes its requests and exits.")
        return
    rows = table(
        "workspace",
        "events>",
        "users>",
        rows=[(one["root"], f"{one['events']:,}", str(one["users"])) for one in found["workspaces"]],
    )
    about = facts(
        [
            ("process", str(found["pid"])),
            ("version", found["version"]),
            ("up", f"{found['uptime_s']:.0f} s"),
            ("requests", counted(found["requests"], "request")),
            ("memory", f"{found['rss_bytes'] / 1e6:.0f} MB"),
        ]
    )
    terminal.result({"running": True, **found}, about, rows)
