"""The extractor ``sessions``: lessons of a finished session, as memories that fade unless they are used.

A session is over when its run ends and will not be resumed or, outside of runs, when the user comes back
after hours of silence. It teaches something where a failure was followed by a success: a refused call and
what was accepted instead, a check that failed and the files that made it pass, a command that failed and the
one that worked. All of it was measured or decided. Of tool output only the names of checks are used, and a
lesson that contains one has the trust ``material``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile, zip_longest

import msgspec

from agentx.storage.events.types import (
    REPORTED,
    ApprovalDecided,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
    changes_of,
)
from agentx.storage.text import one_line
from agentx.synthesis.demands.book import from_user
from agentx.synthesis.learning.backtest import fix_described, turns_of
from agentx.synthesis.learning.past_runs import Run, RunMove, read_runs
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.memory.items import Evidence, HotIssueDetail, NoteDetail, Trust, sort_of
from agentx.synthesis.memory.vitality import days_between
from agentx.synthesis.scribe.calls import call_name
from agentx.synthesis.scribe.harness import refused
from agentx.synthesis.scribe.ledger import MAX_QUOTE, Ledger, Note
from agentx.synthesis.similarity.near_duplicates import likeness
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import Message, State

MOST_LESSONS = 3
"""Maximum number of lessons of one session."""

SILENCE_HOURS = 4
"""Hours without a message after which a session outside of runs is over."""

MOST_EVENTS = 5_000
"""Maximum number of events read of a session; the last ones."""

Past = Callable[[int], Iterable[Event]]
"""Returns the history after an event, in order."""

_OVER = ("COMPLETED", "FAILED", "LIMIT_REACHED")
_NAMES = 3
_NAME_CHARACTERS = 80
_REASON_CHARACTERS = 120
_NAME = re.compile(r"\w{4,}")
_IN_COMMON = 2
"""Number of common words from which two commands are variants of one thing."""


class Lesson(msgspec.Struct, frozen=True):
    """A lesson of a session.

    Attributes:
        words: What that event is about, in its own words.
        trust: The lowest trust among the parts of the sentence.
    """

    text: str
    seq: int
    words: str
    trust: Trust = "agent"


class _Refused(msgspec.Struct, frozen=True):
    """A call that was refused or denied.

    Attributes:
        reason: What the user said; empty for nothing.
        by: The rules that denied it; empty if a person did.
    """

    seq: int
    call: ToolCallExecuted
    reason: str = ""
    by: tuple[str, ...] = ()


class Sessions:
    """Draws lessons from sessions that are over.

    What came before an event never changes, so the same event gives the same lessons.
    """

    name = "sessions"
    version = 1
    reads = (RunEnded, UserMessageSent)

    def __init__(self, past: Past) -> None:
        self._past = past

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the lessons of the session that ended with or before this event; none for most events."""
        began = _began(event, state)
        if not began:
            return ()
        after = max(began - 1, event.seq - MOST_EVENTS)
        events = list(takewhile(lambda one: one.seq < event.seq, self._past(after)))
        start = next((one for one in events if one.seq == began), None)
        resumes = isinstance(start.data, RunStarted) and start.data.resumes if start else ""
        if isinstance(event.data, RunEnded) and start and resumes and start.cause:
            # Also read the runs that this one continues.
            earlier = self._past(max(start.cause - 1, events[-1].seq - MOST_EVENTS))
            events = [*takewhile(lambda one: one.seq < began, earlier), *events]
        ledger = Ledger(event, state)
        for lesson in islice(lessons_of(events, state, read), MOST_LESSONS):
            reason = f"It happened in the session of events {events[0].seq} to {events[-1].seq}."
            _learn(ledger, lesson, reason)
        return tuple(ledger.changes)


