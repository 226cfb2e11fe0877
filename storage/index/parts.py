"""The parts of an index, searched together: the same answers as from its table, without LanceDB.

A row of a later part replaces those of the same id in earlier ones. By words every row is scored; sums are
made in float32, and the best are scored again exactly as the reference does. By meaning the nearest by the
signs of their vectors are compared exactly; a part of few rows is compared as a whole.

Memory is that of the pages that are used: the system drops them when it needs the room.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agentx.storage.index import bm25, filters
from agentx.storage.index.analysis import tokens_of
from agentx.storage.index.memory_index import SCORE_DIGITS, IndexRow, pack
from agentx.storage.index.part import Part, digest, signs
from agentx.storage.index.port import OPEN, Chunk, Filter, Vector
from agentx.storage.text import encodable

EXACT_ROWS = 4_096
"""Vectors up to which all are compared exactly; of more, at least so many."""

BY_SIGNS = 8
"""For each hit that is wanted, rows that are compared exactly because of the signs of their vectors."""

SHARE_BY_SIGNS = 40
"""And one of this many rows. Measured on 12,000 passages with MiniLM: 1,600 rows have 0.999 of the 50 nearest
and all of the ten nearest.
"""

_MARGIN = 1e-5
"""Relative error of a sum in float32 that is allowed for."""

_TIES = 256
"""Rows of the same score as the last that is wanted, which are compared by id."""

_SHARE_ADDED_UP = 16
"""If at most one of this many rows passes the filter, only those are scored, exactly at once."""

_MULTIPLIED_ROWS = 64
_ROWS_AT_ONCE = 1 << 14
"""Rows whose intermediate results stay in the processor's cache."""

Scored = list[tuple[float, Chunk]]


