"""Merge the results of sub-queries, rank them, and keep what fits in a token budget.

A memory's score is the weighted sum of its scores in the sub-queries; each search scales its scores to 0..1.
Then more than its own words counts: who said it, what was said next to it and in the same session, and how
informative it is.

The buffer is filled with sentences, not with whole memories: the next one is always the one that tells most
for its length (the greedy solution of a knapsack problem). So a small buffer has the best sentences of the
best memories; in a large one, more of each memory stays.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, nlargest

import msgspec

from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery
from agentx.synthesis.cognition.informative_sentences import Rarity, information, sentences, terms_of, told
from agentx.synthesis.language.tokens import count_tokens, cut

SEARCHED = 100
"""Number of memories requested per sub-query."""

OTHERS_SHARE = 0.55
"""Factor for memories said by somebody other than the person whom the question names."""

SESSION_SHARE = 0.1
"""Share of the mean of the session's :data:`SESSION_BEST` best scores that is added to a memory's score."""

SESSION_BEST = 3

NEIGHBOUR_SHARE = 0.1
"""Share of the mean score of the memories just before and after that is added."""

TOLD_WEIGHT = 0.2
"""Bonus of a memory that is as informative as the best tenth of the results."""

TELLS_MUCH = 0.9
"""The quantile that defines this best tenth."""

FOUND_SENTENCES = 2
"""Number of sentences of the best memory that a sub-query looks for."""

STEEPNESS = 2.5
"""A sentence counts by its information and by this power of its memory's score."""

NEXT_SHARE = 0.7
"""Factor for each sentence of the same memory that the buffer already has: the first ones tell most."""

TOKEN_CHARACTERS = 4.2
"""Estimate of the characters of a token, to order sentences without counting the tokens of each."""

MOST_SHARE = 0.5
"""Maximum share of a budget that one memory takes."""

LEAST_TOKENS = 8
"""With fewer tokens left, nothing more is considered."""


class RetrievedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory found by a search.

    Attributes:
        score: How well it matched, 0 to 1 within one search.
        by: Who said it, named as the question would name them; empty if nobody.
        session: Equal for memories of one conversation; empty for none.
        place: Its position in the conversation, so that neighbours differ by one; 0 for none.
    """

    id: str
    text: str
    score: float
    by: str = ""
    session: str = ""
    place: int = 0


Search = Callable[[SubQuery, int], Sequence[RetrievedMemory]]
"""Finds memories for a sub-query, at most as many as the second argument."""


Follow = Callable[[Sequence[RetrievedMemory]], Sequence[RetrievedMemory]]
"""Returns memories that the best results link to and that were not found themselves."""

Size = Callable[[RetrievedMemory, str], int]
"""Counts the tokens of a memory in a buffer, with the given part of its text."""


class KeptMemory(msgspec.Struct, frozen=True):
    """A memory in a buffer, with the part of its text that is kept and its tokens."""

    memory: RetrievedMemory
    text: str
    tokens: int


class Activation(msgspec.Struct, frozen=True):
    """What the sub-queries of a graph found.

    Attributes:
        ranked: Every memory once, best first, with its total score.
        results: Results per sub-query, by its id, best first.
        followed: Memories reached only by links from the best results.
    """

    ranked: tuple[RetrievedMemory, ...] = ()
    results: Mapping[str, Sequence[RetrievedMemory]] = {}
    followed: Sequence[RetrievedMemory] = ()


def activate(
    graph: QueryGraph,
    search: Search,
    about: str = "",
    *,
    before: Activation | None = None,
    k: int = SEARCHED,
    follow: Follow | None = None,
) -> Activation:
    """Search for each sub-query in order, then merge and rank the results.

    A sub-query that needs others adds the most informative sentences of their best memory to its text.
    ``about`` is the only person whom the question names. The results ``before`` are those of a smaller graph
    of the same question; its sub-queries are not searched again.
    """
    results = dict(before.results) if before else {}
    roots = sum(node.weight for node in graph.nodes if not node.needs) or 1.0
    weights = {node.id: node.weight / roots for node in graph.nodes}
    for node in graph.nodes:
        if node.id not in results:
            needed = [(weights[need], results[need]) for need in node.needs]
            asked = _with_found(node, rank(merge(needed), about)) if needed else node
            results[node.id] = search(asked, k) if asked.text else ()
    found = merge((weights[node.id], results[node.id]) for node in graph.nodes)
    ranked = rank(found, about)
    followed = follow(ranked) if follow else ()
    return Activation(tuple(rank([*found, *followed], about) if followed else ranked), results, followed)


def _with_found(node: SubQuery, ranked: Sequence[RetrievedMemory]) -> SubQuery:
    if not ranked:
        return node
    rarity = Rarity(memory.text for memory in ranked)
    said = sentences(ranked[0].text)
    best = nlargest(FOUND_SENTENCES, said, key=lambda sentence: information(sentence, rarity))
    return msgspec.structs.replace(node, text=" ".join(filter(None, (node.text, *best))))


def merge(results: Iterable[tuple[float, Sequence[RetrievedMemory]]]) -> list[RetrievedMemory]:
    """Return every memory once, with the weighted sum of its scores, in the order of first occurrence.

    >>> a, b = RetrievedMemory(id="a", text="A", score=1.0), RetrievedMemory(id="b", text="B", score=0.5)
    >>> [(one.id, one.score) for one in merge([(0.5, [a, b]), (0.5, [b])])]
    [('a', 0.5), ('b', 0.5)]
    """
    memories: dict[str, RetrievedMemory] = {}
    scores: defaultdict[str, float] = defaultdict(float)
    for weight, hits in results:
        for hit in hits:
            memories.setdefault(hit.id, hit)
            scores[hit.id] += weight * hit.score
    return [msgspec.structs.replace(hit, score=scores[name]) for name, hit in memories.items()]


def rank(memories: Sequence[RetrievedMemory], about: str = "") -> list[RetrievedMemory]:
    """Rank memories, best first; equal ones by id.

    The rank depends on their own score, on who said them, on their neighbours and session, and on how
    informative they are.
    """
    places: defaultdict[int, float] = defaultdict(float)
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for one in memories:
        places[one.place] = max(places[one.place], one.score)
        if one.session:
            sessions[one.session].append(one.score)
    support = {name: sum(nlargest(SESSION_BEST, scores)) / SESSION_BEST for name, scores in sessions.items()}
    rarity = Rarity(one.text for one in memories)
    tells = {one.id: told(one.text, rarity) for one in memories}
    much = sorted(tells.values())[int(TELLS_MUCH * len(tells))] if tells else 0.0

    def score(one: RetrievedMemory) -> float:
        around = sum(
            places.get(place, 0.0) for place in (one.place - 1, one.place + 1) if place > 0 < one.place
        )
        telling = min(tells[one.id] / much, 1.0) if much else 0.0
        other = about and one.by not in {"", about}
        return (OTHERS_SHARE if other else 1.0) * (
            one.score
            + NEIGHBOUR_SHARE * around / 2
            + SESSION_SHARE * support.get(one.session, 0.0)
            + TOLD_WEIGHT * telling
        )

    scored = [msgspec.structs.replace(one, score=score(one)) for one in memories]
    return sorted(scored, key=lambda one: (-one.score, one.id))


def line(memory: RetrievedMemory, text: str) -> str:
    """Render a memory as a line of the buffer."""
    return f"- {memory.by}: {text}\n" if memory.by else f"- {text}\n"


def line_size(memory: RetrievedMemory, text: str) -> int:
    """Count the tokens of this line."""
    return count_tokens(line(memory, text))


def curate(
    ranked: Sequence[RetrievedMemory], question: str, budget: int, size: Size = line_size
) -> list[KeptMemory]:
    """Fill the buffer: the most informative sentences of the best memories, within a token budget.

    A sentence counts by its information, its memory's score and its length; the first of a memory also costs
    what its line has beside the text. Sentences that contain words of the question count as more informative.
    One that equals an earlier one is left out, and one that does not fit is skipped for shorter ones. The
    memories come best first, their sentences in order.

    >>> text = "Hey, great to see you! I have two cats at home, Tom and Kim."
    >>> cats = RetrievedMemory(id="a", text=text, score=1.0, by="Ann")
    >>> dogs = RetrievedMemory(id="b", text="Hey, great to see you! How is it going?", score=0.5, by="Bob")
    >>> for budget in (34, 60):
    ...     print([kept.text for kept in curate([cats, dogs], "What are Ann's cats called?", budget)])
    ['I have two cats at home, Tom and Kim.', 'How is it going?']
    ['Hey, great to see you! I have two cats at home, Tom and Kim.', 'How is it going?']
    """
    if not ranked:
        return []
    buffer, head = _Buffer(ranked, budget, size), size(ranked[0], "")
    rarity, wanted = Rarity(one.text for one in ranked), terms_of(question)
    people = {one.by for one in ranked}
    values = [
        [_relative(one, ranked[0]) * information(sentence, rarity, wanted, people) for sentence in said]
        for one, said in zip(ranked, buffer.said, strict=True)
    ]

    def gain(memory: int, place: int) -> float:
        """Return the value of a sentence for a token, given what the buffer has of its memory."""
        tokens = min(_estimate(buffer.said[memory][place]), buffer.most)
        kept = len(buffer.places[memory])
        return values[memory][place] * NEXT_SHARE**kept / (tokens if kept else tokens + head)

    left = [(-gain(i, place), i, place) for i, each in enumerate(values) for place in range(len(each))]
    heapify(left)
    while left and buffer.left >= LEAST_TOKENS:
        before, memory, place = heappop(left)
        now = -gain(memory, place)
        if now != before and left and (now, memory, place) > left[0]:
            heappush(left, (now, memory, place))
        else:
            buffer.add(memory, place)
    return buffer.kept()


def _relative(one: RetrievedMemory, best: RetrievedMemory) -> float:
    return (one.score / best.score) ** STEEPNESS if one.score > 0 else 0.0


def _estimate(text: str) -> float:
    return 1 + len(text) / TOKEN_CHARACTERS


class _Buffer:
    """A buffer being filled.

    Attributes:
        said: The sentences of each memory, without those of a better one.
        places: Which of them are kept.
        left: Tokens left.
        most: Maximum tokens of a memory.
    """

    def __init__(self, ranked: Sequence[RetrievedMemory], budget: int, size: Size) -> None:
        self._ranked, self._size = ranked, size
        first: dict[str, tuple[int, str]] = {}
        for memory, one in enumerate(ranked):
            for sentence in sentences(one.text):
                first.setdefault(sentence.casefold(), (memory, sentence))
        self.said: list[list[str]] = [[] for _ in ranked]
        for memory, sentence in first.values():
            self.said[memory].append(sentence)
        self.places: list[list[int]] = [[] for _ in ranked]
        self.left, self.most = budget, int(MOST_SHARE * budget)
        self._kept: dict[int, KeptMemory] = {}

    def add(self, memory: int, place: int) -> None:
        """Add a sentence of a memory if it fits; one that is too long is cut."""
        sentence = self.said[memory][place]
        if min(_estimate(sentence), self.most) > self.left:
            return
        one, places = self._ranked[memory], sorted((*self.places[memory], place))
        text, before = " ".join(self.said[memory][kept] for kept in places), self._kept.get(memory)
        tokens = self._size(one, text)
        if tokens > self.most and not before:
            text = cut(text, self.most - self._size(one, ""))
            tokens = self._size(one, text)
        more = tokens - (before.tokens if before else 0)
        if text and tokens <= self.most and more <= self.left:
            self._kept[memory] = KeptMemory(one, text, tokens)
            self.places[memory], self.left = places, self.left - more

    def kept(self) -> list[KeptMemory]:
        """Return what is kept, in the order of the memories."""
        return [self._kept[memory] for memory in sorted(self._kept)]
