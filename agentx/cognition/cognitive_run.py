"""``agentx run --agent cognitive``: answer one message with a cognitive agent, as a run of the history."""

import msgspec

from agentx.agents.run_types import RunResult
from agentx.agents.turn import alone
from agentx.cognition.agent import ACTOR, ROLE, CognitiveAgent
from agentx.cognition.overview import MODULES
from agentx.storage.events.types import Draft, RunEnded, RunStarted, RunStatus
from agentx.storage.text import one_line
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.synthesis.state.state import RUN_TEXT
from agentx.workspace import Workspace

NO_MODEL = "deterministic"
"""Recorded as the model's name where there is none."""


def run_cognitive(ws: Workspace, message: str, model: ModelClient | None) -> RunResult:
    """Answer a message as a run, with a model or (``None``) by code alone.

    Raises:
        UsageError: The message is empty.
        WorkspaceBusy: Another run is in progress in this workspace.
    """
    agent = CognitiveAgent(ws, model=model, timeout_s=ws.config.model.timeout_s)
    with alone(ws.engine):
        run = f"r-{ws.state.counts.get('RunStarted', 0) + 1}"
        name = model.name if model else NO_MODEL
        started = RunStarted(task=ws.body(message), agent=ROLE, model=name)
        ws.record(Draft(data=started, actor=ACTOR, run=run))
        try:
            answered = agent.answer(message, run)
        except BaseException as error:
            status: RunStatus = "INTERRUPTED" if isinstance(error, KeyboardInterrupt) else "FAILED"
            reason = one_line(str(error) or type(error).__name__)[:RUN_TEXT]
            ws.record(Draft(data=RunEnded(status=status, reason=reason), actor=ACTOR, run=run))
            raise
        metrics = msgspec.structs.asdict(answered.metrics)
        usage = Usage(
            sum(metrics[f"{module}_prompt_tokens"] for module in MODULES),
            sum(metrics[f"{module}_completion_tokens"] for module in MODULES),
            answered.metrics.cost_usd,
        )
        ended = RunEnded(
            status="COMPLETED",
            summary=one_line(answered.text)[:RUN_TEXT],
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usage.cost_usd,
        )
        ws.record(Draft(data=ended, actor=ACTOR, run=run))
        ws.flush()
    return RunResult(run=run, status="COMPLETED", answer=answered.text, usage=usage)
