"""One request, as a handler sees it."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from agentx.core import layout
from agentx.server.errors import INTERNAL, PARAMS, Cancelled, Refused
from agentx.server.peers import Peer
from agentx.server.pool import OpenWorkspace, Pool
from agentx.settings import RUN, Settings, read_settings

Emit = Callable[[str, dict[str, Any]], None]
"""Sends a notification that belongs to the request: its method, and its parameters."""


class Later:
    """The result of a handler whose request is answered later, by another thread.

    Args:
        begin: Called with a function that answers: with a result, or with an exception.
    """

    def __init__(self, begin: Callable[[Callable[[Any], None]], None]) -> None:
        self.begin = begin


class ServedCall:
    """One request: who sent it, and what it may use.

    Attributes:
        peer: The client, by the kernel's word.
        pool: The open workspaces.
        settings: The settings of the server, with the name of the client's user.
        has_room: Whether the client has read most of what was sent.
        inspect: Opens the inspector for some workspaces; returns its address.
    """

    def __init__(self, peer: Peer, pool: Pool, settings: Settings) -> None:
        self.peer = peer
        self.pool = pool
        self.settings = settings
        self.has_room: Callable[[], bool] = lambda: True
        self.inspect: Callable[[list[Path], Settings], str] = _nowhere
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Ask the handler to stop; it stops at its next notification or check."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Whether the client cancelled the request or has gone."""
        return self._cancelled.is_set()

    def check(self) -> None:
        """Stop a request that was cancelled.

        Raises:
            Cancelled: It was.
        """
        if self.cancelled:
            raise Cancelled("The request was cancelled.")

    def client_settings(self) -> Settings:
        """Return the settings from the client's environment, which the kernel tells; else the server's."""
        if not self.peer.environ:
            return self.settings
        settings = read_settings(self.peer.environ)
        if self.peer.inside_run and not settings.inside_run:
            return msgspec.structs.replace(settings, environ={**settings.environ, RUN: "1"})
        return settings

    def workspace(self, params: dict[str, Any]) -> AbstractContextManager[OpenWorkspace]:
        """Open the workspace at or above the directory that the request names.

        Raises:
            Refused: It is not an absolute path.
            NotAWorkspace: No workspace was found.
        """
        path = params.get("workspace")
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise Refused(PARAMS, "`workspace` is the absolute path of a directory.")
        return self.pool.using(layout.find_root(Path(path)), self.settings)


def _nowhere(_roots: list[Path], _settings: Settings) -> str:
    raise Refused(INTERNAL, "This process has no inspector.")
