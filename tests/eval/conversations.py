"""The sections ``locomo`` and ``beam_recall``: the turns that answer a question, found among those of its conversation.

Every conversation is an index of its own. Its turns are cut by the product's chunker as the indexer does it: each with the one
before it, the time of its session and its speaker. A turn that came with a picture says what the picture shows. A long message has
several passages; a hit names the one message that it belongs to. A conversation's figure is the mean over its questions that
have evidence, and the figure is the mean over the conversations; beside it stands the mean over all questions.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from agentx.storage.index.port import Chunk
from agentx.synthesis.chunking import chunk_message
from tests.eval.data import Row, rows
from tests.eval.ranked import (
    Collection,
    Question,
    Ranking,
    ask,
    beside,
    filled,
    floors,
    least,
    mean,
    recall,
    reciprocal_rank,
)
from tests.figures import Figure

Told = Callable[[str], None]
Measure = Callable[[Ranking, Question], float]
MULTI_HOP = "1"
FLOOR_WORDS_BEFORE = 240


class Turn(NamedTuple):
    """One turn, as any of the sets tells it."""

    name: str
    speaker: str
    at: str
    text: str


def locomo(data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """Recall and MRR of evidence turns; category 1, which needs several turns, apart."""
    found = _measured(locomo_collections(data), told)
    if not found:
        return
    multi_hop = _only(found, MULTI_HOP)
    yield _figure("locomo.recall_at_5", "LoCoMo, recall@5 of turns", found, _recall_at(5), 0.64)
    yield _figure("locomo.recall_at_10", "LoCoMo, recall@10 of turns", found, _recall_at(10), 0.73)
    yield _figure("locomo.mrr", "LoCoMo, MRR of turns", found, _reciprocal_rank)
    yield _figure(
        "locomo.multi_hop_recall_at_5", "the same, multi-hop, recall@5", multi_hop, _recall_at(5), 0.28
    )


def beam_recall(data: Path, _scratch: Path, told: Told) -> Iterator[Figure]:
    """Recall of evidence messages in long chats with an assistant."""
    if found := _measured(beam_collections(data), told):
        yield _figure("beam.recall_at_10", "BEAM, recall@10 of messages", found, _recall_at(10))


# --- the sets ----------------------------------------------------------------------------------------------------

Cut = Callable[[str, str, str, str], Sequence[tuple[str, str]]]
"""Cuts a turn, given its text, the text before it, the time and the speaker, into texts with their contexts."""


def cut(text: str, previous: str, at: str, actor: str) -> list[tuple[str, str]]:
    """As the product does."""
    return [(piece.text, piece.context) for piece in chunk_message(text, previous, at, actor)]


def locomo_collections(data: Path, cut: Cut = cut) -> list[Collection]:
    """Conversations between two people over months."""
    turns: dict[str, list[Turn]] = {}
    for row in rows(data / "locomo" / "turns.jsonl.gz"):
        picture = f"\n[image: {row['image_caption']}]" if row.get("image_caption") else ""
        speaker = f"user:{row['speaker']}" if row.get("speaker") else "user"
        turn = Turn(row["dia_id"], speaker, _session(row), f"{row.get('text') or ''}{picture}")
        turns.setdefault(row["conv"], []).append(turn)
    asked: dict[str, list[Question]] = {}
    for row in rows(data / "locomo" / "queries.jsonl.gz"):
        question = Question(
            row["question"], frozenset(row.get("evidence") or ()), str(row.get("category", ""))
        )
        asked.setdefault(row["conv"], []).append(question)
    return [_collection(name, said, asked.get(name, []), cut) for name, said in turns.items()]


def beam_collections(data: Path, cut: Cut = cut) -> list[Collection]:
    """Chats of one person with an assistant; a day that is named at a message holds until the next one."""
    turns: dict[str, list[Turn]] = {}
    days: dict[str, str] = {}
    for row in rows(data / "beam" / "messages.jsonl.gz"):
        days[row["chat"]] = _anchor(row) or days.get(row["chat"], "")
        actor = "agent:assistant" if row["role"] == "assistant" else "user"
        turns.setdefault(row["chat"], []).append(
            Turn(str(row["id"]), actor, days[row["chat"]], row["content"] or "")
        )
    asked: dict[str, list[Question]] = {}
    for row in rows(data / "beam" / "queries.jsonl.gz"):
        gold = frozenset(str(name) for name in row.get("evidence") or ())
        asked.setdefault(row["chat"], []).append(Question(row["question"], gold, row.get("type", "")))
    return [_collection(name, said, asked.get(name, []), cut) for name, said in turns.items()]


def _collection(name: str, turns: Sequence[Turn], asked: Sequence[Question], cut: Cut) -> Collection:
    chunks, around = [], {}
    before = ""
    for place, turn in enumerate(turns, 1):
        for number, (text, context) in enumerate(cut(turn.text, before, turn.at, turn.speaker)):
            chunks.append(
                Chunk(id=f"m:{place:05}:{number}", text=text, context=context, kind="message", actor=turn.speaker,
                      at=turn.at, seq=place, content_id=turn.name)
            )  # fmt: skip
        day = f"{datetime.fromisoformat(turn.at):%d %B %Y}" if turn.at else ""
        around[turn.name] = f"{day} {turn.speaker} {before[-FLOOR_WORDS_BEFORE:]} {turn.text}"
        before = turn.text
    known = {turn.name for turn in turns}
    questions = [
        Question(question.text, question.gold & known, question.category)
        for question in asked
        if question.gold & known
    ]
    return Collection(name, chunks, {turn.name: turn.text for turn in turns}, questions, around)


def _session(row: Row) -> str:
    """``1:56 pm on 8 May, 2023`` as ISO 8601; empty where it cannot be read."""
    return _iso(row.get("date_time"), "%I:%M %p on %d %B, %Y")


def _anchor(row: Row) -> str:
    """``March-15-2024`` as ISO 8601; empty where there is none."""
    return _iso(row.get("time_anchor"), "%B-%d-%Y")


def _iso(text: str | None, form: str) -> str:
    try:
        return f"{datetime.strptime(text or '', form).isoformat()}.000000Z"  # noqa: DTZ007 - the sets name no zone
    except ValueError:
        return ""


# --- scoring -----------------------------------------------------------------------------------------------------

Found = dict[str, list[list[tuple[Ranking, Question]]]]
"""By way of ranking, for each conversation, what was found for each question; the product's way is ``""``."""


