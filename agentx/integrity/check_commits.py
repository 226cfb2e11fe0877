"""Check the commits one by one: each engine commit must hold the log of the commit before it, and more.

The log of a commit is its sealed segments and its live log. Sealed segments never change. The next commit's
live log, or the segment sealed since, begins with this commit's live log. Commits are read from the newest
back, and only what differs from the parent, so that neither time nor memory is spent on what did not change.
"""

import contextlib
import re
from collections.abc import Iterator

import msgspec

from agentx.core.findings import Finding, Found
from agentx.core.layout import ARTIFACTS
from agentx.recording.commit_message import through
from agentx.recording.heal_log import drops
from agentx.recording.recovery import is_ours
from agentx.storage.errors import UsageError
from agentx.storage.events.codec import GENESIS, UNKNOWN, Codec, DamagedLine
from agentx.storage.events.types import (
    ArtifactChanged,
    Event,
    Lost,
    Purged,
    ToolCallExecuted,
    changes_of,
)
from agentx.storage.git.checked_reader import CommitInfo, ObjectMissing, ObjectReader, TreeEntry
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.repository import HOST
from agentx.storage.log.blobs import FOLDER as BLOBS
from agentx.storage.log.chain import next_event
from agentx.storage.log.history import LIVE, SEGMENTS, segment_number, segment_path
from agentx.storage.progress import Progress

CHECK = "commits"

SHORTEST_ID = 4
"""Minimum number of characters of an abbreviated commit ID."""

_ARTIFACTS = f"{ARTIFACTS}/"
_RANGE = re.compile("([0-9]{1,18})(?:-([0-9]{1,18}))?")
_BLOBS = f"{BLOBS}/"

Differences = dict[str, tuple[TreeEntry | None, TreeEntry | None]]
"""Files that differ between two trees: entry before and after, by path."""


class Logged(msgspec.Struct, frozen=True):
    """The end of a commit's log.

    Attributes:
        commit: The commit's ID; empty for none.
        seq: Its last event.
        hash: That event's hash.
        tree: Its tree.
    """

    commit: str = ""
    seq: int = 0
    hash: str = ""
    tree: str = ""


