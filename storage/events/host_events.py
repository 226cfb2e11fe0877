"""Payloads of other agents: sessions, as their hooks report them, and conversations that are kept here."""

from typing import Literal

from agentx.storage.events.types import Body, Event, Payload

SessionMoment = Literal["start", "compact", "compacted", "end"]

_DONE: dict[SessionMoment, str] = {
    "start": "starts",
    "compact": "is about to be compacted",
    "compacted": "was compacted",
    "end": "ends",
}


class SessionNoted(Payload, frozen=True):
    """A session of a host started, was compacted or ended; its id is the run of the event.

    Attributes:
        host: The host, such as ``claude-code``.
        moment: What happened.
        source: Why, in the host's word: ``startup``, ``resume``, ``clear``, ``auto``, ``logout``.
        model: The model of the session, if the host says.
        calls: At its end: number of its tool calls.
        denied: At its end: number of calls that were denied or refused.
    """

    host: str
    moment: SessionMoment
    source: str = ""
    model: str = ""
    calls: int = 0
    denied: int = 0

    def _line(self, event: Event, /) -> str:
        why = f" ({self.source})" if self.source else ""
        did = f" after {self.calls} call{'s' * (self.calls != 1)}" if self.moment == "end" else ""
        return f"Session {event.run} of {self.host} {_DONE[self.moment]}{why}{did}"

    def _rank(self, _event: Event, /) -> int:
        return 1


class ConversationChanged(Payload, frozen=True):
    """The items of a conversation that a framework keeps here changed; the run of the event names it.

    It is material, in the framework's own form: what the items tell stands in events of its own. The items of
    a conversation are those of all these events in order, each after the last ``dropped`` ones were removed.

    Attributes:
        host: The framework, such as ``openai-agents``.
        dropped: Number of items at the end that are no longer part of it.
        items: The items that were appended, as a JSON list; empty for none.
        facts: For each of them, the ends of the keys of the events that tell it, separated by spaces.
    """

    host: str
    dropped: int = 0
    items: Body = Body("")
    facts: tuple[str, ...] = ()

    def _line(self, event: Event, /) -> str:
        return f"{self.host} dropped {self.dropped} items of {event.run}" if self.dropped else ""

    def _rank(self, _event: Event, /) -> int:
        return 1
