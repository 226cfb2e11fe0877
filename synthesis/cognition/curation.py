"""What was found, merged over the sub-queries, ranked, and kept as far as a budget of tokens goes.

A memory's score is the sum of what the sub-queries gave it, each search having brought its scores to 0..1. Then it is judged by more than its
own words: by who said it, by what was said next to it and in the same session, and by how much it tells.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest

import msgspec

from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery
from agentx.synthesis.cognition.statements import TOLD_SHARE, Rarity, salient, terms_of, told
from agentx.synthesis.language.tokens import count_tokens

SEARCHED = 100
"""Memories that are asked for of each sub-query."""

OTHERS_SHARE = 0.6
"""What a memory counts for that somebody else said than the one whom the question names."""

SESSION_SHARE = 0.2
"""How much of the mean of its session's :data:`SESSION_BEST` best is added to a memory."""

SESSION_BEST = 3

NEIGHBOUR_SHARE = 0.1
"""How much of the mean of the memories just before and after is added."""

TOLD_WEIGHT = 0.2
"""What a memory gains that tells as much as the best tenth of what was found."""

TELLS_MUCH = 0.9
"""The quantile that this is measured by."""

MOST_SHARE = 0.5
"""Of a budget, one memory takes no more than this."""

LEAST_TOKENS = 10
"""With fewer tokens left, no further memory is looked at."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as a search found it.

    Attributes:
        id: Of the memory.
        text: What it says.
        score: How well it matched, 0 to 1 within one search.
        by: Who said it, as the question would name them; empty where nobody did.
        session: What was said together has the same one; empty for none.
        place: Its place in what was said, so that neighbours differ by one; 0 for none.
    """

    id: str
    text: str
    score: float
    by: str = ""
    session: str = ""
    place: int = 0


Search = Callable[[SubQuery, int], Sequence[Found]]
"""Finds up to so many memories for a sub-query."""


Follow = Callable[[Sequence[Found]], Sequence[Found]]
"""Gives what the best of what was found is linked to, and was not found itself."""

Size = Callable[[Found, str], int]
"""Counts what a memory takes of a buffer with so much of its text, in tokens."""


class Kept(msgspec.Struct, frozen=True):
    """A memory in a buffer, with what of its text stands there, and in how many tokens."""

    memory: Found
    text: str
    tokens: int


class Activation(msgspec.Struct, frozen=True):
    """What the sub-queries of a graph found.

    Attributes:
        ranked: Every memory once, best first, with its score over all.
        results: What each sub-query found, by its id, best first.
        followed: What was not found itself, but is linked to the best that was.
    """

    ranked: tuple[Found, ...] = ()
    results: Mapping[str, Sequence[Found]] = {}
    followed: Sequence[Found] = ()


def activate(
    graph: QueryGraph,
    search: Search,
    about: str = "",
    *,
    before: Activation | None = None,
    k: int = SEARCHED,
    follow: Follow | None = None,
) -> Activation:
    """Search for each sub-query in order, and merge and rank what they find.

    A sub-query that needs others is searched with what tells most in the best memory that these found; where it has no text of its own,
    that memory's vector may stand for it.

    Args:
        graph: What to look for.
        search: How.
        about: The one person whom the question names; empty for none or several.
        before: What a smaller graph of the same question found; its sub-queries are not searched for again.
        k: Memories of each search.
        follow: How links are followed; ``None`` for not at all.
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


def _with_found(node: SubQuery, ranked: Sequence[Found]) -> SubQuery:
    if not ranked:
        return node
    best = ranked[0]
    rarity = Rarity(memory.text for memory in ranked)
    said = salient(best.text, rarity, frozenset(), len(best.text), len, share=1.0)
    text = f"{node.text} {said}".strip()
    return msgspec.structs.replace(node, text=text, like="" if node.text else best.id)


def merge(results: Iterable[tuple[float, Sequence[Found]]]) -> list[Found]:
    """Every memory once, with the weighted sum of its scores, in the order in which it was first found.

    >>> a, b = Found(id="a", text="A", score=1.0), Found(id="b", text="B", score=0.5)
    >>> [(one.id, one.score) for one in merge([(0.5, [a, b]), (0.5, [b])])]
    [('a', 0.5), ('b', 0.5)]
    """
    memories: dict[str, Found] = {}
    scores: defaultdict[str, float] = defaultdict(float)
    for weight, hits in results:
        for hit in hits:
            memories.setdefault(hit.id, hit)
            scores[hit.id] += weight * hit.score
    return [msgspec.structs.replace(hit, score=scores[name]) for name, hit in memories.items()]


def rank(memories: Sequence[Found], about: str = "") -> list[Found]:
    """Memories by their score, who said them, what stands around them, and how much they tell; best first, equal ones by id."""
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

    def score(one: Found) -> float:
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


def line(memory: Found, text: str) -> str:
    """How a memory stands in a buffer."""
    return f"- {memory.by}: {text}\n" if memory.by else f"- {text}\n"


def line_size(memory: Found, text: str) -> int:
    """What that takes."""
    return count_tokens(line(memory, text))


def curate(ranked: Sequence[Found], question: str, budget: int, size: Size = line_size) -> list[Kept]:
    """The buffer: of the best memories what tells something, best first, within a budget of tokens.

    The better a memory matches, the more of it stays: with half the score of the best, a sentence must tell four times as much.
    One that does not fit is passed over for smaller ones behind it; one that says the same as one before it is left out.

    Args:
        ranked: As :func:`rank` gives them.
        question: Sentences that hold its words tell more.
        budget: Tokens of all together.
        size: What one takes; that of its line where nothing is said.

    >>> cats = Found(id="a", text="Hey, great to see you! I have two cats at home, Tom and Kim.", score=1.0, by="Ann")
    >>> dogs = Found(id="b", text="Hey, great to see you! How is it going?", score=0.5, by="Bob")
    >>> [kept.text for kept in curate([cats, dogs], "What are Ann's cats called?", 50)]
    ['I have two cats at home, Tom and Kim.', 'Hey, great to see you!']
    """
    rarity, wanted = Rarity(one.text for one in ranked), terms_of(question)
    most = int(MOST_SHARE * budget)
    kept: list[Kept] = []
    said = set[str]()
    for one in ranked:
        if budget < LEAST_TOKENS:
            break
        share = min(1.0, TOLD_SHARE * (ranked[0].score / one.score) ** 2) if one.score > 0 else 1.0
        text = salient(one.text, rarity, wanted, most, share=share)
        tokens = size(one, text)
        if tokens <= budget and text.casefold() not in said:
            kept.append(Kept(one, text, tokens))
            said.add(text.casefold())
            budget -= tokens
    return kept
