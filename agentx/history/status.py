"""The status of a workspace, and the result of a rebuild from its history."""

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.followed import Upstreams
from agentx.policy.approval_view import ApprovalView, waiting_views
from agentx.storage.events.types import FileChange
from agentx.storage.log.history import Damage
from agentx.storage.progress import Progress
from agentx.synthesis.memory.checks import MODES
from agentx.synthesis.memory.items import CONTRARY, checks_of, is_shown_only
from agentx.synthesis.state.state import State


class FollowedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A followed workspace.

    Attributes:
        name: Its name here.
        source: Where it is.
        rules: Number of its rules that hold here.
        gave_way: Its preferences that do not hold here, and the own demands that are contrary.
        contrary: Its rules that hold although an own demand is contrary, and these.
        commit: The commit that was read; empty if none was.
        event: The last event of that commit.
        read_at: When the commit was read.
        why: Why it cannot be read now; empty if it can.
    """

    name: str
    source: str
    rules: int
    gave_way: dict[str, str] = {}
    contrary: dict[str, str] = {}
    commit: str = ""
    event: int = 0
    read_at: str = ""
    why: str = ""


class WorkspaceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a workspace.

    Attributes:
        digest: Digest of the state; a rebuild gives the same.
        commit: The last commit; ``subject`` is its subject.
        outside: Files that the user changed since the last scan; the changes are recorded now.
        damage: Damaged lines of the history.
        notes: Messages for the user: what was restored, what was left out.
        rules: Rules by how they are enforced: by the mode of their strictest check, or ``shown_only``.
        restricted: Why nothing that the workspace brings along runs; empty if it is trusted.
        followed: The followed workspaces.
        pending: Calls without a result that no person has denied.
        waiting: The calls that wait for a person, with all that they decide on.
    """

    root: str
    title: str
    events: int
    digest: str
    commit: str
    subject: str
    files: int
    active: dict[str, int]
    candidates: int
    pending: tuple[str, ...]
    last_run: str
    outside: tuple[FileChange, ...]
    damage: tuple[Damage, ...]
    notes: tuple[str, ...]
    rules: dict[str, int] = {}
    restricted: str = ""
    followed: tuple[FollowedStatus, ...] = ()
    waiting: tuple[ApprovalView, ...] = ()


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rebuild from the history.

    Attributes:
        state_digest: Digest of the state folded from zero.
        digest_before: Digest of the state in use before; the same, unless there was damage.
        events: Number of folded events.
        chunks: Number of passages in the index.
    """

    state_digest: str
    digest_before: str
    events: int
    chunks: int
    damage: tuple[Damage, ...]


def status(engine: Engine) -> WorkspaceStatus:
    """Return the status of a workspace, after recording the user's edits."""
    write_path = engine.write_path
    outside = () if write_path.read_only else tuple(write_path.edits.scan())
    state = engine.snapshot()
    info = write_path.git.repo.info(write_path.git.head) if write_path.git.head else None
    active: dict[str, int] = {}
    for item in state.active():
        active[item.kind] = active.get(item.kind, 0) + 1
    run, waiting = state.last_run, waiting_views(engine)
    goes_on = (
        run is not None and run.status == "WAITING" and run.cause not in state.held({c.run for c in waiting})
    )
    decided = ", decided" if goes_on else ""
    return WorkspaceStatus(
        root=str(engine.root),
        title=state.title,
        events=state.seq,
        digest=state.digest,
        commit=info.id if info else "",
        subject=info.subject if info else "",
        files=len(write_path.git.manifest()),
        active=active,
        candidates=sum(1 for _ in state.active(status="candidate")),
        pending=tuple(call.call_id for call in state.pending.values() if call.approved is not False),
        last_run=f"{run.run} {run.status}{decided}: {run.task}" if run else "",
        outside=outside,
        damage=tuple(write_path.log.damage),
        notes=tuple(write_path.notes),
        rules=_rules(state),
        restricted=engine.trust.why_restricted(),
        followed=followed(engine.following.current(), state),
        waiting=waiting,
    )


def followed(upstreams: Upstreams, state: State) -> tuple[FollowedStatus, ...]:
    """Return the followed workspaces, with what of them holds beside the rules of a state."""
    merged = upstreams.merged(state)
    found = []
    for one in upstreams.each:
        known, own = one.known, {item.id for item in one.items}
        holding = [item for name, item in merged.state.items.items() if name in own]
        contrary = ((item.id, link) for item in holding for link in item.links)
        found.append(
            FollowedStatus(
                name=one.name,
                source=one.source,
                rules=len(holding),
                gave_way={name: by for name, by in merged.gave_way.items() if name in own},
                contrary={name: link.target for name, link in contrary if link.relation == CONTRARY},
                commit=known.commit if known else "",
                event=known.seq if known else 0,
                read_at=known.read_at if known else "",
                why=one.why,
            )
        )
    return tuple(found)


def _rules(state: State) -> dict[str, int]:
    rules: dict[str, int] = {}
    for item in state.active("constraint", "rule"):
        modes = [check.mode for check in checks_of(item)]
        how = max(modes, key=MODES.index) if modes else "shown_only" if is_shown_only(item) else "elsewhere"
        rules[how] = rules.get(how, 0) + 1
    return rules


def rebuild(engine: Engine, progress: Progress | None = None) -> Rebuilt:
    """Drop every cache and rebuild state and index from the history, without a model."""
    before = engine.snapshot().digest
    damage: list[Damage] = []
    state = engine.write_path.refold(damage.append, progress)
    engine.recaps.clear()
    engine.past_runs.clear()
    engine.links.clear()
    engine.heard.clear()
    engine.acts.clear()
    engine.indexer.rebuild(progress)
    return Rebuilt(
        state_digest=state.digest,
        digest_before=before,
        events=state.seq,
        chunks=engine.indexer.index.count(),
        damage=tuple(damage),
    )
