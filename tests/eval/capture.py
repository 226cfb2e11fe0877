"""The section ``beam``: lasting demands in long chats, told to a workspace of the product, message by message.

Every chat gets a workspace of its own. Its user's messages are said by the user and its assistant's by an agent, in their
order; what is scored are the constraints that the product recorded by itself.

- A demand *came of* a message when a constraint names it as evidence (:mod:`tests.eval.linked`), as the first that
  said it or as one that said it again; both are right where the message is labelled, and wrong where it is not.
  The keys without a suffix count what was active right after the message; those that end in ``_or_candidate`` count
  candidates too.
- For ``instruction`` the predicted messages are those with a ``must`` or a ``must_not``, for ``preference`` those with a
  ``prefer``, for ``demand`` those with either; positives are the messages with that label, all other messages of users
  are negatives.
- The instructions that do not begin a sentence with "always" or "never" are found when any demand came of them.
- The captured text is scored against ``gold_statement`` by its words (the best of the demands of a message): over
  all labelled messages, what was missed counted as 0, and over those of which a demand came.
- An instruction stands in a context when its words stand there in their order, or when they are those of one rule that
  is shown (token-F1 of at least 0.8). The floor is a search that may fill as many tokens.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.events.types import AgentMessageSent, Draft
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem
from tests.eval.data import Row, rows
from tests.eval.linked import linked
from tests.eval.scores import Score, token_f1, words
from tests.eval.telling import sizes_of, within
from tests.figures import Figure

LABELS = {
    "instruction": ("user_instruction",),
    "preference": ("preference",),
    "demand": ("user_instruction", "preference"),
}
MODALITIES = {
    "instruction": ("must", "must_not"),
    "preference": ("prefer",),
    "demand": ("must", "must_not", "prefer"),
}
TARGETS = {"instruction": 0.98, "preference": 0.72, "demand": 0.88}

ALWAYS = re.compile(r"(?:^|[.!?\n])\s*(?:always|never)\b", re.IGNORECASE)
"""The floor for instructions: a sentence that begins with always or never."""

I_PREFER = re.compile(r"\bI prefer\b", re.IGNORECASE)
"""The floor for preferences."""

FLOORS: dict[str, tuple[re.Pattern[str], ...]] = {
    "instruction": (ALWAYS,),
    "preference": (I_PREFER,),
    "demand": (ALWAYS, I_PREFER),
}
CONTEXT_TOKENS = 4_000
SAME_WORDS = 0.8
SEARCHED = 50
"""Hits of the floor's search; more than fit into a context."""


class Message(msgspec.Struct):
    """A message of a user, with the constraints that rest on it."""

    text: str
    label: str
    gold: str
    chat: str
    seq: int
    items: list[MemoryItem]

    @property
    def repeats(self) -> bool:
        """Whether it said again what an earlier message had said, and nothing new."""
        taken = self.gave(("active", "candidate"))
        return bool(taken) and all(item.evidence[0].seq != self.seq for item in taken)

    def gave(
        self, statuses: Sequence[str], modalities: Sequence[str] = MODALITIES["demand"]
    ) -> list[MemoryItem]:
        return [
            item
            for item in self.items
            if item.status in statuses
            and isinstance(item.detail, ConstraintDetail)
            and item.detail.modality in modalities
        ]


STEPS: dict[str, tuple[str, ...]] = {"": ("active",), "_or_candidate": ("active", "candidate")}


def capture(
    data: Path, scratch: Path, told: Callable[[str], None], then: Callable[[Workspace], object] = id
) -> Iterator[Figure]:
    """Score what the product takes from the chats of ``beam/``."""
    chats: dict[str, list[Row]] = {}
    for row in rows(data / "beam" / "messages.jsonl.gz"):
        chats.setdefault(row["chat"], []).append(row)
    asked = [
        row
        for row in rows(data / "beam" / "queries.jsonl.gz")
        if row.get("type") == "instruction_following" and row.get("instruction")
    ]
    messages: list[Message] = []
    in_context: list[bool] = []
    in_search: list[bool] = []
    settings = Settings(
        environ=dict(os.environ), cache_dir=scratch / "no-models", state_dir=scratch / "state"
    )
    for number, (name, chat) in enumerate(chats.items(), 1):
        told(f"chat {number} of {len(chats)}")
        with Workspace.create(scratch / f"beam-{number}", settings=settings) as ws:
            messages += _tell(ws, chat, then)
            for query in (row for row in asked if row["chat"] == name):
                in_context.append(_stands_in_context(ws, query))
                in_search.append(_is_found(ws, query))
    if messages:
        yield from _by_label(messages)
        yield from _not_always(messages)
        yield from _captured_words(messages)
    if in_context:
        yield _figure(
            "instruction_in_context",
            f"instructions in a context of {CONTEXT_TOKENS:,} tokens",
            sum(in_context) / len(in_context),
            0.95,
            beside=f"a search that fills as many: {sum(in_search) / len(in_search):.2f}; {len(in_context)} questions",
        )


