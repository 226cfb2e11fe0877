"""Recovery after a crash and after the user's Git commands: nothing acknowledged is lost.

Independent of the write path: each function takes the parts that it examines and returns what to do. For a
damaged log see :mod:`agentx.recording.heal_log`.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from agentx.recording import commit_message
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Event, FileChange, WriteReverted, changes_of
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX
from agentx.storage.git.checked_reader import CommitInfo, TreeEntry
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.repository import EXECUTABLE, HOST, LINK, REGULAR, GitRepository

_REFLOG_ENTRIES = 100


class RolledForward(msgspec.Struct, frozen=True):
    """The outcome for writes that a crash interrupted.

    Attributes:
        reverted: Writes whose content is lost; the file keeps its current content.
        edited: Files that the user changed since; their content is to be recorded.
    """

    reverted: tuple[WriteReverted, ...]
    edited: tuple[str, ...]


class Recorded(msgspec.Struct, frozen=True):
    """The engine's latest commit with events at or below another commit.

    Attributes:
        seq: The last event that it holds; 0 if there is none.
        commit: Its id.
        foreign: Number of the user's commits on top of it.
        latest: The engine's latest commit, which may hold a healed log or settings and no new event.
    """

    seq: int = 0
    commit: str = ""
    foreign: int = 0
    latest: str = ""


def last_recorded(repo: GitRepository, head: str) -> Recorded:
    """Return how much of the log the commits hold."""
    return find_recorded(lambda oid: repo.info(oid) if repo.has_commit(oid) else None, head)


def find_recorded(read: Callable[[str], CommitInfo | None], head: str) -> Recorded:
    """Find the engine's latest commit at or below another; at a merge, on the side with more of the log.

    Args:
        read: Reads a commit; returns ``None`` if it does not exist, as in a shallow clone.
        head: The commit to begin with; empty for none.
    """
    foreign, latest = 0, ""
    commit = read(head) if head else None
    while commit is not None:
        latest = latest or (commit.id if commit.committer.endswith(HOST) else "")
        if is_ours(commit):
            return Recorded(commit_message.through(commit.trailers), commit.id, foreign, latest)
        foreign += not commit.committer.endswith(HOST)
        if len(commit.parents) > 1:
            best = max((find_recorded(read, parent) for parent in commit.parents), key=lambda one: one.seq)
            return Recorded(best.seq, best.commit, foreign + best.foreign, latest or best.latest)
        commit = read(commit.parents[0]) if commit.parents else None
    return Recorded(foreign=foreign, latest=latest)


def is_ours(commit: CommitInfo) -> bool:
    """Return whether the engine made a commit: `git commit --amend` keeps the message, not the committer."""
    return bool(commit_message.through(commit.trailers)) and commit.committer.endswith(HOST)


def lost_commit(repo: GitRepository, head: str) -> str:
    """Find the engine's commit that `git reset` or `git commit --amend` removed, by the reflog.

    Returns:
        The one that holds most of the log, if it holds more than ``head``; otherwise empty.
    """
    moves = repo.moves(_REFLOG_ENTRIES)
    if moves and moves[0].new == head and moves[0].note.startswith("agentx: "):
        return ""  # the engine moved it last
    best, found = last_recorded(repo, head).seq, ""
    for candidate in dict.fromkeys(commit for move in moves for commit in (move.new, move.old) if commit):
        with contextlib.suppress(ObjectDamaged):
            info = repo.info(candidate)
            if is_ours(info) and commit_message.through(info.trailers) > best:
                best, found = commit_message.through(info.trailers), candidate
    return found


def roll_forward(
    events: Sequence[Event],
    committed: int,
    tracked: Callable[[str], TreeEntry | None],
    repo: GitRepository,
    artifacts: Artifacts,
    *,
    power_cut: bool,
) -> RolledForward:
    """Bring the working files to the state that some events record.

    A file that is as one of the events found it gets the content of the last event. A file that has that
    content already is done. Otherwise the user changed it since, and their version is kept.

    Args:
        events: The events whose files may not be in place.
        committed: The last event that is in a commit; only a power cut can undo the files of those.
        tracked: Returns the current recorded entry of a file.
        repo: Holds the contents.
        artifacts: The working files.
        power_cut: Whether the machine went down: a name may be lost, and a file may be truncated or hold
            zeros.
    """
    touching: dict[str, list[tuple[Event, FileChange]]] = {}
    for event in events:
        for made in changes_of(event):
            touching.setdefault(made.path, []).append((event, made))
    reverted: list[WriteReverted] = []
    edited: list[str] = []
    for path, steps in touching.items():
        wanted = tracked(path)
        for event, made in reversed(steps):
            done = event.seq <= committed
            before = {step.before for _, step in steps} if power_cut or not done else set()
            given = {step.after for _, step in steps if step.after} if power_cut else set()
            try:
                if not _finish(path, wanted, before, given, repo, artifacts):
                    edited.append(path)
            except (AgentXError, OSError) as error:
                if not done:  # restore the file's previous content
                    reverted.append(WriteReverted(event=event.seq, path=path, reason=str(error)))
                    mode = known.mode if (known := tracked(path)) else REGULAR
                    wanted = TreeEntry(made.before, mode) if made.before else None
                    continue
            break
    for folder in {(artifacts.root / path).parent for path in touching}:
        for leftover in nofollow.listed(folder, TEMPORARY_PREFIX):
            nofollow.remove(leftover, missing_ok=True)
    return RolledForward(tuple(reverted), tuple(edited))


def reverted(events: Sequence[Event], failed: Mapping[str, str]) -> list[WriteReverted]:
    """Return the events that revert files whose announced content could not be written.

    Args:
        events: The events that announced the changes.
        failed: Why each file could not be written, by path.
    """
    return [
        WriteReverted(event=event.seq, path=made.path, reason=failed[made.path])
        for event in events
        for made in changes_of(event)
        if made.path in failed
    ]


def _finish(
    path: str,
    wanted: TreeEntry | None,
    before: Collection[str],
    torn: Collection[str],
    repo: GitRepository,
    artifacts: Artifacts,
) -> bool:
    """Bring one file to its recorded state; return false if the user changed it since.

    Args:
        path: The file.
        wanted: Its recorded entry.
        before: Contents of which one may still be in the file.
        torn: Contents of which a power cut may have left a part in the file.
        repo: Holds the contents.
        artifacts: The working files.
    """
    now = artifacts.identify(path)
    if now == wanted:
        if wanted is not None and not repo.has_blob(wanted.oid):
            repo.write_blob(artifacts.content(path))
        return True
    if (now.oid if now else "") not in before:
        # The wanted content must be readable; an unreadable one among the others proves nothing.
        known = [oid for oid in torn if (wanted and oid == wanted.oid) or repo.has_blob(oid)]
        found = artifacts.content(path) if now and known else b""
        if not now or not any(_is_torn(found, repo.read_blob(oid)) for oid in known):
            return False
    if wanted is None:
        artifacts.remove(path)
        return True
    content = repo.read_blob(wanted.oid)
    executable, link = wanted.mode == EXECUTABLE, wanted.mode == LINK
    artifacts.put(artifacts.prepare(path, content, executable=executable, link=link), path)
    return True


def _is_torn(found: bytes, whole: bytes) -> bool:
    """Return whether a content is a torn copy of another: truncated, or zeros from some point on.

    Such a file holds nothing that the user wrote.
    """
    return len(found) <= len(whole) and whole.startswith(found.rstrip(b"\0"))
