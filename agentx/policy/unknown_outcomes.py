"""Calls whose outcome is unknown: they began, and the process ended before it could say how. A person who looked says it."""

from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, Event, ToolCallExecuted
from agentx.synthesis.learning.auditing import unsettled
from agentx.synthesis.state.state import PendingCall

WENT_THROUGH = "A person looked: it went through."
DID_NOT = "A person looked: it did not go through."


def unknown(engine: Engine) -> list[PendingCall]:
    """The calls whose outcome nobody knows, oldest first."""
    return list(unsettled(engine.snapshot()))


def settle(engine: Engine, call_id: str, *, succeeded: bool, reason: str = "") -> Event:
    """Put on record what a person found out about a call; from then on it counts as any other.

    Raises:
        UsageError: The outcome of no such call is unknown.
    """
    with engine.write_path.exclusive():
        call = next((one for one in unknown(engine) if one.call_id == call_id), None)
        if call is None:
            raise UsageError(f"There is no call {call_id!r} whose outcome is unknown; see `agentx status`.")
        said = " ".join(filter(None, (WENT_THROUGH if succeeded else DID_NOT, reason)))
        done = ToolCallExecuted(
            call_id=call_id,
            tool=call.tool,
            status="SUCCEEDED" if succeeded else "FAILED",
            arguments=call.arguments,
            output=engine.write_path.body(said),
        )
        draft = Draft(data=done, actor=engine.settings.actor, run=call.run, cause=call.seq)
        (event,) = engine.write_path.record([draft])
        return event
