"""The extractor ``demands``: concludes constraints and rejections from the user's own messages only."""

from collections.abc import Sequence

from agentx.storage.events.types import Event, UserMessageSent
from agentx.synthesis.demands.book import Book, from_user
from agentx.synthesis.demands.classify import readings
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State


class DemandExtractor:
    """Extracts the lasting demands from a user's message, without a model.

    Only ``UserMessageSent`` by ``user`` or ``user:<name>`` is read: the words of a tool, a file, an agent or
    an import never make a rule. What is certain becomes active, what is likely is proposed.
    """

    name = "demands"
    version = 2
    reads = (UserMessageSent,)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the changes to rules that a message makes; empty for most messages."""
        if not isinstance(event.data, UserMessageSent) or not from_user(event.actor):
            return ()
        text = read(event.data.body)
        book = Book(event.seq, text, state)
        for reading in readings(text):
            book.enter(reading)
        return tuple(book.changes)
