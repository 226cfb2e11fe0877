"""The write path: lock → catch up → append → fold → release → publish, and one commit for each successful write.

An event exists from the moment that its line is synced. Everything after that (the working file's name, the tree, the
ref, the index file) can be made again from it, and is, at the next open after a crash (:mod:`agentx.recovery`).
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agentx import commit_message, outside, recovery
from agentx.bus import ALL, MEMORY_CHANGED, Bus, MemoryChanged
from agentx.outside import ARTIFACTS
from agentx.staging import Content, Staged, WriteFailed
from agentx.storage.artifacts import Artifacts, change, entry_after
from agentx.storage.blobs import BlobStore, blob_path, named_blobs
from agentx.storage.codec import GENESIS, Codec
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events import ArtifactChanged, Body, Draft, Event, FileChange, Payload, changes_of
from agentx.storage.git.index_file import IndexFile
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repair import repair
from agentx.storage.git.repository import BRANCH, REGULAR, GitRepository, TreeEntry, WriterConflict
from agentx.storage.history import (
    LIVE,
    ORPHANS,
    Damage,
    History,
    HistoryRewound,
    HistoryWriter,
    count_segments,
    segment_path,
    told_already,
)
from agentx.storage.ignore import IgnoreRules
from agentx.storage.lock import FileLock
from agentx.storage.redaction import clean, clean_struct
from agentx.synthesis.conclusions import Add, Concluded
from agentx.synthesis.state import State

CONFIG = "agentx.toml"

CHANGES_BYTES = 9_000
"""File changes in one event take at most so much of its line."""

LOOKUPS = 16
"""So many paths are looked up in the tree one by one; of more, the whole tree is walked once."""

PayloadFor = Callable[[tuple[FileChange, ...]], Payload]
"""Makes an event's payload from the changes that it announces."""


class BranchLeft(AgentXError):
    """Git is on another branch than the one that holds the record."""


class WorkspaceClosed(UsageError):
    """The workspace was closed; open it again."""


class ReadOnly(AgentXError):
    """The workspace was written by a newer version, and opens for reading only."""


