"""Retrieval: merge the index's matches by words and by meaning into one ranked list.

Both rankings are fused by a convex combination of their scores, each normalised to 0..1 between its best and
its floor (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023). The
weights are derived from the rankings themselves (:func:`balance`): the ranking whose best hit stands out more
knows more. Chunks that contain exactly what the query quotes (a phrase, a hash, a line of an error) come
first, whatever their scores. Of nearly identical passages, only the best is kept. The order is total: equal
scores are sorted by id.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import PurePosixPath

import msgspec

from agentx.storage.index.port import (
    Chunk,
    ChunkKind,
    FileKind,
    Filter,
    Ranked,
    Searchable,
    Vector,
    is_symbol,
)
from agentx.storage.text import folded
from agentx.synthesis.recall.file_evidence import by_whole_file, subject_of
from agentx.synthesis.recall.file_prior import NO_PRIOR, FilePrior, names, names_of, prior_of

DEPTH = 50
"""Minimum number of hits of each ranking that are fused."""

DEPTH_OF_QUESTION = 100
"""The same, when a question asks where something is done: several passages of a file count."""

STANDS_OUT_AT = 20
"""Place in a ranking that its best hit is compared with."""

MEANING_GAIN: Mapping[ChunkKind, float] = {
    "message": 2.0,
    "tool": 2.0,
    "memory": 2.0,
    "artifact": 3.0,
    "source": 3.0,
}
"""Weight of a drop in cosine relative to the same drop in BM25, by kind of passage. Measured.

When both rankings are equally certain, a cosine drops by less. Also, a question shares fewer words with the
code that answers it than with a conversation.
"""

AGENT_SHARE = 0.9
"""Weight of an agent's message: it repeats the words of what it answers, and a question about those words is
looking for the user's message.
"""

LATER_SHARE = 0.8
"""Weight of a later part of a long message: its beginning says what it is about."""

FAR = 0.35
"""A question is not about files of a kind if they are less than this share as near as the nearest passage."""

QUOTED_DEPTH = 300
"""Number of matches of a quoted phrase's words that are checked for the phrase itself."""

QUOTED_WORDS = 8
"""Longer phrases are searched no deeper than the query: few chunks contain that many of their words."""

SCORE_DIGITS = 6
"""Fused scores are rounded to this many digits, so that the order of near ties does not depend on the
processor. Ties are sorted by id.
"""

ALSO = 4
"""Number of further passages that the hit of a file names."""

MAX_NEEDLES = 4
MAX_QUERY_CHARS = 20_000
MAX_NEEDLE_CHARS = 400
NEAR_DUPLICATE = 0.9
"""Share of common words from which two texts are near-duplicates."""

