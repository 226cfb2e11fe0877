"""Access to a cognitive agent's memories: the content of its buffer, and search hits for a sub-query."""

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from agentx.core.event_bus import MEMORY_CHANGED, MemoryChanged
from agentx.engine.engine import Engine
from agentx.search.background_worker import SearchLate
from agentx.storage.events.cognition_events import Outdated
from agentx.synthesis.cognition.cognition_extractor import HAPPENED, LEVELS, OF_TOPIC, TELLS_OF
from agentx.synthesis.cognition.curation import RetrievedMemory
from agentx.synthesis.cognition.expansion import SubQuery
from agentx.synthesis.cognition.metrics import BufferedMemory
from agentx.synthesis.cognition.prompts import ShownMemory, Topic, tokens_of
from agentx.synthesis.cognition.recognizer import Recognition
from agentx.synthesis.cognition.speakers import said_by, speaker
from agentx.synthesis.facts.supersession import MOST_KNOWN, Known, outdated, remaining
from agentx.synthesis.facts.validity import is_true, since, until
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.mind import FIRST_UTILITY, Mind, retention
from agentx.synthesis.state.state import Message, State

MISSING = "missing"
"""Begins the ids of sub-queries for what a buffer lacks; that nothing is found for them is not a fault."""

LINKED_SHARE = 0.5
"""Score of a memory that was not found itself, relative to the found one that links to it."""

FOLLOWED = 10
"""Links are followed for this number of best hits."""

MOST_TOPICS = 50

_STANDING = ("active", "dormant")

_RULES = ("constraint", "rejection")
_BINDING = (HAPPENED, TELLS_OF)


def held(state: State, mind: Mind, now: int, temperature: float) -> list[ShownMemory]:
    """Return the memories of a buffer in the order of their entry, without those that have ended since."""
    return [
        remembered(item, retention(slot, now, temperature))
        for name, slot in mind.buffer.items()
        if (item := state.items.get(name)) is not None and is_true(item, state.at)
    ]


def remembered(item: MemoryItem, decay: float = 1.0) -> ShownMemory:
    """Return a memory item as a model sees it."""
    return ShownMemory(
        id=item.id,
        level=LEVELS.get(sort_of(item), "L2"),
        text=item.text,
        decay=decay,
        topic=topic_of(item),
        at=since(item)[:16],
        until=until(item)[:16],
        by=said_by(item.links),
    )


def with_outdated(
    engine: Engine, state: State, tally: "Tally", found: Recognition, message: Message
) -> Recognition:
    """Add to what was recognised without a model the memories that it makes untrue."""
    if found.input_type == "question" or found.outdated:
        return found
    by = speaker(message.actor, message.text)
    earlier = (
        one if item.status in _STANDING else msgspec.structs.replace(one, over=not is_true(item, state.at))
        for item in reversed(state.items.values())
        if (one := tally.known(item)) is not None and one.said < message.seq and one.by == by
    )
    known = list(islice(earlier, MOST_KNOWN))[::-1]

    def like(one: str, other: str) -> float | None:
        vectors = engine.meanings.of((one, other))
        return float(vectors[one] @ vectors[other]) if one in vectors and other in vectors else None

    told = outdated(found.memories, message.text, known, like, message.at)
    return msgspec.structs.replace(found, memories=told.memories, outdated=told.outdated)


def with_rest(state: State, found: Recognition) -> tuple[Outdated, ...]:
    """Return what a model found untrue, each with what stays true of it."""
    texts = [(state.items[one.memory].text, found.memories[one.by].text) for one in found.outdated]
    return tuple(
        msgspec.structs.replace(one, rest=remaining(*pair))
        for one, pair in zip(found.outdated, texts, strict=True)
    )


def topic_of(item: MemoryItem) -> str:
    """Return the id of the topic that a memory belongs to; empty for none."""
    return next((link.target for link in item.links if link.relation == OF_TOPIC), "")


def scored(state: State, mind: Mind, now: int, temperature: float) -> tuple[BufferedMemory, ...]:
    """Return a buffer with its scores, for the record."""
    return tuple(
        BufferedMemory(
            id=one.id,
            level=one.level,
            decay=round(one.decay, 4),
            utility=slot.utility,
            reward=slot.reward,
            strength=round(slot.strength, 4),
            tokens=tokens_of(one),
        )
        for one in held(state, mind, now, temperature)
        for slot in [mind.buffer[one.id]]
    )


def utilities(mind: Mind, buffer: Iterable[ShownMemory]) -> dict[str, tuple[str, float]]:
    """Return the text and utility of each memory of a buffer, by id."""
    return {
        one.id: (one.text, mind.buffer[one.id].utility if one.id in mind.buffer else FIRST_UTILITY)
        for one in buffer
    }


