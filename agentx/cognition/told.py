"""The sentences that a cognitive agent may answer with, each with what was told around it."""

from collections.abc import Iterable
from functools import lru_cache

from agentx.cognition.memories import Tally
from agentx.storage.text import one_line
from agentx.synthesis.cognition.evidence import Sentence
from agentx.synthesis.cognition.recognizer import asks
from agentx.synthesis.facts.validity import chain_of, is_true
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.state.state import State


def told(names: Iterable[str], state: State, tally: Tally) -> list[Sentence]:
    """Return the sentences of memories, of what they took the place of, and of the same messages."""
    items = state.items
    named = [items[name] for name in names if name in items and items[name].evidence]
    known = {one for item in named if _is_told(item) for one in chain_of(item.id, items)}
    # An item of another kind is a hit, too: its message says the same
    wanted = {item.evidence[0].seq for item in (*named, *(items[one] for one in known)) if item.evidence}
    return [
        Sentence(text=text, memory=item.id, order=seq)
        for seq in sorted(wanted)
        for item, text in _sentences(
            item
            for item in tally.of_message(seq, items)
            if item.id in known or (_is_told(item) and is_true(item, state.at))
        )
    ]


def _is_told(item: MemoryItem) -> bool:
    """Return whether an item is what the user told: knowledge, an episode, or a rule."""
    return sort_of(item) in ("knowledge", "episode") or item.kind == "constraint"


def _sentences(found: Iterable[MemoryItem]) -> list[tuple[MemoryItem, str]]:
    """Return the sentences of the memories of one message, in the order in which they were told."""
    each: dict[str, tuple[int, str, MemoryItem]] = {}
    for item in found:
        for start, text in _statements(item.text):
            each.setdefault(text.casefold(), (item.evidence[0].start + start, text, item))
    parts = (one for said, one in each.items() if not any(said in other and said != other for other in each))
    return [(item, text) for _, text, item in sorted(parts, key=lambda one: one[0])]


@lru_cache(maxsize=1 << 14)
def _statements(text: str) -> tuple[tuple[int, str], ...]:
    """Return the sentences of a text with their positions, without questions; cached, as memories recur."""
    each = ((span.start, one_line(text[span.start : span.end])) for span in sentences(text))
    return tuple((start, said) for start, said in each if not asks(said))  # a rule may be from a question
