"""``agentx schedule``: list and change recurring tasks, and run those that are due."""

import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

import msgspec
import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import RUN_COLOURS, Terminal, counted, minute, table
from agentx.cli.work.run import EXIT
from agentx.core.layout import find_root
from agentx.engine import models
from agentx.scheduling import schedules
from agentx.scheduling.daemon import Daemon, workspaces
from agentx.scheduling.resume_check import Pulse, beat
from agentx.scheduling.schedules import Carried, NoSuchSchedule, Standing
from agentx.storage.errors import UsageError
from agentx.storage.events.schedule_events import CatchUp, ScheduleSet
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.text import encodable, one_line, plain, shorten
from agentx.synthesis.scheduling.schedule_times import upcoming

_PULSE_COLOURS: dict[Pulse, str] = {
    "HEARTBEAT_OK": "green",
    "CONTINUED": "cyan",
    "BUSY": "cyan",
    "WAITING": "yellow",
    "STOPPED": "yellow",
}
_TASK_WORDS = 12
_REASON_WORDS = 20


def list_schedules(terminal: Terminal) -> None:
    """List recurring tasks: the next due time, the result of the last run, and skipped due times."""
    with opened(terminal) as ws:
        found = schedules.standing(ws, _now())
    columns = ("id", "cron", "next", "last run", "passed over>", "task")
    nothing = Text('Nothing is scheduled. `agentx schedule add "0 */6 * * *" "…"` adds one.', "dim")
    terminal.result(found, table(*columns, rows=[_row(one) for one in found]) if found else nothing)


def _row(one: Standing) -> tuple[str | Text, ...]:
    rule, last = one.rule, one.last
    cron = rule.cron if rule.zone == "UTC" else f"{rule.cron} {rule.zone}"
    ran = Text("never", "dim")
    if last is not None:
        ran = Text.assemble((last.status, RUN_COLOURS.get(last.status, "red")), f" {minute(last.at)}")
    task = shorten(one_line(rule.task or rule.sort), _TASK_WORDS)
    return rule.id, cron, minute(one.next), ran, str(one.passed or ""), task


def _now() -> datetime:
    return datetime.now(tz=UTC)


def add_schedule(  # noqa: PLR0913 - each is a part of a schedule
    terminal: Terminal,
    cron: Annotated[
        str,
        typer.Argument(
            metavar="CRON", show_default=False, help="Minute, hour, day, month, weekday: '0 */6 * * *'."
        ),
    ],
    task: Annotated[
        str, typer.Argument(metavar="[TASK]", show_default=False, help="The task, in your words.")
    ] = "",
    *,
    name: Annotated[
        str, typer.Option("--id", metavar="ID", help="Its ID; by default from the first words of the task.")
    ] = "",
    zone: Annotated[
        str, typer.Option(metavar="ZONE", help="Time zone of CRON, such as Europe/Berlin.")
    ] = "UTC",
    catch_up: Annotated[
        str,
        typer.Option(metavar="POLICY", help="Missed runs: `once` runs the latest, `all` each, `none` none."),
    ] = "once",
    jitter: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Maximum random delay.")] = 0.0,
    time_limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Maximum time of a run; 0 for the limit of agentx.toml."),
    ] = 0.0,
    no_resume: Annotated[bool, typer.Option("--no-resume", help="Do not resume an interrupted run.")] = False,
    directed: Annotated[
        bool, typer.Option("--directed", help="Have a director write the prompt (agentx agent direct).")
    ] = False,
    heartbeat: Annotated[
        bool,
        typer.Option("--heartbeat", help="No task: resume an interrupted run (`agentx schedule heartbeat`)."),
    ] = False,
    agent: Annotated[str, typer.Option(metavar="ROLE", help="The agent's role.")] = "main",
) -> None:
    """Add or replace a recurring task. `agentx schedule daemon` or `agentx schedule run-due` runs it."""
    if catch_up not in ("once", "all", "none"):
        raise UsageError(f"--catch-up is once, all or none, not {catch_up!r}.")
    rule = ScheduleSet(
        id=encodable(name) or schedules.id_of(encodable(task) or "heartbeat"),
        cron=encodable(" ".join(cron.split())),
        task=encodable(task),
        zone=encodable(zone),
        catch_up=cast("CatchUp", catch_up),
        jitter_s=jitter,
        time_limit_s=time_limit,
        resume=not no_resume,
        directed=directed,
        sort="heartbeat" if heartbeat else "task",
        agent=encodable(agent),
    )
    with opened(terminal) as ws:
        schedules.add(ws, rule)
        [made] = [one for one in schedules.standing(ws, _now()) if one.rule.id == rule.id]
    following = f" is due next at {minute(made.next)} UTC."
    terminal.result(made, Text.assemble(("✓ ", "green"), (rule.id, "bold"), following))


def remove_schedule(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Its name.")],
) -> None:
    """Remove a schedule; its past runs stay in the history."""
    with opened(terminal) as ws:
        schedules.remove(ws, name)
    terminal.result({"removed": name}, Text(f"{name} is not due any more.", "green"))


