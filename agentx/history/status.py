"""How a workspace stands, and what a rebuild from its history gives."""

import msgspec

from agentx.engine.engine import Engine
from agentx.search.indexer import Progress
from agentx.storage.events.types import FileChange
from agentx.storage.log.history import Damage


class WorkspaceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a workspace stands.

    Attributes:
        digest: Digest of the state; a rebuild gives the same.
        commit: The last commit, and its subject.
        outside: Files that people changed since the last look, now on record.
        damage: Lines of the history that are damaged.
        notes: What a person should know: what was restored, what was left out.
        restricted: Why nothing that the workspace brings along runs; empty where it is trusted.
    """

    root: str
    title: str
    events: int
    digest: str
    commit: str
    subject: str
    files: int
    active: dict[str, int]
    proposed: int
    pending: tuple[str, ...]
    last_run: str
    outside: tuple[FileChange, ...]
    damage: tuple[Damage, ...]
    notes: tuple[str, ...]
    restricted: str = ""


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild from the history gave.

    Attributes:
        state_digest: Digest of the state that was folded from zero.
        digest_before: Digest of the state as it was in use; the same, unless there was damage.
        events: Events that were folded.
        chunks: Passages in the index.
    """

    state_digest: str
    digest_before: str
    events: int
    chunks: int
    damage: tuple[Damage, ...]


def status(engine: Engine) -> WorkspaceStatus:
    """How a workspace stands; people's edits are put on record first."""
    write_path = engine.write_path
    outside = () if write_path.read_only else tuple(write_path.scan())
    state = engine.snapshot()
    info = write_path.repo.info(write_path.head) if write_path.head else None
    active: dict[str, int] = {}
    for item in state.active():
        active[item.kind] = active.get(item.kind, 0) + 1
    run = state.last_run
    return WorkspaceStatus(
        root=str(engine.root),
        title=state.title,
        events=state.seq,
        digest=state.digest,
        commit=info.id if info else "",
        subject=info.subject if info else "",
        files=len(write_path.manifest()),
        active=active,
        proposed=sum(1 for _ in state.active(status="proposed")),
        pending=tuple(call.call_id for call in state.pending.values()),
        last_run=f"{run.run} {run.status}: {run.task}" if run else "",
        outside=outside,
        damage=tuple(write_path.damage),
        notes=tuple(write_path.notes),
        restricted=engine.trust.why_restricted(),
    )


def rebuild(engine: Engine, progress: Progress | None = None) -> Rebuilt:
    """Drop every cache and make state and index again from the history, without a model.

    Args:
        engine: The workspace.
        progress: Told what is being done.
    """
    before = engine.snapshot().digest
    damage: list[Damage] = []
    state = engine.write_path.refold(damage.append, progress)
    engine.recaps.clear()
    engine.past_runs.clear()
    engine.indexer.rebuild(progress)
    return Rebuilt(
        state_digest=state.digest,
        digest_before=before,
        events=state.seq,
        chunks=engine.indexer.index.count(),
        damage=tuple(damage),
    )
