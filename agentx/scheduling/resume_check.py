"""The heartbeat: a pulse into the run that goes on, so that work which was cut off is taken up again without anybody's word.

A pulse looks at the state alone. Only where a run was cut off in the middle it goes on, under its own id, with its conversation
and all that memory holds; where nothing is to be done no model is opened, no event is recorded, and no token is used.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from agentx.agents.loop import NothingToDo, run_task
from agentx.agents.port import Limits, Observer, RunResult
from agentx.agents.turn import alone
from agentx.storage.files.lock import WorkspaceBusy
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.state.state import State
from agentx.workspace import Workspace

MOST_TRIES = 5
"""So often a run is gone on with; one that is cut off once more waits for a person, so that no fault costs for ever."""

Pulse = Literal["HEARTBEAT_OK", "CONTINUED", "WAITING", "STOPPED", "BUSY"]


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a pulse found, and did.

    Attributes:
        status: ``HEARTBEAT_OK`` (nothing to do), ``CONTINUED`` (a run went on), ``WAITING`` (a call waits for a person's word),
            ``STOPPED`` (a person must say whether it is to go on) or ``BUSY`` (a run is at work).
        said: The same in a sentence.
        run: The run that it is about; empty for none.
        result: How that ended, where it went on.
    """

    status: Pulse
    said: str
    run: str = ""
    result: RunResult | None = None


def beat(
    ws: Workspace,
    model: Callable[[], ModelClient],
    *,
    limits: Limits | None = None,
    observer: Observer | None = None,
) -> Beat:
    """Go on with what was cut off; where nothing was, nothing is done.

    Args:
        ws: The workspace.
        model: Opens the model; called only where a run goes on.
        limits: What the run may use from here on; those of ``agentx.toml`` by default.
        observer: Is told what happens.

    Raises:
        ModelError: No model is configured, or the one that is cannot be opened.
        Restricted: A run was cut off, and the workspace is not trusted.
    """
    found = look(ws.state)
    if found.status != "CONTINUED":
        return found
    try:
        if _is_directed(ws.state):
            with alone(
                ws.engine
            ):  # whose process is gone has its end; what is left of it is the next directed run's
                return look(ws.state)
        ws.engine.trust.require("heartbeat", f"a heartbeat would go on with {found.run}")
        last = ws.state.last_run
        agent = last.agent if last else "main"
        result = run_task(ws, "", model(), limits=limits, observer=observer, agent=agent)
    except WorkspaceBusy:
        return Beat(status="BUSY", said=f"{found.run} is at work.", run=found.run)
    except NothingToDo:  # it ended before it had a conversation
        return Beat(status="HEARTBEAT_OK", said="Nothing is unfinished.")
    return Beat(
        status="CONTINUED", said=f"{result.run} went on: {result.status}.", run=result.run, result=result
    )


def look(state: State) -> Beat:
    """What a pulse would do, by the state alone; ``CONTINUED`` where it would go on, if no other process is at work."""
    last = state.last_run
    if last is None or last.status == "COMPLETED" or (last.directive and last.status != "RUNNING"):
        return Beat(status="HEARTBEAT_OK", said="Nothing is unfinished.")
    waiting = [call for call in state.pending.values() if call.awaits_approval and call.approved is None]
    if last.status == "WAITING" and waiting:
        call = waiting[0]
        return Beat(
            status="WAITING",
            said=f"{last.run} waits for your word on {call.tool}: `agentx approve {call.call_id}`.",
            run=last.run,
        )
    if last.status == "LIMIT_REACHED":
        said = f"{last.run} used up its limits ({last.reason}); `agentx run` goes on."
        return Beat(status="STOPPED", said=said, run=last.run)
    if last.resumed >= MOST_TRIES and last.status != "RUNNING":
        said = f"{last.run} was gone on with {last.resumed} times and is not done ({last.status}); `agentx run` goes on."
        return Beat(status="STOPPED", said=said, run=last.run)
    return Beat(status="CONTINUED", said=f"{last.run} was cut off ({last.status}).", run=last.run)


def _is_directed(state: State) -> bool:
    return state.last_run is not None and state.last_run.directive > 0
