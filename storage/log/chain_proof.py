"""Follow the hash chain line by line, to report each damage once and at the right place.

A reader accepts what it can (:class:`agentx.storage.log.history.Chain`); this module reports what is wrong. A
line that does not follow is in doubt until the next line resolves it. If the next line follows from it, the
line itself was changed. If the next line follows from the line before, the line in doubt is not an event of
this history. It may also follow from neither.
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
"""A line of the log: its file, its number from 1, and its bytes; 0 and nothing for a file without one."""

Told = Callable[[str, str], None]
"""Called with the place (file and line) and the problem there."""


def log_lines(root: Path, first: int = 1) -> Iterator[Line]:
    """Yield every complete line of the log unchecked, from a segment on. Takes no lock.

    A segment that is missing, or holds no line, is given without one. A last line without its newline does
    not count yet.
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
                continue  # sealed between the two checks: the open file may be a later log
            if path == LIVE and os.path.samestat(info, sealed):
                return  # a crash interrupted a seal: the segment has both names
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
    """A line that does not follow from the one before it; seq 0 if it cannot be read."""

    place: str
    seq: int
    line: bytes
    hashes: frozenset[str]


class ChainProof:
    """Follows the chain.

    Args:
        codec: Knows the event types.
        told: Called with each problem.
        aside: Returns whether the engine set a line aside; then it was reported already.
        seq: Number of the event to start after.
        own_hash: Its hash.

    Attributes:
        seq: The last event whose place is known.
        hash: Its hash, as far as it can be trusted.
        faults: Number of reported problems.
    """

    def __init__(
        self, codec: Codec, told: Told, aside: Callable[[bytes], bool], seq: int = 0, own_hash: str = GENESIS
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
        """Yield the readable events, each with its line, and report problems."""
        for path, number, line in lines:
            if not number:
                self._settle()
                self._lost = True
                self._tell(path, "is missing, or contains no event")
                continue
            if self._doubt is None and not self._lost:
                following = self._codec.follow(line, self.seq + 1, self.hash)
                if following is not None:  # the case for nearly every line
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
                self._doubt = None  # lines before the start event are skipped, and its hash is checked
                if event.seq == self._entered and event.hash != self.hash:
                    self._tell(place, f"is a different event {event.seq} than the expected start")
                    self.hash = event.hash
                continue
            before, self._file = self._file or path, path
            if event.seq > self.seq and self._takes(parts, event, place, before):
                self._line = line
                yield event, line
            elif event.seq <= self.seq and (line != self._line or path == before):
                self._tell(place, f"is a second event {event.seq}", line)
        self._settle()

    def _takes(self, parts: Parts, event: Event, place: str, before: str) -> bool:
        """Return whether to accept a line as the next event; resolve the line in doubt by it."""
        doubt, lost, self._lost = self._doubt, self._lost, False
        if lost and doubt is None:
            pass  # the events before it were lost with their file
        elif parts.extends(self.hash):
            if doubt is not None:
                self._tell(doubt.place, "is not an event of this history", doubt.line)
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
        """Put a line that does not follow in doubt, until the next line resolves it.

        If it begins a file after a gap, it is accepted.
        """
        if event.seq > self.seq + 1 and place.endswith(":1"):
            self._tell(before, f"lacks {_events(self.seq + 1, event.seq - 1)}")
            self.seq, self.hash = event.seq, event.hash
            return True
        own = frozenset({parts.hash, chain(self.hash, parts.header, parts.digest)})
        self._doubt = _Doubt(place, event.seq, b"", own)
        return False

    def _explain(self, doubt: _Doubt, following: int) -> None:
        """Report the line in doubt, from which the next event follows."""
        if doubt.seq > self.seq + 1 and following == doubt.seq + 1:
            self._tell(doubt.place, f"comes where {_events(self.seq + 1, doubt.seq - 1)} should be")
        else:
            self._tell(doubt.place, f"is event {following - 1}, and is damaged")

    def _settle(self) -> None:
        """Report the line in doubt, which no later line explains."""
        doubt, self._doubt = self._doubt, None
        if doubt is None:
            return
        if doubt.seq > self.seq + 1:
            self._tell(doubt.place, f"comes where {_events(self.seq + 1, doubt.seq - 1)} should be")
        else:
            self._tell(doubt.place, "is damaged, or is not an event of this history", doubt.line)
        self.seq = max(self.seq, doubt.seq)

    def _tell(self, place: str, what: str, line: bytes = b"") -> None:
        if line and self._aside(line):
            return
        self.faults += 1
        self._told(place, what)


def _events(first: int, last: int) -> str:
    return f"event {first}" if first == last else f"events {first} to {last}"
