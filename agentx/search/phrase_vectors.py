"""Vectors of short phrases, to compare meanings without querying the index.

They are kept while the workspace is open, and in its cache, so that each phrase is embedded once.
"""

import contextlib
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import msgspec

from agentx.core.cache_dir import make_cache
from agentx.search.indexer import Indexer
from agentx.storage.files import nofollow
from agentx.storage.index.port import Vector
from agentx.synthesis.embedding.port import ModelUnavailable

MAX_KEPT = 10_000
"""Number of phrases kept, about 16 MB; if there are more, the older half is dropped."""

EMBED_S = 2.0
"""Longest time that one query embeds phrases without a vector; the next query continues."""

_WORTH_KEEPING = 20
"""Number of new vectors from which the cache is written; a single query is not worth it."""

_GROWTH = 0.125
"""In between, it is written when this share of it is new, as the whole file is written each time."""


class Meanings:
    """Embeds phrases, each once."""

    def __init__(self, indexer: Indexer, root: Path, place: Path) -> None:
        self._indexer = indexer
        self._root = root
        self._place = place
        self._of = ""
        self._vectors: dict[str, Vector] = {}
        self._fresh = 0

    def of(
        self, phrases: Iterable[str], *, load: bool = True, within_s: float = EMBED_S
    ) -> dict[str, Vector]:
        """Return vectors of unit length by phrase, without those that could not be made.

        Args:
            phrases: The most important ones first.
            load: Load the model if it is not loaded yet (0.3 s).
            within_s: When to stop embedding, in seconds from now.
        """
        embedder = self._indexer.embedder(opened=not load)
        if embedder is None:
            return {}
        if self._of != embedder.name:
            self._of, self._vectors = embedder.name, self._read(embedder.name)
        end = time.monotonic() + within_s
        found: dict[str, Vector] = {}
        try:
            for phrase in phrases:
                vector = self._vectors.get(phrase)
                if vector is None and time.monotonic() < end:
                    vector = self._vectors[phrase] = embedder.embed_query(phrase)
                    self._fresh += 1
                if vector is not None:
                    found[phrase] = vector
        except ModelUnavailable:
            return {}
        if len(self._vectors) > MAX_KEPT:
            self._vectors = dict(islice(self._vectors.items(), MAX_KEPT // 2, None))
        if self._fresh >= max(_WORTH_KEEPING, _GROWTH * len(self._vectors)):
            self._write()
        return found

    def close(self) -> None:
        """Write what is new to the cache."""
        if self._fresh >= _WORTH_KEEPING:
            self._write()

    def _read(self, name: str) -> dict[str, Vector]:
        import numpy as np  # noqa: PLC0415  (heavy, and needed with vectors alone)

        try:
            kept = msgspec.msgpack.decode(nofollow.read(self._place), type=tuple[str, dict[str, bytes]])
        except (OSError, msgspec.MsgspecError):  # missing or damaged: they are made again
            return {}
        return {phrase: np.frombuffer(row, np.float32) for phrase, row in kept[1].items() if kept[0] == name}

    def _write(self) -> None:
        rows = {phrase: vector.tobytes() for phrase, vector in self._vectors.items()}
        part = self._place.with_suffix(".part")
        with contextlib.suppress(OSError):  # a cache that cannot be written is skipped
            make_cache(self._root)
            nofollow.write(part, msgspec.msgpack.encode((self._of, rows)))
            part.replace(self._place)
        self._fresh = 0