def _began(event: Event, state: State) -> int:
    """Return the first event of the session that is over now; 0 if none is."""
    last = state.last_run
    match event.data:
        case RunEnded(status=status) if last is not None and last.run == event.run:
            return last.seq if status in _OVER else 0
        case UserMessageSent() if from_user(event.actor):
            ended = last.ended_seq if last and last.status in _OVER else 0
            return max(_talk_began(state.messages, event), ended)
    return 0


def _talk_began(messages: Sequence[Message], event: Event) -> int:
    """Return the first message of a conversation that ended hours before an event; 0 if it goes on."""
    began, later = 0, event.at
    for message in reversed(messages):
        if message.seq >= event.seq:
            continue
        silent = days_between(message.at, later) * 24 >= SILENCE_HOURS
        if silent == bool(began):
            break
        began, later = message.seq, message.at
    return began


def lessons_of(events: Sequence[Event], state: State, read: ReadBody) -> Iterator[Lesson]:
    """Yield the lessons of a session's events: the first of each sort before the second of any.

    The state contains the conclusions drawn from the events.
    """
    kept_off = _refused(events, read)
    # Refused calls are read as failed calls, so that their purpose is recognised.
    tried = (
        msgspec.structs.replace(one, data=kept_off[one.seq].call) if one.seq in kept_off else one
        for one in events
    )
    moves = [move for run in read_runs(tried, read) for move in run.moves]
    in_turn = zip_longest(
        _of_refusals(kept_off.values(), moves, events),
        _of_checks(events, state),
        _of_commands([move for move in moves if move.seq not in kept_off]),
    )
    return (lesson for lessons in in_turn for lesson in lessons if lesson is not None)


def _refused(events: Iterable[Event], read: ReadBody) -> dict[int, _Refused]:
    """Return the calls that the user refused or a rule denied, by the event that records it."""
    asked: dict[str, ToolCallRequested] = {}
    found: dict[int, _Refused] = {}
    seen: set[str] = set()
    for event in events:
        match event.data:
            case ToolCallRequested() as call:
                asked[call.call_id] = call
            case ApprovalDecided(approved=False, call_id=name, reason=reason) if name in asked:
                tool, arguments = asked[name].tool, asked[name].arguments
                made = ToolCallExecuted(call_id=name, tool=tool, status="FAILED", arguments=arguments)
                found[event.seq] = _Refused(event.seq, made, reason)
                seen.add(name)
            case ToolCallExecuted() if event.key.startswith(REPORTED):
                pass  # an agent says so
            case ToolCallExecuted(status="DENIED") as done if done.call_id not in seen:
                made = msgspec.structs.replace(done, status="FAILED")
                output = read(done.output)
                words = said.reason if (said := refused(output)) else None
                reason = output[words.start : words.end] if words else ""
                found[event.seq] = _Refused(event.seq, made, reason, done.denied_by)
    return found


def _of_refusals(
    kept_off: Iterable[_Refused], moves: Sequence[RunMove], events: Sequence[Event]
) -> Iterator[Lesson]:
    """Yield the refused calls after which another one was accepted; those with a reason first."""
    for one in sorted(kept_off, key=lambda one: not one.reason):
        if instead := _accepted(one, moves, events):
            name = call_name(one.call.tool, one.call.arguments, one.call.command)
            shown = name[:1].upper() + name[1:] if name.startswith("the ") else name
            why = f" (“{one_line(one.reason)[:_REASON_CHARACTERS]}”)" if one.reason and not one.by else ""
            how = f"denied by {_listed(one.by)}" if one.by else "refused"
            yield Lesson(f"{shown} was {how}{why}; then {instead} was accepted.", one.seq, name)


