"""The extractor ``demands``: concludes constraints and rejections from what a user says, and from nothing else."""

from collections.abc import Sequence

from agentx.storage.events.types import Event, UserMessageSent
from agentx.synthesis.demands.book import Book, from_user
from agentx.synthesis.demands.classify import readings
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State


class DemandExtractor:
    """Takes the lasting demands out of a user's message, without a model.

    Only ``UserMessageSent`` by ``user`` or ``user:<name>`` is read: what a tool, a file, an agent or an import says
    never makes a rule. What is certain becomes active, what is likely is proposed.
    """

    name = "demands"
    version = 2

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """The rules that a message makes, repeats, replaces, narrows and ends; empty for most messages."""
        if not isinstance(event.data, UserMessageSent) or not from_user(event.actor):
            return ()
        text = read(event.data.body)
        book = Book(event.seq, text, state)
        for reading in readings(text):
            book.enter(reading)
        return tuple(book.changes)
