"""The interactions of a cognitive agent, read from history: metrics, snapshots, and memories of each.

Logs, metrics and the report are made from these alone. So they can be made again from any history, at any
time, with the same result.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.types import Body, Event
from agentx.synthesis.cognition.metrics import Metrics, Snapshot
from agentx.synthesis.state.mind import Mind, retention

UNREADABLE = "What was measured of this interaction cannot be read."

_Shape = TypeVar("_Shape", Metrics, Snapshot)


class DecayPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A memory at the end of one interaction.

    Attributes:
        decay_score: R, from 0 to 1. For a memory that has just left the buffer, its last score.
        was_accessed: It was in the prompt of the answer.
        was_reinforced: The answer used it, and that made it stronger.
        was_evicted: It left the buffer.
        stability: S T, in interactions. From here its score falls as ``decay_score * exp(-t / stability)``.
    """

    memory_id: str
    interaction_id: int
    decay_score: float
    was_accessed: bool = False
    was_reinforced: bool = False
    was_evicted: bool = False
    stability: float = 1.0


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """A message and its answer.

    Attributes:
        interaction_id: Its number in the session, from 1.
        at: Time of its end, in UTC.
        run: The run that it belongs to; empty for none.
        message: Seq of the message, and ``answer`` that of the answer; 0 for none.
        judge_score: How well the answer rests on the buffer, from 0 to 1; ``None`` where it was not judged.
        points: Every memory of the buffer.
    """

    interaction_id: int
    at: str
    run: str
    message: int
    answer: int
    judge_score: float | None
    metrics: Metrics
    snapshot: Snapshot
    points: tuple[DecayPoint, ...]


class SessionReplay:
    """Follows one session through its events."""

    def __init__(self, session: str, read: Callable[[Body], str]) -> None:
        self.session = session
        self.mind = Mind()
        self._read = read

    def take(self, event: Event) -> Interaction | None:
        """Return the interaction that an event ends; ``None`` for any other event."""
        done = event.data
        if isinstance(done, Recognized) and done.session == self.session:
            self.mind = self.mind.recognized(done)
        if not isinstance(done, Interacted) or done.session != self.session:
            return None
        held = self.mind.interacted(msgspec.structs.replace(done, evicted=()))
        self.mind = self.mind.interacted(done)
        stronger = done.reinforced if done.boost else ()
        accessed, reinforced, evicted = map(frozenset, (done.accessed, stronger, done.evicted))
        return Interaction(
            interaction_id=done.interaction,
            at=event.at,
            run=event.run,
            message=done.message,
            answer=done.answer,
            judge_score=done.judge if done.judge >= 0 else None,
            metrics=_parsed(self._read(done.metrics), Metrics, Metrics(faults=[UNREADABLE])),
            snapshot=_parsed(self._read(done.snapshot), Snapshot, Snapshot()),
            points=tuple(
                DecayPoint(
                    memory_id=name,
                    interaction_id=done.interaction,
                    decay_score=retention(slot, done.interaction, done.temperature),
                    was_accessed=name in accessed,
                    was_reinforced=name in reinforced,
                    was_evicted=name in evicted,
                    stability=slot.strength * done.temperature,
                )
                for name, slot in held.buffer.items()
            ),
        )


def interactions(events: Iterable[Event], session: str, read: Callable[[Body], str]) -> Iterator[Interaction]:
    """Return all interactions of a session, in order; see :class:`SessionReplay`."""
    replay = SessionReplay(session, read)
    return (one for event in events if (one := replay.take(event)) is not None)


def sessions(events: Iterable[Event]) -> dict[str, int]:
    """Return the number of interactions of each session, ordered by their latest."""
    found: dict[str, int] = {}
    for event in events:
        if isinstance(event.data, Interacted):
            found[event.data.session] = found.pop(event.data.session, 0) + 1
    return found


def _parsed(text: str, shape: type[_Shape], otherwise: _Shape) -> _Shape:
    if not text:
        return shape()
    try:
        return msgspec.json.decode(text, type=shape)
    # A wrong shape is a DecodeError too: from another version, or cut by a purge
    except (msgspec.DecodeError, RecursionError):
        return otherwise
