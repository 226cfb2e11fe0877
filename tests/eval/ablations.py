"""The section ``ablations``, run only when it is named: what each mechanism of the ranking brings.

A row is the product with one thing changed: how passages are made, what is embedded, or a constant of the fusion. Only the
sets that a change can touch are asked again; elsewhere the row shows a dash. The table is printed in Markdown.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import msgspec

from agentx.storage.index import analysis
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter, MemoryIndex
from agentx.synthesis.chunking import chunk_message
from agentx.synthesis.recall import retrieval
from agentx.synthesis.recall.retrieval import FusionWeights, retrieve, to_embed
from tests.eval.conversations import MULTI_HOP, beam_collections, cut, locomo_collections
from tests.eval.cosqa import cosqa_collection
from tests.eval.ranked import HITS, Collection, Question, Ranking, embed, mean, recall, reciprocal_rank
from tests.figures import Figure

Told = Callable[[str], None]
TALKS = ("LoCoMo", "BEAM")
SETS = ("LoCoMo", "BEAM", "CoSQA")
RRF_K = 60


def _remade(**without: str) -> Callable[[str, str, str, str], list[tuple[str, str]]]:
    """The product's way to cut a turn, with some of what it is told left out."""

    def cut_so(text: str, previous: str, at: str, actor: str) -> list[tuple[str, str]]:
        return cut(**{"text": text, "previous": previous, "at": at, "actor": actor} | without)

    return cut_so


def _whole_before(text: str, previous: str, at: str, actor: str) -> list[tuple[str, str]]:
    """With the last 240 characters of the turn before, question or not, at every piece."""
    before = " ".join(previous[-240:].split())
    return [(piece.text, f"{piece.context} {before}".strip()) for piece in chunk_message(text, "", at, actor)]


def _in_front(chunk: Chunk) -> str:
    return f"{chunk.context}\n{chunk.text}"


def _behind(chunk: Chunk) -> str:
    return f"{chunk.text}\n{chunk.context}"


@dataclass(frozen=True)
class Change:
    """One thing changed.

    Attributes:
        touches: The sets that it can change.
        cut: How turns are cut.
        bare: Whether passages of files have no path and symbol in front.
        embedded: What is embedded of a passage.
        weights: Fixed weights of words and meaning.
        constants: Attributes of modules, set otherwise while questions are asked and passages are put.
        ranks: Whether both rankings are fused by equal reciprocal ranks.
    """

    name: str
    touches: Sequence[str] = SETS
    cut: Callable[[str, str, str, str], Sequence[tuple[str, str]]] = cut
    bare: bool = False
    embedded: Callable[[Chunk], str] = to_embed
    weights: FusionWeights | None = None
    constants: Mapping[tuple[object, str], object] = field(default_factory=dict)
    ranks: bool = False


def _one_gain(gain: float) -> Mapping[tuple[object, str], object]:
    return {(retrieval, "MEANING_GAIN"): dict.fromkeys(retrieval.MEANING_GAIN, gain)}


CHANGES = (
    Change("**what runs**"),
    Change("words alone", weights=FusionWeights(1.0, 0.0)),
    Change("meaning alone", weights=FusionWeights(0.0, 1.0)),
    Change("equal reciprocal ranks", ranks=True),
    Change("fixed weights, even", weights=FusionWeights(0.5, 0.5)),
    Change("fixed weights, 0.3 words, 0.7 meaning", weights=FusionWeights(0.3, 0.7)),
    Change("meaning's gain 2 for files too", ("CoSQA",), constants=_one_gain(2.0)),
    Change("meaning's gain 3 for talks too", TALKS, constants=_one_gain(3.0)),
    Change("an agent's message counts in full", ("BEAM",), constants={(retrieval, "AGENT_SHARE"): 1.0}),
    Change("a later part of a message counts in full", TALKS, constants={(retrieval, "LATER_SHARE"): 1.0}),
    Change("near duplicates stay", constants={(retrieval, "NEAR_DUPLICATE"): 2.0}),
    Change("names whole, not split", constants={(analysis, "_PART"): re.compile(r"(?!)")}),
    Change("no path and symbol in front", ("CoSQA",), bare=True),
    Change("context embedded behind every passage", ("CoSQA",), embedded=_behind),
    Change("context embedded in front", ("LoCoMo", "CoSQA"), embedded=_in_front),
    Change("no question of the turn before", TALKS, cut=_remade(previous="")),
    Change("the end of the turn before, whole", TALKS, cut=_whole_before),
    Change("no date", ("LoCoMo",), cut=_remade(at="")),
    Change("no speaker", ("LoCoMo",), cut=_remade(actor="")),
)


