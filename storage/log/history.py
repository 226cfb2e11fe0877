"""The history log: an append-only file of events, split into segments so that no cost grows with its length.

The live log is ``history.jsonl``. Before it would exceed 64 KB it is sealed: it gets a second name,
``history/000/001.jsonl`` (segment *n* is ``history/{n // 100:03}/{n % 100:03}.jsonl``), and a new live log
takes its place. Sealed segments never change.

Readers take no lock. They read the segments and then the live log as one log, and ignore a last line without
its newline. The writer (:class:`HistoryWriter`) runs under the workspace's lock.
"""

import contextlib
import io
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, NoReturn

import msgspec

from agentx.storage.errors import AgentXError, DiskRefused, WriterConflict
from agentx.storage.events.codec import GENESIS, MAX_LINE_BYTES, Codec, DamagedLine
from agentx.storage.events.types import Draft, Event
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, make_directory, sync_directory, write_all
from agentx.storage.log.chain import Chain
from agentx.storage.log.orphans import Orphans

LIVE = "history.jsonl"
SEGMENTS = "history"
ORPHANS = "history/orphans.jsonl"
SEGMENT_BYTES = 64 * 1024
_FAN_OUT = 100
_SEGMENT_EVENTS = SEGMENT_BYTES // 200
"""Upper limit for the number of events in a segment."""

_AHEAD_BYTES = 2 * SEGMENT_BYTES
"""Bytes to read after a line that does not follow, to judge it."""


class HistoryDamaged(AgentXError):
    """Part of the history cannot be read, or does not follow from what comes before it."""


class HistoryRewound(HistoryDamaged):
    """The log no longer holds an event that was read from it: it was set back, as `git reset --hard` does."""


class HistoryWriteFailed(DiskRefused):
    """Events could not be made durable; the message says whether any of them were recorded."""


_Place = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
"""Bounded, because a cache that was tampered with may hold a number that no search would reach."""


class Position(msgspec.Struct, frozen=True):
    """A place in the log, directly after an event.

    Attributes:
        seq: The event; 0 for none.
        hash: Its hash.
        segment: Number of its segment; for the live log, the number that it gets when it is sealed.
        offset: Bytes of that segment up to the end of the event's line.
    """

    seq: _Place = 0
    hash: str = GENESIS
    segment: _Place = 1
    offset: _Place = 0


class Damage(msgspec.Struct, frozen=True):
    """A line that is not the expected event.

    Attributes:
        path: File, relative to the workspace.
        line: Line in it, from 1.
        reason: One sentence.
        missing: Whether events are missing; otherwise the line itself is not an event.
    """

    path: str
    line: int
    reason: str
    missing: bool = False


OnDamage = Callable[[Damage], None]


def told_already(_damage: Damage) -> None:
    """Ignore damage already reported while folding."""


def segment_path(number: int) -> str:
    """Return the path of segment ``number`` (from 1), relative to the workspace.

    >>> segment_path(1), segment_path(250)
    ('history/000/001.jsonl', 'history/002/050.jsonl')
    """
    return f"{SEGMENTS}/{number // _FAN_OUT:03}/{number % _FAN_OUT:03}.jsonl"


def segment_number(path: str) -> int:
    """Return the number of the segment at a path; 0 for any other file.

    >>> segment_number("history/002/050.jsonl"), segment_number("history/orphans.jsonl")
    (250, 0)
    """
    folder, _, name = path.removeprefix(f"{SEGMENTS}/").removesuffix(".jsonl").partition("/")
    number = int(folder) * _FAN_OUT + int(name) if folder.isdecimal() and name.isdecimal() else 0
    return number if path == segment_path(number) else 0


def count_segments(root: Path) -> int:
    """Return the number of a workspace's sealed segments."""
    highest = 0
    with contextlib.suppress(FileNotFoundError):
        for folder in sorted(
            (name for name in nofollow.names(root / SEGMENTS) if name.isdigit()), reverse=True
        ):
            names = [
                name[:-6] for name in nofollow.names(root / SEGMENTS / folder) if name.endswith(".jsonl")
            ]
            numbers = [int(name) for name in names if name.isdigit()]
            if numbers:  # the newest folder is empty if a crash interrupted its first seal
                highest = int(folder) * _FAN_OUT + max(numbers)
                break
    return highest


