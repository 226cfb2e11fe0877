"""The keeper: a quiet thread that commits after a second of idleness and hears what other processes write."""

import logging
import threading
import time

from agentx.storage.errors import AgentXError
from agentx.storage.history import LIVE
from agentx.write_path import WritePath

_LOG = logging.getLogger("agentx.keeper")

IDLE_S = 1.0
_PAUSE_S = 0.25


class Keeper:
    """Looks after one write path until it is stopped."""

    def __init__(self, write_path: WritePath) -> None:
        self._write_path = write_path
        self._stopping = threading.Event()
        self._seen = (0, 0)
        self._thread = threading.Thread(target=self._work, name="agentx-keeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after what is under way."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=30)

    def _work(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
            try:
                self._look()
            except (AgentXError, OSError) as error:
                _LOG.warning("Looking after %s failed, and is tried again: %s", self._write_path.root, error)

    def _look(self) -> None:
        info = (self._write_path.root / LIVE).stat()
        now = (info.st_ino, info.st_size)
        if now != self._seen:
            self._seen = now
            self._write_path.refresh()
        idle = time.monotonic() - self._write_path.last_write > IDLE_S
        if idle and self._write_path.unsettled and not self._write_path.read_only:
            self._write_path.flush()
