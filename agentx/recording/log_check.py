"""Checks that the log's files validly extend the log of the last commit, before they are committed."""

from pathlib import Path

import msgspec

from agentx.recording import heal_log
from agentx.storage.events.codec import GENESIS, Codec, DamagedLine
from agentx.storage.files import nofollow
from agentx.storage.git.repository import GitRepository
from agentx.storage.log.chain import next_event
from agentx.storage.log.history import (
    LIVE,
    SEGMENTS,
    History,
    HistoryDamaged,
    count_segments,
    segment_number,
    segment_path,
)

_HASH = slice(-67, -3)


class _Committed(msgspec.Struct, frozen=True):
    """The log as the engine's latest commit holds it; the next commit must extend it.

    Attributes:
        segments: Number of sealed segments.
        live: The live log.
        tree: The commit's tree.
        seq: The last event; 0 for none.
        hash: Hash of the last event.
    """

    segments: int = 0
    live: bytes = b""
    tree: str = ""
    seq: int = 0
    hash: str = GENESIS


class LogCheck:
    """Compares the log's files with the log of the last commit.

    Args:
        root: The workspace's directory.
        repo: Its repository.
        codec: Knows the event types.
    """

    def __init__(self, root: Path, repo: GitRepository, codec: Codec) -> None:
        self._root = root
        self._repo = repo
        self._codec = codec
        self._committed = _Committed()

    @property
    def tree(self) -> str:
        """Tree of the commit that is compared with; empty for none."""
        return self._committed.tree

    def compare_with(self, tree: str, seq: int) -> None:
        """Compare with the log in a commit's tree from now on.

        Args:
            tree: The tree; empty for none.
            seq: The last event of the log, if the tree does not show it.
        """
        live = self._repo.entry(tree, LIVE) if tree else None
        content = self._repo.read_blob(live.oid) if live else b""
        segments = self.segments_in(tree)
        last = content
        if not last and segments and (sealed := self._repo.entry(tree, segment_path(segments))):
            last = self._repo.read_blob(sealed.oid)
        try:
            event = self._codec.decode(last[last.rfind(b"\n", 0, -1) + 1 :]) if last else None
        except DamagedLine:
            event = None
        end = (event.seq, event.hash) if event else (seq, GENESIS)
        self._committed = _Committed(segments, content, tree, *end)

    def committed(self, files: dict[str, bytes], tree: str, through: int, segments: int) -> None:
        """Compare with these files of the log from now on, because a commit holds them.

        Args:
            files: What :meth:`files` returned.
            tree: The commit's tree.
            through: The last event.
            segments: Number of sealed segments.
        """
        last = b"".join(files.values())
        own_hash = last[_HASH].decode() if last else self._committed.hash
        self._committed = _Committed(segments, files[LIVE], tree, through, own_hash)

    def segments_in(self, tree: str) -> int:
        """Return the number of sealed segments in a commit's tree."""
        folders = [name for name in self._repo.names(tree, SEGMENTS) if name.isdecimal()]
        for folder in sorted(folders, reverse=True):
            names = [name.removesuffix(".jsonl") for name in self._repo.names(tree, f"{SEGMENTS}/{folder}")]
            numbers = [int(name) for name in names if name.isdecimal()]
            if numbers:
                return int(folder) * 100 + max(numbers)
        return 0

    def files(self, through: int, segments: int, recorded: int, *, whole: bool = False) -> dict[str, bytes]:
        """Return the log's files for the next commit, after checking that they extend the last one's.

        Args:
            through: The last event.
            segments: Number of sealed segments.
            recorded: The last event that the commits hold by their own account.
            whole: Check every line since the last sealed segment of the last commit, and what follows the
                last event.

        Raises:
            HistoryDamaged: They do not extend it by valid events.
        """
        known = self._committed
        names = [*map(segment_path, range(known.segments + 1, segments + 1)), LIVE]
        contents = [self.read(name) for name in names]
        joined = b"".join(contents)
        at, seq, own_hash = len(known.live), known.seq, known.hash
        grown = contents[0].startswith(known.live) and segments >= known.segments
        if whole or not grown:
            at, seq, own_hash = 0, *self._sealed_end(known.segments)
        first, first_hash = seq, own_hash
        while seq < through:
            end = joined.find(b"\n", at) + 1
            event = next_event(self._codec, joined[at:end], seq + 1, own_hash)
            if event is None:
                raise HistoryDamaged(f"{LIVE} does not have event {seq + 1} in its place.")
            at, seq, own_hash = end, event.seq, event.hash
        if not grown and heal_log.drops(self._codec, known.live, joined[:at], first, first_hash):
            raise HistoryDamaged(f"{LIVE} lacks events that are in the last commit.")
        sealed = sum(map(len, contents[:-1]))
        if at < sealed or (grown and at < len(known.live)) or through < max(known.seq, recorded):
            raise HistoryDamaged(
                f"{LIVE} ends at event {through}, but the commits continue to event "
                f"{max(known.seq, recorded)}."
            )
        if whole and (why := self._why_more(joined[at:], seq, own_hash)):
            raise HistoryDamaged(why)
        return dict(zip(names, [*contents[:-1], joined[sealed:at]], strict=True))

    def read(self, name: str) -> bytes:
        """Return a file's content as it is on disk; empty if it does not exist."""
        try:
            return nofollow.read(self._root / name)
        except FileNotFoundError:
            return b""

    def check_segment(self, name: str) -> None:
        """Check that a sealed segment follows from the one before it; other files are left alone.

        Raises:
            HistoryDamaged: It does not.
        """
        if number := segment_number(name):
            history = History(self._root, self._codec)
            for _ in history.read_whole(history.start_of(number), number):
                pass

    def _sealed_end(self, segments: int) -> tuple[int, str]:
        """Return seq and hash of the last event of the sealed segments."""
        try:
            place = History(self._root, self._codec).start_of(segments + 1)
        except (OSError, DamagedLine) as error:
            raise HistoryDamaged(f"{segment_path(segments)} does not end with a valid event.") from error
        return place.seq, place.hash

    def _why_more(self, rest: bytes, seq: int, own_hash: str) -> str:
        """Return what is wrong after the last event; empty for a torn line or an interrupted seal."""
        *lines, torn = rest.split(b"\n")
        segments = count_segments(self._root)
        if lines and segments and nofollow.same_file(self._root / segment_path(segments), self._root / LIVE):
            return ""  # a crash interrupted a seal: the segment exists under both names
        if lines or next_event(self._codec, torn[:-1] + b"\n", seq + 1, own_hash):
            return f"{LIVE}: the content after event {seq} is not the next event."
        return ""
