"""``agentx status`` and ``agentx log``: the state of the workspace, and its history."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Annotated, get_args

import typer
from rich.text import Text

from agentx.agents.turn import is_anyone_at_work
from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal, counted, facts, minute, row
from agentx.history.status import FollowedStatus, WorkspaceStatus
from agentx.pipelines.tracked import pipelines
from agentx.policy import approvals
from agentx.storage.errors import UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.facts import FACTS
from agentx.storage.events.pipeline_events import PipelineStarted
from agentx.storage.events.types import Event, list_paths
from agentx.storage.text import one_line, plain, shorten
from agentx.synthesis.learning.auditing import settling
from agentx.synthesis.memory.checks import MODES
from agentx.synthesis.memory.conclusions import CONCLUSIONS
from agentx.synthesis.memory.items import HotIssueDetail, Kind, MemoryItem, not_passed
from agentx.synthesis.state.state import PendingCall
from agentx.workspace import Workspace

ISSUES_SHOWN = 5
_ASKED = 3
"""Maximum number of calls with unknown outcome whose command is shown."""

_RUN_WORDS = 30

_WINDOW = 8
"""Factor by which more events are read than are shown, and again each time that too few of them match."""

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


def status(terminal: Terminal) -> None:
    """Show the state of the workspace; edits made outside AgentX are recorded first."""
    with opened(terminal) as ws:
        found = ws.status()
        title = Text.assemble((one_line(found.title), "bold"), f"  {plain(found.root)}")
        trust = Text(f"{plain(found.restricted)}: agentx trust", "yellow")
        rows = [*[("restricted", trust)] * bool(found.restricted), *_facts(ws, found)]
        terminal.result(found, title, facts(rows))


def _pipeline(ws: Workspace) -> str:
    """Return the pipeline that was started last and its status; empty if there was none."""
    if PipelineStarted.__name__ not in ws.state.counts:
        return ""
    latest = max(pipelines(ws.engine).known.values(), key=lambda one: one.started_at)
    cut_off = latest.status == "RUNNING" and not is_anyone_at_work(ws.engine)
    return f"{latest.name} {'INTERRUPTED' if cut_off else latest.status}"


def _facts(ws: Workspace, found: WorkspaceStatus) -> Iterator[tuple[str, str | Text]]:
    yield "commit", Text.assemble((found.commit[:7], "yellow"), f"  {one_line(found.subject)}")
    yield "history", counted(found.events, "event")
    yield "artifacts", counted(found.files, "file")
    # the most binding kinds first
    active = [_count(kind, found.active[kind]) for kind in get_args(Kind) if kind in found.active]
    yield "memory", " · ".join(active) or "nothing yet"
    yield from [("rules", _rules(found.rules))] * bool(found.rules)
    yield from zip(chain(("follows",), repeat("")), map(followed_line, found.followed), strict=False)
    if found.candidates:
        yield "", Text(f"{counted(found.candidates, 'candidate')} to settle: agentx memory review", "yellow")
    issues = ws.memory("hot_issue")
    for number, issue in enumerate(issues[:ISSUES_SHOWN]):
        yield "open" if not number else "", Text(one_line(_issue(issue)), "red")
    if len(issues) > ISSUES_SHOWN:
        yield "", Text(f"and {len(issues) - ISSUES_SHOWN} more: agentx memory list --kind hot_issue", "red")
    if found.last_run:
        yield "last run", one_line(shorten(found.last_run, _RUN_WORDS))
    if pipeline := _pipeline(ws):
        yield "pipeline", Text(f"{plain(pipeline)}: agentx pipeline")
    if waiting := approvals.waiting(ws.engine):
        yield "waiting", Text(f"{_calls(waiting)}: agentx approve", "yellow")
    if unknown := [call for call in ws.state.pending.values() if not call.awaits_approval]:
        yield "unknown", Text(f"outcome of {_calls(unknown)}: its process ended", "yellow")
        yield from (("", Text(_question(call), "yellow")) for call in unknown[:_ASKED])
    if found.outside:
        yield "edited", f"{one_line(list_paths(found.outside))}: now recorded"
    if found.damage:
        yield "damage", Text(f"{counted(len(found.damage), 'line')} of the history: agentx doctor", "red")
    yield "state digest", Text(found.digest, "dim")


def followed_line(one: FollowedStatus) -> Text:
    """Return a followed workspace in a line: what of it holds, and whether it can be read."""
    line = Text(f"{plain(one.name)}: {counted(one.rules, 'rule')}")
    if one.commit:
        line.append(f", event {one.event}, read {minute(one.read_at)}", "dim")
    if one.why:
        line.append(f" · cannot be read: {plain(one.why)}", "yellow")
    return line


def _question(call: PendingCall) -> str:
    return plain(one_line(f"was it done? {settling(call)}"))


def _calls(calls: Iterable[PendingCall]) -> str:
    return one_line(", ".join(f"{call.tool} ({call.call_id})" for call in calls))


def _count(kind: str, number: int) -> str:
    name = kind.replace("_", " ")
    return f"{number} {name if number == 1 else _PLURALS.get(kind, name + 's')}"


def _rules(rules: Mapping[str, int]) -> str:
    """Return how rules are enforced: "12 rules: 8 checked (1 observe), 4 shown only"."""
    modes = {mode: rules[mode] for mode in MODES if mode in rules}
    other = ", ".join(f"{number} {mode}" for mode, number in modes.items() if mode != "deny")
    parts = [f"{sum(modes.values())} checked{f' ({other})' * bool(other)}"]
    parts += [f"{rules['elsewhere']} enforced by a flow or script"] if "elsewhere" in rules else []
    parts.append(f"{rules.get('shown_only', 0)} shown only")
    return f"{counted(sum(rules.values()), 'rule')}: {', '.join(parts)}"


def _issue(item: MemoryItem) -> str:
    detail = item.detail
    if not isinstance(detail, HotIssueDetail):
        return item.text
    why = f": {not_passed(detail)}" if detail.silenced else ""
    return f"{item.id}  {detail.check or detail.runner}{why}"


def log(
    terminal: Terminal,
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
    wanted, known = set(kind or ()), FACTS | CONCLUSIONS
    if unknown := sorted(wanted - known.keys()):
        raise UsageError(f"Unknown event type {unknown[0]!r}. Types: {', '.join(sorted(known))}.")
    with opened(terminal) as ws:
        whole = everything or terminal.json or bool(wanted)
        last = 0
        if after is None:
            events: Iterable[Event] = _latest(ws, count, wanted, whole=whole)
        else:
            events = _matching(ws.events(after=after), wanted, whole=whole)
        for event in events:
            _show(terminal, event)
            last = event.seq
        if follow:
            last = max(last, ws.state.seq if after is None else after)
            for event in _matching(ws.events(after=last, follow=True), wanted, whole=whole):
                _show(terminal, event)


def _latest(ws: Workspace, count: int, wanted: set[str], *, whole: bool) -> deque[Event]:
    """Return the latest events that match; only the end of the log is read if it has enough of them."""
    seq, window = ws.engine.log.state.seq, _WINDOW * count
    while True:
        events = _matching(ws.events(after=max(0, seq - window)), wanted, whole=whole)
        found = deque(events, maxlen=count)
        if len(found) == count or window >= seq:
            return found
        window *= _WINDOW


def _matching(events: Iterable[Event], wanted: set[str], *, whole: bool) -> Iterator[Event]:
    return (event for event in events if (not wanted or event.type in wanted) and (whole or event.describe()))


def _show(terminal: Terminal, event: Event) -> None:
    if terminal.json:
        terminal.line(as_json(event))
        return
    text = one_line(event.describe()).removeprefix(f"{event.actor} ")
    style = "dim" if not text else "yellow" if text.startswith("Deny") else ""
    terminal.show(
        row(
            Text(f"{event.seq:>5}", "dim"),
            Text(f"{event.at[:10]} {event.at[11:19]}", "dim"),
            Text(f"{one_line(event.actor):<18}", _COLOURS.get(Actor.parse(event.actor).role, "")),
            Text(text or one_line(event.type), style),
            wrap=terminal.out.is_terminal,
        )
    )
