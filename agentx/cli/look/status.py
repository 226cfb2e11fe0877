"""``agentx status`` and ``agentx log``: the state of the workspace, and its history."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Annotated, get_args

import typer
from rich.text import Text

from agentx.agents.turn import is_anyone_at_work
from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal, facts, row
from agentx.history.status import WorkspaceStatus
from agentx.pipelines.tracked import pipelines
from agentx.policy import approvals
from agentx.storage.errors import UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.facts import FACTS
from agentx.storage.events.pipeline_events import PipelineStarted
from agentx.storage.events.types import Event, list_paths
from agentx.storage.text import one_line, plain, shorten
from agentx.synthesis.memory.conclusions import CONCLUSIONS
from agentx.synthesis.memory.items import HotIssueDetail, Kind, MemoryItem
from agentx.workspace import Workspace

ISSUES_SHOWN = 5
_RUN_WORDS = 30

_PLURALS = {
    "capability": "capabilities",
    "knowledge": "knowledge",
}
_COLOURS = {
    "user": "cyan",
    "agent": "magenta",
    "engine": "dim",
    "watch": "cyan",
    "tool": "blue",
    "import": "blue",
}


def status(ctx: typer.Context) -> None:
    """Show the state of the workspace; edits made outside AgentX are recorded first."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        stands = ws.status()
        issues, calls, pipeline = ws.memory("hot_issue"), ws.state.pending, _pipeline(ws)
        asked = approvals.waiting(ws.engine)
    if terminal.json:
        terminal.document(stands)
        return
    waiting = [f"{call.tool} ({call.call_id})" for call in asked]
    unknown = [f"{call.tool} ({call.call_id})" for call in calls.values() if not call.awaits_approval]
    terminal.show(
        Text.assemble((one_line(stands.title), "bold"), f"  {plain(stands.root)}"),
        facts([*_restricted(stands), *_facts(stands, issues, waiting, unknown, pipeline)]),
    )


def _pipeline(ws: Workspace) -> str:
    """Return the pipeline that was started last and its status; empty if there was none."""
    if PipelineStarted.__name__ not in ws.state.counts:
        return ""
    latest = max(pipelines(ws.engine).known.values(), key=lambda one: one.started_at)
    cut_off = latest.status == "RUNNING" and not is_anyone_at_work(ws.engine)
    return f"{latest.name} {'INTERRUPTED' if cut_off else latest.status}"


def _restricted(stands: WorkspaceStatus) -> Iterator[tuple[str, str | Text]]:
    if stands.restricted:
        yield "restricted", Text(f"{plain(stands.restricted)}: agentx trust", "yellow")


def _facts(
    stands: WorkspaceStatus, issues: list[MemoryItem], waiting: list[str], unknown: list[str], pipeline: str
) -> Iterator[tuple[str, str | Text]]:
    yield "commit", Text.assemble((stands.commit[:7], "yellow"), f"  {one_line(stands.subject)}")
    yield "history", f"{stands.events:,} event{'s' * (stands.events != 1)}"
    yield "artifacts", f"{stands.files:,} file{'s' * (stands.files != 1)}"
    yield "memory", _active(stands) or "nothing yet"
    if stands.proposed:
        yield "", Text(f"{_count('proposal', stands.proposed)} to settle: agentx memory review", "yellow")
    for number, issue in enumerate(issues[:ISSUES_SHOWN]):
        yield "open" if not number else "", Text(one_line(_issue(issue)), "red")
    if len(issues) > ISSUES_SHOWN:
        yield "", Text(f"and {len(issues) - ISSUES_SHOWN} more: agentx memory list --kind hot_issue", "red")
    if stands.last_run:
        yield "last run", one_line(shorten(stands.last_run, _RUN_WORDS))
    if pipeline:
        yield "pipeline", Text(f"{plain(pipeline)}: agentx pipeline")
    if waiting:
        yield "waiting", Text(f"{one_line(', '.join(waiting))}: agentx approve", "yellow")
    if unknown:
        yield (
            "unknown",
            Text(f"outcome of {one_line(', '.join(unknown))}: its process ended", "yellow"),
        )
    if stands.outside:
        yield "edited", f"{one_line(list_paths(stands.outside))}: now recorded"
    if stands.damage:
        yield "damage", Text(f"{_count('line', len(stands.damage))} of the history: agentx doctor", "red")
    yield "state digest", Text(stands.digest, "dim")


def _active(stands: WorkspaceStatus) -> str:
    """Return the number of active items of each kind, the most binding kinds first."""
    return " · ".join(_count(kind, stands.active[kind]) for kind in get_args(Kind) if kind in stands.active)


def _count(kind: str, number: int) -> str:
    name = kind.replace("_", " ")
    return f"{number} {name if number == 1 else _PLURALS.get(kind, name + 's')}"


def _issue(item: MemoryItem) -> str:
    detail = item.detail
    return f"{item.id}  {detail.check or detail.runner}" if isinstance(detail, HotIssueDetail) else item.text


def log(
    ctx: typer.Context,
    count: Annotated[int, typer.Option("-n", "--number", min=1, help="Number of latest events.")] = 20,
    after: Annotated[
        int | None, typer.Option(metavar="SEQ", min=0, help="All events after this one instead.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only events of this type (repeatable)."),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also internal events.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new events, until Ctrl-C.")
    ] = False,
) -> None:
    """List events, one per line: number, time, actor, and what happened.

    With --json each line is one event as recorded, and all types are shown.
    """
    terminal: Terminal = ctx.obj
    wanted = _types(kind or [])
    with opened(terminal) as ws:
        whole = everything or terminal.json or bool(wanted)
        last = 0
        for event in _chosen(ws, count, after, wanted, whole=whole):
            _show(terminal, event)
            last = event.seq
        if follow:
            last = max(last, ws.state.seq if after is None else after)
            for event in _matching(ws.events(after=last, follow=True), wanted, whole=whole):
                _show(terminal, event)


def _types(names: list[str]) -> set[str]:
    known = FACTS | CONCLUSIONS
    for name in names:
        if name not in known:
            raise UsageError(f"There is no event type {name!r}. Types: {', '.join(sorted(known))}.")
    return set(names)


def _chosen(
    ws: Workspace, count: int, after: int | None, wanted: set[str], *, whole: bool
) -> Iterable[Event]:
    events = _matching(ws.events(after=after or 0), wanted, whole=whole)
    return events if after is not None else deque(events, maxlen=count)


def _matching(events: Iterable[Event], wanted: set[str], *, whole: bool) -> Iterator[Event]:
    return (event for event in events if (not wanted or event.type in wanted) and (whole or event.describe()))


def _show(terminal: Terminal, event: Event) -> None:
    if terminal.json:
        terminal.line(as_json(event))
        return
    told = one_line(event.describe()).removeprefix(f"{event.actor} ")
    terminal.show(
        row(
            Text(f"{event.seq:>5}", "dim"),
            Text(f"{event.at[:10]} {event.at[11:19]}", "dim"),
            Text(f"{one_line(event.actor):<18}", _COLOURS.get(Actor.parse(event.actor).role, "")),
            Text(told or one_line(event.type), _style(told)),
            wrap=terminal.out.is_terminal,
        )
    )


def _style(told: str) -> str:
    if not told:
        return "dim"
    return "yellow" if told.startswith("Deny") else ""
