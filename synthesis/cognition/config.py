"""What a cognitive agent can be told, by the names of the source's table."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agentx.synthesis.memory.effects import Effect


class ExecutorConfig(BaseModel):
    """The configuration of a cognitive agent: ``[cognition]`` in ``agentx.toml``.

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
        response_model: Who answers, where it is set; the model of the workspace where it is not.
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

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_thinking_iterations: Annotated[int, Effect.HARMLESS] = Field(default=2, ge=0, le=10)
    decay_temperature: Annotated[float, Effect.HARMLESS] = Field(default=10.0, gt=0)
    purge_decay_threshold: Annotated[float, Effect.HARMLESS] = Field(default=0.1, ge=0, le=1)
    purge_utility_threshold: Annotated[float, Effect.HARMLESS] = Field(default=0.2, ge=0, le=1)
    include_l1: Annotated[bool, Effect.HARMLESS] = True
    include_l2: Annotated[bool, Effect.HARMLESS] = True
    include_l3: Annotated[bool, Effect.HARMLESS] = True
    enable_memory_linking: Annotated[bool, Effect.HARMLESS] = True
    reinforce_decay_on_use: Annotated[bool, Effect.HARMLESS] = True
    decay_reinforcement_boost: Annotated[float, Effect.HARMLESS] = Field(default=0.1, ge=0)
    response_model: Annotated[str, Effect.CALLS] = "gpt-4.1-mini"
    response_temperature: Annotated[float, Effect.HARMLESS] = Field(default=0.7, ge=0, le=2)
    max_interaction_history: Annotated[int, Effect.HARMLESS] = Field(default=10, ge=0, le=50)
    k_recent_context: Annotated[int, Effect.HARMLESS] = Field(default=10, ge=0, le=50)
    uncertainty_threshold: Annotated[float, Effect.HARMLESS] = Field(default=0.5, ge=0, le=1)
    buffer_tokens: Annotated[int, Effect.HARMLESS] = Field(default=2_000, gt=0)
    activation_k: Annotated[int, Effect.HARMLESS] = Field(default=100, ge=1, le=1_000)
    log_intermediate_data: Annotated[bool, Effect.HARMLESS] = False
    log_decay_curves: Annotated[bool, Effect.HARMLESS] = False
    log_activator_triggers: Annotated[bool, Effect.HARMLESS] = False
