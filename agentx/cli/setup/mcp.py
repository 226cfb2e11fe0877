"""``agentx mcp``: serve the workspace to another agent over the Model Context Protocol."""

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from agentx.cli.terminal import Terminal, table
from agentx.mcp.catalogue import PROFILES, compact
from agentx.mcp.messages import McpRequest
from agentx.mcp.protocol import McpPlace
from agentx.mcp.resident import Resident
from agentx.mcp.stdio import serve_stdio
from agentx.storage.errors import UsageError
from agentx.synthesis.language.tokens import count_tokens


def mcp(
    terminal: Terminal,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help=f"Which tools are offered: {', '.join(PROFILES)}.")
    ] = "default",
    *,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Print the tools of each profile and what their schemas cost.")
    ] = False,
) -> None:
    """Serve the workspace to another agent's host over MCP, on standard input and output.

    The host starts this itself, as docs/mcp.md shows.
    """
    if profile not in PROFILES:
        raise UsageError(f"Unknown profile {profile!r}; use one of: {', '.join(PROFILES)}.")
    if tokens:
        _show(terminal)
        return
    if terminal.interactive:
        terminal.note("This speaks the Model Context Protocol to a program; to end it, press Ctrl-D.")
    serve_stdio(McpPlace(os.path.abspath(terminal.folder), profile), terminal.settings)


def _show(terminal: Terminal) -> None:
    resident = Resident(os.path.abspath(terminal.folder), terminal.settings)
    try:
        found = list(_costs(resident))
    finally:
        resident.close()
    rows = [(name, str(len(tools)), f"{cost:,}", ", ".join(tools)) for name, cost, tools in found]
    told = [{"profile": name, "tokens": cost, "tools": tools} for name, cost, tools in found]
    terminal.result(told, table("profile", "tools>", "tokens>", "names", rows=rows))


def _costs(resident: Resident) -> Iterator[tuple[str, int, list[str]]]:
    """Yield each profile with the tokens of its tools and their names.

    Raises:
        UsageError: There is no workspace, so what it allows is unknown.
    """
    for profile in PROFILES:
        made = resident.ask(McpRequest(kind="tools", profile=profile))
        if made.failed:
            raise UsageError(made.text)
        yield profile, count_tokens(compact(made.listed)), [one["name"] for one in made.listed]
