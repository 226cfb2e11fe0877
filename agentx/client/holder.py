"""The process that is the server, also when it does not answer."""

import fcntl
import os
import signal
import time
from contextlib import suppress

from agentx.client import place

_LOOK_S = 0.05


def holder(where: str) -> int:
    """Return the process that holds the lock of a runtime directory; 0 if none does, or it cannot be told.

    The lock names it. That is believed only of a process of this user that has the lock file open.
    """
    path = f"{where}/{place.LOCK}"
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        if not _held(lock):
            return 0
        text = os.read(lock, 32).strip()
        pid = int(text) if text.isdigit() else 0
        return pid if pid > 1 and pid != os.getpid() and _has_open(pid, os.fstat(lock)) else 0
    finally:
        os.close(lock)


def end(where: str, pid: int, grace_s: float) -> bool:
    """End the process that holds the lock: ask it to, and kill it if it is still there after a grace.

    Args:
        where: The runtime directory.
        pid: What :func:`holder` returned.
        grace_s: How long it may take to finish.

    Returns:
        Whether it has gone.
    """
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, grace_s)):
        if holder(where) != pid:
            return True
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # one that is stopped hears nothing else
        until = time.monotonic() + patience_s
        while holder(where) == pid and time.monotonic() < until:
            time.sleep(_LOOK_S)
    return holder(where) != pid


def _held(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


def _has_open(pid: int, file: os.stat_result) -> bool:
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                found = os.stat(f"{folder}/{name}")
                if (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino):
                    return True
    return False
