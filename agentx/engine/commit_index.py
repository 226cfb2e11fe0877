"""Index of the first commit to hold each event, read from the commits and kept in a small file.

The file is a cache with one record of 28 bytes for each commit: the last event that it holds, and its id. It
is extended in batches, from the branch back to the commit at which the file ends, so that even the first
search after a hundred thousand commits answers at once. Until a later search has read that far, an event has
no commit. Only commits made by the engine count, because a user's commit may carry any trailer.
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
"""Maximum number of commits that one call reads; each takes 30 µs from a pack."""

_ID_BYTES = 20
_RECORD_BYTES = 8 + _ID_BYTES

Pair = tuple[int, str]
"""The last event that a commit holds, and its id."""


class CommitIndex:
    """The (event, commit) pairs of one branch; safe to share between threads.

    Args:
        repo: Repository with the commits.
        path: The cache file; it need not exist.
    """

    def __init__(self, repo: GitRepository, path: Path) -> None:
        self._repo = repo
        self._path = path
        self._lock = threading.Lock()
        self._known = b""
        self._loaded = False
        self._head = ""
        self._next = ""  # the commit to read next, between the head and the known commits
        self._fresh: list[Pair] = []  # what was read on the way there, newest first

    def find(self, seq: int) -> str:
        """Return the first commit that holds an event; empty if there is none or it is not indexed yet."""
        with self._lock:
            if self._next:  # only events newer than the oldest commit read so far can be answered
                newer = self._fresh[::-1]
                found = bisect_left(newer, (seq, ""))
                return newer[found][1] if 0 < found < len(newer) else ""
            places = range(len(self._known) // _RECORD_BYTES)
            found = bisect_left(places, seq, key=self._seq)
            return self._pair(found)[1] if found < len(places) else ""

    def extend(self, head: str, most: int = WALK) -> bool:
        """Read some more commits; return whether there are more to read.

        Args:
            head: The commit that the branch names now; empty if there is none.
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
        """Read the commits since the last call; return false if they do not lead back to its head."""
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
            # Drop records from a branch that no longer exists; the file is rewritten below.
            while self._known and self._last()[0] >= pair[0] and self._last() != pair:
                self._known = self._known[:-_RECORD_BYTES]
                nofollow.remove(self._path, missing_ok=True)
            if self._known and self._last() == pair:
                self._next = ""
                break
            self._fresh.append(pair)
        self._keep()

    def _keep(self) -> None:
        """Write what was read to the file, once it connects to what the file holds."""
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

    def _seq(self, place: int) -> int:
        return int.from_bytes(self._known[place * _RECORD_BYTES : place * _RECORD_BYTES + 8])

    def _pair(self, place: int) -> Pair:
        at = place * _RECORD_BYTES
        return int.from_bytes(self._known[at : at + 8]), self._known[at + 8 : at + _RECORD_BYTES].hex()

    def _last(self) -> Pair:
        return self._pair(len(self._known) // _RECORD_BYTES - 1)
