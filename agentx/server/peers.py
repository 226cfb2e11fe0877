"""Who is at the other end of a connection, by what the kernel says about it."""

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from agentx.settings import RUN

_CREDENTIALS = struct.Struct("3i")
"""``struct ucred``: pid, uid, gid."""

_MOST_ANCESTORS = 64
_PARENT, _STARTED = 1, 19
"""Fields 4 and 22 of ``/proc/PID/stat`` (proc(5)), counted from the one after the program's name."""


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
        environ = _environ(pid)
        inside = RUN in environ or any(map(_marked, _ancestors(pid)))
        if pid <= 0 or _environ(pid) != environ:
            inside = True
    except (OSError, ValueError, IndexError):  # it has gone already, or hides
        return Peer(pid=pid, uid=uid, inside_run=True)
    return Peer(pid=pid, uid=uid, inside_run=inside, environ=environ)


def _environ(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        pairs = (one.partition(b"=") for one in file.read().split(b"\0") if one)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _marked(pid: int) -> bool:
    """Return whether the run that started a process has left its mark there."""
    with suppress(PermissionError):  # another user's, or one that keeps keys: no agent's command
        return RUN in _environ(pid)
    return False


def _ancestors(pid: int) -> Iterator[int]:
    for _ in range(_MOST_ANCESTORS):
        with open(f"/proc/{pid}/stat", "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[_PARENT])
        if pid <= 1:
            return
        yield pid