def _measured(collections: Sequence[Collection], told: Told) -> Found:
    found: Found = {}
    for number, one in enumerate(collections, 1):
        if not one.questions:
            continue

        def here(text: str, number: int = number, name: str = one.name) -> None:
            told(f"{name} ({number} of {len(collections)}): {text}")

        ways = {"": ask(filled(one, here), one.questions)} | floors(one, here)
        for way, rankings in ways.items():
            found.setdefault(way, []).append(list(zip(rankings, one.questions, strict=True)))
    return found


def _only(found: Found, category: str) -> Found:
    kept = {
        way: [[one for one in part if one[1].category == category] for part in parts]
        for way, parts in found.items()
    }
    return {way: [part for part in parts if part] for way, parts in kept.items()}


def _recall_at(k: int) -> Measure:
    return lambda ranking, question: recall(ranking, question.gold, k)


def _reciprocal_rank(ranking: Ranking, question: Question) -> float:
    return reciprocal_rank(ranking, question.gold)


def _figure(key: str, said: str, found: Found, measure: Measure, target: float | None = None) -> Figure:
    means = {way: mean(mean(measure(*one) for one in part) for part in parts) for way, parts in found.items()}
    value = means.pop("")
    target = least(target, means.values())
    every = [measure(*one) for part in found[""] for one in part]
    words = f"{beside(means)}; over {len(every)} questions {mean(every):.3f}"
    if len(found[""]) > 1:
        halves = (
            mean(mean(measure(*one) for one in part) for part in found[""][start::2]) for start in (0, 1)
        )
        words += "; halves of the conversations " + ", ".join(f"{half:.3f}" for half in halves)
    return Figure(key, said, value, target, target, more_is_better=True, beside=words)
