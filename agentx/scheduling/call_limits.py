"""Limits on the calls to model providers, shared by all workers of a fleet and kept in its database.

A provider with a limit of N calls in a period has N rows, each with the time of a call. A call takes the
oldest row and may begin one period after the time in it. So no period has more than N calls, the wait is
known at once, calls begin in the order in which they asked, and what a killed worker took is free a period
later. A provider that refuses a call because there were too many pauses all workers. The clock is the
database's.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from agentx.scheduling.shared_queue import QueueFailed, SharedQueue
from agentx.storage.errors import UsageError

PERIODS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0}
MOST_CALLS = 100_000

KNOWN_S = 1.0
"""How long a worker trusts that a provider has no limit and no pause, in seconds."""

AGAIN_S = 2.0
"""Pause before the database is asked again, in seconds. Calls to a provider with a limit wait meanwhile."""

LONGEST_WAIT_S = 86_400.0
"""Longest wait of a call for its turn, in seconds, whatever a row of the database says."""

_LIMIT = re.compile(r"([A-Za-z0-9][\w./:-]{0,99})=(?:(\d{1,6})/(?:(\d{1,5})\s*)?([a-z]+)|(none))")


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit on the calls to a provider, or a pause that it asked for.

    Attributes:
        name: The provider, or ``PROVIDER/MODEL``.
        calls: Maximum number of calls in a period; 0 for any number.
        period_s: The period, in seconds.
        waiting: Number of calls that wait for their turn, as far as the limit itself.
        next_s: How long the next call waits, in seconds.
        paused_s: How long the provider takes no calls, in seconds.
    """

    name: str
    calls: int = 0
    period_s: float = 0.0
    waiting: int = 0
    next_s: float = 0.0
    paused_s: float = 0.0


class AskTurn(msgspec.Struct, frozen=True):
    """A process asks for the turn of a call.

    Attributes:
        model: The model.
        taken: Whether it has its turn already, and only asks whether there is a pause.
    """

    model: str
    taken: bool = False


class Turn(msgspec.Struct, frozen=True):
    """The answer.

    Attributes:
        wait_s: How long to wait before it asks again; 0 if the call may begin.
        taken: Whether it has its turn. A pause takes it away, or all calls would begin at its end.
    """

    wait_s: float
    taken: bool


class TellPause(msgspec.Struct, frozen=True):
    """A process reports that a provider refused a call because there were too many."""

    model: str
    seconds: float


def parse(text: str) -> Limit:
    """Return a limit from ``PROVIDER=CALLS/PERIOD``; ``PROVIDER=none`` for no limit.

    Raises:
        UsageError: It is something else.

    >>> parse("anthropic=50/min").calls, parse("openai/gpt-5=5/10s").period_s
    (50, 10.0)
    """
    found = _LIMIT.fullmatch(text.strip())
    unit = found and PERIODS.get(found[4] or "s")
    calls = int((found and found[2]) or 0)
    if not found or not unit or calls > MOST_CALLS or (not found[5] and not calls) or found[3] == "0":
        raise UsageError(
            f"{text[:80]!r} is not a limit; write PROVIDER=CALLS/PERIOD, as in anthropic=50/min, openai=10/s "
            f"or openai/gpt-5=5/10s (at most {MOST_CALLS:,} calls), or PROVIDER=none for no limit."
        )
    return Limit(name=found[1], calls=calls, period_s=unit * int(found[3] or 1))


