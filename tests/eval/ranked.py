"""What the sections about ranking share: a collection of passages with questions, asked through the product, and floors.

A *unit* is what a question is answered by (a turn, a message, a function); a hit names one through its ``content_id``.
The floors are simple on purpose and use none of the product's ranking.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from agentx.settings import read_settings
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter, MemoryIndex, Vector
from agentx.synthesis.embedding import Embedder, ModelUnavailable, open_embedder
from agentx.synthesis.recall.retrieval import retrieve, to_embed

HITS = 25
"""How many are asked for; the product looks equally deep for ten. What stands beyond counts as not found."""

Ranking = list[str]
Told = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """One question, and the units that answer it."""

    text: str
    gold: frozenset[str]
    category: str = ""


@dataclass(frozen=True)
class Collection:
    """What is looked through as one index, and what is asked of it.

    Attributes:
        chunks: As the product cuts them; ``content_id`` names the unit of each.
        units: The bare text of each unit.
        around: The same with what stands around it (the turn before, the date), where there is such a thing.
    """

    name: str
    chunks: list[Chunk]
    units: dict[str, str]
    questions: list[Question]
    around: dict[str, str] = field(default_factory=dict)


@cache
def embedder() -> Embedder | None:
    """The model that is installed, or none."""
    try:
        return open_embedder("minilm", read_settings().cache_dir, lambda _: None)
    except ModelUnavailable:
        return None


_VECTORS: dict[str, Vector] = {}


def embed(texts: Iterable[str], told: Told = lambda _: None) -> list[Vector] | None:
    """Vectors of texts, each text embedded once in a run; ``None`` without a model."""
    model, wanted = embedder(), list(texts)
    if model is None:
        return None
    missing = list(dict.fromkeys(text for text in wanted if text not in _VECTORS))
    for number, text in enumerate(missing):
        if number % 100 == 0:
            told(f"embedding, {number:,} of {len(missing):,}")
        _VECTORS[text] = model.embed_passages([text])[0]
    return [_VECTORS[text] for text in wanted]


def filled(collection: Collection, told: Told) -> MemoryIndex:
    """The exact backend with the passages of a collection, embedded as the product embeds them."""
    index = InMemoryIndex()
    index.put(collection.chunks, embed(map(to_embed, collection.chunks), told))
    return index


def ask(index: MemoryIndex, questions: Sequence[Question], told: Told = lambda _: None) -> list[Ranking]:
    """The units that the product names for each question, best first."""
    vectors = embed((question.text for question in questions), told)
    rankings = []
    for number, question in enumerate(questions):
        hits = retrieve(index, question.text, vectors[number] if vectors else None, HITS, Filter())
        rankings.append(list(dict.fromkeys(hit.content_id for hit in hits)))
    return rankings


def recall(ranking: Ranking, gold: frozenset[str], k: int) -> float:
    """Share of what answers a question among the first ``k``."""
    return len(gold.intersection(ranking[:k])) / len(gold)


def reciprocal_rank(ranking: Ranking, gold: frozenset[str]) -> float:
    """One over the place of the first that answers, 0 where none is found."""
    return next((1 / place for place, unit in enumerate(ranking, 1) if unit in gold), 0.0)


def mean(values: Iterable[float]) -> float:
    """The mean, 0 of nothing."""
    found = list(values)
    return statistics.fmean(found) if found else 0.0


# --- floors ------------------------------------------------------------------------------------------------------


def floors(collection: Collection, told: Told) -> dict[str, list[Ranking]]:
    """What simple ways find: BM25 (with what stands around, too), vectors alone, and both fused evenly."""
    asked = [question.text for question in collection.questions]
    names = list(collection.units)
    scores = {"BM25": _bm25(list(collection.units.values()), asked)}
    words = "BM25"
    if collection.around:
        words = "BM25 with what stands around"
        scores[words] = _bm25([collection.around[name] for name in names], asked)
    units, questions = embed(collection.units.values(), told), embed(asked, told)
    if units and questions:
        scores["vectors"] = np.array(questions) @ np.array(units).T
        scores["even fusion"] = _even(scores[words]) + _even(scores["vectors"])
    return {name: [_ranked(row, names) for row in matrix] for name, matrix in scores.items()}


Matrix = npt.NDArray[np.floating]


def _bm25(texts: Sequence[str], queries: Sequence[str]) -> Matrix:
    """Okapi BM25 over lower-cased words."""
    counts = [Counter(_words(text)) for text in texts]
    lengths = np.array([max(count.total(), 1) for count in counts], float)
    damping = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    holders: dict[str, list[tuple[int, int]]] = {}
    for place, count in enumerate(counts):
        for word, often in count.items():
            holders.setdefault(word, []).append((place, often))
    scores = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        for word in set(_words(query)) & holders.keys():
            places, often = (np.array(column) for column in zip(*holders[word], strict=True))
            idf = math.log(1 + (len(texts) - len(places) + 0.5) / (len(places) + 0.5))
            scores[row, places] += idf * often * 2.2 / (often + damping[places])
    return scores


def bm25_orders(texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """For each query the places of all texts, best first."""
    return np.argsort(-_bm25(texts, queries), axis=1, kind="stable").tolist()


def vector_orders(texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """The same by the vectors of whole texts; nothing without a model."""
    units, asked = embed(texts), embed(queries)
    if not units or not asked:
        return []
    return np.argsort(-(np.array(asked) @ np.array(units).T), axis=1, kind="stable").tolist()


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _even(scores: Matrix) -> Matrix:
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    levels: Matrix = (scores - low) / np.maximum(high - low, 1e-9)
    return levels


def _ranked(scores: Matrix, names: Sequence[str]) -> Ranking:
    return [names[place] for place in np.argsort(-scores, kind="stable")[:HITS]]


def least(target: float | None, values: Iterable[float]) -> float:
    """The aim of a figure, never below the best of its floors."""
    return max(*values, target or 0.0)


def beside(values: Mapping[str, float]) -> str:
    """The floors of one figure in words."""
    return "; ".join(f"{name} {value:.3f}" for name, value in values.items())
