"""The history log: an append-only file of events, sealed into segments so that no cost grows with its length.

The live log is ``history.jsonl``. When it would pass 64 KB it is sealed: it gets a second name, ``history/000/001.jsonl``
(segment *n* is ``history/{n // 100:03}/{n % 100:03}.jsonl``), and a new live log takes its place. Sealed segments never change.

Readers take no lock: they follow the segments into the live log, ignore a last line without its newline, and see one log.
The writer (:class:`HistoryWriter`) runs under the workspace's lock.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn

import msgspec

from agentx.storage.codec import GENESIS, Codec, DamagedLine, split
from agentx.storage.durable import TEMPORARY_PREFIX, make_directory, sync_directory
from agentx.storage.errors import AgentXError
from agentx.storage.events import Draft, Event

LIVE = "history.jsonl"
SEGMENTS = "history"
ORPHANS = "history/orphans.jsonl"
SEGMENT_BYTES = 64 * 1024
_FAN_OUT = 100


class HistoryDamaged(AgentXError):
    """A part of the history cannot be read, or does not follow from what stands before it."""


class HistoryRewound(HistoryDamaged):
    """The log no longer holds an event that was read from it: it was set back, as `git reset --hard` does."""


class HistoryWriteFailed(AgentXError):
    """An event could not be made durable; nothing was appended."""


class Damage(msgspec.Struct, frozen=True):
    """A line that is not the event it should be.

    Attributes:
        path: File, relative to the workspace.
        line: Line in it, from 1.
        reason: One sentence.
    """

    path: str
    line: int
    reason: str


OnDamage = Callable[[Damage], None]


def told_already(_damage: Damage) -> None:
    """For readers that come after the log was folded: what is damaged was told of then."""


def segment_path(number: int) -> str:
    """Where segment ``number`` (from 1) lies, relative to the workspace.

    >>> segment_path(1), segment_path(250)
    ('history/000/001.jsonl', 'history/002/050.jsonl')
    """
    return f"{SEGMENTS}/{number // _FAN_OUT:03}/{number % _FAN_OUT:03}.jsonl"


def count_segments(root: Path) -> int:
    """How many sealed segments a workspace has."""
    highest = 0
    with contextlib.suppress(FileNotFoundError):
        for folder in sorted((name for name in os.listdir(root / SEGMENTS) if name.isdigit()), reverse=True):
            names = [name[:-6] for name in os.listdir(root / SEGMENTS / folder) if name.endswith(".jsonl")]
            numbers = [int(name) for name in names if name.isdigit()]
            if numbers:  # the newest folder is empty where a crash cut its first seal off
                highest = int(folder) * _FAN_OUT + max(numbers)
                break
    return highest


class Chain:
    """Follows the hash chain over lines and says of each whether it is an event of this history.

    Attributes:
        seq: The last event that was taken.
        hash: Its hash; empty where the chain is entered in its middle and nothing is known yet.
    """

    def __init__(self, codec: Codec, seq: int = 0, own_hash: str = GENESIS) -> None:
        self._codec = codec
        self._gap = False
        self._highest = 0
        self.seq = seq
        self.hash = own_hash

    def enter(self, above: int = 0) -> None:
        """Go on in another file, which may repeat what was taken already; its next events come above ``above``."""
        self._highest = above

    def take(self, line: bytes) -> tuple[Event | None, str]:
        """Look at the next line.

        A damaged or missing line hides nothing else: the event behind it is taken, with the problem told. A whole
        line that does not follow (the loser of two writers without a lock) is foreign and is not taken.

        Returns:
            The event, or ``None``, and the problem in one sentence, or the empty string.
        """
        try:
            parts = split(line)
            event = self._codec.decode_parts(parts)
        except DamagedLine as error:
            self._gap = True
            return None, str(error)
        if event.seq <= self._highest:
            return None, f"A second event {event.seq} stands behind event {self._highest}."
        if event.seq <= self.seq:
            # A seal that a crash cut off leaves the segment under both names: the same events come twice.
            self._highest = event.seq
            return None, ""
        problem = ""
        if self.hash and not parts.extends(self.hash):
            problem = f"Event {event.seq} does not follow from event {self.seq}."
            if event.seq == self.seq + 1 and not self._gap:
                return None, problem
        elif self.hash and event.seq != self.seq + 1:
            problem = f"Events {self.seq + 1} to {event.seq - 1} are missing."
        self.seq, self.hash, self._gap, self._highest = event.seq, event.hash, False, event.seq
        return event, problem


class History:
    """Reads the events of a workspace, without a lock.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
    """

    def __init__(self, root: Path, codec: Codec) -> None:
        self._root = root
        self._codec = codec

    def read(
        self, after: int = 0, on_damage: OnDamage | None = None, *, live: bool = True
    ) -> Iterator[Event]:
        """The events after ``after``, in order, each once and each checked against the hash of the one before it.

        Args:
            after: Seq to begin behind; 0 for all, from the first hash on.
            on_damage: Called with each line that is not the event it should be.
            live: Whether to read on into the live log behind the sealed segments.

        Raises:
            HistoryDamaged: A line is damaged and ``on_damage`` was not given.
        """
        first = self._first_segment(after)
        chain = Chain(self._codec) if first == 1 else Chain(self._codec, own_hash="")
        for path, file in self._files(first, live=live):
            chain.enter()
            for number, line in _lines(file):
                event, problem = chain.take(line)
                if problem:
                    _report(on_damage, Damage(path, number, problem))
                if event is not None and event.seq > after:
                    yield event

    def _files(self, number: int, *, live: bool) -> Iterator[tuple[str, BinaryIO]]:
        while True:
            sealed = self._root / segment_path(number)
            if sealed.exists():
                with sealed.open("rb") as file:
                    yield segment_path(number), file
                number += 1
                continue
            if not live:
                return
            try:
                file = (self._root / LIVE).open("rb")
            except FileNotFoundError:
                return
            with file:
                if sealed.exists():
                    continue  # sealed between the two looks: what is open may be a later log
                yield LIVE, file
                return

    def _first_segment(self, after: int) -> int:
        """The last segment whose first event is at or before the one behind ``after`` (binary search)."""
        low, high = 1, count_segments(self._root)
        if after <= 0 or high == 0:
            return 1
        while low < high:
            middle = (low + high + 1) // 2
            first = self._first_seq(middle)
            if first is not None and first <= after + 1:
                low = middle
            else:
                high = middle - 1
        return low

    def _first_seq(self, number: int) -> int | None:
        with (self._root / segment_path(number)).open("rb") as file:
            try:
                return self._codec.decode(file.readline()).seq
            except DamagedLine:
                return None


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=1):
        if line.endswith(b"\n"):
            yield number, line


def _report(on_damage: OnDamage | None, damage: Damage) -> None:
    if on_damage is None:
        raise HistoryDamaged(
            f"{damage.path}, line {damage.line}: {damage.reason} Everything else is intact; `agentx doctor` lists what is damaged."
        )
    on_damage(damage)


class HistoryWriter:
    """Appends to the live log. Every method runs under the workspace's lock.

    Attributes:
        seq: The last event that is known to stand in the log.
        hash: Its hash.
        segments: How many segments are sealed.
    """

    def __init__(self, root: Path, codec: Codec) -> None:
        self._root = root
        self._codec = codec
        self._live = root / LIVE
        self._fd = -1
        self._inode = 0
        self._offset = 0
        self.seq = 0
        self.hash = GENESIS
        self.segments = 0

    def close(self) -> None:
        """Release the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def start_at(self, seq: int, own_hash: str) -> None:
        """Take a position in the log that was reached by reading; :meth:`catch_up` goes on from there."""
        self.close()
        self.seq, self.hash, self._inode, self._offset = seq, own_hash, 0, 0

    def catch_up(self, on_damage: OnDamage | None = None) -> list[Event]:
        """Read what others appended since, set torn and foreign lines aside, and be ready to append.

        Raises:
            HistoryRewound: The log no longer holds what was already read from it.
        """
        known, own_hash = self.seq, self.hash
        fresh: list[Event] = []
        reopened = self._open_live()
        if reopened:
            fresh += self._read_sealed(on_damage)
        size = os.fstat(self._fd).st_size
        if size < self._offset:
            self._fail_rewound(known)
        if size > self._offset:
            fresh += self._read_live(size, on_damage)
        if reopened and not self._holds(known, own_hash):
            self._fail_rewound(known)
        return fresh

    def _fail_rewound(self, known: int) -> NoReturn:
        self.close()
        raise HistoryRewound(
            f"{self._live} was set back: it no longer holds event {known}, which it held before."
        )

    def _holds(self, seq: int, own_hash: str) -> bool:
        """Whether the files hold an event that was read from them before."""
        if not seq:
            return True
        found = next(History(self._root, self._codec).read(seq - 1, told_already), None)
        return found is not None and (found.seq, found.hash) == (seq, own_hash)

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Append events and sync; when this returns they exist. Call :meth:`catch_up` first, under the same lock.

        Raises:
            HistoryWriteFailed: The log could not be written (a full disk, a read-only file system); nothing was appended.
            EventTooLarge: A draft is too long; nothing was appended.
        """
        events, lines = self._encode(drafts)
        size = sum(map(len, lines))
        try:
            if self._offset and self._offset + size > SEGMENT_BYTES:
                self._seal()
            _write_all(self._fd, b"".join(lines))
            os.fdatasync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._offset)
            raise HistoryWriteFailed(
                f"Could not append to {self._live}: {error.strerror}. Nothing was recorded."
            ) from error
        self._offset += size
        self.seq, self.hash = events[-1].seq, events[-1].hash
        return events

    def _encode(self, drafts: Sequence[Draft]) -> tuple[list[Event], list[bytes]]:
        events: list[Event] = []
        lines: list[bytes] = []
        seq, previous = self.seq, self.hash
        for draft in drafts:
            line, event = self._codec.encode(draft, seq=seq + 1, previous=previous)
            seq, previous = event.seq, event.hash
            lines.append(line)
            events.append(event)
        return events, lines

    def _open_live(self) -> bool:
        """Open the live log; true where it is another file than before."""
        try:
            inode = os.stat(self._live).st_ino
        except FileNotFoundError:
            os.close(os.open(self._live, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            sync_directory(self._root)
            inode = os.stat(self._live).st_ino
        if self._fd >= 0 and inode == self._inode:
            return False
        self._reopen()
        return True

    def _reopen(self) -> None:
        self.close()
        self._fd = os.open(self._live, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._inode, self._offset = os.fstat(self._fd).st_ino, 0

    def _read_sealed(self, on_damage: OnDamage | None) -> list[Event]:
        """Finish a seal that a crash cut off, then read the segments that others sealed since."""
        self.segments = count_segments(self._root)
        if not self.segments:
            return []
        if os.path.samefile(self._root / segment_path(self.segments), self._live):
            self._start_live()
        fresh = list(History(self._root, self._codec).read(self.seq, on_damage or told_already, live=False))
        if fresh:
            self.seq, self.hash = fresh[-1].seq, fresh[-1].hash
        return fresh

    def _read_live(self, size: int, on_damage: OnDamage | None) -> list[Event]:
        content = os.pread(self._fd, size - self._offset, self._offset)
        end = content.rfind(b"\n") + 1
        if end < len(content):
            self._set_aside(content[end:], "torn: it has no end")
            os.ftruncate(self._fd, self._offset + end)
        chain, events = Chain(self._codec, self.seq, self.hash), []
        chain.enter(above=self.seq if self._offset else 0)
        for line in content[:end].splitlines(keepends=True):
            event, problem = chain.take(line)
            if problem and on_damage is not None:
                on_damage(Damage(LIVE, 0, problem))
            if problem and event is None:
                self._set_aside(line, problem)
            if event is not None:
                events.append(event)
        self.seq, self.hash = chain.seq, chain.hash
        self._offset += end
        return events

    def _set_aside(self, content: bytes, why: str) -> None:
        """Keep a line that is no event of this history where a person can look at it, once."""
        note = {"why": why, "content": content.decode("utf-8", "backslashreplace").rstrip("\n")}
        entry = json.dumps(note).encode() + b"\n"
        path = self._root / ORPHANS
        path.parent.mkdir(exist_ok=True)
        with path.open("a+b") as file:
            file.seek(0)
            if entry in file:
                return
            file.write(entry)
            file.flush()
            os.fsync(file.fileno())

    def _seal(self) -> None:
        target = self._root / segment_path(self.segments + 1)
        make_directory(target.parent)
        if not (
            target.exists() and os.path.samefile(target, self._live)
        ):  # an earlier seal may have failed half-way
            os.link(self._live, target)
            sync_directory(target.parent)
        self._start_live()
        self.segments += 1

    def _start_live(self) -> None:
        """Put an empty log in the place of the sealed one."""
        fresh = self._root / f"{TEMPORARY_PREFIX}{LIVE}"
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
        os.replace(fresh, self._live)
        sync_directory(self._root)
        self._reopen()


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
