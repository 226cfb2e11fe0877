"""The ranking formula that every backend scores by, in one place.

Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3) with the
never negative idf of Lucene, so that a word which every chunk holds still finds them:

    score(d, q) = sum over the distinct terms t of q of  idf(t) * f * (K1 + 1) / (f + K1 * (1 - B + B * |d| / avg))
    idf(t)      = ln(1 + (N - n + 0.5) / (n + 0.5))

``f`` is how often ``t`` occurs in ``d``, ``|d|`` how many terms ``d`` has, ``avg`` the mean of that over the index,
``N`` the number of chunks and ``n`` how many of them hold ``t``. ``N``, ``n`` and ``avg`` are those of the whole index,
whatever the filter, so that a filter never changes an order.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

K1 = 1.2
B = 0.75
MAX_TERMS = 48
"""A longer query is ranked by its rarest terms."""


class Statistics(Protocol):
    """What the formula needs to know of an index as a whole."""

    def totals(self) -> tuple[int, int]:
        """How many chunks there are, and how many terms in all of them."""
        ...

    def frequency(self, term: str) -> int:
        """How many chunks hold ``term``."""
        ...


class Weights(msgspec.Struct, frozen=True):
    """A query made ready: the idf of each term, and the mean length of a chunk."""

    idf: dict[str, float]
    mean_length: float


def weigh(terms: Iterable[str], statistics: Statistics) -> Weights:
    """Weigh the distinct terms of a query; of more than :data:`MAX_TERMS`, the rarest are kept."""
    docs, length = statistics.totals()
    idf = {term: _idf(docs, statistics.frequency(term)) for term in terms}
    if len(idf) > MAX_TERMS:
        idf = dict(sorted(idf.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_TERMS])
    return Weights(idf, length / docs if docs else 1.0)


def score(weights: Weights, counts: Mapping[str, int], length: int) -> float:
    """Score one chunk, given how often it holds each term and how many terms it has."""
    damping = K1 * (1 - B + B * length / weights.mean_length)
    total = 0.0
    for term, idf in weights.idf.items():
        f = counts.get(term, 0)
        if f:
            total += idf * f * (K1 + 1) / (f + damping)
    return total


def _idf(docs: int, frequency: int) -> float:
    n = min(frequency, docs)
    return math.log(1 + (docs - n + 0.5) / (n + 0.5))
