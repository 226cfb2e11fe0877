"""File retrieval: rank files for a query by all of their passages together.

A passage is found by its own words. A file is relevant if several of its passages are found, or if the query
names it. So the scores of a file's passages are added up, each counting less than the one before it,
separately for words and meaning. The words of the file's name count as well. Each of the three scores is
normalised to 0..1 over the files, and they are added with fixed weights (measured in ``docs/evaluation.md``).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from agentx.storage.index.analysis import query_terms
from agentx.storage.index.port import Chunk, Filter, Ranked, Searchable, Vector, is_symbol
from agentx.synthesis.recall.file_prior import prior_of
from agentx.synthesis.recall.retrieval import SCORE_DIGITS, SearchHit, as_hit, retrieve

DEPTH = 200
"""Number of passages of each ranking that are added up."""

WORDS, MEANING, NAME = 1.0, 0.3, 0.26
"""Weight of each kind of evidence."""

NEXT_BY_WORDS, NEXT_BY_MEANING = 0.4, 0.3
"""Weight of a file's next passage, as a share of the one before it."""

_File = tuple[str, str]


def retrieve_files(
    index: Searchable, query: str, vector: Vector | None, k: int, where: Filter
) -> list[SearchHit]:
    r"""Find the ``k`` files that a query, such as a planned change or a commit message, is most likely about.

    Arguments and errors are those of :func:`agentx.synthesis.recall.retrieval.retrieve`. If the query has
    several lines, the first counts twice: the others explain it. Chunks outside files are ignored.

    Returns:
        One hit for each file: its best passage, with the score of the file.

    >>> from agentx.storage.index.memory_index import InMemoryIndex
    >>> index = InMemoryIndex()
    >>> text = {"a.py": "def pay(): retry()", "b.py": "def retry(): wait()", "retry.py": "def wait(): pass"}
    >>> index.put([Chunk(id=i, kind="artifact", path=i, text=code, context=i) for i, code in text.items()])
    >>> [hit.path for hit in retrieve_files(index, "wait before a retry", None, 5, Filter())]
    ['retry.py', 'b.py', 'a.py']
    """
    if k <= 0:
        return []
    if prior_of(query).first == "source":
        found = retrieve(index, query, vector, 2 * k, where, grouped=True)
        return [hit for hit in found if hit.path][:k]
    first, _, rest = query.strip().partition("\n")
    lexical = _in_files(index.search_text(f"{first}\n{query}" if rest else query, DEPTH, where))
    by_meaning = _in_files(index.search_vector(vector, DEPTH, where)) if vector is not None else []
    best: dict[_File, Chunk] = {}
    for ranked in (*lexical, *by_meaning):
        best.setdefault(_file(ranked.chunk), ranked.chunk)
    # Floor of a truncated list: the last score in it, which every listed passage reaches. By meaning, every
    # chunk has a score.
    cut_off = lexical[-1].score if len(lexical) == DEPTH else 0.0
    floor = by_meaning[-1].score if len(by_meaning) > 1 else 0.0
    evidence = (
        (WORDS, _added_up(lexical, cut_off, NEXT_BY_WORDS)),
        (MEANING, _added_up(by_meaning, floor, NEXT_BY_MEANING)),
        (NAME, _named(best, query)),
    )
    most = sum(weight for weight, levels in evidence if levels)
    scores = {
        file: sum(weight * levels.get(file, 0.0) for weight, levels in evidence) / most for file in best
    }
    ordered = sorted(scores, key=lambda file: (-round(scores[file], SCORE_DIGITS), file))
    ranks = [{ranked.chunk.id: rank for rank, ranked in enumerate(some, 1)} for some in (lexical, by_meaning)]
    return [
        as_hit(best[file], round(scores[file], SCORE_DIGITS), *(rank.get(best[file].id, 0) for rank in ranks))
        for file in ordered[:k]
    ]


def _file(chunk: Chunk) -> _File:
    return chunk.source, chunk.path


def _in_files(ranking: Iterable[Ranked]) -> list[Ranked]:
    return [ranked for ranked in ranking if ranked.chunk.path and not is_symbol(ranked.chunk.id)]


def _added_up(ranking: Sequence[Ranked], floor: float, share: float) -> dict[_File, float]:
    """Return the summed scores of each file's passages; the best file has 1.

    Each passage of a file counts ``share`` of the one before it.
    """
    found: dict[_File, float] = defaultdict(float)
    often: Counter[_File] = Counter()
    for ranked in ranking:
        file = _file(ranked.chunk)
        found[file] += (ranked.score - floor) * share ** often[file]
        often[file] += 1
    top = max(found.values(), default=0.0)
    return {file: score / top for file, score in found.items()} if top > 0 else {}


def _named(files: Iterable[_File], query: str) -> dict[_File, float]:
    """Return the share of each file's name that the query contains, 0 to 1.

    Words common to many paths weigh little.
    """
    said = query_terms(query)
    names = {file: set(query_terms(PurePosixPath(file[1]).stem)) for file in files}
    holders = Counter(term for _, path in names for term in query_terms(path))
    weight = {term: math.log(1 + len(names) / many) for term, many in holders.items()}
    shares: dict[_File, float] = {}
    for file, name in names.items():
        whole = sum(weight.get(term, 1.0) for term in name)
        shares[file] = sum(weight.get(term, 1.0) for term in name if term in said) / whole if whole else 0.0
    return shares
