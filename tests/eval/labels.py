"""What the product takes from real developers' messages to a coding agent: lasting demands and ruled-out ideas.

Each conversation is said to a workspace of its own, in order, so that repetition, supersession and retraction act as they
do for a user; after each message is noted what the product drew from it. A *clear* label is one that two readers would
share (in ``labels``, not in ``weak_labels``). The step ``active`` counts what became a rule at once, ``candidate`` what was
at least candidates; what is taken of a labelled message counts where it rests on the labelled words. Precision is shown
twice, with weak labels counted as right and as wrong; recall is shown for clear and weak labels apart, and F1 leaves
the messages with a weak label out. Where nothing was taken, there is no precision.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentx import Workspace
from agentx.settings import Settings
from agentx.synthesis.memory.items import Kind, MemoryItem
from tests.eval.data import Row, rows
from tests.eval.linked import rests_on
from tests.eval.scores import Score, token_f1
from tests.figures import Figure

Label = Literal["demand", "rejection"]
KINDS: dict[Label, Kind] = {"demand": "constraint", "rejection": "rejection"}

PLAIN: dict[Label, re.Pattern[str]] = {
    "demand": re.compile(r"\b(?:always|never|from now on|prefer|must|should|make sure)\b", re.IGNORECASE),
    "rejection": re.compile(
        r"\b(?:no|not|nah|don't|doesn't|instead|revert|remove|wrong|undo|drop)\b", re.IGNORECASE
    ),
}
"""The floor: a message that holds one of these words."""


@dataclass(frozen=True)
class Drawn:
    """What came of one message: the items that name it as evidence, as they stood right after it."""

    row: Row
    seq: int
    items: tuple[MemoryItem, ...]
    new: frozenset[str]

    def taken(self, label: Label, *, active: bool = False) -> list[MemoryItem]:
        wanted = {"active"} if active else {"active", "candidate"}
        return [item for item in self.items if item.kind == KINDS[label] and item.status in wanted]

    def hit(self, label: Label, *, active: bool = False) -> bool:
        """Whether something was taken of the labelled words, or of a message without the label."""
        span = (self.row.get("spans") or {}).get(label, "") if self.labelled(label) else ""
        return any(
            rests_on(item, self.seq, self.row["text"], span) for item in self.taken(label, active=active)
        )

    def labelled(self, label: Label) -> bool:
        return label in self.row.get("labels", ())

    def clear(self, label: Label) -> bool:
        return self.labelled(label) and not self.weak(label)

    def weak(self, label: Label) -> bool:
        return label in self.row.get("weak_labels", ())


def labels(
    data: Path, scratch: Path, told: Callable[[str], None], then: Callable[[Workspace], object] = id
) -> Iterator[Figure]:
    """The section ``coding_transcripts`` of ``make eval``, for ``coding_transcripts/labels``."""
    drawn = list(draw(rows(data / "coding_transcripts" / "labels.jsonl.gz"), scratch / "labels", told, then))
    if drawn:
        yield from _promised(drawn)
        for label in KINDS:
            yield from _of_label(drawn, label)


def draw(
    messages: Iterable[Row],
    scratch: Path,
    told: Callable[[str], None],
    then: Callable[[Workspace], object] = id,
) -> Iterator[Drawn]:
    """Say each session's messages to a workspace of its own, and note what is drawn from each."""
    settings = Settings(
        environ=dict(os.environ), cache_dir=scratch / "no-models", state_dir=scratch / "state"
    )
    sessions: dict[str, list[Row]] = {}
    for row in messages:
        sessions.setdefault(row.get("session", ""), []).append(row)
    for number, session in enumerate(sessions.values(), start=1):
        told(f"conversation {number} of {len(sessions)}")
        with Workspace.create(scratch / str(number), settings=settings) as ws:
            for row in session:
                yield _said(ws, row, then)


def _said(ws: Workspace, row: Row, then: Callable[[Workspace], object]) -> Drawn:
    if not row.get("text", "").strip():
        return Drawn(row, 0, (), frozenset())
    before = {item.id for item in ws.memory(status=None)}
    seq = ws.say(row["text"], actor="user").seq
    then(ws)
    items = tuple(
        item for item in ws.memory(status=None) if any(evidence.seq == seq for evidence in item.evidence)
    )
    return Drawn(row, seq, items, frozenset(item.id for item in items) - before)


