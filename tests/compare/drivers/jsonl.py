"""A floor: a file of JSON lines, synced after each."""

import json
import os

from tests.compare.driver import Driver, Message


class JsonLines(Driver):
    name = "JSON lines"
    kind = "floor: a file, `fsync` after each line"
    durability = "`O_APPEND`, one `write` and one `fsync` for each line"

    def start(self) -> None:
        self._path = self.folder / "messages.jsonl"
        self._file = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def append(self, message: Message) -> None:
        os.write(self._file, _line(message))
        os.fsync(self._file)

    def append_all(self, messages) -> None:
        os.write(self._file, b"".join(map(_line, messages)))
        os.fsync(self._file)

    def read(self, last: int | None = None) -> list[str]:
        whole, _, _torn = self._path.read_bytes().rpartition(b"\n")
        lines = whole.splitlines()
        return [json.loads(line)["text"] for line in (lines[-last:] if last else lines)]

    def digest(self) -> bytes:
        return self._path.read_bytes()

    def as_of(self, count: int) -> list[str]:
        return self.read()[:count]  # the file is its own history

    def close(self) -> None:
        os.close(self._file)


def _line(message: Message) -> bytes:
    return json.dumps({"role": message.role, "text": message.text, "tool": message.tool}).encode() + b"\n"


DRIVER = JsonLines
