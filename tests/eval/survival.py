"""The section ``survival``: what users demanded and ruled out still stands in a context after 2,000 turns about other things.

Fifty messages in the words of real users are said first: instructions of ``beam/``, the first of each chat, then the second,
and so on, and up to ten rejections of ``coding_transcripts/``. Then come 2,000 turns of ordinary conversation, messages of users
and agents in which nothing lasting is demanded. Then contexts of 4,000 tokens are asked for, for a message about nothing and for
real questions. *Captured* is every active constraint and rejection of a message that was stated, with what was proposed
of them and accepted by a person at once; what ordinary messages gave rise to is *false*, and competes for the room. Ids and
words are looked for of both.

A demand's words stand in a context when its text does, or, where the budget is tight, its short form of 15 words; the share
that stands there whole is told beside it. The floors are the end of the conversation, and the messages that BM25 ranks
first, both up to 4,000 tokens: of them only words can be looked for.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from agentx import Workspace
from agentx.context import BudgetTooSmall
from agentx.context_parts import on_one_line
from agentx.settings import Settings
from agentx.synthesis.items import Kind, MemoryItem, shorten
from tests.eval.data import Row, rows
from tests.eval.ranked import bm25_orders, mean
from tests.eval.telling import Told, sizes_of, tell, within
from tests.figures import Figure

STATED = 50
REJECTIONS = 10
MESSAGES = 4_000
"""Messages of ordinary conversation: 2,000 turns, each of a user and an agent."""

BUDGET = 4_000
NEUTRAL = "Go on."
REAL = 4
"""Real questions that a context is asked for."""

KINDS: tuple[Kind, ...] = ("constraint", "rejection")
_LASTING = ("user_instruction", "preference")


class Line(NamedTuple):
    """A message of the conversation."""

    actor: str
    text: str


class Seen(NamedTuple):
    """Of some memory items, the shares that contexts hold: by id, by words in either form, by the whole text; and the tokens."""

    ids: float
    words: float
    whole: float
    tokens: float


def survival(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Share of what was captured that stands in a context of 4,000 tokens."""
    stated, talk, asked = _stated(data), _ordinary(data), [NEUTRAL, *_questions(data)]
    if not stated:
        return
    root = scratch / "survival"
    settings = Settings(
        environ=dict(os.environ), cache_dir=scratch / "no-models", state_dir=scratch / "state"
    )
    with Workspace.create(root, settings=settings) as ws:
        seqs = {ws.say(text, actor="user").seq for text in stated}
        yield from _captured(ws, stated, seqs)
        with ws.bulk():
            for number, line in enumerate(talk):
                if number % 100 == 0:
                    told(f"message {number:,} of {len(talk):,}")
                tell(ws, *line)
        held = _held(ws)
        captured = [item for item in held if any(one.seq in seqs for one in item.evidence)]
        yield Figure(
            "survival.false",
            "constraints and rejections of ordinary messages",
            len(held) - len(captured),
            beside=f"{len(talk):,} messages",
        )
        told("contexts")
        first = _seen(ws, captured, asked)
        yield from _figures(
            "", "", first, _floors([*(Line("user", one) for one in stated), *talk], captured, asked)
        )
        yield from _figures("_with_false", ", false ones counted", _seen(ws, held, asked))
        least = _least(ws)
        yield Figure(
            "survival.least_tokens", "the smallest context that holds all of it in short form", least
        )
        yield from _figures("_at_least", f", in a context of {least:,} tokens", _seen(ws, held, asked, least))
        told("maintenance")
        ws.maintain()
        yield from _figures("_after_maintain", ", after `agentx maintain`", _seen(ws, captured, asked))
    shutil.rmtree(root / ".agentx")
    told("rebuild")
    with Workspace.open(root, settings=settings) as ws:
        ws.rebuild()
        yield from _figures(
            "_after_rebuild", ", after .agentx was deleted and rebuilt", _seen(ws, captured, asked)
        )


# --- what is said ------------------------------------------------------------------------------------------------


def _stated(data: Path) -> list[str]:
    """The demands, of each chat in turn, then the rejections."""
    by_chat: dict[str, list[str]] = {}
    for row in _messages(data):
        if row.get("label") == "user_instruction":
            by_chat.setdefault(row["chat"], []).append(row["content"])
    labelled = rows(data / "coding_transcripts" / "labels.jsonl.gz")
    refused = [row["text"] for row in labelled if "rejection" in row["labels"] and not row.get("weak_labels")]
    demands = list(filter(None, chain.from_iterable(zip_longest(*by_chat.values()))))
    taken = refused[:REJECTIONS]
    return [*demands[: STATED - len(taken)], *taken]


