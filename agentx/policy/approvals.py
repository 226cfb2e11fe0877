"""When a call needs the user's approval, and whether it has it.

A call needs approval if the settings name its tool, if a flow that it follows asks for it, or if it would
change a static file or put a secret into a file.

The history records a decision, but does not grant it, because a history can come from anybody. An approval
counts if this user's own state directory or a signed record holds it for this call with these arguments.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentx.engine.engine import Engine
from agentx.policy import file_policy
from agentx.policy.secret_check import SecretRefused, kept_arguments, new_secrets
from agentx.recording.secret_report import tell
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.pipeline_events import FileAmended
from agentx.synthesis.state.state import PendingCall


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


# --- when a call needs it -----------------------------------------------------------------------------------


def is_named(engine: Engine, tool: str) -> bool:
    """Return whether the settings (``tools.approve``) name a tool."""
    return bool(tool) and tool in engine.config.tools.approve


def is_needed(engine: Engine, tool: str, call_id: str, why: str) -> bool:
    """Return whether a call needs approval before it runs.

    Args:
        engine: The workspace's engine.
        tool: The tool of the call.
        call_id: Its ID; a recorded call that waits for approval still needs it.
        why: Why a flow asks for it; empty if none does.
    """
    pending = engine.log.state.pending.get(call_id)
    return bool(why) or is_named(engine, tool) or (pending is not None and pending.awaits_approval)


def why_needed_to_write(
    engine: Engine, contents: Mapping[str, Content | None], amended: Sequence[FileAmended], actor: str
) -> str:
    """Return why a write needs approval: static files that it changes, and secrets; empty if it does not.

    Raises:
        SecretRefused: It would put a secret into a file, and the settings deny that without asking.
    """
    why = file_policy.told(engine, [made.path for made in amended], actor)
    rule = engine.config.secrets.artifacts
    if rule == "allow" or not (found := new_secrets(engine.write_path, contents)):
        return why
    secret = f"The write would put a possible secret into {tell(found)}"
    if rule == "deny":
        raise SecretRefused(
            f"Denied. {secret}. Keep secrets out of files: "
            "read them from the environment (secrets.artifacts)."
        )
    return f"{why} {secret}.".lstrip()


# --- whether it has it --------------------------------------------------------------------------------------


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
