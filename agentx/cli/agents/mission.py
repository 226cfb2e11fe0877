"""``agentx agent mission`` and ``dispatch``: what each agent is for, and which agent can do a task."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, facts, table
from agentx.directing.agent_router import dispatch
from agentx.memory.missions import listed, set_mission
from agentx.storage.text import encodable, plain
from agentx.synthesis.memory.items import CapabilityDetail, FlowDetail, MemoryItem
from agentx.synthesis.scheduling.agent_routing import Dispatch, Need
from agentx.synthesis.state.flows import told

Role = Annotated[
    str, typer.Option("--agent", metavar="ROLE", help="The agent's role; every agent by default.")
]


def list_missions(terminal: Terminal) -> None:
    """List the agents' missions; each start of an agent and each directive includes its mission."""
    with opened(terminal) as ws:
        items = listed(ws.engine)
    terminal.result({"missions": items}, _table(items))


def set_one(
    terminal: Terminal,
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The mission.")],
    agent: Role = "",
) -> None:
    """Set or replace the mission of an agent."""
    with opened(terminal) as ws:
        item = set_mission(ws.engine, encodable(text), encodable(agent))
    terminal.result({"missions": [item]}, _table([item]))


def _table(items: list[MemoryItem]) -> RenderableType:
    if not items:
        return 'No agent has a mission. Set one: `agentx agent mission set --agent ROLE "…"`.'
    rows = [(Text(item.id, "cyan"), item.agent or "everybody", item.text) for item in items]
    return table("id", "agent", "mission", rows=rows)


def dispatch_one(
    terminal: Terminal,
    asked: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The task, in any words.")],
) -> None:
    """Find the flow and the agent for a task, check its capabilities, print the command; start nothing."""
    with opened(terminal) as ws:
        found = dispatch(ws.engine, encodable(asked))
    terminal.result(found, facts(_plan(found)) if found.agent else Text(plain(found.why), "yellow"))


def _plan(found: Dispatch) -> Iterator[tuple[str, str | Text]]:
    if found.flow is not None and isinstance(found.flow.item.detail, FlowDetail):
        item, detail = found.flow.item, found.flow.item.detail
        asks = Text("; needs your approval first" if detail.needs_approval else "", "yellow")
        yield "flow", Text.assemble((item.id, "cyan"), f"  {plain(item.text)}: {told(detail)}", asks)
    else:
        yield "flow", Text("none is recorded for it", "dim")
    yield "agent", Text.assemble((plain(found.agent), "bold"), f": {plain(found.why)}")
    for number, need in enumerate(found.needs):
        yield "takes" if not number else "", _need(need)
    if missing := [need.item.id for need in found.needs if not need.works]:
        yield "first", Text(" ".join(["agentx agent capability check", *missing]), "cyan")
    yield "start", Text(plain(found.command), "bold cyan" if found.ready else "cyan")


def _need(need: Need) -> Text:
    mark, colour, state = {
        True: ("✓", "green", "works"),
        False: ("✗", "red", "does not work"),
        None: ("?", "yellow", "was never checked"),
    }[need.works]
    detail = need.item.detail
    at = detail.checked_at[:10] if isinstance(detail, CapabilityDetail) else ""
    whose = "" if need.has else f"; only {need.item.agent} has it"
    when = f" ({at})" if at else ""
    return Text.assemble(
        (f"{mark} ", colour),
        (f"{need.item.id}  ", "cyan"),
        f"{plain(need.item.text)} {state}{when}",
        (whose, "red"),
    )
