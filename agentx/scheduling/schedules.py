"""Schedules: run what is due exactly once, even if the process crashes.

The history alone determines what is due. A due time is settled by the ``RunStarted`` that names it. That
event has its own key and is recorded under the run lock before anything is done, so neither a second process
nor a restart after a kill can start it twice. The next process marks a run whose process is gone as ended,
and resumes it if its schedule says so.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import Any

import msgspec

from agentx.agents.loop import NothingToDo, run_task
from agentx.agents.run_types import Limits
from agentx.agents.turn import DueTime, alone
from agentx.directing import configured
from agentx.directing.configured_tools import configured_tools
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Executor
from agentx.engine import models
from agentx.scheduling.resume_check import beat, look
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.schedule_events import DuePassed, ScheduleRemoved, ScheduleSet
from agentx.storage.events.types import Draft, RunEnded, RunStarted, RunStatus
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.log.history import told_already
from agentx.storage.text import clip, one_line
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.scheduling.schedule_times import DuePlan, check, plan, pulse, upcoming
from agentx.synthesis.state.state import RunRecord, ScheduleRecord, State
from agentx.trust.trust import Restricted
from agentx.trust.trusted_items import of_schedule
from agentx.workspace import Workspace

MOST_RESUMED = 3
"""Maximum number of resumes per due time, so that a run that kills its process each time is not retried for
ever."""

TASK_BYTES, TASK_CHARACTERS = 8_000, 1_000
"""Maximum size of a task in the event of its schedule, and characters kept there of a longer one."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ID_WORDS = 4


class NoSuchSchedule(UsageError):
    """No schedule has that name."""


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides the model, executor and tools that ``agentx.toml`` configures.

    Attributes:
        model: The model that answers, and directs.
        executor: Carries out the prompts of a director.
        functions: Tools of the executor, by name.
    """

    model: ModelClient | None = None
    executor: Executor | None = None
    functions: Mapping[str, Callable[..., Any]] = {}


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """A due time that was run.

    Attributes:
        resumed: Whether an interrupted run was resumed.
        noted: A sentence on what went otherwise than planned, as a director that failed; or empty.
    """

    schedule: str
    due: str
    run: str
    status: RunStatus
    reason: str = ""
    summary: str = ""
    resumed: bool = False
    noted: str = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a schedule.

    Attributes:
        next: When it is due next, as UTC time in ISO 8601; in the past if it is overdue.
        last: Its latest run, among the latest runs of the workspace.
        passed: Number of due times that were skipped; ``passed_why`` is the reason of the latest.
    """

    rule: ScheduleSet
    next: str = ""
    last: RunRecord | None = None
    passed: int = 0
    passed_why: str = ""


# --- setting ------------------------------------------------------------------------------------------------


def id_of(task: str) -> str:
    """Return a default name for a schedule, from the first words of its task.

    >>> id_of("Monitor HN for AI news, please")
    'monitor-hn-for-ai'
    """
    return "-".join(re.findall(r"[a-z0-9]+", task.lower())[:_ID_WORDS])[:64] or "task"


def add(ws: Workspace, rule: ScheduleSet) -> None:
    """Add or replace a recurring task; a schedule with the same ID is replaced.

    The task of a directed schedule is also recorded as a user message for this schedule alone. Its director
    then reads it among the user's wishes, and memory keeps its demands. It counts until the schedule gets
    another task or is removed. The agent of any other schedule gets the task at each run.

    Raises:
        ScheduleInvalid: Its five cron fields or its time zone cannot be read.
        UsageError: It has no task, or its name is invalid.
    """
    if not _ID.fullmatch(rule.id):
        raise UsageError(f"{rule.id!r} is not a valid schedule name; use letters, digits, '_', '.' and '-'.")
    if rule.sort == "task" and not rule.task.strip():
        raise UsageError("The schedule has no task; give one.")
    check(rule)
    task = rule.task
    if len(task.encode()) > TASK_BYTES:
        rule = msgspec.structs.replace(rule, task=clip(task, TASK_CHARACTERS), whole=ws.body(task))
    ws.record(Draft(data=rule, actor=ws.settings.actor))
    if note := ws.engine.trust.keep(of_schedule(rule)):
        ws.engine.write_path.notes.append(note)
    if rule.directed and rule.sort == "task" and not ws.state.schedules[rule.id].told:
        ws.say(task, schedule=rule.id)


