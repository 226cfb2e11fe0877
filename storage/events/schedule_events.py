"""The facts of the clock: what runs again and again, and due times that passed."""

from typing import Literal

from agentx.storage.events.types import Payload

CatchUp = Literal["once", "all", "none"]


class ScheduleSet(Payload, frozen=True):
    """A task is to run again and again; a second one under the same id takes the place of the first.

    Attributes:
        id: Its name.
        cron: Five fields as of cron(8): minute, hour, day of month, month, day of week.
        task: What is to be done; empty for a heartbeat.
        zone: IANA name of the zone in which ``cron`` is read.
        sort: ``task`` for a run of its own, ``heartbeat`` for a pulse into the run that goes on.
        catch_up: What becomes of due times that nobody was there for: one run for all of them, one for each, or none.
        jitter_s: A run begins so many seconds late at most, always the same for the same due time.
        time_limit_s: A run is ended after so long; 0 for the limit of ``agentx.toml``.
        resume: Whether a run that was cut off is gone on with.
        directed: Whether a director writes the prompt.
        agent: The agent's role.
    """

    id: str
    cron: str
    task: str = ""
    zone: str = "UTC"
    sort: Literal["task", "heartbeat"] = "task"
    catch_up: CatchUp = "once"
    jitter_s: float = 0.0
    time_limit_s: float = 0.0
    resume: bool = True
    directed: bool = False
    agent: str = "main"


class ScheduleRemoved(Payload, frozen=True):
    """A schedule is over."""

    id: str


class DuePassed(Payload, frozen=True):
    """Due times came and went without a run of their own.

    Attributes:
        schedule: Id of the schedule.
        due: The last of them, as UTC time in ISO 8601.
        times: How many.
        reason: Why: the policy for catching up.
    """

    schedule: str
    due: str
    times: int = 1
    reason: str = ""