class HistoryReading(Iterator[Event]):
    """An iterator over events.

    Attributes:
        events: The events.
        segment: Segment of the last event; for the live log, the number that it gets when it is sealed.
    """

    events: Iterator[Event]
    segment = 0

    def __iter__(self) -> Iterator[Event]:  # noqa: PYI034 - a loop then skips our `__next__` for each event
        return self.events

    def __next__(self) -> Event:
        return next(self.events)


class History:
    """Reads the events of a workspace, without a lock.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
    """

    def __init__(self, root: Path, codec: Codec) -> None:
        self._root = root
        self._codec = codec

    @property
    def fingerprint(self) -> str:
        """Identifies the set of known event types; results computed with another one may be out of date."""
        return self._codec.fingerprint

    def read(
        self, after: int | Position = 0, on_damage: OnDamage | None = None, *, live: bool = True
    ) -> "HistoryReading":
        """Return the events after ``after``, in order, each once.

        Each is checked against the hash of the one before it.

        Args:
            after: Number of the event to start after; 0 for all, from the first hash on. A position from
                :meth:`locate` needs no search, and the first event after it is checked against its hash.
            on_damage: Called with each line that is not the expected event.
            live: Whether to read the live log after the sealed segments.

        Raises:
            HistoryDamaged: A line is damaged and ``on_damage`` was not given.
        """
        reading = HistoryReading()
        reading.events = self._read(reading, after, on_damage, live=live)
        return reading

    def _read(
        self, reading: "HistoryReading", after: int | Position, on_damage: OnDamage | None, *, live: bool
    ) -> Iterator[Event]:
        start, chain = self._start(after)
        offset, next_segment = start.offset, start.segment
        take, last = chain.take, after if isinstance(after, int) else after.seq
        for segment, file in self._files(start.segment, live=live):
            reading.segment = segment or next_segment
            chain.enter(lost=(reading.segment - next_segment) * _SEGMENT_EVENTS)
            lines_before = file.read(offset).count(b"\n") if offset else 0
            next_segment, offset = reading.segment + 1, 0

            def following(segment: int = segment, file: IO[bytes] = file) -> Iterable[bytes]:
                return self._following(segment, file)

            for number, line in enumerate(file, lines_before + 1):
                event, problem = take(line, following)
                if problem:
                    _report(on_damage, Damage(_path(segment), number, problem, event is not None))
                if event is not None and event.seq > last:
                    yield event

    def start_of(self, segment: int) -> Position:
        """Return the start of a sealed segment: the position after the last event of the one before it.

        Raises:
            DamagedLine: The last line of the segment before it is not an event.
            OSError: The segment before it cannot be read.
        """
        if segment == 1:
            return Position()
        with nofollow.open_file(self._root / segment_path(segment - 1)) as file:
            file.seek(-min(MAX_LINE_BYTES + 1, os.fstat(file.fileno()).st_size), os.SEEK_END)
            event = self._codec.decode(_last_line(file.read()))
        return Position(event.seq, event.hash, segment)

    def read_whole(self, start: Position, last: int) -> Iterator[tuple[Event, bytes]]:
        """Yield the events of sealed segments, each with its line; fail at the first problem.

        Args:
            start: Start of the first segment.
            last: Number of the last segment.

        Raises:
            HistoryDamaged: A line does not simply follow from the one before it; :meth:`read` reports what it
                is.
            OSError: A segment cannot be read.
        """
        seq, own_hash, follow = start.seq, start.hash, self._codec.follow
        for segment in range(start.segment, last + 1):
            with nofollow.open_file(self._root / segment_path(segment), "r", SEGMENT_BYTES) as file:
                for line in file:
                    event = follow(line, seq + 1, own_hash)
                    if event is None:  # a purged event, one of another version, or damage
                        event, problem = Chain(self._codec, seq, own_hash).take(line)
                        if event is None or problem:
                            raise HistoryDamaged(f"{segment_path(segment)} is damaged: {problem}")
                    seq, own_hash = event.seq, event.hash
                    yield event, line

    def lines(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield every complete line without checks.

        Each comes with its file, relative to the workspace, and its number in it, from 1.
        """
        for segment, file in self._files(1):
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _path(segment), number, line

    def _start(self, after: int | Position) -> tuple[Position, Chain]:
        if isinstance(after, Position):
            return after, Chain(self._codec, after.seq, after.hash)
        first = self._first_segment(after)
        return Position(segment=first), Chain(self._codec, own_hash=GENESIS if first == 1 else "")

    def locate(self, seq: int, own_hash: str, near: int = 0) -> Position | None:
        """Return the position of an event, or ``None`` if the log does not hold it.

        Reads one or two segments, not the whole history.

        Args:
            seq: The event.
            own_hash: Its hash.
            near: Its segment, or the one before, if known.
        """
        if seq == 0:
            return Position()
        end = _line_end(own_hash)
        for segment, file in islice(self._files(near or self._first_segment(seq - 1)), 2):
            content = file.read()
            found = content.find(end)
            if found >= 0 and self._seq_of(_last_line(content[: found + len(end)])) == seq:
                return Position(seq, own_hash, self._number(segment), found + len(end))
        return None

    def event_at(self, position: Position) -> Event | None:
        """Return the event at a position, or ``None`` if it is not there. Reads only its line."""
        if position.seq == 0:
            return None
        for segment, file in islice(self._files(position.segment), 1):
            if self._number(segment) != position.segment:
                return None
            start = max(position.offset - MAX_LINE_BYTES - 1, 0)
            line = _last_line(os.pread(file.fileno(), position.offset - start, start))
            if line.endswith(_line_end(position.hash)):
                with contextlib.suppress(DamagedLine):
                    event = self._codec.decode(line)
                    return event if event.seq == position.seq else None
        return None

    def holds(self, position: Position) -> bool:
        """Return whether the event of a position is there."""
        return position == Position() or self.event_at(position) is not None

    def digest(self, position: Position) -> str:
        """Return a digest of all bytes of the log up to a position; empty if it does not hold it."""
        found, mark = False, blake2b(digest_size=32)
        for segment, file in self._files(1):
            found = self._number(segment) == position.segment
            mark.update(file.read(position.offset) if found else file.read())
            if found:
                break
        return mark.hexdigest() if found and self.holds(position) else ""

    def stamp(self, before: int) -> str:
        """Return a digest that changes if a sealed segment before this one was touched.

        Compares size and modification time, and reads no content.
        """
        mark = blake2b(digest_size=16)
        for first in range(0, before, _FAN_OUT):
            numbers = range(max(first, 1), min(first + _FAN_OUT, before))
            try:
                with nofollow.opened_directory((self._root / segment_path(first)).parent) as folder:
                    for number in numbers:
                        mark.update(_times(folder, f"{number % _FAN_OUT:03}.jsonl"))
            except (FileNotFoundError, NotADirectoryError):
                mark.update(b"missing;" * len(numbers))
        return mark.hexdigest()

    def _files(self, segment: int, *, live: bool = True) -> Iterator[tuple[int, IO[bytes]]]:
        """Yield the segments from one on, each open; the live log comes last, as number 0."""
        while True:
            sealed = self._root / segment_path(segment)
            with (
                contextlib.suppress(FileNotFoundError),
                nofollow.open_file(sealed, "r", SEGMENT_BYTES) as file,
            ):
                yield segment, file
                segment += 1
                continue
            if segment < count_segments(self._root):
                segment += not nofollow.exists(sealed)  # it is lost, or was sealed between the two checks
                continue
            if not live:
                return
            try:
                file = nofollow.open_file(self._root / LIVE)
            except FileNotFoundError:
                return
            with file:
                if nofollow.exists(sealed):
                    continue  # sealed between the two checks: the open file may be a later log
                yield 0, file
                return

    def _number(self, segment: int) -> int:
        return segment or count_segments(self._root) + 1

    def _following(self, segment: int, file: IO[bytes]) -> Iterable[bytes]:
        """Return the lines after the one just read, up to some way into the next file."""
        content = os.pread(file.fileno(), _AHEAD_BYTES, file.tell())
        if segment:
            for _, behind in islice(self._files(segment + 1), 1):
                content += behind.read(_AHEAD_BYTES)
        return io.BytesIO(content)

    def _first_segment(self, after: int) -> int:
        """Return the last segment whose first event is at or before ``after`` + 1 (binary search)."""
        low, high = 1, count_segments(self._root)
        if after <= 0 or high == 0:
            return 1
        while low < high:
            middle = (low + high + 1) // 2
            first = None  # the number of the first readable event
            path = self._root / segment_path(middle)
            with contextlib.suppress(FileNotFoundError), nofollow.open_file(path) as file:
                first = next(filter(None, map(self._seq_of, file)), None)
            if first is not None and first <= after + 1:
                low = middle
            else:
                high = middle - 1
        return low

    def _seq_of(self, line: bytes) -> int | None:
        try:
            return self._codec.decode(line).seq
        except DamagedLine:
            return None


def _times(folder: int, name: str) -> bytes:
    """Return the size and the time of a file in an open directory, as bytes."""
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return b"missing;"
    return b"%d %d;" % (info.st_size, info.st_mtime_ns)


def _line_end(own_hash: str) -> bytes:
    return b'"hash":"%s"}\n' % own_hash.encode()


def _last_line(content: bytes) -> bytes:
    return content[content.rfind(b"\n", 0, -1) + 1 :]


def _path(segment: int) -> str:
    return segment_path(segment) if segment else LIVE


def _report(on_damage: OnDamage | None, damage: Damage) -> None:
    if on_damage is None:
        raise HistoryDamaged(
            f"{damage.path}, line {damage.line}: {damage.reason} "
            "Everything else is intact; `agentx doctor` lists what is damaged."
        )
    on_damage(damage)


class _Failure(msgspec.Struct):
    """A sync that failed.

    Attributes:
        after: The last batch that was durable before it.
        through: The last batch that it concerns.
        why: The file, and the system's message.
        undone: What became of the events; empty until that is known.
    """

    after: int
    through: int
    why: str
    undone: str = ""

    def error(self) -> HistoryWriteFailed:
        return HistoryWriteFailed(f"Could not append to {self.why}. {self.undone or _IN_DOUBT}")


_IN_DOUBT = "It is unknown whether anything was recorded; the next read of the log shows it."


class HistoryWriter:
    """Appends to the live log. Every method but :meth:`sync` runs under the workspace's lock.

    Lines are appended in batches, numbered from 1. Batches may share a sync: :meth:`append` without a sync,
    then :meth:`sync` after the lock was released. Meanwhile others append behind them.

    Attributes:
        appended: The number of batches in the log: those appended here, and those of others that were read.
        synced: The number of those that are durable.
        seq: The last event known to be in the log.
        hash: Its hash.
        segments: Number of sealed segments.
        known: The content of the live log up to that event, as read or appended.
        unsound: Why the log must be repaired before anything is appended; empty if it need not be.
    """

    def __init__(self, root: Path, codec: Codec) -> None:
        self._root = root
        self._codec = codec
        self._live = root / LIVE
        self._name = str(self._live)
        self._seen = (0, 0, 0, 0)
        self._orphans = Orphans(root / ORPHANS)
        self._fd = -1
        self._inode = 0
        self._offset = 0
        self._syncing = threading.Lock()
        self._foreign_end = 0
        self._unsynced: deque[tuple[int, int]] = deque()
        self._failures: list[_Failure] = []
        self.appended = self.synced = 0
        self.seq = 0
        self.hash = GENESIS
        self.segments = 0
        self.known = b""
        self.unsound = ""

    def close(self) -> None:
        """Close the file, after syncing what was appended to it."""
        with contextlib.suppress(HistoryWriteFailed):  # whoever waits for the sync hears of it
            self.sync(self.appended)
        with self._syncing:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    # --- making durable ---------------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        """Whether a sync failed, so that :meth:`undo_failed` is due."""
        return bool(self._failures) and not self._failures[-1].undone

    def sync(self, through: int) -> None:
        """Make the first ``through`` batches durable, and all others that are in the file by now.

        Needs no lock. Threads that wait here share one sync: each is answered by the first sync that began
        after its lines were written.

        Raises:
            HistoryWriteFailed: They could not be made durable. Call :meth:`undo_failed` under the lock, then
                this again, which says what became of them.
        """
        with self._syncing:
            for failure in self._failures:
                if failure.after < through <= failure.through:
                    raise failure.error()
            if self.synced < through:
                self._sync_all()

    def _sync_all(self) -> None:
        appended = self.appended
        if self.failed or self._fd < 0:
            raise HistoryWriteFailed(f"{self._live} must be read again before anything is appended to it.")
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self._failures.append(_Failure(self.synced, appended, f"{self._live}: {error.strerror}"))
            raise self._failures[-1].error() from error
        self.synced = appended
        while self._unsynced and self._unsynced[0][0] <= appended:
            self._unsynced.popleft()

    def undo_failed(self) -> None:
        """Take back what a failed sync left in doubt, unless others appended behind it.

        The log must then be read again.
        """
        failure, said = self._failures[-1], _IN_DOUBT
        with self._syncing:
            begin = self._unsynced[0][1] if self._unsynced else self._offset
            if self._fd >= 0:
                with contextlib.suppress(OSError):
                    if os.fstat(self._fd).st_size == self._offset and self._foreign_end <= begin:
                        os.ftruncate(self._fd, begin)
                        said = "Nothing was recorded."
                os.close(self._fd)
                self._fd = -1
            failure.through, failure.undone = self.appended, said
            self.synced = self.appended
            self._unsynced.clear()

    def start_at(self, seq: int, own_hash: str) -> None:
        """Set the position in the log that was reached by reading; :meth:`catch_up` continues from there."""
        self.close()
        self.seq, self.hash, self._inode, self._offset = seq, own_hash, 0, 0
        self.known, self.unsound = b"", ""
        self._foreign_end = 0

    def catch_up(self, on_damage: OnDamage | None = None, *, strict: bool = False) -> list[Event]:
        """Read what others appended since, set torn and foreign lines aside, and prepare to append.

        Args:
            on_damage: Called with each line that is not the expected event.
            strict: Change nothing if there is more damage than a torn last line, and describe it in
                :attr:`unsound`.

        Raises:
            HistoryRewound: The log no longer holds what was already read from it.
            HistoryWriteFailed: The log cannot be opened for writing, or lines cannot be set aside.
        """
        try:
            return self._catch_up(on_damage, strict=strict)
        except OSError as error:
            self.close()
            raise HistoryWriteFailed(
                f"Could not make {self._live} ready for an append: {error.strerror}. Nothing was recorded."
            ) from error

    def _catch_up(self, on_damage: OnDamage | None, *, strict: bool) -> list[Event]:
        look = self._look()
        if self._fd >= 0 and self._seen == look:
            return []
        same = self._fd >= 0 and look[1] == self._inode and look[0] == self._seen[0]
        fresh = self._read_fresh(on_damage, strict=strict, same=same)
        self._seen = self._look()
        return fresh

    def _look(self) -> tuple[int, int, int, int]:
        """Return what changes with the live log: who writes to it, or puts another file in its place."""
        try:
            info = os.stat(self._name)
        except OSError:
            return 0, 0, 0, 0
        return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns

    def _read_fresh(self, on_damage: OnDamage | None, *, strict: bool, same: bool) -> list[Event]:
        known, own_hash = self.seq, self.hash
        fresh: list[Event] = []
        before, sealed = self.known, self.segments
        if not same and strict and known and not nofollow.exists(self._live):
            self._fail_rewound(known)
        reopened = not same and self._open_live()
        if strict and self._changed(before, sealed if reopened else None):
            self.close()
            self.known, self.unsound = before, f"{LIVE} was changed in a part that was already read"
            return []
        if reopened:
            fresh += self._read_sealed(on_damage)
        size = os.fstat(self._fd).st_size
        if size < self._offset:
            self._fail_rewound(known)
        if size > self._offset:
            fresh += self._read_live(size, on_damage, strict=strict)
        if reopened and History(self._root, self._codec).locate(known, own_hash) is None:
            self._fail_rewound(known)
        return fresh

    def _changed(self, before: bytes, sealed: int | None) -> bool:
        """Return whether the part of the live log already read has changed.

        Args:
            before: That part.
            sealed: Number of segments before a new file was opened; ``None`` if it is still the same file.
        """
        if sealed is None:
            size = min(os.fstat(self._fd).st_size, len(before))  # a shorter log was set back
            return os.pread(self._fd, size, 0) != before[:size]
        path = self._root / segment_path(sealed + 1)
        with nofollow.open_file(path if nofollow.exists(path) else self._live) as file:
            start = file.read(len(before))
        return not before.startswith(start)

    def _fail_rewound(self, known: int) -> NoReturn:
        self.close()
        raise HistoryRewound(
            f"{self._live} was set back: it no longer contains event {known}, which was there before."
        )

    # --- appending --------------------------------------------------------------------------------

    def append(self, drafts: Sequence[Draft], *, sync: bool = True) -> list[Event]:
        """Append events and sync; when this returns they exist.

        Without ``sync`` they exist after the next :meth:`sync` through :attr:`appended`.

        Call :meth:`catch_up` first, under the same lock. There is one sync for each segment that is touched.
        Events that fit in one segment are appended all or none.

        Raises:
            HistoryWriteFailed: The log could not be written (a full disk, a read-only file system). If the
                events need more than one segment, some of them may have been recorded: the message says so,
                and the next :meth:`catch_up` returns them.
            EventTooLarge: A draft is too long; nothing was appended.
        """
        if self._fd < 0 or self.failed:
            raise HistoryWriteFailed(f"{self._live} must be read again before anything is appended to it.")
        events: list[Event] = []
        lines: list[bytes] = []
        seq, previous = self.seq, self.hash
        for draft in drafts:
            line, event = self._codec.encode(draft, seq=seq + 1, previous=previous)
            seq, previous = event.seq, event.hash
            lines.append(line)
            events.append(event)
        recorded = number = 0
        try:
            parts = _parts(lines, self._offset)
            for number, part in enumerate(parts):
                if number:
                    self.sync(self.appended)
                    self._seal()
                self._write(b"".join(part), sync=sync or number < len(parts) - 1)
                recorded += len(part)
        except OSError as error:
            self._fail(error, events[:recorded], len(events), sealing=number > 0)
        self.seq, self.hash = events[-1].seq, events[-1].hash
        self._seen = self._look()
        return events

    def _write(self, content: bytes, *, sync: bool) -> None:
        if not content:
            return
        write_all(self._fd, content)
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        if end != self._offset + len(content):
            self.close()
            raise WriterConflict(
                f"Another process appended to {self._live} at the same time, ignoring the lock. "
                "Your events were not recorded; try again."
            )
        if sync and self.synced == self.appended:  # if this fails, no other batch is in doubt
            os.fdatasync(self._fd)
            self.synced += 1
        else:
            self._unsynced.append((self.appended + 1, self._offset))
        self._offset = end
        self.known += content
        self.appended += 1
        if sync:
            self.sync(self.appended)

    def _fail(self, error: OSError, recorded: Sequence[Event], wanted: int, *, sealing: bool) -> NoReturn:
        """Undo the last part; sealed parts stay, because readers may have seen them."""
        said = "Nothing was recorded."
        try:
            os.ftruncate(self._fd, self._offset)
        except OSError:
            said = _IN_DOUBT
        if recorded:
            said = (
                f"The first {len(recorded)} of {wanted} events were recorded, up to event {recorded[-1].seq}."
            )
        if sealing or said != "Nothing was recorded.":
            self.close()  # the next read finds what was recorded, and the current live log
        raise HistoryWriteFailed(f"Could not append to {self._live}: {error.strerror}. {said}") from error

    def _open_live(self) -> bool:
        """Open the live log; return whether it is another file than before."""
        try:
            inode = nofollow.status(self._live).st_ino
        except FileNotFoundError:
            os.close(nofollow.open_descriptor(self._live, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            sync_directory(self._root)
            inode = nofollow.status(self._live).st_ino
        if self._fd >= 0 and inode == self._inode:
            return False
        self._reopen()
        return True

    def _reopen(self) -> None:
        self.close()
        self._fd = nofollow.open_descriptor(self._live, os.O_RDWR | os.O_APPEND)
        self._inode, self._offset, self.known = os.fstat(self._fd).st_ino, 0, b""
        self._foreign_end = 0

    def _read_sealed(self, on_damage: OnDamage | None) -> list[Event]:
        """Finish a seal that a crash interrupted, then read the segments that others sealed since."""
        self.segments = count_segments(self._root)
        if not self.segments:
            return []
        if nofollow.same_file(self._root / segment_path(self.segments), self._live):
            self._start_live()
        fresh = list(History(self._root, self._codec).read(self.seq, on_damage or told_already, live=False))
        if fresh:
            self.seq, self.hash = fresh[-1].seq, fresh[-1].hash
            self.appended += 1
        return fresh

    def _read_live(self, size: int, on_damage: OnDamage | None, *, strict: bool) -> list[Event]:
        content = os.pread(self._fd, size - self._offset, self._offset)
        orphans: list[tuple[bytes, str]] = []
        chain, events = Chain(self._codec, self.seq, self.hash), []
        chain.enter(above=self.seq if self._offset else 0)
        lines = io.BytesIO(content).readlines()
        torn = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        at = end = 0
        unsound = ""
        for number, line in enumerate(lines, start=1):
            event, problem = chain.take(line, lambda behind=number: lines[behind:])  # type: ignore[misc]
            at += len(line)
            if problem:
                unsound = unsound or problem
                (on_damage or told_already)(Damage(LIVE, 0, problem, event is not None))
            if problem and event is None:
                orphans.append((line, problem))
            else:
                end = at
            if event is not None:
                events.append(event)
        if torn and self._codec.follow(torn[:-1] + b"\n", chain.seq + 1, chain.hash):
            unsound = unsound or f"the newline behind event {chain.seq + 1} is damaged."
        if strict and unsound:
            self.close()
            self.unsound = f"{LIVE}: {unsound}"
            return []
        if torn:
            orphans.append((torn, "torn: it has no end"))
        if orphans:
            self._orphans.keep(orphans)
        if end < len(content):  # cut off what follows the last event
            os.ftruncate(self._fd, self._offset + end)
        self.seq, self.hash = chain.seq, chain.hash
        self._offset += end
        self._foreign_end = self._offset
        self.known += content[:end]
        self.appended += bool(events)
        return events

    def _seal(self) -> None:
        target = self._root / segment_path(self.segments + 1)
        make_directory(target.parent)
        # An earlier seal may have failed half-way.
        if not (nofollow.exists(target) and nofollow.same_file(target, self._live)):
            nofollow.link(self._live, target)
            sync_directory(target.parent)
        self._start_live()
        self.segments += 1

    def _start_live(self) -> None:
        """Replace the sealed log with an empty one."""
        fresh = self._root / f"{TEMPORARY_PREFIX}{LIVE}"
        os.close(nofollow.open_descriptor(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
        nofollow.replace(fresh, self._live)
        sync_directory(self._root)
        self._reopen()


def _parts(lines: Sequence[bytes], taken: int) -> list[list[bytes]]:
    """Split a batch at segment boundaries; the first part goes into the live log, which has ``taken`` bytes.

    >>> _parts([b"x" * 40_000, b"y" * 40_000], taken=60_000) == [[], [b"x" * 40_000], [b"y" * 40_000]]
    True
    """
    size = sum(map(len, lines))
    if taken and taken + size > SEGMENT_BYTES >= size:
        return [[], list(lines)]
    parts: list[list[bytes]] = [[]]
    for line in lines:
        if taken and taken + len(line) > SEGMENT_BYTES:
            parts.append([])
            taken = 0
        parts[-1].append(line)
        taken += len(line)
    return parts
