"""What a fleet does now: its queue, its workers, its latest runs, and what was set aside."""

from collections import Counter

import msgspec

from agentx.fleet.carrying_out import Result
from agentx.fleet.place import Place
from agentx.scheduling.call_limits import CallLimits, Limit
from agentx.scheduling.shared_queue import Queued, SetAside, SharedQueue, WorkerRow

_SHOWN_RUNS = 500


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A submission and how far it is.

    Attributes:
        submission: Its id.
        workspace: The workspace.
        status: ``QUEUED``, ``RUNNING``, or as :class:`~agentx.fleet.carrying_out.Result` has it.
        worker: The worker that has or had it; empty for none.
        reason: Why, unless it is ``COMPLETED``.
        run: The run in the history; empty for none.
        commit: The commit that was pushed.
        queued_s: Seconds in the queue; 0 if it still waits.
        seconds: Time of each part on the worker, as :class:`~agentx.fleet.carrying_out.Result` has them.
        copy: ``warm`` or ``cold``.
        submitted_ms: When it was submitted, in milliseconds since 1970.
        started_ms: When the worker took it that had it last; 0 for never.
        ended_ms: When its result was known; 0 for not yet.
        model: The model that was asked; empty for none.
        prompt_tokens: Tokens of its prompts.
        completion_tokens: Tokens of its answers.
        cost_usd: What they cost, as far as prices are known.
    """

    submission: str
    workspace: str
    status: str
    worker: str = ""
    reason: str = ""
    run: str = ""
    commit: str = ""
    queued_s: float = 0.0
    seconds: dict[str, float] = {}
    copy: str = ""
    submitted_ms: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a fleet.

    Attributes:
        tenant: The tenant.
        database: URL of the database, without a password.
        remote: Pattern of the remotes.
        queued: Number of submissions that wait.
        running: Number that workers have.
        ended: Number of the others.
        statuses: How the latest ended, by status.
        workers: The workers; one without a sign of life for a lease counts as lost.
        lost: Names of these.
        runs: The latest submissions, the newest first.
        stranded: Events whose place in a history was taken.
        limits: Limits on the calls to model providers, and pauses that these asked for.
    """

    tenant: str
    database: str
    remote: str
    queued: int
    running: int
    ended: int
    statuses: dict[str, int]
    workers: list[WorkerRow]
    lost: list[str]
    runs: list[Run]
    stranded: list[SetAside]
    limits: list[Limit] = []


def overview(place: Place, queue: SharedQueue, most: int = 20) -> Overview:
    """Return the state of a fleet.

    Args:
        place: Where it is.
        queue: Its queue.
        most: Maximum number of runs.

    Raises:
        QueueFailed: The database cannot be reached.
    """
    counts = queue.counts()
    queued = counts.get("ENQUEUED", 0) + counts.get("DELAYED", 0)
    running = counts.get("PENDING", 0)
    workers = queue.workers()
    runs = [_run(one) for one in queue.recent(max(most, _SHOWN_RUNS))]
    return Overview(
        tenant=place.tenant,
        database=place.shown_database,
        remote=place.remote,
        queued=queued,
        running=running,
        ended=sum(counts.values()) - queued - running,
        statuses=dict(Counter(one.status for one in runs if one.status not in ("QUEUED", "RUNNING"))),
        workers=workers,
        lost=[one.name for one in workers if one.quiet_s > place.lease_s],
        runs=runs[:most],
        stranded=queue.asides(),
        limits=CallLimits(queue).all(),
    )


def _run(one: Queued) -> Run:
    waits = {"ENQUEUED": "QUEUED", "DELAYED": "QUEUED", "PENDING": "RUNNING"}
    result = Result(status="FAILED")
    if one.result:
        try:
            result = msgspec.json.decode(one.result, type=Result)
        except (msgspec.MsgspecError, UnicodeEncodeError):
            result = Result(status="FAILED", reason="its result in the database cannot be read")
    status = waits.get(one.status, result.status)
    waited = (one.started_ms - one.submitted_ms) / 1000 if one.started_ms else 0.0
    return Run(
        submission=one.submission,
        workspace=one.workspace,
        status=status,
        worker=one.worker,
        reason=result.reason if one.status not in waits else "",
        run=result.run,
        commit=result.commit,
        queued_s=max(0.0, waited),
        seconds=result.seconds,
        copy=result.copy,
        submitted_ms=one.submitted_ms,
        started_ms=one.started_ms,
        ended_ms=one.ended_ms,
        model=result.model,
        prompt_tokens=result.prompt_tokens,
        completion_tokens=result.completion_tokens,
        cost_usd=result.cost_usd,
    )
