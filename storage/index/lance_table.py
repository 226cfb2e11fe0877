"""The table in LanceDB; the only module that imports lancedb, and it does so when a table is first needed (1.5 s).

One process at a time may write (:mod:`agentx.storage.index.lance` holds the lock); any number may read meanwhile.
LanceDB keeps a version for every write and a fragment for every batch: both stay bounded by :meth:`Table.compact`.
"""

import secrets
import shutil
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from agentx.storage.index import filters
from agentx.storage.index.manifest import Manifest
from agentx.storage.index.memory import Row
from agentx.storage.index.port import Chunk, Vector
from agentx.storage.index.terms import TermCounts
from agentx.storage.index.waiting import Overlay

MAX_FRAGMENTS = 8
MAX_VERSIONS = 16
MAX_UNINDEXED = 1_000
"""Rows that the text index may lack: they are found all the same, at 6 ms a search for each thousand."""
PRUNE_AFTER = timedelta(seconds=30)
"""Versions of the table older than this are deleted; no search takes as long."""
_TEXT_INDEX = "tokens_idx"
_CACHE_BYTES = 16 << 20
_VALUES_PER_QUERY = 500
VENDOR_ERRORS = (OSError, RuntimeError, ValueError)
"""What calls of lancedb and pyarrow raise: they have no base of their own."""
_FIELDS = list(Chunk.__struct_fields__)
_NUMBERS = frozenset({"start_line", "end_line", "seq", "to_seq"})


