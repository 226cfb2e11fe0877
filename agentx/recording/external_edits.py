"""Detects and records what users and their Git commands did to the artifacts.

:class:`ExternalEdits` decides when to look and records what it finds through the write path. The functions
below it compare trees and files and change nothing.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from agentx.core import layout
from agentx.core.layout import ARTIFACTS
from agentx.recording import recovery
from agentx.recording.committer import Committer
from agentx.recording.log_health import LogHealth
from agentx.recording.recorded_log import RecordedLog
from agentx.recording.secret_report import note_on, secrets_in
from agentx.recording.staging import WriteFailed
from agentx.storage.artifacts import ArtifactMissing, Artifacts, Scan, change, entry_after
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import ArtifactChanged, Draft, FileChange, changes_of
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import SUBMODULE, GitRepository
from agentx.storage.text import text_of

BURST_FILES = 100
"""Number of changed files from which their contents are stored before the lock is taken."""

CHANGES_BYTES = 9_000
"""Maximum size of the file changes in one event's line."""

_PREFIX = f"{ARTIFACTS}/"


class Recorder(Protocol):
    """What recording an edit needs of the write path."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the workspace's lock."""
        ...

    def hold_git(self) -> None:
        """Begin a change: the user's Git commands wait."""
        ...

    def record_placed(self, drafts: Sequence[Draft]) -> None:
        """Append and commit edits that are in the working files already."""
        ...

    def commit_config(self) -> None:
        """Commit ``agentx.toml`` as it is if the user edited it by hand."""
        ...


