"""The life of a rule: how its score fades at night, what strengthens it, what wakes it, and which rules every agent is given.

A score belongs to the band of its whole part, so 8.7 is an 8. What code does to a score keeps it below 9: only a person
makes a rule critical, as only a person ends one that is.
"""

from datetime import datetime, timedelta

import msgspec

from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import MemoryItem, RuleDetail, Status
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.state.state import State

CRITICAL = 9.0
"""From here on a rule never fades, and only a person ends it."""

ACTIVE = 5.0
"""Below this a rule is dormant: kept, found by a search, and not loaded. A lesson enters here, and what wakes is here."""

ENDED = 3.0
"""Below this a rule has faded away: it is retired, and its own words can bring it back."""

HIGHEST = 8.9
"""As far as code raises a score."""

KEPT = 0.25
"""What a rule gains each time that a task kept it."""

BROKEN = 0.5
"""What it gains each time that one broke it: a rule that is broken needs more weight, not less."""

AGAIN = 0.5
"""What it gains where it is said again, or takes in a rule that says the same."""


class Band(msgspec.Struct, frozen=True):
    """How the scores from one number to the next fade.

    Attributes:
        least: The lowest score of the band.
        rest_days: So long after it was last reinforced a rule loses nothing.
        loss: What it loses in each night after that.
    """

    least: float
    rest_days: int
    loss: float


BANDS = (Band(7.0, 30, 0.5), Band(ACTIVE, 7, 0.5), Band(0.0, 7, 1.0))
"""From the strongest to the weakest; what is critical has none."""


def band(score: float) -> Band:
    """The band of a score below :data:`CRITICAL`.

    >>> band(8.7).rest_days, band(6.5).loss, band(4.5).loss
    (30, 0.5, 1.0)
    """
    return next(one for one in BANDS if score >= one.least)


def is_critical(item: MemoryItem) -> bool:
    """Whether an item is a rule that only a person ends."""
    return item.kind == "rule" and item.score >= CRITICAL


def fades(item: MemoryItem) -> bool:
    """Whether nights can lower a rule's score."""
    standing = item.status in ("active", "dormant")
    return item.kind == "rule" and standing and not item.pinned and item.score < CRITICAL


def has_faded(item: MemoryItem) -> bool:
    """Whether nights ended a rule. One that a person ended has kept its score, and nothing but a person brings it back."""
    return item.kind == "rule" and item.status == "retired" and item.score < ENDED


def standing_as(score: float) -> Status:
    """The status of a rule of a score.

    >>> standing_as(5.0), standing_as(4.5), standing_as(2.5)
    ('active', 'dormant', 'retired')
    """
    return "active" if score >= ACTIVE else "dormant" if score >= ENDED else "retired"


def faded(item: MemoryItem, night: datetime) -> MemoryItem:
    """A rule after a night; the very item where it lost nothing.

    Args:
        item: Any item.
        night: The midnight that ends the day.
    """
    if not fades(item):
        return item
    try:
        rested = night - datetime.fromisoformat(item.used_at or item.created_at)
    except (ValueError, TypeError):  # a damaged time
        return item
    here = band(item.score)
    if rested < timedelta(days=here.rest_days):
        return item
    score = round(max(item.score - here.loss, 1.0), 2)
    reason = (
        f"Not reinforced for {rested.days} days: {item.score:g} → {score:g} in the night to {night:%Y-%m-%d}."
    )
    return msgspec.structs.replace(item, score=score, status=standing_as(score), reason=reason)


# --- what strengthens a rule -----------------------------------------------------------------------------------------


def reinforced(item: MemoryItem, at: str) -> Patch:
    """A rule that a task kept: :data:`KEPT` more, and its rest begins anew. What slept or had faded away wakes.

    Args:
        item: The rule; of what a person ended, or what is no rule, only the time of use changes.
        at: When, as :attr:`agentx.storage.events.types.Event.at` has it.
    """
    return strengthened(item, at, KEPT, "a task kept it")


def violated(item: MemoryItem, at: str) -> Patch:
    """A rule that a task broke: one violation and :data:`BROKEN` more. What slept or had faded away wakes.

    Args:
        item: As of :func:`reinforced`.
        at: When.
    """
    patch = strengthened(item, at, BROKEN, "a task broke it")
    if not _in_play(item):
        return patch
    detail = item.detail if isinstance(item.detail, RuleDetail) else RuleDetail()
    return msgspec.structs.replace(
        patch, detail=msgspec.structs.replace(detail, violations=detail.violations + 1)
    )


def triggered(item: MemoryItem, at: str) -> Patch:
    """A rule whose situation came up, as a gate finds it: what slept or had faded away wakes, its rest begins anew.

    Args:
        item: As of :func:`reinforced`.
        at: When.
    """
    return strengthened(item, at, 0.0, "its situation came up")


def strengthened(item: MemoryItem, at: str, gain: float, why: str) -> Patch:
    """A rule that counts for more.

    Args:
        item: As of :func:`reinforced`.
        at: When.
        gain: How much more, up to :data:`HIGHEST`.
        why: The cause, for the reason.
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
    """A score and what it gains by code, which makes nothing critical.

    >>> risen(8.75, 0.5), risen(9.5, 0.5)
    (8.9, 9.5)
    """
    return max(score, round(min(score + gain, HIGHEST), 2))


def _in_play(item: MemoryItem) -> bool:
    return item.kind == "rule" and (item.status in ("active", "dormant") or has_faded(item))


# --- what every agent is given ---------------------------------------------------------------------------------------


def boot_rules(state: State) -> list[MemoryItem]:
    """The rules that every agent is given at its start: all that are critical or pinned, then the strongest up to 20.

    Args:
        state: What is concluded.

    Returns:
        The strongest first; the older one of two that are as strong.
    """
    rules = sorted(
        state.active("rule"), key=lambda item: (not item.pinned, -item.score, item.created_seq, item.id)
    )
    must = [item for item in rules if item.pinned or is_critical(item)]
    others = [item for item in rules if not (item.pinned or is_critical(item))]
    return [*must, *others[: max(0, POLICIES["rule"].shown - len(must))]]
