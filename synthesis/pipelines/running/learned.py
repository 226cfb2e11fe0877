"""The extractor ``pipeline``: a memory item for each fact in a long-term memory file."""

from collections.abc import Sequence
from typing import ClassVar

from agentx.storage.events.pipeline_events import FileAmended, StageProved, key_of
from agentx.storage.events.types import Event
from agentx.storage.text import shorten
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import Evidence, Link, MemoryItem, item_id
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State


class Learned:
    """Makes a memory item of each fact of a proved stage.

    Implements :class:`agentx.synthesis.state.extractor.Extractor`. What a file holds already is not added to
    it again, so each fact comes once and need not be compared with earlier ones. The proof states which
    earlier facts no longer hold.
    """

    name: ClassVar[str] = "pipeline"
    version: ClassVar[int] = 2
    reads = (StageProved, FileAmended)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return an item for each fact of a stage or of a person's change, and the end of what it replaces.

        Other events cause no changes.
        """
        del read
        data = event.data
        if not isinstance(data, StageProved | FileAmended):
            return ()
        if isinstance(data, FileAmended):
            cause = f"{data.path} was changed"
        else:
            cause = f"{key_of(data.stage, data.item)} was done again"
        ids = [item_id("knowledge", event.seq, number) for number in range(len(data.learned))]
        items = ((one, state.items.get(one.item)) for one in data.superseded)
        # A stage may end an item that is still open and that the user has not changed.
        statuses = {"candidate", "active", "dormant"}
        ended = [(one, item) for one, item in items if item and item.status in statuses and not item.by_hand]
        replaces = {
            new: tuple(Link("supersedes", one.item) for one, _ in ended if one.by == number)
            for number, new in enumerate(ids, 1)
        }
        start, made = 0, list[Change]()
        for new, fact in zip(ids, data.learned, strict=True):
            end = start + len(fact.text)
            item = MemoryItem(
                id=new,
                kind="knowledge",
                text=fact.text,
                short=shorten(fact.text),
                domain=fact.topic,
                evidence=(Evidence(event.seq, start, end, fact.text),),
                trust="agent",
                links=replaces[new],
            )
            made.append(Add(item))
            start = end + 1
        return [*made, *(_end(item, ids[one.by - 1] if one.by else "", cause) for one, item in ended)]


def _end(item: MemoryItem, by: str, cause: str) -> Patch:
    if by:
        links, reason = (*item.links, Link("superseded_by", by)), f"{cause}, and says {by}."
        return Patch(id=item.id, status="retired", links=links, reason=reason)
    return Patch(id=item.id, status="retired", reason=f"{cause}, and says it no more.")
