"""The LanceDB table.

Only this module imports lancedb, and only when a table is first needed (1.5 s).

One process at a time may write (:mod:`agentx.storage.index.lance` holds the lock); any number may read
meanwhile. LanceDB keeps a version for every write and a fragment for every batch; :meth:`Table.compact`
bounds both.

A row is stored in one packed column, beside the few columns used for filtering: reading 180 rows of 15
columns takes twice as long as finding them. From :data:`VECTORS_FOR_INDEX` vectors on, the vectors have an
IVF_RQ index. Rows that it lacks are scanned, so new rows are found. :meth:`Table.compact` adds them a
thousand at a time, because adding costs seconds even for one row, and rebuilds the index when it has fallen
into many parts. A process that is killed meanwhile leaves a table without that index, which is correct but
slower, and the next process builds it again.
"""

import os
import secrets
import threading
import time
import warnings
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.index import filters
from agentx.storage.index.manifest import Manifest
from agentx.storage.index.memory_index import IndexRow
from agentx.storage.index.pending_writes import Overlay
from agentx.storage.index.port import OPEN, Chunk, Vector
from agentx.storage.index.terms import TermCounts

MAX_FRAGMENTS = 8
MAX_VERSIONS = 16
MAX_UNINDEXED = 1_000
"""Rows that the indexes may lack, or 1 % of the table if that is more.

They are found all the same, at a cost of 6 ms a search for each thousand.
"""
VECTORS_FOR_INDEX = 50_000
"""Fewer vectors are scanned, and the result is exact."""
MAX_PARTS = 8
"""Each merge adds a part to the vector index, and a fragment that cannot be merged with the others."""
BITS = 4
"""Bits per dimension in the vector index. With 1, the number of candidates that must be read for their true
distance makes that reading take longer than the search; with 8, the search itself does.
"""
PARTITION_ROWS = 2_000
PROBED = 0.4
"""Share of the partitions that is searched, nearest centres first. Measured as recall of the ten nearest of
8,000 real passages: a fifth of the partitions reaches 0.97, two fifths 0.99.
"""
PRUNE_AFTER = timedelta(seconds=30)
"""Versions of the table older than this are deleted; no search takes that long."""
PUBLISHED_FRAGMENTS = 16
"""Fragments of a published table from which they are merged: each commit adds one."""
KEEP_PUBLISHED = timedelta(minutes=10)
"""Versions of a published table older than this are deleted; no search takes that long."""
_NAMES_PER_PAGE = 1_000
_TEXT_INDEX = "tokens_idx"
_VECTOR_INDEX = "vector_idx"
_CACHE_BYTES = 16 << 20
_VALUES_PER_QUERY = 500
VENDOR_ERRORS = (OSError, RuntimeError, ValueError)
"""Exceptions that lancedb and pyarrow raise; they have no common base class."""
_FILTERED = ("id", "kind", "file_kind", "path", "source", "actor", "at", "seq", "to_seq")
_LOOKED_UP = ("id", "path", "at", "to_seq")
_OF_FEW_VALUES = ("kind", "file_kind", "source", "actor")
_NUMBERS = frozenset({"seq", "to_seq"})
_STANDS = f"to_seq = {OPEN}"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(IndexRow)