def _tell(ws: Workspace, chat: Sequence[Row], then: Callable[[Workspace], object]) -> list[Message]:
    """Say a chat to a workspace; the user's messages with what came of each."""
    said: dict[int, Message] = {}
    with ws.bulk():
        for row in chat:
            text = row.get("content") or ""
            if not text.strip():
                continue
            if row["role"] != "user":
                ws.record(Draft(data=AgentMessageSent(body=ws.body(text), final=True), actor="agent:main"))
                continue
            label, gold = row.get("label") or "", row.get("gold_statement") or ""
            seq = ws.say(text, actor="user").seq
            said[seq] = Message(text, label, gold, row["chat"], seq, [])
            then(ws)
    for seq, items in linked(ws.events()).items():
        if seq in said:
            said[seq].items += [item for item in items.values() if item.kind == "constraint"]
    return list(said.values())


def _stands_in_context(ws: Workspace, query: Row) -> bool:
    context = ws.get_relevant_context(query["question"], max_tokens=CONTEXT_TOKENS)
    wanted = query["instruction"]
    if _holds(context.text, wanted):
        return True
    return any(
        item.section == "rules" and token_f1(item.text, wanted) >= SAME_WORDS for item in context.items
    )


def _is_found(ws: Workspace, query: Row) -> bool:
    found = [hit.text for hit in ws.search(query["question"], SEARCHED)]
    shown = within(CONTEXT_TOKENS, range(len(found)), sizes_of(found))
    return any(_holds(found[place], query["instruction"]) for place in shown)


def _holds(text: str, wanted: str) -> bool:
    return f" {' '.join(words(wanted))} " in f" {' '.join(words(text))} "


def _by_label(messages: Sequence[Message]) -> Iterator[Figure]:
    odd = set(list(dict.fromkeys(one.chat for one in messages))[::2])
    for name, labels in LABELS.items():
        floor = Score.of(
            (any(pattern.search(one.text) for pattern in FLOORS[name]), one.label in labels)
            for one in messages
        )
        for step, statuses in STEPS.items():
            judged = [
                (one.chat in odd, bool(one.gave(statuses, MODALITIES[name])), one.label in labels)
                for one in messages
            ]
            score = Score.of((given, gold) for _, given, gold in judged)
            halves = [
                Score.of((given, gold) for half, given, gold in judged if half == which)
                for which in (True, False)
            ]
            again = [
                one.label in labels
                for one in messages
                if one.repeats and one.gave(statuses, MODALITIES[name])
            ]
            counted = ", candidates counted" if step else ""
            yield _figure(
                f"{name}_f1{step}",
                f"{name}s: F1{counted}",
                score.f1,
                None if step else max(TARGETS[name], floor.f1),
                beside=f"a plain pattern {floor.f1:.3f}; odd and even chats {halves[0].f1:.3f}, {halves[1].f1:.3f}; "
                f"right {score.right}, wrong {score.wrong}, missed {score.missed}; "
                f"of these said again: {sum(again)} right, {len(again) - sum(again)} wrong",
            )
            for part in ("precision", "recall"):
                beside = f"a plain pattern {getattr(floor, part):.3f}"
                yield _figure(
                    f"{name}_{part}{step}", f"{name}s: {part}{counted}", getattr(score, part), beside=beside
                )


def _not_always(messages: Sequence[Message]) -> Iterator[Figure]:
    others = [one for one in messages if one.label in LABELS["instruction"] and not ALWAYS.search(one.text)]
    for step, statuses in STEPS.items():
        score = Score.of((bool(one.gave(statuses)), True) for one in others)
        yield _figure(
            f"instruction_not_always_recall{step}",
            f"instructions that do not begin with always or never: found{', candidates counted' if step else ''}",
            score.recall,
            None if step else 0.6,
            beside=f"a plain pattern: 0.00; {len(others)} messages",
        )


def _captured_words(messages: Sequence[Message]) -> Iterator[Figure]:
    """The captured text against the gold statement; the floor is the whole message."""
    labelled = [one for one in messages if one.label in LABELS["demand"] and one.gold]
    taken = [one for one in labelled if one.gave(("active",))]
    scores = [max(token_f1(item.text, one.gold) for item in one.gave(("active",))) for one in taken]
    for key, measure, over, target in (
        (
            "captured_token_f1_missed_as_zero",
            "words of the captured text against the label, F1, with missed demands as 0",
            labelled,
            None,
        ),
        ("captured_token_f1", "words of the captured text against the label, F1", taken, 0.85),
    ):
        whole = sum(token_f1(one.text, one.gold) for one in over)
        count = max(1, len(over))
        beside = f"the whole message {whole / count:.3f}; {len(over)} messages"
        yield _figure(key, measure, sum(scores) / count, target, beside=beside)


def _figure(key: str, measure: str, value: float, target: float | None = None, *, beside: str = "") -> Figure:
    return Figure(f"beam.{key}", measure, value, target, target, more_is_better=True, beside=beside)
