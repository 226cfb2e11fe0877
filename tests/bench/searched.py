"""What it costs to ask: the context of an agent, and search by words and meaning together."""

import time
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.port import Filter
from agentx.synthesis.recall.retrieval import retrieve
from tests.figures import Figure

from .clock import in_turns
from .grown import Fixed, chunks, settings, text, vectors
from .scale import Scale

_BATCH = 5_000
_WARM_UP = 5


def _fill(index, count: int) -> None:
    for first in range(0, count, _BATCH):
        size = min(_BATCH, count - first)
        index.put(chunks(size, first), list(vectors(size, seed=first)))


def context(scratch: Path, scale: Scale) -> Iterator[Figure]:
    with Workspace.create(scratch / "context", settings=settings(scratch)) as ws:
        ws.engine.indexer._open_embedder = lambda: (Fixed(), "")
        for number in range(scale.items):
            kind = "constraint" if number % 50 == 0 else "decision" if number % 10 == 0 else "knowledge"
            ws.remember(kind, text(number, 120).strip())
        ws.settle(60)
        _fill(ws.engine.indexer.index, scale.chunks)
        ws.engine.indexer.index.maintain()
        ws.settle(60)
        for turn in range(_WARM_UP):
            ws.get_relevant_context(text(turn, 60))
        taken = in_turns({"ask": lambda turn: ws.get_relevant_context(text(turn, 60))}, scale.questions)[
            "ask"
        ]
    promised = (25, 10) if scale.chunks >= 100_000 else (None, None)
    said = f"get_relevant_context, warm, {scale.items:,} items, {scale.chunks:,} chunks, p95, ms"
    beside = f"p50 {taken.median_ms:.1f} ms, processor {taken.processor_ms:.1f} ms"
    yield Figure("context_p95_ms", said, taken.percentile_ms(95), *promised, beside=beside)


def search(scratch: Path, scale: Scale) -> Iterator[Figure]:
    for size in scale.searched:
        index = LanceIndex(scratch / f"index-{size}")
        _fill(index, size)
        for form in ("flat", "maintained"):
            start = time.perf_counter()
            if form == "maintained":
                index.maintain()
            minutes = time.perf_counter() - start
            asked = Fixed()

            def ask(turn: int, index=index, asked=asked) -> None:
                retrieve(index, text(turn, 40), asked.embed_query(""), 10, Filter())

            in_turns({"ask": ask}, _WARM_UP)
            taken = in_turns({"ask": ask}, scale.questions)["ask"]
            said = f"hybrid search, {size:,} chunks, {form}, p50, ms"
            beside = f"p95 {taken.percentile_ms(95):.1f} ms" + (
                f"; maintained in {minutes:.1f} s" if minutes > 0.1 else ""
            )
            yield Figure(f"search_{size}_{form}_p50_ms", said, taken.median_ms, beside=beside)
        index.close()
