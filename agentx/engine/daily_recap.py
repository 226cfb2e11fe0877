"""Recaps for an agent: the day turn by turn, and the log event by event.

The day is the 24 hours up to the last event, whatever the time zone. Its recap is a cached projection in
``.agentx/``: new events are folded into it, so the cost is that of the new events. Rebuilding it from the log
gives the same bytes, for any event at which it may end.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from agentx.core.cached_projection import Kept
from agentx.storage.events.codec import DamagedLine
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    Body,
    Event,
    TaskGraded,
    ToolCallExecuted,
    UserMessageSent,
    changes_of,
)
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import History, Position, told_already
from agentx.storage.text import shorten
from agentx.synthesis.language.tokens import cut
from agentx.synthesis.memory.conclusions import Add, Change, Concluded
from agentx.synthesis.memory.items import MemoryItem, sort_of, status_in_words
from agentx.synthesis.state.state import RECENT_TEXT, State

VERSION = 2
"""Increase it if the same events would be described differently; a cache with another version is ignored."""

HOURS = 23
"""A day goes back this number of hours from the hour of its last event."""

TURNS_KEPT = 240
"""Maximum number of turns kept for a day; the latest ones are kept."""

SAID_WORDS = 40
READ_BACK = 2_000
"""Maximum number of events read back for earlier messages."""

_FILES_SHOWN = 4
_NAMES_KEPT = 40
_LINES_SHOWN = 4
_MESSAGE_TOKENS = 2_000
"""Maximum length of a message in the full log."""


class Told(NamedTuple):
    """A line of text on a range of events."""

    text: str
    first: int
    last: int


class Turn(msgspec.Struct, omit_defaults=True):
    """What happened from one message of the user to the next, or to the next full hour.

    Attributes:
        at: When it began.
        first: Its first event.
        last: Its last event.
        said: What the user said.
        answered: The latest answer of an agent.
        files: Number of changes to each file.
        more_files: Changes to files beyond those that are named.
        passed: How often each check passed, by tool.
        failed: How often each check failed, by tool.
        ended: The last result of each check.
        told: Other things worth reporting: denials, conclusions, grades.
        more_told: Number of such things that are not listed.
        calls: Other tool calls.
    """

    at: str
    first: int
    last: int
    said: str = ""
    answered: str = ""
    files: dict[str, int] = {}
    more_files: int = 0
    passed: dict[str, int] = {}
    failed: dict[str, int] = {}
    ended: dict[str, bool] = {}
    told: list[str] = []
    more_told: int = 0
    calls: int = 0

    @property
    def hour(self) -> str:
        """The hour in which it began."""
        return self.at[:13]

    def apply(self, event: Event) -> None:
        """Fold an event in."""
        self.last, data = event.seq, event.data
        changes = changes_of(event)
        match data:
            case UserMessageSent(body=body):
                self.said = _words(event.actor, body)
            case AgentMessageSent(body=body):
                self.answered = _words(event.actor, body)
            case Concluded(changes=made) if made and all(self._rests_here(change) for change in made):
                self._tell(", ".join(_noted(change.item) for change in made if isinstance(change, Add)))
            case ToolCallExecuted(status="DENIED") | ApprovalDecided() | TaskGraded() | Concluded():
                self._tell(event.describe())
            case ToolCallExecuted(exit_code=int()) as call:
                passed = call.status == "SUCCEEDED"
                counts = self.passed if passed else self.failed
                counts[call.tool] = counts.get(call.tool, 0) + 1
                self.ended[call.tool] = passed
            case ToolCallExecuted() if not changes:
                self.calls += 1
        for change in changes:
            if change.path in self.files or len(self.files) < _NAMES_KEPT:
                self.files[change.path] = self.files.get(change.path, 0) + 1
            else:
                self.more_files += 1

    def _rests_here(self, change: Change) -> bool:
        """Return whether a change adds an item based on this turn alone, so that its name is enough."""
        evidence = change.item.evidence if isinstance(change, Add) else ()
        return bool(evidence) and all(self.first <= one.seq <= self.last for one in evidence)

    def _tell(self, line: str) -> None:
        if line and len(self.told) < _LINES_SHOWN:
            self.told.append(shorten(line, SAID_WORDS))
        elif line:
            self.more_told += 1

    @property
    def text(self) -> str:
        """The turn in one line; empty if nothing worth reporting happened."""
        parts = [self.said, *self.told]
        if self.more_told:
            parts.append(f"and {self.more_told} more of these")
        if self.files:
            parts.append(f"changed {self._files()}")
        parts += [self._check(tool) for tool in self.ended]
        parts.append(self.answered)
        if not any(parts):
            return ""
        if self.calls:
            parts.append(f"{self.calls} other call{'s' * (self.calls != 1)}")
        return f"{self.at[:10]} {self.at[11:16]} {'; '.join(part for part in parts if part)}"

    def _files(self) -> str:
        often = [f"{path} ({times}×)" if times > 1 else path for path, times in self.files.items()]
        more = len(often) - _FILES_SHOWN
        beside = more + self.more_files if more > 0 else 0
        return ", ".join(often[:_FILES_SHOWN]) + (f" and {beside} more" if beside else "")

    def _check(self, tool: str) -> str:
        passed, failed = self.passed.get(tool, 0), self.failed.get(tool, 0)
        if not (passed and failed):
            count = passed or failed
            return f"{tool} {'passed' if passed else 'failed'}" + (f" {count}×" if count > 1 else "")
        last = "passed" if self.ended[tool] else "failed"
        return f"{tool} failed {failed} of {passed + failed}×, {last} at last"


class Day(msgspec.Struct):
    """The turns of the 24 hours up to an event, oldest first."""

    turns: list[Turn] = []

    def apply(self, event: Event) -> None:
        """Fold an event in; events come in order, each once."""
        hour = event.at[:13]
        if not self.turns or self.turns[-1].hour != hour:
            # If the clock was changed, younger turns may precede one that is too old.
            earliest = _earliest(hour)
            old = [number for number, turn in enumerate(self.turns) if turn.hour < earliest]
            del self.turns[: old[-1] + 1 if old else 0]
            self.turns.append(Turn(event.at, event.seq, event.seq))
        elif isinstance(event.data, UserMessageSent):
            self.turns.append(Turn(event.at, event.seq, event.seq))
        del self.turns[:-TURNS_KEPT]
        self.turns[-1].apply(event)

    def told(self) -> Iterator[Told]:
        """Return its turns in which something happened, newest first."""
        for turn in reversed(self.turns):
            if text := turn.text:
                yield Told(text, turn.first, turn.last)


@lru_cache(maxsize=64)
def _earliest(hour: str) -> str:
    """Return the first hour of the day that ends in an hour; empty if the hour is damaged."""
    try:
        return (datetime.fromisoformat(f"{hour}:00") - timedelta(hours=HOURS)).isoformat()[:13]
    except (ValueError, OverflowError):
        return ""


def _noted(item: MemoryItem) -> str:
    state = "" if item.status == "active" else f" ({status_in_words(item)})"
    return f"{sort_of(item).replace('_', ' ')} {item.id}{state}"


def _words(actor: str, body: Body) -> str:
    return f"{actor}: “{shorten(body.text, SAID_WORDS)}”" if body.text.strip() else ""


# --- from the log ---------------------------------------------------------------------------------


def backwards(history: History, state: State) -> Iterator[list[Event]]:
    """Yield the events up to the last one of a state by segment of the log, newest segment first.

    Within a segment the events are in order.
    """
    end = history.locate(state.seq, state.hash)
    segment, last = end.segment if end else 1, state.seq
    while last > 0 and segment > 0:
        try:
            start = history.start_of(segment)
        except (DamagedLine, OSError):  # damage was already reported while folding
            start, segment = Position(), 1
        events = history.read(start, told_already)
        yield list(takewhile(lambda event, last=last: event.seq <= last, events))  # type: ignore[misc]
        last, segment = start.seq, segment - 1


def day_at(history: History, state: State) -> Day:
    """Return the day up to the last event of a state, reading only the part of the log that holds it."""
    parts: list[list[Event]] = []
    latest = ""
    for events in backwards(history, state):
        parts.append(events)
        latest = max((latest, *(event.at[:13] for event in events)))
        if events and events[0].at[:13] < _earliest(latest):
            break
    day = Day()
    for event in chain.from_iterable(reversed(parts)):
        day.apply(event)
    return day


def log_at(history: History, state: State, read_body: Callable[[Body], str]) -> Iterator[Told]:
    """Yield the log up to the last event of a state, newest first: messages in full, others in one line.

    Args:
        history: The log.
        state: The state at which the log ends.
        read_body: Returns the whole text of a body.
    """
    for events in backwards(history, state):
        for event in reversed(events):
            if text := _tell(event, read_body):
                yield Told(f"{event.at[:10]} {event.at[11:16]} {text}", event.seq, event.seq)


def said_at(history: History, state: State) -> Iterator[Told]:
    """Yield the messages before those in a state, newest first, from the latest :data:`READ_BACK` events."""
    if not state.messages:
        return
    before = state.messages[0].seq
    for events in backwards(history, state):
        for event in reversed(events):
            if event.seq <= state.seq - READ_BACK:
                return
            if event.seq < before and isinstance(event.data, UserMessageSent | AgentMessageSent):
                yield Told(f"{event.actor}: {event.data.body.text[:RECENT_TEXT]}", event.seq, event.seq)


def _tell(event: Event, read_body: Callable[[Body], str]) -> str:
    if not isinstance(event.data, UserMessageSent | AgentMessageSent):
        return event.describe()
    text = event.data.body.text
    with suppress(BlobDamaged):
        text = read_body(event.data.body)
    return f"{event.actor}: {cut(text, _MESSAGE_TOKENS)}"


class Recaps:
    """The recap of the day, updated with new events.

    Args:
        history: The log.
        folder: Directory that keeps it between processes; a cache.
    """

    def __init__(self, history: History, folder: Path) -> None:
        self._days = Kept(history, folder, str(VERSION), lambda state: day_at(history, state), Day.apply, Day)

    def at(self, state: State) -> list[Told]:
        """Return the day's turns up to the last event of the current state, newest first."""
        return self._days.at(state, lambda day: list(day.told()))

    def clear(self) -> None:
        """Drop the recap; it is rebuilt from the log."""
        self._days.clear()
