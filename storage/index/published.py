"""The published index of a workspace: a table that other machines search while one brings it up to date.

Invariant: a commit contains the changed rows and the mark, which says at which event of which history the
rows stand, in one version of the table. It is refused if another was made since the rows were prepared. So a
reader, who stays with one version, always sees rows and mark of the same commit, and a publisher that was
frozen cannot replace what a later one wrote.

Chunks are ranked as by the local index: the mark carries the term counts of the open rows, so that scores do
not depend on the state of LanceDB's index.
"""

import re
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.index import bm25
from agentx.storage.index.analysis import query_terms
from agentx.storage.index.lance_table import VENDOR_ERRORS, PublishedTable, PublishedTables
from agentx.storage.index.memory_index import IndexRow, InMemoryIndex, best, make_rows, pack
from agentx.storage.index.pending_writes import Clear, Close, Embed, Meta, Overlay, Put, Record
from agentx.storage.index.port import OPEN, Chunk, Filter, Ranked, Vector
from agentx.storage.index.table_rows import TableRows
from agentx.storage.index.terms import SLOTS, slot_of
from agentx.storage.text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    Counts = npt.NDArray[np.int32]
else:  # as in the port
    Counts = Any

VERSION = 1
"""Format of the tables."""

_REASON = 300
_SAID = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<]*)</Message>")
_NO_ANSWER = re.compile(r"HttpError|error sending request|Connect|[Tt]imed? ?out")
_decoder: "msgspec.msgpack.Decoder[Mark]"


class PublishFailed(AgentXError):
    """A published index cannot be reached, read or written."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What is committed with the rows of a published index.

    Attributes:
        version: Format of the table.
        meta: The index's small values: the watermark ``seq`` (event and hash), ``chunking``, ``embedder``.
        at: When it was published, UTC ISO 8601.
        docs: Number of open chunks.
        length: Total number of their terms.
        terms: Term counts of the open chunks, packed.
    """

    version: int = VERSION
    meta: dict[str, str] = {}
    at: str = ""
    docs: int = 0
    length: int = 0
    terms: bytes = b""

    @property
    def seq(self) -> int:
        """The last event that the rows contain; 0 if nothing is published."""
        return int(self.meta.get("seq", "").partition(" ")[0] or 0)


_decoder = msgspec.msgpack.Decoder(Mark)