def _whole(ws: Workspace, rule: ScheduleSet) -> str:
    return ws.read_body(rule.whole) if rule.whole.text else rule.task


def remove(ws: Workspace, name: str) -> None:
    """Remove a schedule; its runs stay in the history.

    Raises:
        NoSuchSchedule: No schedule has that name.
    """
    if name not in (known := ws.state.schedules):
        listed = f"there are: {', '.join(known)}" if known else "there are none"
        raise NoSuchSchedule(f"Unknown schedule {name!r}; {listed}.")
    ws.record(Draft(data=ScheduleRemoved(id=name), actor=ws.settings.actor))


def standing(ws: Workspace, now: datetime) -> list[Standing]:
    """Return the status of each schedule, in the order in which they were added."""
    state = ws.state
    passed: dict[str, list[DuePassed]] = {}
    if state.counts.get("DuePassed"):
        for event in ws.engine.log.history.read(0, told_already):
            if isinstance(event.data, DuePassed):
                passed.setdefault(event.data.schedule, []).append(event.data)
    return [
        Standing(
            rule=known.rule,
            next=_planned(known, now).begins or next(iter(upcoming(known, now, 1)), ""),
            last=next((run for run in reversed(state.runs) if run.schedule == name), None),
            passed=sum(one.times for one in passed.get(name, [])),
            passed_why=passed[name][-1].reason if name in passed else "",
        )
        for name, known in state.schedules.items()
    ]


# --- running ------------------------------------------------------------------------------------------------


def begins(state: State, now: datetime) -> tuple[str, str]:
    """Return when something is due next, and the schedule; both are empty for never.

    The time is UTC in ISO 8601. It is not later than ``now`` if something is due at once.
    """
    if (cut_off := _cut_off(state)) is not None:
        return state.at, cut_off[0].id
    moments = []
    for name, known in state.schedules.items():
        planned = _planned(known, now)
        passed = planned.passed.due if planned.passed else ""
        moments.append((passed or planned.begins or next(iter(upcoming(known, now, 1)), ""), name))
    return min((one for one in moments if one[0]), default=("", ""))


def _planned(known: ScheduleRecord, now: datetime) -> DuePlan:
    """Return the plan of a schedule; a heartbeat has none."""
    return DuePlan() if known.rule.sort == "heartbeat" else plan(known, now)


def works_with(ws: Workspace, schedule: str) -> str:
    """Return the model or program that runs a schedule, by name."""
    program = ws.config.director.executor
    if ws.state.schedules[schedule].rule.directed and program:
        return program[0]
    return ws.config.model.name or ws.settings.model


def carry_out_due(
    ws: Workspace,
    now: datetime,
    *,
    means: Means = Means(),  # noqa: B008 - a value
    most: int = 0,
) -> list[Carried]:
    """Run what is due, one after another, and record what is skipped.

    Args:
        ws: The workspace.
        now: The current time; what becomes due meanwhile waits for the next call.
        means: Overrides the model, executor and tools.
        most: Maximum number of runs; 0 for no limit.

    Returns:
        The runs, in order. The list ends after a run that was interrupted.

    Raises:
        WorkspaceBusy: Another run is in progress in this workspace.
        Restricted: Everything that is due came with the workspace and is not trusted.
    """
    done: list[Carried] = []
    while not most or len(done) < most:
        with alone(ws.engine):
            chosen = _choose(ws, now)
        carried = _carry_out(ws, *chosen, means) if chosen else None
        if carried is None:
            break
        done.append(carried)
        if carried.status == "INTERRUPTED":
            break
    return done


def _choose(ws: Workspace, now: datetime) -> tuple[ScheduleSet, DueTime] | None:
    """Return what to run first, and record what is skipped."""
    state = ws.state
    if (cut_off := _cut_off(state)) is not None:
        ws.engine.trust.require_item(of_schedule(cut_off[0]))
        return cut_off
    ready: list[tuple[str, str]] = []
    for name, known in state.schedules.items():
        # A heartbeat starts no run, so there is nothing to settle: an idle pulse leaves no trace.
        if known.rule.sort == "heartbeat":
            if (due := pulse(known, now)) and look(state).status == "CONTINUED":
                ready.append((due, name))
            continue
        planned = plan(known, now)
        if planned.passed is not None:
            key = f"passed:{planned.passed.schedule}:{planned.passed.due}"
            ws.record(Draft(data=planned.passed, actor="engine:schedules", key=key))
        if planned.due and datetime.fromisoformat(planned.begins) <= now:
            ready.append((planned.due, name))
    return _trusted(ws, [(state.schedules[name].rule, DueTime(name, due)) for due, name in sorted(ready)])


