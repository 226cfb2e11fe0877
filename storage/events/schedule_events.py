"""The facts of the scheduler: recurring tasks, and due times that passed."""

from typing import Literal

from agentx.storage.events.types import WORDS, Body, Event, Payload
from agentx.storage.text import shorten

CatchUp = Literal["once", "all", "none"]


class ScheduleSet(Payload, frozen=True):
    """A recurring task was added; a second one with the same id replaces the first.

    Attributes:
        id: Name of the schedule.
        cron: Five fields as of cron(8): minute, hour, day of month, month, day of week.
        task: The instructions, or their beginning if ``whole`` has all of them; empty for a heartbeat.
        zone: IANA name of the time zone in which ``cron`` is interpreted.
        sort: ``task`` for a separate run, ``heartbeat`` for a pulse that resumes the current run.
        catch_up: What to do about missed due times: one run for all of them, one for each, or none.
        jitter_s: Maximum delay of a run, in seconds; the delay is always the same for the same due time.
        time_limit_s: Time limit of a run; 0 for the limit of ``agentx.toml``.
        resume: Whether an interrupted run is resumed.
        directed: Whether a director writes the prompt.
        agent: The agent's role.
        whole: The complete instructions if they are long; empty if ``task`` is complete.
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
    whole: Body = Body("")

    def _line(self, _event: Event, /) -> str:
        return f"Schedule {self.id} ({self.cron}): {shorten(self.task or 'heartbeat', WORDS)}"


class ScheduleRemoved(Payload, frozen=True):
    """A schedule was removed."""

    id: str

    def _line(self, _event: Event, /) -> str:
        return f"Remove the schedule {self.id}"


class DuePassed(Payload, frozen=True):
    """Due times passed without a separate run.

    Attributes:
        schedule: Id of the schedule.
        due: The last of them, as UTC time in ISO 8601.
        times: Number of missed due times.
        reason: The reason: the catch-up policy.
    """

    schedule: str
    due: str
    times: int = 1
    reason: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"Pass over {self.times} due time{'s' * (self.times != 1)} of {self.schedule}: {self.reason}"
