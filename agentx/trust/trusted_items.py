"""What the history of a workspace would run by itself: schedules, and the commands of capabilities."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import CapabilityDetail
from agentx.synthesis.state.state import State
from agentx.trust.digests import digest

_DEFAULTS = ScheduleSet(id="", cron="")


class TrustedItem(msgspec.Struct, frozen=True):
    """Something that the user trusts by its content.

    Attributes:
        kind: ``schedule`` or ``capability``.
        name: Its ID.
        does: What it would do, as it follows "would" in a sentence.
        content: Everything that decides what it does.
    """

    kind: str
    name: str
    does: str
    content: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The hash by which it is trusted."""
        return digest([self.kind, self.content])


def of_schedule(rule: ScheduleSet) -> TrustedItem:
    """Return the item of a schedule.

    Fields at their default do not count, so that a later version can add fields.
    """
    # Through JSON and back: 1 becomes 1.0, as in the log.
    recorded = msgspec.json.decode(msgspec.json.encode(rule), type=ScheduleSet)
    fields, defaults = msgspec.to_builtins(recorded), msgspec.to_builtins(_DEFAULTS)
    content = {name: value for name, value in fields.items() if value != defaults.get(name)}
    does = "resume an interrupted run"
    if rule.sort != "heartbeat":
        does = f"have an agent do at {rule.cron}: {one_line(rule.task)}"
    return TrustedItem("schedule", rule.id, does, content)


def of_capability(name: str, detail: CapabilityDetail) -> TrustedItem:
    """Return the item of a capability: the command that checks whether it works."""
    return TrustedItem("capability", name, f"run `{detail.command}`", {"command": detail.command})


def in_state(state: State) -> list[TrustedItem]:
    """Return everything that a state would run by itself."""
    found = [of_schedule(known.rule) for known in state.schedules.values()]
    return found + [
        of_capability(item.id, item.detail)
        for item in state.active("capability")
        if isinstance(item.detail, CapabilityDetail)
    ]