class IndexParts:
    """Some parts as one; immutable, and thread-safe.

    Args:
        parts: The parts, the oldest first.
        before: What was opened before, in which some of the first parts may be.
    """

    def __init__(self, parts: Sequence[Part], before: "IndexParts | None" = None) -> None:
        import numpy as np  # noqa: PLC0415  (heavy: loaded with the index)

        self.parts = tuple(parts)
        known = before.parts if before is not None and self.parts[: len(before.parts)] == before.parts else ()
        shown = [mask.copy() for mask in before.shown] if before is not None and known else []
        for number, part in enumerate(self.parts[len(known) :], len(known)):
            ids = part.array("ids")
            for earlier, mask in zip(self.parts[:number], shown, strict=True):
                mask[earlier.rows_of(ids)] = False
            shown.append(np.ones(part.count, "?"))
        self.shown: tuple[Any, ...] = tuple(shown)
        self._passing: dict[Filter, list[Any]] = {}

    def match(self, weights: bm25.Weights, k: int, where: Filter, hidden: frozenset[str]) -> Scored:
        """Return the ``k`` best by BM25, and more if scores are equal; ids in ``hidden`` are left out."""
        terms = [(digest(term), weight) for term, weight in weights.terms.items()]
        found = [
            (part, *_by_words(part, mask, terms, weights.mean_length, k))
            for part, mask in self._open_to(where, hidden)
        ]
        return _decoded(found, k)

    def nearest(self, vector: Vector, k: int, where: Filter, hidden: frozenset[str]) -> Scored:
        """Return the ``k`` nearest by cosine, as far as the signs tell; ids in ``hidden`` are left out."""
        import numpy as np  # noqa: PLC0415

        query: Vector = np.frombuffer(pack([vector], 1)[0], "<f4")
        among = [
            (part, mask & part.array("embedded"))
            for part, mask in self._open_to(where, hidden)
            if part.dimensions == len(query)
        ]
        found = []
        for part, rows in _near_by_signs(among, query, k):
            near = rows[_highest(_products(part, rows, query), k)]
            part.require_unit(near)
            found.append((part, near, _cosines(part, near, query)))
        return _decoded(found, k)

    def oldest(self, limit: int, hidden: frozenset[str], *, every: bool) -> list[Chunk]:
        """Return the oldest open chunks without a vector, or of all if ``every``."""
        import numpy as np  # noqa: PLC0415

        found = []
        for part, mask in self._open_to(Filter(), hidden):
            rows = np.flatnonzero(mask if every else mask & ~part.array("embedded"))
            found.append((part, rows, part.array("seq")[rows]))
        seqs = np.concatenate([np.zeros(0, "<i8"), *(seq for *_, seq in found)])
        last = int(np.partition(seqs, limit - 1)[limit - 1]) if len(seqs) > limit else OPEN
        chunks = [chunk for part, rows, seq in found for chunk in part.chunks(rows[seq <= last])]
        return sorted(chunks, key=lambda chunk: (chunk.seq, chunk.id))[:limit]

    def get(self, ids: Iterable[str]) -> list[IndexRow]:
        """Return the rows of some ids."""
        import numpy as np  # noqa: PLC0415

        wanted = {digest(one): one for one in ids}
        if not wanted:
            return []
        keys = np.array(list(wanted), "<u8")
        rows = []
        for part, shown in zip(self.parts, self.shown, strict=True):
            rows += [_row(part, int(place)) for place in part.rows_of(keys) if shown[place]]
        return [row for row in rows if wanted.get(digest(row.chunk.id)) == row.chunk.id]

    def of_paths(self, paths: Iterable[str]) -> list[IndexRow]:
        """Return the open rows of some files."""
        import numpy as np  # noqa: PLC0415

        rows = []
        wanted = sorted(set(paths))
        for part, mask in self._open_to(Filter(), frozenset()) if wanted else ():
            codes = part.codes_of("path", wanted)
            having = np.flatnonzero(mask & np.isin(part.array("path"), codes)) if codes else ()
            rows += [_row(part, int(place)) for place in having]
        return rows

    def count(self, where: Filter | None, without: Iterable[str]) -> int:
        """Return how many rows pass a filter, all for ``None``, not counting those with some ids."""
        hidden = frozenset(without)
        if where is None:
            return sum(int(self._unhidden(place, hidden).sum()) for place in range(len(self.parts)))
        return sum(int(mask.sum()) for _, mask in self._open_to(where, hidden))

    def _open_to(self, where: Filter, hidden: frozenset[str]) -> list[tuple[Part, Any]]:
        """Return for each part which rows pass a filter and are not hidden."""
        passing = self._passing.get(where)
        if passing is None:
            pairs = zip(self.parts, self.shown, strict=True)
            passing = [shown & _passes(part, where) for part, shown in pairs]
            if len(self._passing) >= 8:  # noqa: PLR2004 - a few are asked for again and again
                self._passing.clear()
            self._passing[where] = passing
        if hidden:
            passing = [mask & self._unhidden(place, hidden) for place, mask in enumerate(passing)]
        return list(zip(self.parts, passing, strict=True))

    def _unhidden(self, place: int, hidden: frozenset[str]) -> Any:
        import numpy as np  # noqa: PLC0415

        shown = self.shown[place]
        rows = self.parts[place].rows_of(np.fromiter(map(digest, hidden), "<u8", len(hidden)))
        if len(rows):
            shown = shown.copy()
            shown[rows] = False
        return shown


def _row(part: Part, row: int) -> IndexRow:
    (chunk,) = part.chunks([row])
    vector = part.vectors[row].tobytes() if part.dimensions and part.array("embedded")[row] else b""
    return IndexRow(chunk, " ".join(tokens_of(chunk)), vector)


def _passes(part: Part, where: Filter) -> Any:
    """Return which rows pass a filter, as :func:`agentx.storage.index.filters.predicate` decides."""
    to_seq = part.array("to_seq")
    if where.as_of is None:
        passing = to_seq == OPEN
    else:
        passing = (part.array("seq") <= where.as_of) & (to_seq > where.as_of)
    if where.kinds:
        passing &= _is_one_of(part, "kind", where.kinds) | _is_one_of(part, "file_kind", where.kinds)
    if where.source is not None:
        passing &= _is_one_of(part, "source", [encodable(where.source)])
    if where.actor:
        actor, is_prefix = encodable(where.actor), where.actor.endswith(":")
        passing &= _fits(part, "actor", lambda one: one == actor or (is_prefix and one.startswith(actor)))
    if where.path:
        passing &= _fits(part, "path", filters.path_test(where.path))
    if where.since or where.before:
        times = part.values("at")
        first = bisect_left(times, filters.canonical_time(where.since)) if where.since else 0
        last = bisect_left(times, filters.canonical_time(where.before)) if where.before else len(times)
        first = max(first, 1) if times and not times[0] else first
        passing &= (part.array("at") >= first) & (part.array("at") < last)
    return passing