class Database:
    """The directory of tables; nothing else calls lancedb."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: Any = None
        self._asked: Any = None
        self._tables: dict[str, Table] = {}
        self._counts: dict[str, TermCounts] = {}
        self._opening = threading.Lock()

    def table(self, name: str) -> "Table":
        """Return the table of this name, which must exist."""
        with self._opening:
            table = self._tables.get(name)
            if table is None:
                handle, asked = self._connect().open_table(name), _wait(self._asked.open_table(name))
                table = Table(handle, asked, self._counts_of(name), self._path / "lance" / f"{name}.lance")
                self._tables = {name: table}
            return table

    def counts(self, name: str) -> TermCounts:
        """Return the term counts of a table, without opening it."""
        with self._opening:
            return self._counts_of(name)

    def _counts_of(self, name: str) -> TermCounts:
        counts = self._counts.get(name)
        if counts is None:
            counts = TermCounts(self._terms(name))
            self._counts = {name: counts}
        return counts

    def reopen(self) -> None:
        """Forget open tables, so that the next query opens them again."""
        with self._opening:
            self._tables, self._counts = {}, {}

    def write(self, manifest: Manifest, overlay: Overlay) -> Manifest:
        """Write the waiting rows to their table, which is created if missing.

        Returns:
            The new manifest of the index.
        """
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
        flushes = manifest.flushes + 1
        return Manifest(table=name, dimensions=dimensions, meta=meta, flushes=flushes, made=manifest.made)

    def compact(self, name: str, *, slack: int = 1) -> None:
        """Merge fragments, index new rows and prune versions, if there are too many of them."""
        if name and name in self._tables:
            self.table(name).compact(slack)

    def index_vectors(self, name: str) -> None:
        """Build the vector index, if there are enough vectors to justify it."""
        if name and name in self._tables:
            self.table(name).index_vectors()

    def drop_others(self, name: str) -> None:
        """Delete all tables but one: cleared tables, and those whose creation was interrupted."""
        self.reopen()
        for other in nofollow.listed(self._path / "lance", suffix=".lance"):
            if other.stem != name:
                nofollow.remove_tree(other, ignore_errors=True)
                nofollow.remove(self._terms(other.stem), missing_ok=True)

    def _create(self) -> str:
        from lancedb.index import Bitmap, BTree  # noqa: PLC0415 - 1.5 s

        name = f"chunks_{secrets.token_hex(4)}"
        TermCounts.create(self._terms(name))
        handle = self._connect().create_table(name, schema=_schema(0))
        _index_text(handle)
        for column in _LOOKED_UP:
            handle.create_index(column, config=BTree())
        for column in _OF_FEW_VALUES:
            handle.create_index(column, config=Bitmap())
        return name

    def _connect(self) -> Any:
        # LanceDB opens files by path, so check for links here.
        nofollow.require_plain_tree(self._path)
        if self._connection is None:
            _quiet()
            import lancedb  # noqa: PLC0415 - 1.5 s

            place, session = self._path / "lance", lancedb.Session(_CACHE_BYTES, _CACHE_BYTES)
            # Otherwise rows written by other processes are not seen.
            always = timedelta(0)
            self._asked = _wait(
                lancedb.connect_async(place, read_consistency_interval=always, session=session)
            )
            self._connection = lancedb.connect(place, read_consistency_interval=always, session=session)
        return self._connection

    def _terms(self, name: str) -> Path:
        return self._path / f"{name}.terms"


class TableReader:
    """The queries of a LanceDB table.

    Args:
        handle: The table.
        asked: The table, for searching: a query through the other handle looks up the schema seven times.
    """

    def __init__(self, handle: Any, asked: Any) -> None:
        self._handle = handle
        self._asked = asked

    def match(self, words: str, condition: str, limit: int) -> list[IndexRow]:
        """Return rows that contain one of these terms, best first by LanceDB's own ranking."""
        from lancedb import query as vendor  # noqa: PLC0415

        match: Any = vendor.MatchQuery  # its defaults are not visible to a type checker
        query = self._asked.query().nearest_to_text(match(words, "tokens"))
        return _rows(_wait(_found(query, condition, ["row", "_score"], limit)))

    def nearest(self, vector: Vector, size: int, condition: str, limit: int) -> list[IndexRow]:
        """Return rows with the nearest vectors, as far as the vector index finds them.

        Args:
            vector: The query.
            size: Number of rows of the table.
            condition: SQL condition on the rows.
            limit: Maximum number of rows.
        """
        probes = max(1, round(PROBED * size / PARTITION_ROWS))
        query = (
            self._asked.query().nearest_to(vector).column("vector").distance_type("cosine").nprobes(probes)
        )
        return _rows(_wait(_found(query, condition, ["row", "vector", "_distance"], limit)))

    def oldest(self, limit: int, *, embedded: bool | None) -> list[IndexRow]:
        """Return the oldest open rows, by the event that brought them.

        Args:
            limit: Maximum number of rows.
            embedded: Whether they have a vector; ``None`` for both.
        """
        condition = _STANDS
        if embedded is not None:
            condition += f" AND embedded = {str(embedded).lower()}"
        # Sorted here: with an index on to_seq LanceDB's own ordering fails (its "TakeExec requires" a column
        # of its own).
        found = self._handle.search().where(condition).select(["seq", "id"]).limit(None).to_arrow()
        first = found.sort_by([("seq", "ascending"), ("id", "ascending")]).slice(0, limit)
        rows = self.having("id", first.column("id").to_pylist())
        return sorted(rows, key=lambda row: (row.chunk.seq, row.chunk.id))

    def having(self, column: str, values: Sequence[str], condition: str = "true") -> list[IndexRow]:
        """Return complete rows, with terms and vectors, whose column has one of these values."""
        if not values:
            return []
        columns = ["row", *(["vector"] if self._has_vectors() else [])]
        rows: list[IndexRow] = []
        for start in range(0, len(values), _VALUES_PER_QUERY):
            some = filters.any_of(column, values[start : start + _VALUES_PER_QUERY])
            query = self._handle.search().where(f"{condition} AND {some}")
            rows += _rows(query.select(columns).limit(None).to_arrow())
        return rows

    def every(self) -> Iterator[IndexRow]:
        """Yield all rows, with terms and vectors."""
        import pyarrow as pa  # noqa: PLC0415

        columns = ["row", *(["vector"] if self._has_vectors() else [])]
        for batch in self._handle.search().select(columns).limit(None).to_batches():
            yield from _rows(pa.Table.from_batches([batch]))

    def count(self, condition: str, without: Sequence[str]) -> int:
        """Return how many rows meet a condition, not counting those with some ids."""
        total: int = self._handle.count_rows(condition)
        for start in range(0, len(without), _VALUES_PER_QUERY):
            some = filters.any_of("id", without[start : start + _VALUES_PER_QUERY])
            total -= self._handle.count_rows(f"{condition} AND {some}")
        return total

    def _has_vectors(self) -> bool:
        return "vector" in self._handle.schema.names


