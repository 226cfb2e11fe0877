"""The extractor interface: a pure function of one event and the state before its conclusion."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from agentx.storage.events.types import Body, Event, Payload
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.state.state import State

ReadBody = Callable[[Body], str]
"""Returns the full text of a body. Bodies too long for the event are read from their blob."""


class Extractor(Protocol):
    """Draws conclusions from one fact at a time."""

    @property
    def name(self) -> str:
        """Name of the extractor, recorded in the ``Concluded`` event."""
        ...

    @property
    def version(self) -> int:
        """Version of the extractor. Raise it when the same fact would give a different conclusion."""
        ...

    @property
    def reads(self) -> tuple[type[Payload], ...]:
        """Types of the payloads that it concludes from; it is not called for other events."""
        ...

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the changes to memory that this event causes; empty if there are none.

        Pure: the same event, state and blobs give the same changes. ``state`` includes everything up to and
        including ``event``, and the conclusions of the extractors that ran before this one. It must not be
        modified here.
        """
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """An extractor part of whose work needs no state, and is cached by the text."""

    def read_ahead(self, data: Payload, actor: str, read: ReadBody) -> None:
        """Do this part of the work for a fact that will be recorded."""
        ...
