"""A hosted embedding model, called through a function from the caller; this module knows no vendor."""

from collections.abc import Callable, Sequence

from agentx.storage.index.port import Vector
from agentx.storage.text import encodable
from agentx.synthesis.embedding.port import READ_CHARACTERS, ModelUnavailable, unit
from agentx.synthesis.model.port import ModelError

EmbedTexts = Callable[[list[str]], list[list[float]]]
"""Calls the model; returns one vector per text, in order."""

BATCH = 64
"""Number of texts in one request; hosted models allow 96 to 2,048."""


class HostedEmbedder:
    """An embedding model behind an API.

    ``embed`` calls the model and may raise :class:`~agentx.synthesis.model.port.ModelError`.
    """

    batch = BATCH

    def __init__(self, model: str, embed: EmbedTexts) -> None:
        self.name = f"litellm:{model}"
        self.dimensions = 0
        self._embed = embed

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of passages, in order."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            # APIs reject empty texts, and a lone surrogate cannot be encoded.
            batch = [encodable(t[:READ_CHARACTERS]) or " " for t in texts[start : start + BATCH]]
            try:
                answer = self._embed(batch)
            except ModelError as error:
                raise ModelUnavailable(str(error)) from error
            lengths = {len(values) for values in answer} | ({self.dimensions} if self.dimensions else set())
            if len(answer) != len(batch) or len(lengths) != 1 or 0 in lengths:
                raise ModelUnavailable(
                    f"{self.name} answered {len(answer)} vectors of lengths {sorted(lengths)} to "
                    f"{len(batch)} texts; an embedding model gives one of the same length for each. "
                    "Choose another with `agentx config`."
                )
            self.dimensions = lengths.pop()
            vectors += [unit(values) for values in answer]
        return vectors

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        return self.embed_passages([text])[0]