def _ordinary(data: Path) -> list[Line]:
    """Messages in which no user demands anything that lasts."""
    others = (row for row in _messages(data) if row.get("label") not in _LASTING)
    lines = (Line("agent:main" if row["role"] == "assistant" else "user", row["content"]) for row in others)
    return list(islice(lines, MESSAGES))


def _messages(data: Path) -> Iterator[Row]:
    return (row for row in rows(data / "beam" / "messages.jsonl.gz") if (row.get("content") or "").strip())


def _questions(data: Path) -> list[str]:
    asked = list(dict.fromkeys(row["question"] for row in rows(data / "beam" / "queries.jsonl.gz")))
    return asked[:: max(1, len(asked) // REAL)][:REAL]


# --- what is looked at -------------------------------------------------------------------------------------------


def _held(ws: Workspace) -> list[MemoryItem]:
    return [item for kind in KINDS for item in ws.memory(kind)]


def _least(ws: Workspace) -> int:
    """Tokens that what must not be forgotten needs."""
    try:
        return ws.get_relevant_context(NEUTRAL, max_tokens=1).tokens
    except BudgetTooSmall as error:
        return error.needed


def _seen(ws: Workspace, items: Sequence[MemoryItem], asked: Sequence[str], budget: int = BUDGET) -> Seen:
    """The shares over contexts; one that cannot be had holds nothing."""
    found: list[Seen] = []
    for message in asked:
        try:
            context = ws.get_relevant_context(message, max_tokens=budget)
        except BudgetTooSmall:
            found.append(Seen(0, 0, 0, 0))
            continue
        ids = {one.id for one in context.items}
        words = _words_in(context.text, items)
        found.append(Seen(mean(item.id in ids for item in items), *words, context.tokens))
    return Seen(*map(mean, zip(*found, strict=True)))


def _words_in(text: str, items: Sequence[MemoryItem]) -> tuple[float, float]:
    """The shares of items whose text, in either form, and whose whole text stands in a text."""
    text = on_one_line(text)
    whole = [on_one_line(item.text) in text for item in items]
    short = [on_one_line(item.short or shorten(item.text)) in text for item in items]
    return mean(map(max, whole, short)), mean(whole)


def _floors(talk: Sequence[Line], items: Sequence[MemoryItem], asked: Sequence[str]) -> str:
    lines = [f"- {line.actor}: {line.text}" for line in talk]
    sizes = sizes_of(lines)
    latest = within(BUDGET, reversed(range(len(lines))), sizes, until_full=True)
    found = [within(BUDGET, order, sizes) for order in bm25_orders([line.text for line in talk], asked)]
    window = _words_in(_joined(lines, latest), items)[0]
    ranked = mean(_words_in(_joined(lines, taken), items)[0] for taken in found)
    return f"the last {BUDGET:,} tokens {window:.2f}; BM25 {ranked:.2f}"


def _joined(lines: Sequence[str], places: Sequence[int]) -> str:
    return "\n".join(lines[place] for place in places)


# --- figures -----------------------------------------------------------------------------------------------------


def _captured(ws: Workspace, stated: Sequence[str], seqs: set[int]) -> Iterator[Figure]:
    """What was captured at once; what was only proposed, a person then accepts."""
    at_once = {one.seq for item in _held(ws) for one in item.evidence} & seqs
    proposed = [item for kind in KINDS for item in ws.memory(kind, status="proposed")]
    for item in proposed:
        ws.review(item.id, accept=True)
    kinds = Counter(item.kind for item in _held(ws))
    yield Figure(
        "survival.stated", "demands and rejections that were stated", len(stated), more_is_better=True
    )
    yield Figure("survival.captured", "of them, active at once", len(at_once), more_is_better=True)
    yield Figure(
        "survival.accepted",
        "what was proposed of them, accepted by a person",
        len(proposed),
        more_is_better=True,
        beside=f"{kinds['constraint']} constraints and {kinds['rejection']} rejections stand",
    )


def _figures(suffix: str, said: str, seen: Seen, beside: str = "") -> Iterator[Figure]:
    yield Figure(
        f"survival.ids_in_context{suffix}",
        f"what was captured, its ids in a context{said}",
        seen.ids,
        1.0,
        1.0,
        more_is_better=True,
    )
    whole = f"whole {seen.whole:.2f}"
    yield Figure(
        f"survival.words_in_context{suffix}",
        f"the same, its words{said}",
        seen.words,
        1.0,
        1.0,
        more_is_better=True,
        beside="; ".join(filter(None, (beside, whole))),
    )
    yield Figure(
        f"survival.whole_in_context{suffix}",
        f"the same, its whole text{said}",
        seen.whole,
        more_is_better=True,
    )
    yield Figure(f"survival.tokens{suffix}", f"tokens of a context{said}", seen.tokens)