class CallLimits:
    """The limits of a fleet.

    Args:
        queue: The fleet's queue, in whose database they are.
    """

    def __init__(self, queue: SharedQueue) -> None:
        self._queue = queue
        self._limits, self._calls = queue.table("fleet_limits"), queue.table("fleet_calls")
        self._lock = threading.Lock()
        self._known: frozenset[str] = frozenset()
        self._looked_at = -KNOWN_S

    def create(self, limits: Iterable[Limit] = ()) -> None:
        """Create the tables, and set limits; other limits stay as they are.

        Raises:
            QueueFailed: The database cannot be reached or written.
        """
        with self._queue.transaction() as run:
            run(
                f"CREATE TABLE IF NOT EXISTS {self._limits} (name TEXT PRIMARY KEY, calls INTEGER NOT NULL, "
                "period_s DOUBLE PRECISION NOT NULL, taken BIGINT NOT NULL, "
                "paused_until DOUBLE PRECISION NOT NULL)"
            )
            run(
                f"CREATE TABLE IF NOT EXISTS {self._calls} (name TEXT NOT NULL, slot INTEGER NOT NULL, "
                "at DOUBLE PRECISION NOT NULL, PRIMARY KEY (name, slot))"
            )
        for one in limits:
            with self._queue.transaction() as run:
                run(
                    f"INSERT INTO {self._limits} (name, calls, period_s, taken, paused_until) "  # noqa: S608
                    "VALUES (:name, :calls, :period, 0, 0) ON CONFLICT (name) DO UPDATE SET "
                    "calls = :calls, period_s = :period",
                    name=one.name,
                    calls=one.calls,
                    period=one.period_s,
                )
                run(
                    f"DELETE FROM {self._calls} WHERE name = :name AND slot >= :calls",  # noqa: S608
                    name=one.name,
                    calls=one.calls,
                )

    def all(self) -> list[Limit]:
        """Return what limits calls now, by name.

        Raises:
            QueueFailed: The database cannot be reached.
        """
        with self._queue.transaction() as run:
            now = self._queue.now
            rows = run(
                f"SELECT l.name, calls, period_s, paused_until - {now}, "  # noqa: S608
                f"(SELECT COUNT(*) FROM {self._calls} c WHERE c.name = l.name AND at > {now}), "
                f"(SELECT at + period_s - {now} FROM {self._calls} c WHERE c.name = l.name "
                f"AND slot = (taken + 1) % NULLIF(calls, 0)) FROM {self._limits} l "
                f"WHERE calls > 0 OR paused_until > {now} ORDER BY l.name"
            ).fetchall()
        return [
            Limit(
                name=row[0],
                calls=row[1],
                period_s=row[2],
                paused_s=max(0.0, row[3]),
                waiting=row[4],
                next_s=max(0.0, row[5] or 0.0, row[3]),
            )
            for row in rows
        ]

    # --- calls ----------------------------------------------------------------------------------------------

    def answer(self, question: Any) -> Turn | None:
        """Answer a process that carries out a run."""
        try:
            if isinstance(question, TellPause):
                self._pause(question)
            elif isinstance(question, AskTurn):
                return self._turn(question)
        except QueueFailed:
            return Turn(AGAIN_S, taken=isinstance(question, AskTurn) and question.taken)
        return None

    def _turn(self, asked: AskTurn) -> Turn:
        name = self._limited(asked.model)
        if not name:
            return Turn(0.0, taken=True)
        now = self._queue.now
        with self._queue.transaction() as run:
            # The update comes first: it locks the row, so that the calls of all workers take turns here.
            row = run(
                f"UPDATE {self._limits} SET taken = taken + "  # noqa: S608
                f"(CASE WHEN paused_until > {now} THEN 0 ELSE :one END) "
                f"WHERE name = :name RETURNING calls, period_s, taken, paused_until, {now}",
                name=name,
                one=int(not asked.taken),
            ).fetchone()
            if row is None:
                return Turn(0.0, taken=True)
            calls, period_s, taken, paused_until, at = row
            if paused_until > at:
                return Turn(paused_until - at, taken=False)
            if asked.taken or not calls:
                return Turn(0.0, taken=True)
            mine = {"name": name, "slot": taken % calls}
            before = run(
                f"SELECT at FROM {self._calls} WHERE name = :name AND slot = :slot",  # noqa: S608
                **mine,
            ).fetchone()
            begins = max(at, before[0] + period_s) if before else at
            run(
                f"INSERT INTO {self._calls} (name, slot, at) VALUES (:name, :slot, :at) "  # noqa: S608
                "ON CONFLICT (name, slot) DO UPDATE SET at = :at",
                at=begins,
                **mine,
            )
        return Turn(begins - at, taken=True)

    def _limited(self, model: str) -> str:
        """Return the name of the limit for a model, the more specific one; empty for none."""
        with self._lock:
            if time.monotonic() >= self._looked_at + KNOWN_S:
                self._known = frozenset(one.name for one in self.all())
                self._looked_at = time.monotonic()
            return next((one for one in (model, provider(model)) if one in self._known), "")

    def _pause(self, told: TellPause) -> None:
        name = self._limited(told.model) or provider(told.model)
        with self._queue.transaction() as run:
            run(
                f"INSERT INTO {self._limits} (name, calls, period_s, taken, paused_until) "  # noqa: S608
                f"VALUES (:name, 0, 0, 0, {self._queue.now} + :seconds) ON CONFLICT (name) DO UPDATE SET "
                f"paused_until = CASE WHEN {self._limits}.paused_until > {self._queue.now} + :seconds "
                f"THEN {self._limits}.paused_until ELSE {self._queue.now} + :seconds END",
                name=name,
                seconds=told.seconds,
            )
        with self._lock:
            self._known |= {name}


def provider(model: str) -> str:
    """Return the provider of a model; the model itself if its name has none.

    >>> provider("openai/gpt-5-mini"), provider("gpt-5-mini")
    ('openai', 'gpt-5-mini')
    """
    return model.partition("/")[0]


class AskingGate:
    """The gate of a process that carries out runs: it asks its worker.

    Args:
        ask: Asks the process that called, and returns the answer; ``None`` if there is no answer.
    """

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask

    def wait(self, model: str) -> None:
        """Return when a call to this model may begin."""
        taken = False
        while isinstance(turn := self._ask(AskTurn(model, taken)), Turn):
            taken = turn.taken
            if not turn.wait_s > 0:  # also if a forged row makes it no number
                return
            time.sleep(min(turn.wait_s, LONGEST_WAIT_S))

    def pause(self, model: str, seconds: float) -> None:
        """Report that the provider takes no calls for some time."""
        self._ask(TellPause(model, seconds))
