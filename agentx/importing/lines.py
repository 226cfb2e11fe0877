"""Reads a transcript file line by line, or whole, whatever is in it."""

import contextlib
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow

MAX_LINE_BYTES = 32_000_000
"""A longer line is not read as a record; its start is kept."""

MAX_FILE_BYTES = 256_000_000
"""Maximum size of a transcript that is one JSON document."""

UNREADABLE = (OSError, EOFError, UsageError, zlib.error)
"""What reading a file can raise."""

_KEPT = 2_000
_MOST = 1e6
_CHUNK = 1 << 20
_NUMBER = re.compile(r"\d{1,9}")
_decode = msgspec.json.Decoder().decode


class TranscriptLine(msgspec.Struct, frozen=True):
    """A line of a transcript.

    Attributes:
        number: Its number, from 1.
        value: The JSON object on it; ``None`` if it is not one.
        text: The line, or its start if it is too long.
    """

    number: int
    value: dict[str, Any] | None
    text: str


class Lines:
    """One transcript file; it is read once.

    Attributes:
        path: The file.
        read_bytes: Bytes read so far, unpacked.
        records: Number of records read so far.
        torn: Whether the last line is incomplete; it is left for the next import.
        too_long: Number of lines over :data:`MAX_LINE_BYTES`.
        invalid: Number of lines that are not UTF-8.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_bytes = 0
        self.records = 0
        self.torn = False
        self.too_long = 0
        self.invalid = 0
        self._digest = blake2b(digest_size=16)

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.path.name.removesuffix(".gz").rpartition(".")[0] or self.path.name

    @property
    def digest(self) -> str:
        """Hex digest of what was read."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[TranscriptLine]:
        """Yield the lines that are not blank; a torn last line is left out."""
        number = 0
        with _open(self.path) as file:
            while raw := file.readline(MAX_LINE_BYTES):
                number += 1
                if len(raw) >= MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    yield self._long(number, raw, file)
                    continue
                value = _parse(raw)
                self._take(raw)
                if value is None and not raw.endswith(b"\n"):
                    self.torn = True
                    return
                if raw.strip():
                    self.records += 1
                    yield TranscriptLine(number, value, "" if value is not None else self._text(raw))

    def _long(self, number: int, raw: bytes, file: IO[bytes]) -> TranscriptLine:
        start = raw[:_KEPT]
        self.too_long += 1
        self.records += 1
        self._take(raw)
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(MAX_LINE_BYTES)
            self._take(raw)
        return TranscriptLine(number, None, start.decode("utf-8", "replace"))

    def parts(self) -> Iterator[Any]:
        """Yield the JSON documents of a directory of numbered files, in the order of their numbers.

        A file that is no JSON ends it: the host has not finished writing it.
        """
        for path in numbered(self.path):
            with nofollow.open_file(path) as file:
                raw = file.read(MAX_LINE_BYTES + 1)
            self._take(raw)
            if len(raw) > MAX_LINE_BYTES:
                self.too_long += 1
                self.records += 1
                continue
            value = _parse(raw)
            if value is None:
                self.torn = True
                return
            self.records += 1
            yield value

    def scan(self) -> str:
        """Return the digest that reading it will give, without parsing it; empty if it is damaged."""
        mark = blake2b(digest_size=16)
        try:
            for part in numbered(self.path) if self.path.is_dir() else [self.path]:
                with _open(part) as file:
                    while raw := file.read(_CHUNK):
                        mark.update(raw)
        except UNREADABLE:
            return ""
        return mark.hexdigest()

    def whole(self) -> str:
        """Return the whole text.

        Raises:
            UsageError: It is longer than :data:`MAX_FILE_BYTES`.
        """
        with _open(self.path) as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise UsageError(f"{self.path} is larger than {MAX_FILE_BYTES:,} bytes, so it was not imported.")
        self._take(raw)
        return self._text(raw)

    def document(self) -> Any:
        """Return the JSON document that the file is; ``None`` if it is none."""
        text = self.whole()
        try:
            return _decode(text)
        except (ValueError, RecursionError):
            return None

    def _take(self, raw: bytes) -> None:
        self.read_bytes += len(raw)
        self._digest.update(raw)

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.invalid += 1
            return raw.decode("utf-8", "replace")


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    with nofollow.open_file(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file) as packed, io.BufferedReader(packed) as unpacked:
            yield unpacked


def numbered(folder: Path) -> list[Path]:
    """Return the JSON files of a directory whose names have a number, by that number."""
    named = nofollow.listed(folder, suffix=".json")
    found = [path for path in named if _NUMBER.search(path.name) and not path.is_symlink()]
    return sorted(found, key=lambda path: (int(_number_in(path)), path.name))


def _number_in(path: Path) -> str:
    found = _NUMBER.search(path.name)
    return found[0] if found else "0"


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        value = _decode(raw)
    except UnicodeDecodeError:
        try:
            value = _decode(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_in(value: Any) -> str:
    """Return a value of a record if it is a text; otherwise empty."""
    return value if isinstance(value, str) else ""


def fields_in(value: Any) -> dict[str, Any]:
    """Return a value of a record if it is an object; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def parts_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a value of a record if it is a list; otherwise none."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def number_in(value: Any) -> int:
    """Return a value of a record if it is a sensible count; otherwise 0."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < 1 << 53 else 0


def amount_in(value: Any) -> float | None:
    """Return a value of a record if it is a sensible amount, of dollars or seconds; otherwise ``None``."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < _MOST else None


def as_json(value: Any) -> str:
    """Return a value as JSON text."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, OverflowError, RecursionError):  # surrogates, numbers of many digits
        try:
            return json.dumps(value, default=str)
        except (ValueError, RecursionError):
            return "[nested too deeply]"
