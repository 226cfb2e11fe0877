"""``agentx schedule audit``: what agents did while nobody watched, what it cost, and what to do now."""

from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import PANEL_COLUMNS, RUN_COLOURS, Terminal, counted, facts, panel, table
from agentx.directing.report_delivery import deliver
from agentx.history.audit import Report, begin, look_back, together
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import one_line, plain, shorten
from agentx.synthesis.learning.auditing import AgentRuns, Audit, AuditedFailure, Cost, FailedTask
from agentx.synthesis.learning.maintenance_plan import Done
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem

_MOST = 6
"""Maximum number of lines shown for a section; JSON has all of them."""

_WORDS = 22


def audit(
    terminal: Terminal,
    workspaces: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR...]", show_default=False, help="Workspaces; by default that of -C."),
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="yesterday, today, or a local date or time.")
    ] = "yesterday",
    *,
    delivers: Annotated[
        bool,
        typer.Option(
            "--deliver", help="Send it to `report.command` of the first workspace instead of showing it."
        ),
    ] = False,
) -> None:
    """Report what ran, failed, was learned and decayed since yesterday, the cost, and what to do now."""
    if delivers and terminal.settings.inside_run:
        raise UsageError("`--deliver` runs your command, so it is refused inside an agent's run.")
    after = begin(since, datetime.now().astimezone())
    found: list[Audit] = []
    places = workspaces or [terminal.directory]
    for directory in places:
        terminal.directory = directory
        try:
            with opened(terminal) as ws:
                found.append(look_back(ws.engine, after))
        except AgentXError as error:
            if not workspaces or len(workspaces) == 1:
                raise
            terminal.note(f"{plain(str(directory))} is left out: {error}")
    report = together(found, after)
    if delivers:
        terminal.directory = places[0]
        with opened(terminal) as ws:
            deliver(ws.engine, _written(report, as_json=terminal.json))
        terminal.note("The report was delivered to report.command.")
        return
    terminal.result(report, *_shown(report, min(terminal.out.width, PANEL_COLUMNS)))


def _written(report: Report, *, as_json: bool) -> str:
    """Return a report as a text for a program: JSON, or as it is shown without colours."""
    if as_json:
        return msgspec.json.encode(report).decode() + "\n"
    console = Console(
        file=StringIO(), width=PANEL_COLUMNS, color_system=None, highlight=False, markup=False, emoji=False
    )
    with console.capture() as captured:
        console.print(*_shown(report, PANEL_COLUMNS), sep="\n")
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _shown(report: Report, width: int) -> Iterator[RenderableType]:
    yield Text.assemble(("What happened since ", "bold"), (_local(report.since), "bold"))
    yield Text("")
    for one in report.workspaces:
        title = Text.assemble((one_line(one.title), "bold"), f"  {plain(one.root)}")
        yield panel(facts(_rows(one)), title=title, width=width)
    if report.costs:
        yield Text("")
        rows = [_cost(cost, cost.component) for cost in report.costs]
        if len(rows) > 1:
            rows.append(_cost(sum(report.costs[1:], report.costs[0]), "in all"))
        yield table("component", "calls>", "tokens in>", "tokens out>", "cost", rows=rows)
    yield Text("")
    if not report.todo:
        yield Text("Nothing needs your attention.", "green")
    for number, item in enumerate(report.todo, start=1):
        yield Text.assemble(
            (f"{number:>2}. ", "bold yellow"), one_line(item.text), "\n    ", (plain(item.command), "cyan")
        )


def _rows(one: Audit) -> Iterator[tuple[str, str | Text]]:
    parts: list[tuple[str, list[str | Text]]] = [
        ("ran", [_ran(ran) for ran in one.ran] or [Text("nothing", "dim")]),
        ("failed", [_failure(failure) for failure in one.failed]),
        ("graded failed", [_task(task) for task in one.failed_tasks]),
        ("learned", [_item(item, item.kind.replace("_", " ")) for item in one.learned]),
        ("faded", [_item(done.item, _change(done), "yellow") for done in one.decayed]),
        (
            "director",
            [
                _dated(
                    thought.at, one_line(f"{thought.strategy} {thought.reflection}".strip() or thought.why)
                )
                for thought in one.reflections
            ],
        ),
        (
            "passed over",
            [
                f"{counted(passed.times, 'due time')} of {passed.schedule}: {one_line(passed.reason)}"
                for passed in one.passed
            ],
        ),
        (
            "unknown",
            [
                Text(plain(f"{call.tool}({call.arguments}) in {call.run or 'no run'}: no result"), "yellow")
                for call in one.unknown
            ],
        ),
        ("open", [_issue(item) for item in one.open]),
        ("candidates", [Text(f"{one.candidates} to settle", "yellow")] * bool(one.candidates)),
        ("cost", [f"${spent:,.4f}"] if (spent := sum(cost.usd for cost in one.costs)) else []),
    ]
    for name, lines in parts:
        shown = lines if len(lines) <= _MOST else lines[: _MOST - 1]
        for number, line in enumerate(shown):
            yield name if not number else "", line
        if more := len(lines) - len(shown):
            yield "", Text(f"and {more} more: --json", "dim")


def _ran(ran: AgentRuns) -> Text:
    line = Text(f"{ran.agent or 'agent'}: {counted(sum(ran.ended.values()), 'run')}")
    for number, (status, count) in enumerate(sorted(ran.ended.items())):
        line.append(", " if number else "  ")
        line.append(f"{count} {status.replace('_', ' ').lower()}", RUN_COLOURS.get(status, "red"))
    return line


def _failure(failure: AuditedFailure) -> Text:
    times = f" ×{failure.times}" if failure.times > 1 else ""
    return _dated(failure.at, f"{shorten(one_line(failure.why), _WORDS)}", f"{failure.what}{times}  ", "red")


def _task(task: FailedTask) -> Text:
    where = " by ".join(filter(None, (task.run, task.flow)))
    why = f": {task.lesson}" if task.lesson else ""
    return _dated(task.at, shorten(f"{task.task.rstrip('.')}{why}", _WORDS), where, "red")


def _dated(at: str, text: str, what: str = "", colour: str = "") -> Text:
    return Text.assemble(
        (f"{_local(at)}  ", "dim"), (one_line(what) + "  " if what else "", colour), plain(text)
    )


def _item(item: MemoryItem, what: str, colour: str = "green") -> Text:
    text = plain(shorten(one_line(item.text), _WORDS))
    why = [(f"  {shorten(one_line(item.reason), _WORDS)}", "dim")] if item.reason else []
    return Text.assemble((f"{item.id}  ", "cyan"), (f"{what}  ", colour), text, *why)


def _change(done: Done) -> str:
    if done.what == "archived":
        return "laid aside"
    return done.what if done.score == done.item.score else f"{done.what} {done.score:g} → {done.item.score:g}"


def _issue(item: MemoryItem) -> Text:
    detail = item.detail
    text = f"{detail.check}: {detail.message}" if isinstance(detail, HotIssueDetail) else item.text
    return Text.assemble((f"{item.id}  ", "cyan"), (shorten(one_line(text), _WORDS), "red"))


def _cost(cost: Cost, name: str) -> tuple[str, ...]:
    return (
        name,
        f"{cost.calls:,}",
        f"{cost.prompt_tokens:,}",
        f"{cost.completion_tokens:,}",
        f"${cost.usd:,.4f}" if cost.usd else "-",
    )


def _local(at: str) -> str:
    """Format a recorded time in the machine's time zone."""
    return datetime.fromisoformat(at).astimezone().strftime("%a %d %b %H:%M")
