"""The hash chain, followed line by line, so that each damage is told once and where it is.

A reader takes what it can (:class:`agentx.storage.log.history.Chain`); this says what is wrong. A line that does not follow
is in doubt until the next one shows what it was: the next one follows from it (then the line itself was changed), from
the line before it (then it is no event of this history), or from neither.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from agentx.storage.events.codec import GENESIS, Codec, DamagedLine, Parts, chain, split
from agentx.storage.events.types import Event
from agentx.storage.files import nofollow
from agentx.storage.log.history import LIVE, count_segments, segment_path

Line = tuple[str, int, bytes]
"""A line of the log: its file, its number in it from 1, and its bytes; 0 and nothing for a file without one."""

Told = Callable[[str, str], None]
"""Told the place (file and line) and what is wrong there."""


def log_lines(root: Path, first: int = 1) -> Iterator[Line]:
    """Every whole line of the log as it stands, from a segment on. Takes no lock.

    A segment that is lost, or holds no line, is given without one. A last line without its end is not there yet.
    """
    number, sealed = first, os.stat_result([0] * 10)
    while True:
        path = segment_path(number)
        try:
            file = nofollow.open_file(root / path)
        except FileNotFoundError:
            if number < count_segments(root):
                yield path, 0, b""
                number += 1
                continue
            if not nofollow.exists(root / LIVE):
                yield LIVE, 0, b""
                return
            path, file = LIVE, nofollow.open_file(root / LIVE)
        with file:
            info = os.fstat(file.fileno())
            if path == LIVE and nofollow.exists(root / segment_path(number)):
                continue  # sealed between the two looks: what is open may be a later log
            if path == LIVE and os.path.samestat(info, sealed):
                return  # a seal that a crash cut off: the segment stands under both names
            yield from _lines(path, file)
        if path == LIVE:
            return
        number, sealed = number + 1, info


def _lines(path: str, file: IO[bytes]) -> Iterator[Line]:
    held = False
    for number, line in enumerate(file, start=1):
        if line.endswith(b"\n"):
            held = True
            yield path, number, line
    if not held and path != LIVE:
        yield path, 0, b""


class _Doubt(NamedTuple):
    """A line that does not follow from the one before it; seq 0 where it cannot be read."""

    place: str
    seq: int
    line: bytes
    hashes: frozenset[str]


class Proof:
    """Follows the chain.

    Args:
        codec: Knows the event types.
        told: Told what is wrong.
        aside: Whether a line was set aside by the engine already: then it is told of there.
        seq: The event to begin behind.
        own_hash: Its hash.

    Attributes:
        seq: The last event whose place is known.
        hash: Its hash, as far as it can be trusted.
        faults: How many were told.
    """

    def __init__(
        self,
        codec: Codec,
        told: Told,
        aside: Callable[[bytes], bool],
        seq: int = 0,
        own_hash: str = GENESIS,
    ) -> None:
        self._codec = codec
        self._told = told
        self._aside = aside
        self._doubt: _Doubt | None = None
        self._file = ""
        self._entered = seq
        self._lost = False
        self._line = b""
        self.seq = seq
        self.hash = own_hash
        self.faults = 0

    def follow(self, lines: Iterable[Line]) -> Iterator[tuple[Event, bytes]]:
        """The events that can be read, each with its line; what is wrong is told meanwhile."""
        for path, number, line in lines:
            if not number:
                self._settle()
                self._lost = True
                self._tell(path, "is missing, or holds no event")
                continue
            if self._doubt is None and not self._lost:
                following = self._codec.follow(line, self.seq + 1, self.hash)
                if following is not None:  # as nearly every line does
                    self.seq, self.hash = following.seq, following.hash
                    self._file, self._line = path, line
                    yield following, line
                    continue
            place = f"{path}:{number}"
            try:
                parts = split(line)
                event = self._codec.decode_parts(parts)
            except DamagedLine:
                self._settle()
                self._doubt = _Doubt(place, 0, line, frozenset())
                continue
            if event.seq <= self._entered:
                self._enter(event, place)
                continue
            before, self._file = self._file or path, path
            if event.seq > self.seq and self._takes(parts, event, place, before):
                self._line = line
                yield event, line
            elif event.seq <= self.seq and (line != self._line or path == before):
                self._tell(place, f"is a second event {event.seq}", line)
        self._settle()

    def _enter(self, event: Event, place: str) -> None:
        """Pass over what stands before the event to begin behind, and look at that one's hash."""
        self._doubt = None
        if event.seq == self._entered and event.hash != self.hash:
            self._tell(place, f"is another event {event.seq} than the one to begin behind")
            self.hash = event.hash

    def _takes(self, parts: Parts, event: Event, place: str, before: str) -> bool:
        """Whether a line is the next event, or as good as: what was in doubt is settled by it."""
        doubt, lost, self._lost = self._doubt, self._lost, False
        if lost and doubt is None:
            pass  # what stood before it is gone with its file
        elif parts.extends(self.hash):
            if doubt is not None:
                self._tell(doubt.place, "is no event of this history", doubt.line)
        elif doubt is None:
            return self._hold(parts, event, place, before)
        elif any(parts.extends(own) for own in doubt.hashes):
            self._explain(doubt, event.seq)
        elif not doubt.seq and event.seq == self.seq + 2:
            self._tell(doubt.place, f"is event {self.seq + 1}, and is damaged")
        else:
            self._settle()
            return self._hold(parts, event, place, before)
        self.seq, self.hash, self._doubt = event.seq, event.hash, None
        return True

    def _hold(self, parts: Parts, event: Event, place: str, before: str) -> bool:
        """Wait for what the next line says of one that does not follow; behind a gap, take it."""
        if event.seq > self.seq + 1 and place.endswith(":1"):
            self._tell(before, f"lacks {_events(self.seq + 1, event.seq - 1)}")
            self.seq, self.hash = event.seq, event.hash
            return True
        own = frozenset({parts.hash, chain(self.hash, parts.header, parts.digest)})
        self._doubt = _Doubt(place, event.seq, b"", own)
        return False

    def _explain(self, doubt: _Doubt, following: int) -> None:
        """The next event follows from the line in doubt."""
        if doubt.seq > self.seq + 1 and following == doubt.seq + 1:
            self._tell(doubt.place, f"comes where {_events(self.seq + 1, doubt.seq - 1)} should be")
        else:
            self._tell(doubt.place, f"is event {following - 1}, and is damaged")

    def _settle(self) -> None:
        """No later line says what the one in doubt was."""
        doubt, self._doubt = self._doubt, None
        if doubt is None:
            return
        if doubt.seq > self.seq + 1:
            self._tell(doubt.place, f"comes where {_events(self.seq + 1, doubt.seq - 1)} should be")
        else:
            self._tell(doubt.place, "is damaged, or is no event of this history", doubt.line)
        self.seq = max(self.seq, doubt.seq)

    def _tell(self, place: str, what: str, line: bytes = b"") -> None:
        if line and self._aside(line):
            return
        self.faults += 1
        self._told(place, what)


def _events(first: int, last: int) -> str:
    return f"event {first}" if first == last else f"events {first} to {last}"
