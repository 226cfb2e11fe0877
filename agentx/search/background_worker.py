"""Background work that stands in nobody's way: one process does it, in small pieces, while nobody writes.

Another thread of Python cannot run while this one computes, so a write that comes in the middle of a long piece waits
for the interpreter (measured: 6 ms at the median). Hence the two ways to step back: :meth:`Background.step` between
any two small pieces, also under a lock, lets a write that is under way finish; :meth:`Background.give_way`, under no
lock, waits until the writing has been quiet for a moment, for the next write of a turn follows soon.
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
"""The writing is quiet when so long nothing was written."""

PATIENCE_S = 1.0
"""Where it never is, a piece of work is done all the same after so long."""

STEP_S = 0.05
"""A write is let pass for so long; a longer one (an import) is worked beside."""

WORKERS = ("agentx-indexer", "agentx-by-deadline")
"""Names of the threads that load and fill the index."""

LOOK_S = 0.002
IDLE_S = 0.5
TROUBLE_S = 5.0

T = TypeVar("T")


class SearchLate(AgentXError):
    """A search was not done by its deadline; it goes on in the background, so that the next one is faster.

    Attributes:
        found: What it found up to then, in what was read of the history; empty for nothing.
    """

    def __init__(self, message: str, found: "Sequence[SearchHit]" = ()) -> None:
        super().__init__(message)
        self.found = list(found)


def done_by(deadline: float | None, work: Callable[[], T]) -> T:
    """Return the result of some work if it is done in time; otherwise it goes on, and its result is dropped.

    Args:
        deadline: ``time.monotonic()`` by which this returns; ``None`` waits.
        work: Runs in a thread of its own where there is a deadline.

    Raises:
        SearchLate: It was not done by then.
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
            "The search was not done by the deadline: the index is still being loaded or filled. That goes on in the "
            "background; ask again in a moment, or give it longer."
        )
    return found[0]


class Writes(Protocol):
    """What is to be known of the writing."""

    @property
    def writing(self) -> bool:
        """Whether a write is under way in this process."""
        ...

    @property
    def last_write(self) -> float:
        """``time.monotonic()`` of the latest one."""
        ...


class Ownership:
    """Which process does the background work: the one that holds a lock on a file; it ends with the process.

    Args:
        path: The file, beside the cache that is worked on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Become the owner, unless another process (or workspace object) is; nobody waits."""
        if self._descriptor >= 0 and self._stands():
            return True
        self.release()
        try:
            descriptor = nofollow.open_descriptor(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return False  # the cache was deleted, or the disk is full: the next look tells
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return self._stands()

    def release(self) -> None:
        """Let another process become the owner."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _stands(self) -> bool:
        """Whether the file that is locked is still the one of that name: the cache may have been deleted."""
        with suppress(OSError):
            return os.fstat(self._descriptor).st_ino == nofollow.status(self._path).st_ino
        return False


class Background:
    """A thread that works in turns until it is stopped.

    Args:
        name: Of the thread.
        turn: Does one piece of work; returns whether there is more.
        writes: What to step back from.
        ownership: Who may work.
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
        """Whether it is to stop: a long turn looks now and then."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Begin; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """Stop, after the piece that is under way; without ``wait`` it may still be under way on return."""
        self._stopping.set()
        if self._thread is not None and wait:
            self._thread.join(timeout=30)

    def step(self) -> None:
        """Let a write that is under way finish; does nothing in any other thread."""
        if threading.current_thread() is not self._thread:
            return
        end = time.monotonic() + STEP_S
        while self._writes.writing and time.monotonic() < end and not self.stopping:
            self._stopping.wait(LOOK_S)

    def give_way(self) -> None:
        """Wait until the writing is quiet, :data:`PATIENCE_S` at most; does nothing in any other thread."""
        if threading.current_thread() is not self._thread:
            return
        end = time.monotonic() + PATIENCE_S
        while (now := time.monotonic()) < end and not self._stopping.is_set():
            quiet = QUIET_S - (now - self._writes.last_write)
            if quiet <= 0 and not self._writes.writing:
                return
            self._stopping.wait(max(quiet, LOOK_S))

    def _work(self) -> None:
        try:
            while not self.stopping:
                self._stopping.wait(self._once())
        finally:
            self._ownership.release()

    def _once(self) -> float:
        """One turn, where this process may; how long to wait before the next, in seconds."""
        if not self._ownership.take():
            return IDLE_S
        self.give_way()
        try:
            return 0.0 if self._turn() else IDLE_S
        except Exception:  # noqa: BLE001 - what is worked on is a cache: whatever befalls it must not end the work
            _LOG.exception("Background work failed, and is tried again.")
            return TROUBLE_S
