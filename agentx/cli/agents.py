"""``agentx mission`` and ``agentx dispatch``: what each agent is there for, and who can do what."""

from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, table
from agentx.missions import listed, set_mission
from agentx.storage.text import encodable
from agentx.synthesis.items import MemoryItem

Role = Annotated[
    str, typer.Option("--agent", metavar="ROLE", help="The agent's role; every agent where none is named.")
]


def list_missions(ctx: typer.Context) -> None:
    """List what agents are there for: it stands before them at every start, and in every directive."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        found = listed(ws.engine)
    _show(terminal, found)


def set_one(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="What it is there for.")],
    agent: Role = "",
) -> None:
    """Give an agent its mission, in place of the one that it had."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        item = set_mission(ws.engine, encodable(text), encodable(agent))
    _show(terminal, [item])


def _show(terminal: Terminal, items: list[MemoryItem]) -> None:
    if terminal.json:
        terminal.document({"missions": items})
    elif not items:
        terminal.show('No agent has a mission; give one: `agentx mission set --agent ROLE "…"`.')
    else:
        rows = [(Text(item.id, "cyan"), item.agent or "everybody", item.text) for item in items]
        terminal.show(table("id", "agent", "mission", rows=rows))


COMMANDS = {"mission": {"list": list_missions, "set": set_one}}
