"""The vitality of a memory: an unused item fades along the decay curve of its kind in the policy table.

Vitality is not stored. It is computed from the times of an item's creation and last use, as of the last event
of the state that is read. So an old state shows the same values as at its time.
"""

import math
from datetime import datetime

from agentx.synthesis.memory.items import MemoryItem, RuleDetail
from agentx.synthesis.memory.policies import POLICIES

HALF_LIFE_DAYS = 30.0
"""Logistic decay: days without use until an item of strength 1 has vitality 0.5; scales with the strength."""

FADING_DAYS = 5.0
"""Logistic decay: the width of the drop around that day."""

FORGETTING_DAYS = 7.0
"""Ebbinghaus decay: the time constant of an item of strength 1."""

SLEEPS_AFTER = 20
"""Opportunities: tasks in a row that passed a rule over, after which it is dormant."""

RETIRED_AFTER = 40
"""Opportunities: the same, after which it is retired."""

_LARGEST_EXPONENT = 700.0


def vitality(item: MemoryItem, now: str) -> float:
    """Return the vitality of an item, from 0 to 1.

    With ``t`` the days since it was last used (or created) and ``S`` its strength: logistic
    ``1 / (1 + exp((t - 30 S) / 5))``, Ebbinghaus ``exp(-t / (7 S))`` (H. Ebbinghaus, "Über das Gedächtnis",
    1885, in the form of MemoryBank, Zhong et al. 2023), opportunities ``weight / 10``. It is 1 if the kind
    does not decay or the item is pinned.

    Args:
        item: The memory item.
        now: A time in the format of :attr:`agentx.synthesis.state.state.State.at`.

    >>> from agentx.synthesis.memory.items import MemoryItem
    >>> item = MemoryItem(id="k-1", kind="knowledge", text="x", created_at="2026-01-01T00:00:00.000000Z")
    >>> round(vitality(item, "2026-01-31T00:00:00.000000Z"), 2)
    0.5
    """
    decay = POLICIES[item.kind].decay
    if decay == "none" or item.pinned:
        return 1.0
    if decay == "opportunities":
        return weight(item) / 10
    days = days_between(item.used_at or item.created_at, now)
    if decay == "logistic":
        exponent = (days - HALF_LIFE_DAYS * item.strength) / FADING_DAYS
        return 1.0 / (1.0 + math.exp(min(exponent, _LARGEST_EXPONENT)))
    return math.exp(-days / (FORGETTING_DAYS * item.strength))


def weight(item: MemoryItem) -> float:
    """Return the score of an item, less its share of the tasks after which a rule is retired.

    >>> weight(MemoryItem(id="r-1", kind="rule", text="x", score=6.0, detail=RuleDetail(passed_over=10)))
    4.5
    """
    passed_over = item.detail.passed_over if isinstance(item.detail, RuleDetail) else 0
    return item.score * max(0.0, 1.0 - passed_over / RETIRED_AFTER)


def days_between(earlier: str, later: str) -> float:
    """Return the days between two event times; 0 if one is unknown or damaged, or ``later`` is not later.

    >>> days_between("2026-01-01T00:00:00.000000Z", "2026-01-02T12:00:00.000000Z")
    1.5
    """
    try:
        between = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    except (ValueError, TypeError):
        return 0.0
    return max(between.total_seconds() / 86_400, 0.0)
