"""What is measured of each interaction, by the names of the source's tables, and what the modules saw and did."""

from typing import Any, Literal

import msgspec

from agentx.storage.events.cognition_events import InputType, Level, TopicAction

TriggerReason = Literal["", "question", "rule_statement", "empty_buffer_with_session_memories"]


class Metrics(msgspec.Struct, kw_only=True):
    """``last_metrics`` of an agent: every key of the source's tables, latencies in milliseconds.

    Attributes:
        faults: What a module could not do as it should, and what was done instead: a model's broken JSON, a circle of
            sub-queries, an index that holds nothing.
        cost_usd: What its model calls cost, as far as the provider's price is known.
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
    """How much of what a message asks one topic of the buffer covers.

    Attributes:
        topic: Id of the topic item; empty for memories of none.
        memories: How many of the buffer belong to it.
        coverage: Share of the question's words, weighed by how telling they are, that stand in them.
        similarity: The best cosine between the question and one of them.
    """

    topic: str
    memories: int
    coverage: float
    similarity: float


class DecayerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the Decayer found: two tiers of uncertainty, from 0 to 1."""

    model_uncertainty: float
    cosine_uncertainty: float
    requires_activation: bool
    missing: tuple[str, ...] = ()
    clusters: tuple[ClusterAssessment, ...] = ()


class QueryNode(msgspec.Struct, frozen=True):
    """A sub-query, and what was retrieved for it."""

    id: str
    text: str
    needs: tuple[str, ...] = ()
    retrieved: tuple[str, ...] = ()


class ActivatorSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the Activator did in one iteration: its sub-queries, and the memories that came of them."""

    nodes: tuple[QueryNode, ...] = ()
    retrieved: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()


class BufferedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of the buffer with its scores, each from 0 to 1, the reward from -1 to 1."""

    id: str
    level: Level
    decay: float
    utility: float
    reward: float
    strength: float
    tokens: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What an interaction looked like from inside.

    Attributes:
        before: The buffer when the message came.
        after: The buffer when the interaction was over.
        decayer: What was found in each iteration.
        activator: What was done in each iteration that fetched.
    """

    before: tuple[BufferedMemory, ...] = ()
    after: tuple[BufferedMemory, ...] = ()
    decayer: tuple[DecayerSnapshot, ...] = ()
    activator: tuple[ActivatorSnapshot, ...] = ()
