"""The memory of processes, and of the machine."""

import os
from contextlib import suppress


def rss_bytes(pid: int | None = None) -> int:
    """Return the resident memory of a process in bytes; 0 where the system has no ``/proc``, or it is gone.

    Args:
        pid: The process; this one by default.
    """
    with suppress(OSError, IndexError), open(f"/proc/{pid or 'self'}/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_bytes() -> int:
    """Return the memory that this process may use at most: that of the machine, or of its container."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError), open(place, encoding="ascii") as file:
            most = min(most, int(file.read()))
    return most
