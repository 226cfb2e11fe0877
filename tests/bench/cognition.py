"""What the cognition loop adds to a message, without a model, when there is much to remember."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from agentx.cognition.agent import CognitiveAgent
from agentx.storage.events.cognition_events import Extracted, Recognized
from agentx.storage.events.types import AgentMessageSent, Draft
from tests.figures import Figure

from .clock import in_turns
from .grown import Fixed, settings, text
from .scale import Scale

_TOGETHER = 8
"""So many memories are recognised in one message, one of them an episode."""

_MESSAGES = 20
"""So many interactions there were before."""


def cognition(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Statements and questions in turn, beside the same ones without the loop."""
    with Workspace.create(scratch / "cognition", settings=settings(scratch)) as ws:
        ws.engine.indexer._open_embedder = lambda: (Fixed(), "")
        _remember(ws, scale.memories)
        ws.settle(120)
        ws.engine.indexer.index.maintain()
        ws.settle(60)
        agent = CognitiveAgent(ws)
        sought: list[float] = []

        def ask(turn: int) -> None:
            agent.answer(_message(2 * turn + 1))
            metrics = agent.last_metrics
            sought.extend([metrics.total_latency_ms] * bool(metrics.activator_trigger_count))

        for turn in range(_MESSAGES):
            agent.answer(_message(-1 - turn))
        taken = in_turns(
            {
                "statement": lambda turn: agent.answer(_message(2 * turn)),
                "said": lambda turn: _plain(ws, _message(2 * turn)),
                "question": ask,
                "asked": lambda turn: _plain(ws, _message(2 * turn + 1)),
            },
            scale.questions,
        )
    messages = [*taken["statement"].clock, *taken["question"].clock]
    beyond = [
        ours - plain
        for ours, plain in zip(messages, [*taken["said"].clock, *taken["asked"].clock], strict=True)
    ]
    beside = ", ".join(f"{name} {one.median_ms:.1f} ms" for name, one in taken.items())
    said = f"what the cognition loop adds to a message without a model, {scale.memories:,} memories, p50, ms"
    promised = (15, 8) if scale.memories >= 10_000 else (None, None)
    value = statistics.median(beyond) * 1e3
    yield Figure("cognition_overhead_p50_ms", said, value, *promised, beside=beside)
    value = statistics.median(messages) * 1e3
    yield Figure("cognition_message_p50_ms", "  a message through all of the loop, p50, ms", value)
    if sought:
        said = "  a question for which memories are fetched, p50, ms"
        beside = f"{len(sought)} of {len(taken['question'].clock)} questions, a search for each sub-query"
        yield Figure("cognition_fetched_p50_ms", said, statistics.median(sought), beside=beside)


def _remember(ws: Workspace, count: int) -> None:
    for number in range(0, count, _TOGETHER):
        said = ws.say(text(number, 60).strip())
        memories = tuple(
            Extracted("L3" if place == 0 else "L2", text(number + place, 120).strip())
            for place in range(_TOGETHER)
        )
        read = Recognized(
            session="before", interaction=1, message=said.seq, input_type="statement", memories=memories
        )
        ws.record(Draft(data=read, actor="agent:cognitive"))


def _message(turn: int) -> str:
    words = text(turn, 50).strip()
    return f"What is the {words}?" if turn % 2 else f"My {words}."


def _plain(ws: Workspace, message: str) -> None:
    """The same message and an answer on record, without the loop: a question is searched for once."""
    ws.say(message)
    hits = ws.search(message, 10, kind="memory") if message.endswith("?") else []
    ws.record(
        Draft(
            data=AgentMessageSent(body=ws.body(hits[0].text if hits else ""), final=True), actor="agent:plain"
        )
    )
