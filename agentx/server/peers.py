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
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import closing, suppress

import msgspec

from agentx.settings import RLIMIT_LOCKS, RUN

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


# --- over TCP -----------------------------------------------------------------------------------------------


class TcpPeers:
    """Tells whether an agent's run holds the other end of a connection over the loopback address.

    The kernel names no process there, so every marked process is asked for the socket. One answer is kept for
    each socket.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, bool] = OrderedDict()

    def inside_run(self, client: tuple[str, int], port: int) -> bool:
        """Return whether a marked process holds the socket of a client; also if that cannot be found out.

        Args:
            client: The client's address and port.
            port: The port that it is connected to.
        """
        inode = _inode(client, port)
        if not inode:  # it is closed already: a socket that nobody has open any more has the number 0
            return True
        found = self._known.get(inode)
        if found is None:
            found = self._known[inode] = _held_by_run(inode)
            if len(self._known) > _MOST_SOCKETS:
                self._known.popitem(last=False)
        return found


def _inode(client: tuple[str, int], port: int) -> int | None:
    """Return the number of the socket of a client; see proc(5) on ``/proc/net/tcp``."""
    (wanted,) = struct.unpack("=I", socket.inet_aton(client[0]))
    address, other = f"{wanted:08X}:{client[1]:04X}", f":{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if fields[1] == address and fields[2].endswith(other):
                return int(fields[_INODE])
    return None


def _held_by_run(inode: int) -> bool:
    """Return whether a process that an agent's run started holds a socket.

    While such a process exists, only a process that is none shows that it does not: one of a run can hide
    what it holds, or leave the socket in a message to itself while it is looked for.
    """
    others, found = [], False
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with suppress(OSError, ValueError, StopIteration):  # it has gone, or belongs to another user
            pid = int(name)
            if os.stat(f"/proc/{pid}").st_uid not in {os.getuid(), 0}:
                continue
            if not (_limited(pid) or RUN in _environ(pid)):
                others.append(pid)
                continue
            found = True
            if _holds_openly(pid, inode):
                return True
    return found and not any(_holds_openly(pid, inode) for pid in others)


def _holds(pid: int, inode: int) -> bool:
    wanted = f"socket:[{inode}]"
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{name}") == wanted:
                return True
    return False


def _holds_openly(pid: int, inode: int) -> bool:
    try:
        return _holds(pid, inode)
    except OSError:
        return False


_INODE = 9
"""The column of ``/proc/net/tcp`` with the number of the socket."""

_MOST_SOCKETS = 256
