"""Run one program with a time limit and a cap on the output that is kept.

The invariant: ``run_process`` returns. It ends a program even if that never exits, ignores SIGTERM, prints
without end, leaves a child that holds the pipe, or detaches into a new session. Memory stays bounded by
``max_output_bytes``, however much is printed.
"""

import codecs
import functools
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentx.settings import MARK, RLIMIT_LOCKS, RUN

READ_BYTES = 1 << 16
TERM_GRACE_S = 2.0
"""Time that a process group has between SIGTERM and SIGKILL."""
DRAIN_S = 0.5
"""How long the pipe may stay open after the program itself has exited."""
KILL_WAIT_S = 5.0
POLL_S = 0.05
COOKIE = RUN
"""The environment variable that identifies processes that left the group (Linux)."""


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How a program ended, and what it printed.

    Attributes:
        exit_code: Its exit status; 128 + N if signal N ended it, as shells report it; None after a time-out.
        timed_out: Whether the time limit ended it.
        output: Standard output and standard error in the order of arrival, decoded as UTF-8 (invalid bytes
            become U+FFFD). If too long, the first and the last part, with a line between them that counts the
            missing bytes.
        output_bytes: Total number of bytes printed.
        truncated: Whether ``output`` is incomplete.
        leftovers: Whether processes that it started outlived it and were killed.
    """

    exit_code: int | None
    timed_out: bool
    output: str
    output_bytes: int
    truncated: bool
    leftovers: bool


class HeadAndTail:
    r"""Keeps the first and the last bytes of a stream, and counts the rest.

    Example:
        >>> kept = HeadAndTail(8)
        >>> for part in (b"abcdef", b"ghij", b"klmnop"):
        ...     kept.add(part)
        >>> kept.total_bytes, kept.text()
        (16, 'abcd\n[... 8 bytes left out ...]\nmnop')
    """

    def __init__(self, max_bytes: int) -> None:
        self.total_bytes = 0
        self._head = bytearray()
        self._head_bytes = max_bytes - max_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._tail_bytes = max_bytes // 2

    def add(self, part: bytes) -> None:
        """Add the next bytes of the stream."""
        self.total_bytes += len(part)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += part[:room]
            part = part[room:]
        if part:
            self._tail.append(part)
            self._tail_size += len(part)
            while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
                self._tail_size -= len(self._tail.popleft())

    @property
    def left_out_bytes(self) -> int:
        """Number of bytes of the stream that are not kept."""
        return max(0, self.total_bytes - len(self._head) - self._tail_bytes)

    def text(self) -> str:
        """Return the kept bytes as text, with a line that counts the missing bytes; never cut a character."""
        tail = b"".join(self._tail)
        if not self.left_out_bytes:
            return (bytes(self._head) + tail).decode("utf-8", errors="replace")
        tail = tail[len(tail) - self._tail_bytes :]
        # An incremental decoder holds back an incomplete character instead of replacing it.
        head = codecs.getincrementaldecoder("utf-8")(errors="replace").decode(bytes(self._head))
        # Start at the first byte that is not a UTF-8 continuation byte (10xxxxxx).
        start = next((i for i in range(min(4, len(tail))) if tail[i] & 0xC0 != 0x80), 0)  # noqa: PLR2004
        return f"{head}\n[... {self.left_out_bytes} bytes left out ...]\n" + tail[start:].decode(
            "utf-8", errors="replace"
        )


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    cookie: str,
    timeout_s: float,
    max_output_bytes: int,
) -> ProcessOutcome:
    """Run a program to its end or to the time limit, in a new session and without standard input.

    Args:
        argv: The program and its arguments; the program must exist.
        cwd: Working directory.
        env: The complete environment.
        cookie: A word unique to this run, added to the environment so that stray processes can be found.
        timeout_s: After this time the whole group gets SIGTERM, and SIGKILL two seconds later.
        max_output_bytes: How much of the output is kept; the rest is read, counted and dropped.

    Raises:
        OSError: The program cannot be started.
    """
    started = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env={**env, COOKIE: cookie},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=marked(),  # noqa: PLW1509 - one system call; takes no lock
    )
    kept = HeadAndTail(max_output_bytes)
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    try:
        timed_out = not _read_until_exit(process, pipe, kept, started + timeout_s)
        if timed_out:
            _signal_group(process.pid, signal.SIGTERM)
            _read_until_exit(process, pipe, kept, time.monotonic() + TERM_GRACE_S)
            leftovers = False
        else:
            leftovers = not _read_until_eof(pipe, kept, time.monotonic() + DRAIN_S)
    finally:  # also on Ctrl-C: nothing started here outlives this call
        strays = end_all(process, cookie)
        _read_until_eof(pipe, kept, time.monotonic() + DRAIN_S)
        process.stdout.close()
    status = None if timed_out else process.returncode
    if status is not None and status < 0:
        status = 128 - status
    return ProcessOutcome(
        exit_code=status,
        timed_out=timed_out,
        output=kept.text(),
        output_bytes=kept.total_bytes,
        truncated=kept.left_out_bytes > 0,
        leftovers=not timed_out and (leftovers or strays),
    )


def marked() -> Callable[[], None] | None:
    """Return what marks a process, before it runs a program, as started by an agent's run.

    The mark is a lower limit of file locks, which Linux does not apply. All that the program starts inherits
    it; clearing the environment or leaving the session does not remove it. :attr:`Settings.inside_run` and
    the server read it.
    """
    if sys.platform != "linux":
        return None
    hard = resource.getrlimit(RLIMIT_LOCKS)[1]
    lower = MARK if hard == resource.RLIM_INFINITY else max(0, min(MARK, hard - 1))
    return functools.partial(resource.setrlimit, RLIMIT_LOCKS, (lower, lower))


def _read_until_exit(process: subprocess.Popen[bytes], pipe: int, kept: HeadAndTail, deadline: float) -> bool:
    """Read output until the program itself has exited. Return False if the deadline came first."""
    open_ = True
    while not has_ended(process):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        if open_:
            open_ = _read_some(pipe, kept, min(left, POLL_S)) is not False
        else:  # it closed its output but is still running
            time.sleep(min(left, POLL_S))
    return True


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the program itself has exited, whatever it left behind."""
    # Where the system allows it, leave the exit status unread, so that the group keeps its ID until it is
    # killed.
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None