def _trusted(ws: Workspace, ready: list[tuple[ScheduleSet, DueTime]]) -> tuple[ScheduleSet, DueTime] | None:
    """Return the first due schedule that the user trusts.

    Raises:
        Restricted: Something is due, and none of it is trusted.
    """
    refused: Restricted | None = None
    for rule, due in ready:
        try:
            ws.engine.trust.require_item(of_schedule(rule))
        except Restricted as error:
            refused = refused or error
        else:
            return rule, due
    if refused is not None:
        raise refused
    return None


def _cut_off(state: State) -> tuple[ScheduleSet, DueTime] | None:
    """Return the schedule and due time of the latest run if it was interrupted and is to be resumed."""
    last = state.last_run
    known = state.schedules.get(last.schedule) if last else None
    if last is None or known is None or last.status != "INTERRUPTED" or not known.rule.resume:
        return None
    if not last.due:  # the user ran it by hand
        return None
    same = [run for run in state.runs if (run.schedule, run.due) == (last.schedule, last.due)]
    if sum(1 + run.resumed for run in same) > MOST_RESUMED:
        return None
    return known.rule, DueTime(last.schedule, last.due, resumes=last.run)


def _carry_out(ws: Workspace, rule: ScheduleSet, due: DueTime, means: Means) -> Carried | None:
    """Carry out one run, which is on record at the end; ``None`` if another process was first."""
    before, noted = ws.state.counts.get("RunStarted", 0), ""
    try:
        if rule.sort == "heartbeat":
            beat(ws, lambda: means.model or models.model(ws.engine))
        elif rule.directed:
            noted = _direct(ws, rule, due, means)
        else:
            _work(ws, rule, due, means)
    except NothingToDo:
        return None
    except WorkspaceBusy:
        raise
    except AgentXError as error:
        if rule.sort == "heartbeat":
            raise
        if ws.state.counts.get("RunStarted", 0) == before:
            _note_failed(ws, rule, due, error)
    state = ws.state
    last = state.last_run
    if last is None or state.counts["RunStarted"] == before:
        return None
    return Carried(
        schedule=due.schedule,
        due=due.at,
        run=last.run,
        status=last.status,  # type: ignore[arg-type]  # it has ended
        reason=last.reason,
        summary=last.summary,
        resumed=bool(due.resumes) or rule.sort == "heartbeat",
        noted=noted,
    )


def _work(ws: Workspace, rule: ScheduleSet, due: DueTime, means: Means) -> None:
    model = means.model or models.model(ws.engine)
    limits = Limits.of(ws.config)
    if rule.time_limit_s:
        limits = msgspec.structs.replace(limits, max_time_s=rule.time_limit_s)
    message = "" if due.resumes else _whole(ws, rule)
    with ws.watching():
        run_task(ws, message, model, limits=limits, agent=rule.agent, due=due)


def _direct(ws: Workspace, rule: ScheduleSet, due: DueTime, means: Means) -> str:
    """Carry out a directed run; return a sentence on why its director failed, if it did."""
    section = ws.config.director
    with nullcontext(means.functions) if means.functions else configured_tools(ws.engine) as functions:
        made = run_directed(
            ws.engine,
            means.executor or configured.executor(ws.engine),
            functions,
            model=means.model or models.director_model(ws.engine),
            agent=rule.agent,
            files=section.files,
            due=due,
            time_limit_s=rule.time_limit_s or section.time_limit_s,
        )
    return made.failed if made else ""


def _note_failed(ws: Workspace, rule: ScheduleSet, due: DueTime, error: AgentXError) -> None:
    """Record a run that could not start as failed: its due time is settled, and the audit reports it."""
    run, actor = f"r-{ws.state.counts.get('RunStarted', 0) + 1}", f"agent:{rule.agent}"
    task = ws.body(_whole(ws, rule))
    started = RunStarted(
        task=task, agent=rule.agent, model="", resumes=due.resumes, schedule=due.schedule, due=due.at
    )
    ended = RunEnded(status="FAILED", reason=one_line(str(error)))
    ws.record(Draft(data=started, actor=actor, run=run, key=due.key), Draft(data=ended, actor=actor, run=run))
