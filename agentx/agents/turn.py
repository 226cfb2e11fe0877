"""One run at a time per workspace: the run lock, due times, and the end of runs whose process died."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.events.types import Draft, RunEnded
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.synthesis.state.state import State

LOCK = "agentx-run.lock"

LOOK_S = 0.2
"""Timeout of the run lock; longer than a process that only checks for a running run holds it."""


class DueTime(msgspec.Struct, frozen=True):
    """The schedule and time that caused a run.

    Attributes:
        schedule: Id of the schedule.
        at: The due time, as UTC time in ISO 8601.
        resumes: The interrupted run of this due time that is resumed; empty for the first.
        submission: Id of the submission to a fleet that caused the run instead of a schedule; empty for none.
    """

    schedule: str = ""
    at: str = ""
    resumes: str = ""
    submission: str = ""

    @property
    def key(self) -> str:
        """Idempotency key of the start: no due time and no submission starts twice."""
        if self.submission and not self.resumes:
            return f"fleet:{self.submission}"
        return f"due:{self.schedule}:{self.at}" if self.at and not self.resumes else ""

    def is_settled(self, state: State) -> bool:
        """Return whether this due time was run or skipped already; a resumed run never is."""
        known = state.schedules.get(self.schedule)
        return bool(self.key) and known is not None and self.at <= known.settled


def is_anyone_at_work(engine: Engine) -> bool:
    """Return whether a run is in progress in this workspace, in any process."""
    lock = FileLock(engine.root / ".git" / LOCK, timeout_s=0, needed=not engine.write_path.read_only)
    try:
        with lock.hold():
            return False
    except WorkspaceBusy:
        return True


@contextmanager
def alone(engine: Engine) -> Iterator[None]:
    """Hold the run lock, and record the end of runs whose process died.

    Raises:
        WorkspaceBusy: Another run is in progress in this workspace.
        ReadOnly: The workspace is open for reading only.
    """
    engine.write_path.require_writable()
    lock = FileLock(engine.root / ".git" / LOCK, timeout_s=LOOK_S)
    try:
        with lock.hold():
            _end_crashed(engine)
            yield
    except WorkspaceBusy as error:
        if lock.held:
            raise
        raise WorkspaceBusy(
            "Another run is active in this workspace. Send it a message with `agentx say`, wait for it, "
            "or end it with Ctrl-C."
        ) from error


def _end_crashed(engine: Engine) -> None:
    """Record the end of all runs that crashed; there may be several.

    The leases show runs that later ones have pushed out of the state.
    """
    state = engine.snapshot()
    begun = {lease.run: 0 for lease in state.leases.values()}
    begun |= {run.run: run.seq for run in state.runs if run.status == "RUNNING"}
    end = RunEnded(status="INTERRUPTED", reason="Its process ended in the middle.")
    ends = [Draft(data=end, actor="engine:runs", run=run, cause=seq) for run, seq in begun.items()]
    if ends:
        engine.write_path.record(ends)
