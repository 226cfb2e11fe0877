"""``agentx fleet``: runs that any of several workers carries out, in the workspaces' own Git histories."""

import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import RUN_COLOURS, Terminal, counted, facts, table
from agentx.fleet import place as places
from agentx.fleet.carrying_out import Result
from agentx.fleet.overview import Overview, Run, overview
from agentx.fleet.submission import DAYS, PRIORITY, Submission
from agentx.fleet.submission import submit as submit_run
from agentx.fleet.telemetry import submitting
from agentx.fleet.worker import Worker
from agentx.scheduling.shared_queue import QueueFailed
from agentx.storage.errors import UsageError
from agentx.storage.text import clip, encodable, plain

_REASON = 60
_LIVE_S = 1.0
_BAR, _SHORT = 20, 8

_Tenant = Annotated[str, typer.Option(metavar="NAME", help="The tenant whose fleet it is.")]


def initialise(
    terminal: Terminal,
    *,
    remote: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            show_default=False,
            help="URL or directory of the workspaces' remotes, with {workspace}.",
        ),
    ] = "",
    database: Annotated[
        str,
        typer.Option(
            metavar="URL", help="postgresql://… without a password; by default SQLite on this machine."
        ),
    ] = "",
    tenant: _Tenant = places.DEFAULT_TENANT,
    lease: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="After this long without a sign of life, others work."),
    ] = places.LEASE_S,
    slots: Annotated[
        int, typer.Option(min=1, help="Maximum number of runs at once on each worker.")
    ] = places.SLOTS,
) -> None:
    """Create a fleet, or join one that exists, from this machine."""
    if not remote:
        raise UsageError("Give the pattern of the remotes: --remote '/srv/fleet/{workspace}.git'.")
    made = places.initialise(
        terminal.settings, encodable(database), encodable(remote), tenant=tenant, lease_s=lease, slots=slots
    )
    document = {
        "tenant": made.tenant,
        "database": made.shown_database,
        "remote": made.remote,
        "lease_s": made.lease_s,
        "slots": made.slots,
    }
    rows = [("fleet", made.tenant), ("database", plain(made.shown_database)), ("remotes", plain(made.remote))]
    terminal.result(document, facts(rows), plain("Next: agentx fleet worker; agentx fleet submit MESSAGE"))


def submit(
    terminal: Terminal,
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", show_default=False, help="What is to be done.")
    ],
    *,
    workspace: Annotated[
        str, typer.Option(metavar="NAME", help="Its name in the fleet; by default that of its directory.")
    ] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent's role.")] = "main",
    priority: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Lower runs first in its workspace.")
    ] = PRIORITY,
    days: Annotated[
        float, typer.Option("--for", metavar="DAYS", min=0.001, max=365, help="Days that it may wait.")
    ] = DAYS,
    submission: Annotated[
        str, typer.Option("--id", metavar="ID", help="A second submission with the same ID is not run again.")
    ] = "",
    tenant: _Tenant = places.DEFAULT_TENANT,
) -> None:
    """Queue a run of this workspace, signed by you; the workspace is pushed to its remote first."""
    with opened(terminal, look=True) as ws:
        place = places.load(terminal.settings, tenant)
        with places.opened(place) as queue, submitting(terminal.settings, place, terminal.note) as span:
            made = submit_run(
                ws,
                place,
                queue,
                encodable(message),
                workspace=workspace,
                agent=encodable(agent),
                priority=priority,
                days=days,
                submission=submission,
                traceparent=span,
            )
    document = {"submission": made.id, "workspace": made.workspace, "tenant": made.tenant}
    terminal.result(
        document, Text.assemble(("✓ ", "green"), (made.id, "bold"), f" for {plain(made.workspace)}")
    )


