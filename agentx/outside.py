"""What people and their Git did to the artifacts, found out without changing anything.

Each function looks at the repository and the working files and says which changes are to be put on record; the write
path records them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from agentx.storage.artifacts import ArtifactMissing, Artifacts, change, entry_after
from agentx.storage.events import ArtifactChanged, Draft, FileChange
from agentx.storage.git.repository import GitRepository, TreeEntry

ARTIFACTS = "artifacts"

CHANGES_BYTES = 9_000
"""File changes in one event take at most so much of its line."""

_PREFIX = f"{ARTIFACTS}/"


def between(repo: GitRepository, old: str, new: str) -> list[FileChange]:
    """The artifacts that differ between two trees."""
    return [
        change(path.removeprefix(_PREFIX), before, after)
        for path, (before, after) in repo.diff(old, new).items()
        if path.startswith(_PREFIX)
    ]


def staged(
    repo: GitRepository,
    index: Mapping[str, TreeEntry],
    known: Mapping[str, TreeEntry | None],
) -> list[FileChange]:
    """What a person staged with ``git add``, of some artifacts.

    Args:
        repo: The repository.
        index: What Git's index file says of them.
        known: What the record says of them.
    """
    return [
        change(path, known[path], entry)
        for path, entry in index.items()
        if entry != known[path] and repo.has_blob(entry.oid)
    ]


def stashed(repo: GitRepository, stash: str) -> list[list[FileChange]]:
    """What a ``git stash`` took away, in the order in which it came to be: what was staged, then the working files.

    A stash is a commit upon the HEAD of then; its second parent holds the index, its third the untracked files
    (https://git-scm.com/docs/git-stash#_discussion).
    """
    info = repo.info(stash)
    base = repo.tree_of(info.parents[0])
    index = repo.tree_of(info.parents[1])
    working = between(repo, index, info.tree)
    if len(info.parents) > 2:  # noqa: PLR2004 - base, index, untracked
        working += between(repo, "", repo.tree_of(info.parents[2]))
    return [between(repo, base, index), working]


def taken_back(changes: Iterable[FileChange], tracked: Mapping[str, TreeEntry | None]) -> list[FileChange]:
    """Some changes undone: each file to what the record says of it."""
    last = {made.path: entry_after(made) for made in changes}
    return [change(path, after, tracked[path]) for path, after in last.items() if after != tracked[path]]


def displaced(repo: GitRepository, tree: str, paths: Iterable[str]) -> list[FileChange]:
    """Recorded files whose place others take: a person made a directory of a file, or a file of a directory."""
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
    """Keep the contents of changed files; a file that changed again since it was looked at counts as it is now.

    Args:
        repo: Where they are kept.
        artifacts: The working files.
        changes: What changed.
        look: Shown each content that is newly kept.
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
    """The changes that do not stand in the history already, as the last that it says of their files."""
    last = {made.path: made.after for made in said}
    return [made for made in changes if last.get(made.path) != made.after]


def edits(changes: Sequence[FileChange], *, noticed: str, key: str = "") -> list[Draft]:
    """What others did, as events; with a key each is recorded once."""
    return [
        Draft(
            data=ArtifactChanged(changes=chunk, noticed=noticed),
            actor="watch",
            key=f"{key}:{n}" if key else "",
        )
        for n, chunk in enumerate(chunks(changes))
    ]


def chunks(changes: Sequence[FileChange]) -> Iterator[tuple[FileChange, ...]]:
    """Changes in groups that fit into one event each; an empty sequence is one empty group."""
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