class Changes(InMemoryIndex):
    """An index of what changed since a version was published, which records the changes.

    Args:
        meta: Small values of the published index.
        bare: Chunks of the published index that still need a vector.
    """

    def __init__(self, meta: Mapping[str, str], bare: Sequence[Chunk] = ()) -> None:
        super().__init__()
        for key, value in meta.items():
            super().write_meta(key, value)
        super().put(bare)
        self.records: list[Record] = []
        self.cleared = False

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None = None) -> None:
        """Add chunks, replacing those of the same id."""
        super().put(chunks, vectors)
        if chunks:
            self.records.append(Put(tuple(make_rows(chunks, pack(vectors, len(chunks))))))

    def embed(self, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Set the vectors of chunks."""
        super().embed(ids, vectors)
        self.records.append(Embed(tuple(map(encodable, ids)), tuple(pack(vectors, len(ids)))))

    def close_chunks(self, *, path: str, seq: int, source: str = "") -> None:
        """End the validity of every open chunk of a file."""
        super().close_chunks(path=path, seq=seq, source=source)
        self.records.append(Close(encodable(source), encodable(path), seq))

    def write_meta(self, key: str, value: str) -> None:
        """Store a small value."""
        super().write_meta(key, value)
        self.records.append(Meta(key, value))

    def forget_vectors(self) -> None:
        """Drop all vectors: everything is published again."""
        chunking = self.read_meta("chunking")
        self.clear()
        self.write_meta("chunking", chunking)

    def clear(self) -> None:
        """Drop everything, also what is published."""
        super().clear()
        self.records, self.cleared = [Clear()], True


class PublishedIndex:
    """The published index of one workspace, in one version; it can be searched and brought up to date.

    Args:
        name: The workspace.
        table: Its table.

    Raises:
        PublishFailed: It cannot be read, or is of a newer format.
    """

    def __init__(self, name: str, table: PublishedTable) -> None:
        self.name, self._table = name, table
        with _reached(name):
            packed, self._token = table.mark()
        try:
            self.mark = _decoder.decode(packed) if packed else Mark()
            _ = self.mark.seq
        except (msgspec.MsgspecError, ValueError) as error:
            raise PublishFailed(
                f"The published index of {name} is damaged: {str(error)[:_REASON]}"
            ) from error
        if self.mark.version > VERSION:
            raise PublishFailed(f"The published index of {name} is of a newer version of this program.")
        self._rows: TableRows | None = None

    # --- searching ------------------------------------------------------------------------------------------

    def statistics(self, terms: Iterable[str]) -> bm25.Statistics:
        """Return the term statistics of the open chunks, for some terms."""
        counts = _unpacked(self.mark.terms)
        found = {term: max(int(counts[slot_of(term)]), 0) for term in terms}
        # Whoever can write the store chooses these figures.
        return bm25.Counted(max(self.mark.docs, 0), max(self.mark.length, 0), found)

    def search_text(
        self, query: str, k: int, where: Filter, statistics: bm25.Statistics | None = None
    ) -> list[Ranked]:
        """Return the ``k`` best by BM25 over context and text, best first.

        Raises:
            PublishFailed: It cannot be read.
        """
        terms = query_terms(query)
        if k <= 0 or not terms:
            return []
        weights = bm25.weigh(terms, statistics or self.statistics(terms))
        with _reached(self.name):
            return best(self._opened().match(weights, k, where, frozenset()), k)

    def search_vector(self, vector: Vector, k: int, where: Filter) -> list[Ranked]:
        """Return the ``k`` best by cosine similarity, best first; chunks without a vector are not found.

        Raises:
            PublishFailed: It cannot be read.
        """
        with _reached(self.name):
            return best(self._opened().nearest(vector, k, where, frozenset()), k)

    def _opened(self) -> TableRows:
        if self._rows is None:
            self._rows = TableRows(self._table)
        return self._rows

    def without_vectors(self, limit: int) -> list[Chunk]:
        """Return up to ``limit`` open chunks that have no vector yet, oldest first.

        Raises:
            PublishFailed: It cannot be read.
        """
        with _reached(self.name):
            return [row.chunk for row in self._table.oldest(limit, embedded=False)]

    def vectors(self) -> "Iterator[IndexRow]":
        """Yield all rows that have a vector.

        Raises:
            PublishFailed: It cannot be read.
        """
        with _reached(self.name):
            yield from self._table.vectors()

    # --- publishing -----------------------------------------------------------------------------------------

    def commit(self, changes: Changes, at: str, *, purge: bool = False) -> Mark:
        """Commit changes that were recorded on top of this version.

        Args:
            changes: The changes.
            at: The time, UTC ISO 8601.
            purge: Delete what older versions of the table have at once, so that their readers fail.

        Returns:
            The new mark.

        Raises:
            PublishedByAnother: Another machine was first; nothing was changed.
            PublishFailed: It cannot be written.
        """
        with _reached(self.name):
            overlay, old = self._applied(changes)
            rows = list(overlay.rows.by_id.values())
            mark = self._marked(overlay, old, at)
            size = next((len(row.vector) // 4 for row in rows if row.vector), 0)
            self._table.commit(
                rows,
                size,
                msgspec.msgpack.encode(mark),
                secrets.token_hex(8),
                self._token,
                replace=overlay.cleared,
            )
            self._table.tidy(purge=purge)
        return mark

    def _applied(self, changes: Changes) -> tuple[Overlay, list[IndexRow]]:
        """Apply changes; return the rows to write, and what the table has under their ids now."""
        overlay, below = Overlay(), {}
        if not changes.cleared:
            ids = {name for one in changes.records if isinstance(one, Embed) for name in one.ids}
            ids |= {row.chunk.id for one in changes.records if isinstance(one, Put) for row in one.rows}
            paths = list(dict.fromkeys(one.path for one in changes.records if isinstance(one, Close)))
            found = [
                *self._table.having("id", sorted(ids)),
                *self._table.having("path", paths, f"to_seq = {OPEN}"),
            ]
            below = {row.chunk.id: row for row in found}
        for record in changes.records:
            overlay.apply(record, below)
        return overlay, [below[name] for name in overlay.rows.by_id if name in below]

    def _marked(self, overlay: Overlay, old: Sequence[IndexRow], at: str) -> Mark:
        before = Mark() if overlay.cleared else self.mark
        counts, docs, length = _unpacked(before.terms), before.docs, before.length
        for rows, sign in ((old, -1), (overlay.rows.by_id.values(), 1)):
            for row in rows:
                if row.chunk.to_seq == OPEN:
                    terms = row.tokens.split(" ") if row.tokens else []
                    docs, length = docs + sign, length + sign * len(terms)
                    counts[list({slot_of(term) for term in terms})] += sign
        return Mark(meta=before.meta | overlay.meta, at=at, docs=docs, length=length, terms=_packed(counts))


class PublishedIndexes:
    """The published indexes of a tenant.

    Args:
        url: A directory, or ``s3://bucket/prefix``.
        options: Options of the object store, with its credentials; they are in no message.

    Raises:
        PublishFailed: The place cannot be reached.
    """

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        with _reached(url):
            self._tables = PublishedTables(url, options)
        self._url = url

    def names(self) -> list[str]:
        """Return the names of the workspaces that have an index, sorted.

        Raises:
            PublishFailed: The place cannot be reached.
        """
        with _reached(self._url):
            return self._tables.names()

    def open(self, name: str) -> PublishedIndex | None:
        """Return the index of a workspace as it is now; ``None`` if there is none.

        Raises:
            PublishFailed: It cannot be read.
        """
        with _reached(name):
            table = self._tables.open(name)
        return None if table is None else PublishedIndex(name, table)

    def made(self, name: str) -> PublishedIndex:
        """Return the index of a workspace, made if it does not exist.

        Raises:
            PublishFailed: It cannot be read or made.
        """
        if (found := self.open(name)) is not None:
            return found
        with _reached(name):
            self._tables.create(name, msgspec.msgpack.encode(Mark()))
        return self.made(name)

    def remove(self, name: str, at: str) -> bool:
        """Delete what is published of a workspace, with every older version; return whether there was any.

        An empty table stays, which keeps a publisher that was frozen meanwhile from writing.

        Raises:
            PublishedByAnother: Another machine was first; nothing was changed.
            PublishFailed: The place cannot be reached.
        """
        try:
            found = self.open(name)
        except PublishFailed:  # damaged
            with _reached(name):
                self._tables.remove(name)
            return True
        if found is None or not found.mark.seq:
            return False
        nothing = Changes({})
        nothing.clear()
        found.commit(nothing, at, purge=True)
        return True


@contextmanager
def _reached(what: str) -> "Iterator[None]":
    """Translate the vendor's errors."""
    try:
        yield
    except VENDOR_ERRORS as error:
        raise PublishFailed(f"The published index {what} cannot be reached: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return what an object store said, or the beginning of the vendor's message."""
    text = " ".join(str(error).split())
    if said := _SAID.search(text):
        return f"{said[1]}: {said[2]}"[:_REASON]
    if _NO_ANSWER.search(text):
        return "the object store does not answer"
    return text.partition(", /")[0].partition(" {")[0][:_REASON]


def _packed(counts: Counts) -> bytes:
    import numpy as np  # noqa: PLC0415  (heavy)

    slots = np.flatnonzero(counts)
    steps = np.diff(slots, prepend=0).astype("<u4")
    return zlib.compress(steps.tobytes() + counts[slots].astype("<i4").tobytes(), 1)


def _unpacked(packed: bytes) -> Counts:
    """Return the term counts.

    Raises:
        PublishFailed: They are damaged.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    counts = np.zeros(SLOTS, np.int32)
    if not packed:
        return counts
    try:
        data = zlib.decompressobj().decompress(packed, 8 * SLOTS)
        half = len(data) // 2
        slots = np.cumsum(np.frombuffer(data[:half], "<u4"), dtype=np.int64)
        counts[slots] = np.frombuffer(data[half:], "<i4")
    except (zlib.error, ValueError, IndexError) as error:
        raise PublishFailed(f"The term counts of a published index are damaged: {error}") from error
    return counts