def work(
    terminal: Terminal,
    *,
    home: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False, help="Directory of its copies; each worker needs its own."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Exit when the queue is empty.")] = False,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time for runs to finish when stopped.")
    ] = 60.0,
    tenant: _Tenant = places.DEFAULT_TENANT,
) -> None:
    """Carry out queued runs until SIGTERM, Ctrl-C or `fleet drain`; runs in progress are finished first."""
    place = places.load(terminal.settings, tenant)
    folder = home or terminal.settings.state_dir / f"fleet-{tenant}"
    runs = 0

    def tell(submission: Submission, result: Result) -> None:
        nonlocal runs
        runs += 1
        if terminal.json:
            shown = {"submission": submission.id, "workspace": submission.workspace}
            terminal.line(shown | msgspec.to_builtins(result))
        else:
            terminal.show(
                Text.assemble(
                    (result.status, RUN_COLOURS.get(result.status, "red")),
                    f"  {plain(submission.workspace)}  {plain(clip(result.reason, _REASON))}",
                )
            )

    with places.opened(place) as queue:
        worker = Worker(
            place, queue, folder, terminal.settings, on_result=tell, on_fault=terminal.note, grace_s=grace
        )
        before = {
            one: signal.signal(one, lambda *_: worker.stop()) for one in (signal.SIGTERM, signal.SIGINT)
        }
        terminal.note(f"{worker.name}: {counted(place.slots, 'run')} at once; Ctrl-C ends it.", "•")
        try:
            worker.run(once=once)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    terminal.result({"worker": worker.name, "runs": runs}, f"{counted(runs, 'run')} carried out.")


def status(
    terminal: Terminal,
    *,
    live: Annotated[bool, typer.Option("--live", help="Keep showing it until Ctrl-C.")] = False,
    most: Annotated[int, typer.Option("-n", min=1, max=10_000, help="Number of runs.")] = 20,
    tenant: _Tenant = places.DEFAULT_TENANT,
) -> None:
    """Show the queue, the workers, the latest runs, and events that were set aside."""
    place = places.load(terminal.settings, tenant)
    with places.opened(place) as queue:
        if not live or terminal.json:
            found = overview(place, queue, most)
            terminal.result(found, _shown(found))
            return
        shown = _shown(overview(place, queue, most))
        with Live(shown, refresh_per_second=4) as view, suppress(KeyboardInterrupt):
            while True:
                time.sleep(_LIVE_S)
                try:
                    shown = _shown(overview(place, queue, most))
                    view.update(shown)
                except QueueFailed as error:  # a database that is started again is reached again
                    view.update(Group(shown, Text(str(error), "red")))


def drain(
    terminal: Terminal,
    worker: Annotated[str, typer.Argument(metavar="[WORKER]", help="Only this one.")] = "",
    tenant: _Tenant = places.DEFAULT_TENANT,
) -> None:
    """Ask workers to end after the runs that they have; what is queued stays queued."""
    place = places.load(terminal.settings, tenant)
    with places.opened(place) as queue:
        names = queue.drain(worker)
    if worker and not names:
        raise UsageError(f"There is no worker {worker[:80]!r}; `agentx fleet status` lists them.")
    terminal.result({"draining": names}, f"{counted(len(names), 'worker')} will end.")


def _shown(found: Overview) -> RenderableType:
    rows: list[tuple[str, str | Text]] = [
        ("fleet", f"{found.tenant}  {plain(found.remote)}"),
        ("queue", f"{found.queued} wait, {found.running} run, {found.ended} ended"),
    ]
    for one in found.workers:
        lost = one.name in found.lost
        used = "█" * min(one.running, one.slots) + "░" * max(0, one.slots - one.running)
        state = f"lost: no sign of life for {one.quiet_s:,.0f} s" if lost else f"{one.running} of {one.slots}"
        state += ", draining" if one.draining else ""
        bar, name = (clip(used, _BAR), "" if lost else "cyan"), (f"  {plain(one.name)}", "bold")
        rows.append(("worker", Text.assemble(bar, name, (f"  {state}", "red" if lost else ""))))
    rows += [
        (
            "set aside",
            Text(
                f"{one.workspace}: {one.ref}" + ("" if one.pushed else f" (only on {one.worker})"), "yellow"
            ),
        )
        for one in found.stranded
    ]
    parts: list[RenderableType] = [facts(rows)]
    if found.runs:
        parts.append(
            table(
                "submission",
                "workspace",
                "status",
                "waited",
                "took",
                "worker",
                "why",
                rows=list(map(_row, found.runs)),
            )
        )
    return Group(*parts)


def _row(one: Run) -> tuple[str | Text, ...]:
    colour = RUN_COLOURS.get(one.status, "cyan" if one.status in ("QUEUED", "RUNNING") else "red")
    reason = plain(clip(one.reason, _REASON))
    waited = _seconds(one.queued_s) if one.started_ms else ""
    took = _seconds(sum(one.seconds.values())) if one.seconds else ""
    status = Text(plain(clip(one.status, _BAR)), colour)
    return one.submission[:_SHORT], plain(one.workspace), status, waited, took, plain(one.worker), reason


def _seconds(spent: float) -> str:
    return f"{spent:,.1f} s" if spent < 60 else f"{spent / 60:,.1f} min"  # noqa: PLR2004 - a minute
