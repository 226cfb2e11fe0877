"""Background threads: commit when idle, write commits together, read other processes' events, repack."""

import contextlib
import logging
import threading
import time

from agentx.recording.write_path import WritePath
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.git.packs.packing import Packer, Running
from agentx.storage.log.history import LIVE

_LOG = logging.getLogger("agentx.recording.idle_committer")

IDLE_S = 1.0
BUSY_S = 3.0
"""After this time git commands get the index lock for a moment, even if writing continues."""

_PAUSE_S = 0.25

_LOOK_S = 0.005
"""While commits are in memory, look this often whether another process waits for the lock."""


class Keeper:
    """Runs the background work of one write path until it is stopped."""

    def __init__(self, write_path: WritePath) -> None:
        self._write_path = write_path
        self._stopping = threading.Event()
        self._seen = (0, 0)
        self._unsettled_since = time.monotonic()
        self._packer = Packer(write_path.git.repo.git_dir)
        self._packing: Running | None = None
        self._thread = threading.Thread(target=self._work, name="agentx-keeper", daemon=True)
        self._thread.start()
        self._deferred = threading.Event()
        self._writer = threading.Thread(target=self._write, name="agentx-commits", daemon=True)
        if not write_path.read_only:
            self._writer.start()
            write_path.defer(self._deferred.set)

    def stop(self) -> None:
        """Stop after the current step; packing that is due continues in a separate process."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=30)
        self._stop_deferring()
        if self._packing is not None:
            self._packing.stop()  # it starts again later
        if not self._write_path.read_only and self._packer.due():
            self._packer.start_detached()

    def _stop_deferring(self) -> None:
        """From now on each commit is written at once."""
        if self._writer.is_alive():
            self._deferred.set()
            self._writer.join(timeout=30)
            with contextlib.suppress(AgentXError):
                self._write_path.defer(None)

    def _write(self) -> None:
        """Write the commits that are in memory when it is time to."""
        while not self._stopping.is_set():
            self._deferred.wait()
            self._deferred.clear()
            try:
                while not self._stopping.is_set() and not self._write_path.write_due():
                    time.sleep(_LOOK_S)
            except (AgentXError, OSError) as error:
                _LOG.warning("Commits of %s could not be written: %s", self._write_path.root, error)

    def _work(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
            try:
                self._look()
                self._pack()
            except WorkspaceBusy:
                continue  # a purge holds the lock for as long as it needs
            except (AgentXError, OSError) as error:
                _LOG.warning(
                    "Background upkeep of %s failed and will be retried: %s", self._write_path.root, error
                )

    def _look(self) -> None:
        info = nofollow.status(self._write_path.root / LIVE)
        now = (info.st_ino, info.st_size)
        now_s = time.monotonic()
        if now != self._seen and now_s - self._write_path.last_look > _PAUSE_S:
            self._seen = now
            self._write_path.refresh()
            now_s = time.monotonic()
        if not self._write_path.git.unsettled or self._write_path.read_only:
            self._unsettled_since = now_s
        elif now_s - self._write_path.log.last_write > IDLE_S or now_s - self._unsettled_since > BUSY_S:
            self._write_path.flush()
            self._unsettled_since = now_s

    def _pack(self) -> None:
        """Pack Git's objects in a separate process, one at a time, if there are many loose ones."""
        if self._packing is not None:
            running, self._packing = self._packing, None
            if (done := running.poll()) is None:
                self._packing = running
            elif done.damaged:
                self._write_path.notes.append(
                    f"{len(done.damaged)} Git objects are damaged, so they were not packed; see "
                    "`agentx verify`."
                )
        elif not self._write_path.read_only and self._packer.due():
            self._packing = self._packer.start()