def _is_one_of(part: Part, field: str, wanted: Iterable[str]) -> Any:
    import numpy as np  # noqa: PLC0415

    return np.isin(part.array(field), part.codes_of(field, wanted))


def _fits(part: Part, field: str, test: Callable[[str], bool]) -> Any:
    import numpy as np  # noqa: PLC0415

    values = part.values(field)
    return np.fromiter(map(test, values), "?", len(values))[part.array(field)]


def _by_words(
    part: Part, mask: Any, terms: Sequence[tuple[int, float]], mean_length: float, k: int
) -> tuple[Any, Any]:
    """Return the rows of a part with the best scores, and these."""
    import numpy as np  # noqa: PLC0415

    places = [part.dense_place(term) for term, _ in terms]
    few = np.count_nonzero(mask) * _SHARE_ADDED_UP <= part.count
    found = np.flatnonzero(mask) if few else _likely(part, mask, terms, places, mean_length, k)
    scores = np.zeros(len(found))
    exact = bm25.K1 * (1 - bm25.B + bm25.B * part.array("lengths")[found] / mean_length)
    for (term, weight), place in zip(terms, places, strict=True):
        often = part.dense(place)[found] if place >= 0 else _often(part, term, found)
        often = often.astype("<f8")
        scores += weight * often * (bm25.K1 + 1) / (often + exact)
    having = scores > 0
    return found[having], scores[having]


def _likely(
    part: Part,
    mask: Any,
    terms: Sequence[tuple[int, float]],
    places: Sequence[int],
    mean_length: float,
    k: int,
) -> Any:
    """Return the rows of a part that may have the best scores: those of the highest sums in float32."""
    import numpy as np  # noqa: PLC0415

    lengths = part.array("lengths")
    by_length = np.float32(bm25.K1 * bm25.B / mean_length)
    base = np.float32(bm25.K1 * (1 - bm25.B))
    columns = [
        (part.dense(place), np.float32(weight))
        for (_, weight), place in zip(terms, places, strict=True)
        if place >= 0
    ]
    sparse = [(term, weight) for (term, weight), place in zip(terms, places, strict=True) if place < 0]
    sums = np.zeros(part.count, "<f4")
    damped, added = np.empty(_ROWS_AT_ONCE, "<f4"), np.empty(_ROWS_AT_ONCE, "<f4")
    for start in range(0, part.count if columns else 0, _ROWS_AT_ONCE):
        some = slice(start, min(start + _ROWS_AT_ONCE, part.count))
        damping, beside = damped[: some.stop - start], added[: some.stop - start]
        np.multiply(lengths[some], by_length, out=damping, dtype="<f4")
        damping += base
        for column, factor in columns:
            np.add(column[some], damping, out=beside, dtype="<f4")
            np.divide(column[some], beside, out=beside, dtype="<f4")
            beside *= factor
            sums[some] += beside
    for term, weight in sparse:
        rows, often = part.postings(term)
        if len(rows):
            counted = often.astype("<f4")
            sums[rows] += np.float32(weight) * counted / (counted + lengths[rows] * by_length + base)
    sums[~mask] = 0
    found = np.flatnonzero(sums)
    if len(found) > k:
        least = np.partition(sums, len(sums) - k)[len(sums) - k]
        found = np.flatnonzero(sums >= max(least * (1 - _MARGIN), np.finfo("<f4").tiny))[: k + _TIES]
    return found


