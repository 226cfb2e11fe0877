"""Several indexes searched as one, so that their hits are ranked together.

Scores of separate searches cannot be compared: BM25 weighs a word by how rare it is in one index, and the
fusion scales each ranking to its own best hit. So all indexes are ranked with the sum of their term
statistics, and the rankings are merged before the fusion: the result is that of one index with all chunks.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.index import bm25
from agentx.storage.index.analysis import query_terms
from agentx.storage.index.memory_index import best
from agentx.storage.index.port import Filter, Ranked, Searchable, Vector
from agentx.synthesis.recall.retrieval import SearchHit

AT_ONCE = 8
"""Number of indexes that are searched at once."""

_MARK = "|"
_T = TypeVar("_T")


class Source(Searchable, Protocol):
    """An index among several."""

    def statistics(self, terms: Sequence[str]) -> bm25.Statistics:
        """Return the term statistics of the open chunks, for some terms."""
        ...


class Across:
    """Several indexes as one; used for one search, then closed.

    An index that fails is left out from then on.

    Args:
        indexes: The indexes, by name.
        without_vectors: Names of those that are ranked by words alone.

    Attributes:
        failed: Why an index was left out, by its name.
    """

    def __init__(self, indexes: Mapping[str, Source], without_vectors: frozenset[str] = frozenset()) -> None:
        self._names = list(indexes)
        self._indexes = list(indexes.values())
        self._without = without_vectors
        self._threads = ThreadPoolExecutor(AT_ONCE)
        self.failed: dict[str, str] = {}

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def search_text(
        self, query: str, k: int, where: Filter, statistics: bm25.Statistics | None = None
    ) -> list[Ranked]:
        """Return the ``k`` best of all by BM25, with the statistics of all."""
        terms = list(query_terms(query))
        if statistics is None:
            known = [found for _, found in self._each(lambda one: one.statistics(terms))]
            statistics = bm25.added(known, terms)
        return self._merged(k, lambda one: one.search_text(query, k, where, statistics))

    def search_vector(self, vector: Vector, k: int, where: Filter) -> list[Ranked]:
        """Return the ``k`` best of all by cosine similarity."""
        return self._merged(k, lambda one: one.search_vector(vector, k, where), self._without)

    def named(self, hit: SearchHit) -> tuple[str, SearchHit]:
        """Return the name of the index that has a hit, and the hit as that index has it."""
        number, _, chunk_id = hit.id.partition(_MARK)
        source = hit.source.partition(_MARK)[2]
        return self._names[int(number)], msgspec.structs.replace(hit, id=chunk_id, source=source)

    def _merged(
        self, k: int, ask: Callable[[Source], list[Ranked]], without: frozenset[str] = frozenset()
    ) -> list[Ranked]:
        found = self._each(ask, without)
        return best(
            (
                (one.score, msgspec.structs.replace(one.chunk, **_apart(number, one)))
                for number, ranked in found
                for one in ranked
            ),
            k,
        )

    def _each(
        self, ask: Callable[[Source], _T], without: frozenset[str] = frozenset()
    ) -> list[tuple[int, _T]]:
        """Ask every index that works; return the answers with the indexes' numbers."""
        asked = [
            (number, self._threads.submit(ask, self._indexes[number]))
            for number, name in enumerate(self._names)
            if name not in self.failed and name not in without
        ]
        answers = []
        for number, answer in asked:
            try:
                answers.append((number, answer.result()))
            except AgentXError as error:
                self.failed[self._names[number]] = str(error)
        return answers


def _apart(number: int, one: Ranked) -> dict[str, str]:
    """Return an id and a source that no chunk of another index has: the ranking tells files apart by both."""
    return {"id": f"{number}{_MARK}{one.chunk.id}", "source": f"{number}{_MARK}{one.chunk.source}"}
