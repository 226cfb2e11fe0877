"""How the upstream is read: a transport that knows where answers come from, and a client that caches them."""

import csv
import json
from pathlib import Path
from typing import Any

from api.cache import ResponseCache, is_disabled

DATA = Path(__file__).parent / "data"

Json = Any
"""What an answer decodes to: objects, lists, strings, numbers."""


class UpstreamError(Exception):
    """The upstream has no such thing, or answered what nobody can read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class FileTransport:
    """Answers from a directory: `/users/u-101/alerts` is `users/u-101/alerts.json`, or `.csv` for a table."""

    def __init__(self, root: Path = DATA) -> None:
        self.root = root

    def get(self, path: str) -> Json:
        """The answer to a path."""
        parts = path.strip("/").split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise UpstreamError(path, "no such path")
        place = self.root.joinpath(*parts)
        if (file := place.with_name(place.name + ".json")).is_file():
            return self._decode(path, file)
        if (file := place.with_name(place.name + ".csv")).is_file():
            with file.open(encoding="utf-8", newline="") as rows:
                return list(csv.DictReader(rows))
        raise UpstreamError(path, "not found")

    def _decode(self, path: str, file: Path) -> Json:
        try:
            return json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise UpstreamError(path, f"unreadable answer ({error})") from error


class Client:
    """Reads the upstream through the response cache, unless it is disabled."""

    def __init__(self, transport: FileTransport, cache: ResponseCache | None = None) -> None:
        self.transport = transport
        self.cache = cache if cache is not None else ResponseCache()
        self.calls = 0

    def read(self, path: str) -> Json:
        """The upstream's answer to a path; for five minutes the same one."""
        if is_disabled():
            return self._call(path)
        answer = self.cache.get(path)
        if answer is None:
            answer = self._call(path)
            self.cache.put(path, answer)
        return answer

    def _call(self, path: str) -> Json:
        self.calls += 1
        return self.transport.get(path)