class ExternalEdits:
    """Records what differs between the working files and the record.

    Args:
        recorder: Appends and commits.
        log: The log.
        health: Nothing is recorded while the log is damaged.
        git: The commits and the recorded entries.
        artifacts: The working files.
        notes: Receives the messages for the user.
    """

    def __init__(
        self,
        recorder: Recorder,
        log: RecordedLog,
        health: LogHealth,
        git: Committer,
        artifacts: Artifacts,
        notes: list[str],
    ) -> None:
        self._recorder = recorder
        self._log = log
        self._health = health
        self._git = git
        self._artifacts = artifacts
        self._notes = notes

    def record(
        self,
        paths: Sequence[str],
        *,
        noticed: str,
        drafts: Callable[[tuple[FileChange, ...]], Sequence[Draft]] | None = None,
    ) -> dict[str, TreeEntry | None]:
        """Record and commit the user's edits of some files.

        Args:
            paths: The files.
            noticed: What triggered the look.
            drafts: Makes the events instead, if it is known who changed the files. It is called at most once,
                with all changes.

        Returns:
            The recorded entries of the paths afterwards.
        """
        tracked = self._git.tracked_all(paths)
        if self._record_staged(tracked, {}):
            tracked = self._git.tracked_all(paths)
        found = [
            change(path, before, after)
            for path, before in tracked.items()
            if (after := self._artifacts.identify(path)) != before
        ]
        found += displaced(self._git.repo, self._git.tree, paths)
        self._record_changes(found, noticed=noticed, drafts=drafts)
        return self._git.tracked_all(paths) if found else tracked

    def scan(self, *, noticed: str = "scan") -> list[FileChange]:
        """Check every working file, and record what the user and their Git commands changed.

        Nothing is recorded while the log is damaged.
        """
        with self._recorder.exclusive():
            if self._health.unsound:
                return []
            self._record_stashes()
            if unfinished := _unfinished(self._git.repo.git_dir):
                self._notes += [note for note in unfinished if note not in self._notes]
                return []  # committing the files now would mark the conflict as resolved
            known = self._git.manifest()
            found = self._without_clashes(self._artifacts.scan(known), known)
            self._notes += [note for note in found.notes if note not in self._notes]
            edited = {made.path: made.after for made in found.changes}
            self._record_staged({path: known.get(path) for path in edited}, edited)
            tracked = self._git.tracked_all(list(edited))
            before = {path: entry.oid if entry else "" for path, entry in tracked.items()}
            made = [msgspec.structs.replace(one, before=before[one.path]) for one in found.changes]
            self._record_changes(made, noticed=noticed)
            self._recorder.commit_config()
            return list(found.changes)

    def secure(self) -> None:
        """Store the contents of a burst of edits before :meth:`scan`, without the workspace's lock.

        Syncing thousands of files takes a while, and nobody else has to wait for it.
        """
        with self._recorder.exclusive():
            if self._health.unsound:
                return
            found = self._artifacts.scan(self._git.manifest()).changes
        for made in found if len(found) >= BURST_FILES else ():
            with suppress(AgentXError, OSError):  # it is gone, or the scan reports it
                if made.after and not self._git.repo.has_blob(made.after):
                    self._git.repo.write_blob(self._artifacts.content(made.path))

    def adopt_commits(self) -> list[Draft]:
        """Return events for what the user committed with Git; the tree holds it already."""
        repo, git = self._git.repo, self._git
        ours = recovery.last_recorded(repo, git.head)
        if not ours.foreign:
            return []
        known = recovery.last_recorded(repo, git.anchor)
        since = known.commit if known.seq > ours.seq else ours.commit
        layout.check_commit(repo, git.head, since)
        base = repo.tree_of(since)
        self._notes += _submodules(repo, base, git.tree)
        recorded = {made.path: made.after for event in git.pending for made in changes_of(event)}
        made = [one for one in _between(repo, base, git.tree) if recorded.get(one.path) != one.after]
        return _edits(made, noticed="git", key=f"git:{git.head}") if base and made else []

    def _record_changes(
        self,
        changes: Sequence[FileChange],
        *,
        noticed: str,
        drafts: Callable[[tuple[FileChange, ...]], Sequence[Draft]] | None = None,
    ) -> None:
        """Record changes that others made to the working files, with their contents, as one commit."""
        if not changes:
            return
        with self._recorder.exclusive():
            self._recorder.hold_git()
            secrets: list[str] = []
            try:
                kept = _secured(
                    self._git.repo,
                    self._artifacts,
                    changes,
                    lambda path, data: secrets.extend(secrets_in(path, text_of(data))),
                )
            except OSError as error:
                raise WriteFailed(
                    f"Edits in {self._artifacts.root} could not be recorded: {error.strerror}."
                ) from error
            made = drafts(tuple(kept)) if drafts else _edits(kept, noticed=noticed)
            self._recorder.record_placed(made if kept else [])
            self._notes += note_on(secrets)

    def _without_clashes(self, found: Scan, known: Mapping[str, TreeEntry]) -> Scan:
        """Note files whose names differ too little.

        Ignore changes to names that this file system treats as one file.
        """
        changes, notes = list(found.changes), list(found.notes)
        added = [made.path for made in changes if made.after]
        for clash in clashes({*known, *added}, added):
            notes.append(
                f"{' and '.join(map(repr, clash))} differ only in letter case or in how their characters "
                "are encoded: on macOS and Windows one takes the place of the other. Rename one."
            )
            if self._artifacts.are_one(clash):
                changes = [made for made in changes if made.path not in clash]
        return Scan(tuple(changes), tuple(notes))

    def _record_staged(self, known: Mapping[str, TreeEntry | None], edited: Mapping[str, str]) -> bool:
        """Record what was staged with `git add` and edited again since.

        Runs before the edit is recorded, for the staged content exists nowhere else.
        """
        staged = [
            change(path, known[path], entry)
            for path, entry in self._git.staged(known).items()
            if entry != known[path] and entry.oid != edited.get(path) and self._git.repo.has_blob(entry.oid)
        ]
        self._record_changes(staged, noticed="index")
        return bool(staged)

    def _record_stashes(self) -> None:
        """Record what each `git stash` took out of the working files, and its removal, once."""
        for stash in self._git.repo.stashes():
            if self._log.has_key(f"stash:{stash}:0"):
                continue
            steps = _stashed(self._git.repo, stash)
            taken = {made.path: entry_after(made) for step in steps for made in step}
            tracked = self._git.tracked_all(list(taken))
            back = [change(path, at, tracked[path]) for path, at in taken.items() if at != tracked[path]]
            for number, step in enumerate(step for step in (*steps, back) if step):
                first = f"stash:{stash}" if number == 0 else f"stash:{stash}:{number}"
                self._recorder.record_placed(_edits(step, noticed="stash", key=first))


def _between(repo: GitRepository, old: str, new: str) -> list[FileChange]:
    """Return the artifacts that differ between two trees.

    A submodule does not count, because its files are in another repository.
    """
    return [
        change(path.removeprefix(_PREFIX), _file(before), _file(after))
        for path, (before, after) in repo.diff(old, new).items()
        if path.startswith(_PREFIX) and (_file(before) or _file(after))
    ]


