"""The extractor ``lapse``: a proposal that nobody settled for long is laid aside when the user speaks again.

Time is what the events say, never a clock, so that a replay and a resynthesis lay aside the same. Nothing lapses while
nobody works in the workspace; saying it again brings it back (:mod:`agentx.synthesis.demands.extractor`).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agentx.storage.events.types import Event, UserMessageSent
from agentx.synthesis.memory.conclusions import Change, Patch
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

_AT = "%Y-%m-%dT%H:%M:%S.%fZ"
"""How events say when they were recorded: earlier times are smaller texts."""


class Lapse:
    """Archives proposals that have waited too long.

    Args:
        days: So long a proposal waits; 0 for ever.
    """

    name = "lapse"
    version = 1

    def __init__(self, days: int) -> None:
        self._days = days

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Archive what is only proposed, not pinned, and was last touched so many days before this message."""
        del read  # whatever the message says
        if not self._days or not isinstance(event.data, UserMessageSent):
            return ()
        try:
            latest = (datetime.fromisoformat(event.at) - timedelta(days=self._days)).strftime(_AT)
        except (ValueError, OverflowError):  # a damaged time
            return ()
        reason = f"It lapsed: nobody settled it within {self._days} day{'s' * (self._days != 1)}."
        return tuple(
            Patch(id=item.id, status="archived", reason=reason)
            for item in state.active(status="proposed")
            if "" < item.changed_at <= latest and not item.pinned
        )
