"""The section ``survival``: what users demanded and ruled out still stands in a context after 2,000 turns about other things.

Messages in the words of real users are said first: instructions and preferences of ``beam/``, the first of each chat,
then the second, and so on, and the clear rejections of ``coding_transcripts/`` (:data:`SAID`). Then come 2,000 turns of
ordinary conversation, messages of users and agents in which nothing lasting is demanded. Then contexts of 4,000 tokens
are asked for, for a message about nothing and for real questions.

A message is *captured* when an active constraint or rejection names it as evidence, and of it the labelled words where
the data says which they are; what was only a candidate, a person accepts at once, and both are counted apart. It
*survives* when such an item stands in the context. The share of what was said counts what was never captured as lost;
the share of what was captured says what the context itself loses. What ordinary messages gave rise to is *false*, and
competes for the room.

A demand's words stand in a context when its text does, or, where the budget is tight, its short form of 15 words; the share
that stands there whole is told beside it. The floors are the end of the conversation, and the messages that BM25 ranks
first, both up to 4,000 tokens: of them only words can be looked for.
"""

import os
import shutil
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from agentx import Workspace
from agentx.context.rendering import on_one_line
from agentx.settings import Settings
from agentx.storage.text import shorten
from agentx.synthesis.memory.items import Kind, MemoryItem
from tests.eval.data import Row, rows
from tests.eval.linked import rests_on
from tests.eval.ranked import bm25_orders, mean
from tests.eval.telling import Told, sizes_of, tell, within
from tests.figures import Figure

SAID = {"instruction": 40, "preference": 20, "rejection": 25}
"""Messages of each kind at most; there are no more clear rejections."""

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


class Said(NamedTuple):
    """A message that demands something or rules it out, the labelled words, and its event."""

    kind: str
    text: str
    span: str
    seq: int


class Seen(NamedTuple):
    """The shares of some items that contexts hold, by id, by words in either form and by the whole text.

    Attributes:
        shown: Ids of what stands in each context.
    """

    ids: float
    words: float
    whole: float
    tokens: float
    shown: Sequence[AbstractSet[str]]


