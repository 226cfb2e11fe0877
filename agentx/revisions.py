"""Undo and restore: earlier contents come back as new events, never as a step back in the log."""

from collections.abc import Iterator

from agentx import outside
from agentx.engine import Engine
from agentx.staging import Content
from agentx.storage.errors import UsageError
from agentx.storage.events import (
    ArtifactChanged,
    Event,
    FileChange,
    ToolCallExecuted,
    WriteReverted,
    changes_of,
)
from agentx.storage.history import told_already
from agentx.write_path import CHANGES_BYTES

UNDO, RESTORE = "undo", "restore"


class NothingToUndo(UsageError):
    """No change to artifacts is left to undo."""


class NoSuchMoment(UsageError):
    """At that moment there was no such event, or no such file."""


def undo(engine: Engine, actor: str) -> Event:
    """Take back the latest change to artifacts that was not taken back yet.

    Raises:
        NothingToUndo: There is none.
    """
    with engine.write_path.exclusive():
        engine.write_path.scan()
        undone = _last_change(engine)
        then = files_at(engine, undone[0].seq - 1)
        paths = dict.fromkeys(made.path for event in undone for made in changes_of(event))
        contents = {path: _content(engine, then[path]) if path in then else None for path in paths}
        return _write(engine, contents, UNDO, undone[0].seq, actor)


def restore(engine: Engine, path: str, at: int, actor: str) -> Event:
    """Bring a file or a directory back to what it was after an event.

    Args:
        engine: The workspace.
        path: Checked path of a file or directory; empty for all artifacts.
        at: Seq of the event.
        actor: Who asks for it.

    Raises:
        NoSuchMoment: There is no such event, or nothing of that name existed then or since.
    """
    with engine.write_path.exclusive():
        engine.write_path.scan()
        if not 0 < at <= engine.write_path.state.seq:
            raise NoSuchMoment(
                f"There is no event {at}; the history goes from 1 to {engine.write_path.state.seq}."
            )
        then = {name: made for name, made in files_at(engine, at).items() if _at_or_below(name, path)}
        now = {name for name in engine.write_path.manifest() if _at_or_below(name, path)}
        if not then and not now:
            raise NoSuchMoment(f"There is no {path!r} in the artifacts, neither now nor after event {at}.")
        contents: dict[str, Content | None] = dict.fromkeys(sorted(now - then.keys()))
        contents |= {name: _content(engine, made) for name, made in then.items()}
        return _write(engine, contents, RESTORE, at, actor)


def files_at(engine: Engine, seq: int) -> dict[str, FileChange]:
    """The artifacts after an event: by path, the change that made each what it was."""
    found: dict[str, FileChange] = {}
    for event, changes in _made(engine):
        if event.seq > seq:
            break
        for made in changes:
            if made.after:
                found[made.path] = made
            else:
                found.pop(made.path, None)
    return found


def _made(engine: Engine) -> Iterator[tuple[Event, tuple[FileChange, ...]]]:
    """Each event that changed artifacts, with what it really changed: a write that a crash cut off is none."""
    reverted = {
        (event.data.event, event.data.path)
        for event in engine.write_path.history.read(on_damage=told_already)
        if isinstance(event.data, WriteReverted)
    }
    for event in engine.write_path.history.read(on_damage=told_already):
        changes = tuple(made for made in changes_of(event) if (event.seq, made.path) not in reverted)
        if changes or _is_undo(event):
            yield event, changes


def _last_change(engine: Engine) -> list[Event]:
    """The events of the latest change that was not taken back: several where one event could not hold it all."""
    candidates: list[list[Event]] = []
    for event, _changed in _made(engine):
        if isinstance(event.data, ToolCallExecuted) and _is_undo(event):
            candidates = [one for one in candidates if event.data.reverts not in [part.seq for part in one]]
        elif candidates and _goes_on(candidates[-1][-1], event):
            candidates[-1].append(event)
        else:
            candidates.append([event])
    if not candidates:
        raise NothingToUndo("There is no change to artifacts left to undo.")
    return candidates[-1]


def _goes_on(last: Event, event: Event) -> bool:
    """Whether an event is the rest of the change that the one before it began: of the same call, or of one look."""
    if event.seq != last.seq + 1:
        return False
    if isinstance(last.data, ToolCallExecuted) and isinstance(event.data, ToolCallExecuted):
        return last.data.call_id == event.data.call_id
    if not isinstance(last.data, ArtifactChanged) or not isinstance(event.data, ArtifactChanged):
        return False
    together = [*last.data.changes, event.data.changes[0]]
    full = sum(1 for _ in outside.chunks(together, CHANGES_BYTES)) > 1
    return full and last.data.noticed == event.data.noticed


def _content(engine: Engine, made: FileChange) -> Content:
    """What a change made of a file."""
    return Content(engine.write_path.repo.read_blob(made.after), made.executable, made.link)


def _write(engine: Engine, contents: dict[str, Content | None], tool: str, reverts: int, actor: str) -> Event:
    call_id = f"{tool}-{engine.write_path.state.seq + 1}"
    events = engine.write_path.write(
        contents,
        lambda changes: ToolCallExecuted(
            call_id=call_id,
            tool=tool,
            status="SUCCEEDED",
            arguments={"event": reverts},
            changes=changes,
            reverts=reverts,
        ),
        actor=actor,
    )
    return events[0]


def _is_undo(event: Event) -> bool:
    """Whether it took a change back, were it one that had left no trace."""
    return isinstance(event.data, ToolCallExecuted) and event.data.tool == UNDO


def _at_or_below(name: str, path: str) -> bool:
    return not path or name == path or name.startswith(path + "/")
