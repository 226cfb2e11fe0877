"""The life of a rule: nightly decay, what reinforces or wakes it, and the rules given to every agent.

A score belongs to the band of its integer part, so 8.7 is an 8. Code never raises a score to 9 or more: only
the user makes a rule critical, and only the user can end a critical one.
"""

from datetime import datetime, timedelta

import msgspec

from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import MemoryItem, RuleDetail, Status, superseded_by
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.state.state import State

CRITICAL = 9.0
"""Score from which a rule never fades; only the user can end it."""

ACTIVE = 5.0
"""Score below which a rule is dormant: kept and searchable, but not loaded. New lessons and rules that wake
start here.
"""

ENDED = 3.0
"""Score below which a rule has faded: it is retired. If its words are stated again, it comes back."""

HIGHEST = 8.9
"""Highest score that code can give."""

KEPT = 0.25
"""Gain of a rule each time a task followed it."""

BROKEN = 0.5
"""Gain each time a task broke it: a rule that is broken needs more weight, not less."""

AGAIN = 0.5
"""Gain when a rule is stated again, or merged with a rule that says the same."""


class Band(msgspec.Struct, frozen=True):
    """How the scores from one number to the next fade.

    Attributes:
        least: The lowest score of the band.
        rest_days: Days after its last reinforcement during which a rule loses nothing.
        loss: What it loses each night after that.
    """

    least: float
    rest_days: int
    loss: float


BANDS = (Band(7.0, 30, 0.5), Band(ACTIVE, 7, 0.5), Band(0.0, 7, 1.0))
"""From strongest to weakest. Critical rules have no band."""


def band(score: float) -> Band:
    """Return the band of a score below :data:`CRITICAL`.

    >>> band(8.7).rest_days, band(6.5).loss, band(4.5).loss
    (30, 0.5, 1.0)
    """
    return next(one for one in BANDS if score >= one.least)


def is_critical(item: MemoryItem) -> bool:
    """Return whether an item is a rule that only the user can end."""
    return item.kind == "rule" and item.score >= CRITICAL


def fades(item: MemoryItem) -> bool:
    """Return whether nightly decay can lower a rule's score."""
    standing = item.status in ("active", "dormant")
    return item.kind == "rule" and standing and not item.pinned and item.score < CRITICAL


def has_faded(item: MemoryItem) -> bool:
    """Return whether a rule is retired because its score fell too low.

    A rule the user ended keeps its score, and only the user can bring it back.
    """
    ended = item.kind == "rule" and item.status == "retired" and item.score < ENDED
    return ended and not superseded_by(item)


def standing_as(score: float) -> Status:
    """Return the status of a rule with this score.

    >>> standing_as(5.0), standing_as(4.5), standing_as(2.5)
    ('active', 'dormant', 'retired')
    """
    return "active" if score >= ACTIVE else "dormant" if score >= ENDED else "retired"


def faded(item: MemoryItem, night: datetime) -> MemoryItem:
    """Return a rule after one night; the same object if it lost nothing.

    Args:
        item: Any item.
        night: The midnight that ends the day.
    """
    if not fades(item):
        return item
    try:
        rested = night - datetime.fromisoformat(item.used_at or item.created_at)
    except (ValueError, TypeError):  # a damaged timestamp
        return item
    here = band(item.score)
    if rested < timedelta(days=here.rest_days):
        return item
    score = round(max(item.score - here.loss, 1.0), 2)
    reason = (
        f"Not reinforced for {rested.days} days: {item.score:g} → {score:g} in the night to {night:%Y-%m-%d}."
    )
    return msgspec.structs.replace(item, score=score, status=standing_as(score), reason=reason)


# --- what reinforces a rule ---------------------------------------------------------------------------------


def reinforced(item: MemoryItem, at: str) -> Patch:
    """Reinforce a rule that a task followed.

    Adds :data:`KEPT` and restarts its rest. Wakes it if dormant or faded.

    Args:
        item: The rule. If it is not a rule, or the user ended it, only the time of use changes.
        at: Time, formatted like :attr:`agentx.storage.events.types.Event.at`.
    """
    return strengthened(item, at, KEPT, "a task kept it")


def violated(item: MemoryItem, at: str) -> Patch:
    """Count a violation of a rule and add :data:`BROKEN` to its score. Wakes it if dormant or faded.

    Args:
        item: As for :func:`reinforced`.
        at: Time.
    """
    patch = strengthened(item, at, BROKEN, "a task broke it")
    if not _in_play(item):
        return patch
    detail = item.detail if isinstance(item.detail, RuleDetail) else RuleDetail()
    return msgspec.structs.replace(
        patch, detail=msgspec.structs.replace(detail, violations=detail.violations + 1)
    )


def triggered(item: MemoryItem, at: str) -> Patch:
    """Restart the rest of a rule whose situation a gate recognised. Wakes it if dormant or faded.

    Args:
        item: As for :func:`reinforced`.
        at: Time.
    """
    return strengthened(item, at, 0.0, "its situation came up")


def strengthened(item: MemoryItem, at: str, gain: float, why: str) -> Patch:
    """Raise the score of a rule.

    Args:
        item: As for :func:`reinforced`.
        at: Time.
        gain: Amount to add, up to :data:`HIGHEST`.
        why: The cause, for the recorded reason.
    """
    at = max(at, item.used_at)
    if not _in_play(item):
        return Patch(id=item.id, used_at=at)
    score = risen(item.score, gain)
    if score >= ACTIVE and item.status == "active":
        return Patch(id=item.id, used_at=at, score=score)
    score = max(score, ACTIVE)
    slept = "had faded away" if item.status == "retired" else "slept"
    reason = f"It {slept} and is back at {score:g}: {why}."
    return Patch(id=item.id, used_at=at, score=score, status="active", reason=reason)


def risen(score: float, gain: float) -> float:
    """Return a score plus a gain. Code cannot raise it to critical.

    >>> risen(8.75, 0.5), risen(9.5, 0.5)
    (8.9, 9.5)
    """
    return max(score, round(min(score + gain, HIGHEST), 2))


def _in_play(item: MemoryItem) -> bool:
    return item.kind == "rule" and (item.status in ("active", "dormant") or has_faded(item))


# --- rules for every agent ----------------------------------------------------------------------------------


def boot_rules(state: State) -> list[MemoryItem]:
    """Return the rules given to every agent at its start.

    These are all critical or pinned ones, then the strongest, up to 20.

    Args:
        state: What is concluded.

    Returns:
        The strongest first; of equal ones, the older first.
    """
    rules = sorted(
        state.active("rule"), key=lambda item: (not item.pinned, -item.score, item.created_seq, item.id)
    )
    must = [item for item in rules if item.pinned or is_critical(item)]
    others = [item for item in rules if not (item.pinned or is_critical(item))]
    return [*must, *others[: max(0, POLICIES["rule"].shown - len(must))]]
