"""Events about files of rules that other agents read: AGENTS.md, CLAUDE.md, Cursor rules."""

from typing import Literal

from agentx.storage.events.types import Body, Event, Payload


class RulesRead(Payload, frozen=True):
    """A file of rules was read; what it demands was proposed.

    Attributes:
        path: The file: relative to the artifacts, absolute if it is outside.
        body: Its text; of an edited file, the text between the markers.
        how: ``imported``, or ``edited`` if what AgentX exported to it was changed there.
    """

    path: str
    body: Body
    how: Literal["imported", "edited"] = "imported"

    def _line(self, _event: Event, /) -> str:
        verb = "Read the rules in" if self.how == "imported" else "Read the edited rules in"
        return f"{verb} {self.path}"

    def _rank(self, _event: Event, /) -> int:
        return 4


class RulesExported(Payload, frozen=True):
    """The active rules were written to a file, between markers. The event's key names the text.

    Attributes:
        path: The file, as in :class:`RulesRead`.
        body: The text between the markers.
        items: IDs of the items, in the order of their lines.
    """

    path: str
    body: Body
    items: tuple[str, ...] = ()

    def _line(self, _event: Event, /) -> str:
        return f"Export {len(self.items)} rule{'s' * (len(self.items) != 1)} to {self.path}"

    def _rank(self, _event: Event, /) -> int:
        return 3
