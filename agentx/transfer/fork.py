"""Fork: a new workspace with another's history up to an event, sharing nothing with it.

Everything is read from the last commit, which cannot change, so the other workspace may be written meanwhile.
The new one is built under a temporary name and renamed when it is complete, so a crash leaves no partial
fork.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from agentx.config import FILE as CONFIG_FILE
from agentx.config import read_config, set_value
from agentx.core.layout import ARTIFACTS
from agentx.engine.engine import Engine
from agentx.engine.moment_parser import NoSuchMoment, resolve_moment
from agentx.recording import commit_message, recovery
from agentx.storage.artifacts import entry_after
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, Event, WorkspaceForked, WriteReverted, changes_of
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, sync_directory, sync_file
from agentx.storage.files.lock import FileLock, WorkspaceBusy
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.exchange import transfer
from agentx.storage.git.index_file import IndexFile
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR, GitRepository
from agentx.storage.log.blobs import blob_path, named_blobs
from agentx.storage.log.committed_log import CommittedLog
from agentx.storage.log.history import LIVE, HistoryDamaged, HistoryWriter, count_segments, segment_path
from agentx.storage.progress import Progress
from agentx.synthesis.memory.record_codec import record_codec

_CODEC = record_codec()


class ForkRefused(UsageError):
    """A fork cannot be made at this place."""


class _ForkContent(msgspec.Struct, frozen=True):
    """What a fork takes from the other workspace.

    Attributes:
        base: The last commit without later events; empty for none.
        hash: Hash of the last event.
        events: The events that are not in ``base``.
        reverted: Writes among them whose revert was recorded later.
        entries: Differences from the tree of ``base``.
        live: The live log.
    """

    base: str
    hash: str
    events: list[Event]
    reverted: list[WriteReverted]
    entries: dict[str, TreeEntry | None]
    live: bytes


def fork(
    engine: Engine, new: Path, moment: int | str | None = None, progress: Progress | None = None
) -> Path:
    """Make a new workspace with the history of another up to an event.

    Args:
        engine: The other workspace; its unrecorded edits are recorded first.
        new: A directory that is empty or does not exist.
        moment: The last event to take, in a form that :func:`agentx.engine.moment_parser.resolve_moment`
            accepts; the latest by default.
        progress: Receives progress.

    Returns:
        The new workspace's directory.

    Raises:
        ForkRefused: There is something at ``new``, or it is inside the workspace.
        NoSuchMoment: The event does not exist.
        HistoryDamaged: The history up to that event is damaged; `agentx doctor` shows where.
        WorkspaceBusy: Another process is making a fork there.
    """
    new = nofollow.canonical(new)
    _check_place(engine, new)
    head, last = engine.settle()
    at = last if moment is None else resolve_moment(engine, moment)
    if not 0 < at <= last:
        raise NoSuchMoment(f"Event {at} does not exist; the history has events 1 to {last}.")
    with _beside(new) as root:
        taken = _taken(engine.git.repo, head, at)
        repo = GitRepository.init(root)
        try:
            # Everything that the last commit reaches, and what the events after it name
            source, base = engine.git.repo.git_dir, [taken.base] if taken.base else []
            named = [entry.oid for entry in taken.entries.values() if entry is not None]
            transfer.copy(source, repo.git_dir, [*base, *named], progress)
            if taken.base:
                repo.move_ref(taken.base, "", "agentx: what the fork has from the other workspace")
            _build(repo, taken, at, engine.settings.actor)
        finally:
            repo.close()
        _sync(root)
        nofollow.replace(root, new)
        sync_directory(new.parent)
    return new


def _check_place(engine: Engine, new: Path) -> None:
    for taken in (engine.root, engine.artifacts.root):
        if new == taken or taken in new.parents:
            raise ForkRefused(f"{new} is inside the workspace; choose a directory outside {taken}.")
    if nofollow.exists(new) and (not nofollow.is_directory(new) or nofollow.names(new)):
        raise ForkRefused(f"{new} already exists; choose a new directory.")


@contextlib.contextmanager
def _beside(new: Path) -> Iterator[Path]:
    """Yield an empty build directory beside ``new``, without the remains of a crash; remove it at the end."""
    nofollow.make_directory(new.parent, parents=True)
    place = new.parent / f"{TEMPORARY_PREFIX}fork-{new.name}"
    nofollow.make_directory(place)
    try:
        with FileLock(place / "lock", timeout_s=0).hold():
            try:
                nofollow.remove_tree(place / "fork", ignore_errors=True)
                yield place / "fork"
            finally:
                nofollow.remove_tree(place, ignore_errors=True)
    except WorkspaceBusy as error:
        raise WorkspaceBusy(f"Another process is creating a fork at {new}; wait for it.") from error


def _taken(repo: GitRepository, head: str, at: int) -> _ForkContent:
    log = CommittedLog(repo, head, _CODEC)
    base, through = _base(repo, head, at)
    last, own_hash = 0, ""
    events: list[Event] = []
    lost: set[tuple[int, str]] = set()
    reverted: list[WriteReverted] = []
    for event in log.events():
        if isinstance(event.data, WriteReverted):
            lost.add((event.data.event, event.data.path))
            if event.data.event <= at < event.seq:
                reverted.append(event.data)
        if event.seq <= at:
            last, own_hash = event.seq, event.hash
            if event.seq > through:
                events.append(event)
    if last < at:
        raise HistoryDamaged(
            f"The history ends unexpectedly after event {last}, so it cannot be forked at event {at}; see "
            "`agentx doctor`."
        )
    sealed, live = log.until(at)
    entries = _entries(log, events, lost) | {path: log.entries[path] for path in sealed}
    if not base:
        *_, first = repo.log(head)
        entries[CONFIG_FILE] = repo.entry(repo.tree_of(first.id), CONFIG_FILE)
    return _ForkContent(base, own_hash, events, reverted, entries, live)


def _base(repo: GitRepository, head: str, at: int) -> tuple[str, int]:
    """Return the last commit that holds no event after ``at``, and its last event."""
    newest = recovery.last_recorded(repo, head)
    if newest.seq <= at:  # everything is taken, including commits of the user on top
        return head, newest.seq
    for commit in repo.log(head):
        if recovery.is_ours(commit) and commit_message.through(commit.trailers) <= at:
            return commit.id, commit_message.through(commit.trailers)
    return "", 0


def _entries(
    log: CommittedLog, events: Sequence[Event], lost: set[tuple[int, str]]
) -> dict[str, TreeEntry | None]:
    """Return the files as the events left them, and the blobs that they name."""
    entries: dict[str, TreeEntry | None] = {}
    for event in events:
        for change in changes_of(event):
            if (event.seq, change.path) not in lost:
                path = f"{ARTIFACTS}/{change.path}"
                entries.pop(path, None)  # a file may replace a directory: the latest change must come last
                entries[path] = entry_after(change)
        for path in map(blob_path, named_blobs(event.data)):
            entries[path] = log.entries.get(path)
    return entries


def _build(repo: GitRepository, taken: _ForkContent, at: int, actor: str) -> None:
    """Write the working files, and commit the fork's first own event."""
    root = repo.root
    tree = repo.update_tree(repo.tree_of(taken.base), taken.entries)
    for path, entry in repo.files(tree):
        content = repo.read_blob(entry.oid)
        nofollow.make_directory((root / path).parent, parents=True)
        if entry.mode == LINK:
            nofollow.symlink(os.fsdecode(content), root / path)
        else:
            nofollow.write(root / path, content, 0o755 if entry.mode == EXECUTABLE else 0o644)
    nofollow.write(root / LIVE, taken.live)
    nofollow.make_directory(root / ARTIFACTS)
    if read_config(root).workspace.artifacts != ARTIFACTS:
        set_value(root, "workspace.artifacts", ARTIFACTS)  # the fork must not use the other's project
    _commit(repo, taken, tree, _mark(root, taken, at, actor), actor)


