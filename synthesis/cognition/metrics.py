"""Metrics of each interaction, named as in the source's tables, and snapshots of what the modules did."""

from typing import Any, Literal

import msgspec

from agentx.storage.events.cognition_events import InputType, Level, TopicAction

TriggerReason = Literal["", "question", "rule_statement", "empty_buffer_with_session_memories"]


class Metrics(msgspec.Struct, kw_only=True):
    """An agent's ``last_metrics``: every key of the source's tables, latencies in milliseconds.

    Attributes:
        faults: What a module could not do properly, and what was done instead: a model's broken JSON, a
            circle of sub-queries, an empty index.
    """

    recognizer_latency_ms: float = 0.0
    input_type: InputType = "statement"
    recognizer_semantic_memories_count: int = 0
    recognizer_has_episodic: bool = False
    recognizer_utility_updates_count: int = 0
    recognizer_prompt_tokens: int = 0
    recognizer_completion_tokens: int = 0

    decayer_triggered: bool = False
    decayer_trigger_reason: TriggerReason = ""
    decayer_latency_ms: float = 0.0
    decayer_prompt_tokens: int = 0
    decayer_completion_tokens: int = 0
    decayer_status: str = "skipped"

    activator_trigger_count: int = 0
    activator_multi_trigger: bool = False
    activator_latency_ms: float = 0.0
    activator_prompt_tokens: int = 0
    activator_completion_tokens: int = 0
    dag_node_count: int = 0
    dag_edge_count: int = 0

    response_generation_latency_ms: float = 0.0
    response_prompt_tokens: int = 0
    response_completion_tokens: int = 0
    total_latency_ms: float = 0.0

    new_memories_stored: list[str] = msgspec.field(default_factory=list)
    evicted_memory_ids: list[str] = msgspec.field(default_factory=list)
    memory_link_stats: dict[str, int] = msgspec.field(default_factory=lambda: {"created": 0, "total": 0})
    topic_construction_action: TopicAction = "none"
    topic_construction_id: str = ""
    topic_construction_summary: str = ""
    thinking_iterations_used: int = 0
    per_iteration_metrics: list[dict[str, Any]] = msgspec.field(default_factory=list)
    thinking_loop_latency_ms: float = 0.0

    faults: list[str] = msgspec.field(default_factory=list)
    cost_usd: float = 0.0


class ClusterAssessment(msgspec.Struct, frozen=True):
    """How well one topic of the buffer covers a message.

    Attributes:
        topic: Id of the topic item; empty for memories without a topic.
        coverage: Share of the question's words in these memories, weighted by how informative the words are.
        similarity: The best cosine between the question and one of the memories.
    """

    topic: str
    memories: int
    coverage: float
    similarity: float


class DecayerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The Decayer's result: two tiers of uncertainty, from 0 to 1."""

    model_uncertainty: float
    cosine_uncertainty: float
    requires_activation: bool
    missing: tuple[str, ...] = ()
    clusters: tuple[ClusterAssessment, ...] = ()


class QueryNode(msgspec.Struct, frozen=True):
    """A sub-query and what was retrieved for it."""

    id: str
    text: str
    needs: tuple[str, ...] = ()
    retrieved: tuple[str, ...] = ()


class ActivatorSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The Activator's sub-queries in one iteration, and the memories they led to."""

    nodes: tuple[QueryNode, ...] = ()
    retrieved: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()


class BufferedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of the buffer with its scores, each from 0 to 1; the reward is from -1 to 1."""

    id: str
    level: Level
    decay: float
    utility: float
    reward: float
    strength: float
    tokens: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The internal state of an interaction.

    Attributes:
        before: The buffer when the message arrived.
        after: The buffer at the end of the interaction.
        activator: The Activator's work in each iteration that fetched memories.
    """

    before: tuple[BufferedMemory, ...] = ()
    after: tuple[BufferedMemory, ...] = ()
    decayer: tuple[DecayerSnapshot, ...] = ()
    activator: tuple[ActivatorSnapshot, ...] = ()
