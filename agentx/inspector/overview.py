"""What one workspace amounts to, for the first screen."""

from pathlib import Path
from typing import Any

import msgspec

from agentx.inspector import fleet
from agentx.inspector.access import Grant, InspectorError, short_id
from agentx.inspector.asking import Asked
from agentx.policy import approvals
from agentx.policy.approval_view import ApprovalView, ShownText, approval_view, heading, pieces, title_of
from agentx.storage.text import clip, encodable, one_line, shorten
from agentx.storage.visible import visible
from agentx.synthesis.memory.items import is_shown_only
from agentx.synthesis.state.state import PendingCall, State
from agentx.trust.trust import restricted
from agentx.workspace import Workspace

_ARGUMENT = 200
"""Characters of each argument in the line of a call that waits; :func:`approval` has all of it."""

_MOST_PIECES = 5_000
"""A page that draws more marks than this one by one stands still; then all of a text is one piece."""


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
        "what": title_of(call),
        "run": call.run,
        "arguments": {name: clip(encodable(str(value)), _ARGUMENT) for name, value in call.arguments.items()},
        "reason": call.reason,
    }


def approval(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return all that a person decides on, in the pieces of which some are marks of what cannot be seen.

    Raises:
        InspectorError: The call does not wait.
    """
    name = asked.text("id")
    call = next((call for call in approvals.waiting(ws.engine) if call.call_id == name), None)
    if call is None:
        raise InspectorError(404, f"The call {name!r} does not wait any more.")
    view = approval_view(ws.engine, call)
    return {
        **msgspec.to_builtins(view),
        "question": visible(view.question),
        "arguments": [_part(view, one) for one in view.arguments],
        "files": [_part(view, one) for one in view.files],
    }


def _part(view: ApprovalView, one: ShownText) -> dict[str, Any]:
    parts = pieces(view, one)
    if len(parts) > _MOST_PIECES:
        parts = [("".join(text for text, _ in parts), False)]
    return {"heading": heading(one), "state": one.state, "pieces": parts}


def health(ws: Workspace, state: State) -> dict[str, Any]:
    """Return what is wrong with the record."""
    damage = ws.engine.write_path.log.damage
    return {
        "damage": [f"{one.path}, line {one.line}: {one.reason}" for one in damage[:20]],
        "unsound": ws.engine.health.unsound,
        "unknown_types": state.unknown,
        "notes": [one_line(shorten(note, 60)) for note in ws.engine.write_path.notes[-20:]],
    }
