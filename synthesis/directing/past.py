"""The latest runs of a schedule and their calls, as the director's prompt and dynamic fields read them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from agentx.storage.events.types import (
    Body,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    ToolStatus,
)
from agentx.storage.log.blobs import BlobDamaged
from agentx.synthesis.directing.acts import Listed
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import RECENT_RUNS, RunRecord, State, began, ended

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of a run that has ended.

    Attributes:
        status: ``UNKNOWN`` if the run was cut off between the announcement of the call and its result.
        arguments: Complete if the call was announced before it ran; otherwise as recorded, with long values
            cut.
        outside: Whether the call was announced, as calls with effects outside the workspace are.
    """

    seq: int
    at: str
    run: str
    tool: str
    status: ToolStatus | Literal["UNKNOWN"]
    arguments: dict[str, Any]
    output: Body
    outside: bool = False

    @property
    def may_be_done(self) -> bool:
        """Whether it succeeded or its outcome is unknown; such a call must not be repeated."""
        return self.status in ("SUCCEEDED", "UNKNOWN")


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """The latest runs of a schedule, or of those without one, and their calls.

    Attributes:
        at: The present, as UTC time in ISO 8601.
        runs: Runs that have ended, oldest first.
        ran: Number of runs started since the history began.
        read: Returns the whole text of a body.
        zone: Time zone of the schedule.
        due: When the run that is about to begin was due, as UTC time in ISO 8601; empty without a schedule.
        done: The acts that were done within the windows that are open, by any run, the latest first.
    """

    at: str
    runs: tuple[RunRecord, ...]
    calls: tuple[Call, ...]
    ran: int
    read: ReadBody
    zone: str = "UTC"
    due: str = ""
    done: tuple[Listed, ...] = ()

    def local(self, at: str) -> datetime:
        """Return a time in the zone of the schedule; in UTC if this machine does not know the zone."""
        try:
            zone: tzinfo = ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            zone = UTC
        return datetime.fromisoformat(at).astimezone(zone)

    def moment(self, at: str) -> str:
        """Return a time for a prompt, such as ``Monday 2026-03-02 08:00 (Europe/Berlin)``."""
        return f"{_DAYS[self.local(at).weekday()]} {self.local(at):%Y-%m-%d %H:%M} ({self.zone})"

    def latest(self, runs: int) -> tuple[RunRecord, ...]:
        """Return the last ``runs`` runs, oldest first; all if ``runs`` is 0."""
        return self.runs[-runs:] if runs else self.runs

    def calls_of(self, tool: str, runs: int = 0) -> Iterator[Call]:
        """Return the calls of a tool in the last ``runs`` runs (0: all), latest first."""
        among = {run.run for run in self.latest(runs)}
        return (call for call in reversed(self.calls) if call.tool == tool and call.run in among)


def begin(state: State, runs: int = RECENT_RUNS, schedule: str = "") -> int:
    """Return the number of the event after which :func:`gather` starts reading for the last ``runs`` runs.

    It is 0 if all runs are needed.
    """
    if not runs or runs > RECENT_RUNS:
        return 0
    own = [run.seq for run in state.runs if run.schedule == schedule]
    return own[-runs:][0] - 1 if own else state.seq


def gather(
    events: Iterable[Event], state: State, read: ReadBody, at: str, *, schedule: str = "", due: str = ""
) -> Past:
    """Read what happened in the latest runs of a schedule, or in those without one.

    The events after :func:`begin` come in order; reading stops after ``state.seq``. A call that was refused
    as a repeat is left out: it neither did nor failed anything.
    """
    runs: dict[str, RunRecord] = {}
    calls: list[Call] = []
    announced: dict[str, tuple[Event, ToolCallRequested]] = {}
    for event in events:
        if event.seq > state.seq:
            break
        match event.data:
            case RunStarted() as run if run.schedule == schedule:
                runs[event.run] = began(event, run, runs.get(event.run))
            case RunEnded() as end if event.run in runs:
                runs[event.run] = ended(runs[event.run], event, end)
            case ToolCallRequested(call_id=name, whole=body) as asked if body.text and event.run in runs:
                announced[name] = event, asked
            case ToolCallExecuted() as call if event.run in runs and not call.repeats:
                _, before = announced.pop(call.call_id, (event, None))
                whole = before.whole if before else None
                calls.append(_call(event, call, whole, read, call.status, call.output))
    over = {name: run for name, run in runs.items() if run.ended_seq}
    cut_off = Body("The run was cut off; what came of it is unknown.")
    calls += [
        _call(event, asked, asked.whole, read, "UNKNOWN", cut_off)
        for event, asked in announced.values()
        if event.run in over and not asked.awaits_approval
    ]
    rules = state.schedules
    others = sum(known.runs for known in rules.values())
    return Past(
        at=at,
        runs=tuple(over.values()),
        calls=tuple(sorted(calls, key=lambda call: call.seq)),
        ran=rules[schedule].runs if schedule in rules else state.counts.get("RunStarted", 0) - others,
        read=read,
        zone=rules[schedule].rule.zone if schedule in rules else "UTC",
        due=due,
    )


def _call(
    event: Event,
    call: ToolCallExecuted | ToolCallRequested,
    whole: Body | None,
    read: ReadBody,
    status: ToolStatus | Literal["UNKNOWN"],
    output: Body,
) -> Call:
    arguments = call.arguments
    if whole is not None:
        with suppress(ValueError):
            arguments = msgspec.json.decode(readable(whole, read), type=dict[str, Any])
    return Call(
        seq=event.seq,
        at=event.at,
        run=event.run,
        tool=call.tool,
        status=status,
        arguments=arguments,
        output=output,
        outside=whole is not None,
    )


def readable(body: Body, read: ReadBody) -> str:
    """Return the text of a body; if the blob is damaged, the extract stored in the event."""
    try:
        return read(body)
    except BlobDamaged:
        return body.text
