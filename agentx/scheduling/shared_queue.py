"""A queue that several processes and machines share: one run at a time per partition, kept by DBOS.

DBOS holds the submissions, their order and their results, in SQLite or in one schema of a Postgres database.
Two small tables beside its own say which workers live and what was set aside. None of it decides whose events
are in a history: Git does. So a wrong answer here costs work that is done twice, and never an event.

The age of a worker's sign of life is computed by the database, so that the clocks of the machines do not
matter.
"""

import contextlib
import json
import logging
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agentx.scheduling.queue_database import OLDEST_SQLITE, SqliteWithMilliseconds
from agentx.storage.errors import AgentXError
from agentx.storage.extras import DAEMON, needs
from agentx.storage.text import one_line

QUEUE = "fleet"
WORK = "carry_out"
POLL_S = 0.1
"""Seconds between two looks of a worker into the queue."""

WAITING, RUNNING = ("ENQUEUED", "DELAYED"), ("PENDING",)

_SQLITE_NOW = "(julianday('now') - 2440587.5) * 86400.0"
_POSTGRES_NOW = "EXTRACT(EPOCH FROM clock_timestamp())::float8"
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/@\s]*@")


class QueueFailed(AgentXError):
    """The database of a fleet cannot be used."""


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, as the database knows it.

    Attributes:
        name: Its name.
        slots: Maximum number of runs at once.
        running: Number of runs at its last sign of life.
        quiet_s: Seconds since then.
        draining: Whether it was asked to end.
    """

    name: str
    slots: int
    running: int
    quiet_s: float
    draining: bool


class SetAside(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a worker whose place in the history was taken.

    Attributes:
        ref: The ref on the remote that names them.
        workspace: The workspace.
        submission: The submission.
        commit: The commit that the ref names.
        worker: The worker that recorded them.
        pushed: Whether the remote has them; before that, only the worker has.
    """

    ref: str
    workspace: str
    submission: str
    commit: str
    worker: str
    pushed: bool


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A submission in the queue.

    Attributes:
        submission: Its id.
        workspace: The workspace.
        status: The status that DBOS gives it.
        worker: The worker that has it; empty for none.
        submitted_ms: When it was submitted, in milliseconds since 1970.
        started_ms: When a worker took it; 0 for never.
        ended_ms: When its result was known; 0 for not yet.
        result: What the worker returned, as JSON; empty for nothing.
    """

    submission: str
    workspace: str
    status: str
    worker: str = ""
    submitted_ms: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    result: str = ""


class SharedQueue:
    """The queue of one tenant. Use :meth:`opened`, and :meth:`working` on a worker.

    Args:
        database: URL of the database, SQLite or Postgres.
        schema: The tenant's schema; SQLite has none, so each tenant has a file.
    """

    def __init__(self, database: str, schema: str) -> None:
        with needs(DAEMON, QueueFailed):
            import dbos  # noqa: F401, PLC0415 - an extra
            import sqlalchemy as sa  # noqa: PLC0415 - comes with it
        # DBOS logs to standard error; what fails is said by our own errors.
        logger = logging.getLogger("dbos")
        logger.handlers = [logging.NullHandler()]
        logger.setLevel(logging.CRITICAL)
        self._sa = sa
        self._sqlite = database.startswith("sqlite")
        if self._sqlite and sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise QueueFailed(
                f"A fleet on SQLite needs SQLite 3.35 or newer; this Python has {sqlite3.sqlite_version}: "
                "use a newer Python, or Postgres (--database postgresql://…)."
            )
        self._schema = schema
        self._prefix = "" if self._sqlite else f'"{schema}".'
        self._now = _SQLITE_NOW if self._sqlite else _POSTGRES_NOW
        with _translated():
            self._engine = self._connect(database)
            self._serializer = _json_only()
        self._client: Any = None

    def _connect(self, database: str) -> Any:
        sa = self._sa
        if not self._sqlite:
            url = sa.make_url(re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql+psycopg://", database))
            return sa.create_engine(
                url,
                pool_size=10,
                max_overflow=20,
                pool_pre_ping=True,
                connect_args={
                    "connect_timeout": 10,
                    "client_encoding": "utf8",
                    # A server that went away silently is noticed in seconds, not after a quarter of an hour.
                    "tcp_user_timeout": 15_000,
                    "keepalives_idle": 10,
                    "keepalives_interval": 5,
                    "keepalives_count": 3,
                },
            )
        engine = sa.create_engine(database, connect_args={"factory": SqliteWithMilliseconds})

        def prepare(connection: Any, _: Any) -> None:
            connection.isolation_level = "IMMEDIATE"
            connection.execute("PRAGMA busy_timeout=30000")
            connection.execute("PRAGMA foreign_keys=ON")

        sa.event.listen(engine, "connect", prepare)
        return engine

    @classmethod
    @contextlib.contextmanager
    def opened(cls, database: str, schema: str) -> Iterator["SharedQueue"]:
        """Open the queue to submit and to look.

        Raises:
            QueueFailed: The database cannot be reached, or DBOS is not installed.
        """
        queue = cls(database, schema)
        try:
            yield queue
        finally:
            if queue._client is not None:
                queue._client.destroy()
            queue._engine.dispose()

    def create(self, slots: int) -> None:
        """Create the schema, the tables and the queue; what exists is kept.

        Args:
            slots: Maximum number of runs at once on each worker.

        Raises:
            QueueFailed: The database cannot be reached or written.
        """
        with needs(DAEMON, QueueFailed):
            from dbos import DBOS  # noqa: PLC0415 - an extra

        with self._launched("init", lambda _: "", listen=False), _translated():
            DBOS.register_queue(
                QUEUE,
                partition_concurrency=1,
                worker_concurrency=slots,
                polling_interval_sec=POLL_S,
                on_conflict="always_update",
            )
        tables = {
            "fleet_workers": "name TEXT PRIMARY KEY, slots INTEGER, running INTEGER, beat DOUBLE PRECISION, "
            "draining INTEGER",
            "fleet_aside": "ref TEXT PRIMARY KEY, workspace TEXT, submission TEXT, commit_id TEXT, "
            "worker TEXT, pushed INTEGER",
        }
        for name, columns in tables.items():
            self._execute(f"CREATE TABLE IF NOT EXISTS {self._prefix}{name} ({columns})")

    # --- submissions ----------------------------------------------------------------------------------------

    def enqueue(self, submission: str, workspace: str, payload: str, priority: int) -> None:
        """Add a submission; one with an id that is known already is not added again.

        Args:
            submission: Its id.
            workspace: The workspace; its submissions run one after another.
            payload: What the worker gets.
            priority: From 1, which is first, within the workspace.

        Raises:
            QueueFailed: The database cannot be reached or written.
        """
        with _translated():
            self._connected().enqueue(
                {
                    "workflow_name": WORK,
                    "queue_name": QUEUE,
                    "workflow_id": submission,
                    "queue_partition_key": workspace,
                    "priority": priority,
                    "app_version": "1",
                },
                payload,
            )

    def recent(self, most: int) -> list[Queued]:
        """Return the latest submissions, the newest first.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        rows = self._rows(
            "SELECT s.workflow_uuid, s.queue_partition_key, s.status, s.executor_id, s.created_at, "  # noqa: S608
            f"s.started_at_epoch_ms, s.completed_at, o.output FROM {self._prefix}workflow_status s "
            f"LEFT JOIN {self._prefix}workflow_output o ON o.workflow_uuid = s.workflow_uuid "
            "WHERE s.queue_name = :queue ORDER BY s.created_at DESC, s.workflow_uuid LIMIT :most",
            queue=QUEUE,
            most=most,
        )
        return [
            Queued(
                submission=row[0],
                workspace=row[1] or "",
                status=row[2],
                worker=row[3] or "" if row[2] not in WAITING else "",
                submitted_ms=row[4] or 0,
                started_ms=row[5] or 0,
                ended_ms=row[6] or 0,
                result=_text(row[7]),
            )
            for row in rows
        ]

    def counts(self) -> dict[str, int]:
        """Return the number of submissions by the status that DBOS gives them.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        rows = self._rows(
            f"SELECT status, COUNT(*) FROM {self._prefix}workflow_status "  # noqa: S608 - the schema is checked
            "WHERE queue_name = :queue GROUP BY status",
            queue=QUEUE,
        )
        return {row[0]: row[1] for row in rows}

    # --- workers --------------------------------------------------------------------------------------------

    def beat(self, worker: str, slots: int, running: int) -> bool:
        """Record that a worker lives; return whether it was asked to end.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        self._execute(
            f"INSERT INTO {self._prefix}fleet_workers (name, slots, running, beat, draining) "  # noqa: S608
            f"VALUES (:name, :slots, :running, {self._now}, 0) ON CONFLICT (name) DO UPDATE SET "
            f"slots = :slots, running = :running, beat = {self._now}",
            name=worker,
            slots=slots,
            running=running,
        )
        found = self._rows(
            f"SELECT draining FROM {self._prefix}fleet_workers WHERE name = :name",  # noqa: S608
            name=worker,
        )
        return bool(found and found[0][0])

    def leave(self, worker: str) -> None:
        """Forget a worker that ended in order.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        self._execute(f"DELETE FROM {self._prefix}fleet_workers WHERE name = :name", name=worker)  # noqa: S608

    def drain(self, worker: str = "") -> list[str]:
        """Ask a worker, or all, to end after the runs that they have; return their names.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        names = [one.name for one in self.workers() if worker in ("", one.name)]
        for name in names:
            self._execute(
                f"UPDATE {self._prefix}fleet_workers SET draining = 1 WHERE name = :name",  # noqa: S608
                name=name,
            )
        return names

    def workers(self) -> list[WorkerRow]:
        """Return all workers that did not end in order, by name.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        rows = self._rows(
            f"SELECT name, slots, running, {self._now} - beat, draining "  # noqa: S608
            f"FROM {self._prefix}fleet_workers ORDER BY name"
        )
        return [
            WorkerRow(
                name=row[0],
                slots=row[1],
                running=row[2],
                quiet_s=max(0.0, float(row[3])),
                draining=bool(row[4]),
            )
            for row in rows
        ]

    def take_over(self, lease_s: float) -> int:
        """Return the submissions of workers without a sign of life to the queue; return how many.

        A worker whose row is gone ended, and holds nothing.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        taken = self._execute(
            f"UPDATE {self._prefix}workflow_status SET status = 'ENQUEUED', owner_xid = NULL, "  # noqa: S608
            "started_at_epoch_ms = NULL WHERE queue_name = :queue AND status = 'PENDING' AND executor_id "
            f"NOT IN (SELECT name FROM {self._prefix}fleet_workers WHERE {self._now} - beat < :lease)",
            queue=QUEUE,
            lease=lease_s,
        )
        return int(taken)

    # --- what was set aside ---------------------------------------------------------------------------------

    def report(self, aside: SetAside) -> None:
        """Record what a worker set aside; a second report of the same ref updates it.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        self._execute(
            f"INSERT INTO {self._prefix}fleet_aside (ref, workspace, submission, commit_id, worker, "  # noqa: S608
            "pushed) VALUES (:ref, :workspace, :submission, :commit, :worker, :pushed) "
            "ON CONFLICT (ref) DO UPDATE SET pushed = :pushed",
            **{**msgspec.structs.asdict(aside), "pushed": int(aside.pushed)},
        )

    def asides(self) -> list[SetAside]:
        """Return what workers set aside, by ref.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        rows = self._rows(
            "SELECT ref, workspace, submission, commit_id, worker, pushed "  # noqa: S608
            f"FROM {self._prefix}fleet_aside ORDER BY ref"
        )
        return [
            SetAside(
                ref=row[0],
                workspace=row[1],
                submission=row[2],
                commit=row[3],
                worker=row[4],
                pushed=bool(row[5]),
            )
            for row in rows
        ]

    # --- work -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def working(self, worker: str, work: Callable[[str], str]) -> Iterator[None]:
        """Take submissions from the queue until the end of the block, each in a thread.

        At the end no more are taken. Those that run must have ended, or raise ``KeyboardInterrupt``,
        which leaves them in the queue.

        Args:
            worker: Name of the worker; no other process uses it.
            work: Gets the payload of a submission and returns its result.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        with self._launched(worker, work):
            yield

    @contextlib.contextmanager
    def _launched(self, worker: str, work: Callable[[str], str], *, listen: bool = True) -> Iterator[None]:
        with needs(DAEMON, QueueFailed):
            from dbos import DBOS  # noqa: PLC0415 - an extra

        config: Mapping[str, Any] = {
            "name": QUEUE,
            "system_database_engine": self._engine,
            "serializer": self._serializer,
            "application_version": "1",
            "executor_id": worker,
            "log_level": "CRITICAL",
        }
        if not self._sqlite:
            config = {**config, "dbos_system_schema": self._schema}
        DBOS(config=config)  # type: ignore[arg-type]  # its keys are optional

        @DBOS.workflow(name=WORK, max_recovery_attempts=None)
        def carry_out(payload: str) -> str:
            return work(payload)

        try:
            with _translated():
                if not listen:
                    DBOS.listen_queues([])
                DBOS.launch()
            yield
        finally:
            DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=0)

    # --- statements -----------------------------------------------------------------------------------------

    def _connected(self) -> Any:
        if self._client is None:
            with needs(DAEMON, QueueFailed):
                from dbos import DBOSClient  # noqa: PLC0415 - an extra

            schema: dict[str, Any] = {} if self._sqlite else {"dbos_system_schema": self._schema}
            self._client = DBOSClient(
                system_database_engine=self._engine,
                serializer=self._serializer,
                application_name=QUEUE,
                retry_connection_errors=False,
                **schema,
            )
        return self._client

    def _execute(self, statement: str, **values: Any) -> int:
        with _translated(), self._engine.begin() as connection:
            return int(connection.execute(self._sa.text(statement), values).rowcount)

    def _rows(self, statement: str, **values: Any) -> Sequence[Any]:
        with _translated(), self._engine.connect() as connection:
            rows: Sequence[Any] = connection.execute(self._sa.text(statement), values).fetchall()
            return rows


def _text(output: str | None) -> str:
    """Return the text that a worker returned; an error of DBOS itself is no result."""
    with contextlib.suppress(ValueError):
        found = json.loads(output or "null")
        return found if isinstance(found, str) else ""
    return ""


def _json_only() -> Any:
    """Return a serializer for DBOS that writes JSON, and make DBOS refuse to read anything else.

    By default DBOS pickles. Whoever can write a row could then run code on every worker: DBOS reads a row in
    the format that the row itself names.
    """
    with needs(DAEMON, QueueFailed):
        from dbos import _serialization as formats  # noqa: PLC0415 - an extra

    class JsonSerializer(formats.Serializer):
        """Writes and reads JSON."""

        def serialize(self, data: Any) -> str:
            return json.dumps(data, default=str)

        @classmethod
        def deserialize(cls, serialized_data: str) -> Any:
            return json.loads(serialized_data)

        def name(self) -> str:
            return "agentx_json"

    def refuse(_: Any, serialized_data: str) -> Any:
        raise QueueFailed(
            f"A row of {len(serialized_data)} bytes in the fleet's database is pickled, so it is refused."
        )

    formats.DefaultSerializer.deserialize = classmethod(refuse)  # type: ignore[method-assign,assignment]
    return JsonSerializer()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except AgentXError:
        raise
    except Exception as error:
        said = _PASSWORD.sub(r"\1:…@", one_line(str(error).partition("\n[SQL")[0]))[:300]
        raise QueueFailed(
            f"The fleet's database cannot be used: {said.rstrip('.')}. Check that it runs and that its "
            "URL is right; nothing is lost."
        ) from error
