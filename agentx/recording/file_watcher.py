"""Watches the working files, so that the user's edits are recorded moments after they are made.

The observer only signals that something changed. When threads are starved, watchdog drops events with nothing
but a log line, so its events are not trusted: after each burst, and periodically, the files themselves are
scanned.
"""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from agentx.storage.files.durable import TEMPORARY_PREFIX

_LOG = logging.getLogger("agentx.recording.file_watcher")

DEBOUNCE_S = 0.15
RESCAN_S = 30.0


class Watcher(FileSystemEventHandler):
    """Calls back after each burst of changes below a directory.

    Args:
        root: The directory.
        look: Scans the files; called in the watcher's own thread.
        skip: Directories below it that are ignored.
    """

    def __init__(self, root: Path, look: Callable[[], object], skip: tuple[Path, ...] = ()) -> None:
        self._root = root
        self._look = look
        self._skip = tuple(str(path) + os.sep for path in skip)
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._observer = Observer()
        self._thread = threading.Thread(target=self._work, name="agentx-watcher", daemon=True)

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
        self._observer.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; a scan in progress is finished."""
        self._stopping.set()
        self._bell.set()
        self._observer.stop()
        self._observer.join(timeout=5)
        self._thread.join(timeout=30)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Only set the flag, because this runs in the observer's thread."""
        if event.event_type in ("opened", "closed_no_write"):
            return
        path = os.fsdecode(event.src_path)
        if f"{os.sep}.git{os.sep}" in path or TEMPORARY_PREFIX in path or path.startswith(self._skip):
            return
        self._bell.set()

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._bell.wait(RESCAN_S)
            self._stopping.wait(DEBOUNCE_S)
            self._bell.clear()
            if self._stopping.is_set():
                return
            try:
                self._look()
            except Exception:  # noqa: BLE001 - a failed scan (such as on a full disk) must not end the thread
                _LOG.exception("Checking the working tree failed.")
