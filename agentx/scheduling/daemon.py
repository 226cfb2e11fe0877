"""The daemon: runs what is due in many workspaces until it is stopped.

The workspaces' histories alone hold what is due, what ran and how it ended. The DBOS database only
distributes the work: one run at a time per workspace, a limit on concurrent runs, and a rate limit per model.
It may be lost at any moment. What is due is then enqueued again, and the history prevents a due time from
starting twice. A run has a process to itself while it works. The process ends cleanly on SIGTERM, and
finishes the run when the daemon is killed.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from agentx.core.layout import is_workspace
from agentx.scheduling.ending import end_processes
from agentx.scheduling.queue_database import OLDEST_SQLITE, SqliteWithMilliseconds
from agentx.scheduling.run_pool import RunPool
from agentx.scheduling.schedules import Carried, begins, carry_out_due, works_with
from agentx.settings import Settings
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.extras import DAEMON, needs
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.log.history import LIVE
from agentx.storage.text import one_line
from agentx.workspace import Workspace

LOOK_S = 0.25
"""Seconds between two checks for work that became due, or that another daemon ended."""

POLL_S = 0.1
"""Seconds between two looks into the queue."""

RETRY_S = 5.0
"""Seconds before a workspace in which nothing could be started is tried again."""

END_S = 10.0
"""Seconds that a run has to record its end after SIGTERM."""

QUEUE = "agentx"
_AGAIN = "Start it again: nothing is lost, because due tasks are kept in the workspaces."
_WAITING = ("ENQUEUED", "PENDING", "DELAYED")


class DaemonFailed(AgentXError):
    """The daemon cannot work: a dependency is not installed, or its database failed."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one look into a workspace.

    Attributes:
        carried: The runs that were carried out.
        mark: Inode, size and modification time of the live log, used to detect a change.
        begins: When something is due next, as UTC time in ISO 8601; empty for never.
        model: The model or program that will do that work.
        error: Why nothing could be run; empty if there was no error.
    """

    carried: tuple[Carried, ...] = ()
    mark: tuple[int, int, int] = (0, 0, 0)
    begins: str = ""
    model: str = ""
    error: str = ""


OnResult = Callable[[Path, Carried | str], None]
"""Receives each run with its workspace, or an error message."""


class _Handle(Protocol):
    def get_status(self) -> Any: ...

    def get_result(self) -> str: ...


class _WorkspaceWatch:
    """A workspace, the result of the last look into it, and its work in progress."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.found = Passed()
        self.work: _Handle | None = None
        self.asked_at = 0.0
        self.quiet_until = 0.0


def workspaces(folders: Sequence[Path]) -> list[Path]:
    """Return the workspaces at the given directories, or directly below them.

    Raises:
        UsageError: A directory is not a workspace and holds none.
    """
    found: dict[Path, None] = {}
    for folder in folders:
        whole = folder.absolute()
        below = sorted(whole.iterdir()) if whole.is_dir() else []
        here = [whole] if is_workspace(whole) else [one for one in below if is_workspace(one)]
        if not here:
            raise UsageError(f"{folder} is not a workspace and contains none; create one with `agentx init`.")
        found |= dict.fromkeys(here)
    return list(found)