class WritePath:
    """Owns the log, the repository and the working files of one workspace, and every change to them.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        artifacts: The working files.
        bus: Gets each event once it is durable.

    Attributes:
        state: The fold of everything that this process has read; call :meth:`refresh` for what others wrote.
        damage: What was found wrong with the log.
    """

    def __init__(
        self, root: Path, codec: Codec, artifacts: Artifacts, bus: Bus, *, outer: bool = False
    ) -> None:
        self.root = root
        self.artifacts = artifacts
        self.notes: list[str] = [note] if (note := repair(root)) else []
        self.repo = GitRepository(root)
        self.blobs = BlobStore(root)
        self.history = History(root, codec)
        self.state = State()
        self.damage: list[Damage] = []
        self.last_write = 0.0
        self._bus = bus
        self.lock = FileLock(self.repo.git_dir / "agentx.lock")
        self._writer = HistoryWriter(root, codec)
        self._index = IndexFile(self.repo.git_dir, outer=outer)
        self._keys: dict[str, Event] | None = None
        self._head = ""
        self._committed_seq = 0
        self._committed_segments = 0
        self._pending: list[Event] = []
        self._behind: dict[str, TreeEntry | None] = {}
        self._index_unknown = False
        self._closed = False
        self._loose_files: set[str] = set()
        self._owed: dict[str, TreeEntry | None] = {}
        self._holding = False
        self._anchor = ""

    read_only = ""

    def make_read_only(self, reason: str) -> None:
        """Refuse every write from now on, with this sentence."""
        self.read_only = reason
        self.notes.append(reason)

    # --- opening and closing -------------------------------------------------------------------------------------

    def load(self) -> None:
        """Fold the whole log; then :meth:`recover` what a crash cut off, and this object can be written through."""
        with self.lock.hold():  # a commit between two looks would pass for a lost one
            self._load()

    def _load(self) -> None:
        self._require_branch()
        head = self.repo.head
        lost = recovery.lost_commit(self.repo, head)
        self._index_unknown = self._index.held or bool(lost)
        self._take_head(head, lost)
        self._fold_from_zero()
        if self.state.seq < recovery.last_recorded(self.repo, self._anchor or self._head).seq:
            self._restore_log()
        elif self.damage and recovery.restore_segments(self.root, self.repo, self._anchor or self._head):
            self.notes.append(
                "Sealed parts of the history were damaged and were restored from the last commit."
            )
            self._fold_from_zero()
        self._pending = list(self.history.read(self._committed_seq, told_already))

    def _fold_from_zero(self) -> None:
        self.damage.clear()
        self.state = State().apply_all(self.history.read(on_damage=self.damage.append))
        self._writer.start_at(self.state.seq, self.state.hash or GENESIS)

    def _restore_log(self) -> None:
        """Put back what the commits hold of the log, and fold it anew."""
        known, self._keys = self.state.seq, None
        recovery.restore_log(self.root, self.repo, self._anchor or self._head)
        self._fold_from_zero()
        self.notes.append("The history was shorter than the last commit's and was restored from it.")
        if self.state.seq < known:
            self.notes.append(f"Events {self.state.seq + 1} to {known} stood in no commit yet and are lost.")

    def _require_branch(self) -> None:
        left = self.repo.branch
        if left == BRANCH:
            return
        # In the middle of the engine's work Git is kept off the files, so that a new branch changed nothing but HEAD.
        if self._index.held and self.repo.go_back():
            self.notes.append(
                f"Git had gone to {left!r}; it is back on main, and the new branch stays where it is."
            )
            return
        self._index.release()  # or `git switch` could not go back
        self._index_unknown = True
        raise BranchLeft(
            f"In {self.root} Git is on {left.removeprefix('refs/heads/')!r}, but the record is kept on the branch main. "
            "Go back with `git switch main` (where a rebase is going on, `git rebase --abort`), then try again."
        )

    def recover(self) -> None:
        """Finish writes that a crash cut off, and record what others did to the repository meanwhile."""
        with self.exclusive():
            self._adopt_foreign_commits()
            unfinished = [event for event in self._pending if changes_of(event)]
            if not unfinished:
                return
            outcome = recovery.roll_forward(unfinished, self.repo, self.artifacts)
            if outcome.reverted:
                self._append([Draft(data=lost, actor="engine:recovery") for lost in outcome.reverted])
            self.commit(outcome.changes)
            self.record_outside_edits(outcome.edited, noticed="open")

    def close(self) -> None:
        """Release files and handles; :meth:`flush` first."""
        self._closed = True
        self._writer.close()
        self.repo.close()

    # --- what stands ---------------------------------------------------------------------------------------------

    @property
    def head(self) -> str:
        """The commit that the next one builds upon."""
        return self._head

    @property
    def tree(self) -> str:
        """Its tree; empty before the first commit."""
        return self.repo.tree_of(self._head)

    def tracked(self, path: str) -> TreeEntry | None:
        """What the record says of an artifact."""
        return self.repo.entry(self.tree, f"{ARTIFACTS}/{path}")

    def tracked_all(self, paths: Collection[str]) -> dict[str, TreeEntry | None]:
        """What the record says of some artifacts; of many, by one walk, for a look-up reads its whole directory."""
        if len(paths) <= LOOKUPS:
            return {path: self.tracked(path) for path in paths}
        known = self.manifest()
        return {path: known.get(path) for path in paths}

    def manifest(self) -> dict[str, TreeEntry]:
        """Every artifact of the record, by path."""
        return dict(self.repo.files(self.repo.subtree(self.tree, ARTIFACTS)))

    def working_files(self) -> list[tuple[str, int]]:
        """Path and size in bytes of every working file that is not ignored."""
        rules = IgnoreRules(self.artifacts.root)
        return [
            (path, info.st_size)
            for path, info in self.artifacts.walk(
                lambda name, directory: rules.ignores(name, directory=directory)
            )
        ]

    def refresh(self) -> None:
        """Fold what other processes wrote, and publish it."""
        with self.exclusive():
            pass

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock, with everything that others wrote folded in; publish after the release."""
        if self._closed:
            raise WorkspaceClosed(f"The workspace {self.root} was closed; open it again.")
        outermost = False
        try:
            with self.lock.hold():
                outermost = self.lock.depth == 1
                if outermost:
                    self._catch_up()
                yield
        finally:
            # Whether or not another thread holds the lock by now: what was said is concluded on return.
            if outermost:
                self._bus.deliver()

    def _catch_up(self) -> None:
        self._require_branch()
        head = self.repo.head
        moved = head != self._head
        if moved:
            self._follow(head)
        try:
            fresh = self._writer.catch_up(self.damage.append)
        except HistoryRewound:
            self._restore_log()
            fresh = self._writer.catch_up(self.damage.append)
        self._fold(fresh)
        if moved:
            self._pending = list(self.history.read(self._committed_seq, told_already))
            self._adopt_foreign_commits()
        else:
            self._pending += fresh

    def _follow(self, head: str) -> None:
        """The branch was moved by another process: the engine elsewhere, or a person's Git."""
        before = self.tree
        self._take_head(head, self._head)
        self._behind |= {path: after for path, (_, after) in self.repo.diff(before, self.tree).items()}

    def _take_head(self, head: str, known: str) -> None:
        """Build upon a commit.

        Args:
            head: What the branch names.
            known: The engine's commit that it named before; empty for none.
        """
        self._anchor = known
        if known and (not head or self.repo.descends(known, head)):
            head = self._set_forward(known, head)
            self._index_unknown = True
        self._head = head
        self._committed_seq = recovery.last_recorded(self.repo, head).seq
        self._committed_segments = self._segments_in(self.tree)

    def _set_forward(self, commit: str, head: str) -> str:
        """Undo ``git reset``: a branch that was set back is moved forward again, so that no commit is lost."""
        self.repo.move_ref(commit, head, "agentx: the branch was set back; no history is lost")
        self.notes.append(
            "Git had set the branch back; it was moved forward again, and the files are taken as edits."
        )
        return commit

    def _adopt_foreign_commits(self) -> None:
        """What a person committed with Git is recorded as an event; it stands in the tree already."""
        ours = recovery.last_recorded(self.repo, self._head)
        if not ours.foreign or self.read_only:
            return
        known = recovery.last_recorded(self.repo, self._anchor)
        base = self.repo.tree_of(known.commit if known.seq > ours.seq else ours.commit)
        said = [made for event in self._pending for made in changes_of(event)]
        made = outside.unsaid(outside.between(self.repo, base, self.tree), said)
        if base and made:
            self._append(_edits(made, noticed="git", key=f"git:{self._head}"))

    def _segments_in(self, tree: str) -> int:
        """How many sealed segments a commit's tree holds."""
        paths = (path for path, _ in self.repo.files(self.repo.subtree(tree, "history")))
        return sum(1 for path in paths if path[:3].isdigit())

    # --- recording -----------------------------------------------------------------------------------------------

    def record(self, drafts: Sequence[Draft]) -> list[Event]:
        """Append events durably, without a change to files. They ride in the next commit.

        A draft whose key stands in the history already is not appended; the event of that key is returned for it.
        """
        with self.exclusive():
            return self._append(drafts)

    def body(self, text: str) -> Body:
        """A text as an event holds it: redacted, and in a blob where it is long."""
        if self.read_only:
            raise ReadOnly(self.read_only)
        return self.blobs.body(clean(text))

    def _append(self, drafts: Sequence[Draft]) -> list[Event]:
        if self.read_only:
            raise ReadOnly(self.read_only)
        known = {draft.key: found for draft in drafts if draft.key and (found := self._keyed(draft.key))}
        fresh: dict[str, Draft] = {}
        for place, draft in enumerate(drafts):
            if draft.key not in known:
                fresh.setdefault(draft.key or f" {place}", _cleaned(draft))
        if fresh:
            self._hold_index()
            events = dict(zip(fresh, self._writer.append(list(fresh.values())), strict=True))
            self._fold(list(events.values()))
            self._pending += events.values()
            self.last_write = time.monotonic()
            known |= events
        return [known[draft.key or f" {place}"] for place, draft in enumerate(drafts)]

    def _hold_index(self) -> None:
        """The first step of every change: from here until :meth:`flush` a person's Git waits."""
        if self.read_only:
            raise ReadOnly(self.read_only)
        self._index.hold()
        self._holding = True

    def _keyed(self, key: str) -> Event | None:
        if self._keys is None:
            self._keys = {
                event.key: event for event in self.history.read(on_damage=told_already) if event.key
            }
        return self._keys.get(key)

    def _fold(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event.data, Concluded):
                touched = dict.fromkeys(
                    made.item.id if isinstance(made, Add) else made.id for made in event.data.changes
                )
                before = {item: self.state.items.get(item) for item in touched}
                self.state.apply(event)
                self._bus.enqueue([(event.type, event), (ALL, event)])
                self._bus.enqueue(
                    (MEMORY_CHANGED, MemoryChanged(self.state.items[item], before[item], event))
                    for item in touched
                    if item in self.state.items
                )
            else:
                self.state.apply(event)
                self._bus.enqueue([(event.type, event), (ALL, event)])
            if event.key and self._keys is not None:
                self._keys[event.key] = event

    # --- changing files ------------------------------------------------------------------------------------------

    def write(
        self,
        contents: Mapping[str, Content | None],
        payload: PayloadFor,
        *,
        actor: str,
        run: str = "",
        cause: int = 0,
    ) -> list[Event]:
        """Change artifacts: one event (several where the changes are many), the files, one commit.

        What a person did to these files meanwhile is recorded and committed first.

        Args:
            contents: New content by checked path; ``None`` removes the file.
            payload: Makes the event's payload from the changes.
            actor: Who does it.
            run: Run that it belongs to.
            cause: Event that led to it.

        Raises:
            WriteFailed: The disk refused; nothing was recorded and the files are as they were.
        """
        with self.exclusive():
            self._hold_index()
            self.record_outside_edits(list(contents), noticed="write")
            tracked = self.tracked_all(contents)
            staged = Staged(contents, tracked, self.repo, self.artifacts)
            try:
                events = self._append(
                    [
                        Draft(data=payload(chunk), actor=actor, run=run, cause=cause)
                        for chunk in outside.chunks(staged.changes, CHANGES_BYTES)
                    ]
                )
            except BaseException:
                staged.discard()
                raise
            failed = staged.place()
            lost = recovery.reverted(events, failed)
            self._append([Draft(data=one, actor="engine:recovery") for one in lost])
            if staged.changes:  # a call that changed nothing rides in the next commit
                self.commit([made for made in staged.changes if made.path not in failed], actor=actor)
        if failed:
            raise WriteFailed(" ".join(f"{path!r} was not written: {why}." for path, why in failed.items()))
        return events

    def record_outside_edits(self, paths: Sequence[str], *, noticed: str) -> None:
        """Where a working file is not what the record says, a person edited it: record and commit that."""
        tracked = self.tracked_all(paths)
        self._record_staged(tracked, {})
        tracked = self.tracked_all(paths)  # what was staged may be on record now
        found = [
            change(path, before, after)
            for path, before in tracked.items()
            if (after := self.artifacts.identify(path)) != before
        ]
        found += outside.displaced(self.repo, self.tree, paths)
        self.record_changes(found, noticed=noticed)

    def record_changes(self, changes: Sequence[FileChange], *, noticed: str) -> None:
        """Record changes that others made to the working files, with their contents, as one commit."""
        if not changes:
            return
        with self.exclusive():
            self._hold_index()
            try:
                kept = outside.secured(self.repo, self.artifacts, changes)
            except OSError as error:
                raise WriteFailed(
                    f"Edits in {self.artifacts.root} could not be recorded: {error.strerror}."
                ) from error
            self._append(_edits(kept, noticed=noticed) if kept else [])
            self.commit(kept, actor="watch")

    def scan(self, *, noticed: str = "scan") -> list[FileChange]:
        """Look at every working file, and record what people and their Git commands did to them."""
        with self.exclusive():
            self._record_stashes()
            known = self.manifest()
            found = self.artifacts.scan(known)
            self.notes += [note for note in found.notes if note not in self.notes]
            edited = {made.path: made.after for made in found.changes}
            self._record_staged({path: known.get(path) for path in edited}, edited)
            tracked = self.tracked_all([one.path for one in found.changes])
            made = [msgspec.structs.replace(one, before=_oid(tracked[one.path])) for one in found.changes]
            self.record_changes(made, noticed=noticed)
            self._commit_config()
            return list(found.changes)

    def _commit_config(self) -> None:
        """A person edits ``agentx.toml`` by hand; it belongs to the record as it is."""
        path, entry = self.root / CONFIG, self.repo.entry(self.tree, CONFIG)
        if path.is_file() and (entry is None or blob_id(path.read_bytes()) != entry.oid):
            self.include(CONFIG)
            self.commit(actor="" if self._pending else "watch")

    def _record_staged(self, known: Mapping[str, TreeEntry | None], edited: Mapping[str, str]) -> None:
        """What was staged with `git add` and edited again exists nowhere else: record it before the edit."""
        if self._index_unknown or not (known and self._index.touched):
            return
        found = outside.staged(self.repo, self._index.entries(), known, self._behind)
        staged = [made for made in found if made.after != edited.get(made.path)]
        self.record_changes(staged, noticed="index")

    def _record_stashes(self) -> None:
        """What `git stash` took out of the working files is put on record, and taken back, once."""
        for stash in self.repo.stashes():
            if self._keyed(f"stash:{stash}:0"):
                continue
            steps = outside.stashed(self.repo, stash)
            made = [one for step in steps for one in step]
            steps.append(outside.taken_back(made, self.tracked_all([one.path for one in made])))
            for number, step in enumerate(step for step in steps if step):
                first = f"stash:{stash}" if number == 0 else f"stash:{stash}:{number}"
                self._append(_edits(step, noticed="stash", key=first))
                self.commit(step, actor="watch")

    # --- committing ----------------------------------------------------------------------------------------------

    def include(self, path: str) -> None:
        """A file beside the log (``agentx.toml``) is to be in the next commit."""
        self._loose_files.add(path)

    def commit(self, changes: Sequence[FileChange] = (), *, actor: str = "") -> None:
        """Commit some changes to artifacts and everything that was recorded since the last commit."""
        with self.exclusive():
            self._hold_index()
            self._owed |= {f"{ARTIFACTS}/{made.path}": entry_after(made) for made in changes}
            try:
                self._commit_once(actor)
            except WriterConflict:
                self._follow(self.repo.head)
                self._adopt_foreign_commits()
                self._commit_once(actor)

    def _commit_once(self, actor: str) -> None:
        """One try; a commit that the branch was moved away from is made anew by :meth:`commit`."""
        entries = self._owed | self._log_entries()
        tree = self.repo.update_tree(self.tree, entries)
        if tree == self.tree and self._head:
            self._loose_files.clear()
            return
        message, author = commit_message.compose(self._pending, actor=actor, files=sorted(self._loose_files))
        commit = self.repo.commit(tree, self._head, message, author)
        self.repo.move_ref(commit, self._head, f"agentx: {message.partition(chr(10))[0]}")
        self._head = commit
        self._behind |= entries
        self._committed_seq = self.state.seq
        self._committed_segments = count_segments(self.root)
        self._pending, self._owed = [], {}
        self._loose_files.clear()

    def _log_entries(self) -> dict[str, TreeEntry | None]:
        """The log, the segments sealed since the last commit, and whatever else lies beside it."""
        segments = count_segments(self.root)
        names = [LIVE]
        names += [segment_path(number) for number in range(self._committed_segments + 1, segments + 1)]
        names += sorted({blob_path(oid) for event in self._pending for oid in named_blobs(event.data)})
        names += sorted(self._loose_files)
        names += [ORPHANS] if (self.root / ORPHANS).exists() else []
        return {
            name: TreeEntry(self.repo.write_blob_unsynced((self.root / name).read_bytes()), REGULAR)
            for name in names
        }

    def _log_differs(self) -> bool:
        """Whether the log's files are not as committed without an event: a seal or a torn line that a crash left."""
        if count_segments(self.root) != self._committed_segments:
            return True
        for name in (LIVE, ORPHANS):
            entry, path = self.repo.entry(self.tree, name), self.root / name
            if (blob_id(path.read_bytes()) if path.exists() else "") != _oid(entry):
                return True
        return False

    def flush(self) -> None:
        """Commit what is pending, bring the index file up, and let git commands in: the end of a turn."""
        if self.read_only:
            return
        with self.exclusive():
            self._commit_config()
            if self._pending or self._loose_files or self._log_differs():
                self.commit()
            if self._behind or self._index_unknown or self._index.held:
                self._index.refresh(self._index_changes(), self.root)
                self._behind, self._index_unknown, self._holding = {}, False, False

    def _index_changes(self) -> dict[str, TreeEntry | None]:
        if not self._index_unknown:
            return self._behind
        wanted, held = dict(self.repo.files(self.tree)), self._index.entries()
        gone: dict[str, TreeEntry | None] = dict.fromkeys(held.keys() - wanted.keys())
        return gone | {path: entry for path, entry in wanted.items() if held.get(path) != entry}

    @property
    def unsettled(self) -> bool:
        """Whether something waits for :meth:`flush`."""
        return bool(self._pending or self._behind or self._loose_files or self._holding)


def _edits(changes: Sequence[FileChange], *, noticed: str, key: str = "") -> list[Draft]:
    """What others did, as events; with a key each is recorded once."""
    return [
        Draft(
            data=ArtifactChanged(changes=chunk, noticed=noticed),
            actor="watch",
            key=f"{key}:{n}" if key else "",
        )
        for n, chunk in enumerate(outside.chunks(changes, CHANGES_BYTES))
    ]


def _cleaned(draft: Draft) -> Draft:
    return msgspec.structs.replace(draft, data=clean_struct(draft.data), actor=clean(draft.actor))


def _oid(entry: TreeEntry | None) -> str:
    return entry.oid if entry else ""
