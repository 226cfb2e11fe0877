"""What synthesis concludes, as an event: ``Concluded`` carries the watermark and the changes to memory in one line.

So a conclusion is atomic, a rebuild never calls a model, and every change to memory has an author and a cause.
"""

from typing import Any

import msgspec

from agentx.storage.events.types import Payload
from agentx.synthesis.memory.items import Detail, Evidence, Link, MemoryItem, Scope, Status, Trust

PERSON = "person"
"""The ``extractor`` of a change that a person made by hand."""

MODEL = "model"
"""The ``extractor`` of what a language model concluded; it reads at its own pace, so its watermark is one of its own."""


MAINTENANCE = "maintenance"
"""The ``extractor`` of what nights do to memory; its watermark is one of its own, too."""


MAX_ITEM_BYTES = 12_000
"""What a change may take: a line of the history holds it, with what nights add to it. No demand or note is longer."""


class Add(msgspec.Struct, frozen=True, tag="add"):
    """A new item."""

    item: MemoryItem


class Patch(msgspec.Struct, frozen=True, kw_only=True, tag="patch", omit_defaults=True):
    """New values for some fields of an item; a field that is not given stays as it is."""

    id: str
    text: str | msgspec.UnsetType = msgspec.UNSET
    short: str | msgspec.UnsetType = msgspec.UNSET
    domain: str | msgspec.UnsetType = msgspec.UNSET
    scope: Scope | msgspec.UnsetType = msgspec.UNSET
    score: float | msgspec.UnsetType = msgspec.UNSET
    utility: float | msgspec.UnsetType = msgspec.UNSET
    strength: float | msgspec.UnsetType = msgspec.UNSET
    used_at: str | msgspec.UnsetType = msgspec.UNSET
    evidence: tuple[Evidence, ...] | msgspec.UnsetType = msgspec.UNSET
    trust: Trust | msgspec.UnsetType = msgspec.UNSET
    links: tuple[Link, ...] | msgspec.UnsetType = msgspec.UNSET
    until: str | msgspec.UnsetType = msgspec.UNSET
    status: Status | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    detail: Detail | msgspec.UnsetType = msgspec.UNSET

    def fields(self) -> dict[str, Any]:
        """The fields that are given, by name, without the id."""
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "id"}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}


Change = Add | Patch


def fits(change: Change) -> bool:
    """Whether a change is no longer than an item may be."""
    return len(msgspec.json.encode(change)) <= MAX_ITEM_BYTES


class Concluded(Payload, frozen=True):
    """Changes to memory, and how far the facts were read to conclude them.

    Attributes:
        extractor: What concluded: an extractor's name, :data:`PERSON`, :data:`MODEL` or :data:`MAINTENANCE`.
        version: The extractor's version.
        through: Watermark: every fact up to this seq has been read, by a model, by maintenance, or by all other extractors. A
            person's change leaves it where it was.
        changes: In the order in which they apply.
        model: The model that was asked; empty where none was. The tokens and the cost are those of asking it.
    """

    extractor: str
    version: int
    through: int
    changes: tuple[Change, ...] = ()
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


CONCLUSIONS: dict[str, type[Payload]] = {"Concluded": Concluded}
"""The event types that synthesis adds to :data:`agentx.storage.events.types.FACTS`."""
