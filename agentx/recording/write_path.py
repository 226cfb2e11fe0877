"""The write path: lock, catch up, append, fold, release, publish; one commit for each write.

An event exists from the moment its line is synced to disk, together with the contents that it names.
Everything after that can be derived from it again: the working file, the tree, the ref, the index file. After
a crash the next process does so (:mod:`agentx.recording.recovery`); otherwise :meth:`WritePath.flush` does at
the end of a turn.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from agentx.config import FILE as CONFIG
from agentx.core import layout
from agentx.core.cache_dir import CACHE, make_cache
from agentx.core.event_bus import Bus
from agentx.recording import fast_forward, purge_journal, recovery
from agentx.recording.committer import Committer
from agentx.recording.external_edits import ExternalEdits, chunks
from agentx.recording.log_health import LogHealth
from agentx.recording.recorded_log import RecordedLog
from agentx.recording.staging import Content, Staged, WriteFailed
from agentx.storage import stopping
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError, UsageError, WriterConflict
from agentx.storage.events.codec import Codec
from agentx.storage.events.types import (
    Body,
    Draft,
    Event,
    EventsPurged,
    FileChange,
    Payload,
    WorkspaceCreated,
    changes_of,
)
from agentx.storage.files import nofollow
from agentx.storage.files.lock import FileLock
from agentx.storage.git.branch import RefLocked
from agentx.storage.git.objects import blob_id
from agentx.storage.git.recovery.git_repair import note_whole, read_ref, repair, require_whole
from agentx.storage.git.repository import NotCommitted
from agentx.storage.git.repository_stamp import RepositoryStamp
from agentx.storage.log.blobs import WHOLE_BYTES, blob_path
from agentx.storage.log.history import (
    LIVE,
    HistoryDamaged,
    HistoryRewound,
    HistoryWriteFailed,
    OnDamage,
    told_already,
)
from agentx.storage.progress import Progress
from agentx.storage.secrets.redaction import clean, clean_draft
from agentx.synthesis.state.parallel_fold import fold
from agentx.synthesis.state.state import State

if TYPE_CHECKING:
    from agentx.storage.git.index_file import Mark

_LOG = logging.getLogger("agentx.recording.write_path")

BULK_EVENTS = 5_000
"""In bulk mode, commit after this number of events."""

LAG_S = 0.05
"""A commit may follow its writes by this time: to have those of others who wait for the lock, or to be
written in one pack with later commits."""

_SOON_S = 0.04
"""After this time a writer writes what is in memory itself, before the background thread does."""

PayloadFor = Callable[[tuple[FileChange, ...]], Payload]
"""Makes an event's payload from the changes that it announces."""


class FactReader(Protocol):
    """Draws conclusions from facts."""

    @property
    def through(self) -> int:
        """The last fact that it has read."""
        ...

    def prepare(self, drafts: Sequence[Draft], /) -> None:
        """Do what needs no lock, for facts that will be recorded."""
        ...

    def conclude(self) -> Iterator[Sequence[Draft]]:
        """Yield what new facts lead to; each is appended before the next is asked for."""
        ...

    def read_mark(self) -> Sequence[Draft]:
        """Return what puts on record that all facts so far were read."""
        ...

    def rewind(self, seq: int, /) -> None:
        """Forget the facts after ``seq``, which were taken back."""
        ...


class WorkspaceClosed(UsageError):
    """The workspace was closed; open it again."""


class ReadOnly(AgentXError):
    """The workspace is read-only: the disk refuses writes, or a newer version wrote it."""