def ablations(data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """Ask every set with one thing changed at a time."""
    table: dict[str, dict[str, float]] = {}
    for number, change in enumerate(CHANGES, 1):
        told(f"{number} of {len(CHANGES)}, {change.name}")
        table[change.name] = dict(_scores(data, change))
    print(_markdown(table))
    for name, row in table.items():
        for measure, value in row.items():
            key = "_".join(re.findall(r"[a-z0-9]+", f"{measure} {name}".lower()))
            yield Figure(f"ablations.{key}", f"{measure}, {name.strip('*')}", value, more_is_better=True)


def _scores(data: Path, change: Change) -> Iterator[tuple[str, float]]:
    if "LoCoMo" in change.touches and (asked := _asked(locomo_collections(data, change.cut), change)):
        yield "LoCoMo recall@5", _recall(asked, 5)
        yield "recall@10", _recall(asked, 10)
        yield "multi-hop", _recall(asked, 5, MULTI_HOP)
    if "BEAM" in change.touches and (asked := _asked(beam_collections(data, change.cut), change)):
        yield "BEAM recall@10", _recall(asked, 10)
    if "CoSQA" in change.touches and (asked := _asked([cosqa_collection(data)], change)):
        yield "CoSQA MRR", mean(reciprocal_rank(ranking, one.gold) for part in asked for ranking, one in part)


Asked = list[list[tuple[Ranking, Question]]]


def _asked(collections: Sequence[Collection], change: Change) -> Asked:
    with ExitStack() as stack:
        for (module, name), value in change.constants.items():
            stack.enter_context(patch.object(module, name, value))
        return [_answered(one, change) for one in collections if one.questions]


def _answered(collection: Collection, change: Change) -> list[tuple[Ranking, Question]]:
    index = InMemoryIndex()
    chunks = collection.chunks
    vectors = embed(map(change.embedded, chunks))
    index.put(
        [msgspec.structs.replace(one, context="") for one in chunks] if change.bare else chunks, vectors
    )
    return [(_ranking(index, question.text, change), question) for question in collection.questions]


def _ranking(index: MemoryIndex, query: str, change: Change) -> Ranking:
    vector = next(iter(embed([query]) or []), None)
    if not change.ranks or vector is None:
        hits = retrieve(index, query, vector, HITS, Filter(), weights=change.weights)
        return list(dict.fromkeys(hit.content_id for hit in hits))
    scores: dict[str, float] = {}
    units: dict[str, str] = {}
    for ranking in (index.search_text(query, 50, Filter()), index.search_vector(vector, 50, Filter())):
        for place, one in enumerate(ranking, 1):
            units[one.chunk.id] = one.chunk.content_id
            scores[one.chunk.id] = scores.get(one.chunk.id, 0.0) + 1 / (RRF_K + place)
    return list(dict.fromkeys(units[name] for name in sorted(scores, key=lambda name: (-scores[name], name))))


def _recall(asked: Asked, k: int, category: str = "") -> float:
    """Mean over the conversations of the mean over their questions."""
    parts = [
        [recall(ranking, one.gold, k) for ranking, one in part if category in {"", one.category}]
        for part in asked
    ]
    return mean(mean(part) for part in parts if part)


def _markdown(table: Mapping[str, Mapping[str, float]]) -> str:
    measures = list(dict.fromkeys(measure for row in table.values() for measure in row))
    lines = ["| " + " | ".join(("", *measures)) + " |", "|---" * (len(measures) + 1) + "|"]
    for name, row in table.items():
        cells = (f"{row[measure]:.3f}" if measure in row else "–" for measure in measures)
        lines.append("| " + " | ".join((name, *cells)) + " |")
    return "\n".join(lines)
