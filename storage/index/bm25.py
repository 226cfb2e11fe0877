"""The ranking formula that every backend uses, in one place.

Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3)
with Lucene's idf, which is never negative, so that a word contained in every chunk still finds them:

    score(d, q) = sum over the distinct terms t of q of
                  w(t) * f * (K1 + 1) / (f + K1 * (1 - B + B * |d| / avg))
    w(t)        = idf(t) * g * (K3 + 1) / (g + K3)
    idf(t)      = ln(1 + (N - n + 0.5) / (n + 0.5))

``g`` is how often ``t`` occurs in ``q`` (a long question is about the words that it repeats), ``f`` how often
it occurs in ``d``, ``|d|`` the number of terms of ``d``, ``avg`` its mean over the index, ``N`` the number of
chunks, and ``n`` how many of them contain ``t``. ``N``, ``n`` and ``avg`` cover all open chunks of the index,
whatever the filter, so that neither a filter nor old versions of a file change the order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self

import msgspec

K1 = 1.2
B = 0.75
K3 = 1.2
MAX_TERMS = 48
"""A longer query is ranked by its terms of highest weight."""


class Statistics(Protocol):
    """The index-wide figures that the formula needs."""

    def totals(self) -> tuple[int, int]:
        """Return the number of open chunks, and the total number of their terms."""
        ...

    def frequency(self, term: str) -> int:
        """Return how many open chunks contain ``term``."""
        ...


class Counted(msgspec.Struct, frozen=True):
    """The figures of one or more indexes at one moment, for the terms of a query.

    Attributes:
        docs: Number of open chunks.
        length: Total number of their terms.
        frequencies: How many chunks contain each term.
    """

    docs: int = 0
    length: int = 0
    frequencies: Mapping[str, int] = {}

    @classmethod
    def of(cls, statistics: Statistics, terms: Iterable[str]) -> Self:
        """Take the figures of an index."""
        return cls(*statistics.totals(), {term: statistics.frequency(term) for term in terms})

    def totals(self) -> tuple[int, int]:
        """Return the number of open chunks, and the total number of their terms."""
        return self.docs, self.length

    def frequency(self, term: str) -> int:
        """Return how many open chunks contain ``term``."""
        return self.frequencies.get(term, 0)


def added(several: Iterable[Statistics], terms: Sequence[str]) -> Counted:
    """Return the figures of several indexes as if they were one."""
    known = [Counted.of(one, terms) for one in several]
    return Counted(
        sum(one.docs for one in known),
        sum(one.length for one in known),
        {term: sum(one.frequency(term) for one in known) for term in terms},
    )


class Weights(msgspec.Struct, frozen=True):
    """A prepared query: the weight of each term, and the mean length of a chunk."""

    terms: dict[str, float]
    mean_length: float


def weigh(terms: Mapping[str, int], statistics: Statistics) -> Weights:
    """Weigh the terms of a query, given how often each occurs.

    If there are more than :data:`MAX_TERMS`, those with the highest weight are kept.
    """
    docs, length = statistics.totals()
    weights: dict[str, float] = {}
    for term, often in terms.items():
        n = min(statistics.frequency(term), docs)
        weights[term] = math.log(1 + (docs - n + 0.5) / (n + 0.5)) * often * (K3 + 1) / (often + K3)
    if len(weights) > MAX_TERMS:
        weights = dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_TERMS])
    return Weights(weights, length / docs if docs else 1.0)


def score(weights: Weights, counts: Mapping[str, int], length: int) -> float:
    """Score one chunk, given how often it contains each term and how many terms it has."""
    damping = K1 * (1 - B + B * length / weights.mean_length)
    total = 0.0
    for term, weight in weights.terms.items():
        f = counts.get(term, 0)
        if f:
            total += weight * f * (K1 + 1) / (f + damping)
    return total
