"""A floor: one table of SQLite, and its full-text search."""

import re
import sqlite3

from tests.compare.driver import Driver, Message


class Sqlite(Driver):
    name = "SQLite"
    kind = "floor: one table, and an FTS5 index"
    durability = "`journal_mode=WAL`, `synchronous=FULL`"

    def start(self) -> None:
        self._db = sqlite3.connect(self.folder / "plain.db", isolation_level=None, timeout=30)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, role, tool, text)")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='messages', content_rowid='id')"
        )

    def append(self, message: Message) -> None:
        self.append_all([message])

    def append_all(self, messages) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for one in messages:
            row = self._db.execute(
                "INSERT INTO messages (role, tool, text) VALUES (?, ?, ?)", (one.role, one.tool, one.text)
            )
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row.lastrowid, one.text))
        self._db.execute("COMMIT")

    def read(self, last: int | None = None) -> list[str]:
        rows = self._db.execute("SELECT text FROM messages ORDER BY id DESC LIMIT ?", (last or -1,))
        return [text for (text,) in rows][::-1]

    def search(self, query: str, k: int) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in set(re.findall(r"\w+", query)))
        asked = (
            "SELECT m.text FROM words JOIN messages m ON m.id = words.rowid WHERE words MATCH ? "
            "ORDER BY rank LIMIT ?"
        )
        return [text for (text,) in self._db.execute(asked, (words, k))]

    def check(self) -> str:
        try:
            with sqlite3.connect(self.folder / "plain.db") as db:
                found = [row[0] for row in db.execute("PRAGMA integrity_check")]
        except sqlite3.DatabaseError as error:
            return str(error)
        return "" if found == ["ok"] else found[0]

    def digest(self) -> bytes:
        return repr(list(self._db.execute("SELECT * FROM messages ORDER BY id"))).encode()

    def close(self) -> None:
        self._db.close()


DRIVER = Sqlite
