"""Which commit was the first to hold an event: pairs of both, read from the commits and kept in a small file.

The file is a cache, one record of 28 bytes for each commit: the last event that it holds, and its id. It is extended
from the branch back to the commit that it ends with, some at a time, so that the first search after a hundred thousand
commits answers at once; what is not looked up yet has no commit until a later search got there.
Only commits that the engine itself made count: a person's may carry any trailer.
"""

import threading
from bisect import bisect_left
from contextlib import suppress
from itertools import islice
from pathlib import Path

from agentx.recording import commit_message, recovery
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git.repository import GitRepository

WALK = 1_000
"""Commits that one call reads at most; 10 µs each from a pack."""

_ID_BYTES = 20
_RECORD_BYTES = 8 + _ID_BYTES

Pair = tuple[int, str]
"""The last event that a commit holds, and its id."""


class CommitIndex:
    """The pairs of one branch; safe to share between threads.

    Args:
        repo: Where the commits are.
        path: The file; it need not exist.
    """

    def __init__(self, repo: GitRepository, path: Path) -> None:
        self._repo = repo
        self._path = path
        self._lock = threading.Lock()
        self._known = b""
        self._loaded = False
        self._head = ""
        self._next = ""  # the commit to read next, on the way from the head back to what is known
        self._fresh: list[Pair] = []  # what was read on that way, newest first

    def find(self, seq: int) -> str:
        """The commit that is the first to hold an event; empty where none does, or it is not looked up yet."""
        with self._lock:
            if self._next:  # only what is newer than the oldest that was read can be told
                newer = self._fresh[::-1]
                found = bisect_left(newer, (seq, ""))
                return newer[found][1] if 0 < found < len(newer) else ""
            places = range(len(self._known) // _RECORD_BYTES)
            found = bisect_left(places, seq, key=lambda place: self._pair(place)[0])
            return self._pair(found)[1] if found < len(places) else ""

    def extend(self, head: str, most: int = WALK) -> bool:
        """Read some more commits; whether there are more to read.

        Args:
            head: What the branch names now; empty where there is no commit.
            most: How many to read.
        """
        with self._lock:
            self._load()
            if head != self._head and not self._rejoin(head, most):
                self._fresh, self._next = [], head
            self._head = head
            if self._next:
                self._walk(most)
            return bool(self._next)

    def _rejoin(self, head: str, most: int) -> bool:
        """Read what was committed since the last look; false where that does not lead to where it was."""
        if not self._head:
            return False
        newer: list[Pair] = []
        for commit in islice(self._repo.log(head), most + 1):
            if commit.id == self._head:
                self._fresh = newer + self._fresh
                self._keep()
                return True
            if recovery.is_ours(commit):
                newer.append((commit_message.through(commit.trailers), commit.id))
        return False

    def _walk(self, most: int) -> None:
        for commit in islice(self._repo.log(self._next), most):
            self._next = commit.parents[0] if commit.parents else ""
            if not recovery.is_ours(commit):
                continue
            pair = commit_message.through(commit.trailers), commit.id
            while (
                self._known and self._last()[0] >= pair[0] and self._last() != pair
            ):  # of a branch that is no longer
                self._known = self._known[:-_RECORD_BYTES]
                nofollow.remove(self._path, missing_ok=True)  # written anew below
            if self._known and self._last() == pair:
                self._next = ""
                break
            self._fresh.append(pair)
        self._keep()

    def _keep(self) -> None:
        """Bring what was read to the file, once it joins what the file holds."""
        if self._next or not self._fresh:
            return
        added = b"".join(seq.to_bytes(8) + bytes.fromhex(commit) for seq, commit in reversed(self._fresh))
        self._known += added
        self._fresh = []
        with suppress(OSError):  # a cache: the next process reads the commits again
            if nofollow.exists(self._path):
                with nofollow.open_file(self._path, "a") as file:
                    file.write(added)
            else:
                write_file(self._path, self._known)

    def _load(self) -> None:
        if self._loaded:
            return
        import numpy as np  # noqa: PLC0415  (heavy, and needed by searches alone)

        self._loaded = True
        with suppress(OSError):
            data = nofollow.read(self._path)
            data = data[: len(data) - len(data) % _RECORD_BYTES]
            seqs = np.frombuffer(data, dtype=[("seq", ">u8"), ("id", f"V{_ID_BYTES}")])["seq"]
            self._known = data if bool((seqs[1:] >= seqs[:-1]).all()) else b""

    def _pair(self, place: int) -> Pair:
        at = place * _RECORD_BYTES
        return int.from_bytes(self._known[at : at + 8]), self._known[at + 8 : at + _RECORD_BYTES].hex()

    def _last(self) -> Pair:
        return self._pair(len(self._known) // _RECORD_BYTES - 1)
