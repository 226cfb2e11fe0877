"""Commits what is recorded: updates the tree along changed paths, the one ref and the index file.

What a commit has to contain is not stored separately: it follows from the events that are in no commit yet.
If a commit fails (a full disk, a git command, a crash), the next one includes its changes. All of this runs
under the workspace's lock.
"""

import contextlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from agentx.config import FILE as CONFIG
from agentx.core.layout import ARTIFACTS
from agentx.recording import commit_message, recovery
from agentx.recording.log_check import LogCheck
from agentx.storage.artifacts import entry_after
from agentx.storage.errors import AgentXError, DiskRefused
from agentx.storage.events.codec import Codec, DamagedLine
from agentx.storage.events.types import Event, WriteReverted, changes_of
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, sync_directory, sync_file
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.index_file import IndexFile
from agentx.storage.git.objects import ObjectDamaged, blob_id
from agentx.storage.git.recovery.git_repair import note_settled
from agentx.storage.git.repository import REGULAR, GitRepository
from agentx.storage.log.blobs import FOLDER as BLOBS
from agentx.storage.log.blobs import BlobStore, blob_path, named_blobs
from agentx.storage.log.committed_log import CommittedLog
from agentx.storage.log.history import (
    LIVE,
    ORPHANS,
    SEGMENTS,
    HistoryDamaged,
    count_segments,
    segment_path,
)

LOOKUPS = 16
"""Look up at most this number of paths in the tree one by one; for more, walk the whole tree once."""


class BranchLeft(AgentXError):
    """Git is on a branch other than the one that holds the record."""


class NotSynced(DiskRefused):
    """What was written could not be made durable: the disk fails."""


class _Written(msgspec.Struct, frozen=True):
    """The head as the branch names it; later commits are in memory alone."""

    head: str = ""
    seq: int = 0
    segments: int = 0


