"""Detects what users and their Git commands did to the artifacts, without changing anything.

Each function examines the repository and the working files and returns the changes to record; the write path
records them.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agentx.core.layout import ARTIFACTS
from agentx.storage.artifacts import ArtifactMissing, Artifacts, change, entry_after
from agentx.storage.events.types import ArtifactChanged, Draft, FileChange
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import SUBMODULE, GitRepository

CHANGES_BYTES = 9_000
"""Maximum size of the file changes in one event's line."""

_PREFIX = f"{ARTIFACTS}/"


def between(repo: GitRepository, old: str, new: str) -> list[FileChange]:
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


def submodules(repo: GitRepository, old: str, new: str) -> list[str]:
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


def unfinished(git_dir: Path) -> list[str]:
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


def told(clash: Sequence[str]) -> str:
    """Return a sentence on paths that clash."""
    return (
        f"{' and '.join(map(repr, clash))} differ only in letter case or in how their characters are "
        "encoded: on macOS and Windows one takes the place of the other. Rename one."
    )


def staged(
    repo: GitRepository,
    index: Mapping[str, TreeEntry],
    known: Mapping[str, TreeEntry | None],
) -> list[FileChange]:
    """Return what the user staged with ``git add``, for some artifacts.

    Args:
        repo: The repository.
        index: Their entries in Git's index file.
        known: Their recorded entries.
    """
    return [
        change(path, known[path], entry)
        for path, entry in index.items()
        if entry != known[path] and repo.has_blob(entry.oid)
    ]


def stashed(repo: GitRepository, stash: str) -> list[list[FileChange]]:
    """Return what a ``git stash`` took away, in order of origin: what was staged, then the working files.

    A stash is a commit on top of HEAD at that time. Its second parent holds the index, its third the
    untracked files (https://git-scm.com/docs/git-stash#_discussion).
    """
    info = repo.info(stash)
    base = repo.tree_of(info.parents[0])
    index = repo.tree_of(info.parents[1])
    working = between(repo, index, info.tree)
    if len(info.parents) > 2:  # noqa: PLR2004 - base, index, untracked
        working += between(repo, "", repo.tree_of(info.parents[2]))
    return [between(repo, base, index), working]


def taken_back(changes: Iterable[FileChange], tracked: Mapping[str, TreeEntry | None]) -> list[FileChange]:
    """Return changes that undo others: each file gets its recorded entry back."""
    last = {made.path: entry_after(made) for made in changes}
    return [change(path, after, tracked[path]) for path, after in last.items() if after != tracked[path]]


def displaced(repo: GitRepository, tree: str, paths: Iterable[str]) -> list[FileChange]:
    """Return recorded files that were displaced: the user replaced a file by a directory, or the reverse."""
    found: dict[str, TreeEntry] = {}
    for path in paths:
        folders = path.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            above = "/".join(folders[:depth])
            if entry := repo.entry(tree, _PREFIX + above):
                found[above] = entry
        found |= dict(repo.files(repo.subtree(tree, _PREFIX + path), path + "/"))
    return [change(path, entry, None) for path, entry in found.items()]


def secured(
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
        kept.append(msgspec.structs.replace(made, after=repo.write_blob(content), size_bytes=len(content)))
    return kept


def unsaid(changes: Sequence[FileChange], said: Iterable[FileChange]) -> list[FileChange]:
    """Return the changes that the history does not already hold as the latest ones of their files."""
    last = {made.path: made.after for made in said}
    return [made for made in changes if last.get(made.path) != made.after]


def edits(changes: Sequence[FileChange], *, noticed: str, key: str = "") -> list[Draft]:
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
