"""The reference of the memory index: everything in memory, every score computed exactly.

It defines the semantics of the port. The LanceDB backend is tested against it, and uses the same
:class:`Rows` for the rows that wait beside its table.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.index import bm25, filters
from agentx.storage.index.analysis import query_terms, tokens_of
from agentx.storage.index.port import OPEN, Chunk, Filter, Ranked, Vector
from agentx.storage.text import encodable

Keep = Callable[[Chunk], bool]

SCORE_DIGITS = 6
"""Scores are rounded to this, so that near ties are ordered alike on every processor: by id."""


class IndexRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chunk as stored in an index.

    Attributes:
        tokens: Its terms, joined by spaces.
        vector: Its embedding as little-endian float32, unit length; empty if it has none.
    """

    chunk: Chunk
    tokens: str = ""
    vector: bytes = b""


def make_rows(chunks: Sequence[Chunk], packed: Sequence[bytes]) -> list[IndexRow]:
    """Analyse chunks, and attach the packed vector of each."""
    rows = []
    for given, vector in zip(chunks, packed, strict=True):
        fields = msgspec.structs.asdict(given).items()
        texts = {name: encodable(value) for name, value in fields if isinstance(value, str)}
        chunk = msgspec.structs.replace(given, **texts)
        rows.append(IndexRow(chunk, " ".join(tokens_of(chunk)), vector))
    return rows


def pack(vectors: Sequence[Vector] | None, expected: int) -> list[bytes]:
    """Normalise vectors to unit length and convert them to bytes; ``None`` gives empty bytes for each.

    Raises:
        UsageError: Their number is not ``expected``, they differ in size, or one is zero or not finite.
    """
    if vectors is None:
        return [b""] * expected
    if len(vectors) != expected:
        raise UsageError(
            f"{len(vectors)} vectors were given for {expected} chunks; give one for each chunk, or none."
        )
    import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

    packed = []
    for vector in vectors:
        array = np.asarray(vector, dtype="<f4")
        norm = float(np.linalg.norm(array.astype("f8")))
        if array.ndim != 1 or not np.isfinite(norm) or norm == 0 or array.size != len(vectors[0]):
            raise UsageError(
                "An embedding must be one row of finite numbers, not all zero, and as long as the others."
            )
        packed.append((array / np.float32(norm)).astype("<f4").tobytes())
    return packed


def best(scored: Iterable[tuple[float, Chunk]], k: int) -> list[Ranked]:
    """Return the ``k`` best of the scored chunks; equal scores are ordered by id."""
    ordered = sorted(
        (-round(score, SCORE_DIGITS), chunk.id, number, chunk) for number, (score, chunk) in enumerate(scored)
    )
    return [Ranked(chunk, -score) for score, _, _, chunk in ordered[: max(k, 0)]]


def cosines(vector: Vector, packed: Sequence[bytes]) -> Vector:
    """Return the cosine of a vector with each of the packed ones, which must have the same size."""
    import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

    query = np.frombuffer(pack([vector], 1)[0], dtype="<f4")
    matrix = np.frombuffer(b"".join(packed), dtype="<f4").reshape(len(packed), query.size)
    result: Vector = matrix @ query
    return result


