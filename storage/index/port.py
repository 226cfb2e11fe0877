"""The port of the memory index: what is put in, how it is asked, and what every backend must do.

An index is a cache: it can be deleted at any time and is filled again from the history. It is fed with text and,
where there is an embedder, with vectors; it never computes one. Lexical and vector ranking are asked for apart and
fused in one place (:mod:`agentx.synthesis.recall.retrieval`), so that both backends are ranked by the same rule.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]
else:  # numpy is heavy, and most commands see no vector
    Vector = Any
"""One embedding: shape ``(dimensions,)``, float32, unit length."""

ChunkKind = Literal["artifact", "message", "tool", "memory", "source"]

OPEN = 2**62
"""``to_seq`` of a chunk that is still valid."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage that can be found.

    Attributes:
        id: Unique in the index; the same passage of the same content always has the same id. That of a message ends with
            a colon and the number of its part, from 0.
        text: What a hit shows.
        context: Words put in front of ``text`` for ranking only: path and symbol, the previous turn, the date.
        kind: Where it comes from.
        path: File, relative to the artifacts root or to its source; empty for messages.
        start_line: First line in the file, from 1; 0 where there are no lines.
        end_line: Last line, inclusive.
        symbol: Definition or heading that the passage belongs to ("Client.fetch", "Results > Table 2").
        source: Name of a read-only source; empty for the workspace itself.
        content_id: Blob id or content hash of the whole file.
        actor: Who wrote or said it.
        at: When, UTC ISO 8601.
        seq: Event that brought it.
        to_seq: Event that made it invalid; :data:`OPEN` while it stands. The chunk is visible ``as_of`` a seq when
            ``seq <= as_of < to_seq``.
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
    to_seq: int = OPEN


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Narrows a search; every field that is given must match.

    Attributes:
        kinds: Any of these kinds.
        path: A directory prefix (``src/api``) or a glob (``**/*.py``).
        source: Name of a read-only source; ``""`` for the workspace itself; ``None`` for both.
        actor: Exact actor, or a prefix that ends with a colon (``agent:``).
        since: ISO date or time, inclusive.
        before: ISO date or time, exclusive.
        as_of: Only what was valid after this event; ``None`` for now.
    """

    kinds: tuple[ChunkKind, ...] = ()
    path: str = ""
    source: str | None = None
    actor: str = ""
    since: str = ""
    before: str = ""
    as_of: int | None = None


class Ranked(msgspec.Struct, frozen=True):
    """A chunk and how well it matched; scores compare within one answer only."""

    chunk: Chunk
    score: float


class MemoryIndex(Protocol):
    """What every backend does; ``tests/storage/index/test_contract.py`` holds each to it.

    A chunk that was put is found by the next search, by whichever handle asks, in this process or another.
    """

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None = None) -> None:
        """Add chunks, replacing those of the same id; ``vectors`` stand in the same order, or are all absent."""
        ...

    def embed(self, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Give vectors to chunks that are in the index already; ids that are not there are passed over."""
        ...

    def close_chunks(self, *, path: str, seq: int, source: str = "") -> None:
        """End the validity of every open chunk of a file: it was changed or deleted by event ``seq``."""
        ...

    def search_text(self, query: str, k: int, where: Filter) -> list[Ranked]:
        """The ``k`` best by BM25 over context and text, best first."""
        ...

    def search_vector(self, vector: Vector, k: int, where: Filter) -> list[Ranked]:
        """The ``k`` best by cosine similarity, best first; chunks without a vector are not found."""
        ...

    def without_vectors(self, limit: int) -> list[Chunk]:
        """Up to ``limit`` open chunks that have no vector yet, oldest first."""
        ...

    def get(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Chunks by id; ids that are not there are left out."""
        ...

    def count(self, where: Filter | None = None) -> int:
        """How many chunks match; all of them, closed ones too, for ``None``."""
        ...

    def read_meta(self, key: str) -> str:
        """A small value kept beside the chunks (watermark, embedder); empty where there is none."""
        ...

    def write_meta(self, key: str, value: str) -> None:
        """Keep a small value beside the chunks, durably ordered after every chunk that was put before it."""
        ...

    def forget_vectors(self) -> None:
        """Drop all vectors, as after a change of the embedder; text stays searchable."""
        ...

    def clear(self) -> None:
        """Drop everything."""
        ...

    def maintain(self) -> None:
        """Compact and prune; called by the owner, in the background, never on the write path."""
        ...

    def close(self) -> None:
        """Flush what is buffered and release files."""
        ...
