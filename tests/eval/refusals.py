"""What a person refused, answered and approved, taken from a coding agent's calls without a model.

Each session's refused calls and answered questions are recorded in a workspace of its own, in order: once with the text
that the harness gave its agent, once with the harness's own sentence left out, once as a person's word on a call that
waits for it. Counted is what became of each, and how much of the reason was kept.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.events.types import Draft, Event, ToolCallExecuted, ToolCallRequested
from agentx.synthesis.memory.items import MemoryItem, RejectionDetail, sort_of
from tests.eval.data import Row, rows
from tests.eval.labels import Drawn, draw
from tests.eval.scores import Score, token_f1
from tests.eval.standing import standing
from tests.figures import Figure

IMPORTED = "import:transcript"

KEPT = 0.8
"""A reason is kept where its words are to this degree (token-F1)."""

Say = Callable[[Workspace, int, Row], Event]


@dataclass(frozen=True)
class Told:
    """A refusal, and the rejections that rest on it, as they stood right after it."""

    row: Row
    seq: int
    items: tuple[MemoryItem, ...]

    @property
    def f1(self) -> float:
        """The best of what was kept of its reason, against the reason."""
        said = [text for item in self.items for text in _reasons(item, self.seq)]
        return max((token_f1(text, self.row["reason"]) for text in said), default=0.0)


def refusals(data: Path, scratch: Path, told: Callable[[str], None]) -> Iterator[Figure]:
    """The section ``refusals`` of ``make eval``."""
    folder = data / "coding_transcripts"
    if refused := list(rows(folder / "rejections.jsonl.gz")):
        ways: dict[str, tuple[str, Say]] = {
            "": ("as they are", _as_it_is),
            "bare_": ("without the harness's sentence", _bare),
            "asked_": ("as an answer to a pending call", _asked),
        }
        for key, (name, say) in ways.items():
            told(f"refusals {name}")
            made = list(_told(refused, scratch / f"refusals-{key}", say))
            yield from _of_refusals(key, name, made)
        told("what stands")
        messages = list(rows(folder / "user_messages.jsonl.gz"))
        yield from standing(refused, messages, _settings(scratch), scratch / "standing", _as_it_is)
    if decided := list(rows(folder / "decisions.jsonl.gz")):
        told("answers and plans")
        yield from _of_decisions(decided, scratch / "decided")
    said = list(draw(rows(folder / "labels.jsonl.gz"), scratch / "notes", told))
    if said:
        yield from _of_notes(said)


# --- refusals --------------------------------------------------------------------------------------------------------


def _told(refused: Iterable[Row], scratch: Path, say: Say) -> Iterator[Told]:
    for number, session in enumerate(_sessions(refused).values()):
        with Workspace.create(scratch / str(number), settings=_settings(scratch)) as ws:
            for place, row in enumerate(session):
                seq = say(ws, place, row).seq
                items = ws.memory("rejection", status=None)
                yield Told(
                    row, seq, tuple(item for item in items if any(one.seq == seq for one in item.evidence))
                )


def _sessions(made: Iterable[Row]) -> dict[str, list[Row]]:
    sessions: dict[str, list[Row]] = {}
    for row in made:
        sessions.setdefault(row.get("session", ""), []).append(row)
    return sessions


def _settings(scratch: Path) -> Settings:
    return Settings(environ=dict(os.environ), cache_dir=scratch / "no-models", state_dir=scratch / "state")


def _as_it_is(ws: Workspace, number: int, row: Row) -> Event:
    return _denied(ws, number, row, row.get("raw") or row.get("reason") or "")


def _bare(ws: Workspace, number: int, row: Row) -> Event:
    return _denied(ws, number, row, row.get("reason") or "")


def _denied(ws: Workspace, number: int, row: Row, text: str) -> Event:
    call = ToolCallExecuted(
        call_id=f"call-{number}", tool=row.get("tool") or "", status="DENIED", arguments=_arguments(row), output=ws.body(text)
    )  # fmt: skip
    (event,) = ws.record(Draft(data=call, actor=IMPORTED))
    return event


def _asked(ws: Workspace, number: int, row: Row) -> Event:
    call = ToolCallRequested(
        call_id=f"call-{number}", tool=row.get("tool") or "", arguments=_arguments(row), awaits_approval=True
    )
    ws.record(Draft(data=call, actor="agent:main"))
    return ws.approve(f"call-{number}", approved=False, reason=row.get("reason") or "")


def _arguments(row: Row) -> Row:
    given = row.get("input")
    arguments = dict(given) if isinstance(given, dict) else {}
    return arguments | ({"command": row["command"]} if row.get("command") else {})


def _reasons(item: MemoryItem, seq: int) -> Iterator[str]:
    if isinstance(item.detail, RejectionDetail):
        yield item.detail.reason
    yield from (one.quote for one in item.evidence if one.seq == seq)


def _of_refusals(key: str, name: str, made: list[Told]) -> Iterator[Figure]:
    yield from _share(
        f"{key}captured", f"refusals {name}: recorded", [bool(one.items) for one in made], 1.0, 1.0
    )
    given = [one for one in made if (one.row.get("reason") or "").strip()]
    if not given:
        return
    kept = [one.f1 for one in given]
    plain = [token_f1(_last_line(one.row.get("raw") or ""), one.row["reason"]) for one in given]
    beside = f"the last line of the harness's text {_mean(plain):.3f}"
    yield _figure(f"{key}reason_f1", f"refusals {name}: words of the reason", _mean(kept), 0.8, 0.95, beside=beside)  # fmt: skip
    yield from _share(f"{key}reasons_kept", f"refusals {name}: reasons with an F1 of {KEPT} or more", [score >= KEPT for score in kept], 0.95, 1.0)  # fmt: skip
    active = [item for one in made for item in one.items if item.status == "active"]
    yield Figure(f"refusals.{key}standing", f"refusals {name}: ideas that stand", len({item.text for item in active}))  # fmt: skip


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 1.0


# --- answers and plans -----------------------------------------------------------------------------------------------

_TOOLS = {"plan_approved": "ExitPlanMode", "answer": "AskUserQuestion"}


def _of_decisions(decided: list[Row], scratch: Path) -> Iterator[Figure]:
    counted: dict[str, list[MemoryItem | None]] = {}
    for number, session in enumerate(_sessions(decided).values()):
        with Workspace.create(scratch / str(number), settings=_settings(scratch)) as ws:
            for place, row in enumerate(session):
                kind = row.get("kind") or ""
                given = row.get("question_input")
                call = ToolCallExecuted(
                    call_id=f"call-{place}",
                    tool=_TOOLS.get(kind, kind),
                    status="SUCCEEDED",
                    arguments=given if isinstance(given, dict) else {},
                    output=ws.body(row.get("result") or ""),
                )
                (event,) = ws.record(Draft(data=call, actor=IMPORTED))
                items = ws.memory("decision", status=None)
                rests = (item for item in items if any(one.seq == event.seq for one in item.evidence))
                counted.setdefault(kind, []).append(next(rests, None))
    for kind, found in counted.items():
        name = {"plan_approved": "approved plans", "answer": "answered questions"}.get(kind, kind)
        yield from _share(f"{kind}_recorded", f"{name} recorded as decisions", [item is not None for item in found], 0.9, 1.0)  # fmt: skip
        stands = sum(item is not None and item.status == "active" for item in found)
        yield _figure(f"{kind}_standing_count", f"{name} that decide something, and stand", stands, beside="the others ask back, or were decided anew")  # fmt: skip


# --- notes of what developers said -----------------------------------------------------------------------------------

_PLAIN = {
    "decision": re.compile(r"\b(?:let's|go with|option|decided?|i'd|should)\b", re.IGNORECASE),
    "discovery": re.compile(r"\b(?:found|noticed|turns out|bug|issue|problem|because)\b", re.IGNORECASE),
}
"""The floor: a message that holds one of these words."""

_STANDS = ("active", "dormant", "candidate")
"""An item that a message said again counts for that message, too; one that it ended does not."""


def _of_notes(said: list[Drawn]) -> Iterator[Figure]:
    for kind, pattern in _PLAIN.items():
        taken = [
            one for one in said if any(sort_of(item) == kind and item.status in _STANDS for item in one.items)
        ]
        plain = [one for one in said if pattern.search(one.row.get("text", ""))]
        labelled = [one for one in said if kind in one.row.get("labels", ())]
        clear = [one for one in labelled if kind not in one.row.get("weak_labels", ())]
        for key, measure, gold, of in (
            ("precision", "right", labelled, ""),
            ("clear_recall", "of the clear ones", clear, "clear "),
        ):
            score, floor = (Score.of((one in some, one in gold) for one in said) for some in (taken, plain))
            share, least = (score.recall, floor.recall) if of else (score.precision, floor.precision)
            count = len(clear) if of else len(taken)
            beside = f"{score.right} of {count}; a plain pattern {least:.3f}"
            yield _figure(f"{kind}_{key}", f"notes of a {kind}: {measure}", share, beside=beside)


def _share(key: str, measure: str, hits: list[bool], at_least: float, aim: float) -> Iterator[Figure]:
    """A share, and the two counts that it is made of."""
    yield _figure(key, measure, sum(hits) / len(hits), at_least, aim, beside=f"{sum(hits)} of {len(hits)}")


def _figure(
    key: str,
    measure: str,
    value: float,
    at_least: float | None = None,
    aim: float | None = None,
    *,
    beside: str = "",
) -> Figure:
    return Figure(f"refusals.{key}", measure, value, at_least, aim, more_is_better=True, beside=beside)
