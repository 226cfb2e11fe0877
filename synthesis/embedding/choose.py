"""Open the embedder that a setting names."""

from collections.abc import Callable
from pathlib import Path

from agentx.storage.errors import UsageError
from agentx.storage.extras import EMBEDDING
from agentx.synthesis.embedding.hosted import EmbedTexts, HostedEmbedder
from agentx.synthesis.embedding.install import is_whole, minilm_folder
from agentx.synthesis.embedding.minilm import MiniLM
from agentx.synthesis.embedding.port import Embedder, ModelUnavailable

HOSTED_PREFIX = "litellm:"
"""Prefix of the name of a hosted model."""


def open_embedder(
    spec: str, cache_dir: Path, embed_hosted: Callable[[str], EmbedTexts] | None = None
) -> Embedder | None:
    """Return the embedder that a setting names; nothing is loaded, fetched or called until its first use.

    Args:
        spec: ``none``, ``minilm`` or ``litellm:<model>``.
        cache_dir: The user's cache directory of this project.
        embed_hosted: For a hosted model: returns the function that calls the model with the given name.

    Returns:
        The embedder, or ``None`` for lexical search.

    Raises:
        ModelUnavailable: MiniLM or its extra is not installed, MiniLM was changed, or hosted models cannot be
            called here.
        UsageError: No such embedder.

    >>> open_embedder("none", Path("/nowhere")) is None
    True
    """
    if spec == "none":
        return None
    if spec == "minilm":
        if EMBEDDING.missing():
            raise ModelUnavailable(EMBEDDING.why_missing())
        folder = minilm_folder(cache_dir)
        if not folder.is_dir():
            raise ModelUnavailable(
                "The embedding model is not installed, so search is lexical. "
                "Run `agentx models install minilm`."
            )
        if not is_whole(folder):
            raise ModelUnavailable(
                f"The embedding model in {folder} differs from the installed one, so it is not used and "
                "search is lexical. Run `agentx models install minilm` to repair it."
            )
        return MiniLM(folder)
    model = spec.removeprefix(HOSTED_PREFIX)
    if not model or model == spec:
        raise UsageError(f"No embedder is called {spec!r}: use none, minilm or litellm:<model>.")
    if embed_hosted is None:
        raise ModelUnavailable(f"Nothing here can ask a hosted model for {spec!r}; use minilm or none.")
    return HostedEmbedder(model, embed_hosted(model))
