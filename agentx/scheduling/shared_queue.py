"""A queue that several processes and machines share: one run at a time per workspace, kept by DBOS.

DBOS holds the submissions and their results, in SQLite or in one schema of a Postgres database. Small tables
beside its own say which workers live, what was set aside and which limits hold. None of it decides whose
events are in a history: Git does. So a wrong answer here costs work that is done twice, and never an event.

A worker looks into the queue when Postgres tells it that something came in, and now and then in any case.

DBOS partitions the queue by workspace and chooses among partitions at random. Here each submission has a
turn instead, and the worker asks DBOS for the partitions in that order. The turn is the second at which the
submission was first in its workspace, plus :data:`STEP_S` for each step of its priority; DBOS's own column
for the priority holds it. Only the first submission of a workspace has a turn. The others are parked: when a
run ends, the next one of its workspace gets its turn, behind all that came in meanwhile. So a workspace with
a thousand submissions waits in line like one with a single submission, and none is passed over for ever.

The age of a worker's sign of life is computed by the database, so that the clocks of the machines do not
matter.
"""

import contextlib
import json
import logging
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agentx.scheduling.queue_database import OLDEST_SQLITE, SqliteWithMilliseconds
from agentx.scheduling.queue_watch import LOOK_S, QueueWatch
from agentx.storage.errors import AgentXError
from agentx.storage.extras import DAEMON, needs
from agentx.storage.text import one_line, without_passwords

QUEUE = "fleet"
WORK = "carry_out"
CALM_S = 0.01
"""Seconds that DBOS waits between two looks; when to look is decided by :class:`QueueWatch`."""

WRITTEN_S = 0.02
"""Seconds after a run's end in which DBOS has usually written its result: then the next one can start."""

STEP_S = 10
"""Seconds of waiting that one step of priority is worth."""

LOOK_AHEAD = 32
"""Maximum number of workspaces that a worker tries in one look into the queue."""

UNSTARTED_S = 30.0
"""Seconds after which a submission that was claimed and did not start returns to the queue."""

LEFT_S = 60.0
"""Seconds in which a worker does not look again at a submission that it left to others."""

_LAST = 1_000_001
"""The priority of a submission that a worker left to others: behind all that users can give."""

_PARKED = 2_000_000_000
"""Priorities from here on have no turn yet; the priority that the user gave is added."""

_CLAIMABLE = (
    "queue_partition_key IS NOT NULL AND application_version = '1' "
    f"AND (application_name IS NULL OR application_name = '{QUEUE}')"
)
"""What DBOS requires of a row that it claims here. Others may be written by anybody, and never start."""

_TURNS_BEGIN = 1_767_225_600
"""Turns are seconds since 2026, so that they fit in DBOS's column, for 60 years."""

_OTHER_DBOS = "A fleet needs another version of DBOS: pip install 'dbos>=3.4,<3.5'."
_PRUNED_AT_ONCE = 500

WAITING, RUNNING = ("ENQUEUED", "DELAYED"), ("PENDING",)

_SQLITE_NOW = "(julianday('now') - 2440587.5) * 86400.0"
_POSTGRES_NOW = "EXTRACT(EPOCH FROM clock_timestamp())::float8"


class QueueFailed(AgentXError):
    """The database of a fleet cannot be used."""


class LeftToOthers(AgentXError):
    """A worker cannot carry out a submission that others may: it returns to the queue."""


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


