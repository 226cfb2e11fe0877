"""The section ``search``: the LanceDB backend beside the exact reference, over 100,000 passages.

The passages are cut by the product out of what the other folders hold: source files, messages of long chats, turns of
conversations, functions. Where that is too little, the rest are mixtures: the first half of one real passage and the second half of
another. :data:`EMBEDDED` of them, drawn at random, and all questions have vectors of MiniLM; every other passage has the vector of a drawn
one, moved aside so that both have a cosine of about 0.8, as passages on the same matter have. Without the installed
model all vectors are made so, around random centres.

The questions are those of the folders (commit messages, questions about code, chats and conversations). Each is asked of both
backends through the same ``retrieve``, by words and by meaning together. What is timed is that call alone; the query's
embedding is left out.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle, islice, zip_longest
from pathlib import Path

import numpy as np

from agentx.settings import read_settings
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter, MemoryIndex, Vector
from agentx.synthesis.chunking import Piece, chunk_file, chunk_message
from agentx.synthesis.embedding import Embedder, ModelUnavailable, open_embedder
from agentx.synthesis.recall.retrieval import retrieve, to_embed
from tests.eval.data import rows
from tests.figures import Figure

Told = Callable[[str], None]

PASSAGES = 100_000
EMBEDDED = 1_000
COMPARED = 60
ASKED = 120
WARM_UP = 10
ASIDE = 0.75
"""How far a vector is moved aside; the cosine with where it was is 1 / sqrt(1 + ASIDE ** 2)."""
_BATCH = 4_096
_DAYS = 28

NARROWED = {
    "path": Filter(path="src/**/*.py"),
    "below": Filter(path="dulwich"),
    "kind": Filter(kinds=("message",)),
    "actor": Filter(actor="agent:"),
    "time": Filter(since="2026-01-10", before="2026-01-12"),
    "commit": Filter(as_of=PASSAGES // 2),
    "source": Filter(source="pool"),
}


def search(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Fill both backends alike and ask both alike."""
    queries = _queries(data)
    if not queries:
        return
    told("cutting passages")
    chunks = list(islice(_passages(data), PASSAGES))
    if not chunks:
        return
    embedder = installed_embedder()
    told("embedding")
    vectors = _vectors([to_embed(chunk) for chunk in chunks], embedder)
    asked = [_asked(query, embedder, vectors, number) for number, query in enumerate(queries)]
    lance, exact = LanceIndex(scratch / "search-index"), InMemoryIndex()
    _fill(lance, chunks, vectors, lambda done: told(f"LanceDB, {done:,} passages"))
    told("LanceDB, merging")
    lance.flush()
    lance.maintain()
    yield from _times(lance, queries, asked, told)
    _fill(exact, chunks, vectors, lambda done: told(f"reference, {done:,} passages"))
    yield from _overlaps(lance, exact, list(zip(queries, asked, strict=True))[:COMPARED], told)
    lance.close()


