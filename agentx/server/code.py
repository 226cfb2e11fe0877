"""Whether the code on disk is still the code that runs: after an upgrade, the server makes room."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import suppress

import msgspec

import agentx

_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
_WATCHED = 0x2 | 0x40 | 0x80 | 0x100 | 0x200
"""``IN_MODIFY``, ``IN_MOVED_FROM``, ``IN_MOVED_TO``, ``IN_CREATE`` and ``IN_DELETE``; see inotify(7)."""

_EVENT = struct.Struct("iIII")
"""``struct inotify_event``: watch, mask, cookie, length of the name that follows."""

_READ_BYTES = 1 << 16
_OVERFLOWN = 0x4000


class LoadedCode:
    """The files of this package, watched by the kernel from the start of the server.

    A look at each file would take 1 to 30 ms. Without a watch (the system allows few), only a client of
    another version or directory makes the server leave.
    """

    def __init__(self) -> None:
        self.is_stale = False
        self._watch = -1
        with suppress(OSError, AttributeError):
            system = ctypes.CDLL(None, use_errno=True)
            self._watch = system.inotify_init1(_NONBLOCK | _CLOEXEC)
            for folder in _folders():
                system.inotify_add_watch(self._watch, os.fsencode(folder), _WATCHED)

    def look(self) -> bool:
        """Return whether a file of the package was changed since; one system call."""
        while not self.is_stale and self._watch >= 0:
            try:
                told = os.read(self._watch, _READ_BYTES)
            except OSError:  # nothing was
                break
            self.is_stale = any(map(_matters, _events(told)))
        return self.is_stale


def _events(told: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(told):
        _, mask, _, length = _EVENT.unpack_from(told, at)
        at += _EVENT.size + length
        yield mask, told[at - length : at].rstrip(b"\0")


def _matters(event: tuple[int, bytes]) -> bool:
    mask, name = event
    return bool(mask & _OVERFLOWN) or name.endswith((b".py", b".dist-info"))


def _folders() -> Iterator[str]:
    """Yield the directories of this package, and that of the installed packages."""
    yield os.path.dirname(os.path.dirname(os.path.abspath(msgspec.__file__)))
    for folder, below, _ in os.walk(os.path.dirname(os.path.abspath(agentx.__file__)), followlinks=True):
        below[:] = [name for name in below if name != "__pycache__"]
        yield folder
