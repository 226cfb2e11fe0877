"""The extractor ``lapse``: closes a proposal that was not settled for long when the user speaks again.

Time is taken from the events, never from a clock, so that a replay and a resynthesis give the same result.
Nothing lapses while nobody works in the workspace. Repeating a demand restores it
(:mod:`agentx.synthesis.demands.demand_extractor`).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agentx.storage.clock import stamp
from agentx.storage.events.types import Event, UserMessageSent
from agentx.synthesis.memory.conclusions import Change, Patch
from agentx.synthesis.memory.items import LAPSED
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

"""Format of the time in events; earlier times sort first as text."""


class Lapse:
    """Closes proposals that have waited too long.

    Args:
        days: Number of days that a proposal waits; 0 means for ever.
    """

    name = "lapse"
    version = 1
    reads = (UserMessageSent,)

    def __init__(self, days: int) -> None:
        self._days = days

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Close unpinned proposals that were last changed at least ``days`` before this message."""
        del read  # the text of the message does not matter
        if not self._days or not isinstance(event.data, UserMessageSent):
            return ()
        try:
            latest = stamp(datetime.fromisoformat(event.at) - timedelta(days=self._days))
        except (ValueError, OverflowError):  # a damaged time
            return ()
        reason = f"{LAPSED}: nobody settled it within {self._days} day{'s' * (self._days != 1)}."
        return tuple(
            Patch(id=item.id, status="closed", reason=reason)
            for item in state.active(status="proposed")
            if "" < item.changed_at <= latest and not item.pinned
        )
