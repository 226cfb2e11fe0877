"""The memory index on LanceDB: a table written in batches, and a waiting file that is searched with it.

Invariant: a search reads the waiting file first and the table afterwards, and a flush writes rows to the
table before it deletes them from the waiting file. So a chunk is found by every process from the moment it
was put. Rows in both places are the same rows, and the waiting one hides the other. If a flush is killed, the
next one repeats it: every step is idempotent.

LanceDB chooses candidates (by its BM25 index or its vector scan). They are scored here with the formula of
the reference (:mod:`agentx.storage.index.bm25`), so a rank depends neither on the state of LanceDB's index
nor on whether a row is still waiting. A file lock ensures that one process at a time writes the table.
The table is not synced to disk: after a power cut it may be damaged, which is reported, and it is filled
again from the history. A part is synced before ``index.json`` names it.

A directory contains ``index.json`` (format, table name, dimensions, small values, names of the parts),
``waiting-*.jsonl``, ``<table>.terms``, ``lance/``, and parts: files with the table's rows that are searched
instead (:mod:`agentx.storage.index.part`). LanceDB is imported to write the table, and to search it where
there are no parts; an index whose chunks are all still waiting, as in a small task, is searched without
either.
"""

import functools
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.index import bm25, filters
from agentx.storage.index.analysis import query_terms
from agentx.storage.index.lance_table import VENDOR_ERRORS, Database
from agentx.storage.index.manifest import (
    TABLE_LOCK,
    IndexDamaged,
    IndexUnavailable,
    Manifest,
    read_manifest,
    reason_of,
    set_aside,
    write_manifest,
)
from agentx.storage.index.memory_index import (
    IndexRow,
    agreed_dimensions,
    best,
    lacks_vector,
    make_rows,
    oldest,
    pack,
)
from agentx.storage.index.part_store import PartStore
from agentx.storage.index.parts import IndexParts
from agentx.storage.index.pending_writes import (
    Clear,
    Close,
    Embed,
    Follower,
    ForgetVectors,
    Meta,
    Overlay,
    Put,
    Record,
    WaitingFile,
    locked,
)
from agentx.storage.index.port import Chunk, Filter, Ranked, Vector
from agentx.storage.index.table_rows import TableRows
from agentx.storage.index.terms import TermCounts
from agentx.storage.text import encodable

FLUSH_ROWS = 256
"""Number of waiting rows that triggers a flush in the background; at four times this, ``put`` flushes."""
FLUSH_BYTES = 1 << 20

_T = TypeVar("_T")
_P = ParamSpec("_P")


def _retried(ask: Callable[Concatenate["LanceIndex", _P], _T]) -> Callable[Concatenate["LanceIndex", _P], _T]:
    """Ask, and retry once: another process may have cleared the table or pruned the version read."""

    @functools.wraps(ask)
    def asked(self: "LanceIndex", /, *given: _P.args, **named: _P.kwargs) -> _T:
        try:
            return ask(self, *given, **named)
        except VENDOR_ERRORS:
            self._forget_rows()
        try:
            return ask(self, *given, **named)
        except VENDOR_ERRORS as error:
            raise IndexDamaged(self._path, reason_of(error)) from error

    return asked


def open_index(path: Path) -> tuple["LanceIndex", str]:
    """Open the index in a directory; an unusable one is set aside and replaced by an empty one.

    Returns:
        The index, and a sentence on what was set aside; empty if nothing was.
    """
    try:
        return LanceIndex(path), ""
    except IndexDamaged as damage:
        aside = set_aside(path)
        return LanceIndex(path), f"{damage} The old one was moved to {aside.name}."


