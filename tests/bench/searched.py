"""What it costs to ask: the context of an agent, and search by words and meaning together."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from agentx import Workspace
from agentx.settings import read_settings
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.port import Filter
from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.port import ModelUnavailable
from agentx.synthesis.recall.retrieval import retrieve
from tests.figures import Figure

from .clock import in_turns
from .grown import Fixed, chunks, settings, text, vectors
from .scale import Scale

_BATCH = 5_000
_WARM_UP = 5
_EMBEDDED = 60
_PROMISED = {100_000: (15, 8), 1_000_000: (60, 30)}
_ASKED = """
import sys, time, pathlib
start = time.perf_counter()
from agentx.storage.index.lance import LanceIndex
from agentx.storage.index.port import Filter
from agentx.synthesis.recall.retrieval import retrieve
from tests.bench.grown import Fixed
index, asked = LanceIndex(pathlib.Path(sys.argv[1])), Fixed()
first = 0.0
for query in sys.argv[2:]:
    retrieve(index, query, asked.embed_query(""), 10, Filter())
    first = first or time.perf_counter() - start
said = dict(line.split(":") for line in open("/proc/self/status") if line.startswith("Rss") or line.startswith("VmRSS"))
print(*(int(said[name].split()[0]) / 1e3 for name in ("VmRSS", "RssAnon")), first)
"""


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
    promised = (15, 8) if scale.chunks >= 100_000 else (None, None)
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
            beside = f"processor {taken.processor_ms:.1f} ms" + (
                f"; maintained in {minutes:.1f} s" if minutes > 0.1 else ""
            )
            yield Figure(f"search_{size}_{form}_p50_ms", said, taken.median_ms, beside=beside)
            p95 = taken.percentile_ms(95)
            said = said.replace("p50", "p95")
            yield Figure(f"search_{size}_{form}_p95_ms", said, p95, *_PROMISED.get(size, ()))
        index.close()
        yield from _sizes(scratch / f"index-{size}", size)


def _sizes(place: Path, passages: int) -> Iterator[Figure]:
    """The disk that an index takes, and the memory of a process that has answered from it."""
    for name, pattern in (("all", "*"), ("parts", "*.part")):
        taken = sum(path.stat().st_size for found in place.glob(pattern) for path in _files(found))
        said = f"index of {passages:,} chunks, {name}, MB for each 1,000"
        yield Figure(f"index_{passages}_{name}_mb", said, taken / passages / 1e3)
    asked = subprocess.run(
        [sys.executable, "-c", _ASKED, place, *(text(turn, 40) for turn in range(_WARM_UP))],
        check=True,
        capture_output=True,
        text=True,
    )
    resident, own, first_s = map(float, asked.stdout.split())
    said = f"a process that searches {passages:,} chunks, resident, MB"
    beside = f"{own:.0f} MB without the mapped files; first answer after {first_s:.2f} s"
    yield Figure(f"search_{passages}_memory_mb", said, resident, beside=beside)


def _files(found: Path) -> Iterator[Path]:
    return (path for path in (found.rglob("*") if found.is_dir() else [found]) if path.is_file())


def embedding(_scratch: Path, _scale: Scale) -> Iterator[Figure]:
    """Passages of the length that a file is cut into, and short ones, by the installed model on one thread."""
    settings = read_settings()
    try:
        model = open_embedder("minilm", settings.cache_dir)
    except ModelUnavailable:
        return
    for words, promised in ((90, (150, 250)), (30, ())):
        said = [text(turn, 6 * words) for turn in range(_EMBEDDED)]
        model.embed_passages(said[:3])
        used = time.process_time()
        model.embed_passages(said)
        rate = _EMBEDDED / (time.process_time() - used)
        name = f"passages of {words} words embedded in a second of one core"
        yield Figure(f"embedded_{words}_a_second", name, rate, *promised, more_is_better=True)
