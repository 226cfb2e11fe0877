"""The port of an embedder: text goes in, vectors of unit length come out."""

from collections.abc import Sequence
from typing import Protocol

from agentx.storage.errors import AgentXError
from agentx.storage.index.port import Vector


class ModelUnavailable(AgentXError):
    """No embedding model can be had; search goes on lexically."""


class Embedder(Protocol):
    """A model that places text among others by its meaning.

    Attributes:
        name: Tells one model and its settings from another; vectors of different names never compare.
        dimensions: Length of every vector; 0 for a hosted model that has not answered yet.
        batch: How many passages are best given at once; a caller can step back between two batches.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    @property
    def dimensions(self) -> int:
        """See the class."""
        ...

    @property
    def batch(self) -> int:
        """See the class."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of passages, in their order.

        Raises:
            ModelUnavailable: The model cannot be loaded or reached.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """Vector of a question.

        Raises:
            ModelUnavailable: The model cannot be loaded or reached.
        """
        ...


def unit(values: Sequence[float] | Vector) -> Vector:
    """The vector scaled to unit length; a vector of zeros stays one.

    >>> [round(value, 3) for value in unit([3.0, 4.0]).tolist()]
    [0.6, 0.8]
    """
    import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

    vector = np.asarray(values, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    return vector if length == 0 else vector / np.float32(length)
