"""The sentences that a cognitive agent may answer with, each with what was told around it."""

from collections import defaultdict
from collections.abc import Iterable

from agentx.storage.text import one_line
from agentx.synthesis.cognition.evidence import Sentence
from agentx.synthesis.cognition.recognizer import asks
from agentx.synthesis.facts.validity import chain_of, is_true
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.state.state import State


def told(names: Iterable[str], state: State) -> list[Sentence]:
    """Return the sentences of memories, of what they took the place of, and of the same messages."""
    items = state.items
    named = [items[name] for name in names if name in items and items[name].evidence]
    known = {one for item in named if _is_told(item) for one in chain_of(item.id, items)}
    # An item of another kind is a hit, too: its message says the same
    wanted = {item.evidence[0].seq for item in (*named, *(items[one] for one in known)) if item.evidence}
    messages: defaultdict[int, list[MemoryItem]] = defaultdict(list)
    for item in items.values():
        if not item.evidence or item.evidence[0].seq not in wanted:
            continue
        if item.id in known or (_is_told(item) and is_true(item, state.at)):
            messages[item.evidence[0].seq].append(item)
    return [
        Sentence(text=text, memory=item.id, order=seq)
        for seq in sorted(wanted & messages.keys())
        for item, text in _sentences(messages[seq])
    ]


def _is_told(item: MemoryItem) -> bool:
    """Return whether an item is what the user told: knowledge, an episode, or a rule."""
    return sort_of(item) in ("knowledge", "episode") or item.kind == "constraint"


def _sentences(found: list[MemoryItem]) -> list[tuple[MemoryItem, str]]:
    """Return the sentences of the memories of one message, in the order in which they were told."""
    each: dict[str, tuple[int, str, MemoryItem]] = {}
    for item in found:
        for span in sentences(item.text):
            text = one_line(item.text[span.start : span.end])
            if not asks(text):  # a rule may have been taken from a question
                each.setdefault(text.casefold(), (item.evidence[0].start + span.start, text, item))
    parts = (one for said, one in each.items() if not any(said in other and said != other for other in each))
    return [(item, text) for _, text, item in sorted(parts, key=lambda one: one[0])]
