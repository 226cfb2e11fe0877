"""A hosted embedding model, asked through whatever the caller hands in: no vendor is known here."""

from collections.abc import Callable, Sequence

from agentx.storage.index.port import Vector
from agentx.storage.text import encodable
from agentx.synthesis.embedding.port import ModelUnavailable, unit
from agentx.synthesis.model.port import ModelError

EmbedTexts = Callable[[list[str]], list[list[float]]]
"""Asks the model; gives one vector per text, in their order."""

BATCH = 64
"""Texts of one request."""

READ_CHARACTERS = 8_000
"""What is sent of one text; hosted models read 512 tokens and more."""


class HostedEmbedder:
    """A model behind an API.

    Args:
        model: Its name, as litellm knows it.
        embed: Asks it; may raise :class:`~agentx.synthesis.model.port.ModelError`.

    Attributes:
        name: ``litellm:<model>``.
        batch: Texts of one request.
    """

    batch = BATCH

    def __init__(self, model: str, embed: EmbedTexts) -> None:
        self.name = f"litellm:{model}"
        self._embed = embed
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        """Length of its vectors; 0 until it has answered once."""
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of passages, in their order.

        Raises:
            ModelUnavailable: It could not be asked, or its answer is not one vector per text, all of one length.
        """
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            # An API refuses an empty text, and nothing can carry a lone surrogate.
            batch = [encodable(t[:READ_CHARACTERS]) or " " for t in texts[start : start + BATCH]]
            try:
                answer = self._embed(batch)
            except ModelError as error:
                raise ModelUnavailable(str(error)) from error
            vectors += self._checked(answer, len(batch))
        return vectors

    def embed_query(self, text: str) -> Vector:
        """Vector of a question.

        Raises:
            ModelUnavailable: As for passages.
        """
        return self.embed_passages([text])[0]

    def _checked(self, answer: list[list[float]], expected: int) -> list[Vector]:
        lengths = {len(values) for values in answer} | ({self._dimensions} if self._dimensions else set())
        if len(answer) != expected or len(lengths) != 1 or 0 in lengths:
            raise ModelUnavailable(
                f"{self.name} answered {len(answer)} vectors of lengths {sorted(lengths)} to {expected} texts; "
                "an embedding model gives one of the same length for each. Choose another with `agentx config`."
            )
        self._dimensions = lengths.pop()
        return [unit(values) for values in answer]