class Table(TableReader):
    """A table of this machine and its term counts.

    Args:
        handle: The table, for writing.
        asked: The table, for searching.
        counts: Term frequencies of its open rows.
        path: Its directory.
    """

    def __init__(self, handle: Any, asked: Any, counts: TermCounts, path: Path) -> None:
        super().__init__(handle, asked)
        self._path = path
        self.counts = counts
        self._looked = (-1, 0.0)

    def upsert(self, rows: list[IndexRow], dimensions: int) -> None:
        """Add rows, replacing those of the same id, and count their terms."""
        import pyarrow as pa  # noqa: PLC0415 - 0.2 s

        if dimensions and not self._has_vectors():
            self._handle.add_columns(pa.field("vector", pa.list_(pa.float32(), dimensions)))
        old = self.having("id", [row.chunk.id for row in rows])
        data = _arrow(rows, dimensions)
        # A missing vector is null and stays null; by default lancedb takes it for one of the wrong size.
        if old:
            merge = self._handle.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.execute(data, on_bad_vectors="null")
        else:
            self._handle.add(data, on_bad_vectors="null")
        self.counts.add(_open_tokens(old), -1)
        self.counts.add(_open_tokens(rows))
        # They differ if a flush was killed halfway.
        if self.counts.totals()[0] != self._handle.count_rows(_STANDS):
            self.counts.reset()
            for batch in self._handle.search().where(_STANDS).select(["tokens"]).limit(None).to_batches():
                self.counts.add(batch.column("tokens").to_pylist())

    def drop_vectors(self) -> None:
        """Drop the vector column."""
        if self._has_vectors():
            self._handle.drop_columns(["vector", "embedded"])
            self._handle.add_columns({"embedded": "false"})

    def compact(self, slack: int) -> None:
        """Merge fragments, index new rows and prune, where ``slack`` times a limit is exceeded."""
        version, now = self._handle.version, time.monotonic()
        if version == self._looked[0] and now - self._looked[1] < PRUNE_AFTER.total_seconds():
            return
        fragments = self._handle.stats()["fragment_stats"]["num_fragments"]
        late = self._handle.index_stats(_TEXT_INDEX).num_unindexed_rows
        parts = self._parts()
        most = MAX_FRAGMENTS * slack + (4 * MAX_PARTS if parts else 0)
        over = fragments > most or late > slack * max(MAX_UNINDEXED, self._handle.count_rows() // 100)
        moment = datetime.now(UTC) - PRUNE_AFTER
        versions = self._handle.list_versions() if not over else []
        old = sum(version["timestamp"].astimezone(UTC) < moment for version in versions)
        most_old = 0 if self._is_mostly_old() else MAX_VERSIONS * slack
        if over or old > most_old:
            if parts and (fragments > most or parts > MAX_PARTS):
                self._handle.drop_index(_VECTOR_INDEX)
            self._handle.optimize(cleanup_older_than=PRUNE_AFTER)
            version = self._handle.version
        if slack == 1:
            self._looked = version, now

    def _is_mostly_old(self) -> bool:
        """Return whether older versions take more than half as much of the disk as the present one."""
        files = nofollow.listed(self._path / "data", suffix=".lance")
        taken = sum(nofollow.status(file).st_size for file in files)
        live: int = self._handle.stats()["total_bytes"]
        return taken > 1.5 * live

    def index_vectors(self) -> None:
        """Build the vector index, unless it exists or there are few vectors."""
        from lancedb.index import IvfRq  # noqa: PLC0415 - 1.5 s

        if not self._has_vectors() or self._parts():
            return
        count = self._handle.count_rows("embedded")
        if count >= VECTORS_FOR_INDEX:
            partitions = max(1, count // PARTITION_ROWS)
            how = IvfRq(distance_type="cosine", num_bits=BITS, num_partitions=partitions)
            self._handle.create_index("vector", config=how, name=_VECTOR_INDEX)

    def _parts(self) -> int:
        """Return the number of parts of the vector index; 0 for none."""
        known = self._handle.index_stats(_VECTOR_INDEX)
        return 0 if known is None else known.num_indices or 1


class PublishedTables:
    """Tables in a directory or an object store that several machines share.

    A table is changed by :meth:`PublishedTable.commit` alone, which is atomic, and only if nobody else did so
    since it was opened. One row, the mark, has an empty id; no search finds it.

    Args:
        url: A directory, or ``s3://bucket/prefix``.
        options: Options of the object store, with its credentials.

    Raises:
        OSError, RuntimeError, ValueError: As every method: the store cannot be reached, or refuses.
    """

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        _quiet()
        import lancedb  # noqa: PLC0415 - 1.5 s

        given = dict(options) if "://" in url else None
        self._connection: Any = lancedb.connect(url, storage_options=given)
        self._asked = _wait(lancedb.connect_async(url, storage_options=given))

    def names(self) -> list[str]:
        """Return the names of all tables, sorted."""
        found: list[str] = []
        token = None
        while True:
            page = self._connection.list_tables(page_token=token, limit=_NAMES_PER_PAGE)
            found += page.tables
            token = page.page_token
            if not token:
                return sorted(found)

    def open(self, name: str) -> "PublishedTable | None":
        """Return a table as it is now; ``None`` if there is none."""
        try:
            handle = self._connection.open_table(name)
        except ValueError as error:
            if "not found" in str(error):
                return None
            raise
        return PublishedTable(handle, _wait(self._asked.open_table(name, version=handle.version)))

    def create(self, name: str, mark: bytes) -> None:
        """Create an empty table, unless another machine does so now."""
        handle = self._connection.create_table(name, schema=_schema(0), exist_ok=True)
        if not handle.count_rows():
            handle.add(_marked([], 0, mark, ""))

    def remove(self, name: str) -> None:
        """Delete a table with all its files; only for one that is damaged."""
        self._connection.drop_table(name, ignore_missing=True)


class PublishedByAnother(AgentXError):
    """Another machine committed to the table since it was opened; nothing was changed."""


class PublishedTable(TableReader):
    """A published table in one version."""

    def mark(self) -> tuple[bytes, str]:
        """Return the mark, and the token of the commit that wrote it; both empty if there is none."""
        query = self._handle.search().where("id = ''").select(["row", "path"]).limit(1)
        for row in query.to_arrow().to_pylist():
            return row["row"], row["path"]
        return b"", ""

    def commit(
        self, rows: list[IndexRow], dimensions: int, mark: bytes, token: str, expected: str, *, replace: bool
    ) -> None:
        """Add rows, replacing those of the same id, and the mark, in one version of the table.

        LanceDB repeats a merge that meets another commit on the newest version. So the condition is part of
        the merge: where the mark has another token, it divides by zero.

        Args:
            rows: The rows.
            dimensions: Length of their vectors; 0 if none has one.
            mark: The new mark.
            token: A name of this commit.
            expected: Token of the mark that the rows were made for.
            replace: Delete all other rows.

        Raises:
            PublishedByAnother: The mark has another token now; nothing was changed.
        """
        import pyarrow as pa  # noqa: PLC0415 - 0.2 s

        if replace and self._has_vectors() and self._dimensions() != dimensions:
            self._handle.drop_columns(["vector"])
        if dimensions and not self._has_vectors():
            self._handle.add_columns(pa.field("vector", pa.list_(pa.float32(), dimensions)))
        kept = dimensions or (self._dimensions() if self._has_vectors() else 0)
        same = f"1 / CAST((target.id <> '' OR target.path = {filters.literal(expected)}) AS BIGINT) = 1"
        merge = self._handle.merge_insert("id").when_matched_update_all(where=same)
        merge = merge.when_not_matched_insert_all()
        if replace:
            merge = merge.when_not_matched_by_source_delete()
        try:
            merge.execute(_marked(rows, kept, mark, token), on_bad_vectors="null")
        except VENDOR_ERRORS as error:
            if "Divide by zero" in str(error):
                raise PublishedByAnother(
                    "Another machine published this workspace meanwhile; nothing was changed."
                ) from error
            raise

    def tidy(self, *, purge: bool = False) -> None:
        """Build the text index if it is missing, and merge and prune if there are many parts.

        Args:
            purge: Leave no file that has a row which the newest version lacks.
        """
        known = {one.name for one in self._handle.list_indices()}
        if purge or _TEXT_INDEX not in known:
            _index_text(self._handle)
        if purge:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it says that readers must ask again: they do
                self._handle.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
            return
        fragments = self._handle.stats()["fragment_stats"]["num_fragments"]
        late = self._handle.index_stats(_TEXT_INDEX).num_unindexed_rows
        if fragments > PUBLISHED_FRAGMENTS or late > MAX_UNINDEXED:
            self._handle.optimize(cleanup_older_than=KEEP_PUBLISHED)

    def vectors(self) -> Iterator[IndexRow]:
        """Yield all rows that have a vector, with it."""
        import pyarrow as pa  # noqa: PLC0415

        if self._has_vectors():
            query = self._handle.search().where("embedded").select(["row", "vector"]).limit(None)
            for batch in query.to_batches():
                yield from _rows(pa.Table.from_batches([batch]))

    def _dimensions(self) -> int:
        return int(self._handle.schema.field("vector").type.list_size)


def _schema(dimensions: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    fields = [pa.field(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _FILTERED]
    fields += [
        pa.field("tokens", pa.string()),
        pa.field("row", pa.binary()),
        pa.field("embedded", pa.bool_()),
    ]
    vector = [pa.field("vector", pa.list_(pa.float32(), dimensions))] if dimensions else []
    return pa.schema([*fields, *vector])


def _arrow(rows: list[IndexRow], dimensions: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    columns: dict[str, list[Any]] = {name: [getattr(row.chunk, name) for row in rows] for name in _FILTERED}
    columns["tokens"] = [row.tokens for row in rows]
    columns["row"] = [_encoder.encode(IndexRow(row.chunk, row.tokens)) for row in rows]
    # The size differs if two processes put the first vectors at once. The embedder embeds such a row again.
    fits = [bool(row.vector) and len(row.vector) == 4 * dimensions for row in rows]
    columns["embedded"] = list(fits)
    if dimensions:
        import numpy as np  # noqa: PLC0415  (as above)

        columns["vector"] = [
            np.frombuffer(row.vector, dtype="<f4") if fit else None
            for row, fit in zip(rows, fits, strict=True)
        ]
    return pa.table(columns, schema=_schema(dimensions))


def _marked(rows: list[IndexRow], dimensions: int, mark: bytes, token: str) -> Any:
    """Return rows for a published table, with its mark."""
    import pyarrow as pa  # noqa: PLC0415

    made = _arrow(
        [*rows, IndexRow(Chunk(id="", text="", kind="memory", path=token, seq=OPEN, to_seq=0))], dimensions
    )
    at = made.schema.get_field_index("row")
    packed = [*made.column("row").to_pylist()[:-1], mark]
    return made.set_column(at, made.schema.field("row"), pa.array(packed, pa.binary()))


def _index_text(handle: Any) -> None:
    """Build the index of the terms."""
    from lancedb.index import FTS  # noqa: PLC0415 - 1.5 s

    # The text is already analysed: the indexer may only split it at spaces.
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


def _quiet() -> None:
    """Silence warnings of LanceDB that concern no user; before it is imported."""
    # Otherwise the builder of the vector index warns the user of empty partitions.
    os.environ["LANCEDB_LOG"] = "error"
    # Otherwise each program that is started by a fork warns the user, although it uses no LanceDB.
    warnings.filterwarnings("ignore", message="lancedb fork support", category=RuntimeWarning)


def _open_tokens(rows: Iterable[IndexRow]) -> Iterator[str]:
    return (row.tokens for row in rows if row.chunk.to_seq == OPEN)


def _wait(asked: Coroutine[Any, Any, Any]) -> Any:
    """Run a LanceDB query in LanceDB's event loop thread and return its result."""
    from lancedb.background_loop import LOOP  # noqa: PLC0415 - 1.5 s

    loop: Any = LOOP  # it has no types
    return loop.run(asked)


async def _found(query: Any, condition: str, columns: list[str], limit: int) -> Any:
    query = query.where(condition) if condition else query
    return await query.select(columns).limit(limit).to_arrow()


def _rows(found: Any) -> list[IndexRow]:
    found = found.combine_chunks()
    rows = [_decoder.decode(packed.as_buffer()) for packed in found.column("row")]
    if "vector" not in found.column_names:
        return rows
    import numpy as np  # noqa: PLC0415  (as above)

    vectors = found.column("vector").to_numpy(zero_copy_only=False)
    return [
        IndexRow(row.chunk, row.tokens, b"" if vector is None else np.asarray(vector, dtype="<f4").tobytes())
        for row, vector in zip(rows, vectors, strict=True)
    ]
