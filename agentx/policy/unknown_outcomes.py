"""Calls whose outcome is unknown because the process ended first; the user checks and settles them."""

from collections.abc import Sequence

from agentx.engine.done_acts import retraction
from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.storage.errors import UsageError
from agentx.storage.events.act_events import ActDone, ActRetracted
from agentx.storage.events.types import Draft, Event, ToolCallExecuted, ToolCallRequested
from agentx.synthesis.directing.acts import KeyedAct
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
        if not succeeded:
            _take_back(engine, call, reason)
        return end_call(engine, call, said, succeeded=succeeded, actor=engine.settings.actor)


def settle_acts(
    engine: Engine, call: PendingCall, acts: Sequence[KeyedAct], *, succeeded: bool, reason: str = ""
) -> Event:
    """Record the outcome of some acts of a call that the user checked; its other acts stay unknown.

    The call is announced again with the other acts. The caller holds the workspace's lock.

    Args:
        engine: The workspace.
        call: The call.
        acts: Those of its acts whose outcome is known now.
        succeeded: Whether they were done.
        reason: The reason, in the user's words.
    """
    known = {act.id for act in acts}
    left = [act for act in engine.acts.begun_by(call) if act.id not in known]
    if not left:
        return settle(engine, call.call_id, succeeded=succeeded, reason=reason)
    actor = engine.settings.actor
    if succeeded:
        drafts = engine.acts.drafts(call.tool, acts, actor=actor, run=call.run, call_id=call.call_id)
    else:
        drafts = _taken_back(engine, call, acts, reason)
        said = ActRetracted(name=call.tool, done=call.seq, reason=reason)
        drafts = drafts or [Draft(data=said, actor=actor, run=call.run, cause=call.seq)]
    again = ToolCallRequested(
        call_id=call.call_id,
        tool=call.tool,
        arguments=call.arguments,
        whole=call.whole,
        acts=engine.acts.announced(left),
    )
    drafts.append(Draft(data=again, actor=actor, run=call.run, cause=call.seq))
    return engine.write_path.record(drafts)[0]


def announcement(engine: Engine, call: PendingCall) -> Event | None:
    """Return the event that announced a call before it ran, whatever of it was settled since."""
    event = event_at(engine.log, call.seq)
    while event is not None and event.cause:
        before = event_at(engine.log, event.cause)
        if before is None or not isinstance(before.data, ToolCallRequested):
            break
        event = before
    return event


def _take_back(engine: Engine, call: PendingCall, reason: str) -> None:
    drafts = _taken_back(engine, call, engine.acts.begun_by(call), reason)
    if drafts:
        engine.write_path.record(drafts)


def _taken_back(engine: Engine, call: PendingCall, acts: Sequence[KeyedAct], reason: str) -> list[Draft]:
    """Return events that take back the acts of a call on record although its result is not: a torn write."""
    found = [engine.acts.find(act.id)[0] for act in acts]
    return [
        Draft(
            data=ActRetracted(name=call.tool, done=done.seq, reason=reason),
            actor=engine.settings.actor,
            cause=done.seq,
            key=retraction(done.key),
        )
        for done in found
        if done is not None and isinstance(done.data, ActDone) and done.data.call_id == call.call_id
    ]


def end_call(engine: Engine, call: PendingCall, said: str, *, succeeded: bool, actor: str) -> Event:
    """Record the outcome of an announced call with what it has done; the caller holds the workspace's lock.

    Args:
        engine: The workspace.
        call: The call.
        said: Its output.
        succeeded: Whether it has done its acts.
        actor: Who says so.
    """
    done = ToolCallExecuted(
        call_id=call.call_id,
        tool=call.tool,
        status="SUCCEEDED" if succeeded else "FAILED",
        arguments=call.arguments,
        output=engine.write_path.body(said),
    )
    begun = engine.acts.begun_by(call) if succeeded else ()
    acts = engine.acts.drafts(call.tool, begun, actor=actor, run=call.run, call_id=call.call_id)
    draft = Draft(data=done, actor=actor, run=call.run, cause=call.seq)
    return engine.write_path.record([*acts, draft])[-1]