class Slots:
    """The slots of a worker: the maximum number of runs at once.

    Args:
        total: Their number.

    Attributes:
        total: Their number.
        room: Returns whether another run can be carried out, whatever slots are free.
    """

    def __init__(self, total: int) -> None:
        self._lock = threading.Lock()
        self.room: Callable[[], bool] = lambda: True
        self.total = self._free = total

    def any_free(self) -> bool:
        """Return whether one can be taken."""
        with self._lock:
            return self._free > 0 and self.room()

    def take(self) -> bool:
        """Take a slot if one is free."""
        with self._lock:
            taken = self._free > 0 and self.room()
            self._free -= taken
            return taken

    def give_back(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._free = min(self.total, self._free + 1)


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
        # SQLite uses DBOS's partial indexes only if a statement repeats their condition.
        in_flight = " AND status IN ('ENQUEUED', 'PENDING')" if self._sqlite else ""
        # DBOS stamps rows on SQLite with whole seconds under Python 3.11.
        self._tie = "rowid" if self._sqlite else "workflow_uuid"
        self._waits = f"queue_name = '{QUEUE}' AND status = 'ENQUEUED'{in_flight}"
        self._runs = f"queue_name = '{QUEUE}' AND status = 'PENDING'{in_flight}"
        with _translated():
            self._engine = self._connect(database)
            self._serializer = _json_only()
        self._client: Any = None
        self._claimed: dict[str, float] = {}
        self._left: dict[str, float] = {}
        self._slots, self._worker, self._watch = Slots(0), "", QueueWatch()

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
                    # A server that went away silently is noticed in seconds instead of after 15 minutes.
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

    def create(self) -> None:
        """Create the schema, the tables and the queue; what exists is kept.

        Raises:
            QueueFailed: The database cannot be reached or written.
        """
        with needs(DAEMON, QueueFailed):
            from dbos import DBOS  # noqa: PLC0415 - an extra

        self._check_rights()
        with self._launched("init", lambda _: "", listen=False), _translated():
            DBOS.register_queue(
                QUEUE,
                partition_concurrency=1,
                polling_interval_sec=CALM_S,
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

    def _check_rights(self) -> None:
        """Check that the schema is ours, or that it can be created.

        Raises:
            QueueFailed: It belongs to another role, or this role may not create it.
        """
        if self._sqlite:
            return
        role, may_create = self._rows(
            "SELECT current_user, has_database_privilege(current_database(), 'CREATE')"
        )[0]
        owner = self._rows(
            "SELECT pg_get_userbyid(nspowner), pg_has_role(current_user, nspowner, 'USAGE') "
            "FROM pg_namespace WHERE nspname = :schema",
            schema=self._schema,
        )
        if owner and not owner[0][1]:
            raise QueueFailed(
                f"The schema {self._schema} belongs to the role {owner[0][0]}, and this is {role}: use "
                "that role, or another tenant. Nothing was changed."
            )
        if not owner and not may_create:
            raise QueueFailed(
                f"The role {role} may not create the schema {self._schema}; have the database's owner run: "
                f"CREATE SCHEMA {self._schema} AUTHORIZATION {role};"
            )

    # --- submissions ----------------------------------------------------------------------------------------

    def enqueue(self, submission: str, workspace: str, payload: str, priority: int) -> str:
        """Add a submission; one with an id that is known already is not added again.

        Args:
            submission: Its id.
            workspace: The workspace; its submissions run one after another.
            payload: What the worker gets.
            priority: From 1, which is first, to 1,000,000.

        Returns:
            The payload that the queue holds under this id: an earlier one, if it was known.

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
                    "priority": _PARKED + priority,
                    "app_version": "1",
                },
                payload,
            )
        self._give_turn(workspace)
        rows = self._rows(
            f"SELECT inputs FROM {self._prefix}workflow_input WHERE workflow_uuid = :id",  # noqa: S608
            id=submission,
        )
        with contextlib.suppress(ValueError, LookupError, TypeError):
            return str(json.loads(rows[0][0])["args"][0])
        return payload  # a row that nobody can read is none of ours: a worker ends it

    def _give_turn(self, workspace: str, behind_s: int = 0) -> None:
        """Give the first parked submission of a workspace its turn, unless another one there comes before it.

        Both who adds a submission and who ends a run call it after their own transaction. So the later of the
        two sees what the other did, and no submission stays parked.
        """
        turn = f"CAST({self._now} - {_TURNS_BEGIN} AS BIGINT) + :behind + {STEP_S} * (s.priority - {_PARKED})"
        here = f"{self._waits} AND queue_partition_key = :workspace"
        given = (
            f"UPDATE {self._prefix}workflow_status AS s SET priority = {turn} "  # noqa: S608
            f"WHERE workflow_uuid = (SELECT workflow_uuid FROM {self._prefix}workflow_status WHERE {here} "
            f"AND priority >= {_PARKED} ORDER BY priority, created_at, {self._tie} LIMIT 1) "
            f"AND status = 'ENQUEUED' AND priority >= {_PARKED} AND NOT EXISTS ("
            f"SELECT 1 FROM {self._prefix}workflow_status WHERE {here} AND priority < {_PARKED} "
            f"AND priority <= {turn})"
        )
        with self.transaction() as run:
            if run(given, workspace=workspace, behind=behind_s).rowcount and not self._sqlite:
                self._send(run)

    def _send(self, run: Callable[..., Any]) -> None:
        """Tell the workers that there may be work, once a transaction is committed."""
        run("SELECT pg_notify(:channel, '')", channel=self._schema)

    def _in_turn(self, most: int) -> list[str]:
        """Return the workspaces without a run whose submissions have their turn, in this order."""
        rows = self._rows(
            "SELECT queue_partition_key, workflow_uuid "  # noqa: S608
            f"FROM {self._prefix}workflow_status s WHERE {self._waits} AND {_CLAIMABLE} "
            f"AND priority < {_PARKED} AND NOT EXISTS (SELECT 1 FROM {self._prefix}workflow_status p "
            f"WHERE p.{self._runs.replace(' AND ', ' AND p.')} "
            "AND p.queue_partition_key = s.queue_partition_key) ORDER BY priority, created_at LIMIT :most",
            most=most,
        )
        first = dict(map(tuple, reversed(rows)))
        passed = self._passed()
        return [one for one in dict.fromkeys(row[0] for row in rows) if first[one] not in passed]

    def _passed(self) -> set[str]:
        """Return the submissions that this worker left to others a short while ago."""
        since = time.monotonic() - LEFT_S
        self._left = {one: at for one, at in self._left.items() if at > since}
        return set(self._left)

    def is_drained(self) -> bool:
        """Return whether nothing runs, and nothing waits that this worker would take now.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        passed = self._passed()
        rows = self._rows(
            f"SELECT workflow_uuid FROM {self._prefix}workflow_status s "  # noqa: S608
            f"WHERE ({self._waits} AND {_CLAIMABLE}) OR ({self._runs}) LIMIT :most",
            most=len(passed) + 1,
        )
        return all(row[0] in passed for row in rows)

    def prune(self, older_s: float) -> int:
        """Delete submissions that ended long ago, with their messages and results; return how many.

        A submission with the same id is then added again; the worker finds its run in the workspace's
        history, and reports that.

        Args:
            older_s: Seconds since their end.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        pruned = 0
        while True:
            rows = self._rows(
                f"SELECT workflow_uuid FROM {self._prefix}workflow_status "  # noqa: S608
                "WHERE status NOT IN ('ENQUEUED', 'PENDING', 'DELAYED') "
                f"AND completed_at < ({self._now} - :older) * 1000 LIMIT {_PRUNED_AT_ONCE}",
                older=older_s,
            )
            if not rows:
                break
            with _translated():
                self._connected().delete_workflows([row[0] for row in rows])
            pruned += len(rows)
        self._execute(
            f"DELETE FROM {self._prefix}fleet_workers WHERE {self._now} - beat > :older",  # noqa: S608
            older=older_s,
        )
        return pruned

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
        if taken:
            self._watch.tell()
        self._return_unstarted()
        # Parked, because a submitter died before it could give them their turn.
        forgotten = self._rows(
            f"SELECT DISTINCT queue_partition_key FROM {self._prefix}workflow_status s "  # noqa: S608
            f"WHERE {self._waits} AND priority >= {_PARKED} AND NOT EXISTS ("
            f"SELECT 1 FROM {self._prefix}workflow_status o WHERE o.queue_name = '{QUEUE}' "
            "AND o.status IN ('ENQUEUED', 'PENDING') AND o.queue_partition_key = s.queue_partition_key "
            f"AND (o.status = 'PENDING' OR o.priority < {_PARKED}))"
        )
        for row in forgotten:
            self._give_turn(row[0])
        return int(taken)

    def _return_unstarted(self) -> None:
        """Return to the queue what DBOS claimed and then could not start, because the database failed."""
        until = time.monotonic() - UNSTARTED_S
        for submission, at in [(one, at) for one, at in list(self._claimed.items()) if at <= until]:
            if self._claimed.pop(submission, None) is None:
                continue  # it has started at this moment
            try:
                self._execute(
                    f"UPDATE {self._prefix}workflow_status SET status = 'ENQUEUED', owner_xid = NULL, "  # noqa: S608
                    "started_at_epoch_ms = NULL WHERE workflow_uuid = :id AND status = 'PENDING' "
                    "AND executor_id = :worker",
                    id=submission,
                    worker=self._worker,
                )
            except QueueFailed:
                self._claimed[submission] = at  # with its slot, until the database is back
                raise
            self._slots.give_back()
            self._watch.tell()

    def _leave(self, submission: str) -> None:
        """Return a submission to the queue for other workers, behind all others of its workspace."""
        workspace = self._workspace()
        self._left[submission] = time.monotonic()
        self._execute(
            f"UPDATE {self._prefix}workflow_status SET status = 'ENQUEUED', owner_xid = NULL, "  # noqa: S608
            "started_at_epoch_ms = NULL, priority = :last WHERE workflow_uuid = :id AND status = 'PENDING' "
            "AND executor_id = :worker",
            last=_PARKED + _LAST,
            id=submission,
            worker=self._worker,
        )
        self._give_turn(workspace)

    def _end_unreadable(self, database: Any, submissions: Sequence[str]) -> None:
        """End claimed rows that DBOS cannot read, as it would try again and again."""
        for one in submissions:
            try:
                known = database.get_workflow_status(one) is not None
            except self._sa.exc.DBAPIError:
                known = True  # perhaps later
            except Exception:  # noqa: BLE001 - anything may stand in a row
                known = False
            if not known:
                self._end_unstartable(one)

    def _end_unstartable(self, submission: str) -> None:
        """End a claimed row that can never start: no submission of ours, whoever wrote it."""
        if self._claimed.pop(submission, None) is None:
            return  # it has started, or was ended
        self._slots.give_back()
        self._watch.tell()
        with contextlib.suppress(QueueFailed):  # then it is claimed again
            self._execute(
                f"UPDATE {self._prefix}workflow_status SET status = 'ERROR', owner_xid = NULL, "  # noqa: S608
                f"completed_at = {self._now} * 1000 WHERE workflow_uuid = :id AND status = 'PENDING' "
                "AND executor_id = :worker",
                id=submission,
                worker=self._worker,
            )

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

    def forget(self, ref: str) -> bool:
        """Stop listing what was set aside, once somebody looked at it; return whether it was listed.

        Only what the remote has: its ref stays there.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        return bool(
            self._execute(
                f"DELETE FROM {self._prefix}fleet_aside WHERE ref = :ref AND pushed = 1",  # noqa: S608
                ref=ref,
            )
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
    def working(self, worker: str, work: Callable[[str], str], slots: Slots) -> Iterator[None]:
        """Take submissions from the queue in turn until the end of the block, each in a thread.

        At the end no more are taken. Those that run must have ended, or raise ``KeyboardInterrupt``,
        which leaves them in the queue.

        Args:
            worker: Name of the worker; no other process uses it.
            work: Gets the payload of a submission and returns its result.
            slots: A submission is only taken with a slot.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        self._worker, self._slots, self._watch = worker, slots, QueueWatch()

        def in_slot(payload: str) -> str:
            submission = self._submission()
            self._claimed.pop(submission, None)
            try:
                result = work(payload)
                with contextlib.suppress(QueueFailed):  # then the next beat of a worker does it
                    self._give_turn(self._workspace(), behind_s=1)
            except LeftToOthers as error:
                self._leave(submission)
                raise KeyboardInterrupt from error  # so that DBOS records no end
            else:
                return result
            finally:
                slots.give_back()
                self._watch.tell(WRITTEN_S)

        with (
            self._claims_in_turn(slots),
            self._starts_only_submissions(),
            self._launched(worker, in_slot),
            self._told(),
        ):
            yield

    def take_no_more(self) -> None:
        """Take nothing more from the queue, while what runs goes on."""
        self._watch.end()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Have the database say when there may be work, if it can; at the end, take no more."""

        def send() -> None:
            with self.transaction() as run:
                self._send(run)

        with contextlib.ExitStack() as ends:
            ends.callback(self._watch.end)
            if not self._sqlite:
                ends.enter_context(self._watch.listening(self._engine, self._schema, send))
            yield

    def _submission(self) -> str:
        """Return the submission that this thread carries out."""
        with needs(DAEMON, QueueFailed):
            from dbos import DBOS  # noqa: PLC0415 - an extra

        return DBOS.workflow_id or ""

    def _workspace(self) -> str:
        """Return the workspace of the submission that this thread carries out."""
        rows = self._rows(
            f"SELECT queue_partition_key FROM {self._prefix}workflow_status WHERE workflow_uuid = :id",  # noqa: S608
            id=self._submission(),
        )
        return str(rows[0][0]) if rows else ""

    @contextlib.contextmanager
    def _claims_in_turn(self, slots: Slots) -> Iterator[None]:
        """Have DBOS claim the partitions in turn, each with a slot, instead of as many as it likes at random.

        DBOS itself claims, one partition after another, as it does for queues with several limits. It has no
        setting for the order of partitions, so the method that chooses them is replaced.
        """
        with needs(DAEMON, QueueFailed):
            from dbos._sys_db import SystemDatabase  # noqa: PLC0415 - an extra

        def claim(
            database: Any, queue: Any, executor: str, version: str, _most: int = 0, **claim: Any
        ) -> list[str]:
            claimed: list[str] = []
            while self._watch.wait():
                if slots.any_free():
                    break
            else:
                time.sleep(LOOK_S)  # DBOS asks again until it is ended
                return claimed
            for workspace in self._in_turn(LOOK_AHEAD):
                self._watch.tell()  # there is work: the next look shall not be late
                if not slots.take():
                    break
                found: list[str] = []
                try:
                    found, _ = database.start_queued_workflows(queue, executor, version, workspace, **claim)
                except self._sa.exc.DBAPIError as error:
                    if not (database.is_lock_conflict(error) or database.is_serialization_conflict(error)):
                        raise
                finally:
                    if not found:  # another worker was first
                        slots.give_back()
                claimed += found
                self._claimed |= dict.fromkeys(found, time.monotonic())
                self._end_unreadable(database, found)
            return claimed

        name = "start_queued_partitioned_workflows"
        theirs = getattr(SystemDatabase, name, None)
        if theirs is None:
            raise QueueFailed(_OTHER_DBOS)
        setattr(SystemDatabase, name, claim)
        try:
            yield
        finally:
            setattr(SystemDatabase, name, theirs)

    @contextlib.contextmanager
    def _starts_only_submissions(self) -> Iterator[None]:
        """End what was claimed and cannot be started, instead of claiming it for ever.

        A row may name a workflow that does not exist, or one of DBOS. DBOS keeps such a row, and its slot.
        """
        with needs(DAEMON, QueueFailed):
            from dbos import _queue as starting  # noqa: PLC0415 - an extra

        name = "execute_dequeued_workflow"
        theirs = getattr(starting, name, None)
        if theirs is None:
            raise QueueFailed(_OTHER_DBOS)

        def start(dbos: Any, status: Any, owner: str) -> Any:
            try:
                return theirs(dbos, _checked(status), owner)
            except self._sa.exc.DBAPIError:
                raise
            except Exception:
                self._end_unstartable(status["workflow_uuid"])
                raise

        setattr(starting, name, start)
        try:
            yield
        finally:
            setattr(starting, name, theirs)

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

    @property
    def now(self) -> str:
        """SQL for the database's time, in seconds since 1970."""
        return self._now

    def table(self, name: str) -> str:
        """Return a table's name in SQL."""
        return f"{self._prefix}{name}"

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Callable[..., Any]]:
        """Yield a function that runs a statement with named values, in one transaction.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        with _translated(), self._engine.begin() as connection:
            yield lambda statement, **values: connection.execute(self._sa.text(statement), values)

    def _rows(self, statement: str, **values: Any) -> Sequence[Any]:
        with _translated(), self._engine.connect() as connection:
            rows: Sequence[Any] = connection.execute(self._sa.text(statement), values).fetchall()
            return rows


def _checked(status: Any) -> Any:
    """Return the status of a claimed row if it is a submission."""
    if (status["name"], status["class_name"], status["config_name"]) != (WORK, None, None):
        raise QueueFailed("A row of the fleet's database is no submission, so it is ended.")
    return status


def _text(output: str | None) -> str:
    """Return the text that a worker returned; an error of DBOS itself is not a result."""
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
        if "InsufficientPrivilege" in str(error):
            raise QueueFailed(
                "This role may not use the tenant's schema in the fleet's database: use its owner "
                "(in AGENTX_FLEET_DATABASE). Nothing was changed."
            ) from error
        said = without_passwords(one_line(str(error).partition("\n[SQL")[0]))[:300]
        raise QueueFailed(
            f"The fleet's database cannot be used: {said.rstrip('.')}. Check that it runs and that its "
            "URL is right; nothing is lost."
        ) from error