class Rows:
    """Rows in memory, indexed for ranking; callers pass in the term statistics used for ranking.

    Closed rows are found like others, but do not count in the statistics: many versions of a frequently
    edited file would make its words look common.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, IndexRow] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._postings: dict[str, set[str]] = {}
        self._paths: dict[tuple[str, str], set[str]] = {}
        self._open: Counter[str] = Counter()
        self._docs = self._length = 0

    def put(self, row: IndexRow) -> None:
        """Add a row, replacing the one of the same id."""
        self._remove(row.chunk.id)
        chunk, counts = row.chunk, Counter(row.tokens.split(" ") if row.tokens else ())
        self.by_id[chunk.id] = row
        self._counts[chunk.id] = counts
        self._count(row, 1)
        self._paths.setdefault((chunk.source, chunk.path), set()).add(chunk.id)
        for term in counts:
            self._postings.setdefault(term, set()).add(chunk.id)

    def forget_vectors(self) -> None:
        """Drop all vectors."""
        self.by_id = {
            chunk_id: msgspec.structs.replace(row, vector=b"") for chunk_id, row in self.by_id.items()
        }

    def embed(self, chunk_id: str, vector: bytes) -> None:
        """Set the vector of a row, if the row exists."""
        row = self.by_id.get(chunk_id)
        if row is not None:
            self.by_id[chunk_id] = msgspec.structs.replace(row, vector=vector)

    def close(self, source: str, path: str, seq: int) -> None:
        """End the validity of the open rows of a file."""
        for chunk_id in self._paths.get((source, path), ()):
            row = self.by_id[chunk_id]
            self._count(row, -1)
            self.by_id[chunk_id] = closed(row, seq)

    def totals(self) -> tuple[int, int]:
        """Return the number of open rows, and the total number of their terms."""
        return self._docs, self._length

    def frequency(self, term: str) -> int:
        """Return how many open rows contain a term."""
        return self._open[term]

    def score_text(self, weights: bm25.Weights, keep: Keep) -> Iterator[tuple[float, Chunk]]:
        """Score the rows that contain a term of the query and pass the filter."""
        found: set[str] = set().union(*(self._postings.get(term, ()) for term in weights.terms))
        for chunk_id in found:
            chunk, counts = self.by_id[chunk_id].chunk, self._counts[chunk_id]
            if keep(chunk):
                yield bm25.score(weights, counts, counts.total()), chunk

    def score_vector(self, vector: Vector, keep: Keep) -> Iterator[tuple[float, Chunk]]:
        """Score the rows that have a vector of this size and pass the filter."""
        size = 4 * len(vector)
        rows = [row for row in self.by_id.values() if len(row.vector) == size and keep(row.chunk)]
        if rows:
            for score, row in zip(cosines(vector, [row.vector for row in rows]), rows, strict=True):
                yield float(score), row.chunk

    def _remove(self, chunk_id: str) -> None:
        row = self.by_id.get(chunk_id)
        if row is None:
            return
        self._count(row, -1)
        del self.by_id[chunk_id]
        counts = self._counts.pop(chunk_id)
        self._paths[row.chunk.source, row.chunk.path].discard(chunk_id)
        for term in counts:
            holders = self._postings[term]
            holders.discard(chunk_id)
            if not holders:
                del self._postings[term]

    def _count(self, row: IndexRow, sign: int) -> None:
        """Add a row to the statistics, or remove it, if it is open."""
        if row.chunk.to_seq != OPEN:
            return
        counts = self._counts[row.chunk.id]
        self._docs += sign
        self._length += sign * counts.total()
        for term in counts:
            self._open[term] += sign


def closed(row: IndexRow, seq: int) -> IndexRow:
    """Return the row with its validity ended by event ``seq``, unless it had ended already."""
    if row.chunk.to_seq != OPEN:
        return row
    return msgspec.structs.replace(row, chunk=msgspec.structs.replace(row.chunk, to_seq=seq))


class InMemoryIndex:
    """The exact reference of :class:`agentx.storage.index.port.MemoryIndex`; thread-safe.

    >>> index = InMemoryIndex()
    >>> index.put([Chunk(id="m-1", kind="message", text="Retry payments three times.")])
    >>> [hit.chunk.text for hit in index.search_text("payment retries", 5, Filter())]
    ['Retry payments three times.']
    """

    def __init__(self) -> None:
        self._rows = Rows()
        self._meta: dict[str, str] = {}
        self._dimensions = 0
        self._lock = threading.RLock()

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None = None) -> None:
        """Add chunks, replacing those of the same id.

        Raises:
            UsageError: The vectors do not match the chunks, or the vectors already in the index.
        """
        rows = make_rows(chunks, pack(vectors, len(chunks)))
        with self._lock:
            self._dimensions = agreed_dimensions(self._dimensions, [row.vector for row in rows])
            for row in rows:
                self._rows.put(row)

    def embed(self, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Set the vectors of chunks that are already in the index.

        Raises:
            UsageError: The vectors do not match the ids, or the vectors already in the index.
        """
        packed = pack(vectors, len(ids))
        with self._lock:
            self._dimensions = agreed_dimensions(self._dimensions, packed)
            for chunk_id, vector in zip(ids, packed, strict=True):
                self._rows.embed(encodable(chunk_id), vector)

    def close_chunks(self, *, path: str, seq: int, source: str = "") -> None:
        """End the validity of every open chunk of a file."""
        with self._lock:
            self._rows.close(encodable(source), encodable(path), seq)

    def search_text(
        self, query: str, k: int, where: Filter, statistics: bm25.Statistics | None = None
    ) -> list[Ranked]:
        """Return the ``k`` best by BM25, best first."""
        keep, terms = filters.predicate(where), query_terms(query)
        with self._lock:
            return best(self._rows.score_text(bm25.weigh(terms, statistics or self._rows), keep), k)

    def statistics(self, terms: Iterable[str]) -> bm25.Statistics:
        """Return the term statistics of the open chunks, for some terms."""
        with self._lock:
            return bm25.Counted.of(self._rows, terms)

    def search_vector(self, vector: Vector, k: int, where: Filter) -> list[Ranked]:
        """Return the ``k`` best by cosine similarity, best first."""
        keep = filters.predicate(where)
        with self._lock:
            return best(self._rows.score_vector(vector, keep), k)

    def without_vectors(self, limit: int) -> list[Chunk]:
        """Return up to ``limit`` open chunks that have no vector yet, oldest first."""
        with self._lock:
            return oldest((row.chunk for row in self._rows.by_id.values() if lacks_vector(row)), limit)

    def get(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Return chunks by id."""
        with self._lock:
            return {row.chunk.id: row.chunk for row in map(self._rows.by_id.get, map(encodable, ids)) if row}

    def count(self, where: Filter | None = None) -> int:
        """Return how many chunks match; all of them for ``None``."""
        with self._lock:
            if where is None:
                return len(self._rows.by_id)
            keep = filters.predicate(where)
            return sum(keep(row.chunk) for row in self._rows.by_id.values())

    def read_meta(self, key: str) -> str:
        """Return a small value stored beside the chunks; empty if there is none."""
        with self._lock:
            return self._meta.get(encodable(key), "")

    def write_meta(self, key: str, value: str) -> None:
        """Store a small value beside the chunks."""
        with self._lock:
            self._meta[encodable(key)] = encodable(value)

    def forget_vectors(self) -> None:
        """Drop all vectors; text stays searchable."""
        with self._lock:
            self._dimensions = 0
            self._rows.forget_vectors()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._rows, self._meta, self._dimensions = Rows(), {}, 0

    def maintain(self) -> None:
        """Do nothing: memory needs no compaction."""

    def close(self) -> None:
        """Do nothing: there are no resources to release."""


def agreed_dimensions(known: int, packed: Sequence[bytes]) -> int:
    """Return the common dimensions of the vectors and those known before; 0 for none.

    Raises:
        UsageError: They differ.
    """
    for vector in packed:
        size = len(vector) // 4
        if vector and known not in {0, size}:
            raise UsageError(
                f"The index holds vectors of {known} dimensions, and one of {size} was given; "
                "forget them first."
            )
        known = size or known
    return known


def lacks_vector(row: IndexRow) -> bool:
    """Return whether this row still needs a vector from the embedder."""
    return not row.vector and row.chunk.to_seq == OPEN


def oldest(chunks: Iterable[Chunk], limit: int) -> list[Chunk]:
    """Return the first ``limit`` chunks by the event that brought them, then by id."""
    return sorted(chunks, key=lambda chunk: (chunk.seq, chunk.id))[: max(limit, 0)]
