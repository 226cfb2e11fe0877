"""The extractors ``demands`` and ``lapse``, which read the user's own messages.

``demands`` concludes constraints and rejections. ``lapse`` closes a candidate that was not settled for long
when the user speaks again; repeating the demand restores it. Time is taken from the events, never from a
clock, so that a replay and a resynthesis give the same result. Nothing lapses while nobody works in the
workspace.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from agentx.storage.clock import stamp
from agentx.storage.events.types import Event, Payload, UserMessageSent
from agentx.synthesis.attribution.copies import Copied, Heard
from agentx.synthesis.compiling.compile import asking, compile_checks
from agentx.synthesis.demands.book import Book, from_user
from agentx.synthesis.demands.classify import Reading, readings
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import (
    LAPSED,
    ConstraintDetail,
    RejectionDetail,
    checks_of,
    is_offered,
)
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State


class DemandExtractor:
    """Extracts the lasting demands from a user's message, without a model.

    Only ``UserMessageSent`` by ``user`` or ``user:<name>`` is read: the words of a tool, a file, an agent or
    an import never make a rule. What is certain becomes active, what is likely is a candidate. What others
    wrote first is a candidate at most, and ends no rule, if the user says it: they may have pasted it.

    Args:
        heard: Returns who wrote what first, up to the message that is read.
        hear_ahead: Makes that quick to return; it may take long.
    """

    name = "demands"
    version = 4
    reads = (UserMessageSent,)

    def __init__(self, heard: Callable[[], Heard] = Heard, hear_ahead: Callable[[], object] = object) -> None:
        self._heard, self._hear_ahead = heard, hear_ahead

    def read_ahead(self, data: Payload, actor: str, read: ReadBody) -> None:
        """Read the sentences of a message that will be recorded."""
        if isinstance(data, UserMessageSent) and from_user(actor) and readings(read(data.body)):
            self._hear_ahead()

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the changes to rules that a message makes; empty for most messages."""
        if not isinstance(event.data, UserMessageSent) or not from_user(event.actor):
            return ()
        text = read(event.data.body)
        if not readings(text):
            return ()
        heard = self._heard()
        copied = heard.copied(text)
        is_task = event.data.task or bool(event.data.schedule)
        book = Book(event.seq, text, state, is_task=is_task, is_spoken=heard.is_spoken)
        own = copied.masked(text)
        for reading in readings(own):
            book.enter(reading, copied=is_doubtful(reading, copied))
        return _with_checks_of_message(book.changes, own)


def is_doubtful(reading: Reading, copied: Copied) -> bool:
    """Return whether the sentence of a reading may be somebody else's."""
    return any(
        copied.doubts(one.evidence.start, one.evidence.end) for one in (*reading.reversals, *reading.rules)
    )


def _with_checks_of_message(changes: Sequence[Change], text: str) -> tuple[Change, ...]:
    """Return the changes of a message; its only rule gets the checks of the whole message if it has none."""
    added = changes[0] if len(changes) == 1 else None
    if not isinstance(added, Add) or checks_of(added.item) or len(text) > _ONE_RULE or added.item.scope.topic:
        return tuple(changes)
    match added.item.detail:
        case ConstraintDetail(modality=modality) as detail:
            checks = compile_checks(text, modality, added.item.scope)
        case RejectionDetail() as detail:
            checks = asking(compile_checks(text, "must_not", added.item.scope))
        case _:
            return tuple(changes)
    if not checks:
        return tuple(changes)
    return (Add(msgspec.structs.replace(added.item, detail=msgspec.structs.replace(detail, checks=checks))),)


_ONE_RULE = 400
"""Number of characters up to which a message with one rule is about nothing else."""


class Lapse:
    """Closes candidates that have waited too long.

    Args:
        days: Number of days that a candidate waits; 0 means for ever.
    """

    name = "lapse"
    version = 1
    reads = (UserMessageSent,)

    def __init__(self, days: int) -> None:
        self._days = days

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Close unpinned candidates that were last changed at least ``days`` before this message.

        What a file of rules offers waits for a person: no agent is shown it.
        """
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
            for item in state.active(status="candidate")
            if "" < item.changed_at <= latest and not item.pinned and not is_offered(item)
        )
