"""The interface of an embedder, which converts text to vectors of unit length."""

from collections.abc import Sequence
from typing import Protocol

from agentx.storage.errors import AgentXError
from agentx.storage.index.port import Vector

READ_CHARACTERS = 8_000
"""Maximum characters read of one text; MiniLM's 256 tokens never need more, unless they are mostly blank."""


class ModelUnavailable(AgentXError):
    """No embedding model is available; search continues lexically."""


class Embedder(Protocol):
    """A model that maps text to a vector by its meaning.

    Attributes:
        name: Identifies the model and its settings; vectors of different names are never compared.
        dimensions: Length of every vector; 0 for a hosted model that has not answered yet.
        batch: Best number of passages per call; a caller can pause between two batches.

    Both methods raise :class:`ModelUnavailable` if the model cannot be loaded or reached, or if its answer is
    not one vector for each text, all of one length.
    """

    name: str
    batch: int

    @property
    def dimensions(self) -> int:
        """See the class."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of passages, in order."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        ...


def unit(values: Sequence[float] | Vector) -> Vector:
    """Scale a vector to unit length; a zero vector stays unchanged.

    >>> [round(value, 3) for value in unit([3.0, 4.0]).tolist()]
    [0.6, 0.8]
    """
    import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

    vector = np.asarray(values, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    return vector if length == 0 else vector / np.float32(length)
