"""A fleet, for its screen: the queue over time, runs with their parts, workers, costs, and what failed."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agentx.fleet import place as places
from agentx.fleet.overview import Run, overview
from agentx.fleet.place import Place
from agentx.inspector.asking import Asked
from agentx.storage.text import encodable, one_line

ID = "fleet"
"""Its id among the workspaces of a page, whose ids are longer."""

MOST_READ = 1_000
"""Maximum number of submissions that are read: the latest ones."""

MOST_MINUTES = 1_440
_STEPS = 120
_SHOWN, _FAILED, _SLOWEST = 24, 12, 8
_MS_PER_MINUTE = 60_000
_WAITING = ("QUEUED", "RUNNING")
_IN_ORDER = ("COMPLETED", *_WAITING)


def fleet(place: Place, asked: Asked) -> dict[str, Any]:
    """Return what a fleet does, and did in the last ``minutes``.

    Raises:
        QueueFailed: The database cannot be reached.
    """
    minutes = asked.number("minutes", 60, least=1, most=MOST_MINUTES)
    with places.opened(place) as queue:
        found = overview(place, queue, MOST_READ)
    now = time.time_ns() // 1_000_000
    begin = now - minutes * _MS_PER_MINUTE
    read = found.runs
    if len(read) == MOST_READ:  # what was before is not known
        begin = max(begin, min(one.submitted_ms for one in read))
    ended = [one for one in read if one.status not in _WAITING and one.ended_ms >= begin]
    return {
        "tenant": found.tenant,
        "remote": encodable(found.remote),
        "database": encodable(found.database),
        "minutes": minutes,
        "at": now / 1000,
        "counts": {"queued": found.queued, "running": found.running, "ended": found.ended},
        "oldest_s": max(
            [(now - one.submitted_ms) / 1000 for one in read if one.status == "QUEUED"], default=0.0
        ),
        "depth": _depth(read, begin, now),
        "statuses": _counted(one.status for one in ended),
        "workers": [
            {
                "name": encodable(one.name),
                "slots": one.slots,
                "running": one.running,
                "quiet_s": round(one.quiet_s, 1),
                "state": "lost" if one.name in found.lost else "draining" if one.draining else "alive",
            }
            for one in found.workers
        ],
        "lease_s": place.lease_s,
        "runs": [_shown(one, now) for one in sorted(read, key=_order)[:_SHOWN]],
        "failures": [_shown(one, now) for one in ended if one.status not in _IN_ORDER][:_FAILED],
        "slowest": _slowest(ended),
        "usage": _usage(ended),
        "stranded": [
            {name: encodable(value) if isinstance(value, str) else value for name, value in about.items()}
            for about in map(msgspec.structs.asdict, found.stranded)
        ],
    }


def _order(one: Run) -> tuple[bool, int]:
    """Return the place of a run in the list: what is at work first, then the latest."""
    return one.status != "RUNNING", -(one.ended_ms or one.started_ms or one.submitted_ms)


def _counted(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for name in names:
        found[encodable(name)] += 1
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def _depth(runs: Sequence[Run], begin: int, now: int) -> dict[str, list[float]]:
    """Return how many submissions waited and were at work over time: the most in each step.

    One that another worker took over counts as waiting until its last start.
    """
    changes: list[tuple[int, int, int]] = []
    for one in runs:
        started = one.started_ms or now + 1
        changes.append((one.submitted_ms, 1, 0))
        changes.append((started, -1, 1))
        changes.append((one.ended_ms if one.status not in _WAITING else now + 1, 0, -1))
    changes.sort()
    step = max(1, (now - begin) // _STEPS)
    found: dict[str, list[float]] = {"x": [], "queued": [], "running": []}
    queued = running = place = 0
    for at in range(begin, now + 1, step):
        most_queued, most_running = queued, running
        while place < len(changes) and changes[place][0] <= at:
            queued, running = queued + changes[place][1], running + changes[place][2]
            most_queued, most_running = max(most_queued, queued), max(most_running, running)
            place += 1
        past = at > begin  # what came before the first step is no peak of it
        found["x"].append(at / 1000)
        found["queued"].append(max(0, most_queued if past else queued))
        found["running"].append(max(0, most_running if past else running))
    return found


def _shown(one: Run, now: int) -> dict[str, Any]:
    work = sum(one.seconds.values())
    if one.status == "RUNNING":
        work = max(0.0, (now - one.started_ms) / 1000)
    waited = max(0.0, (now - one.submitted_ms) / 1000) if one.status == "QUEUED" else one.queued_s
    return {
        "submission": encodable(one.submission),
        "workspace": encodable(one.workspace),
        "status": encodable(one.status),
        "worker": encodable(one.worker),
        "reason": one_line(encodable(one.reason))[:600],
        "run": encodable(one.run),
        "copy": one.copy,
        "at": (one.ended_ms or one.started_ms or one.submitted_ms) / 1000,
        "queued_s": round(waited, 3),
        "work_s": round(work, 3),
        "parts": one.seconds,
        "tokens": one.prompt_tokens + one.completion_tokens,
        "cost": one.cost_usd,
    }


def _slowest(ended: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the workspaces whose runs take longest, with the quantiles of each part."""
    by_name: dict[str, list[Run]] = defaultdict(list)
    for one in ended:
        if one.seconds:
            by_name[one.workspace].append(one)
    found: list[dict[str, Any]] = []
    for name, runs in by_name.items():
        every = [{"queue": one.queued_s, **one.seconds} for one in runs]
        parts = dict.fromkeys(part for one in every for part in one)
        whole = [sum(one.values()) for one in every]
        found.append(
            {
                "workspace": encodable(name),
                "runs": len(runs),
                "p50": _quantile(whole, 0.5),
                "p95": _quantile(whole, 0.95),
                "parts": {
                    part: [_quantile([one.get(part, 0.0) for one in every], share) for share in (0.5, 0.95)]
                    for part in parts
                },
            }
        )
    found.sort(key=lambda one: -one["p95"])
    return found[:_SLOWEST]


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of all does not exceed.

    >>> _quantile([3.0, 1.0, 2.0], 0.5), _quantile([3.0, 1.0, 2.0], 0.95)
    (2.0, 3.0)
    """
    ordered = sorted(values)
    return round(ordered[max(0, -int(-share * len(ordered) // 1) - 1)], 3)


def _usage(ended: Sequence[Run]) -> list[dict[str, Any]]:
    """Return what each model used, the most expensive first."""
    found: dict[str, dict[str, Any]] = {}
    for one in ended:
        if one.model:
            name = encodable(one.model)
            row = found.setdefault(name, {"model": name, "runs": 0, "in": 0, "out": 0, "cost": 0.0})
            row["runs"] += 1
            row["in"] += one.prompt_tokens
            row["out"] += one.completion_tokens
            row["cost"] = round(row["cost"] + one.cost_usd, 6)
    return sorted(found.values(), key=lambda row: (-row["cost"], -row["in"]))
