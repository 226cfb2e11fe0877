"""The lock of a workspace: one writer at a time, across threads and processes, held for milliseconds.

The kernel frees an ``flock`` when its holder dies, so a crashed process never stops the next one.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from agentx.storage import nofollow
from agentx.storage.errors import AgentXError
from agentx.storage.interrupts import PutOff

_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.02
_LOOK_UP_S = 0.1
"""Who waits for another thread looks up so often, for a Ctrl-C."""


class WorkspaceBusy(AgentXError):
    """Another process held the lock for longer than a writer may."""


class LockNotTaken(AgentXError):
    """The lock file could not be opened: a full disk, missing rights."""


class FileLock:
    """An exclusive lock on a file, re-entrant within a thread; a Ctrl-C never leaves it held.

    Args:
        path: The lock file; made where it is missing, never removed.
        timeout_s: How long to wait for another holder.
        brief: It is held for milliseconds, and others wait for it: Ctrl-C is put off until it is let go.
    """

    def __init__(self, path: Path, timeout_s: float = 30.0, *, brief: bool = False) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._brief = brief
        self._thread_lock = threading.RLock()
        self._depth = 0
        self._fd = -1

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, in whichever thread."""
        return self._depth > 0

    @property
    def depth(self) -> int:
        """How many times the lock is held, one inside the other; 0 for not at all."""
        return self._depth

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock for the body of a ``with``.

        Raises:
            WorkspaceBusy: It could not be had in time.
            LockNotTaken: Its file could not be opened.
        """
        with PutOff() as interrupts:
            self._take(interrupts)
            try:
                try:
                    if not self._brief:
                        interrupts.let_through()
                    yield
                finally:
                    interrupts.put_off()  # a Ctrl-C before this is done comes to the release all the same
            finally:
                self._depth -= 1
                if self._depth == 0:
                    os.close(self._fd)
                self._thread_lock.release()

    def _take(self, interrupts: PutOff) -> None:
        deadline = time.monotonic() + self._timeout_s
        while not self._thread_lock.acquire(timeout=min(_LOOK_UP_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                raise WorkspaceBusy(
                    f"Another thread has held {self._path} for {self._timeout_s:g} s; try again."
                )
            interrupts.check()
        try:
            if self._depth == 0:
                self._fd = self._acquire(interrupts)
        except BaseException:
            self._thread_lock.release()
            raise
        self._depth += 1

    def _open(self) -> int:
        try:
            return nofollow.open_descriptor(self._path, os.O_RDONLY)  # which a read-only disk allows as well
        except FileNotFoundError:
            pass
        except OSError as error:
            raise LockNotTaken(f"{self._path} could not be opened: {error.strerror}.") from error
        try:
            return nofollow.open_descriptor(self._path, os.O_RDONLY | os.O_CREAT, 0o644)
        except OSError as error:
            raise LockNotTaken(f"{self._path} could not be made: {error.strerror}.") from error

    def _acquire(self, interrupts: PutOff) -> int:
        fd = self._open()
        deadline = time.monotonic() + self._timeout_s
        pause_s = _FIRST_PAUSE_S
        try:
            while not _locked(fd):
                if time.monotonic() > deadline:
                    self._give_up()
                interrupts.check()
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _give_up(self) -> NoReturn:
        raise WorkspaceBusy(
            f"Another process has held {self._path} for {self._timeout_s:g} s; "
            "find it with `fuser` on that file, end it, and try again."
        )


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
