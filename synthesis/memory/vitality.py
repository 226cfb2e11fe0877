"""How alive a memory is: what is not used fades, by the curve that the policy table gives its kind.

Nothing of it is stored: it is worked out from when an item was made and last used, at the time of the last event of the
state that is read. So an old state shows what it showed then.
"""

import math
from datetime import datetime

from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.memory.policies import POLICIES

HALF_LIFE_DAYS = 30.0
"""Logistic: a memory that was never used again is half alive after so long; each use moves that by as much."""

FADING_DAYS = 5.0
"""Logistic: the width of the fall around that day."""

FORGETTING_DAYS = 7.0
"""Ebbinghaus: the time constant of a memory of strength 1."""

_LARGEST_EXPONENT = 700.0


def vitality(item: MemoryItem, now: str) -> float:
    """How alive an item is, from 0 to 1.

    With ``t`` the days since it was last used (or made) and ``S`` its strength: logistic
    ``1 / (1 + exp((t - 30 S) / 5))``, Ebbinghaus ``exp(-t / (7 S))`` (H. Ebbinghaus, "Über das Gedächtnis", 1885, in
    the form of MemoryBank, Zhong et al. 2023), step ``score / 10``, and 1 where the kind does not decay.

    Args:
        item: What is remembered.
        now: As :attr:`agentx.synthesis.state.state.State.at` has it.

    >>> from agentx.synthesis.memory.items import MemoryItem
    >>> item = MemoryItem(id="k-1", kind="knowledge", text="x", created_at="2026-01-01T00:00:00.000000Z")
    >>> round(vitality(item, "2026-01-31T00:00:00.000000Z"), 2)
    0.5
    """
    decay = POLICIES[item.kind].decay
    if decay == "none" or item.pinned:
        return 1.0
    if decay == "step":
        return item.score / 10
    days = days_between(item.used_at or item.created_at, now)
    if decay == "logistic":
        exponent = (days - HALF_LIFE_DAYS * item.strength) / FADING_DAYS
        return 1.0 / (1.0 + math.exp(min(exponent, _LARGEST_EXPONENT)))
    return math.exp(-days / (FORGETTING_DAYS * item.strength))


def days_between(earlier: str, later: str) -> float:
    """Days from one event's time to another's; 0 where one is unknown, damaged, or not earlier.

    >>> days_between("2026-01-01T00:00:00.000000Z", "2026-01-02T12:00:00.000000Z")
    1.5
    """
    try:
        between = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    except (ValueError, TypeError):
        return 0.0
    return max(between.total_seconds() / 86_400, 0.0)
