"""The port of the memory index: its data types, its queries, and the behaviour required of every backend.

An index is a cache: it can be deleted at any time and is filled again from the history. It is given text and,
if there is an embedder, vectors; it never computes a vector. Lexical and vector ranking are separate queries,
fused in one place (:mod:`agentx.synthesis.recall.retrieval`), so that both backends are ranked by the same
rule.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from agentx.storage.index.bm25 import Statistics

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]
else:  # numpy is heavy, and most commands see no vector
    Vector = Any
"""One embedding: shape ``(dimensions,)``, float32, unit length."""

ChunkKind = Literal["artifact", "message", "tool", "memory", "source"]

FileKind = Literal["source", "test", "docs", "config", "data"]
"""What a file is for."""

SearchKind = Literal["artifact", "message", "tool", "memory", "source", "test", "docs", "config", "data"]
"""What a search can be narrowed to: a :data:`ChunkKind` or a :data:`FileKind`."""

OPEN = 2**62
"""``to_seq`` of a chunk that is still valid."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage that can be found by a search.

    Attributes:
        id: Unique in the index; the same passage of the same content always has the same id. The id of a
            message ends with a colon and the number of the part, from 0.
        text: The text that a hit shows.
        context: Words prepended to ``text`` for ranking only: path and symbol, the previous turn, the date.
        kind: Where it comes from.
        path: File, relative to the artifacts root or to its source; empty for messages.
        start_line: First line in the file, from 1; 0 if there are no lines.
        end_line: Last line, inclusive.
        symbol: Definition or heading that the passage belongs to ("Client.fetch", "Results > Table 2").
        source: Name of a read-only source; empty for the workspace itself.
        content_id: Blob id or content hash of the whole file.
        actor: Who wrote or said it.
        at: When, UTC ISO 8601.
        seq: Event that brought it.
        file_kind: What its file is for; empty if it is not of a file.
        to_seq: Event that made it invalid; :data:`OPEN` while it is valid. The chunk is visible ``as_of`` a
            seq if ``seq <= as_of < to_seq``.
    """

    id: str
    text: str
    kind: ChunkKind
    context: str = ""
    path: str = ""
    start_line: int = 0
    end_line: int = 0
    symbol: str = ""
    source: str = ""
    content_id: str = ""
    actor: str = ""
    at: str = ""
    seq: int = 0
    file_kind: FileKind | Literal[""] = ""
    to_seq: int = OPEN


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a search; every field that is set must match.

    Attributes:
        kinds: Any of these kinds of passages or of files; all if empty. ``source`` is both: source code, and
            whatever is in a read-only source.
        path: A directory prefix (``src/api``) or a glob (``**/*.py``).
        source: Name of a read-only source; ``""`` for the workspace itself; ``None`` for both.
        actor: Exact actor, or a prefix that ends with a colon (``agent:``).
        since: ISO date or time, inclusive.
        before: ISO date or time, exclusive.
        as_of: Only chunks that were valid after this event; ``None`` for now.
    """

    kinds: tuple[ChunkKind | FileKind, ...] = ()
    path: str = ""
    source: str | None = None
    actor: str = ""
    since: str = ""
    before: str = ""
    as_of: int | None = None


class Ranked(msgspec.Struct, frozen=True):
    """A chunk and how well it matched; scores are comparable within one result only."""

    chunk: Chunk
    score: float


def is_symbol(chunk_id: str) -> bool:
    """Return whether a passage has only the signature and first line of documentation of a definition.

    >>> is_symbol("a:7:pay.py:s0"), is_symbol("a:7:pay.py:0")
    (True, False)
    """
    return chunk_id.count(":") > 1 and chunk_id.rpartition(":")[2].startswith("s")


class Searchable(Protocol):
    """What a search needs of an index."""

    def search_text(
        self, query: str, k: int, where: Filter, statistics: Statistics | None = None
    ) -> list[Ranked]:
        """Return the ``k`` best by BM25 over context and text, best first.

        Args:
            query: The query.
            k: Number of chunks.
            where: Restricts the search.
            statistics: Term statistics to rank by, where several indexes are searched as one; by default the
                index's own.
        """
        ...

    def search_vector(self, vector: Vector, k: int, where: Filter) -> list[Ranked]:
        """Return the ``k`` best by cosine similarity, best first; chunks without a vector are not found."""
        ...


class MemoryIndex(Searchable, Protocol):
    """The interface of every backend; ``tests/storage/index/test_contract.py`` checks each against it.

    A chunk that was put is found by the next search through any handle, in this process or another.
    """

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None = None) -> None:
        """Add chunks, replacing those of the same id; ``vectors`` are in the same order, or all absent."""
        ...

    def embed(self, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Set the vectors of chunks that are already in the index; unknown ids are ignored."""
        ...

    def close_chunks(self, *, path: str, seq: int, source: str = "") -> None:
        """End the validity of every open chunk of a file, because event ``seq`` changed or deleted it."""
        ...

    def statistics(self, terms: Iterable[str]) -> Statistics:
        """Return the term statistics of the open chunks, as they are now, for some terms."""
        ...

    def without_vectors(self, limit: int) -> list[Chunk]:
        """Return up to ``limit`` open chunks that have no vector yet, oldest first."""
        ...

    def get(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Return chunks by id; unknown ids are omitted."""
        ...

    def count(self, where: Filter | None = None) -> int:
        """Return how many chunks match; for ``None`` all of them, including closed ones."""
        ...

    def read_meta(self, key: str) -> str:
        """Return a small value stored beside the chunks (watermark, embedder); empty if there is none."""
        ...

    def write_meta(self, key: str, value: str) -> None:
        """Store a small value beside the chunks, durably ordered after every chunk that was put before it."""
        ...

    def forget_vectors(self) -> None:
        """Drop all vectors, for example when the embedder changes; text stays searchable."""
        ...

    def clear(self) -> None:
        """Drop everything."""
        ...

    def maintain(self) -> None:
        """Compact and prune; called by the owner, in the background, never on the write path."""
        ...

    def close(self) -> None:
        """Flush buffers and release files."""
        ...
