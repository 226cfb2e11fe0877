"""Who is at the other end of a connection, by what the kernel says about it.

What an agent's run starts carries two marks. One is a variable in its environment, which it can clear. The
other is a lower limit of file locks, which has no effect in Linux: every process that it starts inherits the
limit, whatever it does, and only the administrator can raise it again
(:func:`agentx.quality.process.marked`).
"""

import os
import resource
import signal
import socket
import struct
from collections.abc import Mapping
from contextlib import closing

import msgspec

from agentx.quality.process import RLIMIT_LOCKS
from agentx.settings import RUN

_CREDENTIALS = struct.Struct("3i")
"""``struct ucred``: pid, uid, gid."""

_SO_PEERPIDFD = 77
"""Gives a descriptor of the process that connected, since Linux 6.5."""

_LOCKS = b"Max file locks"
_HARD = 1
"""The column with the hard limit, after the name in ``/proc/PID/limits``."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A client, as the kernel describes it.

    Attributes:
        pid: Its process; 0 if it is not visible from here.
        uid: Its user.
        inside_run: Whether an agent's run started it, directly or indirectly; also true if that cannot be
            found out.
        environ: The variables with which it was started; empty if they cannot be read.
    """

    pid: int
    uid: int
    inside_run: bool
    environ: Mapping[str, str] = {}


def identify(connection: socket.socket) -> Peer:
    """Return the process that connected."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(found)
    try:
        with closing(_Process(connection, pid)) as process:
            environ = _environ(pid)
            inside = uid != os.getuid() or RUN in environ or _limited(pid)
            process.require_alive()
    except (OSError, ValueError, StopIteration):  # it has gone already, or hides
        return Peer(pid=pid, uid=uid, inside_run=True)
    return Peer(pid=pid, uid=uid, inside_run=inside, environ=environ)


class _Process:
    """The process that connected: its number may belong to another one as soon as it has gone."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        try:
            self._descriptor = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
        except OSError:  # an older kernel
            self._descriptor = os.pidfd_open(pid)

    def require_alive(self) -> None:
        """Check that what was read by its number was about it.

        Raises:
            ProcessLookupError: It has ended.
        """
        signal.pidfd_send_signal(self._descriptor, 0)

    def close(self) -> None:
        os.close(self._descriptor)


def _environ(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        pairs = (one.partition(b"=") for one in file.read().split(b"\0") if one)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _limited(pid: int) -> bool:
    """Return whether a process has a lower limit of file locks than this one."""
    own = resource.getrlimit(RLIMIT_LOCKS)[1]
    with open(f"/proc/{pid}/limits", "rb") as file:
        line = next(line for line in file if line.startswith(_LOCKS))
    hard = line[len(_LOCKS) :].split()[_HARD]
    return hard != b"unlimited" and (own == resource.RLIM_INFINITY or int(hard) < own)
