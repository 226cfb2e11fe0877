"""Background work that yields to writes: one process does it, in small pieces, while nobody writes.

Another Python thread cannot run while this one computes, so a write that arrives in the middle of a long
piece waits for the interpreter (measured: 6 ms at the median). Hence two ways to yield.
:meth:`Background.step` runs between any two small pieces, also under a lock, and lets a write in progress
finish. :meth:`Background.give_way` runs without a lock and waits until writing has paused for a moment,
because the next write of a turn follows soon.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow

if TYPE_CHECKING:
    from agentx.synthesis.recall.retrieval import SearchHit

_LOG = logging.getLogger("agentx.search.background_worker")

QUIET_S = 0.1
"""Seconds without a write after which writing counts as paused."""

PATIENCE_S = 1.0
"""Longest wait for a pause, in seconds; after that a piece of work is done anyway."""

STEP_S = 0.05
"""Longest wait for one write, in seconds; work continues beside a longer one (an import)."""

WORKERS = ("agentx-indexer", "agentx-by-deadline")
"""Names of the threads that load and fill the index."""

LOOK_S = 0.002
IDLE_S = 0.5
TROUBLE_S = 5.0

T = TypeVar("T")


class SearchLate(AgentXError):
    """A search missed its deadline; it continues in the background, so that the next one is faster.

    Attributes:
        found: Hits in the part of the history that was read until then; empty for none.
    """

    def __init__(self, message: str, found: "Sequence[SearchHit]" = ()) -> None:
        super().__init__(message)
        self.found = list(found)


def done_by(deadline: float | None, work: Callable[[], T]) -> T:
    """Return the result of some work if it finishes in time; otherwise drop the result.

    Work that is late continues in its thread.

    Args:
        deadline: ``time.monotonic()`` by which this returns; ``None`` waits.
        work: Runs in a separate thread if there is a deadline.

    Raises:
        SearchLate: The work was not finished by the deadline.
    """
    if deadline is None:
        return work()
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=run, name=WORKERS[1], daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if failed:
        raise failed[0]
    if not found:
        raise SearchLate(
            "The search did not finish by the deadline: the index is still being loaded or filled. This "
            "continues in the background; try again in a moment, or allow more time."
        )
    return found[0]


class Writes(Protocol):
    """State of the writing in this process."""

    @property
    def writing(self) -> bool:
        """Whether a write is in progress in this process."""
        ...

    @property
    def last_write(self) -> float:
        """``time.monotonic()`` of the latest write."""
        ...


class Ownership:
    """Decides which process does the background work: the one that locks a file, until it ends.

    Args:
        path: The file.
        may: Whether the directory is still that of the workspace.
    """

    def __init__(self, path: Path, may: Callable[[], bool] = lambda: True) -> None:
        self._may = may
        self._path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Become the owner unless another process (or workspace object) is; never waits."""
        if self._descriptor >= 0 and self._is_named():
            return True
        self.release()
        if not self._may():
            return False
        try:
            descriptor = nofollow.open_descriptor(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return False  # the cache was deleted, or the disk is full: the next attempt decides
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return self._is_named()

    def release(self) -> None:
        """Give up ownership, so that another process can take it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _is_named(self) -> bool:
        """Return whether the locked file still has its name: the cache may have been deleted."""
        with suppress(OSError):
            return os.fstat(self._descriptor).st_ino == nofollow.status(self._path).st_ino
        return False


class Background:
    """A thread that works in turns until it is stopped.

    Args:
        name: Name of the thread.
        turn: Does one piece of work; returns whether there is more.
        writes: The writing to yield to.
        ownership: Decides whether this process may work.
    """

    def __init__(self, name: str, turn: Callable[[], bool], writes: Writes, ownership: Ownership) -> None:
        self._name = name
        self._turn = turn
        self._writes = writes
        self._ownership = ownership
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested; a long turn checks this now and then."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Start the thread; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """Stop after the current piece; without ``wait`` it may still be running on return."""
        self._stopping.set()
        if self._thread is not None and wait:
            self._thread.join(timeout=30)

    def step(self) -> None:
        """Let a write in progress finish; does nothing in any other thread."""
        if threading.current_thread() is not self._thread:
            return
        end = time.monotonic() + STEP_S
        while self._writes.writing and time.monotonic() < end and not self.stopping:
            self._stopping.wait(LOOK_S)

    def give_way(self) -> None:
        """Wait until writing pauses, at most :data:`PATIENCE_S`; does nothing in any other thread."""
        if threading.current_thread() is not self._thread:
            return
        end = time.monotonic() + PATIENCE_S
        while (now := time.monotonic()) < end and not self._stopping.is_set():
            quiet = QUIET_S - (now - self._writes.last_write)
            if quiet <= 0 and not self._writes.writing:
                return
            self._stopping.wait(max(quiet, LOOK_S))

    def _work(self) -> None:
        """Run turns as long as this process is the owner, until stopped."""
        try:
            while not self.stopping:
                wait_s = IDLE_S
                if self._ownership.take():
                    self.give_way()
                    try:
                        wait_s = 0.0 if self._turn() else IDLE_S
                    except Exception:  # noqa: BLE001 - the work is on a cache: no fault may end the thread
                        _LOG.exception("Background work failed and will be retried.")
                        wait_s = TROUBLE_S
                self._stopping.wait(wait_s)
        finally:
            self._ownership.release()
