"""The conclusions of synthesis as an event: ``Concluded`` holds the watermark and the changes to memory.

The event is one line of the history. So a conclusion is atomic, a rebuild never calls a model, and every
change to memory has an author and a cause.
"""

from typing import Any

import msgspec

from agentx.storage.events.types import Event, Payload
from agentx.storage.text import one_line, shorten
from agentx.synthesis.memory.items import (
    LAPSED,
    Detail,
    Evidence,
    HotIssueDetail,
    Link,
    MemoryItem,
    RunTally,
    Scope,
    Status,
    Trust,
    not_passed,
    sort_of,
    status_in_words,
)

PERSON = "person"
"""The ``extractor`` of a change that the user made by hand."""

MODEL = "model"
"""The ``extractor`` of a language model's conclusions; it reads at its own pace, with its own watermark."""

AGENT = "agent"
"""The ``extractor`` of what an agent settled."""

CHECK_WRITER = "checks"
"""The ``extractor`` of checks that a model wrote."""


MAINTENANCE = "maintenance"
"""The ``extractor`` of nightly memory maintenance, which also has its own watermark."""


MAX_ITEM_BYTES = 12_000
"""Maximum size of a change as JSON.

A line of the history then holds the item together with what maintenance adds to it. No demand or note is
longer.
"""


class Add(msgspec.Struct, frozen=True, tag="add"):
    """A new item."""

    item: MemoryItem

    def describe(self) -> str:
        """Describe the change in one line for the user."""
        item = self.item
        if isinstance(item.detail, HotIssueDetail):
            silenced = not_passed(item.detail)
            state = f"is {silenced}" if silenced else "fails"
            return f"Hot issue {item.id} opens: {_check_name(item.detail)} {state}"
        state = "" if item.status == "active" else f" ({status_in_words(item)})"
        return f"New {sort_of(item).replace('_', ' ')} {item.id}{state}: {item.short or shorten(item.text)}"

    def turns_hot_issue(self) -> bool:
        """Return whether a hot issue opens."""
        return isinstance(self.item.detail, HotIssueDetail)


class Patch(msgspec.Struct, frozen=True, kw_only=True, tag="patch", omit_defaults=True):
    """New values for some fields of an item; the other fields stay unchanged."""

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
    worded_by: str | msgspec.UnsetType = msgspec.UNSET
    perhaps_ended_by: tuple[Evidence, ...] | msgspec.UnsetType = msgspec.UNSET
    status: Status | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    detail: Detail | msgspec.UnsetType = msgspec.UNSET

    def fields(self) -> dict[str, Any]:
        """Return the given fields by name, without the id."""
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "id"}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}

    def describe(self) -> str:
        """Describe the change in one line for the user."""
        if self.turns_hot_issue() and isinstance(self.detail, HotIssueDetail):
            outcome = "passes" if self.detail.ended == "passed" else "is gone"
            return f"Hot issue {self.id} closes: {_check_name(self.detail)} {outcome}"
        if isinstance(self.detail, HotIssueDetail) and self.detail.silenced:
            return f"Hot issue {self.id} stays open: {_check_name(self.detail)} is {not_passed(self.detail)}"
        if self.status == "closed":
            return f"{self.id} lapsed" if (self.reason or "").startswith(LAPSED) else f"{self.id} is resolved"
        if self.status == "retired" and self.links and self.links[-1].relation == "superseded_by":
            return f"{self.id} is superseded"
        if self.perhaps_ended_by:
            return f"{self.id} is perhaps ended"
        return f"{self.id} is {self.status}" if self.status else f"{self.id} changed"

    def turns_hot_issue(self) -> bool:
        """Return whether a hot issue closes."""
        return self.status == "closed" and isinstance(self.detail, HotIssueDetail)


def _check_name(detail: HotIssueDetail) -> str:
    return detail.check.rpartition("::")[2]


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """The counts of a test run, with which the next run of the same command is compared.

    Attributes:
        id: Names the command: a digest, see :func:`agentx.synthesis.checks.issue_endings.counts_key`.
        tally: The counts.
        seq: Event of the run.
    """

    id: str
    tally: RunTally
    seq: int

    def describe(self) -> str:
        """Return an empty line: nothing for the user to know."""
        return ""

    def turns_hot_issue(self) -> bool:
        """Return False."""
        return False


Change = Add | Patch | Counted


def fits(change: Change) -> bool:
    """Return whether a change is within :data:`MAX_ITEM_BYTES`."""
    return len(msgspec.json.encode(change)) <= MAX_ITEM_BYTES


class Concluded(Payload, frozen=True):
    """Changes to memory, with the watermark up to which the facts were read.

    Attributes:
        extractor: The author: an extractor's name, :data:`PERSON`, :data:`AGENT`, :data:`MODEL`,
            :data:`CHECK_WRITER` or :data:`MAINTENANCE`.
        version: The extractor's version.
        through: Watermark: every fact up to this seq has been read, by a model, by maintenance, or by all
            other extractors. A change by the user leaves it unchanged.
        changes: The changes, in the order in which they apply.
        model: The model that was called; empty if none was. The tokens and the cost are those of this call.
    """

    extractor: str
    version: int
    through: int
    changes: tuple[Change, ...] = ()
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def _line(self, _event: Event, /) -> str:
        if self.extractor == MAINTENANCE and self.changes:
            return f"Maintain memory: {len(self.changes)} item{'s' * (len(self.changes) != 1)}"
        if self.extractor == CHECK_WRITER and self.changes:
            names = (change.id for change in self.changes if isinstance(change, Patch))
            return f"{one_line(self.model)} wrote checks of {', '.join(names)}"
        return "; ".join(filter(None, (change.describe() for change in self.changes[:3])))

    def _rank(self, _event: Event, /) -> int:
        if any(change.turns_hot_issue() for change in self.changes):
            return 7
        return 4 if any(change.describe() for change in self.changes) else 2


CONCLUSIONS: dict[str, type[Payload]] = {"Concluded": Concluded}
"""The event types that synthesis adds to :data:`agentx.storage.events.types.FACTS`."""
