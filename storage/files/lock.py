"""The lock of a workspace: one writer at a time, across threads and processes, in order of arrival.

It is built from two kinds of kernel locks on one file. The kernel releases both when a process dies.

- An ``flock`` is the lock itself. Its holder is alone, whatever happens to the queue.
- A waiter read-locks one byte of the file, after the last byte that is locked: its place in the queue. The
  first waiter tries the ``flock``. The holder read-locks a byte as well, a different one for each turn. So
  waiters see that the queue moves, and give up only when one holder has kept the lock for the whole timeout.

The byte locks belong to the open file ("open file description locks", fcntl(2)), and each acquisition opens
the file again. The bytes need not exist, and a read lock needs no write permission: the file stays empty.
Without such locks in the kernel or the file system, the lock is just as safe, but waiters are not served in
order.

The threads that share a :class:`FileLock` queue among themselves first. For the length of a turn they pass
the lock on without releasing it, so that a group of threads costs other processes no more than one writer.

On a file system whose locks have no effect, the lock is refused: two writers there could overwrite each
other.

A turn lasts :data:`_TURN_S`: until then its owner may take a free lock again before the waiters. Whenever it
leaves the lock free, as while it syncs, the first waiter may take it.
"""

import contextlib
import fcntl
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from agentx.storage.errors import AgentXError, DiskRefused
from agentx.storage.files import nofollow
from agentx.storage.files.interrupts import PutOff

_HOLDERS = 1 << 61
"""Smaller byte offsets are places in the queue; offsets from here on mark holders."""

_END = 1 << 62

_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock`` on Linux: type, whence, start, length, pid."""

_TURN_S = 0.05
_SHORTEST_PAUSE_S = 0.00005
_LONGEST_PAUSE_S = 0.05
_LOOKS = 10
"""Polls of the first waiter while the time that it has waited for a long hold doubles."""

_SKIP_S = 1.0
"""A waiter that does not take the free lock for this long (a stopped process) is skipped.

If it resumes, it queues again.
"""

_PASSING = 2
"""Holders that a first waiter may see: the one that is leaving, and one that does not wait in the queue."""

_LOCKS = Path("/proc/locks")


class WorkspaceBusy(AgentXError):
    """Another holder kept the lock for longer than the writer's timeout."""


class LockNotTaken(DiskRefused):
    """The lock file could not be opened or locked (full disk, no permission), or its locks have no effect."""