class Database:
    """The directory of tables; the only place that calls lancedb."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: Any = None
        self._tables: dict[str, Table] = {}
        self._opening = threading.Lock()

    def table(self, name: str) -> "Table":
        """The table of this name, which must exist."""
        with self._opening:
            table = self._tables.get(name)
            if table is None:
                handle = self._connect().open_table(name)
                table = Table(handle, TermCounts(self._terms(name)))
                self._tables = {name: table}
            return table

    def reopen(self) -> None:
        """Forget open tables, so that the next question opens them anew."""
        with self._opening:
            self._tables = {}

    def write(self, manifest: Manifest, overlay: Overlay) -> Manifest:
        """Bring what waits to its table, which is made where there is none; returns what the index then is."""
        rows = list(overlay.rows.by_id.values())
        name = "" if overlay.cleared else manifest.table
        dimensions = 0 if overlay.forgotten else manifest.dimensions
        if name and overlay.forgotten:
            self.table(name).drop_vectors()
        dimensions = dimensions or next((len(row.vector) // 4 for row in rows if row.vector), 0)
        if rows:
            name = name or self._create()
            self.table(name).upsert(rows, dimensions)
        meta = overlay.meta if overlay.cleared else manifest.meta | overlay.meta
        return Manifest(table=name, dimensions=dimensions, meta=meta)

    def compact(self, name: str, *, slack: int = 1) -> None:
        """Merge fragments, bring new rows to the text index and prune versions, where there are too many of them."""
        if name and name in self._tables:
            self.table(name).compact(slack)

    def drop_others(self, name: str) -> None:
        """Delete all tables but one: cleared ones, and those whose making was cut off."""
        self.reopen()
        for other in (self._path / "lance").glob("*.lance"):
            if other.stem != name:
                shutil.rmtree(other, ignore_errors=True)
                self._terms(other.stem).unlink(missing_ok=True)

    def _create(self) -> str:
        from lancedb.index import FTS  # noqa: PLC0415 - 1.5 s

        name = f"chunks_{secrets.token_hex(4)}"
        TermCounts.create(self._terms(name))
        handle = self._connect().create_table(name, schema=_schema(0))
        # The text is analysed already: nothing but the spaces between its terms may be read into it.
        handle.create_index(
            "tokens",
            name=_TEXT_INDEX,
            config=FTS(
                base_tokenizer="whitespace",
                max_token_length=None,
                lower_case=False,
                stem=False,
                remove_stop_words=False,
                ascii_folding=False,
            ),
        )
        return name

    def _connect(self) -> Any:
        if self._connection is None:
            import lancedb  # noqa: PLC0415 - 1.5 s

            self._connection = lancedb.connect(
                self._path / "lance",
                read_consistency_interval=timedelta(0),  # or rows of other processes are not seen
                session=lancedb.Session(_CACHE_BYTES, _CACHE_BYTES),
            )
        return self._connection

    def _terms(self, name: str) -> Path:
        return self._path / f"{name}.terms"


class Table:
    """One table of LanceDB and the counts of its terms."""

    def __init__(self, handle: Any, counts: TermCounts) -> None:
        self._handle = handle
        self.counts = counts

    def match(self, words: str, condition: str, limit: int) -> list[Row]:
        """Rows that hold one of these terms, the best by LanceDB's own ranking."""
        from lancedb import query as vendor  # noqa: PLC0415

        match: Any = vendor.MatchQuery  # its defaults are not visible to a type checker
        query = self._handle.search(match(words, "tokens"), query_type="fts")
        return _rows(query.where(condition).select([*_FIELDS, "tokens", "_score"]).limit(limit))

    def nearest(self, vector: Vector, condition: str, limit: int) -> list[Row]:
        """Rows with the nearest vectors."""
        query = self._handle.search(vector, vector_column_name="vector").distance_type("cosine")
        return _rows(query.where(condition).select([*_FIELDS, "vector", "_distance"]).limit(limit))

    def oldest(self, condition: str, limit: int) -> list[Row]:
        """The first rows by the event that brought them."""
        from lancedb.query import ColumnOrdering  # noqa: PLC0415

        order = [ColumnOrdering(column_name=name, ascending=True) for name in ("seq", "id")]
        return _rows(self._handle.search().where(condition).select(_FIELDS).order_by(order).limit(limit))

    def having(self, column: str, values: Sequence[str], condition: str = "true") -> list[Row]:
        """Whole rows, with terms and vectors, whose column has one of these values."""
        columns = [*_FIELDS, "tokens", *(["vector"] if self._has_vectors() else [])]
        rows: list[Row] = []
        for start in range(0, len(values), _VALUES_PER_QUERY):
            some = filters.any_of(column, values[start : start + _VALUES_PER_QUERY])
            rows += _rows(self._handle.search().where(f"{condition} AND {some}").select(columns).limit(None))
        return rows

    def count(self, condition: str, without: Sequence[str]) -> int:
        """How many rows meet a condition, those of some ids left out."""
        total: int = self._handle.count_rows(condition)
        for start in range(0, len(without), _VALUES_PER_QUERY):
            some = filters.any_of("id", without[start : start + _VALUES_PER_QUERY])
            total -= self._handle.count_rows(f"{condition} AND {some}")
        return total

    def upsert(self, rows: list[Row], dimensions: int) -> None:
        """Add rows, replacing those of the same id, and count their terms."""
        import pyarrow as pa  # noqa: PLC0415 - 0.2 s

        if dimensions and not self._has_vectors():
            self._handle.add_columns(pa.field("vector", pa.list_(pa.float32(), dimensions)))
        old = self.having("id", [row.chunk.id for row in rows])
        data = _arrow(rows, dimensions)
        # A missing vector is null, and stays so; by default lancedb takes it for a fault of its size.
        if old:
            merge = self._handle.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(data, on_bad_vectors="null")
        else:
            self._handle.add(data, on_bad_vectors="null")
        self.counts.add((row.tokens for row in old), -1)
        self.counts.add(row.tokens for row in rows)
        if self.counts.totals()[0] != self._handle.count_rows():  # a flush was killed in the middle
            self._recount()

    def drop_vectors(self) -> None:
        """Take the column of vectors away."""
        if self._has_vectors():
            self._handle.drop_columns(["vector"])

    def compact(self, slack: int) -> None:
        """Merge fragments, bring new rows to the text index and prune, where ``slack`` times the limits are passed."""
        fragments = self._handle.stats()["fragment_stats"]["num_fragments"]
        late = self._handle.index_stats(_TEXT_INDEX).num_unindexed_rows
        over = fragments > MAX_FRAGMENTS * slack or late > MAX_UNINDEXED * slack
        if over or self._old_versions() > MAX_VERSIONS * slack:
            self._handle.optimize(cleanup_older_than=PRUNE_AFTER)

    def _old_versions(self) -> int:
        moment = datetime.now(UTC) - PRUNE_AFTER
        return sum(version["timestamp"].astimezone(UTC) < moment for version in self._handle.list_versions())

    def _recount(self) -> None:
        self.counts.reset()
        for batch in self._handle.search().select(["tokens"]).limit(None).to_batches():
            self.counts.add(batch.column("tokens").to_pylist())

    def _has_vectors(self) -> bool:
        return "vector" in self._handle.schema.names


def _schema(dimensions: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    fields = [pa.field(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _FIELDS]
    vector = [pa.field("vector", pa.list_(pa.float32(), dimensions))] if dimensions else []
    return pa.schema([*fields, pa.field("tokens", pa.string()), *vector])


def _arrow(rows: list[Row], dimensions: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    columns: dict[str, list[Any]] = {name: [getattr(row.chunk, name) for row in rows] for name in _FIELDS}
    columns["tokens"] = [row.tokens for row in rows]
    if dimensions:
        columns["vector"] = [_floats(row.vector, dimensions) for row in rows]
    return pa.table(columns, schema=_schema(dimensions))


def _floats(packed: bytes, dimensions: int) -> Any:
    # Of another size: two processes put the first vectors at once. This one is made again by the embedder.
    return np.frombuffer(packed, dtype="<f4") if len(packed) == 4 * dimensions else None


def _rows(query: Any) -> list[Row]:
    rows = []
    for found in query.to_arrow().to_pylist():
        vector = found.get("vector")
        rows.append(
            Row(
                Chunk(**{name: found[name] for name in _FIELDS}),
                found.get("tokens") or "",
                np.asarray(vector, dtype="<f4").tobytes() if vector is not None else b"",
            )
        )
    return rows
