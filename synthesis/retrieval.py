"""Retrieval: one ranked list out of what the memory index finds by words and by meaning.

Both rankings are fused by reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009): a chunk scores
``weight / (K + rank)`` in each list that has it. So no score is compared with one of another kind. What the query quotes (a
phrase, a hash, a line of an error) and a chunk holds to the letter comes first, whatever the ranks say; of passages
that say nearly the same, the best one stays. The order is total: equal scores go by id.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from agentx.storage.index.port import Chunk, ChunkKind, Filter, MemoryIndex, Ranked, Vector

K = 60
"""The constant of reciprocal rank fusion, as in the paper."""

QUOTED_DEPTH = 300
"""How many matches of a quoted phrase's words are looked through for the phrase itself."""

MAX_NEEDLES = 4
MAX_QUERY_CHARS = 20_000
MAX_NEEDLE_CHARS = 400
NEAR_DUPLICATE = 0.9
"""Two texts of which so much of all words is shared say the same."""

_QUOTED = re.compile(
    r'"([^"\n]{3,400})"|`([^`\n]{3,400})`|“([^”\n]{3,400})”|(?<!\w)\'([^\'\n]{3,400})\'(?!\w)'
)
_HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b")
_MIN_LINE_CHARS = 12
_MIN_LINE_WORDS = 3
_MIN_DUPLICATE_WORDS = 8


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found, and where it comes from.

    Attributes:
        id: Id of the chunk.
        text: The passage.
        score: Fused score; compares within one answer only.
        kind: Where it comes from.
        path: File, relative to the artifacts root or its source; empty for messages.
        start_line: First line, from 1; 0 where there are no lines.
        end_line: Last line, inclusive.
        symbol: Definition or heading that it belongs to.
        source: Name of a read-only source; empty for the workspace itself.
        seq: Event that brought it.
        at: When, UTC ISO 8601.
        actor: Who wrote or said it.
        content_id: Blob id or content hash of the whole file.
        commit: Git commit that holds the event, where the caller knows it; empty for sources.
        lexical_rank: Place among the matches by words, from 1; 0 where it is not among them.
        vector_rank: Place among the matches by meaning, from 1; 0 where it is not among them.
    """

    id: str
    text: str
    score: float
    kind: ChunkKind
    path: str = ""
    start_line: int = 0
    end_line: int = 0
    symbol: str = ""
    source: str = ""
    seq: int = 0
    at: str = ""
    actor: str = ""
    content_id: str = ""
    commit: str = ""
    lexical_rank: int = 0
    vector_rank: int = 0


class Weights(msgspec.Struct, frozen=True):
    """How much each ranking counts in the fusion."""

    lexical: float = 1.0
    vector: float = 1.0


EVEN = Weights()


def retrieve(
    index: MemoryIndex,
    query: str,
    vector: Vector | None,
    k: int,
    where: Filter,
    *,
    weights: Weights = EVEN,
) -> list[SearchHit]:
    """Find the ``k`` best passages for a query.

    Args:
        index: Where to look.
        query: Words, in any form; never parsed as a query language.
        vector: Its embedding, by the embedder that the index was fed from; ``None`` ranks by words alone.
        k: How many hits at most.
        where: What to look at.
        weights: How much each ranking counts.

    Raises:
        UsageError: A date or path of the filter cannot be read.
        IndexDamaged: The index cannot be read.

    >>> from agentx.storage.index.memory import InMemoryIndex
    >>> index = InMemoryIndex()
    >>> index.put([Chunk(id="a", kind="message", text="Retry payments."), Chunk(id="b", kind="message", text="Lunch?")])
    >>> [hit.text for hit in retrieve(index, "payment retries", None, 5, Filter())]
    ['Retry payments.']
    """
    if k <= 0:
        return []
    depth = max(50, 4 * k)
    lexical = index.search_text(query, depth, where)
    by_meaning = index.search_vector(vector, depth, where) if vector is not None else []
    needles = exact_needles(query)
    apart = [needle for needle in needles if needle != query.strip()]
    quoted = [hit for needle in apart for hit in index.search_text(needle, max(depth, QUOTED_DEPTH), where)]
    hits = _fuse(lexical, by_meaning, quoted, weights)
    held = {hit.id: _held(hit.text, needles) for hit in hits}
    wanted = [hit for hit in hits if hit.lexical_rank or hit.vector_rank or held[hit.id]]
    wanted.sort(key=lambda hit: (-held[hit.id], -hit.score, hit.id))
    return _distinct(wanted, k)


def exact_needles(query: str) -> list[str]:
    """What a chunk should hold to the letter: quoted phrases, hashes, and lines long enough to be pasted ones.

    >>> exact_needles('where does "connection reset" come from, since 3f2a91c?')
    ['connection reset', '3f2a91c', 'where does "connection reset" come from, since 3f2a91c?']
    """
    head = query[:MAX_QUERY_CHARS]
    quoted = (next(group for group in match.groups() if group) for match in _QUOTED.finditer(head))
    lines = (line.strip() for line in head.splitlines())
    pasted = (line for line in lines if len(line) >= _MIN_LINE_CHARS and len(line.split()) >= _MIN_LINE_WORDS)
    needles = [*quoted, *_HASH.findall(head), *(line for line in pasted if len(line) <= MAX_NEEDLE_CHARS)]
    return list(dict.fromkeys(needles))[:MAX_NEEDLES]


def _held(text: str, needles: Iterable[str]) -> int:
    plain = _plain(text)
    return sum(_plain(needle) in plain for needle in needles)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _fuse(
    lexical: Sequence[Ranked], by_meaning: Sequence[Ranked], quoted: Sequence[Ranked], weights: Weights
) -> list[SearchHit]:
    lexical_rank = {ranked.chunk.id: rank for rank, ranked in enumerate(lexical, 1)}
    vector_rank = {ranked.chunk.id: rank for rank, ranked in enumerate(by_meaning, 1)}
    chunks = {ranked.chunk.id: ranked.chunk for ranked in (*lexical, *by_meaning, *quoted)}
    return [
        _hit(chunk, lexical_rank.get(i, 0), vector_rank.get(i, 0), weights) for i, chunk in chunks.items()
    ]


def _hit(chunk: Chunk, lexical_rank: int, vector_rank: int, weights: Weights) -> SearchHit:
    by_words = weights.lexical / (K + lexical_rank) if lexical_rank else 0.0
    by_meaning = weights.vector / (K + vector_rank) if vector_rank else 0.0
    return SearchHit(
        id=chunk.id,
        text=chunk.text,
        score=by_words + by_meaning,
        kind=chunk.kind,
        path=chunk.path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        symbol=chunk.symbol,
        source=chunk.source,
        seq=chunk.seq,
        at=chunk.at,
        actor=chunk.actor,
        content_id=chunk.content_id,
        lexical_rank=lexical_rank,
        vector_rank=vector_rank,
    )


def _distinct(hits: Iterable[SearchHit], k: int) -> list[SearchHit]:
    """The first ``k`` that do not say nearly the same as one before them."""
    kept: list[SearchHit] = []
    texts: set[str] = set()
    bags: list[frozenset[str]] = []
    for hit in hits:
        plain = _plain(hit.text)
        bag = frozenset(plain.split())
        if plain in texts or any(_nearly_same(bag, other) for other in bags):
            continue
        kept.append(hit)
        texts.add(plain)
        bags.append(bag)
        if len(kept) == k:
            break
    return kept


def _nearly_same(one: frozenset[str], other: frozenset[str]) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    if shorter < max(_MIN_DUPLICATE_WORDS, NEAR_DUPLICATE * longer):
        return False
    return len(one & other) >= NEAR_DUPLICATE * len(one | other)
