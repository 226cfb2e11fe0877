"""``agentx watch``: record edits by people, editors and other agents while they work, and show them."""

import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal, counted
from agentx.recording.write_path import ReadOnly
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import ArtifactChanged, Event, FileChange, changes_of
from agentx.storage.text import one_line
from agentx.workspace import Workspace

SHOWN = 4
"""Maximum number of files that a line names."""

_PAUSE_S = 0.3
"""What is recorded within this time is shown as one line."""


def watch(
    terminal: Terminal,
    *,
    once: Annotated[bool, typer.Option("--once", help="Record what changed until now, and stop.")] = False,
) -> None:
    """Record edits by people, editors and other agents as they are made, until Ctrl-C.

    What changed before is recorded first, and what is pending at Ctrl-C last. With --json, each line is one
    event that changed files, as recorded.
    """
    with opened(terminal) as ws:
        if why := ws.engine.write_path.read_only:
            raise ReadOnly(why)
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        stop = ws.on("*", lambda event: events.put(event) if changes_of(event) else None)
        told = len(ws.engine.write_path.notes)
        count = 0
        with _until_interrupted() as interrupted:
            _record(ws)
            if not once:
                count, told = _follow(terminal, ws, events, interrupted)
        with suppress(KeyboardInterrupt):  # a second Ctrl-C: what is recorded is durable
            _record(ws)
            ws.flush()
        stop()
        count += _show(terminal, events)
        _notes(terminal, ws, told)
        terminal.note(f"{'' if once else 'Stopped; '}{counted(count, 'changed file')} recorded.", mark="·")


def _record(ws: Workspace) -> None:
    ws.engine.edits.secure()
    ws.engine.edits.scan(noticed="watch")


def _follow(
    terminal: Terminal, ws: Workspace, events: "queue.SimpleQueue[Event]", interrupted: threading.Event
) -> tuple[int, int]:
    """Show what is recorded until an interruption; return how many files and notes were shown."""
    count, told = 0, len(ws.engine.write_path.notes)
    with ws.watching(lambda error: _failed(terminal, error)) as watcher:
        if watcher.blind:
            terminal.note(f"The system watches nothing here ({watcher.blind}): files are scanned instead.")
        terminal.note(f"Watching {ws.artifacts}. Ctrl-C stops.", mark="·")
        while not interrupted.wait(_PAUSE_S):
            count += _show(terminal, events)
            told = _notes(terminal, ws, told)
    return count, told


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set, so that they interrupt no write."""
    interrupted = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()

    if threading.current_thread() is not threading.main_thread():  # signals belong to the main thread
        yield interrupted
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failed(terminal: Terminal, error: Exception) -> None:
    text = str(error) if isinstance(error, AgentXError) else f"{type(error).__name__}: {error}"
    terminal.note(f"Not recorded yet: {text} It is tried again.")


def _notes(terminal: Terminal, ws: Workspace, told: int) -> int:
    """Show new notes, such as about secrets; return how many there are."""
    notes = ws.engine.write_path.notes
    for note in notes[told:]:
        terminal.note(note)
    return len(notes)


def _show(terminal: Terminal, events: "queue.SimpleQueue[Event]") -> int:
    """Show what was recorded since the last time; return the number of changed files."""
    found: list[Event] = []
    with suppress(queue.Empty):
        while True:
            found.append(events.get_nowait())
    if terminal.json:
        for event in found:
            terminal.line(as_json(event))
    else:
        for group in _together(found):
            changes = [change for event in group for change in changes_of(event)]
            terminal.show(_line(group[0], changes))
    return sum(len(changes_of(event)) for event in found)


def _together(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Yield events that record one change of files: a large one takes several."""
    group: list[Event] = []
    for event in events:
        follows = group and event.actor == group[-1].actor and isinstance(event.data, ArtifactChanged)
        if group and not (follows and event.seq == group[-1].seq + 1):
            yield group
            group = []
        group.append(event)
    if group:
        yield group


def _line(event: Event, changes: Sequence[FileChange]) -> Text:
    sorts = {"+": [c for c in changes if not c.before], "-": [c for c in changes if not c.after]}
    sorts["~"] = [c for c in changes if c.before and c.after]
    names = [f"{mark}{change.path}" for mark in "+~-" for change in sorts[mark]]
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    parts = [
        f"{len(sorts[mark]):,} {word}"
        for mark, word in zip("+~-", ("new", "changed", "deleted"), strict=True)
        if sorts[mark]
    ]
    total = f"{', '.join(parts)}: " if len(names) > 1 else ""
    return Text.assemble(
        (f"{event.seq:>5}  {event.at[11:19]}  ", "dim"),
        (f"{one_line(event.actor)}  ", "cyan"),
        total,
        one_line(", ".join(names[:SHOWN])),
        (more, "dim"),
    )