def _accepted(one: _Refused, moves: Sequence[RunMove], events: Sequence[Event]) -> str:
    """Return the next successful call with the same purpose, if it was a different one; empty if unknown.

    The same purpose means the same program. If a rule denied the call, or the reason names what ran then, the
    same tool is enough.
    """
    name = call_name(one.call.tool, one.call.arguments, one.call.command)
    keys = {move.key for move in moves if move.seq == one.seq and move.words}
    ran = {move.seq for move in moves if move.seq > one.seq and move.worked and move.key in keys}
    for event in events:
        data = event.data
        if event.seq <= one.seq or not isinstance(data, ToolCallExecuted) or data.tool != one.call.tool:
            continue
        if data.status == "SUCCEEDED" and (event.seq in ran or not keys):
            other = call_name(data.tool, data.arguments, data.command)
            is_for_it = keys or one.by or _names(one.reason) & (_names(other) - _names(name))
            return other if is_for_it and other not in (name, data.tool) else ""
    return ""


def _names(text: str) -> set[str]:
    return {word.casefold() for word in _NAME.findall(text)}


def _of_checks(events: Sequence[Event], state: State) -> Iterator[Lesson]:
    """Yield the checks that failed and now pass, by the files changed in between; the most failures first.

    A finding of a linter or compiler about one line is fixed in that line, and teaches nothing. Nor does a
    check that passed once its own file changed, or after so many files changed that the cause is unknown.
    """
    began = events[0].seq if events else 0
    fixed: dict[tuple[str, ...], list[HotIssueDetail]] = {}
    for item in state.items.values():
        detail = item.detail
        if not isinstance(detail, HotIssueDetail) or began >= item.changed_seq:
            continue
        if (item.status, detail.ended, detail.priority) != ("closed", "passed", "high"):
            continue
        between = (one for one in events if detail.last_seq < one.seq < item.changed_seq)
        paths = tuple(dict.fromkeys(change.path for one in between for change in changes_of(one)))
        own = detail.path and all(path.endswith(detail.path) for path in paths)
        finding = detail.path and detail.check.startswith(f"{detail.path}: ")
        if 0 < len(paths) <= _NAMES and not own and not finding:
            fixed.setdefault(paths, []).append(detail)
    for paths, details in sorted(fixed.items(), key=lambda one: -max(detail.failures for detail in one[1])):
        names = dict.fromkeys(f"`{detail.check[:_NAME_CHARACTERS]}`" for detail in details)
        files = _listed([f"`{path}`" for path in paths])
        last = max(details, key=lambda detail: detail.last_seq)
        text = f"{_listed(list(names))} failed, and passed once {files} had changed."
        yield Lesson(text, last.last_seq, last.check, "material")


def _of_commands(moves: Sequence[RunMove]) -> Iterator[Lesson]:
    """Yield the commands that failed, then worked in another form or after something else had run."""
    for turn in turns_of(Run(0, "", list(moves))):
        failing, working = set(turn.failing.words), set(turn.working.words)
        # Not two different uses of one program.
        is_form = failing <= working or len(failing & working) >= _IN_COMMON
        if turn.between is not None or is_form:
            yield Lesson(fix_described([turn]), turn.working.seq, " ".join(turn.working.words))


def _learn(ledger: Ledger, lesson: Lesson, reason: str) -> None:
    """Note a lesson. An item that says the same with the same trust gets more evidence instead."""
    words = one_line(lesson.words)[:MAX_QUOTE]
    place = Evidence(lesson.seq, 0, len(words), words)
    for item in ledger.standing("knowledge"):
        if sort_of(item) != "learning":
            continue
        if any(one.seq == place.seq for one in item.evidence):
            return
        if item.trust == lesson.trust and likeness(item.text, lesson.text):
            ledger.again(item, place)
            return
    ledger.add(
        Note(
            kind="knowledge",
            text=lesson.text,
            evidence=place,
            trust=lesson.trust,
            reason=reason,
            detail=NoteDetail(sort="learning"),
        )
    )


def _listed(names: Sequence[str]) -> str:
    """Join names for a sentence; of many, only the first few.

    >>> _listed(["a", "b"]), _listed(list("abcde"))
    ('a and b', 'a, b, c and 2 more')
    """
    shown = list(names[:_NAMES])
    if len(names) > _NAMES:
        shown.append(f"{len(names) - _NAMES} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
