"""The waiting file: records that are not in the table of an index yet, visible to every process.

A LanceDB table that is written row by row degrades (measured: 3,000 single rows lead to 15 ms for each write,
388 ms for a search, and 400 MB). So writes are first appended here, as JSON lines, and moved to the table in
batches. One short lock orders the appends of all processes, so this file also defines the order of all
changes to the index.

A line begins and ends with a newline: a line that a killed writer left half written cannot be parsed and is
skipped, and the next line is whole again. The file is split into numbered segments. A flush starts a new
segment, moves the older ones to the table and only then deletes them. So a reader who reads the segments
first and the table afterwards always sees each chunk in at least one of them.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_all
from agentx.storage.index.memory_index import IndexRow, Rows


class Put(msgspec.Struct, frozen=True, tag="put"):
    """Rows were added or replaced."""

    rows: tuple[IndexRow, ...]


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Vectors were set for chunks, packed as in :class:`IndexRow`."""

    ids: tuple[str, ...]
    vectors: tuple[bytes, ...]

    def __post_init__(self) -> None:
        """Check that there is one vector for each id, so that a line with other counts cannot be decoded."""
        if len(self.ids) != len(self.vectors):
            raise ValueError("there is not one vector for each chunk")


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The open chunks of a file were closed by event ``seq``."""

    source: str
    path: str
    seq: int


class Meta(msgspec.Struct, frozen=True, tag="meta"):
    """A small value was set."""

    key: str
    value: str


class ForgetVectors(msgspec.Struct, frozen=True, tag="forget"):
    """All vectors were dropped."""


class Clear(msgspec.Struct, frozen=True, tag="clear"):
    """Everything was dropped."""


Record = Put | Embed | Close | Meta | ForgetVectors | Clear

_SEGMENT = re.compile(r"waiting-[0-9]{10}\.jsonl", re.ASCII)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold an advisory lock on a file, against other threads and processes.

    The kernel releases it when the process ends.

    Yields:
        Whether the lock is held: always, unless ``wait`` is false and another thread or process holds it.
    """
    descriptor = nofollow.open_descriptor(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


class WaitingFile:
    """The segments of one index directory; every method may be called by any process at any time.

    Raises:
        OSError: From every method: the disk is full, or the directory is gone.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = directory / "waiting.lock"

    def append(self, records: list[Record]) -> int:
        """Append records contiguously; if this process is killed, only the first ones may have been written.

        Returns:
            Size in bytes of the segment that they were written to.
        """
        data = b"".join(b"\n" + _encoder.encode(record) + b"\n" for record in records)
        with locked(self._lock):
            descriptor = nofollow.open_descriptor(
                self._current(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
            )
            try:
                write_all(descriptor, data)
                return os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)

    def seal(self) -> int:
        """Start a new segment.

        Returns:
            Its number; nothing will be appended to segments with lower numbers.
        """
        with locked(self._lock):
            number = _number(self._current()) + 1
            nofollow.touch(self._path(number))
            return number

    def drop(self, below: int) -> None:
        """Delete the segments below a number, oldest first, once their content is in the table."""
        for path in self.segments():
            if _number(path) < below:
                nofollow.remove(path, missing_ok=True)

    def segments(self) -> list[Path]:
        """Return the existing segments, oldest first."""
        return [
            self.directory / name
            for name in sorted(filter(_SEGMENT.fullmatch, nofollow.names(self.directory)))
        ]

    def size_bytes(self) -> int:
        """Return the total size of the segments, in bytes."""
        size = 0
        for path in self.segments():
            with suppress(FileNotFoundError):
                size += nofollow.status(path).st_size
        return size

    def _current(self) -> Path:
        segments = self.segments()
        return segments[-1] if segments else self._path(1)

    def _path(self, number: int) -> Path:
        return self.directory / f"waiting-{number:010d}.jsonl"


class Follower:
    """Reads the waiting file from where it last stopped; used by one thread at a time."""

    def __init__(self, file: WaitingFile) -> None:
        self._file = file
        self._read: dict[tuple[str, int], int] = {}

    def poll(self) -> tuple[bool, list[Record]]:
        """Read what is new.

        Returns:
            Whether segments were deleted since the last call, and the new records, in order. If segments were
            deleted, everything read before is obsolete and the records are those of all remaining segments.

        Raises:
            OSError: The directory cannot be read.
        """
        start, restarted = self._read, False
        while True:
            reached: dict[tuple[str, int], int] = {}
            records: list[Record] = []
            try:
                for path in self._file.segments():
                    with nofollow.open_file(path) as stream:
                        key = path.name, os.fstat(stream.fileno()).st_ino
                        offset = start.get(key, 0)
                        stream.seek(offset)
                        data = stream.read()
                    whole = data.rfind(b"\n") + 1
                    reached[key] = offset + whole
                    records.extend(_decode(data[:whole]))
            except FileNotFoundError:
                # A flush deleted a segment between listing and reading.
                if not nofollow.is_directory(self._file.directory):
                    raise
                continue
            if start.keys() <= reached.keys():
                self._read = reached
                return restarted, records
            start, restarted = {}, True


class Overlay:
    """The content of the waiting file, in memory; it overlays the table and hides rows of the same ids.

    Attributes:
        rows: Rows in their current state, including rows of the table that were closed or given a vector.
        meta: Values that were set.
        cleared: The content of the table is obsolete.
        forgotten: All vectors in the table are obsolete.
    """

    def __init__(self) -> None:
        self.rows = Rows()
        self.meta: dict[str, str] = {}
        self.cleared = False
        self.forgotten = False

    def apply(self, record: Record, below: dict[str, IndexRow]) -> None:
        """Apply one record.

        Args:
            record: The change.
            below: The table's rows that this and the following records change, by id.
        """
        match record:
            case Put(rows):
                for row in rows:
                    self.rows.put(row)
            case Embed(ids, vectors):
                self._lift(below[chunk_id] for chunk_id in ids if chunk_id in below)
                for chunk_id, vector in zip(ids, vectors, strict=True):
                    self.rows.embed(chunk_id, vector)
            case Close(source, path, seq):
                self._lift(
                    row for row in below.values() if (row.chunk.source, row.chunk.path) == (source, path)
                )
                self.rows.close(source, path, seq)
            case Meta(key, value):
                self.meta[key] = value
            case ForgetVectors():
                self.forgotten = True
                self.rows.forget_vectors()
            case Clear():
                self.rows, self.meta, self.cleared, self.forgotten = Rows(), {}, True, True

    def _lift(self, rows: Iterable[IndexRow]) -> None:
        """Copy rows of the table into the overlay, in their current state."""
        for row in rows:
            if row.chunk.id not in self.rows.by_id and not self.cleared:
                self.rows.put(msgspec.structs.replace(row, vector=b"") if self.forgotten else row)


def _decode(data: bytes) -> Iterator[Record]:
    for line in data.split(b"\n"):
        if line:
            try:
                yield _decoder.decode(line)
            except (ValueError, RecursionError):
                # Left by a writer that was killed before it could report the record as put.
                continue


def _number(path: Path) -> int:
    return int(path.name[len("waiting-") : -len(".jsonl")])
