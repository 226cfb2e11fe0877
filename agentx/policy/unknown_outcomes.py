"""Calls whose outcome is unknown because the process ended first; the user checks and settles them."""

from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Draft, Event, ToolCallExecuted
from agentx.synthesis.learning.auditing import unsettled
from agentx.synthesis.state.state import PendingCall

WENT_THROUGH = "A person looked: it went through."
DID_NOT = "A person looked: it did not go through."


def unknown(engine: Engine) -> list[PendingCall]:
    """Return the calls whose outcome is unknown, oldest first."""
    return list(unsettled(engine.snapshot()))


def settle(engine: Engine, call_id: str, *, succeeded: bool, reason: str = "") -> Event:
    """Record the outcome of a call that the user checked; from then on it counts like any other.

    Raises:
        UsageError: No call of that ID has an unknown outcome.
    """
    with engine.write_path.exclusive():
        call = next((one for one in unknown(engine) if one.call_id == call_id), None)
        if call is None:
            raise UsageError(f"No call {call_id!r} has an unknown outcome; `agentx status` lists them.")
        said = " ".join(filter(None, (WENT_THROUGH if succeeded else DID_NOT, reason)))
        done = ToolCallExecuted(
            call_id=call_id,
            tool=call.tool,
            status="SUCCEEDED" if succeeded else "FAILED",
            arguments=call.arguments,
            output=engine.write_path.body(said),
        )
        actor = engine.settings.actor
        acts = engine.acts.drafts(
            call.tool,
            engine.acts.begun_by(call) if succeeded else (),
            actor=actor,
            run=call.run,
            call_id=call_id,
        )
        draft = Draft(data=done, actor=actor, run=call.run, cause=call.seq)
        return engine.write_path.record([*acts, draft])[-1]
