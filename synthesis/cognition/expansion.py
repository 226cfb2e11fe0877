"""Expand a question into a graph of sub-queries; each is searched after those it needs.

A question about a person asks for two things: who, and what. In one text the name dominates: the search finds
whatever that person said, or whoever greets them. So the question is also searched without the name, and by
its content words alone. Who said it is judged separately (:mod:`~agentx.synthesis.cognition.curation`).
"""

import re
from collections.abc import Collection, Iterable
from graphlib import TopologicalSorter

import msgspec

from agentx.synthesis.language.words import STOP_WORDS

FOUND = "found"
"""Id of the sub-query that is built from the results of the others."""

FOUND_WEIGHT = 0.4
"""Its weight relative to the others together; it is low, as this query drifts from the question. Measured."""

WHOLE_WEIGHT, ASKED_WEIGHT, CONTENT_WEIGHT = 0.5, 1.0, 1.5
"""Weights of the question as it is, without names, and of its content words. Measured."""

_WORD = re.compile(r"\w[\w'’-]*")


class SubQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look for.

    Attributes:
        id: Unique in its graph.
        text: The search text; may be empty for a sub-query that needs others.
        needs: Ids of sub-queries that are searched first; the best of their results is added to ``text``.
    """

    id: str
    text: str
    needs: tuple[str, ...] = ()
    why: str = ""
    weight: float = 1.0


class QueryGraph(msgspec.Struct, frozen=True):
    """Sub-queries in an order in which each comes after those it needs.

    Attributes:
        nodes: In topological order; otherwise in the given order.
        broken: What was removed to make the graph acyclic, in words.
    """

    nodes: tuple[SubQuery, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def edge_count(self) -> int:
        """Total number of needs."""
        return sum(len(node.needs) for node in self.nodes)

    @classmethod
    def of(cls, given: Iterable[SubQuery]) -> "QueryGraph":
        """Build a graph from sub-queries, which may come from a model; remove and report what is invalid.

        A second sub-query with the same id, a need of a missing sub-query, and a need that closes a circle
        are removed. Needs are added one by one in the given order, so the one that closes the circle is
        removed.

        >>> circle = [SubQuery(id="a", text="x", needs=("b",)), SubQuery(id="b", text="y", needs=("a",))]
        >>> graph = QueryGraph.of(circle)
        >>> [node.id for node in graph.nodes], graph.broken
        (['b', 'a'], ('"b" does not wait for "a": that would be a circle.',))
        """
        broken: list[str] = []
        nodes: dict[str, SubQuery] = {}
        for node in given:
            if node.id in nodes:
                broken.append(f'A second "{node.id}" was left out.')
            nodes.setdefault(node.id, node)
        needs: dict[str, tuple[str, ...]] = dict.fromkeys(nodes, ())
        for node in nodes.values():
            for need in dict.fromkeys(node.needs):
                if need not in nodes:
                    broken.append(f'"{node.id}" does not wait for "{need}": no such sub-query exists.')
                elif node.id in _reached(need, needs):
                    broken.append(f'"{node.id}" does not wait for "{need}": that would be a circle.')
                else:
                    needs[node.id] = (*needs[node.id], need)
        order = TopologicalSorter(needs).static_order()
        return cls(
            tuple(msgspec.structs.replace(nodes[name], needs=needs[name]) for name in order), tuple(broken)
        )


def _reached(start: str, needs: dict[str, tuple[str, ...]]) -> set[str]:
    """Return all sub-queries that one waits for, itself included."""
    seen, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(needs[name])
    return seen


def expand(question: str, people: Collection[str] = ()) -> QueryGraph:
    """Expand a question into three sub-queries: as it is, without names of people, and its content words.

    Equal sub-queries are merged, so a text without names and stop words has only one. ``people`` are the
    speakers in the searched memories.

    >>> for node in expand("What did Ann plant in the garden?", ["Ann", "Bob"]).nodes:
    ...     print(node.id, "-", node.text)
    whole - What did Ann plant in the garden?
    asked - What did plant in the garden?
    content - plant garden
    """
    asked = without_names(question, people) or question
    content = " ".join(word for word in _WORD.findall(asked) if word.casefold() not in STOP_WORDS) or asked
    texts: dict[str, SubQuery] = {}
    for node in (
        SubQuery(id="whole", text=question, why="the question as it is", weight=WHOLE_WEIGHT),
        SubQuery(id="asked", text=asked, why="what is asked, whoever it is about", weight=ASKED_WEIGHT),
        SubQuery(
            id="content", text=content, why="what it is about, without its grammar", weight=CONTENT_WEIGHT
        ),
    ):
        same = texts.get(node.text)
        texts[node.text] = msgspec.structs.replace(same, weight=same.weight + node.weight) if same else node
    return QueryGraph(nodes=tuple(texts.values()))


def deepen(graph: QueryGraph) -> QueryGraph:
    """Add a second hop: a sub-query for what is similar to the best result of the others.

    >>> deepen(expand("Who paints?")).nodes[-1].needs
    ('whole', 'content')
    """
    if any(node.id == FOUND for node in graph.nodes):
        return graph
    needs = tuple(node.id for node in graph.nodes)
    total = sum(node.weight for node in graph.nodes if not node.needs)
    why = "what is like the best that was found"
    hop = SubQuery(id=FOUND, text="", needs=needs, why=why, weight=FOUND_WEIGHT * total)
    return msgspec.structs.replace(graph, nodes=(*graph.nodes, hop))


def named(question: str, people: Collection[str]) -> list[str]:
    """Return the people whom a question names, sorted.

    >>> named("What did Ann's mother say?", ["Ann", "Bob"])
    ['Ann']
    """
    return sorted(name for name in people if name and _called(name).search(question))


def about(question: str, people: Collection[str]) -> str:
    """Return the only person whom a question names; empty for none or several."""
    names = named(question, people)
    return names[0] if len(names) == 1 else ""


def without_names(question: str, people: Collection[str]) -> str:
    """Return a question without the names of people.

    >>> without_names("What are Ann's pets called?", ["Ann"])
    'What are pets called?'
    """
    for name in sorted(filter(None, people), key=len, reverse=True):
        question = _called(name).sub(" ", question)
    return " ".join(question.split())


def _called(name: str) -> re.Pattern[str]:
    # an actor's name may be in lower case
    either = "|".join(map(re.escape, dict.fromkeys((name, name.title()))))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)(?:['’]s?(?!\w))?")