class WritePath:
    """Makes every change to one workspace, under its lock, and wires the parts that a change passes.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        artifacts: The working files.
        bus: Receives each event once it is durable.
        outer: Whether the artifacts lie outside the working directory.
        cache: Directory of the caches; ``.agentx`` by default.
        read_only: Why nothing can be written. If given, nothing on disk is changed, not even to finish what a
            crash interrupted.

    Attributes:
        log: The events and the state; call :meth:`refresh` to include what others wrote.
        health: Whether the log is sound.
        git: The commits and the recorded entries of the artifacts.
        edits: Records what the user changed.
        artifacts: The working files.
        notes: Messages for the user.
        lock: The workspace's lock.
        last_look: ``time.monotonic()`` of the latest fold of what others wrote.
        reader: Concludes from each fact, before the lock under which it was read or recorded is released.
    """

    def __init__(
        self,
        root: Path,
        codec: Codec,
        artifacts: Artifacts,
        bus: Bus,
        *,
        outer: bool = False,
        cache: Path | None = None,
        read_only: str = "",
    ) -> None:
        self.root = root
        self.held = nofollow.HeldDirectory(root)
        self.artifacts = artifacts
        self.cache = cache or root / CACHE
        self.read_only = read_only
        self._reading = bool(read_only)
        if self._reading:
            require_whole(root)
            self.notes: list[str] = [read_only]
        else:
            make_cache(root)
            self.notes = [note] if (note := repair(root)) else []
        self._whole = read_ref(root / ".git")
        self.git = Committer(root, artifacts.root, self.notes, codec, outer=outer, reading=self._reading)
        self.log = RecordedLog(root, codec, self.cache, bus, self.git.add)
        self.health = LogHealth(root, codec, self.log, self.git, self.notes)
        self.edits = ExternalEdits(self, self.log, self.health, self.git, artifacts, self.notes)
        self.lock = FileLock(self.git.repo.git_dir / "agentx.lock", brief=True, needed=not self._reading)
        self.last_look = 0.0
        self.reader: FactReader | None = None
        self._concluding = False
        self._codec = codec
        self._bus = bus
        self._stamp = RepositoryStamp(self.git.repo.git_dir)
        self._seen_log: object = None
        self._left_log: tuple[int, ...] = ()
        self._caught_up = False
        self._held = False
        self._unplaced = False
        self._owed_since = 0.0
        self._deferring: Callable[[], None] | None = None
        self._deferred_since = 0.0
        self._bulk = 0
        self._closed = False
        self._crash: Mark | None = None
        self._unsettled = False

    def make_read_only(self, reason: str) -> None:
        """Refuse every write from now on; ``reason`` is the error message."""
        self.read_only = reason
        self.notes.append(reason)

    def require_writable(self) -> None:
        """Refuse a change if the workspace is read-only.

        Raises:
            ReadOnly: The workspace is read-only.
        """
        if self.read_only:
            raise ReadOnly(self.read_only)

    # --- opening and closing ----------------------------------------------------------------------

    def load(self) -> None:
        """Fold the whole log. Call :meth:`recover` next, before the first write."""
        # Otherwise a commit by another process between two reads would look like a lost one.
        with self.lock.hold(), self.log.folding:
            self._load()

    def _load(self) -> None:
        if self.git.deferred:
            self._write_quietly()
            self.git.drop_deferred()
        self.git.require_branch()
        if self._reading:
            self._refuse_half_done()
        else:
            self._finish_half_done()
        self.git.open()
        self.log.open()
        if self.reader is not None:
            self.reader.rewind(self.log.state.seq)
        self._seen_log = self.health.stamp()
        self.health.check(restore=not self._reading)
        self._expect_pending()

    def _finish_half_done(self) -> None:
        """Finish an interrupted purge or pull, and detect what else a crash left behind."""
        repo = self.git.repo
        if self._finish_purge():
            repo.follow_packs()
        self._finish_pull()
        repo.release_packs()
        mark = self.git.index.mark
        self._unsettled = mark is not None
        self._crash = mark if mark is not None and mark.is_left else None
        if self._crash is not None and self._crash.rebooted:
            repo.break_lock()

    def _finish_pull(self) -> None:
        if self._is_half_done(fast_forward.NAME):
            fast_forward.finish(self.root, self.git.repo, self.artifacts.root)

    def _finish_purge(self) -> bool:
        """Finish an interrupted purge; return whether there was one."""
        return self._is_half_done(purge_journal.NAME) and purge_journal.finish(
            self.root, self.git.repo.git_dir
        )

    def _is_half_done(self, journal: str) -> bool:
        return nofollow.exists(self.git.repo.git_dir / journal)

    def _refuse_half_done(self) -> None:
        for name, what in ((purge_journal.NAME, "purge"), (fast_forward.NAME, "pull")):
            if self._is_half_done(name):
                raise ReadOnly(
                    f"A {what} was interrupted and must be finished before the workspace can be read. "
                    f"{self.read_only}"
                )

    def recover(self) -> None:
        """Finish writes that a crash interrupted, and record what others did to the repository meanwhile."""
        with self.exclusive():
            if self.health.unsound:
                return
            note_whole(self.root, self._whole)
            self._adopt_commits()
            if self._unsettled:  # left by a process that died, or that closed while the disk was full
                self.git.include_leftovers()
            crash, self._crash = self._crash, None
            power_cut = crash is not None and crash.rebooted
            unsettled = list(self.log.history.read(crash.seq, told_already)) if crash and power_cut else ()
            if self._finish_writes(unsettled or self.git.pending, power_cut=power_cut):
                self.commit()

    def _finish_writes(self, events: Sequence[Event], *, power_cut: bool = False) -> bool:
        """Finish writes that may have been interrupted; return whether any of the events changed files."""
        unfinished = [event for event in events if changes_of(event)]
        if not unfinished:
            self._unplaced = False
            return False
        self.git.repo.write_contents_back(
            made.after for event in unfinished for made in changes_of(event) if made.after
        )
        outcome = recovery.roll_forward(
            unfinished, self.git.seq, self.git.tracked, self.git.repo, self.artifacts, power_cut=power_cut
        )
        self._append([Draft(data=lost, actor="engine:recovery") for lost in outcome.reverted])
        self._unplaced = False
        self.edits.record(outcome.edited, noticed="open")
        return True

    def refold(self, on_damage: OnDamage, progress: Progress | None = None) -> State:
        """Drop the snapshots, fold the whole log again while others write, and use the resulting state.

        Args:
            on_damage: Called with each line that is not the expected event.
            progress: Called with the step, the amount done and the total.
        """
        self.log.forget_snapshots()
        known, report = self.log.state.seq, progress or (lambda *_: None)
        state = fold(self.root, self._codec, on_damage, lambda seq: report("fold", seq, max(known, seq)))
        with self.exclusive():
            self.log.adopt(state)
        return state.copy()

    def close(self) -> None:
        """Release files and handles; call :meth:`flush` first."""
        self._closed = True
        self.held.release()
        if self.lock.kept:  # a flush has failed
            with self.lock.hold():
                self.lock.kept = False
        self.log.close()
        self.git.repo.close()

    # --- the lock, and what others did meanwhile --------------------------------------------------

    def refresh(self) -> None:
        """Fold what other processes wrote, and publish it."""
        with self.exclusive():
            pass

    @property
    def is_there(self) -> bool:
        """Whether its directory is still the one that was opened, and a workspace."""
        return self.held.is_there and layout.is_workspace(self.root)

    @property
    def is_current(self) -> bool:
        """Whether the state holds everything that any process recorded; takes no lock.

        While a thread of this process holds the lock and has caught up, nobody else can record.
        """
        if self._caught_up:
            return True
        left = self._left_log
        if not left or self.health.unsound or self.log.writer.failed:
            return False
        if self._live_log() != left or self.git.moved:
            return False
        return not any(map(self._is_half_done, (purge_journal.NAME, fast_forward.NAME)))

    def _live_log(self) -> tuple[int, ...]:
        """Return what changes with every append by others and every rotation; empty without a log."""
        try:
            info = nofollow.status(self.root / LIVE)
        except OSError:
            return ()
        return info.st_ino, info.st_size, info.st_mtime_ns

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock with everything folded that others wrote; publish after the release."""
        if self._closed:
            raise WorkspaceClosed(f"The workspace {self.root} was closed; open it again.")
        if not self.lock.held and not self.held.is_there:
            raise WorkspaceClosed(
                f"The directory {self.root} was deleted, moved or replaced while it was open; open it again."
            )
        outermost, through = False, 0
        try:
            with self.lock.hold(), self.log.folding:
                outermost = self.lock.depth == 1
                if outermost:
                    self._catch_up()
                    self._caught_up = True
                    self._conclude()
                try:
                    yield
                finally:
                    if outermost:
                        self._conclude()
                    if outermost and self._owed_since and not self._may_wait():
                        self._commit_quietly()
                    if outermost and self.git.deferred:
                        self._keep_or_write()
                    through = self.log.writer.appended
                    if outermost:
                        self._left_log = self._live_log()
                        self._caught_up = False
        finally:
            if outermost:
                self._settle(through)

    def _conclude(self, at: datetime | None = None) -> None:
        """Append what new facts lead to; after a failure, which is logged, they are read again next time.

        Args:
            at: Time of the conclusions; now by default.
        """
        reader = self.reader
        if reader is None or self._concluding or reader.through >= self.log.state.seq:
            return
        if self.read_only or self.health.unsound:
            return
        self._concluding = True
        try:
            for drafts in reader.conclude():
                timed = [msgspec.structs.replace(one, at=at) for one in drafts] if at else drafts
                self._append(timed, sync=False)
        except Exception:  # noqa: BLE001 - what cannot be concluded must not stop recording
            _LOG.exception("Conclusions of %s could not be recorded; its events are.", self.root)
        finally:
            self._concluding = False

    def _settle(self, through: int) -> None:
        """Make durable what was appended and read under the lock, which is free by now, and publish it.

        Raises:
            HistoryWriteFailed: The disk refuses.
        """
        try:
            self.log.sync(through)
        except HistoryWriteFailed:
            with self.lock.hold(), self.log.folding:
                self._undo_failed()
            self.log.sync(through)  # raises the error again, which now says what became of the events
        finally:
            # Deliver even if another thread holds the lock by now: on return, conclusions from the new events
            # exist.
            self._bus.deliver()

    def _undo_failed(self) -> None:
        """After a sync that failed, go back to what the log holds."""
        if self.log.writer.failed:
            told = self.log.undo_failed()
            self._load()
            self.log.publish_again(told)

    def _catch_up(self) -> None:
        self._undo_failed()
        looked = self.lock.kept or self._stamp.unchanged()  # nobody else had the lock meanwhile
        if looked and not self._reading and not self.health.unsound:
            self._follow_log(moved=False, committed=self.git.seq)
            self.last_look = time.monotonic()
            return
        self._held = False
        repo = self.git.repo
        repo.follow_packs()
        if self._reading:
            self._read_on()
            return
        self.git.require_branch()
        self._finish_pull()
        moved, committed = self.git.moved, self.git.seq
        if moved and self.git.deferred:
            self.git.drop_deferred()
            self._expect_pending()
        if self._finish_purge() or (moved and not repo.has_commit(self.git.head)):
            self._start_over()
        elif moved:
            self.git.follow()
        if self.health.unsound and self.health.may_be_healed:
            self._load()
        if not self.health.unsound:
            self._follow_log(moved=moved, committed=committed)
            self._stamp.note()
        self.last_look = time.monotonic()

    def _read_on(self) -> None:
        """Fold what others appended, without changing anything on disk."""
        if self.health.stamp() == self._seen_log:
            return
        self._seen_log = self.health.stamp()
        if self.git.moved:
            self.git.follow()
        self.log.read_on()
        self._expect_pending()

    def _follow_log(self, *, moved: bool, committed: int) -> None:
        """Fold what others appended and finish their interrupted writes; on damage, report it and stop.

        Args:
            moved: Whether the branch was moved.
            committed: The last committed event before that.
        """
        log, health = self.log, self.health
        reported = len(log.damage)
        try:
            fresh = log.catch_up()
        except HistoryRewound as error:
            if not moved:
                health.notice(str(error))
                return
            health.restore()
            fresh = log.catch_up()
        log.fold(fresh)
        missing = [found.reason for found in log.damage[reported:] if found.missing]
        changed = moved and bool(log.writer.unsound)
        if changed or any(isinstance(event.data, EventsPurged) for event in fresh):
            known = log.writer.known
            self._start_over()  # what was folded before includes what is purged
            log.writer.known = known if health.unsound else b""
            if health.unsound:
                return
            log.writer.catch_up(strict=True)
        elif why := log.writer.unsound or "".join(missing[:1]) or (moved and health.why_taken_out()):
            health.notice(why)
            return
        elif moved:
            if committed <= self.git.seq:
                self.git.expect([event for event in self.git.pending if event.seq > self.git.seq])
            else:
                self._expect_pending()
            self._adopt_commits()
        # The process that announced these events keeps the lock until it has finished. Since the lock was
        # free, that process died or was interrupted midway.
        behind = [event for event in fresh if event.seq > self.git.seq]
        if self._unplaced:
            behind = self.git.pending
        if not self.read_only and self._finish_writes(behind):
            self._owed_since = self._owed_since or time.monotonic()

    def _start_over(self) -> None:
        """Load everything again after a purge rewrote the commits, and publish the events recorded since."""
        known = self.log.state.seq
        self.log.sync(self.log.writer.appended)
        self.git.repo.follow_packs()
        self.log.forget_snapshots()
        self.log.damage.clear()
        self._load()
        self._crash, self.git.index_unknown = None, True
        self.log.publish_again(known)

    def _expect_pending(self) -> None:
        self.git.expect(self.log.history.read(self.git.seq, told_already))

    def _adopt_commits(self) -> None:
        if not self.read_only and (drafts := self.edits.adopt_commits()):
            self._append(drafts)

    def require_sound(self) -> None:
        """Heal a damaged log from the commits.

        Raises:
            HistoryDamaged: The commits do not hold the damaged part.
            ReadOnly: The workspace is read-only.
        """
        self.require_writable()
        if self.health.unsound:
            with self.exclusive():
                if self.health.unsound:
                    self.health.restore()
                    self.log.writer.catch_up(self.log.damage.append, strict=True)
                    self._expect_pending()
                    self.recover()

    # --- recording --------------------------------------------------------------------------------

    def record(self, drafts: Sequence[Draft]) -> list[Event]:
        """Append events durably, without changing files. They become part of the next commit.

        A draft whose key is already in the history is not appended; the event with that key is returned for
        it.
        """
        if self.reader is not None:
            self.reader.prepare(drafts)
        with self.exclusive():
            return self._append(drafts, sync=self.lock.depth > 1)

    def body(self, text: str, whole_bytes: int = WHOLE_BYTES) -> Body:
        """Return a text as an event stores it: redacted, and in a blob if longer than ``whole_bytes``."""
        text = clean(text)
        if not self.log.blobs.is_long(text, whole_bytes):
            return Body(text)
        with self.exclusive():
            self._expect_blob(text.encode())
            return self.log.blobs.body(text, whole_bytes)

    def keep(self, content: bytes) -> Body:
        """Store a content that holds no secrets beside the log; return a body that names it, without extract.

        Raises:
            BlobNotKept: It could not be written.
        """
        with self.exclusive():
            self._expect_blob(content)
            return Body("", self.log.blobs.put(content), len(content))

    def _expect_blob(self, content: bytes) -> None:
        self.hold_git()
        # The blob belongs to the next commit, whatever happens to its event.
        self.git.include(blob_path(blob_id(content)))

    def _append(self, drafts: Sequence[Draft], *, sync: bool = True) -> list[Event]:
        self.require_sound()
        recorded = self.log.find(drafts)
        fresh: dict[str, Draft] = {}
        for place, draft in enumerate(drafts):
            if draft.key not in recorded:
                fresh.setdefault(draft.key or f" {place}", clean_draft(draft))
        if fresh:
            self.hold_git()
            self.raise_format()
            self._unplaced = any(map(changes_of, fresh.values()))
            recorded |= zip(fresh, self.log.append(list(fresh.values()), sync=sync), strict=True)
        return [recorded[draft.key or f" {place}"] for place, draft in enumerate(drafts)]

    def raise_format(self) -> None:
        """Record the present format, if the history has an earlier one; every append does so first.

        A version that does not know the present format then opens the workspace read-only. The caller holds
        the lock.
        """
        state = self.log.state
        if 0 < state.format < layout.FORMAT:
            self.hold_git()
            present = WorkspaceCreated(title=state.title, format=layout.FORMAT, artifacts=state.artifacts)
            self.log.append([Draft(data=present, actor="engine:workspace")])

    def hold_git(self) -> None:
        """Begin a change: until :meth:`flush`, the user's Git commands wait for the index lock."""
        self.require_sound()
        if not self._held:
            self.git.hold()
            self._held = self.git.index.held_by_us  # one that is left by another process is looked at again

    @stopping.finishing()
    def write(
        self,
        contents: Mapping[str, Content | None],
        payload: PayloadFor,
        *,
        actor: str,
        run: str = "",
        cause: int = 0,
        check: Callable[[], Sequence[Draft] | None] | None = None,
    ) -> list[Event]:
        """Change artifacts: one event (several if there are many changes), the files, one commit.

        What the user did to these files meanwhile is recorded and committed first.

        Args:
            contents: New content by checked path; ``None`` removes the file.
            payload: Makes the event's payload from the changes.
            actor: Who makes the change.
            run: Run that it belongs to.
            cause: Event that led to it.
            check: Called after the user's edits are recorded and before anything is changed. An exception
                from it refuses the write; the drafts that it returns are recorded in the same append.

        Raises:
            WriteFailed: The disk refused; nothing was recorded and the files are unchanged.
        """
        with self.exclusive():
            self.hold_git()
            tracked = self.edits.record(list(contents), noticed="write")
            beside = (check and check()) or ()
            staged = Staged(contents, tracked, self.git.repo, self.artifacts)
            try:
                drafts = (
                    Draft(data=payload(chunk), actor=actor, run=run, cause=cause)
                    for chunk in chunks(staged.changes)
                )
                events = self._append([*drafts, *beside])
            except BaseException:
                staged.discard()
                raise
            failed = staged.place()
            self._unplaced = False
            if failed:
                lost = recovery.reverted(events, failed)
                self._append([Draft(data=one, actor="engine:recovery") for one in lost])
            if staged.changes:  # a call that changed nothing becomes part of the next commit
                self._commit_soon(actor)
        if failed:
            raise WriteFailed(" ".join(f"{path!r} was not written: {why}." for path, why in failed.items()))
        return events

    @stopping.finishing()
    def write_in_turn(
        self, plan: Callable[[], tuple[Sequence[Draft], Mapping[str, Content | None]]]
    ) -> list[Event]:
        """Append a batch of events and place files; what follows from one event is appended before the next.

        For an import: what is concluded from an event sees the state at that event, and has its time. The
        events are durable on return.

        Args:
            plan: Called under the lock. Returns events, and the last content of each file that they change.
                The events are without secrets (:func:`agentx.storage.secrets.redaction.clean_draft`), their
                keys are not in the history, and the contents that they name are stored. It has recorded what
                the user did to these files.

        Raises:
            WriteFailed: The disk refused; nothing was recorded and the files are unchanged.
        """
        with self.exclusive():
            drafts, contents = plan()
            if not drafts:
                return []
            self.hold_git()
            self.raise_format()
            staged = Staged(contents, self.git.tracked_all(contents), self.git.repo, self.artifacts)
            events: list[Event] = []
            try:
                self._unplaced = bool(contents)
                for draft in drafts:
                    events += self.log.append([draft], sync=False)
                    self._conclude(draft.at)
                # Otherwise a clone, which has no caches, would read the last facts again, in a later state.
                marks = self.reader.read_mark() if self.reader is not None else ()
                self._append([msgspec.structs.replace(one, at=drafts[-1].at) for one in marks], sync=False)
            except BaseException:
                staged.discard()
                raise
            failed = staged.place()
            self._unplaced = False
            if failed:
                lost = recovery.reverted(events, failed)
                self._append([Draft(data=one, actor="engine:recovery") for one in lost])
            self._commit_soon("")
        return events

    def record_placed(self, drafts: Sequence[Draft]) -> None:
        """Append and commit edits that are in the working files already."""
        self._append(drafts)
        self._unplaced = False
        self._commit_soon("watch")

    # --- committing -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def bulk(self) -> Iterator[None]:
        """Batch writes into few commits, for imports; durability is unchanged."""
        self._bulk += 1
        try:
            yield
        finally:
            self._bulk -= 1
            if not self._bulk and self.git.pending:
                self.commit()

    @stopping.finishing()
    def commit(self, *, actor: str = "") -> None:
        """Commit everything that was recorded since the last commit.

        Args:
            actor: Who acts; by default the actor of the most significant event.
        """
        with self.exclusive():
            self.hold_git()
            self._owed_since = 0.0
            self.log.sync(self.log.writer.appended)
            try:
                self.git.commit(self.log.state.seq, self.log.writer.segments, actor=actor)
            except WriterConflict:
                self.git.follow()
                self._expect_pending()
                self._adopt_commits()
                self.git.commit(self.log.state.seq, self.log.writer.segments, actor=actor)

    def commit_config(self) -> None:
        """Commit ``agentx.toml`` as it is if the user edited it by hand."""
        if self.git.config_edited:
            self.git.include(CONFIG)
            self.commit(actor="" if self.git.pending else "watch")

    def commit_healed(self) -> None:
        """Commit the log's files if they are intact and differ from the last commit."""
        with self.exclusive():
            if self.health.unsound or self.git.pending:
                return  # the next open finishes and commits what a crash interrupted
            for path in self.git.differing_segments():
                self.git.include(path)
            if self.git.due:
                self.commit(actor="engine:repair")
                self._write_deferred()
                self.git.settle()

    def _commit_soon(self, actor: str) -> None:
        """Commit what is durable already; if that fails now, the next commit includes it."""
        if self._bulk and len(self.git.pending) < BULK_EVENTS:
            return
        alone = not self._owed_since
        self._owed_since = self._owed_since or time.monotonic()
        if not self._may_wait():
            self._commit_quietly(actor if alone else "")

    def _may_wait(self) -> bool:
        """Return whether the commit that is owed can be left to whoever waits for the lock."""
        return time.monotonic() - self._owed_since < LAG_S and self.lock.wanted

    def _commit_quietly(self, actor: str = "") -> None:
        """Commit; on failure, leave it to the next commit."""
        self._owed_since = 0.0
        if self.read_only or self.health.unsound:
            return
        try:
            self.commit(actor=actor)
        except (RefLocked, NotCommitted, HistoryDamaged) as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))

    # --- commits in memory ------------------------------------------------------------------------

    def defer(self, wake: Callable[[], None] | None) -> None:
        """Let commits stay in memory for at most :data:`LAG_S`, and be written together; or stop that.

        Meanwhile the lock is kept, so that another process finds a commit for each write, or what a crash
        leaves.

        Args:
            wake: Called when a commit is in memory: :meth:`write_due` is then to be called now and then.
                ``None``: each commit is written before the lock is released.
        """
        with self.lock.hold(), self.log.folding:
            self._deferring = wake
            self.git.repo.deferring = wake is not None
            self._write_quietly()

    def write_due(self) -> bool:
        """Write the commits that are in memory if it is time to, or if others wait; return whether it did."""
        if not self.lock.kept:
            return True
        if time.monotonic() - self._deferred_since < LAG_S and not self.lock.wanted_elsewhere:
            return False
        self.refresh()
        return not self.lock.kept

    def write_commits(self) -> None:
        """Write the commits that are in memory, so that Git's names for commits lead to them."""
        if self.git.deferred:
            with self.exclusive():
                self._write_quietly()

    def _keep_or_write(self) -> None:
        """Leave the commits in memory for a moment and keep the lock, or write them."""
        now = time.monotonic()
        if not self.lock.kept:
            self._deferred_since = now
        if not self._deferring or now - self._deferred_since > _SOON_S or self.lock.wanted_elsewhere:
            self._write_quietly()
            return
        if not self.lock.kept:
            self.lock.kept = True
            self._deferring()

    def _write_quietly(self) -> None:
        """Write the commits that are in memory, under the lock; on failure, leave it to the next time."""
        self.lock.kept = False
        try:
            self._write_deferred()
        except (WriterConflict, RefLocked, NotCommitted, HistoryDamaged) as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))

    @stopping.finishing()
    def _write_deferred(self) -> None:
        self.lock.kept = False
        if not self.git.deferred:
            return
        try:
            self.git.write_deferred()
        except WriterConflict:  # the user's Git moved the branch meanwhile
            self.git.drop_deferred()
            self.git.follow()
            self._expect_pending()
            self._adopt_commits()
            self.git.commit(self.log.state.seq, self.log.writer.segments)
            self.git.write_deferred()

    def flush(self) -> None:
        """End a turn: commit what is pending, sync what was written, and release Git's index lock."""
        if self.read_only:
            return
        if self.git.unsettled:
            self.git.sync()  # most of the syncing happens before the lock is taken
        with self.exclusive():
            if self.health.unsound:
                return
            self.commit_config()
            if self.git.due:
                self.commit()
            self._write_deferred()
            self.git.settle()
            state = self.log.state.copy() if self.log.snapshot_due else None
        if state is not None:
            self.log.save_snapshot(state)
