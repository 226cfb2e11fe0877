"""What to do after a crash, and after Git commands by a person: nothing that was acknowledged is lost.

Pure of the write path itself: each function takes the parts that it looks at and says what is to be done, or restores
files from a commit.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from agentx import commit_message
from agentx.storage.artifacts import Artifacts, entry_after
from agentx.storage.durable import TEMPORARY_PREFIX, write_file
from agentx.storage.errors import AgentXError
from agentx.storage.events import ArtifactChanged, Event, FileChange, ToolCallExecuted, WriteReverted
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.repository import CommitInfo, GitRepository
from agentx.storage.history import LIVE, ORPHANS, SEGMENTS

_REFLOG_ENTRIES = 100


class RolledForward(msgspec.Struct, frozen=True):
    """What became of the writes that a crash cut off.

    Attributes:
        changes: Writes that are, or now are, on the disk as their events say; to be committed.
        reverted: Writes whose content is lost; the file keeps what it has.
        edited: Files that a person changed since; their state is to be recorded.
    """

    changes: tuple[FileChange, ...]
    reverted: tuple[WriteReverted, ...]
    edited: tuple[str, ...]


class Recorded(msgspec.Struct, frozen=True):
    """The engine's latest commit at or below another.

    Attributes:
        seq: The last event that it holds; 0 where there is none.
        commit: Its id.
        foreign: How many commits on top of it are not the engine's.
    """

    seq: int = 0
    commit: str = ""
    foreign: int = 0


def last_recorded(repo: GitRepository, head: str) -> Recorded:
    """How far the commits hold the log."""
    foreign = 0
    for commit in repo.log(head) if head else ():
        if is_ours(commit):
            return Recorded(commit_message.through(commit.trailers), commit.id, foreign)
        foreign += 1
    return Recorded(foreign=foreign)


def is_ours(commit: CommitInfo) -> bool:
    """Whether the engine made a commit: `git commit --amend` keeps its message, but not who made it."""
    return bool(commit_message.through(commit.trailers)) and commit.committer.endswith(commit_message.HOST)


def lost_commit(repo: GitRepository, head: str) -> str:
    """The engine's commit that the branch was taken from (`git reset`, `git commit --amend`), by the reflog.

    Returns:
        The one that holds most of the log, where it holds more than ``head``; empty where none does.
    """
    best, found = last_recorded(repo, head).seq, ""
    for candidate in dict.fromkeys(repo.reflog(_REFLOG_ENTRIES)):
        with contextlib.suppress(ObjectDamaged):
            info = repo.info(candidate)
            if is_ours(info) and commit_message.through(info.trailers) > best:
                best, found = commit_message.through(info.trailers), candidate
    return found


def restore_log(root: Path, repo: GitRepository, commit: str) -> None:
    """Put the log of a commit back where the working files have less of it."""
    restore_segments(root, repo, commit)
    live = repo.entry(repo.tree_of(commit), LIVE)
    if live is not None:
        _restore(root / LIVE, repo.read_blob(live.oid))


def restore_segments(root: Path, repo: GitRepository, commit: str) -> bool:
    """Put back what lies beside the live log in a commit and never changes: sealed segments and blobs.

    Returns:
        Whether anything was missing or different.
    """
    restored = False
    for path, entry in repo.files(repo.subtree(repo.tree_of(commit), SEGMENTS), f"{SEGMENTS}/"):
        if path != ORPHANS:
            restored |= _restore(root / path, repo.read_blob(entry.oid))
    return restored


def _restore(target: Path, content: bytes) -> bool:
    if target.exists() and target.read_bytes() == content:
        return False
    write_file(target, content)
    return True


def roll_forward(events: Sequence[Event], repo: GitRepository, artifacts: Artifacts) -> RolledForward:
    """Finish the writes that were announced and not committed.

    Where the file still equals ``before``, it gets ``after``; where it equals ``after`` the write was done; otherwise
    a person changed it since, and theirs is kept.
    """
    final: dict[str, tuple[Event, FileChange]] = {}
    for event in events:
        if isinstance(event.data, ToolCallExecuted | ArtifactChanged):
            for made in event.data.changes:
                first = final.get(made.path, (event, made))[1]
                final[made.path] = (event, msgspec.structs.replace(made, before=first.before))
    done: list[FileChange] = []
    reverted: list[WriteReverted] = []
    edited: list[str] = []
    for path, (event, made) in final.items():
        try:
            outcome = _finish(made, repo, artifacts)
        except (AgentXError, OSError) as error:
            reverted.append(WriteReverted(event=event.seq, path=path, reason=str(error)))
            continue
        (done if outcome else edited).append(made if outcome else path)  # type: ignore[arg-type]
    _remove_temporaries(artifacts, final)
    return RolledForward(tuple(done), tuple(reverted), tuple(edited))


def reverted(events: Sequence[Event], failed: Mapping[str, str]) -> list[WriteReverted]:
    """What to record of files that could not be given what their events announced; why, by path, is given."""
    return [
        WriteReverted(event=event.seq, path=made.path, reason=failed[made.path])
        for event in events
        if isinstance(event.data, ToolCallExecuted | ArtifactChanged)
        for made in event.data.changes
        if made.path in failed
    ]


def _finish(made: FileChange, repo: GitRepository, artifacts: Artifacts) -> bool:
    """Bring one file to ``after``; false where a person changed it since."""
    now = artifacts.identify(made.path)
    wanted = entry_after(made)
    if now == wanted:
        if wanted is not None and not repo.has_blob(wanted.oid):
            repo.write_blob(artifacts.content(made.path))
        return True
    if (now.oid if now else "") != made.before:
        return False
    if wanted is None:
        artifacts.remove(made.path)
        return True
    content = repo.read_blob(wanted.oid)
    artifacts.put(
        artifacts.prepare(made.path, content, executable=made.executable, link=made.link), made.path
    )
    artifacts.sync({made.path: made})
    return True


def _remove_temporaries(artifacts: Artifacts, paths: Iterable[str]) -> None:
    for folder in {(artifacts.root / path).parent for path in paths}:
        for leftover in folder.glob(TEMPORARY_PREFIX + "*"):
            leftover.unlink(missing_ok=True)
