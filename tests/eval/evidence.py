"""The section ``evidence``: of the messages that answer a question, how many stand in the context that is put together for it.

Every conversation of ``locomo/`` and ``beam/`` is said to a workspace of its own, each message by its speaker and at its time;
then each question is the message that a context is asked for, at three budgets. A message stands in a context when something
there comes from it: a passage, a line of the recent messages, a note or a rule that rests on it. How much of it stands there is
said by its words: the share of them that these lines hold. A conversation's figure is the mean over its questions that have
evidence, and the figure is the mean over the conversations.

The floors take whole messages, best first, each on a line with its speaker; one that does not fit is passed over
for smaller ones behind it, which finds more than stopping there. One ranks by plain BM25, one by BM25 over the turn
before and the date, too, one by the vector of each message. All are counted with the same tokenizer, and the aim is
the best of them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from agentx import Workspace
from agentx.context.assembler import Context
from agentx.storage.events.codec import Codec
from agentx.storage.events.facts import FACTS
from agentx.storage.events.types import Draft, Event
from agentx.storage.index.port import Vector
from agentx.synthesis.embedding import Embedder
from agentx.synthesis.memory.conclusions import CONCLUSIONS
from tests.eval.conversations import beam_collections, locomo_collections
from tests.eval.ranked import Collection, Question, bm25_orders, embed, embedder, mean, vector_orders
from tests.eval.scores import words
from tests.eval.telling import Told, sizes_of, tell, within
from tests.figures import Figure

BUDGETS = (2_000, 4_000, 8_000)
ASKED = 100
"""Questions of a conversation at most, spread over all of them."""

SETTLE_S = 900
"""How long a conversation may take until all of it is embedded."""

_EVENT = re.compile(r"\bevents? (\d+)")
_PRODUCT, _BM25, _AROUND, _VECTORS = "", "BM25", "BM25 with the turn before and the date", "vectors"


class Share(NamedTuple):
    """Of the messages that answer a question: how many stand in a context, and how many of their words."""

    messages: float
    words: float


Shares = dict[tuple[str, int], list[list[Share]]]
"""By way and budget: for each conversation, the shares of its questions."""


def evidence(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Share of gold messages in contexts of 2,000, 4,000 and 8,000 tokens, beside BM25."""
    for name, said, collections in (
        ("locomo", "LoCoMo", locomo_collections(data)),
        ("beam", "BEAM", beam_collections(data)),
    ):
        found: Shares = {}
        for number, one in enumerate(collections, 1):
            if not one.questions:
                continue
            told(f"{said}, conversation {number} of {len(collections)}")
            asked = one.questions[:: -(-len(one.questions) // ASKED)]
            each = _contexts(scratch / f"evidence-{name}-{number}", one, asked) | _floors(one, asked)
            for way, shares in each.items():
                found.setdefault(way, []).append(shares)
        if found:
            yield from _figures(name, said, found)


# --- the product -------------------------------------------------------------------------------------------------


class Clock(Codec):
    """A codec whose events happen at the time that it is set to."""

    now: datetime | None = None

    def encode(
        self, draft: Draft, *, seq: int, previous: str, at: datetime | None = None
    ) -> tuple[bytes, Event]:
        """As the codec does."""
        return super().encode(draft, seq=seq, previous=previous, at=at or self.now)


class Remembering:
    """The installed model; what was embedded in this run is not embedded again."""

    def __init__(self, model: Embedder) -> None:
        self.name, self.dimensions, self.batch = model.name, model.dimensions, model.batch

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of passages."""
        return embed(texts) or []

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        return self.embed_passages([text])[0]


def _contexts(root: Path, one: Collection, asked: Sequence[Question]) -> dict[tuple[str, int], list[Share]]:
    with Workspace.create(root) as ws:
        model = embedder()
        ws.engine.indexer._open_embedder = lambda: (Remembering(model) if model else None, "")
        names = _told(ws, one)
        ws.settle(SETTLE_S)
        return {
            (_PRODUCT, budget): [
                _share(ws.get_relevant_context(question.text, max_tokens=budget), names, one, question)
                for question in asked
            ]
            for budget in BUDGETS
        }


def _told(ws: Workspace, one: Collection) -> dict[int, str]:
    """Say a conversation; the names of its messages by event."""
    clock = Clock(FACTS | CONCLUSIONS)
    ws.engine.log.writer._codec = clock
    first = {chunk.seq: chunk for chunk in reversed(one.chunks)}
    names = {}
    with ws.bulk():
        for _, chunk in sorted(first.items()):
            clock.now = datetime.fromisoformat(chunk.at) if chunk.at else clock.now
            names[tell(ws, chunk.actor, one.units[chunk.content_id]).seq] = chunk.content_id
    return names


def _share(context: Context, names: Mapping[int, str], one: Collection, question: Question) -> Share:
    found: dict[str, Counter[str]] = {}
    for item in context.items:
        for name in {names.get(int(seq), "") for seq in _EVENT.findall(item.source)}:
            found.setdefault(name, Counter()).update(words(item.text))
    held = (
        (wanted & found.get(name, Counter())).total() / max(1, wanted.total())
        for name in question.gold
        if (wanted := Counter(words(one.units[name])))
    )
    return Share(len(question.gold & found.keys()) / len(question.gold), mean(held))


# --- the floors --------------------------------------------------------------------------------------------------


def _floors(one: Collection, asked: Sequence[Question]) -> dict[tuple[str, int], list[Share]]:
    names = list(one.units)
    speakers = {chunk.content_id: chunk.actor for chunk in one.chunks}
    sizes = sizes_of(f"- {speakers.get(name, '')}: {text}" for name, text in one.units.items())
    questions = [question.text for question in asked]
    texts = list(one.units.values())
    ways = {
        _BM25: bm25_orders(texts, questions),
        _AROUND: bm25_orders([one.around[name] for name in names], questions),
        _VECTORS: vector_orders(texts, questions),
    }
    found: dict[tuple[str, int], list[Share]] = {}
    for way, orders in ways.items():
        if not orders:
            continue
        for budget in BUDGETS:
            for order, question in zip(orders, asked, strict=True):
                taken = {names[place] for place in within(budget, order, sizes)}
                share = len(question.gold & taken) / len(question.gold)
                found.setdefault((way, budget), []).append(Share(share, share))
    return found


# --- figures -----------------------------------------------------------------------------------------------------


def _figures(name: str, said: str, found: Shares) -> Iterator[Figure]:
    for budget in BUDGETS:
        parts = found[_PRODUCT, budget]
        floors = {way: _mean(shares) for (way, size), shares in found.items() if way and size == budget}
        halves = [_mean(parts[start::2]).messages for start in (0, 1)] if len(parts) > 1 else []
        beside = "; ".join(f"{way} {floor.messages:.3f}" for way, floor in floors.items())
        if halves:
            beside += "; halves of the conversations " + ", ".join(f"{half:.3f}" for half in halves)
        aim = max(floor.messages for floor in floors.values())
        yield Figure(
            f"evidence.{name}_at_{budget}",
            f"{said}: messages that answer, in a context of {budget:,} tokens",
            _mean(parts).messages,
            aim,
            aim,
            more_is_better=True,
            beside=f"{beside}; {sum(map(len, parts))} questions",
        )
        yield Figure(
            f"evidence.{name}_words_at_{budget}",
            "the same, of their words",
            _mean(parts).words,
            aim,
            aim,
            more_is_better=True,
            beside=f"the best floor {aim:.3f}",
        )


def _mean(parts: Sequence[Sequence[Share]]) -> Share:
    return Share(
        mean(mean(one.messages for one in part) for part in parts),
        mean(mean(one.words for one in part) for part in parts),
    )
