"""The ranking formula that every backend scores by, in one place.

Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3) with the
never negative idf of Lucene, so that a word which every chunk holds still finds them:

    score(d, q) = sum over the distinct terms t of q of  w(t) * f * (K1 + 1) / (f + K1 * (1 - B + B * |d| / avg))
    w(t)        = idf(t) * g * (K3 + 1) / (g + K3)
    idf(t)      = ln(1 + (N - n + 0.5) / (n + 0.5))

``g`` is how often ``t`` occurs in ``q`` (what a long question names again is what it is about), ``f`` how often it
occurs in ``d``, ``|d|`` how many terms ``d`` has, ``avg`` the mean of that over the index,
``N`` the number of chunks and ``n`` how many of them hold ``t``. ``N``, ``n`` and ``avg`` are those of all open chunks of
the index, whatever the filter, so that a filter never changes an order, and neither do old versions of a file.
"""

import math
from collections.abc import Mapping
from typing import Protocol

import msgspec

K1 = 1.2
B = 0.75
K3 = 1.2
MAX_TERMS = 48
"""A longer query is ranked by its weightiest terms."""


class Statistics(Protocol):
    """What the formula needs to know of an index as a whole."""

    def totals(self) -> tuple[int, int]:
        """How many open chunks there are, and how many terms in all of them."""
        ...

    def frequency(self, term: str) -> int:
        """How many open chunks hold ``term``."""
        ...


class Weights(msgspec.Struct, frozen=True):
    """A query made ready: the weight of each term, and the mean length of a chunk."""

    terms: dict[str, float]
    mean_length: float


def weigh(terms: Mapping[str, int], statistics: Statistics) -> Weights:
    """Weigh the terms of a query, each with how often it occurs; of more than :data:`MAX_TERMS`, the weightiest stay."""
    docs, length = statistics.totals()
    weights = {
        term: _idf(docs, statistics.frequency(term)) * often * (K3 + 1) / (often + K3)
        for term, often in terms.items()
    }
    if len(weights) > MAX_TERMS:
        weights = dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_TERMS])
    return Weights(weights, length / docs if docs else 1.0)


def score(weights: Weights, counts: Mapping[str, int], length: int) -> float:
    """Score one chunk, given how often it holds each term and how many terms it has."""
    damping = K1 * (1 - B + B * length / weights.mean_length)
    total = 0.0
    for term, weight in weights.terms.items():
        f = counts.get(term, 0)
        if f:
            total += weight * f * (K1 + 1) / (f + damping)
    return total


def _idf(docs: int, frequency: int) -> float:
    n = min(frequency, docs)
    return math.log(1 + (docs - n + 0.5) / (n + 0.5))