def _mark(root: Path, taken: _ForkContent, at: int, actor: str) -> list[Event]:
    """Append the event after which the history belongs to the fork alone."""
    writer = HistoryWriter(root, _CODEC)
    try:
        writer.start_at(at, taken.hash)
        writer.catch_up()
        drafts = [Draft(data=WorkspaceForked(at=at, hash=taken.hash), actor=actor)]
        drafts += [Draft(data=lost, actor="engine:recovery") for lost in taken.reverted]
        return writer.append(drafts)
    finally:
        writer.close()


def _commit(repo: GitRepository, taken: _ForkContent, tree: str, marked: Sequence[Event], actor: str) -> None:
    segments = map(segment_path, range(1, count_segments(repo.root) + 1))
    names = [path for path in segments if repo.entry(tree, path) is None] + [LIVE, CONFIG_FILE]
    logged = {
        name: TreeEntry(repo.write_blob(nofollow.read(repo.root / name)), REGULAR)
        for name in names
        if nofollow.exists(repo.root / name)
    }
    tree = repo.update_tree(tree, logged)
    message, author = commit_message.compose([*taken.events, *marked], actor=actor)
    repo.move_ref(repo.commit(tree, taken.base, message, author), taken.base, "agentx: fork")
    IndexFile(repo.git_dir).refresh(dict(repo.files(tree)), repo.root, tree)


def _sync(root: Path) -> None:
    """Make everything below a directory durable; an empty directory is durable with its parent."""
    for folder, folders, names in nofollow.walk(root):
        for path in (Path(folder, name) for name in names):
            if not nofollow.is_link(path):
                sync_file(path)
        if folders or names:
            sync_directory(Path(folder))