def survival(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Shares of what was said, and of what was captured, that stand in a context of 4,000 tokens."""
    stated, talk, asked = _stated(data), _ordinary(data), [NEUTRAL, *_questions(data)]
    if not stated:
        return
    root = scratch / "survival"
    settings = Settings(
        environ=dict(os.environ), cache_dir=scratch / "no-models", state_dir=scratch / "state"
    )
    with Workspace.create(root, settings=settings) as ws:
        said = [Said(*one, ws.say(one[1], actor="user").seq) for one in stated]
        by_itself = _captured(ws, said)
        for item in [item for kind in KINDS for item in ws.memory(kind, status="candidate")]:
            ws.review(item.id, accept=True)
        with_help = _captured(ws, said)
        with ws.bulk():
            for number, line in enumerate(talk):
                if number % 100 == 0:
                    told(f"message {number:,} of {len(talk):,}")
                tell(ws, *line)
        held = _held(ws)
        captured = [item for item in held if any(_rests(item, one) for one in said)]
        told("contexts")
        first = _seen(ws, captured, asked)
        yield from _of_said(said, by_itself, with_help, _shown(said, held, first))
        yield Figure(
            "survival.false",
            "constraints and rejections of ordinary messages, in the same context",
            len(held) - len(captured),
            beside=f"of {len(talk):,} messages",
        )
        lines = [*(Line("user", one.text) for one in said), *talk]
        yield from _figures("", "", first, _floors(lines, captured, asked))
        least = _least(ws, held)
        yield Figure(
            "survival.least_tokens", "the smallest context that holds all of it in short form, tokens", least
        )
        yield from _figures("_at_least", f", in {least:,} tokens", _seen(ws, held, asked, least))
        told("maintenance")
        ws.maintain()
        yield from _figures("_after_maintain", ", after `agentx memory maintain`", _seen(ws, captured, asked))
    shutil.rmtree(root / ".agentx")
    told("rebuild")
    with Workspace.open(root, settings=settings) as ws:
        ws.rebuild()
        yield from _figures("_after_rebuild", ", after `.agentx` was deleted", _seen(ws, captured, asked))


# --- what is said ------------------------------------------------------------------------------------------------


def _stated(data: Path) -> list[tuple[str, str, str]]:
    """The demands, of each chat in turn, then the rejections; each with its kind and the labelled words."""
    by_kind = {
        "instruction": _in_turn(data, "user_instruction"),
        "preference": _in_turn(data, "preference"),
        "rejection": [
            (row["text"], (row.get("spans") or {}).get("rejection", ""))
            for row in rows(data / "coding_transcripts" / "labels.jsonl.gz")
            if "rejection" in row["labels"] and "rejection" not in row.get("weak_labels", ())
        ],
    }
    return [(kind, *one) for kind, several in by_kind.items() for one in several[: SAID[kind]]]


def _in_turn(data: Path, label: str) -> list[tuple[str, str]]:
    by_chat: dict[str, list[tuple[str, str]]] = {}
    for row in _messages(data):
        if row.get("label") == label:
            by_chat.setdefault(row["chat"], []).append((row["content"], ""))
    return list(filter(None, chain.from_iterable(zip_longest(*by_chat.values()))))


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


def _rests(item: MemoryItem, one: Said) -> bool:
    return rests_on(item, one.seq, one.text, one.span)


def _captured(ws: Workspace, said: Sequence[Said]) -> set[int]:
    """The messages that an active item rests on."""
    held = _held(ws)
    return {one.seq for one in said if any(_rests(item, one) for item in held)}


def _shown(said: Sequence[Said], held: Sequence[MemoryItem], seen: Seen) -> dict[int, float]:
    """For each message, the share of the contexts in which an item that rests on it stands."""
    rests = {one.seq: {item.id for item in held if _rests(item, one)} for one in said}
    return {seq: mean(bool(ids & shown) for shown in seen.shown) for seq, ids in rests.items()}


def _least(ws: Workspace, held: Sequence[MemoryItem]) -> int:
    """Tokens of the smallest context that shows all of what must not be forgotten."""
    wanted = {item.id for item in held}

    def shows_all(budget: int) -> bool:
        context = ws.get_relevant_context(NEUTRAL, max_tokens=budget)
        return wanted <= {one.id for one in context.items}

    return bisect_left(range(100_000), True, key=shows_all, lo=1)


def _seen(ws: Workspace, items: Sequence[MemoryItem], asked: Sequence[str], budget: int = BUDGET) -> Seen:
    """The shares over contexts."""
    found: list[tuple[float, float, float, int]] = []
    shown: list[set[str]] = []
    for message in asked:
        context = ws.get_relevant_context(message, max_tokens=budget)
        ids = {one.id for one in context.items}
        words = _words_in(context.text, items)
        found.append((mean(item.id in ids for item in items), *words, context.tokens))
        shown.append(ids)
    return Seen(*map(mean, zip(*found, strict=True)), shown)


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


def _of_said(
    said: Sequence[Said], by_itself: AbstractSet[int], with_help: AbstractSet[int], shown: Mapping[int, float]
) -> Iterator[Figure]:
    """What became of what was said, in all and of each kind."""
    kinds = dict.fromkeys(one.kind for one in said)
    for key, name, part in (
        ("", "all", said),
        *((f"{kind}_", f"{kind}s", [one for one in said if one.kind == kind]) for kind in kinds),
    ):
        captured = [one for one in part if one.seq in with_help]
        alone = [one for one in part if one.seq in by_itself]
        count = len(part)
        yield Figure(f"survival.{key}said", f"{name}: said", count, more_is_better=True)
        yield _share(f"{key}active", f"{name}: active at once", len(alone), count)
        yield _share(
            f"{key}captured", f"{name}: active at once, or candidate and accepted", len(captured), count
        )
        survived = sum(shown[one.seq] for one in captured)
        yield _share(f"{key}survived_of_said", f"{name}: survive, of what was said", survived, count)
        unaided = sum(shown[one.seq] for one in alone)
        yield _share(f"{key}survived_unaided", f"{name}: the same, with nobody to accept", unaided, count)
        if captured:
            measure = f"{name}: survive, of what was captured"
            yield _share(f"{key}survived_of_captured", measure, survived, len(captured), 1.0)


def _share(key: str, measure: str, hits: float, of: int, aim: float | None = None) -> Figure:
    beside = f"{hits:g} of {of}"
    return Figure(f"survival.{key}", measure, hits / of, aim, aim, more_is_better=True, beside=beside)


def _figures(suffix: str, said: str, seen: Seen, beside: str = "") -> Iterator[Figure]:
    yield Figure(
        f"survival.ids_in_context{suffix}",
        f"items of what was captured: in a context{said}",
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