def _read_until_eof(pipe: int, kept: HeadAndTail, deadline: float) -> bool:
    """Read the rest of the pipe. Return False if a process still holds it open at the deadline."""
    while (left := deadline - time.monotonic()) > 0:
        if _read_some(pipe, kept, left) is False:
            return True
    return False


def _read_some(pipe: int, kept: HeadAndTail, wait_s: float) -> bool | None:
    """Read once: True if bytes came, None if none came in time, False at the end of the stream."""
    poller = select.poll()  # select() itself fails on descriptors above 1023
    poller.register(pipe, select.POLLIN)
    if not poller.poll(max(1, round(wait_s * 1000))):
        return None
    part = os.read(pipe, READ_BYTES)
    kept.add(part)
    return bool(part)


def outlived(process: subprocess.Popen[bytes], cookie: str) -> bool:
    """Return whether a program has exited and processes that it started go on; they get a moment to end."""
    end = time.monotonic() + DRAIN_S
    while has_ended(process) and strays(cookie):
        if time.monotonic() >= end:
            return True
        time.sleep(POLL_S)
    return False


def end_all(process: subprocess.Popen[bytes], cookie: str) -> bool:
    """Kill a program, its group, and strays that carry its cookie. Return whether there were strays."""
    _signal_group(process.pid, signal.SIGKILL)
    # A process stuck in the kernel (a dead network disk) is not waited for.
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=KILL_WAIT_S)
    found = False
    # A stray may fork between the scan and the signal, and takes a while to die: scan until none is left.
    end = time.monotonic() + KILL_WAIT_S
    while (left := strays(cookie)) and time.monotonic() < end:
        found = True
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)
    return found


def _signal_group(group: int, number: signal.Signals) -> None:
    # macOS answers EPERM for a group of zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def strays(cookie: str) -> list[int]:
    """Return the processes that carry this run's cookie in their environment; none without /proc."""
    wanted = f"{COOKIE}={cookie}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
