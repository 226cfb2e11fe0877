"""Carry out one submission: fetch, open, run, push.

The order makes it safe to die anywhere. A submission whose key is in the remote's history is not started
again: it is resumed if its run was cut off, else it is done. What this worker recorded and could not push
because the remote has other events is set aside, whole.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from agentx.agents.loop import NothingToDo, run_task
from agentx.agents.turn import DueTime, alone
from agentx.engine import models
from agentx.fleet import remote_cache
from agentx.fleet.local_copy import STRANDED, Home, bring, deliver, disk_is_full, remote_of
from agentx.fleet.submission import Submission
from agentx.fleet.telemetry import Parts, ReportedModel, ReportedTools, provider_and_model
from agentx.scheduling.call_limits import AskingGate
from agentx.scheduling.resume_check import MOST_TRIES
from agentx.scheduling.run_pool import ask
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import RunEnded
from agentx.storage.git.exchange.remotes import PushRefused, Remote, RemoteFailed
from agentx.storage.text import one_line
from agentx.synthesis.model.call_turns import use_gate
from agentx.transfer.push_pull import HistoriesDiverged, RemoteAhead, push
from agentx.workspace import Workspace

PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
"""Pauses between two tries to reach a remote; each is twice the one before, up to the longest."""

_ROUNDS = 5
"""How often another worker may push first before this one gives the submission back."""

_SNAPSHOT_EVENTS = 250
"""A worker opens a copy for each run, so it saves a snapshot sooner than a process that stays."""

_Done = TypeVar("_Done")
_CUT_OFF = ("RUNNING", "INTERRUPTED")


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a submission ended on a worker.

    Attributes:
        status: The run's status; ``REFUSED`` if it was not started, ``AGAIN`` if it is left in the queue.
        reason: Why, unless it is ``COMPLETED``.
        run: The run; empty for none.
        commit: The commit that the remote has now.
        already: Whether the history had it, so that nothing was run.
        copy: ``warm`` or ``cold``: whether this worker had a copy.
        seconds: Time of each part: ``fetch``, ``open``, ``run``, ``push``; ``wait``: pauses for a remote that
            cannot be reached; ``set_aside``.
        model: The model that was asked; empty for none.
        prompt_tokens: Tokens of its prompts.
        completion_tokens: Tokens of its answers.
        cost_usd: What they cost, as far as prices are known.
    """

    status: str
    reason: str = ""
    run: str = ""
    commit: str = ""
    already: bool = False
    copy: str = ""
    seconds: dict[str, float] = {}
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


def in_process(
    root: Path, url: str, submission: Submission, settings: Settings, *, report: bool = False
) -> Iterator[Result]:
    """Carry out a submission and yield the result; SIGTERM interrupts it, and its events are pushed."""
    use_gate(AskingGate(ask))
    try:
        yield carry_out(Home(root), url, submission, settings, Parts(report=report))
    except KeyboardInterrupt:
        yield Result(status="AGAIN", reason="the worker ends")
    except (AgentXError, OSError) as error:
        # A run that a full disk cut off is not over: it is resumed once there is room.
        yield Result(status="AGAIN" if disk_is_full(error) else "FAILED", reason=one_line(str(error)))


def sweep_in_process(root: Path, settings: Settings) -> Iterator[tuple[str, str, str, str, str, bool]]:
    """Set copies of earlier attempts aside whose place was taken, and push what was set aside.

    Yields:
        A row for each thing set aside: the directory, the ref, the workspace, the submission, the commit, and
        whether the remote has it; before and after it was pushed.
    """
    home = Home(root)
    for url, submission in home.unfinished():
        with contextlib.suppress(AgentXError, OSError), home.alone(submission.workspace, wait_s=0) as copy:
            ahead = False
            if copy.exists():
                with bring(home, copy, url, submission, settings, Parts(report=False))[0] as ws:
                    ahead = ws.engine.settle()[0] != ws.engine.git.repo.resolve("refs/remotes/origin/main")
            if not ahead:
                home.finished(submission.workspace)
    for folder, about in home.waiting():
        named = (about.workspace, about.submission)
        told = False
        try:
            for ref, commit, pushed in deliver(folder, about, settings):
                yield str(folder), ref, *named, commit, pushed
                told = True
        except (AgentXError, OSError):
            if not told:  # it cannot be read: a person has to look
                yield str(folder), f"{STRANDED}{about.submission}-{folder.name}", *named, "", False


def offer_in_process(root: Path, settings: Settings) -> Iterator[str]:
    """Push the caches of workspaces that grew, beside their remotes; yield the name of each."""
    home = Home(root)
    for workspace, url in home.offers():
        copy = home.copies / workspace
        with contextlib.suppress(AgentXError):  # until the remote can be reached
            remote_cache.offer(copy, remote_of(copy, url, settings), settings)
            home.offered(workspace)
            yield workspace


