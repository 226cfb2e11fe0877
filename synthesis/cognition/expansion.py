"""A question as a graph of sub-queries, each searched for when what it needs has been found.

A question about a person is two in one: who, and what. As one text the name outweighs the rest: it finds whatever that person said, or
whoever greets them. So what is asked is looked for without the name as well, and once more by its content words alone; who said it is
judged apart (:mod:`~agentx.synthesis.cognition.curation`).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from graphlib import TopologicalSorter

import msgspec

from agentx.synthesis.language.words import STOP_WORDS

FOUND = "found"
"""Id of the sub-query that is made of what the others found."""

FOUND_WEIGHT = 0.4
"""What it counts for beside the others together: it wanders from the question. Measured."""

_WORD = re.compile(r"\w[\w'’-]*")


class SubQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look for.

    Attributes:
        id: Unique in its graph.
        text: What is searched for; may be empty for one that needs others.
        needs: Ids of sub-queries that are searched for first; the best of what they found is added to ``text``.
        why: What it is for, in a few words.
        weight: How much what it finds counts.
        like: Id of a memory whose own vector may stand for the text's, so that nothing is embedded; empty for none.
    """

    id: str
    text: str
    needs: tuple[str, ...] = ()
    why: str = ""
    weight: float = 1.0
    like: str = ""


class QueryGraph(msgspec.Struct, frozen=True):
    """Sub-queries in an order in which each comes after what it needs.

    Attributes:
        nodes: In topological order; those of equal standing as they were given.
        broken: What was taken out to make it a graph without circles, in words.
    """

    nodes: tuple[SubQuery, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def edge_count(self) -> int:
        """How many needs there are."""
        return sum(len(node.needs) for node in self.nodes)

    @classmethod
    def of(cls, given: Iterable[SubQuery]) -> "QueryGraph":
        """A graph of what is given, by a model too; what cannot stand is left out and said.

        A second sub-query of one id, a need of something that is not there, and a need that would close a circle are left out; which of a
        circle goes is fixed by the order: needs are added one by one, and the one that closes it goes.

        >>> graph = QueryGraph.of([SubQuery(id="a", text="x", needs=("b",)), SubQuery(id="b", text="y", needs=("a",))])
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
                    broken.append(f'"{node.id}" does not wait for "{need}": there is no such sub-query.')
                elif node.id in _reached(need, needs):
                    broken.append(f'"{node.id}" does not wait for "{need}": that would be a circle.')
                else:
                    needs[node.id] = (*needs[node.id], need)
        order = TopologicalSorter(needs).static_order()
        return cls(
            tuple(msgspec.structs.replace(nodes[name], needs=needs[name]) for name in order), tuple(broken)
        )


def _reached(start: str, needs: dict[str, tuple[str, ...]]) -> set[str]:
    """All that a sub-query waits for, itself included."""
    seen, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(needs[name])
    return seen


def expand(question: str, people: Collection[str] = ()) -> QueryGraph:
    """What to look for to answer a question: as it is, without the names of people, and by its content words.

    Args:
        question: Any text; of one without names and small words nothing but itself is looked for.
        people: Names of those who speak in what is searched.

    >>> for node in expand("What did Ann plant in the garden?", ["Ann", "Bob"]).nodes:
    ...     print(node.id, "-", node.text)
    whole - What did Ann plant in the garden?
    asked - What did plant in the garden?
    content - plant garden
    """
    asked = without_names(question, people) or question
    content = " ".join(word for word in _WORD.findall(asked) if word.casefold() not in STOP_WORDS) or asked
    nodes = (
        SubQuery(id="whole", text=question, why="the question as it is"),
        SubQuery(id="asked", text=asked, why="what is asked, whoever it is about"),
        SubQuery(id="content", text=content, why="what it is about, without its grammar"),
    )
    return QueryGraph(nodes=tuple(_with_equal_texts_once(nodes)))


def deepen(graph: QueryGraph) -> QueryGraph:
    """The same with a second hop: what is like the best that the others found.

    >>> deepen(expand("Who paints?")).nodes[-1].needs
    ('whole', 'content')
    """
    if any(node.id == FOUND for node in graph.nodes):
        return graph
    needs = tuple(node.id for node in graph.nodes)
    total = sum(node.weight for node in graph.nodes if not node.needs)
    hop = SubQuery(
        id=FOUND,
        text="",
        needs=needs,
        why="what is like the best that was found",
        weight=FOUND_WEIGHT * total,
    )
    return msgspec.structs.replace(graph, nodes=(*graph.nodes, hop))


def named(question: str, people: Collection[str]) -> list[str]:
    """The people whom a question names, sorted.

    >>> named("What did Ann's mother say?", ["Ann", "Bob"])
    ['Ann']
    """
    return sorted(name for name in people if name and _called(name).search(question))


def about(question: str, people: Collection[str]) -> str:
    """The one person whom a question names; empty for none or several."""
    names = named(question, people)
    return names[0] if len(names) == 1 else ""


def without_names(question: str, people: Collection[str]) -> str:
    """A question without the names of people.

    >>> without_names("What are Ann's pets called?", ["Ann"])
    'What are pets called?'
    """
    for name in sorted(filter(None, people), key=len, reverse=True):
        question = _called(name).sub(" ", question)
    return " ".join(question.split())


def _called(name: str) -> re.Pattern[str]:
    either = "|".join(map(re.escape, dict.fromkeys((name, name.title()))))  # an actor may be written small
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)(?:['’]s?(?!\w))?")


def _with_equal_texts_once(nodes: Sequence[SubQuery]) -> Iterable[SubQuery]:
    """One sub-query for each text; it counts as often as it was wanted."""
    texts: dict[str, SubQuery] = {}
    for node in nodes:
        same = texts.get(node.text)
        texts[node.text] = msgspec.structs.replace(same, weight=same.weight + node.weight) if same else node
    return texts.values()
