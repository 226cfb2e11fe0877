"""Whether a pending call has the user's approval, and the arguments that the user saw.

The history records a decision, but does not grant it, because a history can come from anybody. An approval
counts if this user's own state directory or a signed record holds it for this call with these arguments.

The record never holds a secret. So a pending call with one keeps its original arguments beside the record, in
``.agentx/``, encrypted with a key of the user, until it has run or was denied.
"""

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentx.core.cache_dir import CACHE
from agentx.engine.engine import Engine
from agentx.policy import file_policy
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import write_file
from agentx.storage.git.objects import blob_id
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.state.state import PendingCall
from agentx.trust.sealing import seal, unseal

_SETTLED_S = 3_600
"""Seconds after which a call of another process is certainly on record."""


class NotApproved(AgentXError):
    """The user denied the call, or it is off in ``agentx.toml``."""


class ApprovalNeeded(AgentXError):
    """The call waits for approval.

    Attributes:
        call_id: The argument for ``agentx approve``.
    """

    def __init__(self, tool: str, call_id: str, why: str = "") -> None:
        super().__init__(f"{why}{tool} needs approval: `agentx approve {call_id}` (or `--deny`).")
        self.call_id = call_id


def approved_arguments(engine: Engine, tool: str, call_id: str, why: str, actor: str) -> dict[str, Any]:
    """Return the arguments of an approved call: exactly those that the user saw.

    Args:
        engine: The workspace's engine.
        tool: The tool of the call.
        call_id: The ID of a recorded call that needs approval.
        why: Why a flow asks for it; empty if none does.
        actor: Who calls.

    Raises:
        ApprovalNeeded: The user has not decided yet, or not here.
        NotApproved: The user denied the call.
        UsageError: The ID belongs to a call of another tool, or the arguments can no longer be read.
    """
    pending = engine.log.state.pending[call_id]
    if pending.tool != tool:
        raise UsageError(f"The call {call_id} belongs to {pending.tool}, not to {tool}; make a new call.")
    if pending.approved is None:
        raise ApprovalNeeded(tool, call_id, f"{why} " if why else "")
    if not pending.approved:
        reason = pending.reason.strip().rstrip(".") or "no reason was given"
        ruled = file_policy.told(engine, pending.arguments.values(), actor)
        raise NotApproved(f"A person refused {tool}: {reason}. {ruled}".rstrip())
    if (arguments := granted(engine, pending)) is None:
        raise ApprovalNeeded(tool, call_id, "The approval in the history was not given on this machine. ")
    return arguments


def decision(engine: Engine, call: PendingCall) -> bool | None:
    """Return the user's decision on a call; ``None`` if there is none that counts here."""
    if not call.approved:
        return call.approved
    try:
        return True if granted(engine, call) is not None else None
    except UsageError:
        return True  # it cannot run, and fails with an error when it is tried


def waiting(engine: Engine) -> list[PendingCall]:
    """Return the calls that need approval, oldest first."""
    calls = engine.snapshot().pending.values()
    return [call for call in calls if call.awaits_approval and decision(engine, call) is None]


def grant(engine: Engine, call: PendingCall) -> None:
    """Approve a call once, exactly as recorded.

    Raises:
        UsageError: Its arguments can no longer be read.
        StoreUnusable: It cannot be recorded.
    """
    recorded = engine.read_body(call.whole)
    engine.trust.approve(call.call_id, call.tool, _arguments(engine, call, recorded))


def granted(engine: Engine, call: PendingCall) -> dict[str, Any] | None:
    """Return the arguments of an approved call; ``None`` if the approval does not count here.

    Raises:
        UsageError: They can no longer be read.
    """
    recorded = engine.read_body(call.whole)
    arguments = _arguments(engine, call, recorded)
    return arguments if engine.trust.approved(call.call_id, call.tool, arguments, recorded) else None


def holds_secret(engine: Engine, call: PendingCall, recorded: str) -> bool:
    """Return whether a call would run with a secret that the record holds redacted."""
    try:
        return json.dumps(_arguments(engine, call, recorded), default=str) != recorded
    except UsageError:
        return False


def _arguments(engine: Engine, call: PendingCall, recorded: str) -> dict[str, Any]:
    """Return the arguments that the user saw, from the kept copy if the record holds them redacted."""
    with contextlib.suppress(OSError, ValueError):
        sealed = nofollow.read(_place(engine.root, call.call_id))
        kept = json.loads(unseal(engine.settings.state_dir, sealed) or b"")
        if kept and isinstance(kept, dict) and json.dumps(clean_value(kept), default=str) == recorded:
            return kept
    try:
        found: dict[str, Any] = json.loads(recorded)
    except ValueError as error:
        raise UsageError(
            f"The recorded arguments of the call {call.call_id} cannot be read; make a new call."
        ) from error
    return found


# --- its arguments, if the record holds them redacted -------------------------------------------------------


def keep_arguments(engine: Engine, call_id: str, arguments: Mapping[str, Any]) -> None:
    """Keep the arguments of a pending call if the record can hold them only redacted.

    Raises:
        StoreUnusable: This user has no state directory for the key.
    """
    _forget_settled(engine)
    place = _place(engine.root, call_id)
    nofollow.make_directory(place.parent, parents=True)
    content = json.dumps(arguments, default=str).encode("utf-8", "surrogatepass")
    write_file(place, seal(engine.settings.state_dir, content), mode=0o600)


def forget_arguments(root: Path, call_id: str) -> None:
    """Delete the kept arguments of a call that has run or was denied."""
    nofollow.remove(_place(root, call_id), missing_ok=True)


def _forget_settled(engine: Engine) -> None:
    """Delete the arguments of settled calls: denied on another machine, or never recorded after a crash."""
    pending = engine.log.state.pending.values()
    waiting = {_place(engine.root, call.call_id).name for call in pending if call.approved is not False}
    with contextlib.suppress(OSError):
        for kept in nofollow.listed(engine.root / CACHE / "waiting"):
            if kept.name not in waiting and time.time() - nofollow.status(kept).st_mtime > _SETTLED_S:
                nofollow.remove(kept, missing_ok=True)


def _place(root: Path, call_id: str) -> Path:
    return root / CACHE / "waiting" / blob_id(call_id.encode("utf-8", "replace"))