class Tally:
    """Figures on what a workspace remembers, counted once and updated as memory changes.

    Args:
        engine: The workspace; its changes are followed for as long as ``owner`` lives.
        owner: The object that uses the figures.

    Attributes:
        memories: Number of memories.
        links: Number of links between what is known and what happened, in both directions.
        places: Messages with memories, by seq, numbered in the order of their first memory.
    """

    def __init__(self, engine: Engine, owner: object) -> None:
        self._topics: dict[str, None] = {}
        self._ruling: set[int] = set()
        self._people: Counter[str] = Counter()
        self._told: dict[int, dict[str, None]] = {}
        self._known: dict[str, tuple[MemoryItem, Known | None]] = {}
        self.places: dict[int, int] = {}
        self.memories = self.links = 0
        with engine.write_path.exclusive():
            for item in engine.log.state.items.values():
                self._count(item, 1)
            forget = engine.bus.subscribe(MEMORY_CHANGED, self._take)
        weakref.finalize(owner, forget)

    def topics(self, state: State) -> list[Topic]:
        """Return the latest active topics, oldest first."""
        found = (item for name in reversed(self._topics) if (item := state.items.get(name)) is not None)
        latest = islice((item for item in found if item.status == "active"), MOST_TOPICS)
        return [Topic(item.id, item.text) for item in latest][::-1]

    @property
    def people(self) -> list[str]:
        """The names of all who said something that is remembered, sorted."""
        return sorted(+self._people)

    def is_rule(self, message: int) -> bool:
        """Return whether the message with this seq states a rule."""
        return message in self._ruling

    def known(self, item: MemoryItem) -> Known | None:
        """Return what an item says of the world, as if it were true; ``None`` for one of another kind."""
        made = self._known.get(item.id)
        if made is None or made[0] is not item:
            tells = sort_of(item) in ("knowledge", "episode") and item.evidence
            one = Known(item.id, item.text, item.evidence[0].seq, said_by(item.links)) if tells else None
            made = self._known[item.id] = item, one
        return made[1]

    def of_message(self, message: int, items: Mapping[str, MemoryItem]) -> Iterator[MemoryItem]:
        """Yield the items that rest on a message first of all, in the order of their creation."""
        for name in self._told.get(message, ()):
            item = items.get(name)
            if item is not None and item.evidence and item.evidence[0].seq == message:
                yield item

    def _take(self, changed: MemoryChanged) -> None:
        if changed.before is not None:
            self._count(changed.before, -1)
        self._count(changed.item, 1)

    def _count(self, item: MemoryItem, sign: int) -> None:
        if item.evidence:
            self._told.setdefault(item.evidence[0].seq, {}).setdefault(item.id)
        if (sort := sort_of(item)) in LEVELS:
            self.memories += sign * (item.status in _STANDING)
            self.links += sign * links_of(item)
            if by := said_by(item.links):
                self._people[by] += sign
            if item.evidence:
                self.places.setdefault(item.evidence[0].seq, len(self.places) + 1)
            if sort == "topic":
                self._topics[item.id] = None
        elif item.kind in _RULES and item.status == "active":
            self._ruling.update(place.seq for place in item.evidence)


def links_of(item: MemoryItem) -> int:
    """Return the number of links between a memory and what happened or what is known."""
    return sum(link.relation in _BINDING for link in item.links)


class Retrieval:
    """Searches memory items for sub-queries, and follows their links.

    Args:
        search: Returns the items nearest to a text, best first.
        state: The workspace.
        places: Messages with memories, by seq.

    Attributes:
        faults: What could not be done, one sentence each.
    """

    def __init__(
        self, search: Callable[[str], Sequence[SearchHit]], state: State, places: Mapping[int, int]
    ) -> None:
        self._search = search
        self._state = state
        self._places = places
        self.faults: list[str] = []

    def search(self, query: SubQuery, k: int) -> Sequence[RetrievedMemory]:
        """Return the memories nearest to a sub-query, best first."""
        try:
            hits = self._search(query.text)[:k]
        except SearchLate as error:
            self.faults.append(str(error))
            return ()
        found = [
            self._found(item, hit.score)
            for hit in hits
            if (item := self._state.items.get(hit.symbol)) is not None
            and sort_of(item) in LEVELS
            and is_true(item, self._state.at)
        ]
        if not hits and not query.id.startswith(MISSING):
            self.faults.append(f"Nothing is found for {query.text[:80]!r}.")
        return found

    def followed(self, ranked: Sequence[RetrievedMemory]) -> list[RetrievedMemory]:
        """Return the memories linked to the best hits that were not found themselves."""
        known = {one.id for one in ranked}
        found: dict[str, RetrievedMemory] = {}
        items = self._state.items
        for one in ranked[:FOLLOWED]:
            for link in items[one.id].links if one.id in items else ():
                item = items.get(link.target) if link.relation in _BINDING else None
                if item is not None and item.id not in known and is_true(item, self._state.at):
                    found.setdefault(item.id, self._found(item, one.score * LINKED_SHARE))
        return list(found.values())

    def _found(self, item: MemoryItem, score: float) -> RetrievedMemory:
        place = self._places.get(item.evidence[0].seq, 0) if item.evidence else 0
        by = said_by(item.links)
        return RetrievedMemory(
            id=item.id, text=item.text, score=score, by=by, session=topic_of(item), place=place
        )
