"""``agentx fleet``: runs that any of several workers carries out, in the workspaces' own Git histories."""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypedDict, cast

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from agentx.cli.hits import check_query, show_answer
from agentx.cli.opened import opened
from agentx.cli.terminal import RUN_COLOURS, Terminal, counted, facts, minute, table
from agentx.fleet import place as places
from agentx.fleet import published_index
from agentx.fleet.carrying_out import Result
from agentx.fleet.overview import Overview, Run, overview
from agentx.fleet.published_index import Published
from agentx.fleet.submission import DAYS, PRIORITY, Submission
from agentx.fleet.submission import submit as submit_run
from agentx.fleet.telemetry import submitting
from agentx.fleet.tenants import TenantWorkers, read_variables, tenant_work
from agentx.fleet.worker import DAY_S, OnResult, Worker
from agentx.scheduling.call_limits import Limit, parse
from agentx.scheduling.shared_queue import QueueFailed, Slots
from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.index.port import Filter, SearchKind
from agentx.storage.text import clip, encodable, plain
from agentx.trust import records
from agentx.trust.fleet_remotes import DEFAULT_TENANT, check_name
from agentx.trust.store import Store

_REASON = 60
_LIVE_S = 1.0
_BAR, _SHORT = 20, 8

_Tenant = Annotated[str, typer.Option(metavar="NAME", help="The tenant whose fleet it is.")]


def initialise(  # noqa: PLR0913 - each is an option
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
    index: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="s3://bucket/prefix or a directory that all share, for searches without a clone.",
        ),
    ] = places.LOCAL,
    tenant: _Tenant = DEFAULT_TENANT,
    lease: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="After this long without a sign of life, others work."),
    ] = places.LEASE_S,
    slots: Annotated[
        int, typer.Option(min=1, help="Maximum number of runs at once on each worker.")
    ] = places.SLOTS,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROVIDER=CALLS/PERIOD",
            show_default=False,
            help="Limit on all workers' calls to a provider, as in anthropic=50/min; none: no limit.",
        ),
    ] = None,
    keep: Annotated[
        float, typer.Option(metavar="DAYS", min=0.01, help="Days that ended runs stay in the database.")
    ] = places.KEEP_DAYS,
) -> None:
    """Create a fleet, or join one that exists, from this machine."""
    if not remote:
        raise UsageError("Give the pattern of the remotes: --remote '/srv/fleet/{workspace}.git'.")
    made = places.initialise(
        terminal.settings,
        encodable(database),
        encodable(remote),
        tenant=tenant,
        lease_s=lease,
        slots=slots,
        keep_days=keep,
        limits=[parse(encodable(one)) for one in limit or ()],
        index=encodable(index),
    )
    key = records.own_public_key(Store(terminal.settings.state_dir))
    document = {
        "tenant": made.tenant,
        "database": made.shown_database,
        "remote": made.remote,
        "lease_s": made.lease_s,
        "slots": made.slots,
        "index": made.index,
        "key": key,
    }
    rows = [
        ("fleet", made.tenant),
        ("database", plain(made.shown_database)),
        ("remotes", plain(made.remote)),
        ("index", plain(made.index)),
        ("your key", key),
    ]
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
    tenant: _Tenant = DEFAULT_TENANT,
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
    slots: Annotated[
        int, typer.Option(min=0, help="Maximum number of runs at once here; by default that of the fleet.")
    ] = 0,
    memory: Annotated[
        int,
        typer.Option(
            metavar="MB", min=0, help="Bound on the memory of its runs; default: half of the machine's."
        ),
    ] = 0,
    tenant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The tenant; several get a process each, and share the slots."),
    ] = None,
    tenant_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE", help="A private file of variables for this tenant's processes alone."
        ),
    ] = None,
) -> None:
    """Carry out queued runs until SIGTERM, Ctrl-C or `fleet drain`; runs in progress are finished first."""
    tenants = list(dict.fromkeys(tenant or [DEFAULT_TENANT]))
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

    def folder(name: str) -> Path:
        if home is None:
            return terminal.settings.state_dir / f"fleet-{name}"
        return home / name if len(tenants) > 1 else home

    report: _Report = {"on_result": tell, "on_fault": terminal.note, "grace_s": grace}
    bound = memory * 1_000_000
    if len(tenants) > 1 or tenant_env:
        files = _tenant_files(tenants, tenant_env or [])
        works = [tenant_work(terminal.settings, one, folder(one), files[one]) for one in tenants]
        most = slots or max(one.place.slots for one in works)
        workers = TenantWorkers(works, most, memory_bytes=bound, **report)
        terminal.note(f"{', '.join(tenants)}: {counted(most, 'run')} at once; Ctrl-C ends it.", "•")
        _until_signalled(workers, once=once)
        terminal.result({"tenants": tenants, "runs": runs}, f"{counted(runs, 'run')} carried out.")
        return
    place = places.load(terminal.settings, tenants[0])
    most = slots or place.slots
    with places.opened(place) as queue:
        worker = Worker(
            place, queue, folder(tenants[0]), terminal.settings,
            slots=Slots(most), memory_bytes=bound, **report,
        )  # fmt: skip
        terminal.note(f"{worker.name}: {counted(most, 'run')} at once; Ctrl-C ends it.", "•")
        _until_signalled(worker, once=once)
    terminal.result({"worker": worker.name, "runs": runs}, f"{counted(runs, 'run')} carried out.")


