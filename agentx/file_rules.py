"""Which agent may write to which file: the leases of those that were dispatched.

What is checked is checked under the workspace's lock, with everything that other processes wrote folded in.
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from agentx.engine import Engine
from agentx.storage.errors import AgentXError
from agentx.storage.events import Draft, RunStarted
from agentx.storage.pipeline_events import Dispatched
from agentx.synthesis.state import Lease, State

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.2


class FileLeased(AgentXError):
    """Another run alone may write to the file, as long as its lease holds.

    Attributes:
        path: The file.
        lease: Who has it, and until when.
    """

    def __init__(self, path: str, lease: Lease, who: str) -> None:
        item = f" of item {lease.item}" if lease.item else ""
        super().__init__(
            f"{who} may not write to {path}: it is leased to {lease.role} for stage {lease.stage}{item} "
            f"({lease.run}) until {lease.until or 'that run ends'}. A file has one writer at a time: wait for the end of "
            f"{lease.run}, or write to another file."
        )
        self.path, self.lease = path, lease


def take(engine: Engine, started: RunStarted, sent: Dispatched, *, actor: str, wait_s: float) -> str:
    """Begin a run that alone may write to some files; its start and its leases are recorded in one append.

    Args:
        engine: The workspace.
        started: The run.
        sent: What it is sent to do; the files are its ``writes``.
        actor: Who does it.
        wait_s: How long to wait for the leases of other runs to end, in seconds.

    Returns:
        The id of the run.

    Raises:
        FileLeased: One of the files was leased to another run all the while.
    """
    deadline, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
    while True:
        with engine.write_path.exclusive():
            state = engine.write_path.state
            held = _held(state, sent.writes)
            if held is None:
                run = f"r-{state.counts.get('RunStarted', 0) + 1}"
                engine.write_path.record([Draft(data=data, actor=actor, run=run) for data in (started, sent)])
                return run
        if time.monotonic() >= deadline:
            raise FileLeased(*held, f"{sent.role} ({actor})")
        time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _held(state: State, paths: Iterable[str], run: str = "") -> tuple[str, Lease] | None:
    """The first of some files that is leased to another run than this one, and its lease."""
    leases = ((path, state.leases[path]) for path in paths if path in state.leases)
    return next(((path, lease) for path, lease in leases if lease.run != run and _is_live(lease)), None)


def _is_live(lease: Lease) -> bool:
    """Whether a lease binds others now; one whose end cannot be read does so until its run ends."""
    try:
        until = datetime.fromisoformat(lease.until)
    except ValueError:
        return True
    return datetime.now(UTC) < (until if until.tzinfo else until.replace(tzinfo=UTC))
