"""Streams of future events: one thread serves all of them, so that a client that waits takes none."""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

from agentx.server.calls import Emit, ServedCall
from agentx.server.errors import LEAVING, Refused
from agentx.server.pool import OpenWorkspace
from agentx.storage.log.history import LIVE

_LOOK_S = 0.05
_AT_ONCE = 500
"""Maximum number of events that a stream sends before others have their turn."""

Finish = Callable[[Any], None]
"""Answers the request: with a result, or with an exception."""


class Stream:
    """One client that follows one workspace.

    Args:
        call: Its request.
        using: Keeps the workspace open.
        after: Send the events after this one.
        emit: Sends an event.

    Attributes:
        workspace: The workspace.
    """

    def __init__(
        self, call: ServedCall, using: AbstractContextManager[OpenWorkspace], after: int, emit: Emit
    ) -> None:
        self._call = call
        self._using = using
        self.workspace = using.__enter__().workspace
        self._last = after
        self._emit = emit
        self._seen: tuple[int, ...] = ()

    def step(self, *, leaving: bool) -> None:
        """Send what is new, unless the client is behind.

        Raises:
            Cancelled: The client does not want more.
            Refused: The server is about to exit.
        """
        if leaving:
            raise Refused(LEAVING, "The server is about to exit.")
        self._call.check()
        if not self._call.has_room():
            return
        info = os.lstat(self.workspace.root / LIVE)
        seen = info.st_ino, info.st_size, info.st_mtime_ns
        if seen == self._seen:
            return
        sent = 0
        for event in islice(self.workspace.events(self._last), _AT_ONCE):
            self._emit("event", {"event": event})
            self._last, sent = event.seq, sent + 1
        if sent < _AT_ONCE:
            self._seen = seen

    def close(self) -> None:
        """Let the workspace be closed."""
        self._using.__exit__(None, None, None)


class Followers:
    """All streams of a server."""

    def __init__(self) -> None:
        self._streams: dict[Stream, Finish] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._leaving = False

    def add(self, stream: Stream, finish: Finish) -> None:
        """Serve a stream from now on."""
        with self._lock:
            self._streams[stream] = finish
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="agentx-followers", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        """End all streams: the server is about to exit."""
        self._leaving = True

    def __len__(self) -> int:
        return len(self._streams)

    def _work(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                streams = list(self._streams.items())
                if not streams:
                    self._thread = None
                    return
            for stream, finish in streams:
                self._step(stream, finish)
            pause.wait(_LOOK_S)

    def _step(self, stream: Stream, finish: Finish) -> None:
        try:
            stream.step(leaving=self._leaving)
        except Exception as error:  # noqa: BLE001 - the client is told; others are served on
            with self._lock:
                del self._streams[stream]
            stream.close()
            finish(error)