def _file(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry is not None and entry.mode == SUBMODULE else entry


def _submodules(repo: GitRepository, old: str, new: str) -> list[str]:
    """Return a note for each submodule added between two trees."""
    return [
        (
            f"{path} is a submodule: its files belong to another repository and are neither recorded nor "
            "searched."
        )
        for path, (_, after) in repo.diff(old, new).items()
        if after is not None and after.mode == SUBMODULE
    ]


_UNFINISHED = {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}


def _unfinished(git_dir: Path) -> list[str]:
    """Return a note for each unfinished operation of the user's Git."""
    return [
        (
            f"A Git {what} is in progress: finish it with `git commit`, or cancel it with "
            f"`git {what} --abort`. Your edits are recorded after that."
        )
        for name, what in _UNFINISHED.items()
        if nofollow.exists(git_dir / name)
    ]


def clashes(paths: Iterable[str], among: Iterable[str]) -> list[tuple[str, ...]]:
    """Return groups of paths that differ only in letter case or Unicode normalisation.

    Args:
        paths: All paths.
        among: Return only groups that contain one of these.

    >>> clashes(["a", "Case.txt", "case.txt"], ["case.txt"])
    [('Case.txt', 'case.txt')]
    """
    wanted = {_folded(path) for path in among}
    groups: dict[str, list[str]] = {}
    for path in sorted(paths) if wanted else ():
        if (folded := _folded(path)) in wanted:
            groups.setdefault(folded, []).append(path)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _stashed(repo: GitRepository, stash: str) -> list[list[FileChange]]:
    """Return what a ``git stash`` took away, in order of origin: what was staged, then the working files.

    A stash is a commit on top of HEAD at that time. Its second parent holds the index, its third the
    untracked files (https://git-scm.com/docs/git-stash#_discussion).
    """
    info = repo.info(stash)
    base = repo.tree_of(info.parents[0])
    index = repo.tree_of(info.parents[1])
    working = _between(repo, index, info.tree)
    if len(info.parents) > 2:  # noqa: PLR2004 - base, index, untracked
        working += _between(repo, "", repo.tree_of(info.parents[2]))
    return [_between(repo, base, index), working]


def displaced(repo: GitRepository, tree: str, paths: Iterable[str]) -> list[FileChange]:
    """Return recorded files that were displaced: the user replaced a file by a directory, or the reverse."""
    found: dict[str, TreeEntry] = {}
    for path in paths:
        above, below = repo.around(tree, _PREFIX + path)
        if above:
            name, entry = above
            found[name.removeprefix(_PREFIX)] = entry
        if below:
            found |= dict(repo.files(below, path + "/"))
    return [change(path, entry, None) for path, entry in found.items()]


def _secured(
    repo: GitRepository,
    artifacts: Artifacts,
    changes: Sequence[FileChange],
    look: Callable[[str, bytes], None],
) -> list[FileChange]:
    """Store the contents of changed files. A file that changed again since is stored as it is now.

    Args:
        repo: Where the contents are stored.
        artifacts: The working files.
        changes: What changed.
        look: Called with each content that is newly stored.
    """
    kept: list[FileChange] = []
    for made in changes:
        if not made.after or repo.has_blob(made.after):
            kept.append(made)
            continue
        try:
            content = artifacts.content(made.path)
        except ArtifactMissing:
            continue
        look(made.path, content)
        kept.append(msgspec.structs.replace(made, after=repo.stage_blob(content), size_bytes=len(content)))
    repo.sync_contents()
    return kept


def _edits(changes: Sequence[FileChange], *, noticed: str, key: str = "") -> list[Draft]:
    """Return events for what others did; with a key, each is recorded only once."""
    return [
        Draft(
            data=ArtifactChanged(changes=chunk, noticed=noticed),
            actor="watch",
            key=f"{key}:{n}" if key else "",
        )
        for n, chunk in enumerate(chunks(changes))
    ]


def chunks(changes: Sequence[FileChange]) -> Iterator[tuple[FileChange, ...]]:
    """Split changes into groups that fit into one event each; an empty sequence is one empty group."""
    group: list[FileChange] = []
    size = 0
    for made in changes:
        length = len(msgspec.json.encode(made))
        if group and size + length > CHANGES_BYTES:
            yield tuple(group)
            group, size = [], 0
        group.append(made)
        size += length
    yield tuple(group)
