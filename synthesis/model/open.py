"""Open a model client by the model's name."""

from agentx.synthesis.model.litellm_client import LiteLLMClient
from agentx.synthesis.model.port import ModelClient, ModelError
from agentx.synthesis.model.scripted import ScriptedModel

SCRIPT = "script:"
"""Prefix of a model that is played from a file."""


def open_model(spec: str, *, api_base: str | None = None, api_key: str | None = None) -> ModelClient:
    """Create the client for a model's name; nothing is imported or called yet.

    Args:
        spec: ``script:FILE`` for recorded turns, otherwise provider and model in litellm's form.
        api_base: Address of the server; default: the provider's own.
        api_key: Key; default: the provider's own variable.

    Raises:
        ModelError: No model is named, or the script cannot be read.

    >>> open_model("anthropic/claude-sonnet-4-5").name
    'anthropic/claude-sonnet-4-5'
    """
    spec = spec.strip()
    if not spec:
        raise ModelError(
            "no model is set; name one with `--model PROVIDER/NAME`, "
            "with `agentx config set model.name PROVIDER/NAME`, "
            "or in AGENTX_MODEL (openai/gpt-4o-mini, anthropic/claude-sonnet-4-5, ollama/llama3.2, …); "
            "`--model script:FILE` plays recorded turns offline"
        )
    if spec.startswith(SCRIPT):
        return ScriptedModel(spec.removeprefix(SCRIPT))
    return LiteLLMClient(spec, api_base=api_base, api_key=api_key)
