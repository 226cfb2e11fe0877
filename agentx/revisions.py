"""Undo and restore: earlier contents come back as new events, never as a step back in the log."""

from agentx.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.events import ArtifactChanged, Event, FileChange, ToolCallExecuted
from agentx.write_path import Content

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
        target = _last_change(engine)
        contents = {
            made.path: _content(engine, made.before, made) if made.before else None
            for made in _changes(target)
        }
        return _write(engine, contents, UNDO, target.seq, actor)


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
        contents |= {name: _content(engine, made.after, made) for name, made in then.items()}
        return _write(engine, contents, RESTORE, at, actor)


def files_at(engine: Engine, seq: int) -> dict[str, FileChange]:
    """The artifacts after an event: by path, the change that made each what it was."""
    found: dict[str, FileChange] = {}
    for event in engine.write_path.history.read(on_damage=lambda _: None):
        if event.seq > seq:
            break
        for made in _changes(event):
            if made.after:
                found[made.path] = made
            else:
                found.pop(made.path, None)
    return found


def _last_change(engine: Engine) -> Event:
    candidates: list[Event] = []
    for event in engine.write_path.history.read(on_damage=lambda _: None):
        if isinstance(event.data, ToolCallExecuted) and event.data.tool == UNDO:
            candidates = [one for one in candidates if one.seq != event.data.reverts]
        elif _changes(event):
            candidates.append(event)
    if not candidates:
        raise NothingToUndo("There is no change to artifacts left to undo.")
    return candidates[-1]


def _changes(event: Event) -> tuple[FileChange, ...]:
    return event.data.changes if isinstance(event.data, ToolCallExecuted | ArtifactChanged) else ()


def _content(engine: Engine, oid: str, made: FileChange) -> Content:
    return Content(engine.write_path.repo.read_blob(oid), made.executable, made.link)


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


def _at_or_below(name: str, path: str) -> bool:
    return not path or name == path or name.startswith(path + "/")
