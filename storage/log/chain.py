"""Follow the hash chain line by line: decide which line is the next event, damaged, or foreign."""

import contextlib
from collections.abc import Callable, Iterable

from agentx.storage.events.codec import GENESIS, Codec, DamagedLine, Parts, split
from agentx.storage.events.types import Event

Following = Callable[[], Iterable[bytes]]
"""Returns the lines after the one in question, as many as are needed to judge it."""

_CUT_OUT = 10
"""Maximum gap before the last event of the log; an event further ahead is taken to be forged."""


def next_event(codec: Codec, line: bytes, seq: int, previous: str) -> Event | None:
    """Decode a line if it is event ``seq`` and its hash follows from the previous one; otherwise ``None``."""
    event = codec.follow(line, seq, previous)
    if event is None and line.endswith(b"\n"):  # a type or version unknown to this release
        with contextlib.suppress(DamagedLine, ValueError):
            parts = split(line)
            found = codec.decode_parts(parts)
            if found.seq == seq and parts.extends(previous):
                return found
    return event


class Chain:
    """Follows the hash chain over lines and decides for each whether it is an event of this history.

    A damaged or missing line hides nothing else: the event after it is accepted, and the problem is
    reported. An intact line that does not follow from any event here is foreign: the loser of two writers
    without a lock, a line of another history, or a forged one. It is rejected, like everything that follows
    from it.

    Args:
        codec: Knows the event types.
        seq: The event to continue after.
        own_hash: Its hash; empty to start in the middle of the chain, where no hash is known yet.

    Attributes:
        seq: The last accepted event.
        hash: Its hash.
    """

    def __init__(self, codec: Codec, seq: int = 0, own_hash: str = GENESIS) -> None:
        self._codec = codec
        self._lost = 0
        self._foreign: dict[int, set[str]] = {}
        self.seq = seq
        self.hash = own_hash
        self.enter()

    def enter(self, above: int = 0, lost: int = 0) -> None:
        """Continue in another file, which may repeat events that were accepted already.

        Args:
            above: Its next events come after this one.
            lost: Maximum number of events in missing files before it.
        """
        self._entered, self._repeated = self.seq, above
        self._lost += lost
        self._foreign.clear()

    def take(self, line: bytes, following: Following = tuple) -> tuple[Event | None, str]:
        """Process the next line. A line without its newline does not count yet.

        Returns:
            The event, or ``None``, and the problem in one sentence, or the empty string.
        """
        event = self._codec.follow(line, self.seq + 1, self.hash)
        if event is None:
            return self._judge(line, following)
        self.seq, self.hash, self._lost = event.seq, event.hash, 0
        return event, ""

    def _judge(self, line: bytes, following: Following) -> tuple[Event | None, str]:
        """Judge a line that is not simply the next event."""
        if not line.endswith(b"\n"):
            return None, ""
        try:
            parts = split(line)
            event = self._codec.decode_parts(parts)
        except DamagedLine as error:
            self._lost += 1
            return None, str(error)
        problem = ""
        if event.seq <= self.seq:
            behind = self.seq if self.seq > self._entered else self._repeated
            if event.seq > behind:
                # A crash during a seal leaves the segment under both names: the same events come twice.
                self._repeated = event.seq
                return None, ""
            self._mark_foreign(event)
            return None, f"A second event {event.seq} follows event {behind}."
        if self.hash and not (event.seq == self.seq + 1 and parts.extends(self.hash)):
            if not self._jumps_to(event, parts, following):
                return None, f"Event {event.seq} does not follow from event {self.seq}."
            problem = f"Events {self.seq + 1} to {event.seq - 1} are missing."
        self.seq, self.hash, self._lost = event.seq, event.hash, 0
        return event, problem

    def _jumps_to(self, event: Event, parts: Parts, following: Following) -> bool:
        """Return whether to accept an event that does not follow from the last one.

        It is accepted if it comes after damage, and not if it belongs to another history. The lines after it
        decide: the longer chain is the history. If neither continues, the gap may be as large as the number
        of damaged lines seen, plus a few events that someone may have cut out.
        """
        missing = event.seq - self.seq - 1
        foreign = any(parts.extends(other) for other in self._foreign.get(event.seq - 1, ()))
        if not missing and not foreign:
            # It may be the next event with changed content; then what follows from it is ours.
            self._lost += 1
        if missing and not foreign:
            here, there = self._lengths(event.hash, following())
            if there > here or (there == here and missing <= self._lost + (0 if here else _CUT_OUT)):
                return True
        if missing or foreign:
            self._mark_foreign(event)
        return False

    def _lengths(self, other: str, lines: Iterable[bytes]) -> tuple[int, int]:
        """Count the lines that continue from the last accepted event, and from another event."""
        ends, lengths = [self.hash, other], [0, 0]
        for line in lines:
            try:
                parts = split(line)
            except DamagedLine:
                continue
            for which in (0, 1):
                if parts.extends(ends[which]):
                    ends[which], lengths[which] = parts.hash, lengths[which] + 1
                    break
        return lengths[0], lengths[1]

    def _mark_foreign(self, event: Event) -> None:
        self._foreign.setdefault(event.seq, set()).add(event.hash)
