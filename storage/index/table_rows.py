"""The rows of the LanceDB table, for queries: its candidates, scored as the reference does."""

from collections import Counter
from collections.abc import Callable, Sequence

from agentx.storage.index import bm25, filters
from agentx.storage.index.lance_table import TableReader
from agentx.storage.index.memory_index import IndexRow, cosines
from agentx.storage.index.parts import Scored
from agentx.storage.index.port import OPEN, Chunk, Filter, Vector

_SPARE = 20
"""Candidates fetched beyond those requested: LanceDB orders them differently, and they are re-ranked here."""
_MOSTLY = 0.5
"""If more of the table is open, closed rows are filtered out here: LanceDB's filter takes 3 ms a search."""
_BARE_AHEAD = 1_024
_MAX_CANDIDATES = 1_000_000


class TableRows:
    """A table in one state; thread-safe.

    Args:
        table: The table.
    """

    def __init__(self, table: TableReader) -> None:
        self._table = table
        self._size = table.count("true", ())
        self._open_share = table.count(f"to_seq = {OPEN}", ()) / self._size if self._size else 0.0
        self._bare: tuple[int, list[IndexRow]] = 0, []

    def match(self, weights: bm25.Weights, k: int, where: Filter, hidden: frozenset[str]) -> Scored:
        """Return the ``k`` best by BM25, and some more; ids in ``hidden`` are left out."""
        words = " ".join(weights.terms)
        rows = self._best(k, where, hidden, lambda *asked: self._table.match(words, *asked))
        counted = [Counter(row.tokens.split(" ")) for row in rows]
        return [
            (bm25.score(weights, counts, counts.total()), row.chunk)
            for counts, row in zip(counted, rows, strict=True)
        ]

    def nearest(self, vector: Vector, k: int, where: Filter, hidden: frozenset[str]) -> Scored:
        """Return the ``k`` nearest by cosine, and some more; ids in ``hidden`` are left out."""
        rows = self._best(k, where, hidden, lambda *asked: self._table.nearest(vector, self._size, *asked))
        similar = cosines(vector, [row.vector for row in rows]) if rows else ()
        return [(float(score), row.chunk) for score, row in zip(similar, rows, strict=True)]

    def oldest(self, limit: int, hidden: frozenset[str], *, every: bool) -> list[Chunk]:
        """Return the oldest open chunks without a vector, or of all if ``every``."""
        rows = _visible(limit, limit, hidden, lambda number: self._oldest(number, every=every))
        return [row.chunk for row in rows]

    def get(self, ids: Sequence[str]) -> list[IndexRow]:
        """Return the rows of some ids."""
        return self._table.having("id", ids)

    def of_paths(self, paths: Sequence[str]) -> list[IndexRow]:
        """Return the open rows of some files."""
        return self._table.having("path", paths, f"to_seq = {OPEN}")

    def count(self, where: Filter | None, without: Sequence[str]) -> int:
        """Return how many rows pass a filter, all for ``None``, not counting those with some ids."""
        return self._table.count("true" if where is None else filters.sql(where), without=without)

    def _oldest(self, limit: int, *, every: bool) -> list[IndexRow]:
        """Return the oldest rows of the table, or those without a vector, which are kept."""
        if every:
            return self._table.oldest(limit, embedded=None)
        asked, rows = self._bare
        if asked < limit and len(rows) == asked:
            asked = max(limit, _BARE_AHEAD)
            rows = self._table.oldest(asked, embedded=False)
            self._bare = asked, rows
        return rows[:limit]

    def _best(
        self,
        k: int,
        where: Filter,
        hidden: frozenset[str],
        ask: Callable[[str, int], list[IndexRow]],
    ) -> list[IndexRow]:
        """Return the ``k`` best rows of the table, and some more.

        ``ask`` finds rows by a condition and a limit.
        """
        share = self._open_share if where.as_of is None else 0.0
        if share <= _MOSTLY:
            condition = filters.sql(where)
            return _visible(k, k + _SPARE, hidden, lambda limit: ask(condition, limit))
        condition = filters.sql(where, closed=True)

        def fetch(limit: int) -> list[IndexRow]:
            return ask(condition, limit)

        return _visible(k, int((k + _SPARE) / share), hidden, fetch, lambda row: row.chunk.to_seq == OPEN)


def _visible(
    wanted: int,
    limit: int,
    hidden: frozenset[str],
    fetch: Callable[[int], list[IndexRow]],
    keep: Callable[[IndexRow], bool] = lambda _: True,
) -> list[IndexRow]:
    """Fetch ``limit`` rows, and more until enough of them are kept and not hidden, or none are left."""
    limit += min(len(hidden), 32)
    while True:
        rows = fetch(min(limit, _MAX_CANDIDATES))
        seen = [row for row in rows if row.chunk.id not in hidden and keep(row)]
        if len(seen) >= wanted or len(rows) < limit:
            return seen
        limit *= 4
