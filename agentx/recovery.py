"""What to do after a crash, and after Git commands by a person: nothing that was acknowledged is lost.

Pure of the write path itself: each function takes the parts that it looks at and says what is to be done, or restores
files from a commit.
"""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from agentx import commit_message
from agentx.storage.artifacts import Artifacts, entry_after
from agentx.storage.durable import TEMPORARY_PREFIX, write_file
from agentx.storage.errors import AgentXError
from agentx.storage.events import ArtifactChanged, Event, FileChange, ToolCallExecuted, WriteReverted
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.repository import CommitInfo, GitRepository
from agentx.storage.history import LIVE

_REFLOG_ENTRIES = 20


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


def last_recorded(repo: GitRepository, head: str) -> tuple[int, list[CommitInfo]]:
    """How far the commits hold the log, and the commits on top that are not the engine's, newest first."""
    foreign: list[CommitInfo] = []
    if head:
        for commit in repo.log(head):
            seq = commit_message.through(commit.trailers)
            if seq:
                return seq, foreign
            foreign.append(commit)
    return 0, foreign


def lost_head(repo: GitRepository, head: str) -> str:
    """The engine's commit that the branch was set back from (``git reset``), by the reflog; empty where it was not."""
    for candidate in repo.reflog(_REFLOG_ENTRIES):
        if candidate != head and repo.descends(candidate, head):
            with contextlib.suppress(ObjectDamaged):
                if commit_message.through(repo.info(candidate).trailers):
                    return candidate
    return ""


def restore_log(root: Path, repo: GitRepository, commit: str) -> None:
    """Put the log of a commit back where the working files have less of it."""
    tree = repo.tree_of(commit)
    files = dict(repo.files(repo.subtree(tree, "history"), "history/"))
    live = repo.entry(tree, LIVE)
    if live is not None:
        files[LIVE] = live
    for path, entry in files.items():
        content = repo.read_blob(entry.oid)
        target = root / path
        if not target.exists() or target.read_bytes() != content:
            write_file(target, content)


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
