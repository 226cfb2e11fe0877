"""The history in a commit. It cannot change any more, so it is read without a lock."""

from collections.abc import Iterator

from agentx.storage.events.codec import GENESIS, Codec, DamagedLine, Parts, split
from agentx.storage.events.types import Event
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.history import LIVE, SEGMENTS, HistoryDamaged, segment_path


class CommittedLog:
    """The log of one commit.

    Args:
        repo: The repository.
        commit: Its id.
        codec: Knows the event types.

    Attributes:
        entries: Everything below ``history/`` in the commit, and the live log, by path.
        files: Paths of the sealed segments in order, then of the live log.

    Raises:
        HistoryDamaged: The commit holds no history, or part of it is missing.
    """

    def __init__(self, repo: GitRepository, commit: str, codec: Codec) -> None:
        self._repo = repo
        self._codec = codec
        self._commit = commit
        tree = repo.tree_of(commit)
        self.entries = dict(repo.files(repo.subtree(tree, SEGMENTS), f"{SEGMENTS}/"))
        segments = [path for path in self.entries if path.endswith(".jsonl") and path[8:11].isdigit()]
        self.files = [segment_path(number) for number in range(1, len(segments) + 1)] + [LIVE]
        live = repo.entry(tree, LIVE)
        if live is None or set(segments) != set(self.files[:-1]):
            raise HistoryDamaged(f"The commit {commit} does not contain a complete history.")
        self.entries[LIVE] = live

    def content(self, path: str) -> bytes:
        """Return the bytes of one of its files.

        Raises:
            ObjectDamaged: They cannot be read.
        """
        return self._repo.read_blob(self.entries[path].oid)

    @property
    def last(self) -> Event | None:
        """Its last event; ``None`` if it has none."""
        for path in reversed(self.files):
            if lines := self.content(path).splitlines():
                return self._decode(path, lines[-1])
        return None

    def file_with(self, seq: int) -> int:
        """Return the index, from 0, of the file that holds an event, or that it would be appended to."""
        low, high = 0, len(self.files) - 1
        while low < high:
            middle = (low + high + 1) // 2
            first = self.content(self.files[middle]).partition(b"\n")[0]
            if first and self._decode(self.files[middle], first).seq <= seq:
                low = middle
            else:
                high = middle - 1
        lines = self.content(self.files[low]).splitlines()
        holds = bool(lines) and self._decode(self.files[low], lines[-1]).seq >= seq
        return low if holds else len(self.files) - 1

    def _decode(self, path: str, line: bytes) -> Event:
        try:
            return self._codec.decode(line)
        except DamagedLine as error:
            raise HistoryDamaged(f"{path} in the commit {self._commit}: {error}") from error

    def events(self, after: int = 0, own_hash: str = "") -> Iterator[Event]:
        """Yield the events after ``after`` along the hash chain; stop where an event is missing or damaged.

        Lines that are not events of the chain are skipped.

        Args:
            after: Number of the event to start after.
            own_hash: The hash of that event, if known.
        """
        seq, previous = after, own_hash or ("" if after else GENESIS)
        for path in self.files[self.file_with(after + 1) :]:
            for line in self.content(path).splitlines(keepends=True):
                parts = _split(line)
                event = self._codec.decode_parts(parts) if parts else None
                if parts is None or event is None or event.seq <= after:
                    continue
                if event.seq != seq + 1 or (previous and not parts.extends(previous)):
                    continue
                seq, previous = event.seq, event.hash
                yield event

    def begins(self, number: int) -> int:
        """Return the number of the first event in a file; if it is empty, of the next event to be written."""
        first = self.content(self.files[number]).partition(b"\n")[0]
        last = self.last
        return self._decode(self.files[number], first).seq if first else (last.seq if last else 0) + 1

    def until(self, seq: int) -> tuple[list[str], bytes]:
        """Return the log as it was after an event: the segments sealed by then, and the live log."""
        number = self.file_with(seq + 1)
        kept = b""
        for line in self.content(self.files[number]).splitlines(keepends=True):
            parts = _split(line)
            if parts and self._codec.decode_parts(parts).seq > seq:
                break
            kept += line
        return self.files[:number], kept


def _split(line: bytes) -> Parts | None:
    try:
        return split(line) if line.endswith(b"\n") else None
    except DamagedLine:
        return None
