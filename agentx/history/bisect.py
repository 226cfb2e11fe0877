"""How a memory item or a file came to be what it is: the events that changed it, and their causes."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import event_at
from agentx.history.diff import FieldDiff, fields_changed
from agentx.history.undo_restore import changes, moves
from agentx.memory.editing import find
from agentx.recording.recorded_log import RecordedLog
from agentx.storage.artifacts import ArtifactMissing
from agentx.storage.events.types import (
    AgentMessageSent,
    Event,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
    changes_of,
)
from agentx.storage.log.history import told_already
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import Evidence, MemoryItem
from agentx.synthesis.state.state import State

CAUSES = 20
"""Maximum number of causes in a chain."""

_QUOTE = 400


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """An event that led to another.

    Attributes:
        told: Description in one line.
        quote: The relevant words: the evidence of an item, or the beginning of a message; empty if there are
            none.
        commit: The first commit that holds it; empty if it is not committed yet.
    """

    seq: int
    at: str
    actor: str
    type: str
    told: str
    quote: str = ""
    commit: str = ""


class BisectStep(msgspec.Struct, frozen=True, kw_only=True):
    """One change.

    Attributes:
        event: The event that made it.
        fields: The changed fields of an item; empty for the event that created it.
        made: Whether this change created the item or file.
        causes: What led to it, the nearest first, up to the user's sentence if there is one.
    """

    event: Cause
    fields: tuple[FieldDiff, ...] = ()
    made: bool = False
    causes: tuple[Cause, ...] = ()


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """How something came to be what it is.

    Attributes:
        item: The memory item as it is now; ``None`` for a file.
        path: The file; empty for an item.
        steps: The last change, or all of them, oldest first.
        changes: Total number of changes.
    """

    item: MemoryItem | None = None
    path: str = ""
    steps: tuple[BisectStep, ...]
    changes: int


def trace_item(engine: Engine, name: str, *, every: bool = False) -> Trace:
    """Find the last event, or every one, that made a memory item what it is.

    Raises:
        NoSuchItem: No item has this ID.
    """
    engine.write_path.refresh()
    _index_commits(engine)
    item = find(engine, name)
    runs: dict[str, int] = {}
    found = list(item_changes(_read(engine.log, runs), name))
    chosen = found if every else found[-1:]
    steps = tuple(
        BisectStep(
            event=_cause(engine, event),
            fields=fields_changed(before, after) if before else (),
            made=before is None,
            causes=tuple(causes(engine, event, _fresh(before, after), runs)),
        )
        for event, before, after in chosen
    )
    return Trace(item=item, steps=steps, changes=len(found))


def trace_file(engine: Engine, path: str, *, every: bool = False) -> Trace:
    """Find the last event, or every one, that made a file what it is, or removed it.

    The path is checked and relative to the artifacts. A moved file is followed to its earlier names.

    Raises:
        ArtifactMissing: There never was such a file.
    """
    engine.write_path.refresh()
    _index_commits(engine)
    runs = {
        event.run: event.seq
        for event in engine.log.history.read(on_damage=told_already)
        if isinstance(event.data, RunStarted)
    }
    found: list[Event] = []
    name = path
    for change in reversed(list(changes(engine))):
        if any(made.path == name for made in change.files):
            found.append(next(e for e in change.events if name in {made.path for made in changes_of(e)}))
            name = moves(change.files).get(name, name)
    if not found:
        raise ArtifactMissing(f"There has never been a file {path!r} in the artifacts.")
    found.reverse()
    chosen = found if every else found[-1:]
    steps = tuple(
        BisectStep(
            event=_cause(engine, event),
            made=event is found[0],
            causes=tuple(causes(engine, event, (), runs)),
        )
        for event in chosen
    )
    return Trace(path=path, steps=steps, changes=len(found))


def _read(log: RecordedLog, runs: dict[str, int]) -> Iterator[Event]:
    """Yield all events; on the way, ``runs`` is filled with the event at which each run began."""
    for event in log.history.read(on_damage=told_already):
        if isinstance(event.data, RunStarted):
            runs[event.run] = event.seq
        yield event


def item_changes(events: Iterable[Event], name: str) -> Iterator[tuple[Event, MemoryItem | None, MemoryItem]]:
    """Yield each event that changed an item, with the item before and after.

    Args:
        events: The whole history, or at least all events that concern the item, in order.
        name: Id of the item.
    """
    state = State()
    for event in events:
        if not isinstance(event.data, Concluded):
            continue
        before = state.items.get(name)
        if any(name == (made.item.id if isinstance(made, Add) else made.id) for made in event.data.changes):
            state.apply(event)
            after = state.items.get(name)
            if after is not None and (before is None or fields_changed(before, after)):
                yield event, before, after


def _fresh(before: MemoryItem | None, after: MemoryItem) -> tuple[Evidence, ...]:
    """Return the evidence that is new in a change."""
    known = before.evidence if before else ()
    return tuple(one for one in after.evidence if one not in known)


def causes(
    engine: Engine, event: Event, evidence: Iterable[Evidence], runs: Mapping[str, int]
) -> Iterator[Cause]:
    """Yield what led to an event, the nearest first: its evidence and its cause, and so on from there.

    Args:
        engine: The workspace.
        event: The event.
        evidence: What it rests on.
        runs: The event at which each run began.
    """
    quotes = {one.seq: one.quote for one in evidence}
    waiting = [_cause_of(event, runs), *quotes]
    seen = {event.seq}
    while waiting and len(seen) <= CAUSES:
        seq = max(waiting)
        waiting.remove(seq)
        found = None if seq in seen else event_at(engine.log, seq)
        if found is not None:
            seen.add(seq)
            yield _cause(engine, found, quotes.get(seq, ""))
            waiting.append(_cause_of(found, runs))


def _cause_of(event: Event, runs: Mapping[str, int]) -> int:
    """Return the event that led to an event.

    For an undo it is the change that was undone; for other events of a run without a cause, the start of the
    run.
    """
    began = runs.get(event.run, 0)
    reverted = event.data.reverts if isinstance(event.data, ToolCallExecuted) else 0
    return event.cause or reverted or (began if began < event.seq else 0)


def _index_commits(engine: Engine) -> None:
    """Index all commits, so that each event can be shown with its commit."""
    while engine.commits.extend(engine.git.head):
        pass


def _cause(engine: Engine, event: Event, quote: str = "") -> Cause:
    if not quote and isinstance(event.data, UserMessageSent | AgentMessageSent):
        quote = event.data.body.text[:_QUOTE]
    return Cause(
        seq=event.seq,
        at=event.at,
        actor=event.actor,
        type=event.type,
        told=event.describe() or event.type,
        quote=quote,
        commit=engine.commit_of(event.seq),
    )
