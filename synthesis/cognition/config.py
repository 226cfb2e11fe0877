"""The configuration of a cognitive agent, with the names of the source's table."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentx.synthesis.memory.effects import Effect


class ExecutorConfig(BaseModel):
    """The configuration of a cognitive agent: ``[cognition]`` in ``agentx.toml``.

    Attributes:
        max_thinking_iterations: Maximum number of iterations of Decayer and Activator.
        decay_temperature: T of ``R = exp(-t / (S T))``, t in interactions; a higher value slows forgetting.
        purge_decay_threshold: A memory leaves the buffer if its decay score is below this …
        purge_utility_threshold: … and its utility is below this too.
        include_l1: Include topics and procedures in the prompt.
        include_l2: Include knowledge in the prompt.
        include_l3: Include episodes in the prompt.
        enable_memory_linking: Link knowledge and episodes both ways, and follow links.
        reinforce_decay_on_use: Strengthen memories that an answer used.
        decay_reinforcement_boost: The amount by which they are strengthened.
        response_model: The answering model; if it is not set explicitly, the agent's own model.
        response_temperature: Sampling temperature of answers.
        max_interaction_history: Number of interactions (K-entries) that are kept.
        k_recent_context: Number of them that are included in the prompt.
        uncertainty_threshold: Memories are fetched if both tiers reach it; 0.5 is the measured boundary.
        buffer_tokens: Token budget of the buffer in the prompt.
        reflect_on: When a model is asked what to learn from an answer: after feedback that finds fault,
            always, or never.
        activation_k: Number of memories fetched per sub-query.
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
    reflect_on: Annotated[Literal["feedback", "always", "never"], Effect.HARMLESS] = "feedback"
    activation_k: Annotated[int, Effect.HARMLESS] = Field(default=100, ge=1, le=1_000)
    log_intermediate_data: Annotated[bool, Effect.HARMLESS] = False
    log_decay_curves: Annotated[bool, Effect.HARMLESS] = False
    log_activator_triggers: Annotated[bool, Effect.HARMLESS] = False