class Committer:
    """The Git side of one workspace.

    Args:
        root: The workspace's directory.
        artifacts: Directory of the working files.
        notes: Receives the messages for the user.
        codec: Knows the event types.
        outer: Whether the artifacts lie outside the working directory.
        reading: Whether nothing may be changed: no ref, no lock, no index file.

    Attributes:
        head: The commit that the next one builds upon.
        seq: The last event that the head holds.
        log_check: Compares the log's files with the last commit.
        pending: The events after ``seq``, in order.
        anchor: The engine's commit at which the branch was before the user's Git moved it; empty if it was
            not moved.
    """

    def __init__(
        self,
        root: Path,
        artifacts: Path,
        notes: list[str],
        codec: Codec,
        *,
        outer: bool,
        reading: bool = False,
    ) -> None:
        self.repo = GitRepository(root)
        self.index = IndexFile(self.repo.git_dir, outer=outer)
        self.head = ""
        self.seq = 0
        self.pending: list[Event] = []
        self.anchor = ""
        self.index_unknown = False
        self._root = root
        self._reading = reading
        self._artifacts = artifacts
        self._blobs = BlobStore(root)
        self._codec = codec
        self.log_check = LogCheck(root, self.repo, codec)
        self._notes = notes
        self._owed: dict[str, TreeEntry | None] = {}
        self._segments = 0
        self._behind: dict[str, TreeEntry | None] = {}
        self._files: set[str] = set()
        self._holding = False
        self._unsynced: deque[str] = deque()
        self._written = _Written()

    # --- the branch -------------------------------------------------------------------------------

    def require_branch(self) -> None:
        """Refuse to work while Git is on another branch.

        Raises:
            BranchLeft: Git is on another branch.
        """
        left = self.repo.branch
        if left == BRANCH:
            return
        # During the engine's work the index lock kept Git off the files, so a switch to a new branch changed
        # nothing but HEAD.
        if not self._reading and self.index.held and self.repo.go_back():
            self._notes.append(
                f"Git had switched to {left!r}; it is back on main, and the new branch was kept."
            )
            return
        if not self._reading:
            self.index.release()  # otherwise `git switch` could not go back
        self.index_unknown = True
        raise BranchLeft(
            f"In {self._root} Git is on {left.removeprefix('refs/heads/')!r}, but the history is kept on "
            "the branch main. Switch back with `git switch main` (during a rebase, "
            "`git rebase --abort`), then try again."
        )

    def open(self) -> None:
        """Find the commit to build upon.

        It is the branch's commit, or the engine's commit that the branch was moved away from.
        """
        head = self.repo.head
        lost = recovery.lost_commit(self.repo, head)
        self._take_head(head, lost)
        if not self._reading:
            self.index_unknown |= bool(lost) or self.index.held or self.index.discard_damaged(self.tree)

    def follow(self) -> None:
        """Follow the branch after another process moved it: another engine, or the user's Git."""
        before = self.tree
        self._take_head(self.repo.head, self.head)
        self._behind |= {path: after for path, (_, after) in self.repo.diff(before, self.tree).items()}

    @property
    def moved(self) -> bool:
        """Whether another process moved the branch."""
        return self.repo.head != self._written.head

    @property
    def deferred(self) -> bool:
        """Whether commits, or contents for them, are in memory alone."""
        return self.repo.deferred

    def write_deferred(self) -> None:
        """Write the commits that are in memory alone, and move the branch.

        Raises:
            WriterConflict: The branch was moved meanwhile; call :meth:`drop_deferred` and :meth:`follow`.
            RefLocked: A git command holds the branch.
            NotCommitted: The disk refuses.
        """
        self.repo.write_deferred()
        self._note_written()

    def drop_deferred(self) -> None:
        """Go back to the last commit that was written; the caller then sets the pending events."""
        self.repo.drop_moves()
        self.head, self.seq, self._segments = self._written.head, self._written.seq, self._written.segments
        self.log_check.compare_with(self.repo.tree_of(self.head), self.seq)

    def _note_written(self) -> None:
        self._written = _Written(self.head, self.seq, self._segments)

    def _take_head(self, head: str, known: str) -> None:
        """Build upon a commit.

        Args:
            head: The commit that the branch names.
            known: The engine's commit that the branch named before; empty for none.
        """
        self.anchor = known
        if known and (not head or self.repo.descends(known, head)):
            if not self._reading:  # `git reset` is undone, so that no commit is lost
                self.repo.move_ref(known, head, "agentx: the branch was set back; no history is lost")
                self._notes.append(
                    "Git had moved the branch back; it was moved forward again, and the files are recorded "
                    "as edits."
                )
            head, self.index_unknown = known, True
        self.head = head
        recorded = recovery.last_recorded(self.repo, head)
        self.seq = recorded.seq
        self._segments = self.log_check.segments_in(self.tree)
        # The user's Git may have dropped a part of the log from the branch.
        self._note_written()
        lost = recovery.last_recorded(self.repo, self.anchor)
        latest = lost.latest if lost.seq > recorded.seq else recorded.latest
        self.log_check.compare_with(self.repo.tree_of(latest), self.seq)

    # --- the log ----------------------------------------------------------------------------------

    def refuse_damaged(self, after: int) -> None:
        """Refuse to hand on a commit whose log is damaged after an event.

        Raises:
            HistoryDamaged: The log is damaged; an earlier version may have committed it.
        """
        last = after
        with contextlib.suppress(HistoryDamaged, DamagedLine):
            for event in CommittedLog(self.repo, self.head, self._codec).events(after):
                last = event.seq
        if last < self.seq:
            raise HistoryDamaged(
                f"Event {last + 1} in commit {self.head[:12]} cannot be read, so nothing was pushed. Run "
                "`agentx repair`, then try again."
            )

    # --- the recorded state of the artifacts ------------------------------------------------------

    @property
    def tree(self) -> str:
        """The tree of the head; empty before the first commit."""
        return self.repo.tree_of(self.head)

    def expect(self, pending: Iterable[Event]) -> None:
        """Set the pending events: those after the head."""
        self.pending, self._owed = [], {}
        self.add(pending)

    def add(self, events: Iterable[Event]) -> None:
        """Add newly recorded events to the pending ones; one that is pending or committed is left out."""
        last = self.pending[-1].seq if self.pending else self.seq
        for event in events:
            if event.seq <= last:
                continue
            self.pending.append(event)
            if isinstance(event.data, WriteReverted):
                self._owed = _owed(self.pending)
            for made in changes_of(event):
                self._owed[made.path] = entry_after(made)
                self._unsynced.append(made.path)

    def tracked(self, path: str) -> TreeEntry | None:
        """Return the recorded entry of an artifact."""
        if path in self._owed:
            return self._owed[path]
        return self.repo.entry(self.tree, f"{ARTIFACTS}/{path}")

    def tracked_all(self, paths: Collection[str]) -> dict[str, TreeEntry | None]:
        """Return the recorded entries of some artifacts.

        For many paths the tree is walked once, because each look-up reads a whole directory.
        """
        if len(paths) <= LOOKUPS:
            return {path: self.tracked(path) for path in paths}
        known = self.manifest()
        return {path: known.get(path) for path in paths}

    def manifest(self) -> dict[str, TreeEntry]:
        """Return every recorded artifact by path."""
        known: dict[str, TreeEntry | None] = dict(self.repo.files(self.repo.subtree(self.tree, ARTIFACTS)))
        known |= self._owed
        return {path: entry for path, entry in known.items() if entry is not None}

    # --- committing -------------------------------------------------------------------------------

    def hold(self) -> None:
        """Begin a change: until :meth:`settle`, the user's Git commands wait for the index lock."""
        self.index.hold(self.seq)
        self._holding = True

    def include(self, path: str) -> None:
        """Add a file beside the log (``agentx.toml``) to the next commit."""
        self._files.add(path)

    def include_leftovers(self) -> None:
        """Add blobs that a crash left without their event to the next commit: nothing kept is lost."""
        known = {f"{BLOBS}/{path}" for path, _ in self.repo.files(self.repo.subtree(self.tree, BLOBS))}
        for path in nofollow.tree(self._root / BLOBS):
            if path.name.startswith(TEMPORARY_PREFIX):
                nofollow.remove(path, missing_ok=True)
            elif (name := path.relative_to(self._root).as_posix()) not in known:
                self.include(name)

    @property
    def due(self) -> bool:
        """Whether events are in no commit yet, or the log's files differ from the commit."""
        return bool(self.pending or self._files) or self._log_differs()

    @property
    def unsettled(self) -> bool:
        """Whether something waits for a commit or for :meth:`settle`."""
        return bool(self.pending or self._behind or self._files or self._holding or not self.repo.settled)

    def commit(self, through: int, segments: int, *, actor: str = "") -> None:
        """Commit everything that is pending.

        Args:
            through: The last event that the log holds.
            segments: Number of its sealed segments.
            actor: Who acts; by default the actor of the most significant event.

        Raises:
            WriterConflict: The branch was moved meanwhile; call :meth:`follow` and commit again.
            RefLocked: A git command holds the branch.
            NotCommitted: The disk refuses.
            HistoryDamaged: The log does not extend the last committed one.
        """
        files = self.log_check.files(through, segments, self.seq)
        entries = {f"{ARTIFACTS}/{path}": entry for path, entry in self._owed.items()}
        entries |= self._log_entries(files) | self._passing_contents()
        tree = self.repo.update_tree(self.tree, entries)
        if tree != self.tree or not self.head:
            message, author = commit_message.compose(self.pending, actor=actor, files=sorted(self._files))
            commit = self.repo.commit(tree, self.head, message, author)
            note = f"agentx: {message.partition(chr(10))[0]}"
            move = self.repo.move_ref_later if self.repo.deferring else self.repo.move_ref
            move(commit, self.head, note)
            self.head, self.seq, self._segments = commit, through, segments
            if not self.repo.deferring:
                self._note_written()
            self._behind |= entries
            self.expect(())
        self.log_check.committed(files, self.tree, through, segments)
        self._files.clear()

    def _log_entries(self, files: Mapping[str, bytes]) -> dict[str, TreeEntry | None]:
        """Return entries for the log, newly sealed segments and the other files beside the log."""
        names = {blob_path(oid) for event in self.pending for oid in named_blobs(event.data)}
        # A file that does not exist was purged.
        names |= {name for name in self._files if nofollow.exists(self._root / name)}
        names |= {ORPHANS} if nofollow.exists(self._root / ORPHANS) else set()
        contents = {name: self._beside(name) for name in sorted(names)} | dict(files)
        return self._taken_out() | {
            name: TreeEntry(self.repo.write_blob_unsynced(content), REGULAR)
            for name, content in contents.items()
            if content is not None
        }

    def _beside(self, name: str) -> bytes | None:
        """Return the content of a file beside the live log; ``None`` if it is damaged and not committed.

        Raises:
            HistoryDamaged: A sealed segment does not follow from the one before it.
        """
        content = self.log_check.read(name)
        if name.startswith(f"{BLOBS}/"):
            oid = name.removeprefix(f"{BLOBS}/").replace("/", "")
            if blob_id(content) != oid:
                self._notes.append(f"{name} is damaged, so it was not committed; run `agentx repair`.")
                return self.repo.read_blob(oid) if self.repo.has_blob(oid) else None
        else:
            self.log_check.check_segment(name)
        return content

    def differing_segments(self) -> list[str]:
        """Return sealed segments that differ from the commit: an earlier version may have damaged it."""
        names = map(segment_path, range(1, self._segments + 1))
        return [name for name in names if nofollow.exists(self._root / name) and self.differs(name)]

    @property
    def lost_files(self) -> list[str]:
        """Files of the log that the user's commits removed and that are missing on disk, too."""
        return [path for path in self._taken_out() if not nofollow.exists(self._root / path)]

    def _taken_out(self) -> dict[str, TreeEntry | None]:
        """Return the original entries of log files that the user's commits changed or removed.

        The next commit restores them.
        """
        known = self.log_check.tree
        if known in ("", self.tree):
            return {}
        return {
            path: before
            for path, (before, _) in self.repo.diff(known, self.tree).items()
            if path.startswith(f"{SEGMENTS}/") and path != ORPHANS and before is not None
        }

    def _passing_contents(self) -> dict[str, TreeEntry | None]:
        """Return entries for contents that pending events both write and replace.

        No tree of artifacts will hold them, so they are kept beside the log: what an event names must be in a
        tree, or ``git gc`` and a clone would lose it.
        """
        final = {entry.oid for entry in self._owed.values() if entry is not None}
        named = {made.after for event in self.pending for made in changes_of(event) if made.after}
        kept: dict[str, TreeEntry | None] = {}
        for oid in sorted(named - final):
            with contextlib.suppress(ObjectDamaged):  # a crash lost it, and the write was reverted
                self.include(blob_path(oid))  # even if this commit fails
                self._blobs.put(self.repo.read_blob(oid))
                kept[blob_path(oid)] = TreeEntry(oid, REGULAR)
        return kept

    def _log_differs(self) -> bool:
        """Return whether the log's files differ from the commit without a new event.

        A crash may have left a seal or a torn line.
        """
        if count_segments(self._root) != self._segments or self._taken_out():
            return True
        return any(self.differs(name) for name in (LIVE, ORPHANS))

    def differs(self, name: str) -> bool:
        """Return whether a file beside the artifacts differs from the commit."""
        entry, path = self.repo.entry(self.tree, name), self._root / name
        return (blob_id(nofollow.read(path)) if nofollow.exists(path) else "") != (entry.oid if entry else "")

    @property
    def config_edited(self) -> bool:
        """Whether the user edited ``agentx.toml``."""
        return nofollow.is_file(self._root / CONFIG) and self.differs(CONFIG)

    # --- settling ---------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make durable the working files and Git objects written since the last call; needs no lock.

        Raises:
            NotSynced: The disk refuses.
        """
        paths = [self._unsynced.popleft() for _ in range(len(self._unsynced))]
        try:
            self._sync_files(paths)
        except OSError as error:
            self._unsynced.extend(paths)
            raise NotSynced(
                f"{error.filename or self._artifacts} could not be synced: {error.strerror}. What was "
                "recorded is kept; check the disk."
            ) from error
        self.repo.sync()

    def _sync_files(self, paths: Iterable[str]) -> None:
        folders: dict[Path, None] = {}
        for path in (self._artifacts / name for name in paths):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # it was removed meanwhile
                if nofollow.is_file(path) and not nofollow.is_link(path):
                    sync_file(path)
            for folder in path.parents:  # the parents too: a directory may be as new as the file
                folders[folder] = None
                if folder == self._artifacts:
                    break
        for folder in folders:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                sync_directory(folder)

    def settle(self) -> None:
        """Sync what was written, update the index file, and release Git's index lock."""
        self.sync()
        self.repo.settle_contents()
        if self._behind or self.index_unknown or self.index.held:
            self.index.refresh(None if self.index_unknown else self._behind, self._root, self.tree)
            note_settled(self._root)
            self._behind, self.index_unknown, self._holding = {}, False, False

    def staged(self, paths: Collection[str]) -> dict[str, TreeEntry]:
        """Return the index entries of artifacts that the user may have staged; omit what the engine wrote."""
        if self.index_unknown:
            return {}
        names = {f"{ARTIFACTS}/{path}": path for path in paths}
        wanted = {name for name, path in names.items() if name not in self._behind and path not in self._owed}
        return {names[name]: entry for name, entry in self.index.staged(wanted, self.tree).items()}


def _owed(events: Iterable[Event]) -> dict[str, TreeEntry | None]:
    """Return the entries that some events give to artifacts, without reverted writes."""
    events = list(events)
    back = {(event.data.event, event.data.path) for event in events if isinstance(event.data, WriteReverted)}
    return {
        made.path: entry_after(made)
        for event in events
        for made in changes_of(event)
        if (event.seq, made.path) not in back
    }
