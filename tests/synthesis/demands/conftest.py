"""A conversation driven through the real extractor and the real fold."""

import pytest

from agentx.storage.events.types import Body, Event, Payload, UserMessageSent
from agentx.synthesis.demands.demand_extractor import DemandExtractor
from agentx.synthesis.memory.conclusions import Change, Concluded
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.state.state import State


class Conversation:
    """Says messages one by one; ``state`` is what a workspace would have folded."""

    def __init__(self) -> None:
        self.state = State()
        self.extractor = DemandExtractor()
        self.last: Event | None = None

    def say(self, text: str, actor: str = "user") -> tuple[Change, ...]:
        return self.happen(UserMessageSent(body=Body(text)), actor)

    def happen(self, data: Payload, actor: str) -> tuple[Change, ...]:
        event = self.last = self._append(data, actor)
        changes = tuple(self.extractor.conclude(event, self.state, lambda body: body.text))
        if changes:
            concluded = Concluded(extractor="demands", version=1, through=event.seq, changes=changes)
            self._append(concluded, "engine:synthesis")
        return changes

    def read_again(self) -> tuple[Change, ...]:
        """What the extractor would conclude if it read the last message once more."""
        assert self.last is not None
        return tuple(self.extractor.conclude(self.last, self.state, lambda body: body.text))

    def _append(self, data: Payload, actor: str) -> Event:
        event = Event(seq=self.state.seq + 1, at="", type=type(data).__name__, v=1, actor=actor, data=data)
        self.state.apply(event)
        return event

    def items(self, status: str = "active", kind: str = "constraint") -> list[MemoryItem]:
        return [item for item in self.state.items.values() if item.status == status and item.kind == kind]

    def texts(self, status: str = "active", kind: str = "constraint") -> list[str]:
        return [item.text for item in self.items(status, kind)]


@pytest.fixture
def talk() -> Conversation:
    return Conversation()
