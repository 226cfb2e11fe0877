"""Executes a purge on log, blobs, caches and commits, and finishes an interrupted one.

The intent is first written to a journal (``.git/agentx-purge``). After a crash, the next process that takes
the workspace's lock finishes it, so that no process sees, or builds upon, a half-done purge. Each step can be
repeated without further effect. All of this runs under that lock.

The log keeps its seqs and hashes, so whoever has read it continues from the same place. Commits get other
ids, by which every process that has the workspace open notices the purge and reads everything again
(:class:`agentx.recording.write_path.WritePath`).
"""

import contextlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path

import msgspec

from agentx.core.cache_dir import CACHE
from agentx.recording import commit_message
from agentx.recording.staging import WriteFailed
from agentx.storage import stopping
from agentx.storage.events.codec import DamagedLine, purge
from agentx.storage.events.types import Draft, EventsPurged
from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, write_file
from agentx.storage.files.lock import FileLock
from agentx.storage.git.packs import prune
from agentx.storage.git.packs.rewriting import Rewriter
from agentx.storage.git.recovery.git_repair import read_ref
from agentx.storage.index.manifest import TABLE_LOCK
from agentx.storage.index.pending_writes import locked
from agentx.storage.log.blobs import FOLDER as BLOBS
from agentx.storage.log.blobs import blob_path
from agentx.storage.log.history import (
    LIVE,
    ORPHANS,
    SEGMENTS,
    History,
    HistoryWriter,
    count_segments,
    segment_path,
    told_already,
)
from agentx.storage.progress import Progress
from agentx.synthesis.memory.record_codec import record_codec

NAME = "agentx-purge"

_CODEC = record_codec()
_HASH_FROM, _HASH_TO = -67, -3
_NUMBERS = 1_000
"""Maximum number of events in one ``EventsPurged``, because a line is bounded."""

_LOCKS = {".gitignore", "index.owner", "index.feeding"}
"""Cache files that are kept: a process that holds one of these locks must find the same file again."""

_PACKER_S = 60.0
_SPAN = re.compile(rb"^AgentX-Event: ([0-9]{1,18})(?:-([0-9]{1,18}))?$", re.MULTILINE)
_ACTOR = re.compile(rb"^AgentX-Actor: (.*)$", re.MULTILINE)


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """What a purge removes. It does not reveal any purged content.

    Attributes:
        events: Hash by seq of each event that is purged.
        contents: Blob ids of long texts and of artifacts, with the event that brought each.
        orphans: Marks of the lines of ``history/orphans.jsonl`` that are removed.
        refs: Refs that are removed.
        after: The last event before the purge.
        hash: Hash of that event.
        actor: Who purges.
        reason: Why.
        who: For the reflog: ``name <address> time zone``.
    """

    events: dict[int, str]
    contents: dict[str, int]
    orphans: tuple[str, ...]
    refs: tuple[str, ...]
    after: int
    hash: str
    actor: str
    reason: str
    who: str


def mark(line: bytes) -> str:
    """Return the name of a line of ``history/orphans.jsonl``."""
    return blake2b(line.rstrip(b"\n"), digest_size=16).hexdigest()


def begin(git_dir: Path, journal: Journal) -> None:
    """Durably record the intent to purge; :func:`finish` executes it."""
    write_file(git_dir / NAME, msgspec.json.encode(journal))


@stopping.finishing()
def finish(root: Path, git_dir: Path, progress: Progress | None = None) -> bool:
    """Execute or finish a purge; cheap if there is none.

    Returns:
        Whether there was one; then everything read before has to be read again.

    Raises:
        WriteFailed: The disk refuses; the rest is done when the workspace is used again.
    """
    try:
        content = nofollow.read(git_dir / NAME)
    except FileNotFoundError:
        return False
    work = _Purge(root, git_dir, msgspec.json.decode(content, type=Journal), progress or _untold)
    try:
        work.run()
        nofollow.remove(git_dir / NAME)
        sync_directory(git_dir)
    except OSError as error:
        raise WriteFailed(
            f"Purged content could not be removed completely from {root}: {error.strerror}. The rest is "
            "removed when the workspace is next used."
        ) from error
    return True


def survey(root: Path, journal: Journal, tips: list[str]) -> dict[str, bool]:
    """Return for each commit whether a purge would rewrite it or one of its ancestors."""
    work = _Purge(root, root / ".git", journal, _untold)
    rewriter = Rewriter(root / ".git", work.edit_file, lambda message: message, write=False)
    return {old: old != new for old, new in rewriter.rewrite(tips, _untold).items()}


def _untold(_what: str, _done: int, _total: int) -> None:
    pass


