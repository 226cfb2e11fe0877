"""What the user does from the page: recorded as the user's, by the same methods as from the command line."""

from collections.abc import Callable
from typing import Any

import msgspec

from agentx.inspector import events, memory
from agentx.inspector.access import InspectorError
from agentx.inspector.overview import read_only
from agentx.memory.editing import NoSuchItem
from agentx.policy import unknown_outcomes
from agentx.policy.approval_view import NotAsShown
from agentx.storage.events.types import Event
from agentx.storage.text import encodable
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.state.state import State
from agentx.workspace import Workspace

ASKED = "the inspector"
"""How the user was asked, as decisions record it."""


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends.

    Attributes:
        what: A name in :data:`OF_ITEMS` or :data:`OF_CALLS`.
        id: The memory item or the call.
        seq: The last event that the page had seen of it.
        text: The new text of an item.
        reason: The user's reason to retire an item, or for a decision on a call.
        other: The item that is merged into it, or separated from it.
        shown: Digest of the call as the page showed it.
    """

    what: str
    id: str
    seq: int
    text: str = ""
    reason: str = ""
    other: str = ""
    shown: str = ""


OF_ITEMS: dict[str, Callable[[Workspace, Act], MemoryItem]] = {
    "accept": lambda ws, act: ws.review(act.id, accept=True),
    "reject": lambda ws, act: ws.review(act.id, accept=False),
    "edit": lambda ws, act: ws.edit_memory(act.id, encodable(act.text)),
    "retire": lambda ws, act: ws.retire(act.id, reason=encodable(act.reason)),
    "pin": lambda ws, act: ws.pin(act.id),
    "unpin": lambda ws, act: ws.pin(act.id, pinned=False),
    "merge": lambda ws, act: ws.merge(act.id, act.other),
    "unmerge": lambda ws, act: ws.merge(act.id, act.other, undo=True),
}
"""Acts on a memory item, by name."""

OF_CALLS: dict[str, Callable[[Workspace, Act], Event]] = {
    "approve": lambda ws, act: ws.approve(
        act.id, reason=encodable(act.reason), asked=ASKED, shown=_require_shown(act)
    ),
    "deny": lambda ws, act: ws.approve(
        act.id, approved=False, reason=encodable(act.reason), asked=ASKED, shown=act.shown
    ),
    "went_through": lambda ws, act: unknown_outcomes.settle(
        ws.engine, act.id, succeeded=True, reason=encodable(act.reason)
    ),
    "did_not": lambda ws, act: unknown_outcomes.settle(
        ws.engine, act.id, succeeded=False, reason=encodable(act.reason)
    ),
}
"""Acts on a call that waits for approval, or whose outcome is unknown, by name."""


def act(ws: Workspace, body: bytes) -> dict[str, Any]:
    """Carry out what the page asks for, as the user.

    Returns:
        The event that records it, and the item as it is now.

    Raises:
        InspectorError: The request is not an act, the item changed since the page read it, or the workspace
            is shown read-only.
        AgentXError: It cannot be done.
    """
    try:
        asked = msgspec.json.decode(body, type=Act)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InspectorError(400, f"This is not an act: {error}.") from error
    if asked.what not in OF_ITEMS and asked.what not in OF_CALLS:
        known = ", ".join([*OF_ITEMS, *OF_CALLS])
        raise InspectorError(400, f"Unknown act {asked.what[:40]!r}; known: {known}.")
    if why := read_only(ws):
        raise InspectorError(403, f"Nothing was changed. {why}")
    with ws.engine.write_path.exclusive():
        before = ws.engine.snapshot()
        item = None
        if asked.what in OF_ITEMS:
            _require_seen(asked, before)
            item = OF_ITEMS[asked.what](ws, asked)
        else:
            _require_waiting(asked, before)
            try:
                OF_CALLS[asked.what](ws, asked)
            except NotAsShown as error:
                raise InspectorError(409, str(error)) from error
    ws.flush()
    state = ws.engine.snapshot()
    made = next(iter(ws.events(before.seq)), None)
    return {
        "event": events.row(ws, made) if made else None,
        "item": memory.row(item, state) if item else None,
        "seq": state.seq,
    }


def _require_seen(asked: Act, state: State) -> None:
    """Check that the user decides on what they saw.

    Raises:
        InspectorError: An item changed since.
        NoSuchItem: It does not exist.
    """
    for name in filter(None, (asked.id, asked.other)):
        item = state.items.get(name)
        if item is None:
            raise NoSuchItem(f"Unknown memory item {name!r}.")
        if item.changed_seq > asked.seq:
            raise InspectorError(409, f"{name} changed in event {item.changed_seq}: look at it again.")


def _require_shown(asked: Act) -> str:
    """Return the digest of what the user was shown.

    Raises:
        InspectorError: There is none, so nobody can have seen all of the call.
    """
    if not asked.shown:
        raise InspectorError(
            400, "An approval says what was shown: `shown` is the `digest` of `approvals/ID`."
        )
    return asked.shown


def _require_waiting(asked: Act, state: State) -> None:
    """Check that nobody has decided on a call meanwhile.

    Raises:
        InspectorError: It does not wait any more, or another call has its name now.
    """
    call = state.pending.get(asked.id)
    decided = call is not None and call.approved is not None and asked.what in {"approve", "deny"}
    if call is None or call.seq > asked.seq or decided:
        raise InspectorError(409, f"The call {asked.id!r} does not wait any more: look again.")
