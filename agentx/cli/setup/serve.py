"""``agentx serve``: the server that keeps workspaces open, its status, and its end."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from agentx.cli.terminal import Terminal, counted, facts
from agentx.client import holder
from agentx.client.client import Client, ServerUnavailable
from agentx.client.place import runtime_dir
from agentx.server.server import serve as serve_until_stopped
from agentx.storage.errors import UsageError
from agentx.storage.text import clip, one_line, plain

_TITLE = 40
"""Maximum number of columns of a title."""

_ANSWERS_S, _GRACE_S = 5.0, 5.0
"""How long the server may take to answer, and one that does not answer to end."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


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
    serve_until_stopped(terminal.settings, detached=detached)


def _ask(terminal: Terminal, *, stop: bool) -> None:
    environ = {name: value for name, value in terminal.settings.environ.items() if name != "AGENTX_NO_SERVER"}
    try:
        with Client.connect(environ, start=False, timeout_s=_ANSWERS_S) as client:
            found: dict[str, Any] = client.call("server.stop" if stop else "server.status")
    except ServerUnavailable:
        _unanswered(terminal, runtime_dir(environ), stop=stop)
        return
    if stop:
        terminal.result({"stopped": True}, "The server finishes its requests and exits.")
        return
    kept = found["workspaces"]
    parts = [part for one in reversed(kept) for part in (Text(), *_workspace(one))]
    terminal.result({"running": True, **found}, facts(_about(found)), *parts)


def _unanswered(terminal: Terminal, where: str, *, stop: bool) -> None:
    """Say whether a server runs that does not answer, and end it if asked to."""
    pid = holder.holder(where)
    if not pid:
        terminal.result(
            {"running": False}, "No server runs. The next command that profits from one starts it."
        )
    elif not stop:
        told = f"The server, process {pid}, runs and does not answer. `agentx serve --stop` ends it."
        terminal.result({"running": True, "answers": False, "pid": pid}, told)
    else:
        if not holder.end(where, pid, _GRACE_S):
            raise UsageError(f"The server, process {pid}, could not be ended: the system does not end it.")
        told = f"The server, process {pid}, did not answer, and was ended. What was recorded is kept."
        terminal.result({"stopped": True, "answered": False, "pid": pid}, told)


def _about(found: Mapping[str, Any]) -> Iterator[tuple[str, str | Text]]:
    yield "server", Text.assemble((f"process {found['pid']}", "bold"), f"  agentx {found['version']}")
    yield "up", f"{_span(found['uptime_s'])}; exits after {_span(found['idle_exit_s'])} without use"
    used, most = found["rss_bytes"] / 1e6, found["most_rss_bytes"] / 1e6
    yield "memory", Text.assemble(_bar(used / most), f"  {used:,.0f} of {most:,.0f} MB")
    kept, room = len(found["workspaces"]), found["most_workspaces"]
    yield "workspaces", Text.assemble(_bar(kept / max(room, 1)), f"  {kept} of {room} open")
    yield (
        "served",
        f"{counted(found['requests'], 'request')}, {counted(found['connections'], 'connection')} now",
    )
    if found["http_port"]:
        yield "HTTP", f"http://127.0.0.1:{found['http_port']}, token in http.json: /rpc, /mcp"
    if found["inspect_port"]:
        open_pages = counted(found["pages"], "open page")
        yield "inspector", f"http://127.0.0.1:{found['inspect_port']}/inspect/, {open_pages}"
    if found["followers"]:
        yield "followed", f"by {counted(found['followers'], 'client')}"


def _workspace(one: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the lines of an open workspace: what it is and does, and where."""
    requests = one["requests"]
    told = [
        counted(one["events"], "event"),
        f"{counted(requests, 'request')} now" if requests else f"used {_span(one['idle_s'])} ago",
    ]
    title = clip(one_line(one["title"]), _TITLE)
    yield Text.assemble((title, "bold"), " " * (_TITLE + 2 - len(title)), " · ".join(told))
    yield Text(plain(one["root"]), "dim", overflow="fold")


def _bar(share: float, columns: int = 20) -> Text:
    filled = min(columns, round(share * columns))
    colour = "red" if share > 0.9 else "green"  # noqa: PLR2004 - nearly full
    return Text.assemble(("━" * filled, colour), ("─" * (columns - filled), "dim"))


def _span(seconds: float) -> str:
    """Return a time span in its largest unit.

    >>> _span(5), _span(900), _span(7_300)
    ('5 s', '15 min', '2 h')
    """
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
