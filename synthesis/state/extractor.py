"""The contract of everything that concludes: a pure function of one event and the state before its conclusion."""

from collections.abc import Callable, Sequence
from typing import Protocol

from agentx.storage.events.types import Body, Event
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.state.state import State

ReadBody = Callable[[Body], str]
"""Gives the whole text of a body, from its blob where it was too long for the event."""


class Extractor(Protocol):
    """Concludes from one fact at a time."""

    @property
    def name(self) -> str:
        """Stands in the ``Concluded`` event."""
        ...

    @property
    def version(self) -> int:
        """Raised when the same fact would give another conclusion."""
        ...

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """The changes to memory that this event calls for; empty for none.

        Pure: the same event, state and blobs give the same changes. ``state`` has folded everything up to and
        including ``event`` and the conclusions of the extractors that ran before this one; it is never changed here.
        """
        ...