class _Purge:
    def __init__(self, root: Path, git_dir: Path, journal: Journal, progress: Progress) -> None:
        self._root = root
        self._git_dir = git_dir
        self._journal = journal
        self._progress = progress
        self._seqs = sorted(journal.events)
        self._hashes = {own_hash.encode() for own_hash in journal.events.values()}
        self._orphans = set(journal.orphans)

    def run(self) -> None:
        self._purge_log()
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # without caches no process feeds the index
                held.enter_context(locked(self._root / CACHE / "index.feeding"))
                held.enter_context(locked(self._root / CACHE / "index" / TABLE_LOCK))  # nor writes its table
            self._empty_caches()
        self._record()
        with FileLock(self._git_dir / "agentx-pack.lock", timeout_s=_PACKER_S).hold():
            self._purge_git()

    # --- files ------------------------------------------------------------------------------------

    def _purge_log(self) -> None:
        names = [segment_path(number) for number in range(1, count_segments(self._root) + 1)]
        for path in (self._root / name for name in (*names, LIVE)):
            with contextlib.suppress(FileNotFoundError):
                self._replace(path, self._without_events(old := nofollow.read(path)), old)
        path = self._root / ORPHANS
        with contextlib.suppress(FileNotFoundError):
            self._replace(path, self._without_orphans(old := nofollow.read(path)), old)
        for oid in self._journal.contents:
            nofollow.remove(self._root / blob_path(oid), missing_ok=True)
        blobs = self._root / BLOBS
        folders = nofollow.names(blobs) if nofollow.is_directory(blobs) else []
        for folder in (self._root / SEGMENTS, *(blobs / name for name in folders)):
            if nofollow.is_directory(folder):
                sync_directory(folder)

    @staticmethod
    def _replace(path: Path, new: bytes, old: bytes) -> None:
        if not new and path.name != LIVE:
            nofollow.remove(path)
        elif new != old:
            write_file(path, new)

    def _empty_caches(self) -> None:
        cache = self._root / CACHE
        for path in (cache / name for name in nofollow.names(cache)) if nofollow.is_directory(cache) else ():
            if nofollow.is_directory(path):
                # a process that has it open may create a file in it again
                nofollow.remove_tree(path, ignore_errors=True)
                if nofollow.exists(path):
                    nofollow.remove_tree(path)
            elif path.name not in _LOCKS:
                nofollow.remove(path, missing_ok=True)

    def _without_events(self, log: bytes) -> bytes:
        """Return a part of the log with the purged events emptied."""
        lines = log.splitlines(keepends=True)
        return b"".join(
            self._purged(line) if line[_HASH_FROM:_HASH_TO] in self._hashes else line for line in lines
        )

    @staticmethod
    def _purged(line: bytes) -> bytes:
        try:
            return purge(line)
        except DamagedLine:
            return line

    def _without_orphans(self, lines: bytes) -> bytes:
        return b"".join(line for line in lines.splitlines(keepends=True) if mark(line) not in self._orphans)

    # --- the fact ---------------------------------------------------------------------------------

    def _record(self) -> None:
        """Append the events that record the purge, except those that an interrupted attempt appended."""
        journal = self._journal
        history = History(self._root, _CODEC)
        known = {event.key for event in history.read(journal.after, told_already)}
        writer = HistoryWriter(self._root, _CODEC)
        drafts = [draft for draft in self._drafts() if draft.key not in known]
        try:
            writer.start_at(journal.after, journal.hash)
            writer.catch_up()
            if drafts:
                writer.append(drafts)
        finally:
            writer.close()

    def _drafts(self) -> Iterator[Draft]:
        seqs = sorted(self._journal.events)
        for start in range(0, len(seqs), _NUMBERS):
            part = tuple(seqs[start : start + _NUMBERS])
            yield Draft(
                data=EventsPurged(events=part, reason=self._journal.reason),
                actor=self._journal.actor,
                key=f"purge:{self._journal.after}:{start}",
            )

    # --- Git --------------------------------------------------------------------------------------

    def _purge_git(self) -> None:
        head = read_ref(self._git_dir)
        rewriter = Rewriter(self._git_dir, self.edit_file, self._edit_message)
        new = rewriter.rewrite([head], self._progress)[head]
        prune.set_refs(self._git_dir, new, self._journal.refs, self._journal.who)
        prune.remove_scratch(self._git_dir, keep=[NAME])
        prune.sweep(self._git_dir, self._progress)

    def edit_file(self, path: str, oid: str, read: Callable[[], bytes]) -> bytes | str:
        """Return the new content or id of a commit's file; empty to remove it."""
        brought = self._journal.contents.get(oid)
        if brought is not None:
            return "" if path.startswith(f"{BLOBS}/") else f"purged: event {brought}\n".encode()
        if path == ORPHANS:
            new = self._without_orphans(old := read())
            return new if new not in {old, b""} else oid if new else ""
        if path == LIVE or (path.startswith(f"{SEGMENTS}/") and not path.startswith(f"{BLOBS}/")):
            new = self._without_events(old := read())
            return new if new != old else oid
        return oid

    def _edit_message(self, message: bytes) -> bytes:
        """Compose a message again if it mentions purged events."""
        span = _SPAN.search(message)
        if span is None:
            return message
        first, last = int(span[1]), int(span[2] or span[1])
        place = bisect_left(self._seqs, first)
        if place == len(self._seqs) or self._seqs[place] > last:
            return message
        behind = History(self._root, _CODEC).read(first - 1, told_already)
        events = list(takewhile(lambda event: event.seq <= last, behind))
        actor = _ACTOR.search(message)
        composed, _ = commit_message.compose(events, actor=actor[1].decode() if actor else "")
        return composed.encode("utf-8", "replace")
