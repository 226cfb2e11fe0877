"""``agentx flow``: procedures, their success rates, and those that past runs suggest."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agentx.cli.memory.items import STANDING_COLOURS, framed
from agentx.cli.opened import MOMENT, opened
from agentx.cli.terminal import Terminal, counted, table
from agentx.memory.backtest import Backtested
from agentx.memory.flows import read_steps
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, one_line
from agentx.synthesis.memory.items import FlowDetail, MemoryItem
from agentx.synthesis.state.flow_lessons import lessons_before
from agentx.synthesis.state.flows import FlowMatch, advice, effectiveness, match, standing, told
from agentx.workspace import Workspace

IN_FULL = 3
"""More candidates of a backtest than this become a table; `agentx memory review` shows each in full."""

_ORDER = ("proven", "unproven", "unused", "broken")

Name = Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Its ID or name.")]
Steps = Annotated[
    list[str] | None, typer.Option("--step", metavar="TEXT", help="A step (repeatable, in order).")
]
From = Annotated[
    str, typer.Option("--from", metavar="FILE", help="Read the steps from a Markdown list; '-' reads stdin.")
]
Triggers = Annotated[
    list[str] | None,
    typer.Option("--trigger", metavar="PHRASE", help="Another phrase that calls for it (repeatable)."),
]


def list_flows(
    terminal: Terminal,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also candidate and retired flows.")] = False,
) -> None:
    """List flows, proven ones first, with their success rates."""

    def rank(item: MemoryItem) -> tuple[bool, int, float]:
        detail = _detail(item)
        return item.status != "active", _ORDER.index(standing(detail)), -effectiveness(detail).low

    with opened(terminal) as ws:
        items = sorted(ws.flows.all(None if everything else "active"), key=rank)
        state = ws.state
    if terminal.json:
        terminal.document([_document(item) for item in items])
        return
    if items:
        columns = ("id", "", "works in", "flow")
        terminal.show(table(*columns, rows=[_row(item, everything=everything) for item in items]))
    else:
        terminal.show('There are no flows. Record one: `agentx flow add "NAME" --step TEXT --step TEXT`.')
    for one in advice(state):
        terminal.note(f"{one.action} {one.item}: {one.why}.")
    if candidates := sum(1 for item in state.active("flow", status="candidate")):
        terminal.note(f"{counted(candidates, 'candidate flow')} to settle: `agentx memory review`.")


def _detail(item: MemoryItem) -> FlowDetail:
    return item.detail if isinstance(item.detail, FlowDetail) else FlowDetail(())


def _row(item: MemoryItem, *, everything: bool) -> tuple[Text | str, ...]:
    detail = _detail(item)
    approval = ", asks for approval" if detail.needs_approval else ""
    name = Text.assemble(one_line(item.text), (f"  {counted(len(detail.steps), 'step')}{approval}", "dim"))
    shown = item.status if everything and item.status != "active" else standing(detail)
    return Text(item.id, "cyan"), Text(shown, STANDING_COLOURS.get(shown, "dim")), told(detail), name


def _document(item: MemoryItem) -> dict[str, Any]:
    """Return a flow for programs: the item, and its success rate."""
    detail = _detail(item)
    return {"item": item, "standing": standing(detail), "effectiveness": effectiveness(detail)}


def show_flow(terminal: Terminal, name: Name) -> None:
    """Show a flow: steps, the lessons that concern them, triggers, success rate."""
    with opened(terminal) as ws:
        item, _ = ws.flows.find(name)
        lessons = lessons_before(ws.state.items.values(), item)
    shown = {str(step): [one.id for one in found] for step, found in lessons.items()}
    terminal.result(_document(item) | {"lessons": shown}, framed(terminal, item, lessons=lessons))


def add_flow(
    terminal: Terminal,
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Its name, as a user would ask for it.")
    ],
    step: Steps = None,
    source: From = "",
    trigger: Triggers = None,
    agent: Annotated[str, typer.Option(metavar="ROLE", help="The agent's role; any agent by default.")] = "",
    *,
    approval: Annotated[
        bool, typer.Option("--approval", help="The user must approve it before it starts.")
    ] = False,
) -> None:
    """Record a procedure; agents get its steps when a task calls for it."""
    steps = _steps(step, source) or []
    with opened(terminal) as ws:
        triggers = [encodable(one) for one in trigger or ()]
        item = ws.flows.add(
            encodable(name), steps, triggers=triggers, needs_approval=approval, agent=encodable(agent)
        )
    terminal.result(_document(item), framed(terminal, item))


def _steps(given: list[str] | None, source: str) -> list[str] | None:
    """Return the steps from the command line or from a file; ``None`` if neither is given."""
    if given and source:
        raise UsageError("Give the steps with `--step` or with `--from FILE`, not both.")
    if not source:
        return [encodable(one) for one in given] if given else None
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} cannot be read: {error}.") from error
    return read_steps(encodable(text))


def edit_flow(
    terminal: Terminal,
    flow: Name,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Its new name.")] = None,
    step: Steps = None,
    source: From = "",
    trigger: Triggers = None,
    *,
    approval: Annotated[
        bool | None,
        typer.Option("--approval/--no-approval", help="Whether the user must approve it before it starts."),
    ] = None,
) -> None:
    """Replace the given parts of a flow; new steps make a new version with a record of its own."""
    steps = _steps(step, source)
    if name is None and steps is None and trigger is None and approval is None:
        raise UsageError("Nothing to change; see `agentx flow edit --help`.")
    triggers = [encodable(one) for one in trigger] if trigger is not None else None
    with opened(terminal) as ws:
        _, before = ws.flows.find(flow)
        renamed = encodable(name) if name is not None else None
        item = ws.flows.edit(flow, name=renamed, steps=steps, triggers=triggers, needs_approval=approval)
    terminal.result(_document(item), framed(terminal, item))
    version = _detail(item).version
    if version != before.version and effectiveness(before).tries:
        terminal.note(f"Its steps changed: this is version {version}. Before, it worked in {told(before)}.")


def retire_flows(
    terminal: Terminal,
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", show_default=False, help="IDs, from `agentx flow list`.")
    ],
) -> None:
    """Retire flows: agents no longer get them, and they stay in the history."""
    with opened(terminal) as ws:
        for name in names:
            ws.flows.find(name)
        items = [ws.flows.retire(name) for name in names]
    terminal.result(list(map(_document, items)), *(framed(terminal, item) for item in items))


def check_flow(
    terminal: Terminal,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="The task or action, in any words.")
    ],
) -> None:
    """Find the flow that a task calls for, if any, with its steps and success rate."""
    if not text.strip():
        raise UsageError("Describe the task: `agentx flow check TEXT`.")
    with opened(terminal) as ws:
        found = ws.flows.check(encodable(text))
        nearest = None if found else ws.flows.nearest(encodable(text))
        if terminal.json:
            shown = list(map(_match, found))
            flow, others = shown[0] if shown else None, shown[1:]
            terminal.document({"flow": flow, "others": others, "nearest": nearest and _match(nearest)})
        elif found:
            _show_matches(terminal, ws, found)
        else:
            known = len(ws.flows.all())
            terminal.show(f"No flow matches; {known} {'is' if known == 1 else 'are'} known.")
            if nearest:
                too_far = "not similar enough to be shown to an agent"
                terminal.note(f"Nearest: {nearest.item.id}, for {nearest.why}; {too_far}.")
            if near := match(ws.state, encodable(text), status="candidate"):
                name = f"{near[0].item.id}, “{one_line(near[0].item.text)}”"
                terminal.note(f"{name}, is only a candidate: `agentx memory review`.")


def _match(one: FlowMatch) -> dict[str, Any]:
    return _document(one.item) | {"score": one.score, "by": one.by, "why": one.why}


def _show_matches(terminal: Terminal, ws: Workspace, found: list[FlowMatch]) -> None:
    best, *others = found
    terminal.show(framed(terminal, best.item, ("because", best.why)))
    for one in advice(ws.state):
        if one.item == best.item.id:
            terminal.note(f"{one.action} it: {one.why}.")
    if others:
        names = ", ".join(f"{one.item.id} “{one_line(one.item.text)}”" for one in others[:3])
        terminal.note(f"Less near: {names}.")


def backtest(
    terminal: Terminal,
    since: Annotated[str, typer.Option(metavar="MOMENT", help=f"Only runs that began after {MOMENT}.")] = "",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the candidates.")] = False,
) -> None:
    """Replay past runs, and propose flows from what worked and lessons from what failed first."""
    with opened(terminal) as ws, terminal.busy("Replaying past runs …"):
        found = ws.backtest(encodable(since) or None, dry_run=dry_run)
    if terminal.json:
        terminal.document(found)
        return
    proposed = (*found.flows, *found.lessons)
    if len(proposed) <= IN_FULL:
        terminal.show(*(framed(terminal, item) for item in proposed))
    else:
        rows: list[tuple[Text | str, ...]] = []
        for item in found.flows:
            steps = one_line(" → ".join(_detail(item).steps))
            what = Text.assemble(one_line(item.text), (f"\n{steps}", "dim"))
            rows.append((Text(item.id, "cyan"), told(_detail(item)), what))
        rows += [(Text(item.id, "cyan"), "", one_line(item.text)) for item in found.lessons]
        terminal.show(table("id", "worked", "what, and how", rows=rows), "")
    terminal.show(_summary(found, dry_run=dry_run))
    if found.left:
        terminal.note(f"{found.left} more; settle these, and run it again.")


def _summary(found: Backtested, *, dry_run: bool) -> str:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in found.runs.items() if count)
    replayed = counted(sum(found.runs.values()), "past run") + (f" ({outcomes})" if outcomes else "")
    if not found.flows and not found.lessons:
        return f"{replayed}: nothing succeeded or failed often enough for a new candidate."
    both = (("flow", found.flows), ("lesson", found.lessons))
    proposed = [counted(len(items), name) for name, items in both if items]
    then = "nothing was recorded" if dry_run else "settle the candidates with `agentx memory review`"
    return f"{replayed}: {' and '.join(proposed)} proposed; {then}."