_QUOTED = re.compile(
    r'"([^"\n]{3,400})"|`([^`\n]{3,400})`|“([^”\n]{3,400})”|(?<!\w)\'([^\'\n]{3,400})\'(?!\w)'
)
_HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b")
_LAST_NAME = re.compile(r"\.|, | > ")
_LATER_PART = re.compile(r":[1-9][0-9]*$")
_FILES = ("artifact", "source")
_MIN_LINE_CHARS = 12
_MIN_LINE_WORDS = 3
_MIN_DUPLICATE_WORDS = 8
_BANDED_WORDS = 1 << 13


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found, and its origin.

    Attributes:
        score: Fused score, 0 to 1 unless other weights are given. Comparable within one result only.
        path: File, relative to the artifacts root or its source; empty for messages.
        start_line: First line, from 1; 0 if there are no lines.
        symbol: Definition or heading that it belongs to.
        source: Name of a read-only source; empty for the workspace itself.
        seq: Number of the event that added it.
        at: When, UTC ISO 8601.
        content_id: Blob id or content hash of the whole file.
        file_kind: What its file is for: source, test, docs, config or data.
        also: Other passages of the same file that were found, each as its lines and symbol, best first.
        commit: Git commit that holds the event, if the caller knows it; empty for sources.
        lexical_rank: Place among the matches by words, from 1; 0 if it is not among them.
        vector_rank: Place among the matches by meaning, from 1; 0 if it is not among them.
    """

    id: str
    text: str
    score: float
    kind: ChunkKind
    path: str = ""
    start_line: int = 0
    end_line: int = 0
    symbol: str = ""
    source: str = ""
    seq: int = 0
    at: str = ""
    actor: str = ""
    content_id: str = ""
    commit: str = ""
    file_kind: FileKind | str = ""
    also: tuple[str, ...] = ()
    lexical_rank: int = 0
    vector_rank: int = 0

    @property
    def why(self) -> str:
        """Why it was found, in a few words."""
        ranks = (("words", self.lexical_rank), ("meaning", self.vector_rank))
        return " · ".join(f"{name} {rank}" for name, rank in ranks if rank) or "to the letter"


class FusionWeights(msgspec.Struct, frozen=True):
    """Weight of each ranking in the fusion."""

    lexical: float = 0.5
    vector: float = 0.5


OF_QUESTION = FusionWeights(lexical=0.4, vector=0.6)
"""Weights for files, when a question asks where something is done: its words are seldom those of the code."""


def retrieve(
    index: Searchable,
    query: str,
    vector: Vector | None,
    k: int,
    where: Filter,
    *,
    weights: FusionWeights | None = None,
    grouped: bool = False,
) -> list[SearchHit]:
    """Find the ``k`` best passages for a query.

    Args:
        index: The index to search.
        query: Words, in any form; never parsed as a query language.
        vector: Its embedding, by the embedder that filled the index; ``None`` ranks by words alone.
        k: Maximum number of hits.
        where: Restricts the search.
        weights: Weight of each ranking; ``None`` lets :func:`balance` decide.
        grouped: Return one hit for each file: its best passage, and where the next ones are.

    Raises:
        UsageError: A date or path of the filter cannot be read.
        IndexDamaged: The index cannot be read.

    >>> from agentx.storage.index.memory_index import InMemoryIndex
    >>> index = InMemoryIndex()
    >>> texts = {"a": "Retry payments.", "b": "Lunch?"}
    >>> index.put([Chunk(id=name, kind="message", text=text) for name, text in texts.items()])
    >>> [hit.text for hit in retrieve(index, "payment retries", None, 5, Filter())]
    ['Retry payments.']
    """
    if k <= 0:
        return []
    prior = prior_of(query)
    depth = max(DEPTH_OF_QUESTION if prior.first == "source" else DEPTH, 2 * k)
    found = _search(index, query, vector, depth, where, prior)
    lexical, by_meaning = found.everything
    needles = exact_needles(query)
    texts = [ranked.chunk.text for ranked in (*lexical, *by_meaning)]
    quoted: list[Ranked] = []
    for needle in needles:
        whole = [_with_words(needle)]
        if needle != query.strip() and not any(_held(text, whole) for text in texts):
            short = len(needle.split()) <= QUOTED_WORDS
            quoted += index.search_text(needle, max(depth, QUOTED_DEPTH) if short else depth, where)
    candidates = _without_symbols(_fuse(found, quoted, weights, depth))
    if found.prior.first == "source":
        _weigh_whole_files(candidates, _tests(found, depth))
    wholes, named = list(map(_with_words, needles)), names(query)
    ordered: list[tuple[int, float, str, _Candidate]] = []
    for one in candidates:
        chunk = one.chunk
        held = _held(chunk.text, wholes) if wholes else 0
        if named and chunk.path:
            held += bool(named & names_of(chunk.symbol))
        if one.lexical_rank or one.vector_rank or held:
            ordered.append((-held, -one.score, chunk.id, one))
    ordered.sort()  # no two have the same id
    best = (one for *_, one in ordered)
    return _by_file(_distinct(best, len(ordered)), k) if grouped else _distinct(best, k)


class _Candidate(msgspec.Struct, gc=False):
    """What may become a hit: most candidates are not among the best, and no hit is made of them."""

    chunk: Chunk
    score: float
    lexical_rank: int
    vector_rank: int


_Rankings = tuple[Sequence[Ranked], Sequence[Ranked]]
"""By words and by meaning."""


class _Found(msgspec.Struct, frozen=True):
    """The rankings for a query.

    Attributes:
        everything: Of all passages.
        of_files: Of the kind of files that is asked for; of all passages if none is.
        prior: Weights of the kinds of files.
    """

    everything: _Rankings
    of_files: _Rankings
    prior: FilePrior


def _search(
    index: Searchable, query: str, vector: Vector | None, depth: int, where: Filter, prior: FilePrior
) -> _Found:
    """Rank all passages, and those of the kind of files that is asked for: others could take all places."""
    if not prior.first or not {prior.first}.issuperset(where.kinds):
        everything = _both(index, query, vector, depth, where)
        return _Found(everything, everything, prior)
    subject = subject_of(query)
    narrowed = msgspec.structs.replace(where, kinds=(prior.first,))
    of_files = _both(index, subject, vector, depth, narrowed)
    everything = of_files if where.kinds else _both(index, subject, vector, depth, where)
    if not any(of_files) or _is_far(of_files[1], everything[1]):
        everything = _both(index, query, vector, depth, where)
        return _Found(everything, everything, NO_PRIOR)
    return _Found(everything, of_files, prior)


def _is_far(of_files: Sequence[Ranked], everything: Sequence[Ranked]) -> bool:
    """Return whether the files that a question seems to ask for are about something else."""
    return bool(everything) and (not of_files or of_files[0].score < FAR * everything[0].score)


def _both(index: Searchable, text: str, vector: Vector | None, depth: int, where: Filter) -> _Rankings:
    with ThreadPoolExecutor(1) as beside:  # both searches wait for the index, not for Python
        meaning = beside.submit(index.search_vector, vector, depth, where) if vector is not None else None
        lexical = index.search_text(text, depth, where)
        return lexical, meaning.result() if meaning else []


def _weigh_whole_files(candidates: Sequence[_Candidate], tests: Mapping[tuple[str, str], float]) -> None:
    """Give the best passage of each source file the score of the whole file."""
    passages = [
        (one.chunk.id, (one.chunk.source, one.chunk.path), one.score)
        for one in candidates
        if one.chunk.file_kind == "source"
    ]
    scores, scale = by_whole_file(passages, tests)
    for one in candidates:
        if one.chunk.path:
            one.score = round(scores.get(one.chunk.id, scale * one.score), SCORE_DIGITS)


def _tests(found: _Found, depth: int) -> dict[tuple[str, str], float]:
    """Return the level of the best passage of each file of tests, on the scale of the source files."""
    way = 1 if found.everything[1] else 0
    ranked = [one for one in found.everything[way] if one.chunk.file_kind == "test"]
    levels = _between(ranked, found.of_files[way], depth) if found.of_files[way] else {}
    best: dict[tuple[str, str], float] = {}
    for one in ranked:
        file = one.chunk.source, one.chunk.path
        best[file] = max(best.get(file, 0.0), levels.get(one.chunk.id, 0.0))
    return best


def to_embed(chunk: Chunk) -> str:
    r"""Return the text of a chunk to embed: the speaker, the text and its context.

    A model reads a text from its beginning, up to a limit, and the beginning weighs most. With the context
    first, neighbouring turns of a conversation would look alike, so it comes last. A passage of a file has
    its path and symbol first: a definition seldom says what its file is about. If the file only has a number
    for a name, a passage that contains the name of its definition or section is embedded without context.

    >>> to_embed(Chunk(id="a", kind="message", text="Two weeks.", context="Ann How long?", actor="user:Ann"))
    'Ann: Two weeks.\nAnn How long?'
    """
    if chunk.kind in _FILES and any(map(str.isalpha, PurePosixPath(chunk.path).stem)):
        return f"{chunk.context}\n{chunk.text}"
    speaker = chunk.actor.rpartition(":")[2] if chunk.kind == "message" else ""
    said = f"{speaker}: {chunk.text}" if speaker else chunk.text
    name = _LAST_NAME.split(chunk.symbol)[-1]
    names_itself = chunk.kind in _FILES and name and name in chunk.text
    return said if names_itself or not chunk.context else f"{said}\n{chunk.context}"


def balance(lexical: Sequence[Ranked], by_meaning: Sequence[Ranked], gain: float) -> FusionWeights:
    """Derive the weights of words and meaning from how far the best hit of each ranking stands out.

    With ``drop = (s1 - s20) / s1`` of a ranking, where ``sN`` is its N-th score::

        vector = (gain * drop of cosine)^2 / ((gain * drop of cosine)^2 + (drop of BM25)^2)
        lexical = 1 - vector

    Words that twenty chunks contain equally do not discriminate, so meaning decides. A rare name is in few
    chunks, so words decide. Both drops shrink as an index grows, so their ratio is stable. The idea follows
    predictors of query performance by the spread of scores (Shtok et al., "Predicting Query Performance by
    Query-Drift Estimation", ACM TOIS 2012). The formula is our own, measured in ``docs/evaluation.md``.

    Both rankings are given best first; ``gain`` is a value of :data:`MEANING_GAIN`.

    >>> balance([], [], 2.0)
    FusionWeights(lexical=0.5, vector=0.5)
    """
    # If fewer chunks match by words, the rest score 0. By meaning every chunk has a score, so the last is the
    # lowest.
    words = _drop(lexical, 0.0)
    meaning = gain * _drop(by_meaning, by_meaning[-1].score) if by_meaning else 0.0
    total = words**2 + meaning**2
    return FusionWeights(words**2 / total, meaning**2 / total) if total else FusionWeights()


def _drop(ranked: Sequence[Ranked], beyond: float) -> float:
    """Return the drop of the score, as a share of the best. ``beyond`` is the score below the last hit."""
    if not ranked or ranked[0].score <= 0:
        return 0.0
    low = ranked[STANDS_OUT_AT - 1].score if len(ranked) >= STANDS_OUT_AT else beyond
    return min((ranked[0].score - low) / ranked[0].score, 1.0)


def exact_needles(query: str) -> list[str]:
    """Return the texts to match exactly: quoted phrases, hashes, and lines long enough to have been pasted.

    >>> exact_needles('where does "connection reset" come from, since 3f2a91c?')
    ['connection reset', '3f2a91c', 'where does "connection reset" come from, since 3f2a91c?']
    """
    head = query[:MAX_QUERY_CHARS]
    quoted = (next(group for group in match.groups() if group) for match in _QUOTED.finditer(head))
    lines = (line.strip() for line in head.splitlines())
    pasted = (line for line in lines if len(line) >= _MIN_LINE_CHARS and len(line.split()) >= _MIN_LINE_WORDS)
    needles = [*quoted, *_HASH.findall(head), *(line for line in pasted if len(line) <= MAX_NEEDLE_CHARS)]
    return list(dict.fromkeys(needles))[:MAX_NEEDLES]


def _with_words(needle: str) -> tuple[str, list[str]]:
    """Return a needle in normal form, and its words, the longest first: the one that most texts lack."""
    plain = folded(needle)
    return plain, sorted(plain.split(), key=len, reverse=True)


def _held(text: str, needles: Sequence[tuple[str, list[str]]]) -> int:
    """Count the normalised needles that a text contains.

    Each comes with its words: most texts lack one of them, which is quick to check.
    """
    if not needles:
        return 0
    lower, plain, count = text.casefold(), "", 0
    for needle, words in needles:
        for word in words:
            if word not in lower:
                break
        else:
            plain = plain or " ".join(lower.split())
            count += needle in plain
    return count


def _fuse(
    found: _Found, quoted: Sequence[Ranked], weights: FusionWeights | None, depth: int
) -> list[_Candidate]:
    everything, of_files = found.everything, found.of_files
    of_question = found.prior.first == "source" and all(of_files)
    by_kind = {
        kind: weights
        or (OF_QUESTION if of_question and kind in _FILES else None)
        or balance(*(of_files if kind in _FILES else everything), gain)
        for kind, gain in MEANING_GAIN.items()
    }
    lexical, by_meaning = (
        _merged(one, other) if other is not one else one
        for one, other in zip(everything, of_files, strict=True)
    )
    lexical_rank = {ranked.chunk.id: rank for rank, ranked in enumerate(lexical, 1)}
    vector_rank = {ranked.chunk.id: rank for rank, ranked in enumerate(by_meaning, 1)}
    by_words, by_sense = (
        _levels(merged, one, other, depth)
        for merged, one, other in zip((lexical, by_meaning), everything, of_files, strict=True)
    )
    chunks = {ranked.chunk.id: ranked.chunk for ranked in (*lexical, *by_meaning, *quoted)}
    of_kind = {kind: (each.lexical, each.vector) for kind, each in by_kind.items()}
    candidates = []
    for i, chunk in chunks.items():
        of_words, of_sense = of_kind[chunk.kind]
        score = of_words * by_words.get(i, 0.0) + of_sense * by_sense.get(i, 0.0)
        if chunk.file_kind:
            score *= found.prior.weights[chunk.file_kind]
        if chunk.kind == "message":
            by_whom = AGENT_SHARE if chunk.actor.startswith("agent:") else 1.0
            score *= by_whom * (LATER_SHARE if _LATER_PART.search(chunk.id) else 1.0)
        ranks = lexical_rank.get(i, 0), vector_rank.get(i, 0)
        candidates.append(_Candidate(chunk, round(score, SCORE_DIGITS), *ranks))
    return candidates


def _levels(
    ranked: Sequence[Ranked], everything: Sequence[Ranked], of_files: Sequence[Ranked], depth: int
) -> dict[str, float]:
    """Normalise scores between the best, 1, and the floor, 0.

    Files are compared with the files that are asked for, other passages with all. If these files are worse
    than the best other passage, so are their levels.
    """
    files: list[Ranked] = []
    others: list[Ranked] = []
    for one in ranked:
        (files if one.chunk.file_kind else others).append(one)
    levels = _between(others, everything, depth)
    best_other = max((one.score for one in others), default=0.0)
    share = min(of_files[0].score / best_other, 1.0) if of_files and best_other > 0 else 1.0
    levels |= {i: share * level for i, level in _between(files, of_files or everything, depth).items()}
    return levels


def _between(ranked: Sequence[Ranked], scale: Sequence[Ranked], depth: int) -> dict[str, float]:
    """Return levels between the best score of ``scale`` and the most that a chunk outside it can have."""
    if not ranked:
        return {}
    top, last = scale[0].score, scale[-1].score
    floor = last if len(scale) >= depth else min(last, 0.0)
    if top <= floor:
        return {one.chunk.id: 1.0 for one in ranked}
    span = top - floor
    return {
        one.chunk.id: 1.0 if one.score >= top else 0.0 if one.score <= floor else (one.score - floor) / span
        for one in ranked
    }


def _merged(one: Sequence[Ranked], other: Sequence[Ranked]) -> list[Ranked]:
    """Merge two rankings of one index by the same query."""
    found = {ranked.chunk.id: ranked for ranked in (*one, *other)}
    return sorted(found.values(), key=lambda ranked: (-ranked.score, ranked.chunk.id))


def _without_symbols(candidates: list[_Candidate]) -> list[_Candidate]:
    """Give the score of a definition's name to the best passage of its body, if that was found, too."""
    symbols = [one for one in candidates if is_symbol(one.chunk.id)]
    if not symbols:
        return candidates
    bodies: dict[tuple[str, str, str], list[_Candidate]] = {}
    kept = [one for one in candidates if not is_symbol(one.chunk.id)]
    for one in kept:
        if one.chunk.path:
            bodies.setdefault(_file_of(one.chunk), []).append(one)
    for symbol in symbols:
        begin, end = symbol.chunk.start_line, symbol.chunk.end_line
        inside = [
            one
            for one in bodies.get(_file_of(symbol.chunk), ())
            if one.chunk.start_line <= end and begin <= one.chunk.end_line
        ]
        if not inside:
            kept.append(symbol)
            continue
        best = max(inside, key=lambda one: one.score)
        best.score = max(best.score, symbol.score)
    return kept


def _file_of(chunk: Chunk) -> tuple[str, str, str]:
    return chunk.source, chunk.path, chunk.content_id


def _by_file(hits: Iterable[SearchHit], k: int) -> list[SearchHit]:
    """Return the first ``k`` hits, where one of each file says where others of it are."""
    kept: list[SearchHit] = []
    places: dict[tuple[str, str], int] = {}
    for hit in hits:
        first = places.get((hit.source, hit.path)) if hit.path else None
        if first is None and len(kept) < k:
            if hit.path:
                places[hit.source, hit.path] = len(kept)
            kept.append(hit)
        elif first is not None and len(kept[first].also) < ALSO:
            lines = f"{hit.start_line}-{hit.end_line} {hit.symbol}".strip()
            kept[first] = msgspec.structs.replace(kept[first], also=(*kept[first].also, lines))
    return kept


def as_hit(chunk: Chunk, score: float = 0.0, lexical_rank: int = 0, vector_rank: int = 0) -> SearchHit:
    """Convert a chunk to a search hit."""
    return SearchHit(
        id=chunk.id,
        text=chunk.text,
        score=score,
        kind=chunk.kind,
        path=chunk.path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        symbol=chunk.symbol,
        source=chunk.source,
        seq=chunk.seq,
        at=chunk.at,
        actor=chunk.actor,
        content_id=chunk.content_id,
        file_kind=chunk.file_kind,
        lexical_rank=lexical_rank,
        vector_rank=vector_rank,
    )


def _distinct(candidates: Iterable[_Candidate], k: int) -> list[SearchHit]:
    """Return as hits the first ``k`` candidates that are not near-duplicates of one before them."""
    kept: list[SearchHit] = []
    texts: set[str] = set()
    others = _Bags()
    for one in candidates:
        words = one.chunk.text.casefold().split()
        plain = " ".join(words)
        if plain in texts or not others.add(words):
            continue
        kept.append(as_hit(one.chunk, one.score, one.lexical_rank, one.vector_rank))
        texts.add(plain)
        if len(kept) == k:
            break
    return kept


class _Bags:
    """Texts as sets of words, none nearly the same as another.

    A set is the bits of a number. Texts of ``a <= b`` words that are nearly the same (:data:`NEAR_DUPLICATE`,
    0.9) differ in at most ``2 * b / 19`` words, so if all words are divided into more bands than that, both
    have the same words of some band. Only texts that share a band are compared: comparing hundreds pair by
    pair took a quarter of the time of a context.
    """

    def __init__(self) -> None:
        self._bits = _Bits()
        self._having: dict[int, list[dict[int, list[tuple[int, int]]]]] = {}

    def add(self, words: Iterable[str]) -> bool:
        """Add a text unless nearly the same is there; return whether it was added."""
        different = set(words)
        size = len(different)
        if size < _MIN_DUPLICATE_WORDS:
            return True
        bag = sum(map(self._bits.__getitem__, different))
        places = []
        for number in _numbers_of_bands(size):
            tables = self._having.get(number)
            if tables is None:
                tables = self._having[number] = [{} for _ in range(number)]
            for having, mask in zip(tables, _masks(number), strict=True):
                band = bag & mask
                alike = having.get(band)
                if alike is None:
                    alike = having[band] = []
                for other, size_of_other in alike:
                    if _nearly_same(bag, size, other, size_of_other):
                        return False
                places.append(alike)
        for alike in places:
            alike.append((bag, size))
        return True


class _Bits(dict[str, int]):
    """The bit of each word; a new word gets the next one."""

    def __missing__(self, word: str) -> int:
        """Return a new bit."""
        bit = self[word] = 1 << len(self)
        return bit


@cache
def _numbers_of_bands(size: int) -> tuple[int, ...]:
    """Return the numbers of bands by which a text is compared with shorter and with longer ones."""
    return tuple({_bands_of(size), _bands_of(int(size / NEAR_DUPLICATE) + 1)})


def _bands_of(size: int) -> int:
    """Return the number of bands by which a text of this number of words is compared with those of fewer."""
    return 1 << (int(2 * size * (1 - NEAR_DUPLICATE) / (1 + NEAR_DUPLICATE)) + 1).bit_length()


@cache
def _masks(number: int) -> list[int]:
    """Return the bits of each of a number of bands; words beyond :data:`_BANDED_WORDS` are in none."""
    every = sum(1 << bit for bit in range(0, _BANDED_WORDS, number))
    return [every << band for band in range(number)]


def _nearly_same(bag: int, size: int, other: int, size_of_other: int) -> bool:
    """Return whether two texts share nearly all of their words."""
    common = (bag & other).bit_count()
    if common < NEAR_DUPLICATE * (size + size_of_other - common):
        return False
    shorter, longer = sorted((size, size_of_other))
    return shorter >= max(_MIN_DUPLICATE_WORDS, NEAR_DUPLICATE * longer)