def _promised(drawn: Sequence[Drawn]) -> Iterator[Figure]:
    """The figures that the project promises; the floors beside them are those of :data:`PLAIN`."""
    share = 100 / len(drawn)
    for label, kind in KINDS.items():
        untrue = sum(len(one.taken(label, active=True)) for one in drawn if not one.labelled(label))
        plain = sum(_plain(one, label) and not one.labelled(label) for one in drawn)
        yield _figure(
            f"false_{kind}s_per_100", f"false active {kind}s in 100 messages", untrue * share, 1, 0.5,
            beside=f"{untrue} of {len(drawn)}; a plain pattern {plain * share:.1f}",
        )  # fmt: skip
    both = sum(_plain(one, label) for one in drawn for label in KINDS)
    yield _figure(
        "candidates_per_100", "candidates in 100 messages, right or wrong",
        sum(len(_candidates(one, label)) for one in drawn for label in KINDS) * share, 25, 15,
        beside=f"a plain pattern {both * share:.1f}",
    )  # fmt: skip
    for label, least, aim in (("demand", 0.77, 0.9), ("rejection", 0.77, 0.9)):
        clear = [one for one in drawn if one.clear(label)]
        beside = f"a plain pattern {_rate(_plain(one, label) for one in clear):.3f}; {sum(one.hit(label) for one in clear)} of {len(clear)}"
        recall = _rate(one.hit(label) for one in clear)
        yield _figure(
            f"{label}_recall", f"clear {label}s that are at least candidates", recall, least, aim,
            beside=beside, more_is_better=True,
        )  # fmt: skip


def _of_label(drawn: Sequence[Drawn], label: Label) -> Iterator[Figure]:
    candidates = sum(len(_candidates(one, label)) for one in drawn)
    yield _figure(f"{label}_candidates_per_100", f"{label} candidates in 100 messages", candidates * 100 / len(drawn))  # fmt: skip
    plain = [one for one in drawn if _plain(one, label)]
    for step in ("active", "candidate"):
        active, name = step == "active", f"{label}_{step}"
        taken = [one for one in drawn if one.taken(label, active=active)]
        hits = [one for one in taken if one.hit(label, active=active)]
        for key, said, has in (
            ("", "right", Drawn.labelled),
            ("_strict", "right, the weak ones counted as wrong", Drawn.clear),
        ):
            right, floor = (sum(has(one, label) for one in some) for some in (hits, plain))
            beside = f"{right} of {len(taken)}; a plain pattern {floor / max(1, len(plain)):.3f}"
            if taken:
                yield _figure(f"{name}{key}_precision", f"{label}s {step}: {said}", right / len(taken), beside=beside, more_is_better=True)  # fmt: skip
        for strength, has in (("clear", Drawn.clear), ("weak", Drawn.weak)):
            wanted = [one for one in drawn if has(one, label)]
            beside = f"{sum(one in hits for one in wanted)} of {len(wanted)}"
            yield _figure(f"{name}_{strength}_recall", f"{label}s {step}: of the {strength} ones", _rate(one in hits for one in wanted), beside=beside, more_is_better=True)  # fmt: skip
        score, least = (
            _clear_score(drawn, label, some, met) for some, met in ((taken, hits), (plain, plain))
        )
        yield _figure(f"{name}_f1", f"{label}s {step}: F1, the weak ones left out", score.f1, beside=f"a plain pattern {least.f1:.3f}", more_is_better=True)  # fmt: skip
    overlaps = [
        _span_f1(one, label) for one in drawn if one.taken(label) and label in (one.row.get("spans") or {})
    ]
    yield _figure(
        f"{label}_span_f1", f"{label}s: words shared with the labelled span", sum(overlaps) / max(1, len(overlaps)),
        beside=f"{len(overlaps)} messages", more_is_better=True,
    )  # fmt: skip
    if label == "rejection":
        either = _rate(one.hit(label) or _as_demand(one) for one in drawn if one.clear(label))
        yield _figure("rejection_recall_either_kind", "clear rejections, a constraint on the same words counted", either, more_is_better=True)  # fmt: skip


def _figure(
    key: str,
    measure: str,
    value: float,
    at_least: float | None = None,
    aim: float | None = None,
    *,
    beside: str = "",
    more_is_better: bool = False,
) -> Figure:
    return Figure(
        f"coding_transcripts.{key}", measure, value, at_least, aim, beside=beside, more_is_better=more_is_better
    )  # fmt: skip


def _plain(one: Drawn, label: Label) -> bool:
    return bool(PLAIN[label].search(one.row.get("text", "")))


def _candidates(one: Drawn, label: Label) -> list[MemoryItem]:
    return [item for item in one.taken(label) if item.status == "candidate" and item.id in one.new]


def _clear_score(
    drawn: Sequence[Drawn], label: Label, taken: Sequence[Drawn], hits: Sequence[Drawn]
) -> Score:
    """Of the messages without a weak label; other words than the labelled ones are wrong and missed."""
    right = sum(one.clear(label) for one in hits)
    wrong = sum(not one.weak(label) for one in taken) - right
    return Score(right, wrong, sum(one.clear(label) for one in drawn) - right)


def _rate(hits: Iterable[bool]) -> float:
    """The share that is true; of nothing it is 1, for nothing was missed."""
    counted = Counter(hits)
    return counted[True] / counted.total() if counted else 1.0


def _as_demand(one: Drawn) -> bool:
    """Whether a constraint rests on the words of the labelled rejection."""
    span = (one.row.get("spans") or {}).get("rejection", "")
    return any(rests_on(item, one.seq, one.row["text"], span) for item in one.taken("demand"))


def _span_f1(one: Drawn, label: Label) -> float:
    """The best of what was taken: an item's words against the labelled span."""
    span = one.row["spans"][label]
    return max(token_f1(item.evidence[-1].quote, span) for item in one.taken(label))
