"""Idempotency keys: find the event with a given key without reading the history.

The table is an SQLite cache, beside the other caches. It records the position in the log up to which it was
filled. It is used only if the log still holds that position, and is caught up from there. Each event found is
read from the log and checked. If the cache is deleted or damaged, it is rebuilt by reading the log once.
"""

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from agentx.storage.events.types import Event
from agentx.storage.files import nofollow
from agentx.storage.log.history import History, Position, told_already

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, seq INTEGER, hash TEXT, segment INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS filled (id INTEGER PRIMARY KEY, seq INTEGER, hash TEXT, segment INTEGER, \
offset INTEGER);
"""
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""Errors from a damaged file; names in its schema may not be valid text."""

_BATCH = 10_000
_WORTH_NOTING = 1_000
"""After this many events without a key, the position is saved anyway."""


class Keys:
    """The keys of one workspace. Every method runs under the workspace's lock.

    Args:
        path: The cache's file; its folder is created if missing.
        history: The log.
    """

    def __init__(self, path: Path, history: History) -> None:
        self._path = path
        self._history = history
        self._name = str(path)
        self._table: sqlite3.Connection | None = None
        self._filled = Position()
        self._noted = 0

    def find(self, keys: Iterable[str]) -> dict[str, Event]:
        """Return the events with some keys, by key; a key without an event is left out.

        The cost is that of the events appended since the last call, and one look-up for each key.
        """
        self.catch_up()
        wanted = list(dict.fromkeys(keys))
        found = self._look_up(wanted)
        if found is None:
            self._forget()
            self.catch_up()
            found = self._look_up(wanted) or {}
        return found

    def catch_up(self) -> None:
        """Process what was appended since the last call; a good time is when a snapshot is saved."""
        try:
            self._fill()
        except _UNREADABLE:
            self._forget()
            try:
                self._fill()
            except _UNREADABLE:  # a full disk, a folder that cannot be written
                self._forget()
                self._name = ":memory:"
                self._fill()

    def close(self) -> None:
        """Close the file."""
        if self._table is not None:
            self._table.close()
            self._table = None

    def _fill(self) -> None:
        if self._table is None:
            self._table = self._open()
        if not self._history.holds(self._filled):
            self._table.executescript("BEGIN; DELETE FROM keys; DELETE FROM filled; COMMIT")
            self._filled, self._noted = Position(), 0
        rows: list[tuple[str, int, str, int]] = []
        last: Event | None = None
        reading = self._history.read(self._filled, told_already)
        for last in reading:
            if last.key:
                rows.append((last.key, last.seq, last.hash, reading.segment))
                if len(rows) >= _BATCH:
                    self._note(self._table, rows, last, reading.segment)
                    rows.clear()
        if last is not None:
            self._note(self._table, rows, last, reading.segment)

    def _note(
        self, table: sqlite3.Connection, rows: list[tuple[str, int, str, int]], last: Event, segment: int
    ) -> None:
        filled = self._history.locate(last.seq, last.hash, near=segment)
        if filled is None:
            return  # the log was set back just now; the next call starts from the same place
        self._filled = filled
        if rows or filled.seq - self._noted >= _WORTH_NOTING:
            table.execute("BEGIN IMMEDIATE")
            table.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?)", rows)
            place = (filled.seq, filled.hash, filled.segment, filled.offset)
            table.execute("INSERT OR REPLACE INTO filled VALUES (1, ?, ?, ?, ?)", place)
            table.execute("COMMIT")
            self._noted = filled.seq

    def _look_up(self, keys: Iterable[str]) -> dict[str, Event] | None:
        """Return the events by key; ``None`` if the table is wrong."""
        found: dict[str, Event] = {}
        if self._table is None:
            return None
        for key in keys:
            try:
                row = self._table.execute(
                    "SELECT seq, hash, segment FROM keys WHERE key = ?", (key,)
                ).fetchone()
                noted = _position(*row) if row else None
            except _UNREADABLE:
                return None
            if noted is not None:
                place = self._history.locate(noted.seq, noted.hash, near=noted.segment)
                event = self._history.event_at(place) if place else None
                if event is None or event.key != key:
                    return None
                found[key] = event
        return found

    def _open(self) -> sqlite3.Connection:
        with contextlib.suppress(OSError):
            nofollow.make_directory(self._path.parent, parents=True)
        for end in ("", "-wal", "-shm", "-journal"):  # SQLite opens by path
            nofollow.require_plain(f"{self._path}{end}")
        table = sqlite3.connect(self._name, isolation_level=None, check_same_thread=False)
        try:
            table.executescript(_SCHEMA)
            filled = table.execute("SELECT seq, hash, segment, offset FROM filled").fetchone()
            self._filled = _position(*filled) if filled else Position()
        except BaseException:
            table.close()
            raise
        self._noted = self._filled.seq
        return table

    def _forget(self) -> None:
        self.close()
        for end in ("-wal", "-shm", ""):
            with contextlib.suppress(OSError):
                nofollow.remove(Path(f"{self._path}{end}"), missing_ok=True)


def _position(seq: Any, own_hash: Any, segment: Any, offset: Any = 0) -> Position:
    """Convert a row to a position in the log; a damaged file may hold anything.

    Raises:
        DatabaseError: It is not a valid position.
    """
    row = {"seq": seq, "hash": own_hash, "segment": segment, "offset": offset}
    try:
        return msgspec.convert(row, Position)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row holds no place in the log: {error}") from error
