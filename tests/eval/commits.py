"""The section ``commit_localisation``: the files that a commit changed, found by its message among the files of its tree.

Each project gets one index of the product, which goes from tree to tree, the nearest one next: the passages that a step takes
away are closed, those that it brings are put, and a search sees the open ones. So each passage is cut, analysed and embedded
once, however many trees hold it. The question is asked through ``retrieve_files``, by words and meaning where MiniLM is installed,
and by words alone, which is shown as well.

The floor is BM25 over whole files with their paths, in the same run, by a few lines of its own.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

import msgspec

from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter, Vector
from agentx.synthesis.chunking import chunk_file
from agentx.synthesis.embedding import Embedder
from agentx.synthesis.recall.file_retrieval import retrieve_files
from agentx.synthesis.recall.retrieval import to_embed
from tests.eval.backends import installed_embedder
from tests.eval.data import Row, rows
from tests.figures import Figure

Told = Callable[[str], None]
Passages = Callable[[str, str], dict[str, Chunk]]
"""The passages of a path and a blob, by id."""

FIRST = 5
ALL_AT_5, MRR = 0.88, 0.78
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def commits(data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """Score the product and the floor on every query whose files stand in its tree."""
    folder = data / "commit_localisation"
    queries = [row for row in rows(folder / "queries.jsonl.gz") if row.get("gold_files") and row.get("tree")]
    texts = {row["sha"]: row["text"] for row in rows(folder / "blobs.jsonl.gz")}
    if not queries or not texts:
        return
    embedder = installed_embedder()
    orders: dict[str, list[tuple[Row, list[str]]]] = {"product": [], "words": [], "floor": []}
    for project in sorted({row["repo"] for row in queries}):
        chain = _nearest_first([row for row in queries if row["repo"] == project])
        cut = _cutter(texts)
        vectors = _embedded(chain, cut, embedder, lambda text, name=project: told(f"{name}, {text}"))
        index = _Tree(cut, vectors)
        for number, row in enumerate(chain):
            told(f"{project}, {number} of {len(chain)} messages")
            index.become(row["tree"])
            vector = embedder.embed_query(row["query"]) if embedder else None
            k = len(row["tree"])
            orders["product"].append((row, index.files(row["query"], vector, k)))
            orders["words"].append(
                (row, index.files(row["query"], None, k) if embedder else orders["product"][-1][1])
            )
    told("the floor")
    tokens = {sha: Counter(_words(text)) for sha, text in texts.items()}
    orders["floor"] = [(row, _floor(row, tokens)) for row in queries]
    yield from _figures(orders)


Measure = Callable[[Row, Sequence[str]], float]


def _figures(orders: Mapping[str, Sequence[tuple[Row, list[str]]]]) -> Iterator[Figure]:
    said = f"commits: all changed files in the first {FIRST}, {len(orders['product'])} messages"
    for key, measured, measure, target in (
        ("all_at_5", said, _all_found, ALL_AT_5),
        ("mrr", "commits: MRR of the first changed file", _reciprocal, MRR),
    ):
        values = {name: _mean(measure(*one) for one in some) for name, some in orders.items()}
        halves = [_mean(measure(*one) for one in _half(orders["product"], start)) for start in (0, 1)]
        aim = max(target, values["floor"])
        beside = (
            f"BM25 over whole files {values['floor']:.3f}; words alone {values['words']:.3f}; "
            f"halves {halves[0]:.3f}, {halves[1]:.3f}"
        )
        yield Figure(
            f"commit_localisation.{key}",
            measured,
            values["product"],
            aim,
            aim,
            more_is_better=True,
            beside=beside,
        )


def _half(found: Sequence[tuple[Row, list[str]]], start: int) -> list[tuple[Row, list[str]]]:
    """Every other message of each project, by the order of the data."""
    by_name = sorted(found, key=lambda one: (one[0]["repo"], one[0].get("qid", "")))
    return by_name[start::2]


class _Tree:
    """An index that holds one tree at a time open."""

    def __init__(self, cut: Passages, vectors: Mapping[str, Vector]) -> None:
        self._index = InMemoryIndex()
        self._cut = cut
        self._vectors = vectors
        self._files: dict[str, str] = {}
        self._steps = 0

    def become(self, tree: Mapping[str, str]) -> None:
        """Close what the tree lacks, put what it has more."""
        self._steps += 1
        old = {pair for pair in self._files.items() if pair not in tree.items()}
        new = {pair for pair in tree.items() if pair not in self._files.items()}
        gone = {i: chunk for path, sha in old for i, chunk in self._cut(path, sha).items()}
        come = {i: chunk for path, sha in new for i, chunk in self._cut(path, sha).items()}
        ended = [msgspec.structs.replace(c, to_seq=self._steps) for i, c in gone.items() if i not in come]
        fresh = [chunk for i, chunk in come.items() if i not in gone]
        for chunks in (ended, fresh):
            self._index.put(chunks, [self._vectors[chunk.id] for chunk in chunks] if self._vectors else None)
        self._files = dict(tree)

    def files(self, query: str, vector: Vector | None, k: int) -> list[str]:
        return [hit.path for hit in retrieve_files(self._index, query, vector, k, Filter())]


def _nearest_first(queries: list[Row]) -> list[Row]:
    """The queries in such an order that each tree differs little from the one before it."""
    left = {number: frozenset(row["tree"].items()) for number, row in enumerate(queries)}
    chain, last = [], frozenset[tuple[str, str]]()
    while left:
        number = min(left, key=lambda one: (len(left[one] ^ last), one))
        last = left.pop(number)
        chain.append(queries[number])
    return chain


def _cutter(texts: Mapping[str, str]) -> Passages:
    known: dict[tuple[str, str], dict[str, Chunk]] = {}

    def cut(path: str, sha: str) -> dict[str, Chunk]:
        if (path, sha) not in known:
            chunks = {}
            for piece in chunk_file(path, texts.get(sha, "")):
                name = blake2b(f"{path}\0{piece.context}\0{piece.text}".encode(), digest_size=12).hexdigest()
                chunks[name] = Chunk(
                    id=name,
                    text=piece.text,
                    context=piece.context,
                    kind="artifact",
                    path=path,
                    symbol=piece.symbol,
                )
            known[path, sha] = chunks
        return known[path, sha]

    return cut


def _embedded(
    chain: Sequence[Row], cut: Passages, embedder: Embedder | None, told: Told
) -> dict[str, Vector]:
    """The vector of each passage of all trees, by id; none without a model."""
    told("cutting")
    chunks = {i: c for row in chain for path, sha in row["tree"].items() for i, c in cut(path, sha).items()}
    if embedder is None:
        return {}
    vectors: dict[str, Vector] = {}
    with ThreadPoolExecutor(os.cpu_count()) as several:
        made = several.map(lambda chunk: embedder.embed_passages([to_embed(chunk)])[0], chunks.values())
        for name, vector in zip(chunks, made, strict=True):
            vectors[name] = vector
            if len(vectors) % 100 == 0:
                told(f"embedding, {len(vectors):,} of {len(chunks):,} passages")
    return vectors


def _all_found(row: Row, order: Sequence[str]) -> float:
    return float(set(row["gold_files"]) <= set(order[:FIRST]))


def _reciprocal(row: Row, order: Sequence[str]) -> float:
    return next((1 / rank for rank, path in enumerate(order, 1) if path in row["gold_files"]), 0.0)


def _mean(values: Iterator[float]) -> float:
    every = list(values)
    return sum(every) / len(every) if every else 0.0


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _floor(row: Row, tokens: Mapping[str, Counter[str]]) -> list[str]:
    files = {path: tokens.get(sha, Counter()) + Counter(_words(path)) for path, sha in row["tree"].items()}
    lengths = {path: words.total() for path, words in files.items()}
    mean = sum(lengths.values()) / len(lengths) or 1.0
    scores: Counter[str] = Counter(dict.fromkeys(files, 0.0))
    for word in _words(row["query"]):
        holders = [path for path, words in files.items() if word in words]
        idf = math.log(1 + (len(files) - len(holders) + 0.5) / (len(holders) + 0.5))
        for path in holders:
            often = files[path][word]
            scores[path] += idf * often * 2.5 / (often + 1.5 * (0.25 + 0.75 * lengths[path] / mean))
    return sorted(scores, key=lambda path: (-scores[path], path))