def _times(index: LanceIndex, queries: list[str], asked: list[Vector], told: Told) -> Iterator[Figure]:
    told("asking")
    forms = {"plain": Filter()} | NARROWED
    clock: dict[str, list[float]] = {name: [] for name in forms}
    processor: list[float] = []
    for turn in range(ASKED + WARM_UP):
        query, vector = queries[turn % len(queries)], asked[turn % len(queries)]
        for name, where in forms.items():
            start, used = time.perf_counter(), time.process_time()
            retrieve(index, query, vector, 10, where)
            if turn >= WARM_UP:
                clock[name].append((time.perf_counter() - start) * 1e3)
                if name == "plain":
                    processor.append((time.process_time() - used) * 1e3)
    count = f"{index.count():,} passages"
    taken = sorted(clock["plain"])
    said = f"processor {statistics.median(processor):.0f} ms in all threads"
    yield Figure(
        "search.p50_ms", f"hybrid search, {count}, p50, ms", statistics.median(taken), 25, 25, beside=said
    )
    yield Figure("search.p95_ms", f"hybrid search, {count}, p95, ms", taken[len(taken) * 95 // 100])
    for name, where in NARROWED.items():
        said = f"the same, narrowed by {name}, p50, ms"
        beside = f"{index.count(where):,} passages pass"
        yield Figure(f"search.{name}_p50_ms", said, statistics.median(clock[name]), 25, 25, beside=beside)


def _overlaps(
    lance: MemoryIndex, exact: MemoryIndex, asked: Sequence[tuple[str, Vector]], told: Told
) -> Iterator[Figure]:
    shares: dict[str, list[float]] = {"plain": [], "narrowed": []}
    narrowed = cycle(NARROWED.values())
    for number, (query, vector) in enumerate(asked):
        told(f"comparing, {number} of {len(asked)}")
        for name, where in (("plain", Filter()), ("narrowed", next(narrowed))):
            here, there = ([hit.id for hit in retrieve(i, query, vector, 10, where)] for i in (lance, exact))
            if there:
                shares[name].append(len(set(here) & set(there)) / len(there))
    said = "share of the reference's first ten that LanceDB gives"
    yield Figure(
        "search.overlap_at_10", said, statistics.mean(shares["plain"]), 0.95, 0.95, more_is_better=True
    )
    if shares["narrowed"]:
        figure = statistics.mean(shares["narrowed"])
        said += ", narrowed"
        yield Figure("search.narrowed_overlap_at_10", said, figure, 0.95, 0.95, more_is_better=True)


def _fill(
    index: MemoryIndex, chunks: Sequence[Chunk], vectors: Sequence[Vector], told: Callable[[int], None]
) -> None:
    for start in range(0, len(chunks), _BATCH):
        told(start)
        index.put(chunks[start : start + _BATCH], vectors[start : start + _BATCH])


def _queries(data: Path) -> list[str]:
    """Of each folder in turn, so that the first ones are of every sort."""
    named = (
        ("commit_localisation", "query"),
        ("cosqa", "query"),
        ("beam", "question"),
        ("locomo", "question"),
    )
    folders = [
        [str(row[field]) for row in islice(rows(data / folder / "queries.jsonl.gz"), ASKED) if row.get(field)]
        for folder, field in named
    ]
    return [query for several in zip_longest(*folders) for query in several if query][:ASKED]


def _passages(data: Path) -> Iterator[Chunk]:
    """Real ones, and then mixtures of them for ever."""
    real: list[Piece] = []
    seen: set[tuple[str, str]] = set()
    for number, (kind, path, actor, piece) in enumerate(_real(data)):
        if (piece.context, piece.text) not in seen:
            seen.add((piece.context, piece.text))
            real.append(piece)
            yield _chunk(len(real), kind, path, actor, piece)
    draw = random.Random(1)
    for number in range(len(real) + 1, PASSAGES + 1) if real else ():
        first, second = draw.choice(real), draw.choice(real)
        half, rest = first.text[: len(first.text) // 2], second.text[len(second.text) // 2 :]
        mixed = Piece(text=f"{half}\n{rest}", context=first.context, symbol=first.symbol)
        yield _chunk(number, "source", f"mixed/{number % 1_000}.txt", "", mixed)


def _chunk(number: int, kind: str, path: str, actor: str, piece: Piece) -> Chunk:
    return Chunk(
        id=f"p{number}", kind=kind, path=path, actor=actor, text=piece.text, context=piece.context, symbol=piece.symbol,
        source="pool" if kind == "source" else "", seq=number,
        at="" if kind == "source" else f"2026-01-{1 + number % _DAYS:02}T09:00:00.000000Z",
    )  # fmt: skip


def _real(data: Path) -> Iterator[tuple[str, str, str, Piece]]:
    paths = {
        sha: path
        for row in rows(data / "commit_localisation" / "queries.jsonl.gz")
        for path, sha in row["tree"].items()
    }
    for row in rows(data / "commit_localisation" / "blobs.jsonl.gz"):
        path = paths.get(row["sha"], "unnamed.py")
        for piece in chunk_file(path, row["text"]):
            yield "artifact", path, "agent:writer", piece
    for row in rows(data / "cosqa" / "corpus.jsonl.gz"):
        for piece in chunk_file(f"functions/{row['id']}.py", row["code"]):
            yield "artifact", f"functions/{row['id']}.py", "agent:reader", piece
    said = chain(
        ((row["role"], row["content"]) for row in rows(data / "beam" / "messages.jsonl.gz")),
        ((f"user:{row['speaker']}", row["text"]) for row in rows(data / "locomo" / "turns.jsonl.gz")),
    )
    before = ""
    for actor, text in said:
        for piece in chunk_message(text or "", before, "2026-01-05T09:00:00Z", actor):
            yield "message", "", actor, piece
        before = text or ""


def installed_embedder() -> Embedder | None:
    """MiniLM, where it is installed."""
    try:
        return open_embedder("minilm", read_settings().cache_dir, lambda _: None)
    except ModelUnavailable:
        return None


def _vectors(texts: Sequence[str], embedder: Embedder | None) -> list[Vector]:
    """One for each text: of the model for some, and for the others made to lie beside those."""
    rng = np.random.default_rng(1)
    drawn = sorted(random.Random(2).sample(range(len(texts)), min(EMBEDDED, len(texts))))
    if embedder:
        centres = np.array(embedder.embed_passages([texts[number] for number in drawn]), np.float32)
    else:
        centres = _unit(rng.normal(size=(len(drawn), 384)))
    vectors = list(_beside(centres[rng.integers(0, len(centres), len(texts))], rng))
    for number, vector in zip(drawn, centres, strict=True):
        vectors[number] = vector
    return vectors


def _asked(query: str, embedder: Embedder | None, vectors: Sequence[Vector], number: int) -> Vector:
    if embedder:
        return embedder.embed_query(query)
    near: Vector = _beside(vectors[number * 97 % len(vectors)][None, :], np.random.default_rng(number))[0]
    return near


def _beside(centres: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    away = rng.normal(size=centres.shape, scale=ASIDE / np.sqrt(centres.shape[1]))
    return _unit(centres + away)


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