def carry_out(home: Home, url: str, submission: Submission, settings: Settings, parts: Parts) -> Result:
    """Carry out a submission, unless its run is in the remote's history already.

    A remote that cannot be reached is waited for.

    Args:
        home: The worker's directory.
        url: The workspace's remote.
        submission: The submission; its signature is checked here.
        settings: The worker's settings.
        parts: Takes the time of its parts.

    Raises:
        KeyboardInterrupt: The worker ends.
        AgentXError: The worker itself failed.
    """
    with home.alone(submission.workspace) as copy:
        records = str(home.keep_records(url, submission))
        own = msgspec.structs.replace(settings, trust_record=records, user=submission.user)
        why = ""
        for _ in range(_ROUNDS):
            ws, fetched, temperature = _reached(lambda: bring(home, copy, url, submission, own, parts), parts)
            with ws:
                with parts.timed("run"):
                    result = _run(ws, submission, parts)
                try:
                    commit = _push(ws, remote_of(copy, url, own), fetched, parts)
                except (HistoriesDiverged, RemoteAhead):
                    why = "other pushes to this workspace came first each time"
                    continue  # the copy is set aside, and the new history is looked at
                except PushRefused as error:
                    why = one_line(str(error))
                    continue
            if result.status == "INTERRUPTED":
                raise KeyboardInterrupt
            home.finished(submission.workspace)
            if ws.engine.log.snapshot_age > _SNAPSHOT_EVENTS:
                ws.engine.log.save_snapshot(ws.engine.snapshot())
            if remote_cache.is_due(copy, ws.engine.log.snapshot_seq):
                home.offer_caches(submission.workspace, url)
            return msgspec.structs.replace(result, commit=commit, copy=temperature, seconds=parts.seconds)
        return Result(status="AGAIN", reason=why)


def _run(ws: Workspace, submission: Submission, parts: Parts) -> Result:
    """Run a submission that this workspace's history does not have, or resume its run that was cut off."""
    if why := ws.engine.trust.why_no_run(submission.digest) or ws.restricted:
        return Result(status="REFUSED", reason=one_line(why))
    due = DueTime(submission=submission.id)
    with alone(ws.engine):  # records the end of runs whose process died
        found = ended(ws, submission.id)
    if found is not None and found.status not in _CUT_OFF:
        return found
    message = submission.message
    if found is not None:
        last = ws.state.last_run
        if last is None or last.run != found.run:
            return msgspec.structs.replace(found, reason="it was cut off, and other runs came after it")
        if last.resumed >= MOST_TRIES:
            return Result(status="FAILED", run=last.run, reason=f"it was resumed {last.resumed} times")
        due, message = msgspec.structs.replace(due, resumes=last.run), ""
    try:
        model = ReportedModel(models.model(ws.engine), parts)
        tools = ReportedTools(parts)
        with parts.agent(submission.agent):
            done = run_task(ws, message, model, observer=tools, agent=submission.agent, due=due)
    except NothingToDo as error:
        return Result(status="FAILED", reason=one_line(str(error)))
    except AgentXError as error:
        if disk_is_full(error):
            raise
        # No model, say: nothing was started.
        return Result(status="REFUSED", reason=one_line(str(error)))
    return Result(
        status=done.status,
        reason=one_line(done.reason),
        run=done.run,
        model="/".join(provider_and_model(model.name)),
        **msgspec.structs.asdict(done.usage),
    )


def ended(ws: Workspace, submission: str) -> Result | None:
    """Return how the run of a submission ended by the history; ``None`` if it was not started."""
    started = ws.engine.log.event_of(DueTime(submission=submission).key)
    if started is None:
        return None
    ends = [
        event.data
        for event in ws.engine.log.history.read(started.seq)
        if event.run == started.run and isinstance(event.data, RunEnded)
    ]
    if not ends:
        return Result(status="RUNNING", run=started.run)
    return Result(status=ends[-1].status, reason=one_line(ends[-1].reason), run=started.run, already=True)


def _push(ws: Workspace, remote: Remote, fetched: str, parts: Parts) -> str:
    """Push onto the commit that was fetched, waiting for the remote; return the commit that it has now.

    Raises:
        HistoriesDiverged: The remote has events that are missing here.
        PushRefused: Its branch was moved at this moment, or it refuses the push.
    """

    def once() -> str:
        with parts.timed("push"):
            return push(ws.engine, remote=remote, fetched=fetched).commit

    return _reached(once, parts)


def _reached(do: Callable[[], _Done], parts: Parts) -> _Done:
    """Do something with the remote, again and again until it can be reached."""
    pause = PAUSE_S
    while True:
        try:
            return do()
        except PushRefused:
            raise
        except RemoteFailed:
            with parts.timed("wait"):
                time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
