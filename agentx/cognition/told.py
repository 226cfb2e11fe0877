"""The sentences that a cognitive agent may answer with, each with what was told around it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from agentx.storage.text import one_line
from agentx.synthesis.cognition.evidence import Sentence
from agentx.synthesis.facts.validity import chain_of, is_true
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.state.state import State

SITTING_S = 3_600.0
"""Messages further apart, in seconds, are not about each other."""


def told(names: Iterable[str], state: State, places: Mapping[int, int]) -> list[Sentence]:
    """Return the sentences of memories, of what they took the place of, and of the same messages.

    Args:
        names: Ids of items.
        state: The workspace.
        places: Messages with memories, by seq, in the order in which they were told.
    """
    items = state.items
    named = [items[name] for name in names if name in items and items[name].evidence]
    known = {one for item in named if _is_told(item) for one in chain_of(item.id, items)}
    seqs = sorted(places)
    before = dict(zip(seqs[1:], seqs, strict=False))
    # An item of another kind is a hit, too: its message says the same
    wanted = {item.evidence[0].seq for item in (*named, *(items[one] for one in known)) if item.evidence}
    around = wanted | {before[seq] for seq in wanted if seq in before}
    messages: defaultdict[int, list[MemoryItem]] = defaultdict(list)
    for item in items.values():
        if not item.evidence or item.evidence[0].seq not in around:
            continue
        if item.id in known or (_is_told(item) and is_true(item, state.at)):
            messages[item.evidence[0].seq].append(item)
    texts = {seq: _sentences(found) for seq, found in messages.items()}
    whole = {seq: " ".join(text for _, text in found) for seq, found in texts.items()}
    return [
        Sentence(
            text=text,
            memory=item.id,
            order=seq,
            place=place,
            message=whole[seq],
            before=_before(seq, before, messages, whole),
        )
        for seq in sorted(wanted & texts.keys())
        for place, (item, text) in enumerate(texts[seq])
    ]


def _is_told(item: MemoryItem) -> bool:
    """Return whether an item is what the user told: knowledge, an episode, or a rule."""
    return sort_of(item) in ("knowledge", "episode") or item.kind == "constraint"


def _sentences(found: list[MemoryItem]) -> list[tuple[MemoryItem, str]]:
    """Return the sentences of the memories of one message, in the order in which they were told."""
    each: dict[str, tuple[int, MemoryItem]] = {}
    for item in found:
        for span in sentences(item.text):
            text = one_line(item.text[span.start : span.end])
            each.setdefault(text, (item.evidence[0].start + span.start, item))
    ordered = sorted(each.items(), key=lambda one: one[1][0])
    return [(item, text) for text, (_, item) in ordered]


def _before(
    seq: int, before: Mapping[int, int], messages: Mapping[int, list[MemoryItem]], whole: Mapping[int, str]
) -> str:
    """Return what was told just before a message, in the same sitting."""
    other = before.get(seq, 0)
    if other not in whole or not messages[other]:
        return ""
    then, now = (datetime.fromisoformat(messages[one][0].created_at) for one in (other, seq))
    return whole[other] if (now - then).total_seconds() <= SITTING_S else ""
