"""What is remembered: the list of items, one item with its words, checks and life, and what waits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

from agentx.engine.moment_parser import events_at
from agentx.history.bisect import item_changes
from agentx.history.diff import fields_changed
from agentx.inspector.asking import Asked
from agentx.memory.editing import find
from agentx.memory.settling import most_useful_first
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Body, Event, TaskGraded
from agentx.storage.text import one_line
from agentx.synthesis.learning.merging import MERGED, STANDING, proposed_for
from agentx.synthesis.memory.checks import MODES, in_words
from agentx.synthesis.memory.conclusions import Concluded, Patch
from agentx.synthesis.memory.items import (
    FOUND_IN,
    Evidence,
    FlowDetail,
    HotIssueDetail,
    MemoryItem,
    checks_of,
    is_shown_only,
    not_passed,
    sort_of,
    status_in_words,
)
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.state.flows import advice, effectiveness, standing, told
from agentx.synthesis.state.state import State
from agentx.workspace import Workspace

AROUND = 240
"""Characters of a message shown on either side of a quote."""

MOST_CHANGES = 300
"""Maximum number of changes of one item that are shown: the latest ones."""

POINTS = 60
"""Number of points between which the fading of an item is drawn."""


def enforced(item: MemoryItem) -> str:
    """Return whether code enforces an item: ``enforced``, ``observed``, ``shown only``, or nothing to say."""
    modes = {check.mode for check in checks_of(item)}
    if modes:
        return "observed" if modes == {MODES[0]} else "enforced"
    return "shown only" if is_shown_only(item) else ""


def row(item: MemoryItem, state: State) -> dict[str, Any]:
    """Return an item as a row of a list."""
    return {
        "id": item.id,
        "kind": item.kind,
        "sort": sort_of(item),
        "text": item.text,
        "status": item.status,
        "ended": status_in_words(item) if item.status != status_in_words(item) else "",
        "score": item.score,
        "strength": item.strength,
        "vitality": round(vitality(item, state.at), 4),
        "pinned": item.pinned,
        "trust": item.trust,
        "checked": enforced(item),
        "until": item.until,
        "at": item.created_at,
        "seq": item.created_seq,
        "changed_at": item.changed_at,
        "changed_seq": item.changed_seq,
    }


def listed(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the items that match, the latest changed first, and the numbers of all by kind and status."""
    state = ws.engine.snapshot()
    kinds, statuses, words = asked.names("kind"), asked.names("status"), asked.text("q").casefold().split()
    found = [
        item
        for item in state.items.values()
        if (not kinds or item.kind in kinds)
        and (not statuses or item.status in statuses)
        and all(word in f"{item.id} {item.text}".casefold() for word in words)
    ]
    found.sort(key=lambda item: (item.changed_seq, item.id), reverse=True)
    return {
        "items": [row(item, state) for item in asked.page(found)],
        "total": len(found),
        "kinds": Counter(item.kind for item in state.items.values()),
        "statuses": Counter(item.status for item in state.items.values()),
    }


# --- one item -----------------------------------------------------------------------------------------------


