"""A hosted embedding model, called through a function from the caller; this module knows no vendor."""

from collections.abc import Callable, Sequence

from agentx.storage.index.port import Vector
from agentx.storage.text import encodable
from agentx.synthesis.embedding.port import ModelUnavailable, unit
from agentx.synthesis.model.port import ModelError

EmbedTexts = Callable[[list[str]], list[list[float]]]
"""Calls the model; returns one vector per text, in order."""

BATCH = 64
"""Number of texts in one request."""

READ_CHARACTERS = 8_000
"""Maximum characters sent of one text; hosted models read 512 tokens or more."""


class HostedEmbedder:
    """An embedding model behind an API.

    Args:
        model: Its name in litellm.
        embed: Calls the model; may raise :class:`~agentx.synthesis.model.port.ModelError`.

    Attributes:
        name: ``litellm:<model>``.
        batch: Number of texts in one request.
    """

    batch = BATCH

    def __init__(self, model: str, embed: EmbedTexts) -> None:
        self.name = f"litellm:{model}"
        self._embed = embed
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        """Length of its vectors; 0 before the first answer."""
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of passages, in order.

        Raises:
            ModelUnavailable: The call failed, or the answer is not one vector per text, all of one length.
        """
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            # APIs reject empty texts, and a lone surrogate cannot be encoded.
            batch = [encodable(t[:READ_CHARACTERS]) or " " for t in texts[start : start + BATCH]]
            try:
                answer = self._embed(batch)
            except ModelError as error:
                raise ModelUnavailable(str(error)) from error
            vectors += self._checked(answer, len(batch))
        return vectors

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query.

        Raises:
            ModelUnavailable: As for passages.
        """
        return self.embed_passages([text])[0]

    def _checked(self, answer: list[list[float]], expected: int) -> list[Vector]:
        lengths = {len(values) for values in answer} | ({self._dimensions} if self._dimensions else set())
        if len(answer) != expected or len(lengths) != 1 or 0 in lengths:
            raise ModelUnavailable(
                f"{self.name} answered {len(answer)} vectors of lengths {sorted(lengths)} to {expected} "
                "texts; an embedding model gives one of the same length for each. "
                "Choose another with `agentx config`."
            )
        self._dimensions = lengths.pop()
        return [unit(values) for values in answer]
