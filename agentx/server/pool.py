"""The workspaces that the server keeps open."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from agentx.settings import Settings
from agentx.workspace import Workspace

T = TypeVar("T")
Key = tuple[Path, tuple[Any, ...]]
"""What tells two open workspaces apart: the directory, and the settings that decide what one does."""


class OpenWorkspace:
    """A workspace of the pool, with the thread that makes its changes.

    Attributes:
        workspace: The workspace.
        users: Number of requests that use it now.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.users = 0
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="agentx-writer", daemon=True)
        self._thread.start()

    def write(self, job: Callable[[], T]) -> T:
        """Run a job in the thread that makes all changes, after those that came before; return its result."""
        if threading.current_thread() is self._thread:
            return job()
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(job())
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                done.set_exception(error)

        self._jobs.put(run)
        return done.result()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def close(self) -> None:
        """Finish the jobs that wait, and close the workspace."""
        self._jobs.put(None)
        self._thread.join()
        self.workspace.close()


class Pool:
    """The most recently used workspaces, open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Key, OpenWorkspace] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[Key, threading.Lock] = {}

    @contextmanager
    def using(self, root: Path, settings: Settings) -> Iterator[OpenWorkspace]:
        """Open a workspace, or take it if it is open; it stays open while the body of the ``with`` runs."""
        found = self._take(root, settings)
        try:
            yield found
        finally:
            with self._lock:
                found.users -= 1
            self._shrink()

    def _take(self, root: Path, settings: Settings) -> OpenWorkspace:
        key = root, _essence(settings)
        with self._lock:
            turn = self._opening.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                found = self._open.get(key)
                if found is not None:
                    self._open.move_to_end(key)
                    found.users += 1
                    return found
            made = OpenWorkspace(Workspace.open(root, settings=settings))
            with self._lock:
                made.users = 1
                self._open[key] = made
            return made

    def _shrink(self) -> None:
        while True:
            with self._lock:
                idle = [key for key, one in self._open.items() if not one.users]
                if len(self._open) <= self._most or not idle:
                    return
                gone = self._open.pop(idle[0])
            gone.close()

    def listed(self) -> list[dict[str, Any]]:
        """Return the open workspaces, the most recently used last."""
        with self._lock:
            return [
                {"root": str(key[0]), "users": one.users, "events": one.workspace.engine.log.state.seq}
                for key, one in self._open.items()
            ]

    def close(self) -> None:
        """Close all workspaces."""
        with self._lock:
            gone, self._open = list(self._open.values()), OrderedDict()
        for one in gone:
            one.close()


def _essence(settings: Settings) -> tuple[Any, ...]:
    """Return the settings that an open workspace depends on; the other variables differ between terminals."""
    return (
        *(settings.model, settings.api_base, settings.api_key, settings.cache_dir, settings.state_dir),
        *(settings.user, settings.trust_record, settings.trusted_keys),
    )