def list_due(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="[ID]", help="Only this schedule.")] = "",
    most: Annotated[int, typer.Option(min=1, max=1_000, help="Number for each schedule.")] = 5,
) -> None:
    """List the next due times."""
    with opened(terminal) as ws:
        known = ws.state.schedules
    if name and name not in known:
        raise NoSuchSchedule(f"Unknown schedule {name!r}. Schedules: {', '.join(known) or 'none'}.")
    now = _now()
    chosen = [one for one in known.values() if name in ("", one.rule.id)]
    found = sorted((at, one.rule.id) for one in chosen for at in upcoming(one, now, most))
    terminal.result(
        [{"due": at, "schedule": schedule} for at, schedule in found],
        table("due (UTC)", "id", rows=[(minute(at), schedule) for at, schedule in found]),
    )


def run_due(
    terminal: Terminal,
    most: Annotated[int, typer.Option(min=0, help="Maximum number of runs; 0 for all.")] = 0,
) -> None:
    """Run the tasks that are due now, one after another (for cron and systemd timers)."""
    with opened(terminal, look=True) as ws:
        try:
            with terminal.busy("Running what is due …"):
                carried = schedules.carry_out_due(ws, _now(), most=most)
        except WorkspaceBusy as error:
            terminal.note(str(error))
            carried = []
        following, _ = schedules.begins(ws.state, _now())
    for one in carried:
        if one.noted:
            terminal.note(one.noted)
    lines = [_described(one) for one in carried] or [Text("Nothing is due.", "dim")]
    terminal.result({"carried": carried, "next": following}, *lines)
    if worst := max((EXIT[one.status] for one in carried), default=0):
        raise typer.Exit(worst)


def _described(carried: Carried, workspace: str = "") -> Text:
    """Return one line that describes the run for a due time."""
    where = f"{workspace} " if workspace else ""
    result = shorten(one_line(carried.reason or carried.summary), _REASON_WORDS)
    return Text.assemble(
        (f"{where}{carried.schedule} ", "bold"),
        f"{carried.run} ",
        (carried.status, RUN_COLOURS.get(carried.status, "red")),
        (f"  due {minute(carried.due)}{', resumed' if carried.resumed else ''}", "dim"),
        f"  {result}".rstrip(),
    )


def daemon(
    terminal: Terminal,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR…]", show_default=False, help="Workspaces, or directories that contain some."
        ),
    ] = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Exit when nothing is due.")] = False,
    database: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="postgresql://… to share the work among machines; by default SQLite on this one.",
        ),
    ] = "",
    workers: Annotated[int, typer.Option(min=1, help="Maximum number of concurrent runs.")] = 4,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL=RUNS", help="Limit of runs per minute with a model (repeatable)."),
    ] = None,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time for runs to finish when stopped.")
    ] = 30.0,
    memory: Annotated[
        int,
        typer.Option(
            metavar="MB", min=0, help="Bound on the memory of its runs; default: half of the machine's."
        ),
    ] = 0,
) -> None:
    """Run the due tasks of many workspaces until SIGTERM or Ctrl-C; runs in progress are finished first."""
    roots = workspaces(folders or [find_root(terminal.directory)])
    runs = 0

    def tell(root: Path, what: Carried | str) -> None:
        nonlocal runs
        runs += isinstance(what, Carried)
        if isinstance(what, str):
            terminal.note(f"{root.name}: {what}")
            return
        if what.noted:
            terminal.note(f"{root.name}: {what.noted}")
        if terminal.json:
            terminal.line({"workspace": str(root), **msgspec.to_builtins(what)})
        else:
            terminal.show(_described(what, root.name))

    rates = dict(map(_rate, rate or ()))
    made = Daemon(
        roots,
        terminal.settings,
        tell,
        database=database,
        workers=workers,
        rates=rates,
        grace_s=grace,
        memory_bytes=memory * 1_000_000,
    )
    before = {one: signal.signal(one, lambda *_: made.stop()) for one in (signal.SIGTERM, signal.SIGINT)}
    terminal.note(f"{counted(len(roots), 'workspace')}; Ctrl-C ends it.", "•")
    try:
        made.run(once=once)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if terminal.json:
        terminal.line({"workspaces": len(roots), "runs": runs})
    else:
        terminal.show(Text(f"{counted(runs, 'run')}.", "dim"))


def _rate(text: str) -> tuple[str, int]:
    model, _, runs = text.rpartition("=")
    if not model or not runs.isdecimal() or not int(runs):
        raise UsageError(f"--rate is MODEL=RUNS, like openai/gpt-4o-mini=10, not {text!r}.")
    return model, int(runs)


def heartbeat(
    terminal: Terminal,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="PROVIDER/NAME, as litellm writes it, or script:FILE.")
    ] = "",
) -> None:
    """Resume an interrupted run, if any; otherwise print HEARTBEAT_OK without asking a model.

    Exit 1 if the user must act; after a resumed run, as `agentx run`.
    """
    with opened(terminal) as ws, terminal.busy("A pulse …"):
        found = beat(ws, lambda: models.model(ws.engine, model))
    lines = [Text.assemble((found.status, _PULSE_COLOURS[found.status]), f"  {plain(found.said)}")]
    if found.result and (answer := found.result.answer or found.result.reason):
        lines.append(Text(plain(answer)))
    terminal.result(found, *lines)
    if status := EXIT[found.result.status] if found.result else found.status in ("WAITING", "STOPPED"):
        raise typer.Exit(int(status))
