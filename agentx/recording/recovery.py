"""What to do after a crash, and after Git commands by a person: nothing that was acknowledged is lost.

Pure of the write path itself: each function takes the parts that it looks at and says what is to be done.
For a damaged log see :mod:`agentx.recording.heal_log`.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
    """What became of the writes that a crash cut off.

    Attributes:
        reverted: Writes whose content is lost; the file keeps what it has.
        edited: Files that a person changed since; their state is to be recorded.
    """

    reverted: tuple[WriteReverted, ...]
    edited: tuple[str, ...]


class Recorded(msgspec.Struct, frozen=True):
    """The engine's latest commit at or below another.

    Attributes:
        seq: The last event that it holds; 0 where there is none.
        commit: Its id.
        foreign: How many commits on top of it are a person's.
        latest: The engine's latest commit, which may hold a healed log or settings and no new event.
    """

    seq: int = 0
    commit: str = ""
    foreign: int = 0
    latest: str = ""


def last_recorded(repo: GitRepository, head: str) -> Recorded:
    """How far the commits hold the log."""
    return find_recorded(lambda oid: repo.info(oid) if repo.has_commit(oid) else None, head)


def find_recorded(read: Callable[[str], CommitInfo | None], head: str) -> Recorded:
    """Find the engine's latest commit at or below another; of a merge, on the side that holds more of the log.

    Args:
        read: Reads a commit; gives ``None`` for one that is not there, as in a shallow clone.
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
    """Whether the engine made a commit: `git commit --amend` keeps its message, but not who made it."""
    return bool(commit_message.through(commit.trailers)) and commit.committer.endswith(HOST)


def lost_commit(repo: GitRepository, head: str) -> str:
    """The engine's commit that the branch was taken from (`git reset`, `git commit --amend`), by the reflog.

    Returns:
        The one that holds most of the log, where it holds more than ``head``; empty where none does.
    """
    moves = repo.moves(_REFLOG_ENTRIES)
    if moves and moves[0].new == head and moves[0].note.startswith("agentx: "):
        return ""  # the engine was the last to move it
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
    """Bring the working files to what some events say.

    Where a file is as one of the events found it, it gets what the last of them made of it; where it has that, the
    write was done; otherwise a person changed it since, and theirs is kept.

    Args:
        events: The events whose files may not be in place.
        committed: Up to this one they stand in a commit; only a power cut takes their files back.
        tracked: What the record says of a file now.
        repo: Has the contents.
        artifacts: The working files.
        power_cut: Whether the machine went down: a name may be lost, and a file may be cut off or hold zeros.
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
                if not done:  # the file is to be what it was before
                    reverted.append(WriteReverted(event=event.seq, path=path, reason=str(error)))
                    wanted = _entry_before(made, tracked(path))
                    continue
            break
    _remove_temporaries(artifacts, touching)
    return RolledForward(tuple(reverted), tuple(edited))


def _entry_before(made: FileChange, known: TreeEntry | None) -> TreeEntry | None:
    """What a change found; its mode is taken for that of the file as it is known."""
    return TreeEntry(made.before, known.mode if known else REGULAR) if made.before else None


def reverted(events: Sequence[Event], failed: Mapping[str, str]) -> list[WriteReverted]:
    """What to record of files that could not be given what their events announced; why, by path, is given."""
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
    """Bring one file to what the record says; false where a person changed it since.

    Args:
        path: The file.
        wanted: What the record says of it.
        before: Contents of which one may be in the file still.
        torn: Contents of which a power cut may have left a part in the file.
        repo: Has the contents.
        artifacts: The working files.
    """
    now = artifacts.identify(path)
    if now == wanted:
        if wanted is not None and not repo.has_blob(wanted.oid):
            repo.write_blob(artifacts.content(path))
        return True
    if (now.oid if now else "") not in before:
        # What is wanted must be readable; of the others, one that is not can tell nothing.
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
    """Whether a content is a part of another one: cut off, or zeros from somewhere on. Nobody's words are in it."""
    return len(found) <= len(whole) and whole.startswith(found.rstrip(b"\0"))


def _remove_temporaries(artifacts: Artifacts, paths: Iterable[str]) -> None:
    for folder in {(artifacts.root / path).parent for path in paths}:
        for leftover in nofollow.listed(folder, TEMPORARY_PREFIX):
            nofollow.remove(leftover, missing_ok=True)
