"""The Decayer and the Activator: assess whether a buffer is enough, and fetch what is missing."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from agentx.cognition import memories
from agentx.cognition.memories import Retrieval
from agentx.cognition.turn import MOST_NAMED, CognitiveTurn
from agentx.storage.index.port import Vector
from agentx.synthesis.cognition import uncertainty
from agentx.synthesis.cognition.answers import Conversed
from agentx.synthesis.cognition.curation import Activation, RetrievedMemory, activate, curate
from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery, about, deepen, expand, without_names
from agentx.synthesis.cognition.informative_sentences import Rarity, terms_of
from agentx.synthesis.cognition.metrics import (
    ActivatorSnapshot,
    ClusterAssessment,
    DecayerSnapshot,
    QueryNode,
    TriggerReason,
)
from agentx.synthesis.cognition.prompts import ShownMemory, tokens_of
from agentx.synthesis.cognition.recognizer import Recognition


class Thinking:
    """The thinking loop of one interaction.

    Attributes:
        decayer: What was assessed in each iteration.
        activator: What was fetched in each iteration that fetched.
    """

    def __init__(self, turn: CognitiveTurn) -> None:
        self._turn = turn
        self.decayer: list[DecayerSnapshot] = []
        self.activator: list[ActivatorSnapshot] = []
        self._found: Activation | None = None
        self._graph: QueryGraph | None = None

    @property
    def fetched(self) -> list[str]:
        """The ids of all fetched memories, best first."""
        return [one.id for one in self._found.ranked] if self._found else []

    def trigger(self, found: Recognition, buffer: Sequence[ShownMemory]) -> TriggerReason:
        """Return why the Decayer runs; empty where it does not."""
        if not self._turn.config.max_thinking_iterations:
            return ""
        if found.input_type == "question":
            return "question"
        if found.rule:
            return "rule_statement"
        if not buffer and self._turn.remembers:
            return "empty_buffer_with_session_memories"
        return ""

    def think(
        self,
        buffer: list[ShownMemory],
        reason: TriggerReason,
        most: int,
        judged: Conversed | None = None,
    ) -> list[ShownMemory]:
        """Assess the buffer and fetch what is missing, repeatedly up to a number of iterations.

        The first tier of uncertainty is the model's if it ``judged`` its answer.

        Returns:
            The buffer, the same object if nothing was fetched.
        """
        turn, metrics = self._turn, self._turn.metrics
        metrics.decayer_triggered, metrics.decayer_trigger_reason = True, reason
        with turn.timed("thinking_loop_latency_ms"):
            while metrics.thinking_iterations_used < most:
                metrics.thinking_iterations_used += 1
                looked = self._assess(turn.fitting(buffer)[0], judged)
                self.decayer.append(looked)
                measured = {
                    "iteration": metrics.thinking_iterations_used,
                    "model_uncertainty": looked.model_uncertainty,
                    "cosine_uncertainty": looked.cosine_uncertainty,
                    "requires_activation": looked.requires_activation,
                }
                metrics.per_iteration_metrics.append(measured)
                if not looked.requires_activation:
                    break
                self._graph = self._widened(looked.missing)
                buffer = self._activate(self._graph, buffer)
                measured["nodes"] = len(self._graph.nodes)
                measured["buffer"] = len(buffer)
        metrics.decayer_status = "requires_activation" if self.activator else "sufficient"
        metrics.activator_trigger_count = len(self.activator)
        metrics.activator_multi_trigger = len(self.activator) > 1
        return buffer

    def _assess(self, buffer: Sequence[ShownMemory], judged: Conversed | None) -> DecayerSnapshot:
        """Assess whether the buffer is enough, by both tiers of uncertainty.

        The first tier is the model's judgement, or that of words without a model; the second is the cosine.
        """
        turn = self._turn
        with turn.timed("decayer_latency_ms"):
            asked = without_names(turn.message, turn.tally.people) or turn.message
            # Embedded once, even if the buffer is later cut differently
            whole = [turn.state.items[one.id].text for one in buffer]
            vectors = turn.ws.engine.meanings.of([asked, *whole])
            near = [vectors[text] for text in whole if text in vectors]
            tiers = uncertainty.assess(asked, [one.text for one in buffer], vectors.get(asked), near)
            words, meaning = tiers.scaled
            missing = uncertainty.missing(asked, [one.text for one in buffer])
            if judged is not None:
                words, missing = judged.uncertainty, judged.missing
            return DecayerSnapshot(
                model_uncertainty=round(words, 4),
                cosine_uncertainty=round(meaning, 4),
                requires_activation=min(words, meaning) >= turn.config.uncertainty_threshold,
                missing=missing,
                clusters=tuple(self._clusters(buffer, asked, vectors)),
            )

    def _clusters(
        self, buffer: Sequence[ShownMemory], asked: str, vectors: Mapping[str, Vector]
    ) -> Iterator[ClusterAssessment]:
        """Yield how much of the question each topic of the buffer covers."""
        items = self._turn.state.items
        rarity, wanted = Rarity(one.text for one in buffer), terms_of(asked)
        all_of_it, base = rarity.of(wanted) or 1.0, vectors.get(asked)
        for topic in dict.fromkeys(one.topic for one in buffer):
            own = [one for one in buffer if one.topic == topic]
            held = {term for one in own for term in terms_of(one.text)}
            whole = [items[one.id].text for one in own]
            near = [float(vectors[text] @ base) for text in whole if base is not None and text in vectors]
            share = min(1.0, rarity.of(wanted & held) / all_of_it)
            yield ClusterAssessment(topic, len(own), round(share, 4), round(max(near, default=0.0), 4))

    def _widened(self, missing: Sequence[str]) -> QueryGraph:
        """Return the graph of sub-queries to look up next; cycles are broken and counted as faults."""
        turn = self._turn
        with turn.timed("activator_latency_ms"):
            graph = deepen(self._graph) if self._graph else expand(turn.message, turn.tally.people)
            known = {node.text for node in graph.nodes}
            fresh = (
                SubQuery(id=f"{memories.MISSING}{number}", text=text, why="what the Decayer found missing")
                for number, text in enumerate(missing, start=1)
                if text not in known
            )
            graph = QueryGraph.of((*graph.nodes, *fresh))
            turn.metrics.faults += graph.broken
            return graph

    def _activate(self, graph: QueryGraph, buffer: list[ShownMemory]) -> list[ShownMemory]:
        """Fetch the memories nearest to each sub-query, follow links, and curate and merge the buffer."""
        turn = self._turn
        with turn.timed("activator_latency_ms"):
            retrieval = Retrieval(turn.search, turn.state, turn.tally.places)
            self._found = found = activate(
                graph,
                retrieval.search,
                about(turn.message, turn.tally.people),
                before=self._found,
                k=turn.config.activation_k,
                follow=retrieval.followed if turn.config.enable_memory_linking else None,
            )
            turn.metrics.faults += retrieval.faults
            turn.metrics.dag_node_count = len(graph.nodes)
            turn.metrics.dag_edge_count = graph.edge_count
            results = {name: tuple(one.id for one in hits[:20]) for name, hits in found.results.items()}
            self.activator.append(
                ActivatorSnapshot(
                    nodes=tuple(
                        QueryNode(node.id, node.text, node.needs, results.get(node.id, ()))
                        for node in graph.nodes
                    ),
                    retrieved=tuple(one.id for one in found.ranked)[:MOST_NAMED],
                    followed=tuple(one.id for one in found.followed)[:MOST_NAMED],
                )
            )
            return self._curated(found.ranked, buffer)

    def _curated(self, ranked: Sequence[RetrievedMemory], buffer: list[ShownMemory]) -> list[ShownMemory]:
        """Return the curated memories, most needed first, followed by the rest of the buffer.

        A fetched memory counts as fresh, however faded it was.
        """
        turn = self._turn
        fresh = {one.id: turn.remembered(one.id) for one in ranked}

        def size(found: RetrievedMemory, text: str) -> int:
            return tokens_of(msgspec.structs.replace(fresh[found.id], text=text))

        cut = curate(ranked, turn.message, turn.config.buffer_tokens, size)
        kept = [msgspec.structs.replace(fresh[one.memory.id], text=one.text) for one in cut]
        names = {one.id for one in kept}
        return [*kept, *(one for one in buffer if one.id not in names)]
