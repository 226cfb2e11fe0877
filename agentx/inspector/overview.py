"""What one workspace amounts to, for the first screen."""

from pathlib import Path
from typing import Any

from agentx.inspector import fleet
from agentx.inspector.access import Grant, short_id
from agentx.inspector.asking import Asked
from agentx.policy import approvals
from agentx.storage.text import encodable, one_line, shorten
from agentx.synthesis.memory.items import is_shown_only
from agentx.synthesis.state.state import PendingCall, State
from agentx.trust.trust import restricted
from agentx.workspace import Workspace

_ARGUMENT = 2_000
"""Characters shown of each argument of a call that waits for approval."""


def listed(grant: Grant, titles: dict[str, str], version: str) -> dict[str, Any]:
    """Return the workspaces that a token opens, and its fleet as one more."""
    found = [
        {"id": name, "name": encodable(root.name), "path": shown(root), "title": titles.get(name, "")}
        for name, root in grant.roots.items()
    ]
    if grant.fleet:
        name, where = f"Fleet {grant.fleet.tenant}", encodable(grant.fleet.remote)
        found.append({"id": fleet.ID, "name": name, "path": where, "title": ""})
    return {"workspaces": found, "version": version}


def shown(path: Path) -> str:
    """Return a path as text that JSON can hold."""
    return encodable(str(path))


def overview(ws: Workspace, _asked: Asked) -> dict[str, Any]:
    """Return the counts of a workspace, and what waits for its user."""
    engine, state = ws.engine, ws.engine.snapshot()
    actors, first_at, runs = engine.links.at(
        state, lambda index: (dict(index.actors), index.first_at, len(index.runs))
    )
    memory: dict[str, int] = {}
    for item in state.active():
        memory[item.kind] = memory.get(item.kind, 0) + 1
    return {
        "id": short_id(ws.root),
        "title": state.title,
        "path": shown(ws.root),
        "seq": state.seq,
        "head": engine.git.head,
        "first_at": first_at,
        "last_at": state.at,
        "counts": state.counts,
        "actors": actors,
        "runs": {"active": sum(run.status == "RUNNING" for run in state.runs), "total": runs},
        "problems": memory.get("hot_issue", 0),
        "waiting": [_call(call) for call in approvals.waiting(engine)],
        "unknown": [_call(call) for call in state.pending.values() if not call.awaits_approval],
        "candidates": sum(1 for _ in state.active(status="candidate")),
        "memory": memory,
        "shown_only": sum(is_shown_only(item) for item in state.active("constraint", "rule")),
        "restricted": ws.restricted,
        "read_only": read_only(ws),
        "health": health(ws, state),
    }


def read_only(ws: Workspace) -> str:
    """Return why nothing can be changed from the page; empty if something can."""
    if ws.restricted:
        return f"{restricted(ws.restricted)}. Review it with `agentx trust`; until then nothing changes here."
    return ws.engine.write_path.read_only


def _call(call: PendingCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "seq": call.seq,
        "tool": call.tool,
        "run": call.run,
        "arguments": {name: encodable(str(value))[:_ARGUMENT] for name, value in call.arguments.items()},
        "reason": call.reason,
    }


def health(ws: Workspace, state: State) -> dict[str, Any]:
    """Return what is wrong with the record."""
    damage = ws.engine.write_path.log.damage
    return {
        "damage": [f"{one.path}, line {one.line}: {one.reason}" for one in damage[:20]],
        "unsound": ws.engine.health.unsound,
        "unknown_types": state.unknown,
        "notes": [one_line(shorten(note, 60)) for note in ws.engine.write_path.notes[-20:]],
    }
