"""Decisions of the user on pending calls.

The history records a decision, but does not grant it, because a history can come from anybody. An approval
counts if this user's own state directory or a signed record holds it for this call with these arguments.
"""

import json
from typing import Any

from agentx.engine.engine import Engine
from agentx.policy.secret_check import kept_arguments
from agentx.storage.errors import UsageError
from agentx.synthesis.state.state import PendingCall


def decision(engine: Engine, call: PendingCall) -> bool | None:
    """Return the user's decision on a call; ``None`` if there is none that counts here."""
    if not call.approved:
        return call.approved
    recorded = engine.read_body(call.whole)
    try:
        arguments = _arguments(engine, call, recorded)
    except UsageError:
        return True  # it cannot run, and fails with an error when it is tried
    return engine.trust.approved(call.call_id, call.tool, arguments, recorded) or None


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


def _arguments(engine: Engine, call: PendingCall, recorded: str) -> dict[str, Any]:
    """Return the arguments that the user saw, from the kept copy if the record holds them redacted."""
    if kept := kept_arguments(engine, call.call_id, recorded):
        return kept
    try:
        found: dict[str, Any] = json.loads(recorded)
    except ValueError as error:
        raise UsageError(
            f"The recorded arguments of the call {call.call_id} cannot be read; make a new call."
        ) from error
    return found
