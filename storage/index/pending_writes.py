"""The waiting file: what was put into an index and is not in its table yet, seen by every process.

A table of LanceDB that is written row by row decays (measured: 3,000 single rows grow to 15 ms each, 388 ms a search
and 400 MB), so writes are appended here first, as JSON lines, and go over in batches. One short lock orders the appends of all processes, so this file is also the order
in which everything happened to the index.

A line begins and ends with a newline: what a killed writer left half written is a line that cannot be read, it is
skipped, and the next line is whole again. The file is cut into numbered segments. A flush starts a new one, brings
the older ones to the table and only then deletes them, so that at every moment a reader who reads the segments first
and the table afterwards sees each chunk in at least one of them.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.index.memory import Row, Rows


class Put(msgspec.Struct, frozen=True, tag="put"):
    """Rows were added or replaced."""

    rows: tuple[Row, ...]


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Chunks got vectors, packed as :class:`Row` has them."""

    ids: tuple[str, ...]
    vectors: tuple[bytes, ...]

    def __post_init__(self) -> None:
        """A line that holds other numbers of them cannot be read."""
        if len(self.ids) != len(self.vectors):
            raise ValueError("there is not one vector for each chunk")


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The open chunks of a file ended with event ``seq``."""

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
    """Hold an advisory lock on a file, against other threads and processes alike; it ends with its process.

    Yields:
        Whether the lock is held: always, unless ``wait`` is false and someone else has it.
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
        """Append records so that they stand together or, if this process is killed, in part; all or the first ones.

        Returns:
            The size in bytes of the segment that they went to.
        """
        data = b"".join(b"\n" + _encoder.encode(record) + b"\n" for record in records)
        with locked(self._lock):
            descriptor = nofollow.open_descriptor(
                self._current(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
            )
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                return os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)

    def seal(self) -> int:
        """Start a new segment.

        Returns:
            Its number: nothing will be appended to the ones below it.
        """
        with locked(self._lock):
            number = _number(self._current()) + 1
            nofollow.touch(self._path(number))
            return number

    def drop(self, below: int) -> None:
        """Delete the segments below a number, oldest first, once the table has what they say."""
        for path in self.segments():
            if _number(path) < below:
                nofollow.remove(path, missing_ok=True)

    def segments(self) -> list[Path]:
        """The segments that exist, oldest first."""
        return [
            self.directory / name
            for name in sorted(filter(_SEGMENT.fullmatch, nofollow.names(self.directory)))
        ]

    def size_bytes(self) -> int:
        """How much is waiting."""
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
    """Reads the waiting file from where it stopped the last time; belongs to one thread at a time."""

    def __init__(self, file: WaitingFile) -> None:
        self._file = file
        self._read: dict[tuple[str, int], int] = {}

    def poll(self) -> tuple[bool, list[Record]]:
        """Read what is new.

        Returns:
            Whether segments have gone since the last call, so that what was read before no longer counts and the
            records are those of all that is left; and the records, in order.

        Raises:
            OSError: The directory cannot be read.
        """
        start, restarted = self._read, False
        while True:
            try:
                reached, records = self._read_from(start)
            except FileNotFoundError:  # a flush deleted a segment between the listing and the reading
                if not nofollow.is_directory(self._file.directory):
                    raise
                continue
            if start.keys() <= reached.keys():
                self._read = reached
                return restarted, records
            start, restarted = {}, True

    def _read_from(
        self, start: dict[tuple[str, int], int]
    ) -> tuple[dict[tuple[str, int], int], list[Record]]:
        reached: dict[tuple[str, int], int] = {}
        records: list[Record] = []
        for path in self._file.segments():
            with nofollow.open_file(path) as stream:
                key = path.name, os.fstat(stream.fileno()).st_ino
                offset = start.get(key, 0)
                stream.seek(offset)
                data = stream.read()
            whole = data.rfind(b"\n") + 1
            reached[key] = offset + whole
            records.extend(_decode(data[:whole]))
        return reached, records


class Overlay:
    """What the waiting file says, in memory: it lies over the table and hides the rows of the same ids.

    Attributes:
        rows: Rows as they are now; among them rows of the table that were closed or given a vector.
        meta: Values that were set.
        cleared: Nothing in the table counts any more.
        forgotten: No vector in the table counts any more.
    """

    def __init__(self) -> None:
        self.rows = Rows()
        self.meta: dict[str, str] = {}
        self.cleared = False
        self.forgotten = False

    def apply(self, record: Record, below: dict[str, Row]) -> None:
        """Apply one record.

        Args:
            record: What happened.
            below: The rows of the table that this and the following records touch, by id.
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

    def _lift(self, rows: Iterable[Row]) -> None:
        """Copy rows of the table up here, as they count now."""
        for row in rows:
            if row.chunk.id not in self.rows.by_id and not self.cleared:
                self.rows.put(msgspec.structs.replace(row, vector=b"") if self.forgotten else row)


def _decode(data: bytes) -> Iterator[Record]:
    for line in data.split(b"\n"):
        if line:
            try:
                yield _decoder.decode(line)
            except (ValueError, RecursionError):
                continue  # left by a writer that was killed: nobody was told that it had been put


def _number(path: Path) -> int:
    return int(path.name[len("waiting-") : -len(".jsonl")])