def detail(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return one item: the words that it rests on, its checks, its links, and how it came to be.

    Raises:
        NoSuchItem: It does not exist.
    """
    engine, state = ws.engine, ws.engine.snapshot()
    item = find(engine, asked.text("id"), state)
    seqs = engine.links.at(state, lambda index: index.changed.get(item.id, [])[-MOST_CHANGES:])
    first = [item.created_seq] if item.created_seq not in seqs else []
    changes = list(item_changes(events_at(engine.log, [*first, *seqs]), item.id))
    return {
        "item": {**row(item, state), **msgspec.to_builtins(item)},
        "checked": enforced(item),
        "checks": [
            {
                "text": in_words(check),
                "enforced": check.mode != MODES[0],
                "level": check.mode,
                "doubt": check.doubt,
                "by": check.written_by or ("user" if check.by_hand else "compiled"),
            }
            for check in checks_of(item)
        ],
        "ended_by": POLICIES[item.kind].ended_by,
        "evidence": list(quoted(ws, item.evidence)),
        "perhaps_ended_by": list(quoted(ws, item.perhaps_ended_by)),
        "answers": next(quoted(ws, [item.answers]), None) if item.answers else None,
        "links": list(_links(item, state)),
        "curve": list(_curve(changes)),
        "fading": list(_fading([after for _, _, after in changes], state.at)),
        "life": list(_life(changes)),
        "may": actions(item, state),
    }


def quoted(
    ws: Workspace, evidence: Iterable[Evidence], known: Mapping[int, Event] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield quotes with their event, and with what stands around them.

    Args:
        ws: The workspace.
        evidence: The quotes.
        known: Their events, if they were read already.
    """
    spans = list(evidence)
    events = _said(ws, spans) if known is None else known
    for one in spans:
        event = events.get(one.seq)
        yield {
            "seq": one.seq,
            "actor": event.actor if event else "",
            "at": event.at if event else "",
            "quote": one.quote,
            "sentence": _around(ws, event, one) if event else "",
        }


def _said(ws: Workspace, evidence: Iterable[Evidence]) -> dict[int, Event]:
    return {event.seq: event for event in events_at(ws.engine.log, [one.seq for one in evidence])}


def _around(ws: Workspace, event: Event, one: Evidence) -> str:
    """Return a quote with what stands before and after it in its message; empty if that cannot be read."""
    body = getattr(event.data, "body", None)
    if not isinstance(body, Body):
        return ""
    try:
        text = ws.read_body(body)
    except AgentXError:  # purged or damaged
        return ""
    begin, end = max(0, one.start - AROUND), one.end + AROUND
    return "…" * (begin > 0) + text[begin:end] + "…" * (end < len(text))


def _links(item: MemoryItem, state: State) -> Iterator[dict[str, Any]]:
    for link in item.links:
        yield _link(link.target, link.relation, "out", state)
    for other in state.items.values():
        for link in other.links:
            if link.target == item.id and other.id != item.id:
                yield _link(other.id, link.relation, "in", state)


def _link(name: str, how: str, way: str, state: State) -> dict[str, Any]:
    other = state.items.get(name)
    return {
        "id": name if other else "",
        "text": other.text if other else name,
        "kind": other.kind if other else "",
        "how": how.replace("_", " "),
        "way": way,
    }


Changes = list[tuple[Event, MemoryItem | None, MemoryItem]]


def _curve(changes: Changes) -> Iterator[dict[str, Any]]:
    """Yield the item's figures after each change of it."""
    for event, _, after in changes:
        yield {
            "seq": event.seq,
            "at": event.at,
            "score": after.score,
            "strength": after.strength,
            "vitality": round(vitality(after, event.at), 4),
            "why": one_line(event.describe() or event.type),
        }


def _fading(versions: list[MemoryItem], now: str) -> Iterator[tuple[str, float]]:
    """Yield the item's vitality over time, as its kind fades: pairs of a time and a value from 0 to 1."""
    times = [version.changed_at or version.created_at for version in versions] + [now]
    try:
        moments = [datetime.fromisoformat(time) for time in times]
    except ValueError:  # an event with a damaged time
        return
    whole = (moments[-1] - moments[0]).total_seconds() if versions else 0.0
    for version, (begin, end) in zip(versions, pairwise(moments), strict=True):
        share = (end - begin).total_seconds() / whole if whole > 0 else 0.0
        steps = max(1, round(POINTS * share))
        for step in range(steps):
            time = stamp(begin + (end - begin) * step / steps)
            yield time, round(vitality(version, time), 4)
    if versions:
        yield now, round(vitality(versions[-1], now), 4)


def _life(changes: Changes) -> Iterator[dict[str, Any]]:
    """Yield what happened to the item, in words."""
    for event, before, after in changes:
        fields = fields_changed(before, after) if before else ()
        what = [f"{one.name}: {one.old or 'nothing'} → {one.new or 'nothing'}" for one in fields]
        yield {
            "seq": event.seq,
            "at": event.at,
            "actor": event.actor,
            "what": "; ".join(map(one_line, what)) or f"created as {after.status}",
            "why": after.reason if not before or before.reason != after.reason else "",
        }


def actions(item: MemoryItem, state: State) -> list[str]:
    """Return the acts that the user may do on an item; see :mod:`agentx.inspector.acts`."""
    other = proposed_for(item, state.items)
    decides = item.status == "candidate" or bool(item.perhaps_ended_by) or other is not None
    decide = ["accept", "reject"] if decides else []
    if item.status not in STANDING:
        return decide
    own = ["edit", "retire", "unpin" if item.pinned else "pin"]
    return [*decide, *own, *(["merge"] if item.kind in MERGED else [])]


# --- what waits, what is broken, what is done repeatedly ----------------------------------------------------


def candidates(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return what the user can settle, the most useful first."""
    state = ws.engine.snapshot()
    waiting = most_useful_first(state)
    shown = asked.page(waiting)
    events = _said(ws, [one for item in shown for one in (*item.evidence, *item.perhaps_ended_by)])
    return {
        "candidates": [_candidate(ws, item, state, events) for item in shown],
        "total": len(waiting),
    }


def _candidate(ws: Workspace, item: MemoryItem, state: State, events: Mapping[int, Event]) -> dict[str, Any]:
    said = list(quoted(ws, item.perhaps_ended_by or item.evidence, events))
    other = proposed_for(item, state.items)
    return {
        **row(item, state),
        "said": said[-1]["quote"] if said else item.text,
        "evidence": said,
        "answers": item.answers.quote if item.answers else "",
        "why": item.reason,
        "perhaps_ended": bool(item.perhaps_ended_by) and item.status == "active",
        "same_as": {"id": other.id, "text": other.text} if other else None,
        "steps": item.detail.steps if isinstance(item.detail, FlowDetail) else (),
        "file": next((link.target for link in item.links if link.relation == FOUND_IN), ""),
        "may": actions(item, state),
    }


def problems(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return the checks that fail, the most important first, and those that pass again, the latest first."""
    state = ws.engine.snapshot()
    issues = [item for item in state.items.values() if isinstance(item.detail, HotIssueDetail)]
    still = sorted((item for item in issues if item.status == "active"), key=_urgency)
    over = sorted((item for item in issues if item.status != "active"), key=lambda item: -item.changed_seq)
    shown = asked.page(over)
    ends = ws.engine.links.at(
        state, lambda index: {item.id: index.changed.get(item.id, [])[-MOST_CHANGES:] for item in shown}
    )
    every = {
        event.seq: event
        for event in events_at(ws.engine.log, [seq for seqs in ends.values() for seq in seqs])
    }
    events = {
        item.id: _closed_in(item, [every[seq] for seq in ends[item.id] if seq in every]) for item in shown
    }
    causes = {e.seq: e for e in events_at(ws.engine.log, [event.cause for event in events.values() if event])}
    closed = []
    for item in shown:
        event = events[item.id]
        by = (causes.get(event.cause) or event) if event else None
        end = {
            "seq": event.seq if event else item.changed_seq,
            "at": event.at if event else item.changed_at,
            "by": one_line(by.describe()) if by else "",
        }
        closed.append({**_problem(item, state), "closed": {**end, "by_seq": by.seq if by else 0}})
    return {"open": [_problem(item, state) for item in still], "closed": closed, "closed_total": len(over)}


def _closed_in(item: MemoryItem, changes: list[Event]) -> Event | None:
    """Return the event that closed an item, or else the last one that changed it; it may be retired since."""
    for event in reversed(changes):
        if isinstance(event.data, Concluded):
            for one in event.data.changes:
                if isinstance(one, Patch) and one.id == item.id and one.status == "closed":
                    return event
    return changes[-1] if changes else None


def _urgency(item: MemoryItem) -> tuple[int, int]:
    detail = item.detail
    priority = detail.priority if isinstance(detail, HotIssueDetail) else "normal"
    return ("critical", "high", "normal").index(priority), -item.created_seq


def _problem(item: MemoryItem, state: State) -> dict[str, Any]:
    detail = item.detail
    assert isinstance(detail, HotIssueDetail)
    return {
        **row(item, state),
        "priority": detail.priority,
        "runner": detail.runner,
        "check": detail.check,
        "path": detail.path,
        "line": detail.line,
        "command": detail.command,
        "opened": {"seq": item.created_seq, "at": item.created_at},
        "last_seq": detail.last_seq,
        "excerpt": detail.message,
        "times": detail.failures,
        "state": not_passed(detail),
        "outcome": detail.ended,
        "may": actions(item, state),
    }


def flows(ws: Workspace, _asked: Asked) -> dict[str, Any]:
    """Return the procedures with their record, and what should be done about them."""
    state = ws.engine.snapshot()
    known = [item for item in state.items.values() if isinstance(item.detail, FlowDetail)]
    grades = ws.engine.links.at(
        state, lambda index: {item.id: list(index.graded.get(item.id, ())) for item in known}
    )
    wanted = [seq for seqs in grades.values() for seq in seqs]
    every = {event.seq: event for event in events_at(ws.engine.log, wanted)}
    found = []
    for item in known:
        graded = [every[seq] for seq in reversed(grades[item.id]) if seq in every]
        found.append(_flow(item, graded, state))
    found.sort(key=lambda one: (one["status"] != "active", -one["rate"]["low"]))
    return {"flows": found, "advice": advice(state)}


def _flow(item: MemoryItem, graded: list[Event], state: State) -> dict[str, Any]:
    detail = item.detail
    assert isinstance(detail, FlowDetail)
    return {
        **row(item, state),
        "trigger": ", ".join(detail.triggers),
        "triggers": detail.triggers,
        "steps": detail.steps,
        "used": detail.succeeded + detail.failed,
        "held": detail.succeeded,
        "not_followed": detail.not_followed,
        "rate": msgspec.to_builtins(effectiveness(detail)),
        "standing": standing(detail),
        "told": told(detail),
        "version": detail.version,
        "needs_approval": detail.needs_approval,
        "runs": [_grade(event) for event in graded],
        "may": actions(item, state),
    }


def _grade(event: Event) -> dict[str, Any]:
    graded = event.data
    assert isinstance(graded, TaskGraded)
    return {
        "seq": event.seq,
        "at": event.at,
        "run": event.run,
        "text": graded.task,
        "outcome": "passed" if graded.passed else "failed",
        "followed": graded.followed,
        "steps_seen": graded.steps_seen,
        "steps": graded.steps,
    }
