"""Lines found in the log that are not events of it: kept in a file for inspection, each once."""

import json
import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from agentx.storage.files import nofollow


class Orphans:
    """The file of orphans. Every method runs under the workspace's lock.

    Args:
        path: The file; created with the first orphan.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: set[bytes] = set()
        self._read_bytes = 0

    def keep(self, found: Iterable[tuple[bytes, str]]) -> None:
        """Append lines, each with the reason why it is not an event; known lines are not written again.

        Only what others appended since the last call is read.

        Raises:
            OSError: They could not be made durable.
        """
        nofollow.make_directory(self._path.parent)
        with nofollow.open_file(self._path, "a+") as file:
            if os.fstat(file.fileno()).st_size < self._read_bytes:  # set back, as by `git reset --hard`
                self._known, self._read_bytes = set(), 0
            file.seek(self._read_bytes)
            whole = True
            for entry in file:
                self._known.add(_mark(entry))
                whole = entry.endswith(b"\n")
            fresh = {_mark(entry): entry for entry in map(_entry, found)}
            lines = [entry for mark, entry in fresh.items() if mark not in self._known]
            if lines:
                file.writelines(lines if whole else [b"\n", *lines])  # a crash tore the last line
                file.flush()
                os.fsync(file.fileno())
            self._known |= fresh.keys()
            self._read_bytes = file.tell()


def _entry(found: tuple[bytes, str]) -> bytes:
    content, why = found
    note = {"why": why, "content": content.decode("utf-8", "backslashreplace").rstrip("\n")}
    return json.dumps(note).encode() + b"\n"


def _mark(entry: bytes) -> bytes:
    return blake2b(entry, digest_size=16).digest()
