"""The write path: lock, catch up, append, fold, release, publish; one commit for each write.

An event exists from the moment its line is synced to disk, together with the contents that it names.
Everything after that can be derived from it again: the working file, the tree, the ref, the index file. After
a crash the next process does so (:mod:`agentx.recording.recovery`); otherwise :meth:`WritePath.flush` does at
the end of a turn.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentx.config import FILE as CONFIG
from agentx.core import layout
from agentx.core.cache_dir import CACHE, make_cache
from agentx.core.event_bus import ALL, MEMORY_CHANGED, Bus, MemoryChanged
from agentx.recording import external_edits, fast_forward, heal_log, purge_journal, recovery
from agentx.recording.committer import Committer
from agentx.recording.secret_report import note_on, secrets_in, text_of
from agentx.recording.staging import Content, Staged, WriteFailed
from agentx.storage.artifacts import Artifacts, Scan, change
from agentx.storage.errors import AgentXError, UsageError, WriterConflict
from agentx.storage.events.codec import GENESIS, Codec
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
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import blob_id
from agentx.storage.git.recovery.git_repair import Aside, note_whole, read_ref, repair, require_whole
from agentx.storage.git.repository import NotCommitted
from agentx.storage.log.blobs import WHOLE_BYTES, BlobStore, blob_path
from agentx.storage.log.history import (
    LIVE,
    Damage,
    History,
    HistoryDamaged,
    HistoryRewound,
    HistoryWriter,
    OnDamage,
    count_segments,
    segment_number,
    told_already,
)
from agentx.storage.log.keys import Keys
from agentx.storage.log.snapshots import Snapshots
from agentx.storage.progress import Progress
from agentx.storage.secrets.redaction import clean, clean_draft
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.state.parallel_fold import fold
from agentx.synthesis.state.state import FOLD_VERSION, State

if TYPE_CHECKING:
    from agentx.storage.git.index_file import Mark

_LOG = logging.getLogger("agentx.recording.write_path")

SNAPSHOT_EVENTS = 2_000
"""Save a snapshot of the state after at most this number of events, so that the next open folds fewer."""

BULK_EVENTS = 5_000
"""In bulk mode, commit after this number of events."""

PayloadFor = Callable[[tuple[FileChange, ...]], Payload]
"""Makes an event's payload from the changes that it announces."""


class WorkspaceClosed(UsageError):
    """The workspace was closed; open it again."""


class ReadOnly(AgentXError):
    """The workspace is read-only: the disk refuses writes, or a newer version wrote it."""


