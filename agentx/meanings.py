"""Vectors of short phrases, kept while a workspace is open: what is compared by meaning without asking the index."""

import time
from collections.abc import Iterable

from agentx.indexer import Indexer
from agentx.storage.index.port import Vector
from agentx.synthesis.embedding.port import ModelUnavailable

MAX_KEPT = 10_000
"""Phrases that are kept, about 16 MB; with more, all are forgotten."""

EMBED_S = 2.0
"""How long one question embeds what has no vector yet; the next one goes on."""


class Meanings:
    """Embeds phrases, each once.

    Args:
        indexer: Has the embedder.
    """

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer
        self._vectors: dict[tuple[str, str], Vector] = {}

    def of(
        self, phrases: Iterable[str], *, load: bool = True, within_s: float = EMBED_S
    ) -> dict[str, Vector]:
        """Vectors of unit length by phrase; without those that could not be had.

        Args:
            phrases: The most wanted ones first.
            load: Load the model where it is not yet (0.3 s).
            within_s: When to stop embedding.
        """
        embedder = self._indexer.embedder(opened=not load)
        if embedder is None:
            return {}
        end = time.monotonic() + within_s
        found: dict[str, Vector] = {}
        if len(self._vectors) > MAX_KEPT:
            self._vectors.clear()
        for phrase in phrases:
            key = embedder.name, phrase
            if key not in self._vectors:
                if time.monotonic() > end:
                    continue
                try:
                    self._vectors[key] = embedder.embed_query(phrase)
                except ModelUnavailable:
                    return {}
            found[phrase] = self._vectors[key]
        return found