class _Report(TypedDict):
    on_result: OnResult
    on_fault: Callable[[str], None]
    grace_s: float


def _until_signalled(worker: Worker | TenantWorkers, *, once: bool) -> None:
    before = {one: signal.signal(one, lambda *_: worker.stop()) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        worker.run(once=once)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tenant_files(tenants: list[str], given: list[str]) -> dict[str, dict[str, str]]:
    """Return each tenant's variables."""
    found: dict[str, dict[str, str]] = {one: {} for one in tenants}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or name not in found:
            raise UsageError(
                f"{one[:80]!r} names no tenant of this worker; write --tenant NAME --tenant-env NAME=FILE."
            )
        found[name] |= read_variables(Path(path))
    return found


def status(
    terminal: Terminal,
    *,
    live: Annotated[bool, typer.Option("--live", help="Keep showing it until Ctrl-C.")] = False,
    most: Annotated[int, typer.Option("-n", min=1, max=10_000, help="Number of runs.")] = 20,
    tenant: _Tenant = DEFAULT_TENANT,
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
    tenant: _Tenant = DEFAULT_TENANT,
) -> None:
    """Ask workers to end after the runs that they have; what is queued stays queued."""
    place = places.load(terminal.settings, tenant)
    with places.opened(place) as queue:
        names = queue.drain(worker)
    if worker and not names:
        raise UsageError(f"There is no worker {worker[:80]!r}; `agentx fleet status` lists them.")
    terminal.result({"draining": names}, f"{counted(len(names), 'worker')} will end.")


def prune(
    terminal: Terminal,
    *,
    older: Annotated[
        float | None,
        typer.Option(metavar="DAYS", min=0, help="Days since their end; by default as `fleet init --keep`."),
    ] = None,
    aside: Annotated[
        str,
        typer.Option(metavar="REF", help="Instead, stop listing this ref; it stays on the remote."),
    ] = "",
    tenant: _Tenant = DEFAULT_TENANT,
) -> None:
    """Delete runs that ended long ago from the database; the workspaces' histories keep them."""
    place = places.load(terminal.settings, tenant)
    days = place.keep_days if older is None else older
    with places.opened(place) as queue:
        if aside:
            if not queue.forget(encodable(aside)):
                raise UsageError(
                    f"{aside[:200]!r} is not listed as set aside on a remote; `agentx fleet status` lists "
                    "what is."
                )
            terminal.result({"forgotten": aside}, plain(f"{aside} stays on the remote and is not listed."))
            return
        pruned = queue.prune(days * DAY_S)
    terminal.result({"deleted": pruned}, f"{counted(pruned, 'run')} deleted from the database.")


def search(  # noqa: PLR0913, PLR0917 - each narrows the search
    terminal: Terminal,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", show_default=False, help='Words in any form; "quoted" words exactly.'
        ),
    ],
    workspace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Only this workspace; may be repeated."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1_000, help="How many.")] = 10,
    kind: Annotated[
        str, typer.Option(help="source, test, docs, config, data, artifact, message, tool or memory.")
    ] = "",
    path: Annotated[str, typer.Option(help="Directory or glob.")] = "",
    actor: Annotated[str, typer.Option(help="An actor, or a class (agent:).")] = "",
    since: Annotated[str, typer.Option(metavar="DATE", help="From this ISO date or time.")] = "",
    before: Annotated[str, typer.Option(metavar="DATE", help="Before this date or time.")] = "",
    tenant: _Tenant = DEFAULT_TENANT,
) -> None:
    """Search the published indexes, without a clone and while runs write."""
    check_query(query, kind)
    kinds = (cast("SearchKind", kind),) if kind else ()
    where = Filter(kinds=kinds, path=path, actor=actor, since=since, before=before)
    with terminal.busy("Searching"):
        indexes = published_index.opened(places.load(terminal.settings, tenant), terminal.settings)
        found = published_index.search(
            indexes, terminal.settings, encodable(query), k, where, workspace or (), grouped=True
        )
    show_answer(terminal, encodable(query), found)


