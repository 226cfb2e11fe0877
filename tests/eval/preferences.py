"""The section ``prefeval``: preferences that people state, among questions and messages without any.

The preferences of a topic, and then the questions about it, are said to a workspace of its own; ordinary messages to
another one. A message counts as taken when a constraint or a rejection names it as evidence
(:mod:`tests.eval.linked`): each preference is one that lasts, each question and each ordinary message is none.
Nothing of the product was tuned on this data.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from agentx import Workspace
from agentx.settings import Settings
from tests.eval.data import rows
from tests.eval.linked import linked
from tests.eval.scores import Score
from tests.figures import Figure

Told = Callable[[str], None]

ATTITUDE = re.compile(r"\b(?:prefer|avoid|(?:do not|don't)|dislike|hate|love)\b", re.IGNORECASE)
"""The floor: a message that holds one of these words."""

KINDS = ("constraint", "rejection")
STEPS: dict[str, tuple[str, ...]] = {"": ("active",), "_or_candidate": ("active", "candidate")}


class Message(NamedTuple):
    """A message, whether it states a preference, and the statuses of what came of it."""

    text: str
    lasting: bool
    statuses: frozenset[str]


def preferences(data: Path, scratch: Path, told: Told) -> Iterator[Figure]:
    """Precision, recall and F1 of preferences that become active, and with candidates counted."""
    folder = data / "prefeval"
    topics: dict[str, list[tuple[str, bool]]] = {}
    for lasting, field in ((True, "preference"), (False, "question")):
        for row in rows(folder / "preferences.jsonl.gz"):
            topics.setdefault(row["topic"], []).append((row[field], lasting))
    topics["ordinary"] = [(row["text"], False) for row in rows(folder / "ordinary.jsonl.gz")]
    messages: list[Message] = []
    for number, (topic, texts) in enumerate(topics.items(), 1):
        told(f"{topic} ({number} of {len(topics)})")
        if texts:
            messages += _said(texts, scratch / f"prefeval-{number}")
    if any(one.lasting for one in messages):
        yield from _figures(messages)


def _said(texts: list[tuple[str, bool]], root: Path) -> list[Message]:
    settings = Settings(
        environ=dict(os.environ), cache_dir=root.parent / "no-models", state_dir=root.parent / "state"
    )
    with Workspace.create(root, settings=settings) as ws:
        with ws.bulk():
            seqs = [ws.say(text, actor="user").seq for text, _ in texts]
        found = linked(ws.events())
    return [
        Message(
            text, lasting, frozenset(one.status for one in found.get(seq, {}).values() if one.kind in KINDS)
        )
        for (text, lasting), seq in zip(texts, seqs, strict=True)
    ]


def _figures(messages: list[Message]) -> Iterator[Figure]:
    floor = Score.of((bool(ATTITUDE.search(one.text)), one.lasting) for one in messages)
    for step, statuses in STEPS.items():
        score = Score.of((not one.statuses.isdisjoint(statuses), one.lasting) for one in messages)
        counted = ", candidates counted" if step else ", active at once"
        for part in ("f1", "precision", "recall"):
            aim = floor.f1 if part == "f1" and not step else None
            beside = f"a plain pattern {getattr(floor, part):.3f}"
            if part == "f1":
                beside += f"; right {score.right}, wrong {score.wrong}, missed {score.missed}; {len(messages):,} messages"
            measure = f"PrefEval: preferences{counted}, {part if part != 'f1' else 'F1'}"
            yield Figure(
                f"prefeval.{part}{step}",
                measure,
                getattr(score, part),
                aim,
                aim,
                more_is_better=True,
                beside=beside,
            )
