"""What comes back by itself: of what a search found, the memories that are nearest and most alive stand first, each once.

A memory is an item of memory or a message; the record itself never fades, what was concluded of it does. What says no more
than something that stands there already is left out, by its words: an item that a recalled message says, too, a message
that a rule says above, a second item in other words.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from agentx.synthesis.language.tokens import cut
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.similarity.near_duplicates import likeness
from agentx.synthesis.state.state import State

FADED_SHARE = 0.5
"""What the score of a memory that has wholly faded counts for: where nothing else is near, it still comes back."""

MOST_LONGER = 2
"""Texts of which one has more than so many times the words of the other are not compared for what they mean."""

MOST_WORDS = 60
"""Nor are longer ones: they say more than one thing, and a search gives none that is nearly the same as another."""


class Recollection(msgspec.Struct, frozen=True):
    """What a search found, in the order in which it takes its room.

    Attributes:
        hits: Memory items, then messages, as many together as were asked for; then the rest as it was found.
        repeated: What was left out, with the id of what says the same.
    """

    hits: tuple[SearchHit, ...]
    repeated: tuple[tuple[SearchHit, str], ...]


class _Told(msgspec.Struct, frozen=True):
    """Something that stands there, in the forms in which it is compared."""

    name: str
    text: str
    plain: str
    words: int


def recollect(
    hits: Sequence[SearchHit], state: State, most: int, shown: Mapping[str, str], most_tokens: int
) -> Recollection:
    """Put the memories in front that matter most for a message.

    Args:
        hits: What was found for it, best first.
        state: What is remembered; each memory is as alive as it is at ``state.at``.
        most: How many memories.
        shown: The texts of what is shown already, by id.
        most_tokens: Of a passage, so much will be shown.

    >>> found = [SearchHit(id="a:1", text="retry()", score=1.0, kind="artifact")]
    >>> found.append(SearchHit(id="m:2:0", text="Payments are retried twice.", score=0.4, kind="message"))
    >>> [hit.id for hit in recollect(found, State(), 5, {}, 350).hits]
    ['m:2:0', 'a:1']
    """
    told = [_as_told(name, text) for name, text in shown.items()]
    memories: list[SearchHit] = []
    repeated: dict[str, str] = {}
    for hit in _by_life(hits, state):
        if len(memories) == most:
            break
        if same := _said_by(hit, told):
            repeated[hit.id] = same
        else:
            memories.append(hit)
            told.append(_as_told(_name(hit), cut(hit.text, most_tokens)))
    first = {hit.id for hit in memories}
    rest = [hit for hit in hits if hit.id not in first and hit.id not in repeated]
    repeated |= {hit.id: same for hit in rest if hit.kind == "memory" and (same := _said_by(hit, told))}
    memories.sort(key=lambda hit: hit.kind != "memory")
    return Recollection(
        (*memories, *(hit for hit in rest if hit.id not in repeated)),
        tuple((hit, repeated[hit.id]) for hit in hits if hit.id in repeated),
    )


def is_memory(hit: SearchHit, state: State) -> bool:
    """Whether a hit is a message, or an item that holds or sleeps; what is only proposed is none."""
    item = state.items.get(hit.symbol) if hit.kind == "memory" else None
    return hit.kind == "message" or (item is not None and item.status in ("active", "dormant"))


def _by_life(hits: Sequence[SearchHit], state: State) -> list[SearchHit]:
    """The memories by their scores and how alive they are."""
    behind = reversed(list(accumulate((hit.score for hit in reversed(hits)), max)))
    memories = [
        (level if hit.score < level else hit.score * _weight(hit, state), hit)
        for level, hit in zip(behind, hits, strict=True)
        if is_memory(hit, state)
    ]  # of a lower score than one behind it is what a search put first for words that it holds to the letter
    return [hit for _, hit in sorted(memories, key=lambda one: -one[0])]


def _weight(hit: SearchHit, state: State) -> float:
    """What a memory's score counts for, from :data:`FADED_SHARE` to 1."""
    if hit.kind == "message":
        return 1.0
    return FADED_SHARE + (1 - FADED_SHARE) * vitality(state.items[hit.symbol], state.at)


def _as_told(name: str, text: str) -> _Told:
    plain = " ".join(text.casefold().split()).rstrip(".!")
    return _Told(name, text, plain, plain.count(" ") + 1)


def _said_by(hit: SearchHit, told: Sequence[_Told]) -> str:
    """The id of what says all that a hit says; empty for nothing."""
    own = _as_told(hit.id, hit.text)
    for one in told:
        shorter, longer = sorted((own.words, one.words))
        comparable = longer <= min(MOST_WORDS, MOST_LONGER * shorter)
        if own.plain in one.plain or (comparable and likeness(own.text, one.text)):
            return one.name
    return ""


def _name(hit: SearchHit) -> str:
    return hit.symbol if hit.kind == "memory" else f"event {hit.seq}"
