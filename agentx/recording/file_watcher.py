"""Watches the working files, so that the user's edits are recorded moments after they are made.

The observer only signals that something changed. When threads are starved, watchdog drops events with nothing
but a log line, so its events are not trusted: after each burst, and periodically, the files themselves are
scanned.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from agentx.storage.files.durable import TEMPORARY_PREFIX

_LOG = logging.getLogger("agentx.recording.file_watcher")

DEBOUNCE_S = 0.15
"""A change is settled when nothing changed for this long."""

SETTLE_MOST_S = 3.0
"""In work without a pause, the files are scanned after this time."""

AFTER_S = 1.0
"""Scan again after a scan that found changes: files in a new directory may have come before its watch."""

RESCAN_S = 30.0
"""Scan at least this often, as watchdog may drop what it saw."""

BLIND_S = 2.0
"""The same where the system watches nothing, such as above the limit of inotify watches."""

_GIT_LOCK = Path(".git", "index.lock")


class Watcher(FileSystemEventHandler):
    """Calls back after each burst of changes below a directory.

    Args:
        root: The directory.
        look: Scans the files, and returns what changed; called in the watcher's own thread.
        skip: Directories below it that are ignored.
        failed: Called with the exception of a failed scan; by default it is logged.

    Attributes:
        blind: Why the system reports no changes, so that files are scanned periodically; empty if it does.
    """

    def __init__(
        self,
        root: Path,
        look: Callable[[], object],
        skip: tuple[Path, ...] = (),
        failed: Callable[[Exception], object] | None = None,
    ) -> None:
        self._root = root
        self._look = look
        self._skip = tuple(str(path) + os.sep for path in skip)
        self._failed = failed
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._observer = Observer()
        self._thread = threading.Thread(target=self._work, name="agentx-watcher", daemon=True)
        self._touched = 0.0
        self.blind = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start watching."""
        # watchdog occasionally logs being stopped as an error.
        logging.getLogger("watchdog").setLevel(logging.CRITICAL)
        self._observer.schedule(self, str(self._root), recursive=True)
        try:
            self._observer.start()
        except OSError as error:
            self.blind = f"{error.strerror or error}".rstrip(".")
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; a scan in progress is finished."""
        self._stopping.set()
        self._bell.set()
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join(timeout=5)
        self._thread.join(timeout=30)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Only set the flag, because this runs in the observer's thread."""
        if event.event_type in ("opened", "closed_no_write"):
            return
        path = os.fsdecode(event.src_path)
        if f"{os.sep}.git{os.sep}" in path or TEMPORARY_PREFIX in path or path.startswith(self._skip):
            return
        self._touched = time.monotonic()
        self._bell.set()

    def _work(self) -> None:
        found: object = None
        while not self._stopping.is_set():
            self._bell.wait(AFTER_S if found else BLIND_S if self.blind else RESCAN_S)
            self._wait_until_settled()
            self._bell.clear()
            if self._stopping.is_set():
                return
            try:
                found = self._look()
            except Exception as error:  # noqa: BLE001 - a failed scan (a full disk) must not end the thread
                found = None
                if self._failed is None:
                    _LOG.exception("Checking the working tree failed.")
                else:
                    self._failed(error)

    def _wait_until_settled(self) -> None:
        """Wait until nothing has changed for a moment, and no command of Git is changing the files."""
        end = time.monotonic() + SETTLE_MOST_S
        while not self._stopping.wait(DEBOUNCE_S) and time.monotonic() < end:
            quiet = time.monotonic() - self._touched >= DEBOUNCE_S
            if quiet and not os.path.lexists(self._root / _GIT_LOCK):
                return
