"""One run at a time in a workspace: the lock of runs, what a run is due by, and the end of one whose process is gone."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.events.types import Draft, RunEnded
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.synthesis.state.state import State

LOCK = "agentx-run.lock"

LOOK_S = 0.2
"""Who only looks whether a run goes on holds the lock for less."""


class Due(msgspec.Struct, frozen=True):
    """What a run was due by.

    Attributes:
        schedule: Id of the schedule.
        at: When, as UTC time in ISO 8601.
        resumes: The run of this due time that was cut off and is gone on with; empty for the first.
    """

    schedule: str = ""
    at: str = ""
    resumes: str = ""

    @property
    def key(self) -> str:
        """Makes starting idempotent: no due time starts twice."""
        return f"due:{self.schedule}:{self.at}" if self.at and not self.resumes else ""

    def is_settled(self, state: State) -> bool:
        """Whether it was run or passed over already; what goes on with a run that was cut off never is."""
        known = state.schedules.get(self.schedule)
        return bool(self.key) and known is not None and self.at <= known.settled


def is_anyone_at_work(engine: Engine) -> bool:
    """Whether a run goes on in this workspace, in whichever process."""
    lock = FileLock(engine.root / ".git" / LOCK, timeout_s=0, needed=not engine.write_path.read_only)
    try:
        with lock.hold():
            return False
    except WorkspaceBusy:
        return True


@contextmanager
def alone(engine: Engine) -> Iterator[None]:
    """Hold the lock of runs; a run whose process is gone has its end on record then.

    Raises:
        WorkspaceBusy: Another run goes on in this workspace.
        ReadOnly: It is open for reading only.
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
            "Another run goes on in this workspace; what you `agentx say` reaches it. Wait for it, or end it with Ctrl-C."
        ) from error


def _end_crashed(engine: Engine) -> None:
    """Several may have gone on at once; one that others have pushed out of the state is known by its lease."""
    state = engine.snapshot()
    begun = {lease.run: 0 for lease in state.leases.values()}
    begun |= {run.run: run.seq for run in state.runs if run.status == "RUNNING"}
    end = RunEnded(status="INTERRUPTED", reason="Its process ended in the middle.")
    ends = [Draft(data=end, actor="engine:runs", run=run, cause=seq) for run, seq in begun.items()]
    if ends:
        engine.write_path.record(ends)
