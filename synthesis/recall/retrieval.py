"""Retrieval: one ranked list out of what the memory index finds by words and by meaning.

Both rankings are fused by a convex combination of their scores, each brought to 0..1 between its best and its floor
(Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023). How
much each counts is read from the rankings themselves (:func:`balance`): the one whose best stands out from the rest
knows more. What the query quotes (a phrase, a hash, a line of an error) and a chunk holds to the letter comes first,
whatever the scores say; of passages that say nearly the same, the best one stays. The order is total: equal scores go
by id.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

import msgspec

from agentx.storage.index.port import Chunk, ChunkKind, Filter, MemoryIndex, Ranked, Vector

DEPTH = 50
"""How many of each ranking are fused, at least."""

STANDS_OUT_AT = 20
"""The place in a ranking that its best is compared with."""

MEANING_GAIN: Mapping[ChunkKind, float] = {
    "message": 2.0,
    "tool": 2.0,
    "memory": 2.0,
    "artifact": 3.0,
    "source": 3.0,
}
"""How much more the fall of a cosine tells than the same fall of BM25, by the kind of passage: a cosine falls by less where
both rankings know as much, and a question shares fewer words with the code that answers it than with a talk. Measured."""

AGENT_SHARE = 0.9
"""What the score of an agent's message counts for: it repeats the words of what it answers, and the person's own words
are what a question about them looks for."""

LATER_SHARE = 0.8
"""What the score of a later part of a long message counts for: its beginning says what it is about."""

QUOTED_DEPTH = 300
"""How many matches of a quoted phrase's words are looked through for the phrase itself."""

QUOTED_WORDS = 8
"""What has more words than this is looked for no deeper than the query: few chunks hold so many of them."""

SCORE_DIGITS = 6
"""Fused scores are rounded to this, so that the order of near ties depends on no processor; ties go by id."""

MAX_NEEDLES = 4
MAX_QUERY_CHARS = 20_000
MAX_NEEDLE_CHARS = 400
NEAR_DUPLICATE = 0.9
"""Two texts of which so much of all words is shared say the same."""

_QUOTED = re.compile(
    r'"([^"\n]{3,400})"|`([^`\n]{3,400})`|“([^”\n]{3,400})”|(?<!\w)\'([^\'\n]{3,400})\'(?!\w)'
)
_HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b")
_LAST_NAME = re.compile(r"\.|, | > ")
_LATER_PART = re.compile(r":[1-9][0-9]*$")
_FILES = ("artifact", "source")
_MIN_LINE_CHARS = 12
_MIN_LINE_WORDS = 3
_MIN_DUPLICATE_WORDS = 8


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found, and where it comes from.

    Attributes:
        id: Id of the chunk.
        text: The passage.
        score: Fused score, 0 to 1 unless other weights are given; compares within one answer only.
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

    lexical: float = 0.5
    vector: float = 0.5


def retrieve(
    index: MemoryIndex,
    query: str,
    vector: Vector | None,
    k: int,
    where: Filter,
    *,
    weights: Weights | None = None,
) -> list[SearchHit]:
    """Find the ``k`` best passages for a query.

    Args:
        index: Where to look.
        query: Words, in any form; never parsed as a query language.
        vector: Its embedding, by the embedder that the index was fed from; ``None`` ranks by words alone.
        k: How many hits at most.
        where: What to look at.
        weights: How much each ranking counts; ``None`` lets :func:`balance` decide.

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
    depth = max(DEPTH, 2 * k)
    with ThreadPoolExecutor(1) as beside:  # both wait for the index, not for Python
        meaning = beside.submit(index.search_vector, vector, depth, where) if vector is not None else None
        lexical = index.search_text(query, depth, where)
        by_meaning = meaning.result() if meaning else []
    needles = exact_needles(query)
    found = [ranked.chunk.text for ranked in (*lexical, *by_meaning)]
    missing = [needle for needle in needles if needle != query.strip() and not _any_holds(found, needle)]
    quoted = [hit for needle in missing for hit in index.search_text(needle, _deep(needle, depth), where)]
    by_kind = {kind: weights or balance(lexical, by_meaning, gain) for kind, gain in MEANING_GAIN.items()}
    hits = _fuse(lexical, by_meaning, quoted, by_kind, depth)
    wholes = list(map(_with_words, needles))
    held = {hit.id: _held(hit.text, wholes) for hit in hits}
    wanted = [hit for hit in hits if hit.lexical_rank or hit.vector_rank or held[hit.id]]
    wanted.sort(key=lambda hit: (-held[hit.id], -hit.score, hit.id))
    return _distinct(wanted, k)


def to_embed(chunk: Chunk) -> str:
    r"""What an embedder is given of a chunk: who says what, and the context behind it.

    A model reads a text from its beginning, up to a limit, and the beginning weighs most: with the context in front,
    neighbouring turns look alike. A passage of a file has path and symbol in front: a definition seldom says what its file
    is about. Where the file is only numbered, a passage that holds the name of its definition or section stands alone.

    >>> to_embed(Chunk(id="a", kind="message", text="Two weeks.", context="Ann How long?", actor="user:Ann"))
    'Ann: Two weeks.\nAnn How long?'
    """
    if chunk.kind in _FILES and any(map(str.isalpha, PurePosixPath(chunk.path).stem)):
        return f"{chunk.context}\n{chunk.text}"
    speaker = chunk.actor.rpartition(":")[2] if chunk.kind == "message" else ""
    said = f"{speaker}: {chunk.text}" if speaker else chunk.text
    name = _LAST_NAME.split(chunk.symbol)[-1]
    names_itself = chunk.kind in _FILES and name and name in chunk.text
    return said if names_itself or not chunk.context else f"{said}\n{chunk.context}"


def balance(lexical: Sequence[Ranked], by_meaning: Sequence[Ranked], gain: float) -> Weights:
    """Decide how much words count and how much meaning does, by how far the best of each stands out.

    With ``drop = (s1 - s20) / s1`` of a ranking, where ``sN`` is its N-th score::

        vector = (gain * drop of cosine)^2 / ((gain * drop of cosine)^2 + (drop of BM25)^2),   lexical = 1 - vector

    Words that twenty chunks hold alike tell nothing apart, and then meaning decides; a rare name is held by few, and
    then words do. Both drops shrink as an index grows, so their ratio stays. The idea is that of predictors of query
    performance by the spread of scores (Shtok et al., "Predicting Query Performance by Query-Drift Estimation", ACM
    TOIS 2012); the formula is our own, measured in ``docs/search.md``.

    Args:
        lexical: What was found by words, best first.
        by_meaning: What was found by meaning, best first.
        gain: How much more the fall of a cosine tells; see :data:`MEANING_GAIN`.

    >>> balance([], [], 2.0)
    Weights(lexical=0.5, vector=0.5)
    """
    # Of fewer matches by words the rest score 0; by meaning every chunk has a score, so the last is the least there is.
    words = _drop(lexical, 0.0)
    meaning = gain * _drop(by_meaning, by_meaning[-1].score) if by_meaning else 0.0
    total = words**2 + meaning**2
    return Weights(words**2 / total, meaning**2 / total) if total else Weights()


def _drop(ranked: Sequence[Ranked], beyond: float) -> float:
    """How far the score falls on the way down, as a share of the best; ``beyond`` is what stands below the last."""
    if not ranked or ranked[0].score <= 0:
        return 0.0
    low = ranked[STANDS_OUT_AT - 1].score if len(ranked) >= STANDS_OUT_AT else beyond
    return min((ranked[0].score - low) / ranked[0].score, 1.0)


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


def _deep(needle: str, depth: int) -> int:
    """How many matches of a needle's words are looked through for it."""
    return max(depth, QUOTED_DEPTH) if len(needle.split()) <= QUOTED_WORDS else depth