class WritePath:
    """Owns the log, the repository and the working files of one workspace, and makes every change to them.

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
        state: The fold of everything that this process has read; call :meth:`refresh` to include what others
            wrote.
        folding: Held by the thread that changes the state. Holding it alone is enough to read the state and
            does not wait for other processes. Do not take the workspace lock while holding it.
        last_write: ``time.monotonic()`` of the latest append by this process.
        last_look: ``time.monotonic()`` of the latest fold of what others wrote.
        damage: Damage found in the log.
        unsound: Why the log must be healed before anything is recorded; empty if it is sound. Until then
            nothing in the workspace is changed.
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
        self.repo = self.git.repo
        self.blobs = BlobStore(root)
        self.history = History(root, codec)
        self._codec = codec
        self.lock = FileLock(self.repo.git_dir / "agentx.lock", brief=True, needed=not self._reading)
        self.folding = threading.RLock()
        self.state = State()
        self.damage: list[Damage] = []
        self.unsound = ""
        self._seen_unsound: object = None
        self._seen_log: object = None
        self.last_write = 0.0
        self.last_look = 0.0
        self._bus = bus
        self._writer = HistoryWriter(root, codec)
        version = f"{FOLD_VERSION}-{codec.fingerprint}"
        self._snapshots = Snapshots(self.cache / "snapshots", self.history, version, sealed=True)
        self._snapshot_seq = 0
        self._keys = Keys(self.cache / "keys.sqlite3", self.history)
        self._held = False
        self._unplaced = False
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
        with self.lock.hold(), self.folding:
            self._load()

    def _load(self) -> None:
        self.git.require_branch()
        if self._reading:
            self._refuse_half_done()
        else:
            self._finish_half_done()
        self.git.open()
        self._fold_from_snapshot()
        self._seen_log = self._stamp()
        self.unsound = self._why_unsound()
        if self.unsound and self._is_set_back() and not self._reading:
            self._restore_log()
        elif self.unsound:
            self._tell_unsound()
        self._expect_pending()

    def _finish_half_done(self) -> None:
        """Finish an interrupted purge or pull, and detect what else a crash left behind."""
        if purge_journal.finish(self.root, self.repo.git_dir):
            self.repo.follow_packs()
        fast_forward.finish(self.root, self.repo, self.artifacts.root)
        mark = self.git.index.mark
        self._unsettled = mark is not None
        self._crash = mark if mark is not None and mark.is_left else None
        if self._crash is not None and self._crash.rebooted:
            self.repo.break_lock()

    def _refuse_half_done(self) -> None:
        for name, what in ((purge_journal.NAME, "purge"), (fast_forward.NAME, "pull")):
            if nofollow.exists(self.repo.git_dir / name):
                raise ReadOnly(
                    f"A {what} was interrupted and must be finished before the workspace can be read. "
                    f"{self.read_only}"
                )

    # --- a damaged log ----------------------------------------------------------------------------

    def _why_unsound(self) -> str:
        """Return why the log must be healed before anything is recorded; empty if it is sound."""
        for found in self.damage:
            if found.missing or found.path == LIVE:
                return f"{found.path}, line {found.line}: {found.reason}"
        if why := self._why_taken_out():
            return why
        try:
            self.git.check_log(self.state.seq, count_segments(self.root), whole=True)
        except HistoryDamaged as error:
            return str(error)
        return ""

    def _why_taken_out(self) -> str:
        """Name a file that a user's commit removed from the log; empty if none is missing."""
        return "".join(f"{path} is missing" for path in self.git.lost_files[:1])

    def _is_set_back(self) -> bool:
        """Return whether the user's Git commands restored an older log that is intact; that is not damage."""
        moved = self.git.anchor or recovery.last_recorded(self.repo, self.git.head).foreign
        return bool(moved) and not self.damage

    def _tell_unsound(self) -> None:
        told = (
            f"The history is damaged: {self.unsound.removesuffix('.')}. Changes are blocked until it is "
            "restored: by `agentx repair`, or from the commits before the next write."
        )
        self._seen_unsound = self._stamp()
        if told not in self.notes:
            self.notes.append(told)

    def _notice_damage(self, why: str) -> None:
        """Report damage that happened while this process was open."""
        self.unsound = why
        self._tell_unsound()
        _LOG.warning("%s: %s", self.root, self.notes[-1])

    def _stamp(self) -> object:
        """Return a value that changes whenever somebody may have healed the log."""
        try:
            info = nofollow.status(self.root / LIVE)
        except FileNotFoundError:
            return self.repo.head
        return self.repo.head, count_segments(self.root), info.st_ino, info.st_size, info.st_mtime_ns

    def refuse_damaged(self) -> None:
        """Refuse to hand on a damaged log, or to replace it with another one.

        Raises:
            HistoryDamaged: The log is damaged.
        """
        if self.unsound:
            why = self.unsound.removesuffix(".")
            raise HistoryDamaged(
                f"The history in {self.root} is damaged: {why}. Run `agentx repair`, then try again."
            )

    def require_sound(self) -> None:
        """Heal a damaged log from the commits.

        Raises:
            HistoryDamaged: The commits do not hold the damaged part.
            ReadOnly: The workspace is read-only.
        """
        self.require_writable()
        if self.unsound:
            with self.exclusive():
                if self.unsound:
                    self._restore_log()
                    self._writer.catch_up(self.damage.append, strict=True)
                    self._expect_pending()
                    self.recover()

    def _fold_from_snapshot(self) -> None:
        found = self._snapshots.load(State.decode)
        self._snapshot_seq = found[1].seq if found else 0
        if found is None:
            self._fold_from_zero()
        else:
            self._begin_with(found[0].apply_all(self.history.read(found[1], self.damage.append)))

    def _fold_from_zero(self) -> None:
        self.damage.clear()
        self._begin_with(fold(self.root, self._codec, self.damage.append))

    def _begin_with(self, state: State) -> None:
        self.state = state
        self._writer.start_at(state.seq, state.hash or GENESIS)

    def refold(self, on_damage: OnDamage, progress: Progress | None = None) -> State:
        """Drop the snapshots, fold the whole log again while others write, and use the resulting state.

        Args:
            on_damage: Called with each line that is not the expected event.
            progress: Called with the step, the amount done and the total.
        """
        self._snapshots.clear()
        known, told = self.state.seq, progress or (lambda *_: None)
        state = fold(self.root, self._codec, on_damage, lambda seq: told("fold", seq, max(known, seq)))
        with self.exclusive():
            if state.seq <= self.state.seq:
                state.apply_all(self.history.read(state.seq, told_already))
                self.state, self._snapshot_seq = state, 0
        return state.copy()

    def _restore_log(self) -> None:
        """Restore the log from the commits and from memory, verified by its hash chain, and fold it again."""
        begin, known = self.git.anchor or self.git.head, self._writer.known
        rebuilt = heal_log.rebuild(self.root, self._codec, head=begin, known=known, through=self.state.seq)
        heal_log.require_whole(self.root, rebuilt)
        make_cache(self.root)
        mended = list(heal_log.put_in_place(self.root, rebuilt, Aside(self.root)))
        for path in rebuilt.files:
            if segment_number(path):
                self.include(path)  # an earlier version may have committed it damaged
        self._fold_from_zero()
        self.unsound = self._why_unsound()
        if self.unsound:
            raise HistoryDamaged(
                f"The history in {self.root} could not be restored: {self.unsound} Run `agentx repair`."
            )
        said = "; ".join(f"{one.what} {one.how}" for one in mended)
        self.notes.append(
            f"The history was damaged or reset to an older version: {said}. The previous files are kept "
            f"in {CACHE}/repaired."
        )

    def _start_over(self) -> None:
        """Load everything again after a purge rewrote the commits, and publish the events recorded since."""
        known = self.state.seq
        self.repo.follow_packs()
        self._snapshots.clear()
        self.damage.clear()
        self._load()
        self._crash, self.git.index_unknown = None, True
        for event in self.history.read(known, told_already):
            self._bus.enqueue([(event.type, event), (ALL, event)])

    def _expect_pending(self) -> None:
        self.git.expect(self.history.read(self.git.seq, told_already))

    def recover(self) -> None:
        """Finish writes that a crash interrupted, and record what others did to the repository meanwhile."""
        with self.exclusive():
            if self.unsound:
                return
            note_whole(self.root, self._whole)
            self._adopt_foreign_commits()
            if self._unsettled:  # left by a process that died, or that closed while the disk was full
                self.git.include_leftovers()
            power_cut = self._crash is not None and self._crash.rebooted
            unsettled = (
                list(self.history.read(self._crash.seq, told_already)) if self._crash and power_cut else ()
            )
            self._crash = None
            if self._finish_writes(unsettled or self.git.pending, power_cut=power_cut):
                self.commit()

    def _finish_writes(self, events: Sequence[Event], *, power_cut: bool = False) -> bool:
        """Finish writes that may have been interrupted; return whether any of the events changed files."""
        unfinished = [event for event in events if changes_of(event)]
        if not unfinished:
            return False
        outcome = recovery.roll_forward(
            unfinished, self.git.seq, self.tracked, self.repo, self.artifacts, power_cut=power_cut
        )
        self._append([Draft(data=lost, actor="engine:recovery") for lost in outcome.reverted])
        self._unplaced = False
        self.record_outside_edits(outcome.edited, noticed="open")
        return True

    def close(self) -> None:
        """Release files and handles; call :meth:`flush` first."""
        self._closed = True
        self._writer.close()
        self._keys.close()
        self.repo.close()

    # --- the recorded state -----------------------------------------------------------------------

    @property
    def head(self) -> str:
        """The commit that the next one builds upon."""
        return self.git.head

    @property
    def tree(self) -> str:
        """The tree of the head; empty before the first commit."""
        return self.git.tree

    def tracked(self, path: str) -> TreeEntry | None:
        """Return the recorded entry of an artifact."""
        return self.git.tracked(path)

    def tracked_all(self, paths: Collection[str]) -> dict[str, TreeEntry | None]:
        """Return the recorded entries of some artifacts."""
        return self.git.tracked_all(paths)

    def manifest(self) -> dict[str, TreeEntry]:
        """Return every recorded artifact by path."""
        return self.git.manifest()

    def refresh(self) -> None:
        """Fold what other processes wrote, and publish it."""
        with self.exclusive():
            pass

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock with everything folded that others wrote; publish after the release."""
        if self._closed:
            raise WorkspaceClosed(f"The workspace {self.root} was closed; open it again.")
        outermost = False
        try:
            with self.lock.hold(), self.folding:
                outermost = self.lock.depth == 1
                if outermost:
                    self._held = False
                    self._catch_up()
                yield
        finally:
            # Deliver even if another thread holds the lock by now: on return, conclusions from the new events
            # exist.
            if outermost:
                self._bus.deliver()

    def _read_on(self) -> None:
        """Fold what others appended, without changing anything on disk."""
        if self._stamp() == self._seen_log:
            return
        self._seen_log = self._stamp()
        if self.git.moved:
            self.git.follow()
        self._fold(list(self.history.read(self.state.seq, told_already)))
        self._expect_pending()

    def _catch_up(self) -> None:
        self.repo.follow_packs()
        if self._reading:
            self._read_on()
            return
        self.git.require_branch()
        fast_forward.finish(self.root, self.repo, self.artifacts.root)
        moved = self.git.moved
        if purge_journal.finish(self.root, self.repo.git_dir) or (
            moved and not self.repo.has_commit(self.head)
        ):
            self._start_over()
        elif moved:
            self.git.follow()
        if self.unsound and self._stamp() != self._seen_unsound:
            self._load()
        if not self.unsound:
            self._follow_log(moved=moved)
        self.last_look = time.monotonic()

    def _follow_log(self, *, moved: bool) -> None:
        """Fold what others appended and finish their interrupted writes; on damage, report it and stop."""
        if self._writer.seq != self.state.seq:  # a signal arrived between the append and the fold
            self._writer.start_at(self.state.seq, self.state.hash or GENESIS)
        told = len(self.damage)
        try:
            fresh = self._writer.catch_up(self.damage.append, strict=True)
        except HistoryRewound as error:
            if not moved:
                self._notice_damage(str(error))
                return
            self._restore_log()
            fresh = self._writer.catch_up(self.damage.append, strict=True)
        self._fold(fresh)
        missing = [found.reason for found in self.damage[told:] if found.missing]
        changed = moved and bool(self._writer.unsound)
        if changed or any(isinstance(event.data, EventsPurged) for event in fresh):
            held = self._writer.known
            self._start_over()  # what was folded before includes what is purged
            self._writer.known = held if self.unsound else b""
            if self.unsound:
                return
            self._writer.catch_up(strict=True)
        elif why := self._writer.unsound or "".join(missing[:1]) or (moved and self._why_taken_out()):
            self._notice_damage(why)
            return
        elif moved:
            self._expect_pending()
            self._adopt_foreign_commits()
        else:
            self.git.add(fresh)
        # The process that announced these events keeps the lock until it has finished. Since the lock was
        # free, that process died or was interrupted midway.
        behind = [event for event in fresh if event.seq > self.git.seq]
        if (self._unplaced or any(map(changes_of, behind))) and not self.read_only:
            self._finish_writes(self.git.pending)

    def _adopt_foreign_commits(self) -> None:
        """Record what the user committed with Git as an event; the tree holds it already."""
        ours = recovery.last_recorded(self.repo, self.git.head)
        if not ours.foreign or self.read_only:
            return
        known = recovery.last_recorded(self.repo, self.git.anchor)
        since = known.commit if known.seq > ours.seq else ours.commit
        layout.check_commit(self.repo, self.head, since)
        base = self.repo.tree_of(since)
        self.notes += external_edits.submodules(self.repo, base, self.tree)
        said = [made for event in self.git.pending for made in changes_of(event)]
        made = external_edits.unsaid(external_edits.between(self.repo, base, self.tree), said)
        if base and made:
            self._append(external_edits.edits(made, noticed="git", key=f"git:{self.git.head}"))

    # --- recording --------------------------------------------------------------------------------

    def record(self, drafts: Sequence[Draft]) -> list[Event]:
        """Append events durably, without changing files. They become part of the next commit.

        A draft whose key is already in the history is not appended; the event with that key is returned for
        it.
        """
        with self.exclusive():
            return self._append(drafts)

    def body(self, text: str, whole_bytes: int = WHOLE_BYTES) -> Body:
        """Return a text as an event stores it: redacted, and in a blob if longer than ``whole_bytes``."""
        text = clean(text)
        if not self.blobs.is_long(text, whole_bytes):
            return Body(text)
        with self.exclusive():
            self._hold_git()
            # The blob belongs to the next commit, whatever happens to its event.
            self.include(blob_path(blob_id(text.encode())))
            return self.blobs.body(text, whole_bytes)

    def _append(self, drafts: Sequence[Draft]) -> list[Event]:
        self.require_sound()
        keys = [draft.key for draft in drafts if draft.key]
        known = self._keys.find(keys) if keys else {}
        fresh: dict[str, Draft] = {}
        for place, draft in enumerate(drafts):
            if draft.key not in known:
                fresh.setdefault(draft.key or f" {place}", clean_draft(draft))
        if fresh:
            self._hold_git()
            self.raise_format()
            events = dict(zip(fresh, self._append_lines(list(fresh.values())), strict=True))
            self._unplaced = any(map(changes_of, events.values()))
            self._fold(list(events.values()))
            self.git.add(events.values())
            self.last_write = time.monotonic()
            known |= events
        return [known[draft.key or f" {place}"] for place, draft in enumerate(drafts)]

    def raise_format(self) -> None:
        """Record the present format, if the history has an earlier one; every append does so first.

        A version that does not know the present format then opens the workspace read-only. The caller holds
        the lock.
        """
        if 0 < self.state.format < layout.FORMAT:
            self._hold_git()
            state = self.state
            present = WorkspaceCreated(title=state.title, format=layout.FORMAT, artifacts=state.artifacts)
            events = self._append_lines([Draft(data=present, actor="engine:workspace")])
            self._fold(events)
            self.git.add(events)

    def _hold_git(self) -> None:
        """Begin a change: until :meth:`flush`, the user's Git commands wait for the index lock."""
        self.require_sound()
        if not self._held:
            self.git.hold()
            self._held = True

    def _append_lines(self, drafts: Sequence[Draft]) -> list[Event]:
        try:
            return self._writer.append(drafts)
        except WriterConflict:  # whoever wrote to the file first wins; our lines are set aside
            fresh = self._writer.catch_up(self.damage.append)
            self._fold(fresh)
            self.git.add(fresh)
            raise

    def _fold(self, events: Sequence[Event]) -> None:
        for event in events:
            changes = event.data.changes if isinstance(event.data, Concluded) else ()
            touched = dict.fromkeys(made.item.id if isinstance(made, Add) else made.id for made in changes)
            before = {item: self.state.items.get(item) for item in touched}
            self.state.apply(event)
            self._bus.enqueue([(event.type, event), (ALL, event)])
            self._bus.enqueue(
                (MEMORY_CHANGED, MemoryChanged(self.state.items[item], before[item], event))
                for item in touched
                if item in self.state.items
            )

    # --- changing files ---------------------------------------------------------------------------

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
            self._hold_git()
            tracked = self.record_outside_edits(list(contents), noticed="write")
            beside = (check and check()) or ()
            staged = Staged(contents, tracked, self.repo, self.artifacts)
            try:
                drafts = (
                    Draft(data=payload(chunk), actor=actor, run=run, cause=cause)
                    for chunk in external_edits.chunks(staged.changes)
                )
                events = self._append([*drafts, *beside])
            except BaseException:
                staged.discard()
                raise
            failed = staged.place()
            self._unplaced = False
            lost = recovery.reverted(events, failed)
            self._append([Draft(data=one, actor="engine:recovery") for one in lost])
            if staged.changes:  # a call that changed nothing becomes part of the next commit
                self._commit_soon(actor)
        if failed:
            raise WriteFailed(" ".join(f"{path!r} was not written: {why}." for path, why in failed.items()))
        return events

    def record_outside_edits(self, paths: Sequence[str], *, noticed: str) -> dict[str, TreeEntry | None]:
        """Record and commit the user's edits: working files that differ from the record.

        Returns:
            The recorded entries of the paths afterwards.
        """
        tracked = self.tracked_all(paths)
        if self._record_staged(tracked, {}):
            tracked = self.tracked_all(paths)
        found = [
            change(path, before, after)
            for path, before in tracked.items()
            if (after := self.artifacts.identify(path)) != before
        ]
        found += external_edits.displaced(self.repo, self.tree, paths)
        self.record_changes(found, noticed=noticed)
        return self.tracked_all(paths) if found else tracked

    def record_changes(self, changes: Sequence[FileChange], *, noticed: str) -> None:
        """Record changes that others made to the working files, with their contents, as one commit."""
        if not changes:
            return
        with self.exclusive():
            self._hold_git()
            found: list[str] = []
            try:
                kept = external_edits.secured(
                    self.repo,
                    self.artifacts,
                    changes,
                    lambda path, data: found.extend(secrets_in(path, text_of(data))),
                )
            except OSError as error:
                raise WriteFailed(
                    f"Edits in {self.artifacts.root} could not be recorded: {error.strerror}."
                ) from error
            self._record_edits(external_edits.edits(kept, noticed=noticed) if kept else [])
            self.notes += note_on(found)

    def _record_edits(self, drafts: Sequence[Draft]) -> None:
        """Append and commit edits that are in the working files already."""
        self._append(drafts)
        self._unplaced = False
        self._commit_soon("watch")

    def scan(self, *, noticed: str = "scan") -> list[FileChange]:
        """Check every working file, and record what the user and their Git commands changed.

        Nothing is recorded while the log is damaged.
        """
        with self.exclusive():
            if self.unsound:
                return []
            self._record_stashes()
            if unfinished := external_edits.unfinished(self.repo.git_dir):
                self.notes += [note for note in unfinished if note not in self.notes]
                return []  # committing the files now would mark the conflict as resolved
            known = self.manifest()
            found = self._without_clashes(self.artifacts.scan(known), known)
            self.notes += [note for note in found.notes if note not in self.notes]
            edited = {made.path: made.after for made in found.changes}
            self._record_staged({path: known.get(path) for path in edited}, edited)
            tracked = self.tracked_all([one.path for one in found.changes])
            before = {path: entry.oid if entry else "" for path, entry in tracked.items()}
            made = [msgspec.structs.replace(one, before=before[one.path]) for one in found.changes]
            self.record_changes(made, noticed=noticed)
            self._commit_config()
            return list(found.changes)

    def _without_clashes(self, found: Scan, known: Mapping[str, TreeEntry]) -> Scan:
        """Note files whose names differ too little.

        Ignore changes to names that this file system treats as one file.
        """
        changes, notes = list(found.changes), list(found.notes)
        added = [made.path for made in changes if made.after]
        for clash in external_edits.clashes({*known, *added}, added):
            notes.append(external_edits.told(clash))
            if self.artifacts.are_one(clash):
                changes = [made for made in changes if made.path not in clash]
        return Scan(tuple(changes), tuple(notes))

    def _commit_config(self) -> None:
        """Commit ``agentx.toml`` as it is if the user edited it by hand."""
        if self.git.config_edited:
            self.include(CONFIG)
            self.commit(actor="" if self.git.pending else "watch")

    def _record_staged(self, known: Mapping[str, TreeEntry | None], edited: Mapping[str, str]) -> bool:
        """Record what was staged with `git add` and edited again since.

        Runs before the edit is recorded, for the staged content exists nowhere else.
        """
        found = external_edits.staged(self.repo, self.git.staged(known), known)
        staged = [made for made in found if made.after != edited.get(made.path)]
        self.record_changes(staged, noticed="index")
        return bool(staged)

    def _record_stashes(self) -> None:
        """Record what each `git stash` took out of the working files, and its removal, once."""
        for stash in self.repo.stashes():
            if self._keys.find([f"stash:{stash}:0"]):
                continue
            steps = external_edits.stashed(self.repo, stash)
            made = [one for step in steps for one in step]
            steps.append(external_edits.taken_back(made, self.tracked_all([one.path for one in made])))
            for number, step in enumerate(step for step in steps if step):
                first = f"stash:{stash}" if number == 0 else f"stash:{stash}:{number}"
                self._record_edits(external_edits.edits(step, noticed="stash", key=first))

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

    def include(self, path: str) -> None:
        """Add a file beside the log (``agentx.toml``) to the next commit."""
        self.git.include(path)

    def commit(self, *, actor: str = "") -> None:
        """Commit everything that was recorded since the last commit.

        Args:
            actor: Who acts; by default the actor of the most significant event.
        """
        with self.exclusive():
            self._hold_git()
            try:
                self.git.commit(self.state.seq, self._writer.segments, actor=actor)
            except WriterConflict:
                self.git.follow()
                self._expect_pending()
                self._adopt_foreign_commits()
                self.git.commit(self.state.seq, self._writer.segments, actor=actor)

    def commit_healed(self) -> None:
        """Commit the log's files if they are intact and differ from the last commit."""
        with self.exclusive():
            if self.unsound or self.git.pending:
                return  # the next open finishes and commits what a crash interrupted
            for path in self.git.differing_segments():
                self.include(path)
            if self.git.due:
                self.commit(actor="engine:repair")
                self.git.settle()

    def _commit_soon(self, actor: str) -> None:
        """Commit what is durable already; if that fails now, the next commit includes it."""
        if self._bulk and len(self.git.pending) < BULK_EVENTS:
            return
        try:
            self.commit(actor=actor)
        except (RefLocked, NotCommitted, HistoryDamaged) as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))

    def flush(self) -> None:
        """End a turn: commit what is pending, sync what was written, and release Git's index lock."""
        if self.read_only:
            return
        if self.git.unsettled:
            self.git.sync()  # most of the syncing happens before the lock is taken
        with self.exclusive():
            if self.unsound:
                return
            self._commit_config()
            if self.git.due:
                self.commit()
            self.git.settle()
            due = self.state.seq - self._snapshot_seq >= SNAPSHOT_EVENTS and not self.damage
            state = self.state.copy() if due else None
        if state is not None:
            self._snapshots.save(state.seq, state.hash, state.dump())
            self._snapshot_seq = state.seq

    @property
    def unsettled(self) -> bool:
        """Whether something waits for :meth:`flush`."""
        return self.git.unsettled
