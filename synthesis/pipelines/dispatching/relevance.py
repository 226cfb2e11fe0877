"""Rank the sections of a file for a task: first by headings that name its item, then by its words."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentx.storage.index import bm25
from agentx.storage.index.analysis import query_terms
from agentx.synthesis.pipelines.dispatching.passages import Section


class Wanted:
    """Ranks sections by their relevance for a task.

    The item that it is for has the values ``id``, ``number`` and ``title``.
    """

    def __init__(self, about: str, item: Mapping[str, Any]) -> None:
        self._terms = query_terms(about)
        self._named = [re.compile(pattern, re.IGNORECASE) for pattern in _names(item)]

    def order(self, sections: Sequence[Section]) -> list[int]:
        """Return indices of sections by relevance: by heading, then by search (BM25), then the latest."""
        counts = [one.terms for one in sections]
        weights = bm25.weigh(self._terms, _Within(self._terms, counts))
        rank = [
            (any(name.search(one.heading) for name in self._named), bm25.score(weights, found, found.total()))
            for one, found in zip(sections, counts, strict=True)
        ]
        return sorted(range(len(sections)), key=lambda n: (*rank[n], n), reverse=True)


class _Within:
    """BM25 statistics over the sections of one file."""

    def __init__(self, terms: Mapping[str, int], counts: Sequence[Counter[str]]) -> None:
        self._docs, self._length = len(counts), sum(found.total() for found in counts)
        self._often = Counter(term for found in counts for term in terms.keys() & found.keys())

    def totals(self) -> tuple[int, int]:
        """Return the number of sections, and of terms in all of them.

        There is at least 1 term, because lengths are divided by it.
        """
        return self._docs, max(self._length, 1)

    def frequency(self, term: str) -> int:
        """Return the number of sections that contain a term."""
        return self._often[term]


def _names(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield patterns that find an item in a heading: its key or number, and its title."""
    key, title = str(item.get("id", "")), str(item.get("title", "")).strip()
    if key and not key.isdigit():
        yield rf"(?<!\w){re.escape(key)}(?!\w)"
    number = key if key.isdigit() else "" if re.search(r"\d", key) else str(item.get("number", ""))
    if number.isdigit():
        yield rf"(?<!\d)(?<!\d\.)0*{int(number)}(?!\d|\.\d)"
    if len(title) > 2:  # noqa: PLR2004 - less than a word
        yield re.escape(title)