def index(
    terminal: Terminal,
    *,
    publish: Annotated[
        bool, typer.Option("--publish", help="Publish the workspace of this directory now.")
    ] = False,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Take its published vectors into its own index.")
    ] = False,
    remove: Annotated[
        str, typer.Option(metavar="NAME", help="Delete what is published of this workspace.")
    ] = "",
    workspace: Annotated[
        str, typer.Option(metavar="NAME", help="Its name in the fleet; by default that of its directory.")
    ] = "",
    tenant: _Tenant = DEFAULT_TENANT,
) -> None:
    """Show the published indexes and the event at which each stands, or change one."""
    if publish + vectors + bool(remove) > 1:
        raise UsageError("Give one of --publish, --vectors and --remove.")
    indexes = published_index.opened(places.load(terminal.settings, tenant), terminal.settings)
    if remove:
        check_name(remove)
        there = indexes.remove(remove, stamp())
        terminal.result(
            {"removed": [remove] if there else []},
            f"{remove} is removed." if there else "Nothing is published.",
        )
    elif publish or vectors:
        with opened(terminal, look=publish) as ws:
            name = workspace or ws.root.name
            check_name(name)
            if vectors:
                taken = published_index.take_from(indexes, name, ws.engine)
                terminal.result({"vectors": taken}, f"{counted(taken, 'vector')} taken.")
                return
            made = published_index.publish(indexes, name, ws.engine)
        terminal.result(made, _stands([made]))
    else:
        found, failed = published_index.stand(indexes)
        terminal.result({"indexes": found, "failed": failed}, _stands(found))
        for name, why in failed.items():
            terminal.note(f"{plain(name)}: {plain(why)}")


def _stands(found: Sequence[Published]) -> RenderableType:
    if not found:
        return "Nothing is published yet."
    rows = [(plain(one.workspace), str(one.seq), minute(one.at), f"{one.passages:,}") for one in found]
    return table("workspace", "event", "published", "passages", rows=rows)


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
    rows += [("limit", _limited(one)) for one in found.limits]
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


def _limited(one: Limit) -> Text:
    parts = [f"{one.calls} calls in {one.period_s:.0f} s"] if one.calls else []
    if one.waiting:
        more = "or more " if one.waiting >= one.calls else ""
        parts.append(f"{one.waiting} {more}wait, the next one {one.next_s:.0f} s")
    if one.paused_s:
        parts.append(f"paused by the provider for {one.paused_s:.0f} s")
    return Text(f"{plain(one.name)}: {'; '.join(parts)}", "yellow" if one.waiting or one.paused_s else "")


def _row(one: Run) -> tuple[str | Text, ...]:
    colour = RUN_COLOURS.get(one.status, "cyan" if one.status in ("QUEUED", "RUNNING") else "red")
    reason = plain(clip(one.reason, _REASON))
    waited = _seconds(one.queued_s) if one.started_ms else ""
    took = _seconds(sum(one.seconds.values())) if one.seconds else ""
    status = Text(plain(clip(one.status, _BAR)), colour)
    return one.submission[:_SHORT], plain(one.workspace), status, waited, took, plain(one.worker), reason


def _seconds(spent: float) -> str:
    return f"{spent:,.1f} s" if spent < 60 else f"{spent / 60:,.1f} min"  # noqa: PLR2004 - a minute
