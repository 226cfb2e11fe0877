"""Payloads of sessions of other agents, as their hooks report them."""

from typing import Literal

from agentx.storage.events.types import Event, Payload

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
