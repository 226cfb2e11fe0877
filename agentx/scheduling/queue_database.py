"""The databases of the queues: what SQLite needs so that DBOS works on it with every version."""

import sqlite3
import time
from typing import Any

OLDEST_SQLITE = (3, 35)
"""DBOS needs ``RETURNING``. With an older SQLite its queue fails in a thread, and nothing ever runs."""


class SqliteWithMilliseconds(sqlite3.Connection):
    """A SQLite connection on which ``unixepoch('subsec')`` works with every version of SQLite.

    From Python 3.12 on, DBOS stamps its rows with this call, also in column defaults. SQLite supports
    ``subsec`` since 3.42. Before that, the call gives NULL, which the columns refuse (Debian 12 has 3.40).
    The function is replaced whatever the version, so that there is one path to test. The connection that
    inserts evaluates a default, so a file created under one version of Python or SQLite works under the
    others.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Some builds of SQLite do not let a column default call an added function.
        self.execute("PRAGMA trusted_schema = ON")
        self.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(what: str) -> float:
    """Return the time in seconds, to the millisecond, as SQLite 3.42 and newer do."""
    if what != "subsec":
        raise ValueError(what)  # DBOS makes no other call; the statement fails
    return time.time_ns() // 1_000_000 / 1000
