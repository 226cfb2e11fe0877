"""Files for a query: which ones a change is about, told by all of their passages together.

A passage is found by its own words; a file is meant when several of its passages are found, or when the query names it.
So the passages of a file are added up, each counting less than the one before it, by words and by meaning apart, and the
words of its name count as well. Each of the three is brought to 0..1 between the files, and they are added by fixed weights
(measured in ``docs/search.md``).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from agentx.storage.index.analysis import query_terms
from agentx.storage.index.port import Chunk, Filter, MemoryIndex, Ranked, Vector
from agentx.synthesis.recall.retrieval import SCORE_DIGITS, SearchHit, as_hit

DEPTH = 200
"""How many passages of each ranking are added up."""

WORDS, MEANING, NAME = 1.0, 0.3, 0.26
"""What each sort of evidence counts."""

NEXT_BY_WORDS, NEXT_BY_MEANING = 0.4, 0.3
"""What the next passage of a file counts, as a share of the one before it."""

_File = tuple[str, str]


def retrieve_files(
    index: MemoryIndex, query: str, vector: Vector | None, k: int, where: Filter
) -> list[SearchHit]:
    r"""Find the ``k`` files that a query is most likely about: a change that is to be made, a commit message.

    Args:
        index: Where to look.
        query: Words, in any form. Of several lines the first counts twice: it says what the others explain.
        vector: Its embedding, by the embedder that the index was fed from; ``None`` ranks by words alone.
        k: How many files at most.
        where: What to look at; what is in no file is passed over.

    Returns:
        One hit for each file: the passage that speaks most for it, with the score of the file.

    Raises:
        UsageError: A date or path of the filter cannot be read.
        IndexDamaged: The index cannot be read.

    >>> from agentx.storage.index.memory import InMemoryIndex
    >>> index = InMemoryIndex()
    >>> text = {"a.py": "def pay(): retry()", "b.py": "def retry(): wait()", "retry.py": "def wait(): pass"}
    >>> index.put([Chunk(id=path, kind="artifact", path=path, text=text, context=path) for path, text in text.items()])
    >>> [hit.path for hit in retrieve_files(index, "wait before a retry", None, 5, Filter())]
    ['retry.py', 'b.py', 'a.py']
    """
    if k <= 0:
        return []
    first, _, rest = query.strip().partition("\n")
    lexical = _in_files(index.search_text(f"{first}\n{query}" if rest else query, DEPTH, where))
    by_meaning = _in_files(index.search_vector(vector, DEPTH, where)) if vector is not None else []
    best: dict[_File, Chunk] = {}
    for ranked in (*lexical, *by_meaning):
        best.setdefault(_file(ranked.chunk), ranked.chunk)
    # What the last of a list that was cut off has, every passage in it has; by meaning every chunk has a score.
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
    return [ranked for ranked in ranking if ranked.chunk.path]


def _added_up(ranking: Sequence[Ranked], floor: float, share: float) -> dict[_File, float]:
    """The scores of a file's passages, each counting ``share`` of the one before it; 1 for the best file."""
    found: dict[_File, float] = defaultdict(float)
    often: Counter[_File] = Counter()
    for ranked in ranking:
        file = _file(ranked.chunk)
        found[file] += (ranked.score - floor) * share ** often[file]
        often[file] += 1
    top = max(found.values(), default=0.0)
    return {file: score / top for file, score in found.items()} if top > 0 else {}


def _named(files: Iterable[_File], query: str) -> dict[_File, float]:
    """How much of a file's name the query says, 0 to 1; a word that many paths share counts little."""
    said = query_terms(query)
    names = {file: set(query_terms(PurePosixPath(file[1]).stem)) for file in files}
    holders = Counter(term for _, path in names for term in query_terms(path))
    weight = {term: math.log(1 + len(names) / many) for term, many in holders.items()}
    return {file: _share(name, said, weight) for file, name in names.items()}


def _share(name: Iterable[str], said: Mapping[str, int], weight: Mapping[str, float]) -> float:
    whole = sum(weight.get(term, 1.0) for term in name)
    return sum(weight.get(term, 1.0) for term in name if term in said) / whole if whole else 0.0
