"""What came of a message, by the product's own link: the evidence of an item names the events that it rests on.

A second statement of a standing demand makes no second item; it becomes evidence of the first, and is a hit as much
as the first was. A message without a demand that becomes evidence of one is wrong in the same way.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from agentx.storage.events.types import Event
from agentx.synthesis.memory.conclusions import MODEL, Add, Concluded
from agentx.synthesis.memory.items import MemoryItem

Linked = Mapping[int, Mapping[str, MemoryItem]]


def rests_on(item: MemoryItem, seq: int, text: str, span: str = "") -> bool:
    """Whether an item names words of a message as evidence.

    Args:
        item: The item.
        seq: The event of the message.
        text: The message.
        span: The words that it must overlap; any where they are empty or not in the message.
    """
    start = text.find(span)
    end = start + len(span)
    anywhere = not span or start < 0
    return any(
        one.seq == seq and (anywhere or (one.start < end and one.end > start)) for one in item.evidence
    )


def linked(events: Iterable[Event]) -> Linked:
    """The items that rest on each event, by id, as they stood right after it, or after a model read it.

    Args:
        events: The whole history of a workspace.
    """
    items: dict[str, MemoryItem] = {}
    found: defaultdict[int, dict[str, MemoryItem]] = defaultdict(dict)
    for event in events:
        if not isinstance(event.data, Concluded):
            continue
        before = {
            name: {one.seq for one in items[name].evidence}
            for change in event.data.changes
            if not isinstance(change, Add) and (name := change.id) in items
        }
        for change in event.data.changes:
            if isinstance(change, Add):
                items[change.item.id] = change.item
                before[change.item.id] = set()
            elif change.id in items:
                items[change.id] = msgspec.structs.replace(items[change.id], **change.fields())
        for name, known in before.items():
            rests = {one.seq for one in items[name].evidence}
            for seq in rests if event.data.extractor == MODEL else rests - known:
                found[seq][name] = items[name]
    return found