def _often(part: Part, term: int, found: Any) -> Any:
    """Return how often each of some rows contains a sparse term."""
    import numpy as np  # noqa: PLC0415

    rows, often = part.postings(term)
    if not len(rows):
        return np.zeros(len(found), "<u2")
    places = np.minimum(np.searchsorted(rows, found), len(rows) - 1)
    return np.where(rows[places] == found, often[places], 0)


def _near_by_signs(among: Sequence[tuple[Part, Any]], query: Vector, k: int) -> list[tuple[Part, Any]]:
    """Return the rows of each part to compare: all if they are few, else those of the most alike signs."""
    import numpy as np  # noqa: PLC0415

    most = max(EXACT_ROWS, BY_SIGNS * k + sum(part.count for part, _ in among) // SHARE_BY_SIGNS)
    if sum(int(np.count_nonzero(mask)) for _, mask in among) <= most:
        return [(part, np.flatnonzero(mask)) for part, mask in among]
    mine = signs(query[np.newaxis]).reshape(-1)
    none = 64 * len(mine) + 1
    different = []
    numbers = np.zeros(none + 1, "<i8")
    beside, count = np.empty(_ROWS_AT_ONCE, "<u8"), np.empty(_ROWS_AT_ONCE, "u1")
    for part, mask in among:
        bits = np.zeros(part.count, "<u2")
        for start in range(0, part.count, _ROWS_AT_ONCE):
            some = bits[start : start + _ROWS_AT_ONCE]
            size = len(some)
            for one, others in zip(mine, part.signs[:, start : start + size], strict=True):
                np.bitwise_xor(others, one, out=beside[:size])
                some += np.bitwise_count(beside[:size], out=count[:size])
        bits[~mask] = none
        numbers += np.bincount(bits, minlength=none + 1)
        different.append(bits)
    at_most = int(numbers.cumsum().searchsorted(most))
    pairs = zip(among, different, strict=True)
    return [(part, np.flatnonzero(bits <= min(at_most, none - 1))) for (part, _), bits in pairs]


def _products(part: Part, rows: Any, query: Vector) -> Any:
    """Return the scalar products of rows with a vector, in float32.

    The rows are copied into one small array: memory that is new costs more than the products.
    """
    import numpy as np  # noqa: PLC0415

    found = np.empty(len(rows), "<f4")
    copied = np.empty((min(len(rows), _MULTIPLIED_ROWS), part.dimensions), "<f4")
    for start in range(0, len(rows), _MULTIPLIED_ROWS):
        some = rows[start : start + _MULTIPLIED_ROWS]
        np.take(part.vectors, some, axis=0, out=copied[: len(some)], mode="clip")
        with np.errstate(all="ignore"):
            np.matmul(copied[: len(some)], query, out=found[start : start + len(some)])
    part.require("vectors", np.isfinite(found).all())
    return found


def _cosines(part: Part, rows: Any, query: Vector) -> Any:
    """Return the cosines of rows, rounded as the reference rounds them.

    In pieces so small that the matrix product starts no threads, which would wait for each other on a busy
    machine.
    """
    import numpy as np  # noqa: PLC0415

    found = np.zeros(len(rows))
    for start in range(0, len(rows), _MULTIPLIED_ROWS):
        some = slice(start, start + _MULTIPLIED_ROWS)
        found[some] = part.vectors[rows[some]] @ query
    return found


def _highest(scores: Any, k: int) -> Any:
    """Return the places of the ``k`` highest scores, and of some that are equal to the last."""
    import numpy as np  # noqa: PLC0415

    if len(scores) <= k:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= least - _MARGIN)[: k + _TIES]


def _decoded(found: Sequence[tuple[Part, Any, Any]], k: int) -> Scored:
    """Return the best ``k`` rows as chunks, and those that score like the last; rows and scores by part."""
    import numpy as np  # noqa: PLC0415

    every = np.concatenate([np.zeros(0), *(scores for *_, scores in found)])
    least = (
        np.partition(every, len(every) - k)[len(every) - k] - 10**-SCORE_DIGITS if len(every) > k else -np.inf
    )
    best: Scored = []
    for part, rows, scores in found:
        kept = scores >= least
        best += zip(scores[kept].tolist(), part.chunks(rows[kept]), strict=True)
    return best
