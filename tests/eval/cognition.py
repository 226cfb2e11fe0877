"""The section ``cognition``: of the turns that answer a question, how many stand in a buffer of so many tokens.

The turns of a LoCoMo conversation are the memories, each with who said it, in which session and at which place; they are cut, embedded and
searched as in the section ``locomo``. Four ways fill a buffer, from the same memories and counted by the same tokenizer:

- ``bm25``, the floor: whole turns, best first, one that does not fit passed over for smaller ones behind it;
- ``search``: the product's hybrid search for the question, and its passages in the same way;
- ``curated``: the same search; what it found is ranked and cut to what tells something, as the Activator does it, without the thinking loop;
- ``loop``: Decayer and Activator in turn, as a cognitive agent runs them from an empty buffer.

A turn counts as soon as something of it stands in the buffer. The words of the answer that its turns hold count apart, as most of a turn may be
left out; the share of all its words is said beside the figure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from agentx.storage.index.port import Filter, Vector
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.curation import SEARCHED, KeptMemory, RetrievedMemory, activate, curate, line
from agentx.synthesis.cognition.expansion import QueryGraph, SubQuery, about, deepen, expand, without_names
from agentx.synthesis.cognition.informative_sentences import terms_of
from agentx.synthesis.cognition.speakers import speaker
from agentx.synthesis.cognition.uncertainty import assess
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.recall.retrieval import retrieve, to_embed
from tests.eval.conversations import MULTI_HOP, locomo_collections
from tests.eval.data import rows
from tests.eval.ranked import Collection, Question, bm25_orders, embed, filled, mean
from tests.eval.scores import words
from tests.eval.telling import Told, within
from tests.figures import Figure

BUFFERS = (250, 500, 1_000)
A_THIRD_MORE = 4 / 3
ANSWER_TARGET, ANSWER_AIM = 1.3, 1.4

WAYS = {
    "bm25": "BM25, whole turns",
    "search": "search, whole passages",
    "curated": "curated, without the loop",
    "loop": "curated, with the loop",
}


class Share(NamedTuple):
    """What a buffer holds of the turns that answer a question, and what it takes.

    Attributes:
        turns: Share of the turns of which something stands there.
        words: Share of their words.
        answer: Share of the words of the answer that they hold; NaN where they hold none.
        tokens: Of the whole buffer.
    """

    turns: float
    words: float
    answer: float
    tokens: int


Asked = dict[tuple[str, int], list[Share]]
"""By way and size of the buffer: one share for each question of a conversation."""

Answers = Mapping[tuple[str, str], frozenset[str]]
"""What the answer says, as terms, by conversation and question."""


def cognition(data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """Recall of evidence turns in buffers of 250, 500 and 1,000 tokens, with the thinking loop, without it, and by search."""
    collections = [one for one in locomo_collections(data) if one.questions]
    answers = {
        (row["conv"], row["question"]): terms_of(str(row.get("answer") or ""))
        for row in rows(data / "locomo" / "queries.jsonl.gz")
    }
    asked = []
    for number, one in enumerate(collections, 1):

        def here(text: str, number: int = number, name: str = one.name) -> None:
            told(f"{name} ({number} of {len(collections)}): {text}")

        asked.append(_asked(Talk(one, here), answers, here))
    categories = [[question.category for question in one.questions] for one in collections]
    for key, said, wanted in (("", "", None), ("multi_hop_", ", multi-hop", MULTI_HOP)):
        parts = [_only(each, of, wanted) for each, of in zip(asked, categories, strict=True)]
        if found := [part for part in parts if part]:
            yield from _figures(key, said, found)


# --- the product -------------------------------------------------------------------------------------------------


class Talk:
    """A conversation as memories that can be searched; what was searched once is not searched again."""

    def __init__(self, one: Collection, told: Told) -> None:
        self.one = one
        self.units = {chunk.id: chunk.content_id for chunk in one.chunks}
        self.people = sorted({speaker(chunk.actor, chunk.text) for chunk in one.chunks} - {""})
        self._index = filled(one, told)
        vectors = embed(map(to_embed, one.chunks), told) or []
        self._vectors = dict(zip(self.units, vectors, strict=False))
        self._found: dict[tuple[SubQuery, int], list[RetrievedMemory]] = {}
        self._ranked: dict[tuple[QueryGraph, str], Sequence[RetrievedMemory]] = {}

    def search(self, query: SubQuery, k: int = SEARCHED) -> list[RetrievedMemory]:
        """The passages nearest to a sub-query."""
        if (query, k) not in self._found:
            hits = retrieve(self._index, query.text, _vector(query.text), k, Filter())
            self._found[query, k] = [
                RetrievedMemory(id=hit.id, text=hit.text, score=hit.score, by=speaker(hit.actor, hit.text), session=hit.at, place=hit.seq)
                for hit in hits
            ]  # fmt: skip
        return self._found[query, k]

    def activated(self, graph: QueryGraph, question: str) -> Sequence[RetrievedMemory]:
        """What a graph of sub-queries finds, ranked."""
        if (graph, question) not in self._ranked:
            self._ranked[graph, question] = activate(graph, self.search, about(question, self.people)).ranked
        return self._ranked[graph, question]

    def uncertain(self, question: str, buffer: Sequence[KeptMemory]) -> bool:
        """Whether the Decayer wants more than the buffer holds."""
        asked = without_names(question, self.people) or question
        vectors = [self._vectors[one.memory.id] for one in buffer if one.memory.id in self._vectors]
        tiers = assess(asked, [one.text for one in buffer], _vector(asked), vectors).scaled
        return min(tiers) >= ExecutorConfig().uncertainty_threshold


def _curated(talk: Talk, question: str, tokens: int) -> list[KeptMemory]:
    alone = QueryGraph(expand(question).nodes[:1])
    return curate(talk.activated(alone, question), question, tokens)


def _looped(talk: Talk, question: str, tokens: int) -> list[KeptMemory]:
    graph: QueryGraph | None = None
    buffer: list[KeptMemory] = []
    for _ in range(ExecutorConfig().max_thinking_iterations):
        if not talk.uncertain(question, buffer):
            break
        graph = deepen(graph) if graph else expand(question, talk.people)
        buffer = curate(talk.activated(graph, question), question, tokens)
    return buffer


def _whole(ranked: Sequence[RetrievedMemory], tokens: int) -> list[KeptMemory]:
    kept = [KeptMemory(one, one.text, count_tokens(line(one, one.text))) for one in ranked]
    return [kept[place] for place in within(tokens, range(len(kept)), [one.tokens for one in kept])]


def _vector(text: str) -> Vector | None:
    return next(iter(embed([text]) or ()), None)


# --- asking and scoring ------------------------------------------------------------------------------------------


def _asked(talk: Talk, answers: Answers, told: Told) -> Asked:
    one, shares = talk.one, Asked()
    speakers = {chunk.content_id: speaker(chunk.actor, chunk.text) for chunk in one.chunks}
    turns = [
        RetrievedMemory(id=name, text=text, score=0, by=speakers.get(name, ""))
        for name, text in one.units.items()
    ]
    orders = bm25_orders([turn.text for turn in turns], [question.text for question in one.questions])
    for number, (question, order) in enumerate(zip(one.questions, orders, strict=True)):
        if number % 20 == 0:
            told(f"asking, {number:,} of {len(one.questions):,}")
        by_words = [turns[place] for place in order[:SEARCHED]]
        answer = answers[one.name, question.text]
        by_search = talk.search(expand(question.text).nodes[0])
        for tokens in BUFFERS:
            buffers = {
                "bm25": _whole(by_words, tokens),
                "search": _whole(by_search, tokens),
                "curated": _curated(talk, question.text, tokens),
                "loop": _looped(talk, question.text, tokens),
            }
            for way, buffer in buffers.items():
                shares.setdefault((way, tokens), []).append(_share(talk, buffer, question, answer))
    return shares


def _share(talk: Talk, buffer: Sequence[KeptMemory], question: Question, answer: frozenset[str]) -> Share:
    held: dict[str, list[str]] = {}
    for kept in buffer:
        held.setdefault(talk.units.get(kept.memory.id, kept.memory.id), []).append(kept.text)
    wanted = {name: talk.one.units[name] for name in sorted(question.gold)}
    there = {name: "\n".join(held.get(name, ())) for name in wanted}
    known = answer & terms_of("\n".join(wanted.values()))
    return Share(
        len(question.gold & held.keys()) / len(question.gold),
        mean(_words_of(text, there[name]) for name, text in wanted.items()),
        len(known & terms_of("\n".join(there.values()))) / len(known) if known else nan,
        sum(kept.tokens for kept in buffer),
    )


def _words_of(text: str, there: str) -> float:
    said = Counter(words(text))
    return (said & Counter(words(there))).total() / max(1, said.total())


# --- figures -----------------------------------------------------------------------------------------------------


def _only(asked: Asked, categories: Sequence[str], wanted: str | None) -> Asked:
    """The shares of the questions of one category, of all for ``None``; empty where there are none."""
    if wanted is not None and wanted not in categories:
        return {}
    return {
        way: [share for share, of in zip(shares, categories, strict=True) if wanted in {None, of}]
        for way, shares in asked.items()
    }


def _figures(key: str, said: str, found: Sequence[Asked]) -> Iterator[Figure]:
    for tokens in BUFFERS:
        recalls = {}
        for way, words_of_it in WAYS.items():
            name = f"cognition.{key}{way}_{tokens}"
            measure = f"{tokens:,} tokens{said}: {words_of_it}"
            parts = [part[way, tokens] for part in found]
            recalls[way] = _mean(parts, "turns")
            yield Figure(
                f"{name}.recall",
                f"{measure}, recall of turns",
                recalls[way],
                more_is_better=True,
                beside=_beside(parts),
            )
            yield Figure(f"{name}.tokens", f"{measure}, tokens used", _mean(parts, "tokens"))
        loop, search = ([part[way, tokens] for part in found] for way in ("loop", "search"))
        start, words_of_it = f"cognition.{key}loop_{tokens}", f"{tokens:,} tokens{said}"
        target, answer, aim = (A_THIRD_MORE, ANSWER_TARGET, ANSWER_AIM) if key else (None, None, None)
        if recalls["search"]:
            yield Figure(
                f"{start}.ratio",
                f"{words_of_it}: with the loop, for 1 by search",
                recalls["loop"] / recalls["search"],
                target,
                target,
                more_is_better=True,
                beside=_ratios(loop, search, "turns"),
            )
        if by_search := _mean(search, "answer"):
            yield Figure(
                f"{start}.answer_ratio",
                f"{words_of_it}: the answer's words, with the loop, for 1 by search",
                _mean(loop, "answer") / by_search,
                answer,
                aim,
                more_is_better=True,
                beside=_ratios(loop, search, "answer"),
            )


Parts = Sequence[Sequence[Share]]


def _mean(parts: Parts, measure: str) -> float:
    """Over the conversations, of the mean over their questions."""
    values = [[getattr(share, measure) for share in part] for part in parts]
    return mean(mean(value for value in part if not isnan(value)) for part in values)


def _beside(parts: Parts) -> str:
    said = f"of the answers' words {_mean(parts, 'answer'):.3f}, of all {_mean(parts, 'words'):.3f}; {sum(map(len, parts))} questions"
    if len(parts) > 1:
        halves = ", ".join(f"{_mean(parts[start::2], 'turns'):.3f}" for start in (0, 1))
        said += f"; halves of the conversations {halves}"
    return said


def _ratios(loop: Parts, search: Parts, measure: str) -> str:
    if len(loop) < 2:
        return ""
    halves = [(_mean(loop[start::2], measure), _mean(search[start::2], measure)) for start in (0, 1)]
    return "halves of the conversations " + ", ".join(
        f"{one / other:.2f}" if other else "–" for one, other in halves
    )
