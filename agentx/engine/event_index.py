"""What leads from one event to others, and what a whole history amounts to; kept, so that nothing reads it.

That is: the events that each event caused, the events that changed each memory item, the runs with what they
did, how often each actor acted, and the moments that stand out.
"""

from pathlib import Path

import msgspec

from agentx.core.cached_projection import Kept
from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.direction_events import DirectiveIssued
from agentx.storage.events.types import (
    Event,
    EventsPurged,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    UserMessageSent,
    WorkspaceForked,
    changes_of,
)
from agentx.storage.log.history import History, told_already
from agentx.storage.text import shorten
from agentx.synthesis.memory.conclusions import Add, Concluded, Counted
from agentx.synthesis.memory.items import CheckpointDetail
from agentx.synthesis.state.state import RunRecord, State, began, ended

VERSION = 1
"""Increase it if the same events would be read differently; a cache with another version is ignored."""

MOST_EFFECTS = 50
"""Maximum number of effects kept of one event: the first ones."""

MOST_GRADES = 50
"""Maximum number of grades kept of one flow: the latest ones."""

MOST_MARKS = 2_000
"""With more moments, every second message and run is dropped."""

_MARK_WORDS = 12
_TASK = 500
"""Characters kept of what a session of another host was asked."""


class RunSummary(msgspec.Struct):
    """A run, or a session of another host, with what it did.

    Attributes:
        record: As the state keeps the latest ones; of a session, only when and by whom it began.
        last: Its latest event.
        last_at: Time of that event.
        tools: Number of calls, by tool.
        failed: Number of calls that failed or were denied.
        steps: Steps of the model that were counted at its end; the number of calls without that.
        prompt_tokens: Tokens sent to the model; 0 if unknown, like the next two.
    """

    record: RunRecord
    last: int = 0
    last_at: str = ""
    tools: dict[str, int] = {}
    failed: int = 0
    steps: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


class Mark(msgspec.Struct, frozen=True):
    """A moment that stands out.

    Attributes:
        what: ``message``, ``run``, ``checkpoint``, ``directive``, ``undo``, ``restore``, ``fork``, ``purge``.
        text: What happened, in a few words.
    """

    seq: int
    at: str
    what: str
    text: str


class Indexed(msgspec.Struct):
    """What is kept of a history.

    Attributes:
        effects: The events that name an event as their cause or revert it, by its seq.
        changed: The events that changed a memory item, by its id.
        files: The latest event that changed a file, by its path; also of deleted files.
        graded: The latest grades of tasks that called for a flow, by the flow's id.
        minds: The events that made the mind of a cognitive agent, by session.
        runs: Every run, by its id, in the order in which they began.
        actors: Number of events, by actor.
        marks: The moments that stand out.
        first_at: Time of the first event.
    """

    effects: dict[int, list[int]] = {}
    changed: dict[str, list[int]] = {}
    files: dict[str, int] = {}
    graded: dict[str, list[int]] = {}
    minds: dict[str, list[int]] = {}
    runs: dict[str, RunSummary] = {}
    actors: dict[str, int] = {}
    marks: list[Mark] = []
    first_at: str = ""

    def take(self, event: Event) -> None:
        """Read one event."""
        self.first_at = self.first_at or event.at
        self.actors[event.actor] = self.actors.get(event.actor, 0) + 1
        data = event.data
        reverted = data.reverts if isinstance(data, ToolCallExecuted) else 0
        for cause in {event.cause, reverted} - {0}:
            known = self.effects.setdefault(cause, [])
            if len(known) < MOST_EFFECTS:
                known.append(event.seq)
        match data:
            case Concluded():
                self._conclude(event, data)
            case TaskGraded(flow=flow) if flow:
                known = self.graded.setdefault(flow, [])
                known.append(event.seq)
                del known[:-MOST_GRADES]
            case Recognized() | Interacted():
                self.minds.setdefault(data.session, []).append(event.seq)
        for made in changes_of(event):
            self.files[made.path] = event.seq
        if event.run:
            self._run(event)
        self._mark(event)

    def _conclude(self, event: Event, concluded: Concluded) -> None:
        for change in concluded.changes:
            if isinstance(change, Counted):
                continue
            name = change.item.id if isinstance(change, Add) else change.id
            known = self.changed.setdefault(name, [])
            if not known or known[-1] != event.seq:
                known.append(event.seq)
            if isinstance(change, Add) and isinstance(change.item.detail, CheckpointDetail):
                self._add("checkpoint", event, change.item.text)

    def _run(self, event: Event) -> None:
        data, run = event.data, self.runs.get(event.run)
        if isinstance(data, RunStarted):
            record = began(event, data, run.record if run else None)
            if run is None or record.seq == event.seq:
                run = self.runs[event.run] = RunSummary(record)
            run.record = record
        elif run is None:
            task = data.body.text[:_TASK] if isinstance(data, UserMessageSent) else ""
            record = RunRecord(event.run, event.seq, task, event.actor, "", at=event.at, status="")
            run = self.runs[event.run] = RunSummary(record)
        run.last, run.last_at = event.seq, event.at
        if isinstance(data, ToolCallExecuted):
            run.tools[data.tool] = run.tools.get(data.tool, 0) + 1
            run.failed += data.status != "SUCCEEDED"
        elif isinstance(data, RunEnded):
            run.record = ended(run.record, event, data)
            run.steps += data.steps
            run.prompt_tokens += data.prompt_tokens
            run.completion_tokens += data.completion_tokens
            run.cost_usd += data.cost_usd

    def _mark(self, event: Event) -> None:
        match event.data:
            case UserMessageSent() as said:
                self._add("message", event, said.body.text)
            case RunStarted() as run:
                self._add("run", event, run.task.text)
            case DirectiveIssued() as issued:
                self._add("directive", event, issued.summary)
            case ToolCallExecuted(tool="undo" | "restore") as call:
                self._add(call.tool, event, event.describe())
            case WorkspaceForked() | EventsPurged():
                what = "fork" if isinstance(event.data, WorkspaceForked) else "purge"
                self._add(what, event, event.describe())

    def _add(self, what: str, event: Event, text: str) -> None:
        self.marks.append(Mark(event.seq, event.at, what, shorten(text, _MARK_WORDS)))
        if len(self.marks) > MOST_MARKS:
            self.marks = thinned(self.marks)


def thinned(marks: list[Mark]) -> list[Mark]:
    """Return the moments without every second message and run, or simply every second if few are such."""
    common = [mark.seq for mark in marks if mark.what in {"message", "run"}]
    if len(common) * 2 < len(marks):
        return marks[::2]
    dropped = set(common[1::2])
    return [mark for mark in marks if mark.seq not in dropped]


class EventIndex:
    """What leads from one event of a workspace to others.

    Args:
        history: The log.
        folder: Directory that keeps it between processes; a cache.
    """

    def __init__(self, history: History, folder: Path) -> None:
        def anew(state: State) -> Indexed:
            made = Indexed()
            for event in history.read(on_damage=told_already):
                if event.seq <= state.seq:
                    made.take(event)
            return made

        self._kept = Kept(history, folder, str(VERSION), anew, Indexed.take, Indexed)
        self.at = self._kept.at
        self.clear = self._kept.clear