class CommitChain:
    """Checks the commits of one repository, beside the objects that are known to be damaged.

    Attributes:
        commits: Number of commits checked.
        notes: Commits whose log was damaged and later restored, and limits of the check.
        purged_changes: The artifact changes of purged events, as their commits show them, by seq.
    """

    def __init__(self, reader: ObjectReader, codec: Codec, found: Found, known: set[str]) -> None:
        self._reader = reader
        self._codec = codec
        self._found = found
        self._reported = known
        self._unread: set[str] = set()
        self._lost: dict[str, tuple[int, str]] = {}
        self._damaged_before = False
        self.commits = 0
        self.notes: list[str] = []
        self.purged_changes: dict[int, list[tuple[str, TreeEntry | None]]] = {}

    def last_logged(self, head: str) -> Logged:
        """Return the end of the log of the latest engine commit at or before the given one."""
        for commit in self._back(head, ""):
            if commit.committer.endswith(HOST):
                return self.logged(commit)
        return Logged()

    def logged(self, commit: CommitInfo) -> Logged:
        """Return the end of a commit's log, in the live log or the latest sealed segment."""
        try:
            lines = self._blob(self._reader.entry(commit.tree, LIVE)).splitlines(keepends=True)
            if not lines and (sealed := self._sealed(commit.tree)):
                lines = self._blob(sealed[-1]).splitlines(keepends=True)
            last = self._codec.decode(lines[-1]) if lines else None
        except (ObjectDamaged, DamagedLine):
            return Logged(commit=commit.id, tree=commit.tree)  # reported by the check of the commits
        return Logged(commit.id, last.seq, last.hash, commit.tree) if last else Logged(tree=commit.tree)

    def _sealed(self, tree: str) -> list[TreeEntry]:
        """Return the sealed segments of a tree, in order."""
        folder = self._reader.entry(tree, SEGMENTS)
        files = dict(self._reader.files(folder.oid if folder else "", f"{SEGMENTS}/"))
        return [files[path] for path in sorted(filter(segment_number, files), key=segment_number)]

    def check(self, head: str, until: str, progress: Progress) -> str:
        """Check every commit from ``head`` back to ``until``, which is trusted; empty for all of them.

        Returns:
            What was checked, in a sentence.
        """
        later: CommitInfo | None = None
        newest = True
        for commit in self._back(head, until):
            self.commits += 1
            if newest and not is_ours(commit):
                self._check_newest(commit, until)
            newest = False
            progress("Checking the commits", self.commits, self.commits + bool(commit.parents))
            parent = self._before(commit)
            differences = self._differences(parent, commit)
            if later is not None and is_ours(commit):
                self._check_step(later, commit, self._differences(commit, later))
                later = None
            if not is_ours(commit):
                continue
            if self._reader.is_cut_off(commit.id):
                self.notes.append(
                    f"This clone is shallow, so nothing before commit {commit.id[:12]} was checked; "
                    "`git fetch --unshallow` gets the rest."
                )
            elif parent is None or is_ours(parent) or parent.id == until:
                self._check_step(commit, parent, differences)
            else:
                later = commit
        if later is not None:
            base = self._commit(until) if until else None
            self._check_step(later, base, self._differences(base, later))
        self._tell_lost(head, until)
        return f"{self.commits:,} commits, each extending the log of the one before it"

    def find(self, head: str, name: str) -> str:
        """Return the ID of the commit at or before ``head`` whose ID begins with ``name``.

        Raises:
            UsageError: The commit is unknown.
        """
        if re.fullmatch(f"[0-9a-f]{{{SHORTEST_ID},40}}", name):
            for commit in self._back(head, ""):
                if commit.id.startswith(name):
                    return commit.id
        raise UsageError(f"Unknown commit {name!r} in the history; `git log` lists the commit IDs.")

    def _back(self, head: str, until: str) -> Iterator[CommitInfo]:
        """Yield the commits from ``head`` back, along the parents that hold the engine's log."""
        commit = self._commit(head)
        while commit is not None and commit.id != until:
            yield commit
            commit = self._before(commit)

    def _before(self, commit: CommitInfo) -> CommitInfo | None:
        """Return the parent that the log continues from; for a merge, the one that holds more of the log."""
        parents = [parent for oid in commit.parents if (parent := self._commit(oid))]
        if len(parents) > 1:
            parents.sort(key=lambda parent: self.last_logged(parent.id).seq)
        return parents[-1] if parents else None

    def _commit(self, oid: str) -> CommitInfo | None:
        if not oid:
            return None
        try:
            return self._reader.commit(oid)
        except ObjectDamaged as problem:
            self._tell_object(f"commit {oid[:12]}", oid, problem)
            return None

    def _differences(self, old: CommitInfo | None, new: CommitInfo) -> Differences:
        def missing(path: str, oid: str, problem: ObjectDamaged) -> None:
            if path == "" or path.endswith("/"):
                self._unread.add(new.id)
            self._tell_object(f"{path or 'the tree'} of commit {new.id[:12]}", oid, problem)

        compared = self._reader.compare(old.tree if old else "", new.tree, missing)
        return {path: (before, after) for path, before, after in compared}

    def _tell_object(self, where: str, oid: str, problem: ObjectDamaged) -> None:
        if oid not in self._reported:
            self._reported.add(oid)
            state = "is missing" if isinstance(problem, ObjectMissing) else "is damaged"
            self._tell(f"Git object {oid}", f"{state}: {where}")

    def _tell(self, where: str, what: str, todo: str = "") -> None:
        self._found(Finding(CHECK, where, what, *([todo] if todo else [])))

    def _check_newest(self, commit: CommitInfo, until: str) -> None:
        """Check the log in the newest commit if it names no event, or was made by the user."""
        ours = next((one for one in self._back(commit.id, until) if is_ours(one)), None)
        if ours is None:
            return
        made, where = self._differences(ours, commit), f"commit {commit.id[:12]}"
        if self._unread & {commit.id, ours.id}:
            return
        with contextlib.suppress(ObjectDamaged):
            if self._added(made, ours) is None and not self._note_healed(commit, ours):
                self._tell(where, f"has a different log than commit {ours.id[:12]} before it")

    # --- one step -------------------------------------------------------------------------------------------

    def _check_step(self, commit: CommitInfo, parent: CommitInfo | None, made: Differences) -> None:
        """Check what an engine commit added to the log of the one before it."""
        if self._unread & {commit.id, parent.id if parent else ""}:
            return  # an unreadable tree is already reported
        where = f"commit {commit.id[:12]}"
        try:
            added = self._added(made, parent)
            if added is None and parent is not None and self._note_healed(commit, parent):
                added = self._log(commit.tree)
            elif added is None:
                self._tell_unless_healed(where, "does not extend the log of the commit before it")
                return
            before = self.logged(parent) if parent else Logged(hash=GENESIS)
            if parent is not None and not before.seq:  # its last line is damaged
                before = Logged(seq=through(parent.trailers))
            events, wrong = self._events(added, before)
        except ObjectDamaged:
            return  # already reported
        named = _RANGE.fullmatch(commit.trailers.get("AgentX-Event", ""))
        span = (int(named[1]), int(named[2] or named[1])) if named else None
        held = (events[0].seq, events[-1].seq) if events else None
        if span != held:
            behind = f", followed by a line that is not the next event: {wrong}" if wrong else ""
            self._tell_unless_healed(
                where,
                f"says that it adds {_span(span)}, but its log has {_span(held)} more than the commit before "
                f"it{behind}",
            )
        self._note_contents(events, made)

    def _tell_unless_healed(self, where: str, what: str) -> None:
        """Report a damaged log, unless a later commit holds it restored, which was noted there."""
        if self._damaged_before:
            self._damaged_before = False
        else:
            self._tell(where, what, _REWRITTEN)

    def _added(self, made: Differences, parent: CommitInfo | None) -> bytes | None:
        """Return the bytes added to the log; ``None`` if it does not extend the parent's log."""
        if any(segment_number(path) and before is not None for path, (before, _) in made.items()):
            return None
        if any(path.startswith(_BLOBS) and before is not None for path, (before, _) in made.items()):
            return None
        sealed = sorted(filter(segment_number, made), key=segment_number)
        if sealed:
            first = segment_number(sealed[0])
            before_it = parent is not None and self._reader.entry(parent.tree, segment_path(first - 1))
            if list(map(segment_number, sealed)) != [*range(first, first + len(sealed))] or (
                first > 1 and not before_it
            ):
                return None
        old = self._blob(self._reader.entry(parent.tree, LIVE)) if parent is not None else b""
        if not sealed and LIVE not in made:
            return b""
        parts = [self._blob(made[path][1]) for path in sealed]
        parts.append(self._blob(made[LIVE][1]) if LIVE in made else old)
        return b"".join([parts[0][len(old) :], *parts[1:]]) if parts[0].startswith(old) else None

    def _note_healed(self, commit: CommitInfo, parent: CommitInfo) -> bool:
        """Note that a commit holds the whole log, with each event that its damaged parent proves.

        Returns:
            Whether it does.
        """
        log, seq, own_hash = self._log(commit.tree), 0, GENESIS
        for line in log.splitlines(keepends=True):
            event = next_event(self._codec, line, seq + 1, own_hash)
            if event is None:
                return False
            seq, own_hash = event.seq, event.hash
        if seq < self.logged(parent).seq or drops(self._codec, self._log(parent.tree), log, 0, GENESIS):
            return False
        healed = f"commit {commit.id[:12]} has it restored"
        self.notes.append(f"Commit {parent.id[:12]} has a damaged log; {healed}.")
        self._damaged_before = True
        return True

    def _log(self, tree: str) -> bytes:
        """Return the whole log of a tree."""
        return b"".join(map(self._blob, [*self._sealed(tree), self._reader.entry(tree, LIVE)]))

    def _blob(self, entry: TreeEntry | None) -> bytes:
        return self._reader.blob(entry.oid) if entry is not None else b""

    def _events(self, added: bytes, before: Logged) -> tuple[list[Event], str]:
        """Return the events of some lines, each the next in the chain, and what is wrong after them.

        If an event occurs twice (a crash interrupted a seal), the first is used. Lines in between that are
        not events of the chain were set aside, and are ignored.
        """
        events: list[Event] = []
        seq, own_hash, wrong = before.seq, before.hash or UNKNOWN, ""
        for line in added.splitlines(keepends=True):
            event = next_event(self._codec, line, seq + 1, own_hash)
            if event is not None:
                events.append(event)
                seq, own_hash, wrong = event.seq, event.hash, ""
            elif not wrong:
                with contextlib.suppress(DamagedLine):
                    if self._codec.decode(line).seq <= seq:
                        continue
                wrong = f"event {seq + 1} is damaged or missing"
        return events, wrong

    # --- the contents that events name ----------------------------------------------------------------------

    def _note_contents(self, events: list[Event], made: Differences) -> None:
        """Check that the contents named by events are in the tree of their commit."""
        for event in events:
            if isinstance(event.data, Purged) and event.type in _CHANGING:
                self.purged_changes[event.seq] = [
                    (path.removeprefix(_ARTIFACTS), after)
                    for path, (_, after) in made.items()
                    if path.startswith(_ARTIFACTS)
                ]
            for change in changes_of(event):
                after = made.get(_ARTIFACTS + change.path, (None, None))[1]
                if change.after and (after is None or after.oid != change.after):
                    self._lost[change.after] = (event.seq, change.path)

    def _tell_lost(self, head: str, until: str) -> None:
        """Report contents that are neither in the tree of their own commit nor in any other."""
        if self._lost:
            for commit in self._back(head, until):
                for _, after in self._differences(self._before(commit), commit).values():
                    if after is not None:
                        self._lost.pop(after.oid, None)
        for oid, (seq, path) in self._lost.items():
            self._tell(
                _ARTIFACTS + path,
                f"had content after event {seq} ({oid[:12]}) that is in no commit",
                "Content that was never committed cannot be recovered; `git gc` may remove what is left of "
                "it.",
            )


_CHANGING = {ToolCallExecuted.__name__, ArtifactChanged.__name__, Lost.__name__}
_REWRITTEN = "The history was rewritten. Compare it with a clone, or with the commits of `git reflog`."


def _span(span: tuple[int, int] | None) -> str:
    if span is None:
        return "no event"
    return f"event {span[0]}" if span[0] == span[1] else f"events {span[0]} to {span[1]}"
