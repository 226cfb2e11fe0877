"""The runtime directory of the server: where its socket, its lock and its token are.

Loads next to nothing: a client that starts for one request imports it.
"""

import os
import sys
from _socket import SO_PEERCRED, SOL_SOCKET
from _socket import socket as Socket  # noqa: N812 - the module `socket` takes longer to import
from collections.abc import Mapping

from agentx.storage.errors import AgentXError

SOCKET, LOCK, HTTP, LOG = "socket", "lock", "http.json", "log"
"""Names in the runtime directory."""

OFF = "AGENTX_NO_SERVER"
"""Variable that turns the server off for a client."""

_OWN = "AGENTX_RUNTIME_DIR"
_PRIVATE = 0o077
_KIND, _DIRECTORY = 0o170000, 0o040000


class PlaceRefused(AgentXError):
    """The runtime directory is not private to this user, so it is not used."""


def environment(environ: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the variables to read: the given ones, or those of this process."""
    return os.environ if environ is None else environ


def runtime_dir(environ: Mapping[str, str]) -> str:
    """Return the runtime directory.

    That is ``AGENTX_RUNTIME_DIR``, ``$XDG_RUNTIME_DIR/agentx`` or ``/tmp/agentx-UID``.

    >>> runtime_dir({"XDG_RUNTIME_DIR": "/run/user/1000"})
    '/run/user/1000/agentx'
    """
    if own := environ.get(_OWN):
        return os.path.abspath(own)
    base = environ.get("XDG_RUNTIME_DIR", "")
    return f"{base}/agentx" if base.startswith("/") else f"/tmp/agentx-{os.getuid()}"  # noqa: S108


def state_dir(environ: Mapping[str, str]) -> str:
    """Return the user's state directory, as :mod:`agentx.settings` finds it; empty if the user has no home.

    >>> state_dir({"XDG_STATE_HOME": "/home/ann/.state"})
    '/home/ann/.state/agentx'
    """
    if own := environ.get("AGENTX_STATE_DIR"):
        return own
    if base := environ.get("XDG_STATE_HOME"):
        return f"{base}/agentx"
    home = os.path.expanduser("~")
    return f"{home}/.local/state/agentx" if home.startswith("/") else ""


def is_off(environ: Mapping[str, str]) -> bool:
    """Return whether the client must not use a server."""
    return environ.get(OFF, "") not in ("", "0")


def check(place: str) -> None:
    """Check that the runtime directory is a directory of this user that nobody else can enter.

    Raises:
        PlaceRefused: It is not.
        FileNotFoundError: It does not exist.
    """
    found = os.lstat(place)
    if found.st_mode & _KIND != _DIRECTORY:
        raise PlaceRefused(f"{place} is not a directory.")
    if found.st_uid != os.getuid():
        raise PlaceRefused(f"{place} belongs to another user.")
    if found.st_mode & _PRIVATE:
        raise PlaceRefused(f"{place} is open to other users: run `chmod 700 {place}`.")


def make(place: str) -> None:
    """Create the runtime directory, and check it.

    Raises:
        PlaceRefused: It exists and is not private to this user, or the path is too long for a socket.
    """
    if len(os.fsencode(place)) > _PATH_BYTES:
        raise PlaceRefused(f"{place} is too long for a socket; set {_OWN} to a shorter path.")
    try:
        os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
        os.mkdir(place, 0o700)
    except FileExistsError:
        pass
    check(place)


def is_stopped(connection: Socket) -> bool:
    """Return whether the server at the other end is stopped, as by Ctrl-Z or a debugger."""
    pid = int.from_bytes(connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 4), sys.byteorder)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in {b"T", b"t"}
    except OSError:  # it is not visible from here
        return False


_PATH_BYTES = 96
"""The address of a socket has 108 bytes on Linux, with its name and a final zero."""