class Daemon:
    """Runs what is due.

    Args:
        roots: The workspaces.
        settings: Settings from the environment.
        on_result: Called with each run, or with an error message.
        database: URL of the database, SQLite or Postgres; a file in the state directory by default.
        workers: Maximum number of concurrent runs.
        rates: Maximum number of runs that may begin per minute, by model.
        grace_s: How long runs may continue after :meth:`stop`, in seconds.
        memory_bytes: Bound on the memory of its processes, in bytes; by default half of the machine's.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        settings: Settings,
        on_result: OnResult,
        *,
        database: str = "",
        workers: int = 4,
        rates: Mapping[str, int] = {},
        grace_s: float = 30.0,
        memory_bytes: int = 0,
    ) -> None:
        self._watched = [_WorkspaceWatch(root) for root in roots]
        self._settings, self._on_result, self._database = settings, on_result, database
        self._workers, self._rates, self._grace_s = workers, rates, grace_s
        self._stop, self._wake = threading.Event(), threading.Event()
        self._results: dict[str, Passed] = {}
        self._pool = RunPool(settings, ["agentx.scheduling.daemon"], total_bytes=memory_bytes)

    def stop(self) -> None:
        """Start nothing more and let current runs finish; a second call ends them at once."""
        if self._stop.is_set():
            self._grace_s = 0.0
        self._stop.set()
        self._wake.set()

    def run(self, *, once: bool = False) -> None:
        """Work until :meth:`stop`.

        Args:
            once: Also return once nothing is due.

        Raises:
            DaemonFailed: DBOS is not installed, or its database failed.
        """
        with self._queue() as enqueue:
            inode = self._inode()
            while not self._stop.is_set():
                if self._inode() != inode:
                    raise DaemonFailed(f"The daemon's database was deleted. {_AGAIN}")
                try:
                    busy = [self._attend(one, enqueue) for one in self._watched]
                except AgentXError:
                    raise
                except Exception as error:
                    raise DaemonFailed(
                        f"The daemon's database failed ({one_line(str(error))[:300]}). {_AGAIN}"
                    ) from error
                self._pool.tidy()
                if once and not any(busy):
                    return
                self._wake.wait(LOOK_S)
                self._wake.clear()

    # --- one workspace --------------------------------------------------------------------------------------

    def _attend(self, one: _WorkspaceWatch, enqueue: Callable[[Path, str], _Handle]) -> bool:
        """Collect finished work and enqueue what is due; return whether work is in progress."""
        if one.work is not None:
            found = self._results.pop(str(one.root), None) or _asked(one, one.work)
            if found is None:
                return True
            one.work = None
            self._tell(one, found)
        if time.monotonic() < one.quiet_until:
            return False
        if _mark(one.root) != one.found.mark:
            self._tell(one, look(one.root, self._settings))
        if one.quiet_until <= time.monotonic() and "" < one.found.begins <= stamp():
            one.work = enqueue(one.root, one.found.model)
            return True
        return False

    def _tell(self, one: _WorkspaceWatch, found: Passed) -> None:
        for carried in found.carried:
            self._on_result(one.root, carried)
        if found.error:
            one.quiet_until = time.monotonic() + RETRY_S
            if found.error != one.found.error:
                self._on_result(one.root, found.error)
        one.found = found

    def _carry(self, root: str) -> str:
        """Run what is due first in a resident process; return its :class:`Passed` as JSON."""
        if self._stop.is_set():
            return _json(Passed())
        said: list[Passed] = list(self._pool.call(carry_out, Path(root), self._settings))
        lost = Passed(error="the process of a run exited without a result; the run was interrupted")
        self._results[root] = found = said[-1] if said else lost
        self._wake.set()
        return _json(found)

    # --- start and stop -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _queue(self) -> Iterator[Callable[[Path, str], _Handle]]:
        with needs(DAEMON, DaemonFailed):
            from dbos import DBOS, SetEnqueueOptions  # noqa: PLC0415 - an extra
        database = self._database
        if not database:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            database = f"sqlite:///{self._file}"
        on_sqlite = database.startswith("sqlite")
        if on_sqlite and sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise DaemonFailed(
                f"The daemon needs SQLite 3.35 or newer, and this Python has {sqlite3.sqlite_version}: use a "
                "newer Python, or Postgres (--database postgresql://…). Without it, cron and "
                "`agentx schedule run-due` do the same for one workspace."
            )
        engine = {"connect_args": {"factory": SqliteWithMilliseconds}} if on_sqlite else {}
        DBOS(
            config={
                "name": QUEUE,
                "system_database_url": database,
                "db_engine_kwargs": engine,
                "application_version": "1",
                # One ID for all daemons, so that each recovers what another left when it died.
                "executor_id": QUEUE,
                "log_level": "CRITICAL",
            }
        )

        @DBOS.workflow(name="carry_out_due")
        def work(root: str) -> str:
            return self._carry(root)

        try:
            DBOS.launch()
            for name, rate in {"": 0, **self._rates}.items():
                DBOS.register_queue(
                    _queue_name(name),
                    partition_concurrency=1,
                    worker_concurrency=self._workers,
                    limiter={"limit": rate, "period": 60.0} if rate else None,
                    polling_interval_sec=POLL_S,
                    on_conflict="always_update",
                )
        except Exception as error:
            DBOS.destroy(destroy_registry=True)
            raise DaemonFailed(
                f"The daemon's database cannot be used: {one_line(str(error))[:300]}."
            ) from error

        def enqueue(root: Path, model: str) -> _Handle:
            with SetEnqueueOptions(queue_partition_key=str(root)):
                handle: _Handle = DBOS.enqueue_workflow(
                    _queue_name(model if model in self._rates else ""), work, str(root)
                )
            return handle

        try:
            yield enqueue
        finally:
            self._stop.set()
            end_processes(self._pool.busy, self._grace_s, END_S)
            self._pool.close()
            DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=int(END_S))

    @property
    def _file(self) -> Path:
        return self._settings.state_dir / "daemon.sqlite"

    def _inode(self) -> int:
        """Return the inode of the database file; 0 for another database or a missing file.

        DBOS would wait for a file that was deleted.
        """
        return 0 if self._database or not self._file.exists() else self._file.stat().st_ino


def _asked(one: _WorkspaceWatch, work: _Handle) -> Passed | None:
    """Ask the database for the result of work that another daemon may have ended; ``None`` if there is none.

    It is asked once each :data:`LOOK_S`.
    """
    if time.monotonic() < one.asked_at + LOOK_S:
        return None
    one.asked_at = time.monotonic()
    status = work.get_status().status
    if status in _WAITING:
        return None
    return (
        msgspec.json.decode(work.get_result(), type=Passed) if status == "SUCCESS" else Passed(error=status)
    )


# --- in a resident process ----------------------------------------------------------------------------------


def carry_out(root: Path, settings: Settings) -> Iterator[Passed]:
    """Run what is due first in a workspace and yield the result; SIGTERM interrupts it."""
    yield look(root, settings, most=1)


def look(root: Path, settings: Settings, most: int = 0) -> Passed:
    """Return when something is due next in a workspace, optionally after running what is due now.

    Args:
        root: Its directory.
        settings: Settings from the environment.
        most: Maximum number of due runs to carry out first; 0 for none.
    """
    carried: list[Carried] = []
    mark = _mark(root)
    try:
        with Workspace.open(root, settings=settings) as ws:
            if most:
                carried = carry_out_due(ws, datetime.now(tz=UTC), most=most)
                ws.flush()
                mark = _mark(root)
            at, schedule = begins(ws.state, datetime.now(tz=UTC))
            model = works_with(ws, schedule) if schedule else ""
    except (KeyboardInterrupt, WorkspaceBusy) as error:
        return Passed(mark=mark, begins=stamp(), error=one_line(str(error)) or "interrupted")
    except Exception as error:  # noqa: BLE001 - a fault in one workspace must not stop the others
        return Passed(
            carried=tuple(carried), mark=mark, error=f"{type(error).__name__}: {one_line(str(error))}"
        )
    return Passed(carried=tuple(carried), mark=mark, begins=at, model=model)


def _mark(root: Path) -> tuple[int, int, int]:
    try:
        found = (root / LIVE).stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _json(found: Passed) -> str:
    return msgspec.json.encode(found).decode()


def _queue_name(model: str) -> str:
    return f"{QUEUE}:{model}" if model else QUEUE
