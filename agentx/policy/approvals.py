"""Whether a person has decided on a call that waits for them.

The history records what was decided; it does not grant it, for it can come from anybody. An approval counts
where this user's own state directory holds it, or a signed record does, for this call with these arguments.
"""

import json
from typing import Any

from agentx.engine.engine import Engine
from agentx.policy.secret_check import kept_arguments
from agentx.storage.errors import UsageError
from agentx.synthesis.state.state import PendingCall


def decision(engine: Engine, call: PendingCall) -> bool | None:
    """A person's decision on a call; ``None`` where there is none yet, or none that counts here."""
    if not call.approved:
        return call.approved
    recorded = engine.read_body(call.whole)
    try:
        arguments = _arguments(engine, call, recorded)
    except UsageError:
        return True  # it cannot run, and says so when it is tried
    return engine.trust.approved(call.call_id, call.tool, arguments, recorded) or None


def waiting(engine: Engine) -> list[PendingCall]:
    """The calls that wait for a person, oldest first."""
    calls = engine.snapshot().pending.values()
    return [call for call in calls if call.awaits_approval and decision(engine, call) is None]


def grant(engine: Engine, call: PendingCall) -> None:
    """Let a call run as it is, once.

    Raises:
        UsageError: Its arguments cannot be read again.
        StoreUnusable: It cannot be recorded.
    """
    recorded = engine.read_body(call.whole)
    engine.trust.approve(call.call_id, call.tool, _arguments(engine, call, recorded))


def granted(engine: Engine, call: PendingCall) -> dict[str, Any] | None:
    """The arguments with which an approved call may run; ``None`` where the approval does not count here.

    Raises:
        UsageError: They cannot be read again.
    """
    recorded = engine.read_body(call.whole)
    arguments = _arguments(engine, call, recorded)
    return arguments if engine.trust.approved(call.call_id, call.tool, arguments, recorded) else None


def _arguments(engine: Engine, call: PendingCall, recorded: str) -> dict[str, Any]:
    """The arguments that a person saw: kept aside where the record holds them redacted."""
    if kept := kept_arguments(engine, call.call_id, recorded):
        return kept
    try:
        found: dict[str, Any] = json.loads(recorded)
    except ValueError as error:
        raise UsageError(
            f"The arguments of the call {call.call_id} cannot be read again; make a new call."
        ) from error
    return found