def _any_holds(texts: Iterable[str], needle: str) -> bool:
    wanted = [_with_words(needle)]
    return any(_held(text, wanted) for text in texts)


def _with_words(needle: str) -> tuple[str, list[str]]:
    plain = _plain(needle)
    return plain, plain.split()


def _held(text: str, needles: Sequence[tuple[str, list[str]]]) -> int:
    """How many plain needles a text holds, each given with its words: most texts lack one, which is quickly seen."""
    folded = text.casefold()
    likely = [needle for needle, words in needles if all(word in folded for word in words)]
    plain = _plain(text) if likely else ""
    return sum(needle in plain for needle in likely)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _fuse(
    lexical: Sequence[Ranked],
    by_meaning: Sequence[Ranked],
    quoted: Sequence[Ranked],
    weights: Mapping[ChunkKind, Weights],
    depth: int,
) -> list[SearchHit]:
    lexical_rank = {ranked.chunk.id: rank for rank, ranked in enumerate(lexical, 1)}
    vector_rank = {ranked.chunk.id: rank for rank, ranked in enumerate(by_meaning, 1)}
    by_words, by_sense = _levels(lexical, depth), _levels(by_meaning, depth)
    chunks = {ranked.chunk.id: ranked.chunk for ranked in (*lexical, *by_meaning, *quoted)}
    hits = []
    for i, chunk in chunks.items():
        each = weights[chunk.kind]
        score = each.lexical * by_words.get(i, 0.0) + each.vector * by_sense.get(i, 0.0)
        score = round(score * _share(chunk), SCORE_DIGITS)
        hits.append(as_hit(chunk, score, lexical_rank.get(i, 0), vector_rank.get(i, 0)))
    return hits


def _share(chunk: Chunk) -> float:
    if chunk.kind != "message":
        return 1.0
    by_whom = AGENT_SHARE if chunk.actor.startswith("agent:") else 1.0
    return by_whom * (LATER_SHARE if _LATER_PART.search(chunk.id) else 1.0)


def _levels(ranked: Sequence[Ranked], depth: int) -> dict[str, float]:
    """Scores between the best, 1, and the floor, 0: what the first chunk that is not in the list can have at most."""
    if not ranked:
        return {}
    top, last = ranked[0].score, ranked[-1].score
    floor = last if len(ranked) >= depth else min(last, 0.0)
    return {one.chunk.id: (one.score - floor) / (top - floor) if top > floor else 1.0 for one in ranked}


def as_hit(chunk: Chunk, score: float = 0.0, lexical_rank: int = 0, vector_rank: int = 0) -> SearchHit:
    """A chunk as a search gives it."""
    return SearchHit(
        id=chunk.id,
        text=chunk.text,
        score=score,
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
    bags: dict[int, list[frozenset[str]]] = {}
    for hit in hits:
        plain = _plain(hit.text)
        bag = frozenset(plain.split())
        alike = range(int(NEAR_DUPLICATE * len(bag)), int(len(bag) / NEAR_DUPLICATE) + 2)
        if plain in texts or any(_nearly_same(bag, other) for size in alike for other in bags.get(size, ())):
            continue
        kept.append(hit)
        texts.add(plain)
        bags.setdefault(len(bag), []).append(bag)
        if len(kept) == k:
            break
    return kept


def _nearly_same(one: frozenset[str], other: frozenset[str]) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    if shorter < max(_MIN_DUPLICATE_WORDS, NEAR_DUPLICATE * longer):
        return False
    return len(one & other) >= NEAR_DUPLICATE * len(one | other)
