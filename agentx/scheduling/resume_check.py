"""The heartbeat: resumes an interrupted run without user action.

A pulse looks at the state alone. It resumes a run only if that run was cut off, under the same ID, with its
conversation and everything in memory. If there is nothing to do, no model is opened, no event is recorded and
no token is used.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from agentx.agents.loop import NothingToDo, run_task
from agentx.agents.run_types import Limits, Observer, RunResult
from agentx.agents.turn import alone
from agentx.storage.files.lock import WorkspaceBusy
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.state.state import PendingCall, State
from agentx.workspace import Workspace

MOST_TRIES = 5
"""Maximum number of automatic resumes of a run; after that it waits for the user, so that a fault does not
cost for ever."""

Pulse = Literal["HEARTBEAT_OK", "CONTINUED", "WAITING", "STOPPED", "BUSY"]


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a pulse found and did.

    Attributes:
        status: ``HEARTBEAT_OK`` (nothing to do), ``CONTINUED`` (a run was resumed), ``WAITING`` (a call needs
            approval), ``STOPPED`` (the user must decide whether to resume) or ``BUSY`` (a run is in
            progress).
        said: The same in a sentence.
        run: The run that this is about; empty for none.
        result: The result of the resumed run, if any.
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
    """Resume an interrupted run, if any; only then is the model opened.

    The limits hold for the rest of the run; those of ``agentx.toml`` by default.

    Raises:
        ModelError: No model is configured, or the configured one cannot be opened.
        Restricted: A run was cut off, and the workspace is not trusted.
    """
    found = look(ws.state)
    if found.status != "CONTINUED":
        return found
    try:
        last = ws.state.unfinished_run(_undecided(ws.state))
        if last and last.directive:
            # Marks the run of a dead process as ended; the next directed run takes up what is left of it.
            with alone(ws.engine):
                return look(ws.state)
        ws.engine.trust.require("heartbeat", f"a heartbeat would resume {found.run}")
        agent = last.agent if last else "main"
        result = run_task(ws, "", model(), limits=limits, observer=observer, agent=agent)
    except WorkspaceBusy:
        return Beat(status="BUSY", said=f"{found.run} is running.", run=found.run)
    except NothingToDo:  # the run ended before it had a conversation
        return Beat(status="HEARTBEAT_OK", said="Nothing is unfinished.")
    return Beat(
        status="CONTINUED", said=f"{result.run} was resumed: {result.status}.", run=result.run, result=result
    )


def look(state: State) -> Beat:
    """Return what a pulse would do, from the state alone.

    ``CONTINUED`` means that it would resume a run if no other process is working.
    """
    last = state.unfinished_run(_undecided(state))
    if last is None or last.status == "COMPLETED" or (last.directive and last.status != "RUNNING"):
        return Beat(status="HEARTBEAT_OK", said="Nothing is unfinished.")
    held = state.held(_undecided(state))
    if last.status == "WAITING" and last.cause in held:
        runs = {run.run for run in state.runs if run.cause == last.cause}
        call = next(call for call in _waiting(state) if call.run in runs)
        return Beat(
            status="WAITING",
            said=f"{last.run} is waiting for your approval of {call.tool}: `agentx approve {call.call_id}`.",
            run=last.run,
        )
    if last.status == "LIMIT_REACHED":
        said = f"{last.run} reached its limits ({last.reason}); `agentx run` resumes it."
        return Beat(status="STOPPED", said=said, run=last.run)
    if last.resumed >= MOST_TRIES and last.status != "RUNNING":
        said = (
            f"{last.run} was resumed {last.resumed} times and is not done ({last.status}); `agentx run` "
            "resumes it."
        )
        return Beat(status="STOPPED", said=said, run=last.run)
    return Beat(status="CONTINUED", said=f"{last.run} was interrupted ({last.status}).", run=last.run)


def _waiting(state: State) -> list[PendingCall]:
    return [call for call in state.pending.values() if call.awaits_approval and call.approved is None]


def _undecided(state: State) -> set[str]:
    return {call.run for call in _waiting(state)}