class LanceIndex:
    """The memory index in a directory; thread-safe, and any number of processes may open it.

    Args:
        path: The directory; created if missing.
        flush_rows: Number of waiting rows that triggers a flush.

    Raises:
        IndexDamaged: The directory contains an index that cannot be read, or one of another version.
        IndexUnavailable: The directory cannot be created.
    """

    def __init__(self, path: Path, *, flush_rows: int = FLUSH_ROWS) -> None:
        self._path = path
        self._flush_rows = flush_rows
        self._file = WaitingFile(path)
        self._follower = Follower(self._file)
        self._overlay = Overlay()
        self._database = Database(path)
        self._lock = threading.RLock()
        self._appended = 0
        self._parts = PartStore(path)
        self._below: tuple[tuple[str, int, tuple[str, ...] | None], IndexParts | TableRows] | None = None
        first = path / "index.json"
        with self._writing():
            nofollow.make_directory(path, parents=True)
            with locked(path / TABLE_LOCK):
                if not nofollow.exists(first):
                    if nofollow.exists(path / "lance"):
                        raise IndexDamaged(path, "index.json is missing")
                    write_manifest(first, Manifest(made=secrets.token_hex(8)))
        self._manifest = read_manifest(path)
        self._dimensions = self._manifest.dimensions

    # --- writing --------------------------------------------------------------------------------------------

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None = None) -> None:
        """Add chunks, replacing those of the same id; all processes find them once this returns.

        Raises:
            UsageError: The vectors do not match the chunks, or the vectors already in the index.
            IndexUnavailable: The disk is full.
        """
        packed, step = pack(vectors, len(chunks)), 4 * self._flush_rows
        self._agree(packed)
        for start in range(0, len(chunks), step):
            rows = make_rows(chunks[start : start + step], packed[start : start + step])
            self._append(Put(tuple(rows)), len(rows))

    def embed(self, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Set the vectors of chunks that are already in the index; unknown ids are ignored.

        Raises:
            UsageError: The vectors do not match the ids, or the vectors already in the index.
            IndexUnavailable: The disk is full.
        """
        packed = pack(vectors, len(ids))
        self._agree(packed)
        self._append(Embed(tuple(map(encodable, ids)), tuple(packed)), len(ids))

    def close_chunks(self, *, path: str, seq: int, source: str = "") -> None:
        """End the validity of every open chunk of a file."""
        self._append(Close(encodable(source), encodable(path), seq), 1)

    def write_meta(self, key: str, value: str) -> None:
        """Store a small value, in order with the chunks that were put before it."""
        self._append(Meta(encodable(key), encodable(value)), 0)

    def forget_vectors(self) -> None:
        """Drop all vectors; text stays searchable, and the next vector may have other dimensions."""
        self._append(ForgetVectors(), 0)

    def clear(self) -> None:
        """Drop everything."""
        self._append(Clear(), 0)

    def _agree(self, packed: Sequence[bytes]) -> None:
        """Refuse vectors whose dimensions differ from those in the index."""
        if not any(len(vector) != 4 * self._dimensions for vector in packed if vector):
            return
        # The first vectors of this handle, or all vectors were dropped: look up the dimensions.
        with self._lock:
            self._caught_up()
            known = 0 if self._overlay.forgotten else self._manifest.dimensions
            waiting = (row.vector for row in self._overlay.rows.by_id.values() if row.vector)
            known = known or len(next(waiting, b"")) // 4
        self._dimensions = agreed_dimensions(known, packed)

    def _append(self, record: Record, rows: int) -> None:
        with self._writing():
            size = self._file.append([record])
        self._appended += rows
        if self._appended >= 4 * self._flush_rows or size >= 8 * FLUSH_BYTES:
            self.flush()

    # --- searching ------------------------------------------------------------------------------------------

    @_retried
    def search_text(
        self, query: str, k: int, where: Filter, statistics: bm25.Statistics | None = None
    ) -> list[Ranked]:
        """Return the ``k`` best by BM25 over context and text, best first.

        Raises:
            UsageError: A date or path of the filter is invalid.
            IndexDamaged: The table cannot be read.
        """
        keep, terms = filters.predicate(where), query_terms(query)
        if k <= 0 or not terms:
            return []
        with self._lock:
            below = self._catch_up()
            counts = None if below is None else self._database.counts(self._manifest.table)
            weights = bm25.weigh(terms, statistics or _Combined(self._overlay, counts))
            scored = list(self._overlay.rows.score_text(weights, keep))
            hidden = frozenset(self._overlay.rows.by_id)
        if below is not None:
            scored += below.match(weights, k, where, hidden)
        return best(scored, k)

    @_retried
    def statistics(self, terms: Iterable[str]) -> bm25.Statistics:
        """Return the term statistics of the open chunks, for some terms.

        Raises:
            IndexDamaged: The table cannot be read.
        """
        with self._lock:
            below = self._catch_up()
            counts = None if below is None else self._database.counts(self._manifest.table)
            return bm25.Counted.of(_Combined(self._overlay, counts), terms)

    def search_vector(self, vector: Vector, k: int, where: Filter) -> list[Ranked]:
        """Return the ``k`` best by cosine similarity, best first; chunks without a vector are not found.

        Raises:
            UsageError: A date or path of the filter is invalid, or the vector is.
            IndexDamaged: The table cannot be read.
        """
        keep, packed = filters.predicate(where), pack([vector], 1)[0]
        return self._search_vector(vector, len(packed), k, keep, where) if k > 0 else []

    @_retried
    def _search_vector(
        self, vector: Vector, size: int, k: int, keep: Callable[[Chunk], bool], where: Filter
    ) -> list[Ranked]:
        with self._lock:
            below = self._catch_up()
            scored = list(self._overlay.rows.score_vector(vector, keep))
            hidden = frozenset(self._overlay.rows.by_id)
            comparable = not self._overlay.forgotten and 4 * self._manifest.dimensions == size
        if below is not None and comparable:
            scored += below.nearest(vector, k, where, hidden)
        return best(scored, k)

    @_retried
    def without_vectors(self, limit: int) -> list[Chunk]:
        """Return up to ``limit`` open chunks that have no vector yet, oldest first."""
        if limit <= 0:
            return []
        with self._lock:
            below = self._catch_up()
            chunks = [row.chunk for row in self._overlay.rows.by_id.values() if lacks_vector(row)]
            hidden = frozenset(self._overlay.rows.by_id)
            every = self._overlay.forgotten or not self._manifest.dimensions
        if below is not None:
            chunks += below.oldest(limit, hidden, every=every)
        return oldest(chunks, limit)

    def get(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Return chunks by id; unknown ids are omitted."""
        return self._get(list(dict.fromkeys(map(encodable, ids))))

    @_retried
    def _get(self, wanted: list[str]) -> dict[str, Chunk]:
        with self._lock:
            below = self._catch_up()
            found = {i: self._overlay.rows.by_id[i].chunk for i in wanted if i in self._overlay.rows.by_id}
        missing = [i for i in wanted if i not in found]
        if below is not None and missing:
            found |= {row.chunk.id: row.chunk for row in below.get(missing)}
        return {i: found[i] for i in wanted if i in found}

    @_retried
    def count(self, where: Filter | None = None) -> int:
        """Return how many chunks match; for ``None`` all of them, including closed ones."""
        keep = filters.predicate(where) if where is not None else lambda _: True
        with self._lock:
            below = self._catch_up()
            total = sum(keep(row.chunk) for row in self._overlay.rows.by_id.values())
            hidden = list(self._overlay.rows.by_id)
        return total if below is None else total + below.count(where, hidden)

    @_retried
    def read_meta(self, key: str) -> str:
        """Return a small value stored beside the chunks; empty if there is none."""
        name = encodable(key)
        with self._lock:
            self._catch_up()
            kept = {} if self._overlay.cleared else self._manifest.meta
            return self._overlay.meta.get(name, kept.get(name, ""))

    # --- housekeeping ---------------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Move all waiting rows to the table.

        Returns:
            Whether it was done; false if another thread or process is flushing.

        Raises:
            IndexDamaged: The table cannot be read.
            IndexUnavailable: The disk is full; waiting rows stay in their file and are still found.
        """
        with self._writing(), locked(self._path / TABLE_LOCK, wait=False) as mine:
            if not mine:
                return False
            below = self._file.seal()
            with self._lock:
                self._caught_up()
                overlay, self._overlay = self._overlay, Overlay()
                self._follower = Follower(self._file)
                before = self._manifest
            manifest = self._with_parts(before, overlay, self._database.write(before, overlay))
            write_manifest(self._path / "index.json", manifest)
            self._file.drop(below)
            self._appended = 0
            self._parts.drop_others(manifest.parts)
            if manifest.table != before.table:
                self._database.drop_others(manifest.table)
            self._database.compact(manifest.table, slack=4)
        return True

    def maintain(self) -> None:
        """Flush if enough rows wait, compact and prune; runs in the background, never on the write path.

        Raises:
            IndexDamaged: The table cannot be read.
            IndexUnavailable: The disk is full.
        """
        with self._lock:
            self._caught_up()
            waiting = len(self._overlay.rows.by_id)
        if waiting >= self._flush_rows or self._file.size_bytes() >= FLUSH_BYTES:
            self.flush()
        with self._writing(), locked(self._path / TABLE_LOCK, wait=False) as mine:
            if mine:
                manifest = read_manifest(self._path)
                self._database.compact(manifest.table)
                self._database.index_vectors(manifest.table)
                self._tend_parts(manifest)

    def _with_parts(self, before: Manifest, overlay: Overlay, manifest: Manifest) -> Manifest:
        """Return the manifest of a flush with the parts that have the rows of the table now."""
        known = before.parts if before.table and not overlay.cleared else ()
        if known is None or (overlay.forgotten and known):
            return manifest
        rows = list(overlay.rows.by_id.values())
        return msgspec.structs.replace(manifest, parts=self._parts.add(known, rows, manifest.dimensions))

    def _tend_parts(self, manifest: Manifest) -> None:
        """Merge the parts, or make them again from the table."""
        if self._parts.missing(manifest):
            every = self._database.table(manifest.table).every()
            names = self._parts.rebuild(every, manifest.dimensions)
        else:
            names = manifest.parts and self._parts.merge(manifest.parts)
        if names != manifest.parts:
            write_manifest(self._path / "index.json", msgspec.structs.replace(manifest, parts=names))
            self._parts.drop_others(names)

    def close(self) -> None:
        """Release resources.

        Waiting rows stay in their file, where they are found, unless the file has grown large.
        """
        if nofollow.is_directory(self._path) and self._file.size_bytes() >= FLUSH_BYTES:
            self.flush()
        self._database, self._below = Database(self._path), None

    def _catch_up(self) -> IndexParts | TableRows | None:
        """Read what is new in the waiting file, then the manifest; return the rows of the table, if any."""
        try:
            restarted, records = self._follower.poll()
            if restarted:
                self._overlay = Overlay()
            manifest = read_manifest(self._path)
            if manifest.made != self._manifest.made:  # a purge deleted the index that was read so far
                self._overlay, self._follower = Overlay(), Follower(self._file)
                self._below = None
                self._database.reopen()
                _, records = self._follower.poll()
            self._manifest = manifest
            below = None if self._overlay.cleared else self._rows_of_table()
            lifted: dict[str, IndexRow] = {}  # the table's rows that the records change but do not contain
            if below is not None:
                ids = [chunk_id for record in records if isinstance(record, Embed) for chunk_id in record.ids]
                paths = [record.path for record in records if isinstance(record, Close)]
                lifted = {row.chunk.id: row for row in (*below.get(ids), *below.of_paths(paths))}
            for record in records:
                self._overlay.apply(record, lifted)
        except BaseException:
            # Polled records may not have been applied: read everything again next time.
            self._overlay, self._follower = Overlay(), Follower(self._file)
            raise
        return None if self._overlay.cleared else below

    def _rows_of_table(self) -> IndexParts | TableRows | None:
        """Return the rows of the table: from its parts, or from LanceDB where they cannot be used."""
        manifest = self._manifest
        if not manifest.table:
            return None
        state = manifest.table, manifest.flushes, manifest.parts
        if self._below is None or self._below[0] != state:
            rows = self._parts.opened(manifest.parts)
            self._below = state, rows or TableRows(self._database.table(manifest.table))
        return self._below[1]

    def _forget_rows(self) -> None:
        """Open the rows of the table again for the next query, from LanceDB if a part failed."""
        with self._lock:
            if self._below is not None and isinstance(self._below[1], IndexParts):
                self._parts.distrust(self._below[0][2])
            self._below = None
            self._database.reopen()

    _caught_up = _retried(_catch_up)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except VENDOR_ERRORS as error:
            raise IndexUnavailable(
                f"The search index in {self._path} cannot be written ({reason_of(error)}). "
                "Free disk space or fix the permissions; earlier entries are safe."
            ) from error


class _Combined:
    """Term statistics of the table and the waiting rows together.

    A row that is in both counts twice, in all figures.
    """

    def __init__(self, overlay: Overlay, counts: TermCounts | None) -> None:
        self._rows = overlay.rows
        self._counts = counts

    def totals(self) -> tuple[int, int]:
        docs, length = self._rows.totals()
        below = self._counts.totals() if self._counts is not None else (0, 0)
        return docs + below[0], length + below[1]

    def frequency(self, term: str) -> int:
        below = self._counts.frequency(term) if self._counts is not None else 0
        return self._rows.frequency(term) + below
