"""Merge the results of sub-queries, rank them, and keep what fits in a token budget.

A memory's score is the weighted sum of its scores in the sub-queries; each search scales its scores to 0..1.
Then more than its own words counts: who said it, what was said next to it and in the same session, and how
informative it is.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest

import msgspec

from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery
from agentx.synthesis.cognition.informative_sentences import TOLD_SHARE, Rarity, salient, terms_of, told
from agentx.synthesis.language.tokens import count_tokens

SEARCHED = 100
"""Number of memories requested per sub-query."""

OTHERS_SHARE = 0.6
"""Factor for memories said by somebody other than the person whom the question names."""

SESSION_SHARE = 0.2
"""Share of the mean of the session's :data:`SESSION_BEST` best scores that is added to a memory's score."""

SESSION_BEST = 3

NEIGHBOUR_SHARE = 0.1
"""Share of the mean score of the memories just before and after that is added."""

TOLD_WEIGHT = 0.2
"""Bonus of a memory that is as informative as the best tenth of the results."""

TELLS_MUCH = 0.9
"""The quantile that defines this best tenth."""

MOST_SHARE = 0.5
"""Maximum share of a budget that one memory takes."""

LEAST_TOKENS = 10
"""With fewer tokens left, no further memory is considered."""


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

    A sub-query that needs others adds the most informative sentences of their best memory to its text. If it
    has no text of its own, that memory's vector may replace the embedding of the text. ``about`` is the only
    person whom the question names. The results ``before`` are those of a smaller graph of the same question;
    its sub-queries are not searched again.
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
    best = ranked[0]
    rarity = Rarity(memory.text for memory in ranked)
    said = salient(best.text, rarity, frozenset(), len(best.text), len, share=1.0)
    text = f"{node.text} {said}".strip()
    return msgspec.structs.replace(node, text=text, like="" if node.text else best.id)


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
    own = {
        one.id: one.score * (OTHERS_SHARE if about and one.by not in {"", about} else 1.0) for one in memories
    }
    places: defaultdict[int, float] = defaultdict(float)
    for one in memories:
        places[one.place] = max(places[one.place], own[one.id])
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for one in memories:
        if one.session:
            sessions[one.session].append(own[one.id])
    support = {name: sum(nlargest(SESSION_BEST, scores)) / SESSION_BEST for name, scores in sessions.items()}
    rarity = Rarity(one.text for one in memories)
    tells = {one.id: told(one.text, rarity) for one in memories}
    much = sorted(tells.values())[int(TELLS_MUCH * len(tells))] if tells else 0.0

    def score(one: RetrievedMemory) -> float:
        around = sum(
            places.get(place, 0.0) for place in (one.place - 1, one.place + 1) if place > 0 < one.place
        )
        telling = min(tells[one.id] / much, 1.0) if much else 0.0
        return (
            own[one.id]
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
    """Fill the buffer: the informative parts of the best memories, best first, within a token budget.

    The better a memory matches, the more of it is kept: with half the best score, a sentence must be four
    times as informative. A memory that does not fit is skipped for smaller ones after it. A text that equals
    an earlier one is left out. Sentences that contain words of the question count as more informative.

    >>> text = "Hey, great to see you! I have two cats at home, Tom and Kim."
    >>> cats = RetrievedMemory(id="a", text=text, score=1.0, by="Ann")
    >>> dogs = RetrievedMemory(id="b", text="Hey, great to see you! How is it going?", score=0.5, by="Bob")
    >>> [kept.text for kept in curate([cats, dogs], "What are Ann's cats called?", 50)]
    ['I have two cats at home, Tom and Kim.', 'Hey, great to see you!']
    """
    rarity, wanted = Rarity(one.text for one in ranked), terms_of(question)
    most = int(MOST_SHARE * budget)
    kept: list[KeptMemory] = []
    said = set[str]()
    for one in ranked:
        if budget < LEAST_TOKENS:
            break
        share = min(1.0, TOLD_SHARE * (ranked[0].score / one.score) ** 2) if one.score > 0 else 1.0
        text = salient(one.text, rarity, wanted, most, share=share)
        tokens = size(one, text)
        if tokens <= budget and text.casefold() not in said:
            kept.append(KeptMemory(one, text, tokens))
            said.add(text.casefold())
            budget -= tokens
    return kept
