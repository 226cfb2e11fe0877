"""The section ``flows``: whether the right flow is found, by its words and by its meaning; it needs no data.

Forty flows, five ways to ask for each, and sixty actions that none is for: ``tests/synthesis/flow_phrasings.txt``.
Thresholds were set on the first half; the second is reported beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agentx.settings import read_settings
from agentx.storage.index.port import Vector
from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.port import ModelUnavailable
from agentx.synthesis.state.flows import called, match, phrases
from agentx.synthesis.state.state import State
from tests.figures import Figure
from tests.synthesis.flow_cases import Case, read_cases

Told = Callable[[str], None]
Find = Callable[[str], str]
"""Gives the id of the flow that a text calls for; empty for none."""

FLOOR_SHARE = 0.5


def flows(_data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """Precision of what is found, and the share that is found, by words alone and with meaning."""
    state, cases = read_cases()

    def by_words(text: str) -> str:
        return next((one.item.id for one in match(state, text)), "")

    told(f"{len(cases)} cases by words")
    floor = _floor(state)
    yield from _figures("words", cases, by_words, floor)
    if vectors := _vectors(state, cases, told):

        def by_meaning(text: str) -> str:
            return next((one.item.id for one in match(state, text, vectors)), "")

        yield from _figures("meaning", cases, by_meaning, floor)


def _figures(name: str, cases: Sequence[Case], find: Find, floor: Find) -> Iterator[Figure]:
    for measure, score in (("precision", _precision), ("own words", _own), ("other words", _other)):
        halves = [score([case for case in cases if case.half == half], find) for half in (0, 1)]
        yield Figure(
            f"flows_{name}_{measure.replace(' ', '_')}",
            f"flows by {name}: {measure} (both halves)",
            score(cases, find),
            more_is_better=True,
            beside=f"halves {halves[0]:.3f} and {halves[1]:.3f}; plain overlap of words {score(cases, floor):.3f}",
        )


def _precision(cases: Sequence[Case], find: Find) -> float:
    """Of what was found, how much is right; 1 where nothing was."""
    found = [(case, name) for case in cases if (name := find(case.text))]
    return sum(case.flow == name for case, name in found) / len(found) if found else 1.0


def _own(cases: Sequence[Case], find: Find) -> float:
    """Of what is asked in the words of a name or a trigger, how much is found."""
    return _found([case for case in cases if case.flow and case.own_words], find)


def _other(cases: Sequence[Case], find: Find) -> float:
    return _found([case for case in cases if case.flow and not case.own_words], find)


def _found(cases: Sequence[Case], find: Find) -> float:
    return sum(case.flow == find(case.text) for case in cases) / max(1, len(cases))


def _floor(state: State) -> Find:
    """The phrase of which most words stand in the text, if at least half of them do."""
    words = {
        (item.id, phrase): set(phrase.lower().split())
        for item in state.items.values()
        for phrase in phrases(item)
    }

    def find(text: str) -> str:
        there = set(text.lower().replace(",", " ").replace(".", " ").split())
        share, name = max((len(own & there) / len(own), name) for (name, _), own in words.items())
        return name if share >= FLOOR_SHARE else ""

    return find


def _vectors(state: State, cases: Sequence[Case], told: Told) -> Mapping[str, Vector]:
    """Vectors of all that is compared; empty where no model is installed."""
    try:
        embedder = open_embedder("minilm", read_settings().cache_dir)
    except ModelUnavailable:
        return {}
    if embedder is None:
        return {}
    texts = [
        *map(called, state.items.values()),
        *(case.text for case in cases),
    ]
    told(f"embedding {len(texts)} phrases")
    return dict(zip(texts, embedder.embed_passages(texts), strict=True))
