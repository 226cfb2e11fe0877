"""Idempotency keys: which event has a key, found without reading the history.

The table is a cache in SQLite beside the other caches. It remembers the place in the log up to which it was filled, is
used only where the log still holds that place, and is caught up from there. What it finds is read from the log and
checked. Deleted or damaged, it is filled again by reading the log once.
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
CREATE TABLE IF NOT EXISTS filled (id INTEGER PRIMARY KEY, seq INTEGER, hash TEXT, segment INTEGER, offset INTEGER);
"""
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file gives; the names in its schema may be no text."""

_BATCH = 10_000
_WORTH_NOTING = 1_000
"""After so many events without a key the place is written down all the same."""


class Keys:
    """The keys of one workspace. Every method runs under the workspace's lock.

    Args:
        path: The cache's file; its folder is made where it is missing.
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
        """The events that have some keys, by key; a key that no event has is left out.

        Costs what was appended since the last look, and a look-up for each key.
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
        """Take in what was appended since the last look; a good moment is when a snapshot is saved."""
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
        """Release the file."""
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
            return  # the log was set back this moment; the next look begins where this one did
        self._filled = filled
        if rows or filled.seq - self._noted >= _WORTH_NOTING:
            table.execute("BEGIN IMMEDIATE")
            table.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?)", rows)
            place = (filled.seq, filled.hash, filled.segment, filled.offset)
            table.execute("INSERT OR REPLACE INTO filled VALUES (1, ?, ?, ?, ?)", place)
            table.execute("COMMIT")
            self._noted = filled.seq

    def _look_up(self, keys: Iterable[str]) -> dict[str, Event] | None:
        """The events by key; ``None`` where the table is wrong."""
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
    """What a row says of a place in the log; a damaged file may hold anything.

    Raises:
        DatabaseError: It says nothing of the kind.
    """
    row = {"seq": seq, "hash": own_hash, "segment": segment, "offset": offset}
    try:
        return msgspec.convert(row, Position)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a row holds no place in the log: {error}") from error
