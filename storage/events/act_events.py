"""The facts of acts: what was done, and what was found not to be done after all."""

from agentx.storage.events.types import WORDS, Body, Event, Payload
from agentx.storage.text import shorten


class ActDone(Payload, frozen=True):
    """An act was done: a call of a declared tool succeeded, or a program or the user reported it.

    The key of the event is the act's identity, so that the same act is recorded once.

    Attributes:
        name: Name of the tool, or of the act that a program reports.
        key: The values that make it this act, as a JSON object.
        window: Within what it is done once: empty for ever, else ``day DATE``, ``due SCHEDULE TIME`` or
            ``run RUN``.
        call_id: The call that did it; empty for a report.
    """

    name: str
    key: Body
    window: str = ""
    call_id: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"Done: {self.name} {shorten(self.key.text, WORDS)}"


class ActRetracted(Payload, frozen=True):
    """The user says that an act on record was not done; it may be done again.

    Attributes:
        name: Name of the act.
        done: Seq of the ``ActDone`` that it takes back, or of the ``ToolCallRequested`` that announced it
            with other acts whose outcome stays unknown.
        reason: The reason, in the user's words.
    """

    name: str
    done: int
    reason: str = ""

    def _line(self, _event: Event, /) -> str:
        return f"Not done: {self.name} of event {self.done}"
