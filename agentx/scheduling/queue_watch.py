"""When a worker looks into the queue: at once if something came in, and now and then in any case.

Postgres tells the workers (``NOTIFY``) when a submission gets its turn. Where no messages arrive (on SQLite,
through a connection pooler, while the connection is down) a worker looks as often as it may.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

LOOK_S = 0.1
"""Seconds from a look to the next without a message, and at least from one with a message to another."""

IDLE_S = 1.0
"""Seconds from a look to the next while it is quiet: a message may be missed."""

AWAKE_S = 1.0
"""Seconds after a message in which a worker looks as often as it may: others may be about to end a run."""

_CHECK_S = 0.5
_AGAIN_S = 5.0


class QueueWatch:
    """Says when to look into the queue. One thread waits; any thread may send a message."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due, self._told_at, self._looked_at, self._answered_at = 0.0, 0.0, 0.0, 0.0
        self._hears, self._ended = False, False

    def tell(self, in_s: float = 0.0) -> None:
        """Say that there may be work in so many seconds."""
        with self._changed:
            self._told_at = time.monotonic()
            self._due = min(self._due, self._told_at + in_s)
            self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until it is time to look; return False at the end of the watch."""
        with self._changed:
            while not self._ended:
                now = time.monotonic()
                if now >= (at := self._next_look(now)):
                    if now >= self._due:
                        self._due, self._answered_at = float("inf"), now
                    self._looked_at = now
                    return True
                self._changed.wait(at - now)
            return False

    def _next_look(self, now: float) -> float:
        awake = not self._hears or now < self._told_at + AWAKE_S
        latest = self._looked_at + (LOOK_S if awake else IDLE_S)
        return min(max(self._due, self._answered_at + LOOK_S), latest)

    def end(self) -> None:
        """End every wait, now and later."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _set_hears(self, *, hears: bool) -> None:
        with self._changed:
            self._hears = hears
            self._changed.notify_all()

    @contextlib.contextmanager
    def listening(self, engine: Any, channel: str, send: Callable[[], None]) -> Iterator[None]:
        """Pass on the database's messages until the end of the block.

        Args:
            engine: SQLAlchemy's engine of a Postgres database.
            channel: Name of the channel, in Postgres's sense.
            send: Sends a message on it, over another connection. Only when that one arrives is it known
                that messages do: a connection pooler may keep them back.
        """

        def listen() -> None:
            while not self._ended:
                with contextlib.suppress(Exception):  # whatever fails, the worker looks as often as it may
                    self._listen(engine, channel, send)
                self._set_hears(hears=False)
                with self._changed:
                    self._changed.wait_for(lambda: self._ended, _AGAIN_S)

        thread = threading.Thread(target=listen, name="queue-listen", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.end()
            thread.join()

    def _listen(self, engine: Any, channel: str, send: Callable[[], None]) -> None:
        connection = engine.raw_connection()
        try:
            driver = connection.driver_connection
            driver.autocommit = True
            driver.execute(f'LISTEN "{channel}"')
            send()
            while not self._ended:
                for _ in driver.notifies(timeout=_CHECK_S):
                    self._set_hears(hears=True)
                    self.tell()
        finally:
            connection.invalidate()  # nobody else shall get a connection that listens
