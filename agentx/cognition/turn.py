"""One interaction while it runs: its message, the memories that it sees, and what is measured of it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from agentx.cognition import memories
from agentx.cognition.conversation import PastExchanges
from agentx.storage.events.cognition_events import Level
from agentx.storage.index.port import Filter
from agentx.synthesis.cognition.asking import Asked
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.metrics import Metrics
from agentx.synthesis.cognition.prompts import ShownMemory, fitting
from agentx.synthesis.model.port import Usage
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.mind import Mind

if TYPE_CHECKING:
    from agentx.workspace import Workspace

ROLE = "cognitive"
ACTOR = f"agent:{ROLE}"

MOST_NAMED = 128
"""Maximum number of memories in each list of an event, because an event is one line."""


class CognitiveTurn:
    """What the steps of one interaction share.

    Args:
        ws: The workspace.
        config: The configuration of the agent.
        session: The name of the session.
        tally: Figures on what the workspace remembers.
        conversation: The messages of the session.
        message: The user's words.
        seq: Seq of the message.

    Attributes:
        state: The workspace as of the last :meth:`look`; ``mind`` is that of the session.
        number: Number of the interaction in its session, from 1.
        remembers: Whether there were memories when the interaction began.
        linked: Number of links between memories at that time.
        metrics: What is measured; see :meth:`measured`.
        calls: Number of calls of models.
    """

    def __init__(
        self,
        ws: "Workspace",
        config: ExecutorConfig,
        session: str,
        tally: memories.Tally,
        conversation: PastExchanges,
        message: str,
        seq: int,
    ) -> None:
        self.ws, self.config, self.session = ws, config, session
        self.tally, self.conversation = tally, conversation
        self.message, self.seq = message, seq
        self.remembers, self.linked = tally.memories > 0, tally.links
        self.metrics, self.calls = Metrics(), 0
        self._hits: dict[str, tuple[int, Sequence[SearchHit]]] = {}
        self._latencies: dict[str, float] = {}
        self._usage: dict[str, Usage] = {}
        self.look()
        self.number = self.mind.interactions + 1

    # --- memories -------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Copy the current state of workspace and mind; the cost grows with the number of memories."""
        self.state = self.ws.state
        self.mind = self.state.minds.get(self.session, Mind())

    def search(self, text: str) -> Sequence[SearchHit]:
        """Return the items nearest to a text, best first; a text is searched once until something is kept.

        Raises:
            SearchLate: The index did not answer in time.
        """
        seq, hits = self._hits.get(text, (-1, ()))
        if seq != self.state.seq:
            hits = self.ws.engine.search(text, self.config.activation_k, Filter(kinds=("memory",)))
            self._hits[text] = self.state.seq, hits
        return hits

    def buffer(self) -> list[ShownMemory]:
        """Return the current memories of the buffer."""
        return memories.held(self.state, self.mind, self.number, self.config.decay_temperature)

    def remembered(self, name: str) -> ShownMemory:
        """Return the memory with an id, however faded it is."""
        return memories.remembered(self.state.items[name])

    def fitting(self, buffer: Sequence[ShownMemory]) -> tuple[tuple[ShownMemory, ...], str]:
        """Return the least faded memories of the configured levels that fit, and a sentence on the others."""
        return fitting([one for one in buffer if self.included(one.level)], self.config.buffer_tokens)

    def included(self, level: Level) -> bool:
        """Return whether memories of a level are configured to be used in answers."""
        config = self.config
        return {"L1": config.include_l1, "L2": config.include_l2, "L3": config.include_l3}[level]

    # --- measures -------------------------------------------------------------------------------------------

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the duration of a ``with`` body to a latency, by the name of its metric."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._latencies[name] = self._latencies.get(name, 0.0) + (time.monotonic() - start) * 1_000

    def took(self, asked: Asked[Any], module: str) -> None:
        """Count the calls, the usage and the faults of asking a model."""
        self.metrics.faults += asked.faults
        self.metrics.cost_usd += asked.usage.cost_usd
        self.calls += asked.calls
        self._usage[module] = self._usage.get(module, Usage()) + asked.usage

    def measured(self) -> Metrics:
        """Return the metrics with the latencies and the tokens counted so far."""
        tokens = {
            f"{module}_{kind}_tokens": count
            for module, usage in self._usage.items()
            for kind, count in (("prompt", usage.prompt_tokens), ("completion", usage.completion_tokens))
        }
        return msgspec.structs.replace(self.metrics, **self._latencies, **tokens)

    @property
    def usage(self) -> Usage:
        """What all calls of models used."""
        return sum(self._usage.values(), Usage())