class FileLock:
    """An exclusive lock on a file, re-entrant within a thread; Ctrl-C never leaves it locked.

    Args:
        path: The lock file; created if missing, never removed.
        timeout_s: How long to wait for one and the same holder. 0: do not wait, not even for earlier waiters.
        brief: The lock is held for milliseconds and others wait for it: Ctrl-C is deferred until it is
            released.
        needed: Whether the file must exist; a reader of a read-only file system may do without it.

    Attributes:
        kept: Set by the holder: other processes stay out after it leaves, and the threads that share this
            object go on, until a holder clears it.
    """

    def __init__(
        self, path: Path, timeout_s: float = 30.0, *, brief: bool = False, needed: bool = True
    ) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._brief = brief
        self._needed = needed
        self._gate = _Gate()
        self._owner = 0
        self._depth = 0
        self._fd = -1
        self._locked = False
        self._skipped = -1
        self._turn_ends = 0.0
        self._pace_s = 0.0
        self._excludes = False
        self.kept = False

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, in any thread."""
        return self._depth > 0

    @property
    def depth(self) -> int:
        """How many times the lock is held, nested; 0 if it is not held."""
        return self._depth

    @property
    def wanted(self) -> bool:
        """Whether a thread or a process waits for the holder to leave."""
        return self._gate.waiting or self.wanted_elsewhere

    @property
    def wanted_elsewhere(self) -> bool:
        """Whether another process, or another object for the same file, waits."""
        fd = self._fd
        return fd >= 0 and _first(fd, 0, _HOLDERS) >= 0

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock for the body of a ``with``.

        Raises:
            WorkspaceBusy: One holder kept it for the whole timeout.
            LockNotTaken: The lock file could not be opened or locked.
        """
        with PutOff() as interrupts:
            if self._owner != threading.get_ident():
                self._take(interrupts)
            self._depth += 1
            try:
                try:
                    if not self._brief:
                        interrupts.let_through()
                    yield
                finally:
                    # A Ctrl-C that comes before this call is done still reaches the release below.
                    interrupts.put_off()
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._owner = 0
                    self._let_go()

    def _take(self, interrupts: PutOff) -> None:
        if not self._timeout_s:
            if not self._gate.enter_if_free():
                raise self._busy()
        else:
            self._gate.enter(self._patience(interrupts), self._let_go)
        if not self._locked:
            try:
                self._fd = self._acquire(interrupts)
            except BaseException:
                self._gate.leave()
                raise
            self._locked = True
        self._owner = threading.get_ident()

    def _let_go(self) -> None:
        """Pass the lock on to the next thread; release it first if none waits, or if the turn is over.

        One that is kept is not released.
        """
        if self._locked and not self.kept and not (self._gate.waiting and time.monotonic() < self._turn_ends):
            fd, self._fd, self._locked = self._fd, -1, False
            _release(fd)
        self._gate.leave()

    def _patience(self, interrupts: PutOff) -> Callable[[], None]:
        """Return the function that a waiting thread calls now and then.

        It raises deferred interrupts, and gives up when one thread has held the lock for the whole timeout.
        """
        turn, since = self._gate.turns, time.monotonic()

        def check() -> None:
            nonlocal turn, since
            interrupts.check()
            now = time.monotonic()
            if self._gate.turns != turn or not self._owner:  # without an owner, that thread waits itself
                turn, since = self._gate.turns, now
            elif now - since > self._timeout_s:
                raise self._busy()

        return check

    def _acquire(self, interrupts: PutOff) -> int:
        """Return a descriptor that holds the lock; -1 without a file: it then excludes threads only."""
        try:
            fd = self._open()
        except LockNotTaken:
            if self._needed:
                raise
            return -1
        try:
            is_turn = time.monotonic() < self._turn_ends or not self._timeout_s
            if not (is_turn or _first(fd, 0, _HOLDERS) < 0) or not self._lock(fd):
                self._queue(fd, interrupts)
                is_turn = False
            self._require_exclusion(fd)
            if not is_turn:
                self._turn_ends = time.monotonic() + _TURN_S
            _set(fd, fcntl.F_RDLCK, _HOLDERS + int(self._turn_ends * 1e9))
        except BaseException:
            _release(fd)
            raise
        return fd

    def _require_exclusion(self, fd: int) -> None:
        """Check, once, that the lock excludes a second open of the file.

        Raises:
            LockNotTaken: It does not.
        """
        if self._excludes:
            return
        second = self._open()
        try:
            # They differ if somebody replaced the file meanwhile.
            same = os.path.sameopenfile(fd, second)
            if same and self._lock(second):
                raise LockNotTaken(
                    f"File locks do nothing on the file system of {self._path}, "
                    "so two writers could overwrite each other. Move the workspace to a local disk."
                )
        finally:
            os.close(second)
        self._excludes = same

    def _open(self) -> int:
        try:
            # A read-only disk allows this as well.
            return nofollow.open_descriptor(self._path, os.O_RDONLY)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise LockNotTaken(f"{self._path} could not be opened: {error.strerror}.") from error
        try:
            return nofollow.open_descriptor(self._path, os.O_RDONLY | os.O_CREAT, 0o644)
        except OSError as error:
            raise LockNotTaken(f"{self._path} could not be made: {error.strerror}.") from error

    def _lock(self, fd: int) -> bool:
        """Take the lock if it is free; return whether it was."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LockNotTaken(
                f"{self._path} could not be locked: {error.strerror}. Move the workspace to a local disk."
            ) from error
        return True

    def _queue(self, fd: int, interrupts: PutOff) -> None:
        """Wait in the queue, then take the lock."""
        if not self._timeout_s:
            raise self._busy()
        place = _Place(fd, self._pace_s)
        while not (place.is_turn(self._skipped + 1) and self._lock(fd)):
            if place.stuck_s > self._timeout_s:
                raise self._busy()
            if self._skipped >= 0 and _first(fd, self._skipped, self._skipped + 1) < 0:
                self._skipped = -1
            if place.late_s > _SKIP_S:
                self._skipped = place.before
            if place.is_passed:
                place.leave()
                place = _Place(fd, place.pace_s)
            interrupts.check()
            time.sleep(place.pause_s)
        self._pace_s = place.pace_s
        place.leave()

    def _busy(self) -> WorkspaceBusy:
        holder = "Another thread of this process" if self.held else _holder(self._path)
        return WorkspaceBusy(
            f"{holder} has held {self._path} for {self._timeout_s:g} s; "
            "wait for it or end it, then try again."
        )


class _Gate:
    """Lets one thread in at a time, in order of arrival.

    Attributes:
        turns: How many threads were let in.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._taken = False
        self.turns = 0

    @property
    def waiting(self) -> bool:
        """Whether a thread waits."""
        return bool(self._queue)

    def enter_if_free(self) -> bool:
        """Enter without waiting; return whether that was possible."""
        with self._mutex:
            if self._taken:
                return False
            self._taken = True
            self.turns += 1
            return True

    def enter(self, check: Callable[[], None], pass_on: Callable[[], None]) -> None:
        """Wait until it is this thread's turn.

        Args:
            check: Called now and then while waiting; an exception from it ends the wait.
            pass_on: Called if the turn came all the same.
        """
        if not self._queue and self.enter_if_free():
            return
        with self._mutex:
            turn = threading.Lock()
            turn.acquire()
            if self._taken:
                self._queue.append(turn)
            else:
                self._taken = True
                turn.release()
        try:
            while not turn.acquire(timeout=_LONGEST_PAUSE_S):
                check()
        except BaseException:
            with self._mutex:
                came = turn not in self._queue
                if not came:
                    self._queue.remove(turn)
            if came:
                pass_on()
            raise
        self.turns += 1

    def leave(self) -> None:
        """Let the next thread in."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False


class _Place:
    """A waiter's place at the end of the queue, and what can be seen from there.

    Args:
        fd: The open file.
        pace_s: How long each of those ahead took the last time, if known.

    Attributes:
        before: The first place in the queue; -1 if nobody is ahead of this one.
        pace_s: How long each of those ahead takes.
    """

    def __init__(self, fd: int, pace_s: float) -> None:
        self._fd = fd
        # Two waiters that arrive at the same moment may get the same place; both are then first.
        self._place = 0
        while (taken := _first(fd, self._place, _HOLDERS)) >= 0:
            self._place = taken + 1
        _set(fd, fcntl.F_RDLCK, self._place)
        self.before = self._holder = self._leaving = -1
        self._now = self._moved = self._handed_over = self._due = time.monotonic()
        self.pace_s = pace_s
        self._passing = set[int]()

    def is_turn(self, start: int) -> bool:
        """Look at the queue from a place on; return whether to take the lock if it is free."""
        before, holder = _first(self._fd, start, self._place), _first(self._fd, _HOLDERS, _END)
        self._now = time.monotonic()
        if holder != self._holder:
            self._handed_over = self._now
        if before != self.before:
            if 0 <= self.before < before:
                self.pace_s = (self._now - self._moved) / (before - self.before)
            self._moved, self._leaving = self._now, holder
            self._passing.clear()
        if before != self.before or holder == self._leaving >= 0:
            self._due = self._now
        if holder >= 0:
            self._passing.add(holder)
        self.before, self._holder = before, holder
        return before < 0 and holder < 0

    @property
    def stuck_s(self) -> float:
        """How long the same holder has kept the lock."""
        return self._now - self._handed_over

    @property
    def late_s(self) -> float:
        """How long the first waiter has not taken the lock although it is its turn."""
        return self._now - self._due if self.before >= 0 else 0.0

    @property
    def is_passed(self) -> bool:
        """Whether others pass this first waiter because it seemed to be stopped.

        They would do so for ever, so it must queue again.
        """
        return self.before < 0 and len(self._passing) > _PASSING and self._now - self._moved > _SKIP_S

    @property
    def pause_s(self) -> float:
        """How long to sleep before the next look.

        Half the time until it is this waiter's turn, at the queue's pace. The first waiter looks often
        once its turn is due.
        """
        waited_s = self._now - self._moved
        if self.before >= 0:
            pause_s = (self.pace_s or waited_s) * (self._place - self.before) / 2
        else:
            pause_s = max((self.pace_s - waited_s) / 2, waited_s / _LOOKS)
        return min(max(pause_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)

    def leave(self) -> None:
        """Give up the place, so that the next waiter is first."""
        _set(self._fd, fcntl.F_UNLCK, self._place)


def _first(fd: int, start: int, end: int) -> int:
    """Return the first byte in ``range(start, end)`` locked through another open file; -1 for none."""
    if end <= start:
        return -1
    found = _byte_lock(fd, "F_OFD_GETLK", fcntl.F_WRLCK, start, end - start)
    return found[2] if found[0] != fcntl.F_UNLCK else -1


def _set(fd: int, kind: int, byte: int) -> None:
    _byte_lock(fd, "F_OFD_SETLK", kind, byte, 1)


def _byte_lock(fd: int, command: str, kind: int, start: int, length: int) -> tuple[int, ...]:
    """Set or find byte locks; without support for them, nothing is set and nothing is found."""
    try:
        asked = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
        found = fcntl.fcntl(fd, getattr(fcntl, command), asked)
    except (OSError, AttributeError):  # not on this file system; not on this system
        return (fcntl.F_UNLCK, 0, -1, 0, 0)
    return _FLOCK.unpack(found)


def _release(fd: int) -> None:
    """Release all locks, even if a process that was forked meanwhile still has the file open."""
    if fd < 0:
        return
    _byte_lock(fd, "F_OFD_SETLK", fcntl.F_UNLCK, 0, _END)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _holder(path: Path) -> str:
    """Name the process that holds the ``flock``, as far as it is visible from here; see proc_locks(5)."""
    with contextlib.suppress(OSError, ValueError):
        info = nofollow.status(path)
        file = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
        for line in nofollow.read_text(_LOCKS).splitlines():
            match line.split():
                case [_, "FLOCK", _, _, pid, found, *_] if found == file:
                    if int(pid) == os.getpid():
                        return "Another thread of this process"
                    name = nofollow.read_text(Path("/proc") / pid / "comm").strip()
                    return f"Process {pid} ({name})"
    return "Another process (`fuser` on that file may find it)"
