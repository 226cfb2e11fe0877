"""When schedules are due: pure code over the history, so that every process comes to the same result.

A due time is settled by the run that carries it out, or by a ``DuePassed`` event if the catch-up policy skips
it. A settled due time is never due again.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from agentx.storage.clock import stamp
from agentx.storage.errors import UsageError
from agentx.storage.events.schedule_events import DuePassed, ScheduleSet
from agentx.synthesis.state.state import ScheduleRecord

PUNCTUAL_S = 60.0
"""Maximum delay in seconds at which a due time does not count as missed: a scheduler that polls every few
seconds saw it.
"""

MOST_COUNTED = 1_000
"""Maximum number of missed due times that are counted one by one."""

_FIELDS = 5


class ScheduleInvalid(UsageError):
    """A schedule cannot be parsed: its five fields, or its time zone."""


class DuePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about a schedule now.

    Attributes:
        passed: Missed due times that get no separate run; recorded before the run.
        due: The due time to run; empty for none.
        begins: When its run begins: ``due`` plus the jitter. It may lie in the future.
    """

    passed: DuePassed | None = None
    due: str = ""
    begins: str = ""


def check(rule: ScheduleSet) -> None:
    """Raise :class:`ScheduleInvalid` if a schedule cannot be parsed or is never due."""
    next(times(rule, datetime.now(tz=UTC)), None)


def times(rule: ScheduleSet, after: datetime) -> Iterator[datetime]:
    """Yield the due times of a schedule after a moment, in UTC, in order.

    Follows Debian's cron (through ``cronsim``). A time that is skipped when clocks are set forward is due
    right after the gap. A time that occurs twice when clocks are set back is due once. Intervals continue at
    the same rate.

    Raises:
        ScheduleInvalid: The schedule cannot be parsed.
    """
    try:
        due = CronSim(rule.cron if len(rule.cron.split()) == _FIELDS else "", after.astimezone(_zone(rule)))
    except CronSimError as error:
        raise ScheduleInvalid(
            f"The schedule {rule.id} cannot be read: {rule.cron!r} ({error}). Write five fields, minute "
            f"hour day month weekday, like '0 */6 * * *'."
        ) from error
    for one in due:
        moment = one.astimezone(UTC)
        if moment > after:
            yield moment


def _zone(rule: ScheduleSet) -> ZoneInfo:
    try:
        return ZoneInfo(rule.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleInvalid(
            f"The schedule {rule.id} has an unknown time zone: {rule.zone!r}. "
            "Write one like Europe/Berlin, or UTC."
        ) from error


def upcoming(record: ScheduleRecord, now: datetime, most: int) -> list[str]:
    """Return the next due times, from now on."""
    after = max(now, _read(record.settled) or now)
    return [stamp(moment) for moment in islice(times(record.rule, after), most)]


def pulse(record: ScheduleRecord, now: datetime) -> str:
    """Return the due time of a heartbeat that fires now; empty if none.

    Missed heartbeats are not made up for.
    """
    beat = next(times(record.rule, now - timedelta(seconds=PUNCTUAL_S)), None)
    return stamp(beat) if beat is not None and beat <= now else ""


def plan(record: ScheduleRecord, now: datetime) -> DuePlan:
    """Return what to do about a schedule, given how far its due times are settled."""
    rule = record.rule
    after = max(filter(None, (_read(record.since), _read(record.settled))), default=now)
    if rule.catch_up == "all":
        first = next(times(rule, after), None)
        return _run(rule, first) if first is not None and first <= now else DuePlan()
    missed, latest, count = None, None, 0
    for moment in times(rule, after):
        if moment > now:
            break
        missed, latest = latest, moment
        count += 1
        if count == MOST_COUNTED:  # only the last two matter
            latest = _latest(rule, now)
            missed = _latest(rule, latest - timedelta(seconds=1))
            break
    if latest is None:
        return DuePlan()
    punctual = now - latest <= timedelta(seconds=PUNCTUAL_S + rule.jitter_s)
    if rule.catch_up == "none" and not punctual:
        return DuePlan(passed=_pass(rule, latest, count))
    passed = _pass(rule, missed, count - 1) if missed is not None else None
    return msgspec.structs.replace(_run(rule, latest), passed=passed)


def _latest(rule: ScheduleSet, now: datetime) -> datetime:
    """Return the last due time up to a moment."""
    behind = CronSim(rule.cron, (now + timedelta(seconds=1)).astimezone(_zone(rule)), reverse=True)
    return next(behind).astimezone(UTC)


def _run(rule: ScheduleSet, due: datetime) -> DuePlan:
    """Plan a run; its jitter is the same for one due time, and spread evenly over schedules due together."""
    drawn = blake2b(f"{rule.id}\0{rule.task}\0{stamp(due)}".encode(), digest_size=8).digest()
    jitter = timedelta(seconds=rule.jitter_s * int.from_bytes(drawn) / 2**64)
    return DuePlan(due=stamp(due), begins=stamp(due + jitter))


def _pass(rule: ScheduleSet, last: datetime, count: int) -> DuePassed:
    policy = "the latest one counts for all of them" if rule.catch_up == "once" else "none is made up for"
    return DuePassed(schedule=rule.id, due=stamp(last), times=count, reason=f"nobody was there, and {policy}")


def _read(at: str) -> datetime | None:
    return datetime.fromisoformat(at) if at else None
