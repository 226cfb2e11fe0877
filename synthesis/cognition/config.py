"""What a cognitive agent can be told, by the names of the source's table."""

import msgspec


class ExecutorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of a cognitive agent.

    Attributes:
        max_thinking_iterations: Times round the loop of Decayer and Activator, at most.
        decay_temperature: T of ``R = exp(-t / (S T))``, t in interactions; a higher one lets memories fade more slowly.
        purge_decay_threshold: A memory whose decay score is below this may leave the buffer …
        purge_utility_threshold: … and does where its utility is below this too.
        include_l1: Topics and procedures stand in the prompt.
        include_l2: What is known stands in the prompt.
        include_l3: What happened stands in the prompt.
        enable_memory_linking: What is known and what happened is linked both ways, and links are followed.
        reinforce_decay_on_use: Memories that an answer used grow stronger.
        decay_reinforcement_boost: By so much.
        response_model: Who answers; that of the workspace where it is empty or not reachable by a key.
        response_temperature: How freely it answers.
        max_interaction_history: Interactions (K-entries) that are kept at hand.
        k_recent_context: Of them, so many stand in the prompt.
        uncertainty_threshold: Above this a tier is uncertain; memories are fetched only where both are.
        buffer_tokens: What the buffer may take of the prompt.
        activation_k: So many memories are fetched for each sub-query.
        log_intermediate_data: Write ``intermediate_<run_id>.json``.
        log_decay_curves: Write the decay of each memory.
        log_activator_triggers: Write what triggered activation.
    """

    max_thinking_iterations: int = 2
    decay_temperature: float = 10.0
    purge_decay_threshold: float = 0.1
    purge_utility_threshold: float = 0.2
    include_l1: bool = True
    include_l2: bool = True
    include_l3: bool = True
    enable_memory_linking: bool = True
    reinforce_decay_on_use: bool = True
    decay_reinforcement_boost: float = 0.1
    response_model: str = "gpt-4.1-mini"
    response_temperature: float = 0.7
    max_interaction_history: int = 10
    k_recent_context: int = 10
    uncertainty_threshold: float = 0.5
    buffer_tokens: int = 2_000
    activation_k: int = 10
    log_intermediate_data: bool = False
    log_decay_curves: bool = False
    log_activator_triggers: bool = False
