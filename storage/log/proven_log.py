"""Rebuild a damaged log from every place that holds parts of it. Only what the hash chain proves is used.

The log is processed file by file. A file that holds the next events without a gap is kept. Otherwise its
committed content is used, if that has no gap. Otherwise the file is assembled event by event. Events are
searched for as bytes, not as lines, so a changed newline, a carriage return, a byte order mark or zeros
around an event do not hide it.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agentx.storage.events.codec import GENESIS, MAX_LINE_BYTES, UNKNOWN, Codec, DamagedLine, lost_line, split
from agentx.storage.events.types import Event
from agentx.storage.files import nofollow
from agentx.storage.log.chain import next_event
from agentx.storage.log.history import LIVE, History, count_segments, segment_path, told_already

_BEGIN = re.compile(rb'\{"seq":([1-9][0-9]{0,17}),"at":"')
_END = re.compile(rb'","hash":"([0-9a-f]{64})"\}')
_BLANK = b"\0\r\n\t \xef\xbb\xbf"
_HASH = slice(-67, -3)

THIS_PROCESS = "what this process had read"

Source = tuple[bytes, str]
"""A content that may hold lines of the log, and its name in messages."""


class LostEvents(msgspec.Struct, frozen=True):
    """Events that are not found anywhere.

    Attributes:
        first: The first of them.
        last: The last of them.
        path: The file that should hold them, relative to the workspace.
        line: The line in it where they are missing.
    """

    first: int
    last: int
    path: str
    line: int

    @property
    def events(self) -> str:
        """The events as text."""
        return f"event {self.first}" if self.first == self.last else f"events {self.first} to {self.last}"


class RebuiltLog(msgspec.Struct):
    """The result of rebuilding a log.

    Attributes:
        files: New content of each file that must change, by path, in the order of the log.
        sources: Where missing events were found, by path of the file.
        foreign: Lines that are not events of this history, each with the reason.
        lost: Events that are not found anywhere.
        seq: The last event.
        hash: Its hash.
    """

    files: dict[str, bytes] = {}
    sources: dict[str, str] = {}
    foreign: list[tuple[bytes, str]] = []
    lost: list[LostEvents] = []
    seq: int = 0
    hash: str = GENESIS


class Rebuilding:
    """Rebuilds the log of one workspace; changes nothing.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        committed: Returns a file of the log from the engine's last commit; ``None`` if it is not there.
        recorded: The number of segments in that commit, its last event, and its name in messages.
        sources: Other contents to search, most promising first; read only as far as needed.
        accept_loss: Write a placeholder for each event that is not found
            (:func:`agentx.storage.events.codec.lost_line`).
    """

    def __init__(
        self,
        root: Path,
        codec: Codec,
        committed: Callable[[str], bytes | None],
        recorded: tuple[int, int, str],
        sources: Iterator[Source],
        *,
        accept_loss: bool = False,
    ) -> None:
        self._root = root
        self._codec = codec
        self._committed = committed
        self._segments, self._recorded, self._name = recorded
        self._sources = sources
        self._accept_loss = accept_loss
        self._own = {"", self._name, THIS_PROCESS}
        self._lines: dict[int, dict[bytes, str]] = {}
        self._preferred: set[bytes] = set()
        self._result = RebuiltLog()

    def run(self) -> RebuiltLog:
        """Process the whole log."""
        segments = max(count_segments(self._root), self._segments)
        for number in range(1, segments + 1):
            self._segment(number, segments)
        self._live(segments)
        return self._result

    def _segment(self, number: int, segments: int) -> None:
        result, path = self._result, segment_path(number)
        found, committed = self._read(path), self._committed(path)
        for content in (found, committed):
            end = self._end(content or b"")
            if content is None or end is None:
                continue
            if content != found:
                result.files[path], result.sources[path] = content, self._name
            result.seq, result.hash = end
            return
        self._add(found or b"", "")
        lines = self._assemble(path, self._first_behind(number, segments) - 1, found or b"")
        if found is not None and found == committed and set(lines) <= set(found.splitlines(keepends=True)):
            return  # extra lines beside its events are committed, and harmless
        self._put(path, found, lines)

    def _end(self, content: bytes) -> tuple[int, str] | None:
        """Return where a content ends that holds the next events without a gap; ``None`` for any other.

        Lines in it that are not events of the chain are skipped, but the last line must be an event.
        """
        seq, own_hash, whole = self._result.seq, self._result.hash, False
        for line in content.splitlines(keepends=True):
            event = next_event(self._codec, line, seq + 1, own_hash)
            whole = event is not None
            if event is not None:
                seq, own_hash = event.seq, event.hash
        return (seq, own_hash) if whole else None

    def _first_behind(self, number: int, segments: int) -> int:
        """Return the first readable event in the file after a segment, or else the next one to be written."""
        path = segment_path(number + 1) if number < segments else LIVE
        for content in (self._read(path), self._committed(path)):
            for line in (content or b"").splitlines(keepends=True):
                event = self._decode(line)
                if event is not None and event.seq > self._result.seq:
                    return event.seq
        return max(self._recorded, self._result.seq) + 1

    def _live(self, segments: int) -> None:
        result, found = self._result, self._read(LIVE)
        read = History(self._root, self._codec).read(result.seq, told_already)
        last = max([self._recorded, *(event.seq for event in read)])
        committed = self._committed(LIVE) if segments == self._segments else None
        self._preferred = set((committed or b"").splitlines(keepends=True))
        self._add(found or b"", "")
        self._add(committed or b"", self._name)
        lines = self._assemble(LIVE, last, found or b"")
        self._put(LIVE, found, lines)

    def _put(self, path: str, found: bytes | None, lines: list[bytes]) -> None:
        content = b"".join(lines)
        if content != found and not any(lost.path == path for lost in self._result.lost):
            self._result.files[path] = content
            self._result.foreign += _foreign(found or b"", lines)

    # --- assembling -----------------------------------------------------------------------------------------

    def _assemble(self, path: str, last: int, found: bytes) -> list[bytes]:
        """Return the next events up to ``last``; for the live log also those that follow."""
        result, lines = self._result, list[bytes]()
        while result.seq < last or path == LIVE:
            line, source = self._find(result.seq + 1, search=result.seq < last)
            if line:
                lines.append(line)
                result.seq, result.hash = result.seq + 1, line[_HASH].decode()
                if source:
                    result.sources.setdefault(path, source)
            elif result.seq < last:
                lines += self._pass_gap(path, last, found, len(lines) + 1)
            else:
                break
        return lines

    def _find(self, seq: int, *, search: bool) -> tuple[bytes, str]:
        """Find the next event: its line, and where it was if not in its file; empty if it is not found."""
        while not (held := self._following(seq, self._result.hash)):
            source = next(self._sources, None) if search else None
            if source is None:
                return b"", ""
            self._add(*source)
        if not search:  # behind the end, a remote's or fork's next events are not ours
            held = [line for line in held if self._lines[seq][line] in self._own]
            if not held:
                return b"", ""
        line = held[0]
        # Of two writers without a lock one lost: the committed or longer chain is the history.
        if len(held) > 1:
            line = max(held, key=lambda one: (one in self._preferred, self._length(seq, one)))
        return line, self._lines[seq][line]

    def _following(self, seq: int, own_hash: str) -> list[bytes]:
        return [line for line in self._lines.get(seq, ()) if next_event(self._codec, line, seq, own_hash)]

    def _length(self, seq: int, line: bytes) -> int:
        """Count the events that follow from a line, taking the first candidate each time."""
        begin = seq
        while more := self._following(seq + 1, line[_HASH].decode()):
            seq, line = seq + 1, more[0]
        return seq - begin

    def _pass_gap(self, path: str, last: int, found: bytes, number: int) -> list[bytes]:
        """Skip events that are not found anywhere, and continue with the next readable line."""
        result, previous = self._result, self._result.seq
        behind = None
        for line in found.splitlines(keepends=True):
            event = self._decode(line)
            if event is not None and previous < event.seq - 1 < last:
                behind = line, event
                break
        end = behind[1].seq - 1 if behind else last
        lost = LostEvents(previous + 1, end, path, number)
        if not self._accept_loss:
            result.lost.append(lost)
        result.seq, result.hash = end, UNKNOWN
        if behind:  # the remains of the lost event may show the hash that the next line follows from
            parts, hashes = split(behind[0]), {match[1].decode() for match in _END.finditer(found)}
            result.hash = next((one for one in hashes if parts.extends(one)), UNKNOWN)
        lines: list[bytes] = []
        if self._accept_loss:
            at = behind[1].at if behind else ""
            owns = [UNKNOWN] * (end - lost.first) + [result.hash]
            lines += [lost_line(seq, at, own) for seq, own in enumerate(owns, start=lost.first)]
            result.sources[path] = f"the commits and the chain; {lost.events} is marked as lost"
        return lines

    def _add(self, content: bytes, source: str) -> None:
        """Collect every line that a content may hold."""
        for begin in _BEGIN.finditer(content):
            start = begin.start()
            for end in _END.finditer(content, start, start + MAX_LINE_BYTES):
                line = content[start : end.end()] + b"\n"
                self._lines.setdefault(int(begin[1]), {}).setdefault(line, source)
                if content[end.end() : end.end() + 1] in (b"\n", b"\r", b""):
                    break

    def _decode(self, line: bytes) -> Event | None:
        try:
            return self._codec.decode(line) if line.endswith(b"\n") else None
        except DamagedLine:
            return None

    def _read(self, path: str) -> bytes | None:
        try:
            return nofollow.read(self._root / path)
        except FileNotFoundError:
            return None


def _foreign(found: bytes, lines: list[bytes]) -> list[tuple[bytes, str]]:
    """Return the lines of a file that are neither its events nor damaged forms of them."""
    kept, whole = set(lines), b"".join(lines)
    beginnings = {line[: len(line) // 2] for line in lines}
    endings = {line[_HASH] for line in lines}

    def is_form(line: bytes) -> bool:
        body = line.strip(_BLANK)
        known = any(body.startswith(beginning) for beginning in beginnings)
        return body in whole or known or body[-66:-2] in endings

    rest = [line for line in found.splitlines(keepends=True) if line not in kept and not is_form(line)]
    return [(line, "is not an event of this history") for line in rest]
