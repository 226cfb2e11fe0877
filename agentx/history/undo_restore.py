"""Undo and restore: earlier contents come back as new events; the log is append-only."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import msgspec

from agentx.core import layout
from agentx.engine.engine import Engine
from agentx.engine.moment_parser import NoSuchMoment, event_at
from agentx.policy.appended import additions, joined, memory_of, told
from agentx.policy.file_policy import rulings_on
from agentx.recording import commit_message, external_edits
from agentx.recording.committer import Committer
from agentx.recording.recovery import is_ours
from agentx.recording.staging import Content
from agentx.storage.artifacts import change as change_of
from agentx.storage.errors import UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.pipeline_events import FileAmended
from agentx.storage.events.types import (
    ArtifactChanged,
    Draft,
    Event,
    FileChange,
    ToolCallExecuted,
    WriteReverted,
    changes_of,
)
from agentx.storage.git.objects import blob_id
from agentx.storage.log.history import told_already

UNDO, RESTORE = "undo", "restore"
EXPORT = "export_rules"
"""The ``tool`` of the event that records an exported file of rules."""

_WINDOW = 1_000
"""Number of latest events that an undo searches first."""


class NothingToUndo(UsageError):
    """No change to artifacts is left to undo."""


class Change(msgspec.Struct, frozen=True):
    """One change to artifacts.

    Attributes:
        events: The events that recorded it. If one could not hold it all there are several, which count as
            one moment.
        files: What it actually changed, without writes that a crash interrupted.
    """

    events: tuple[Event, ...]
    files: tuple[FileChange, ...]

    @property
    def seq(self) -> int:
        """Its first event."""
        return self.events[0].seq

    @property
    def is_export(self) -> bool:
        """Whether it wrote the active rules to a file, which follows memory and is not undone by itself."""
        data = self.events[0].data
        return isinstance(data, ToolCallExecuted) and data.tool == EXPORT

    @property
    def undoes(self) -> int:
        """The change that it undid; 0 for none."""
        data = self.events[0].data
        return data.reverts if isinstance(data, ToolCallExecuted) and data.tool == UNDO else 0


class ArtifactsBetween(msgspec.Struct, frozen=True):
    """The artifacts at two moments: by path, the latest change of each.

    Attributes:
        then: At the earlier moment.
        now: At the later moment.
        moved: For files moved between them, the earlier path by the later path.
    """

    then: dict[str, FileChange]
    now: dict[str, FileChange]
    moved: dict[str, str]


Allowed = Callable[[Mapping[str, Content | None], Change | None], None]
"""Raises unless contents may be written; the second is the change that they undo."""


def undo(engine: Engine, actor: str, allowed: Allowed | None = None) -> Event:
    """Undo the latest change to artifacts that was not undone yet.

    Args:
        engine: The workspace.
        actor: Who undoes it.
        allowed: Asked before anything is written.

    Raises:
        NothingToUndo: Nothing is left to undo.
    """
    with engine.write_path.exclusive():
        engine.edits.scan()
        undone = _last_change(engine)
        then = files_between(engine, undone.seq - 1).then
        paths = dict.fromkeys(made.path for made in undone.files)
        contents = {path: _content(engine.git, then[path]) if path in then else None for path in paths}
        # An agent's addition can be undone, the engine's cannot: other steps rest on it
        by_engine = Actor.parse(undone.events[0].actor).role == "engine"
        since = undone.seq - 1 if by_engine else undone.events[-1].seq
        if allowed:
            allowed(contents, undone)
        return _write(engine, contents, UNDO, undone.seq, actor, since)


def restore(engine: Engine, path: str, at: int, actor: str, allowed: Allowed | None = None) -> Event:
    """Restore a file or a directory to its content after an event; files moved since are moved back.

    A file that a pipeline declares append-only keeps what agents and the engine appended since.

    Args:
        engine: The workspace.
        path: Checked, and relative to the artifacts; empty for all of them.
        at: The event.
        actor: Who restores it.
        allowed: Asked before anything is written.

    Raises:
        NoSuchMoment: The event does not exist, or nothing of that name existed then or since.
    """
    with engine.write_path.exclusive():
        engine.edits.scan()
        last = engine.log.state.seq
        if not 0 < at <= last:
            raise NoSuchMoment(f"Event {at} does not exist; the history has events 1 to {last}.")
        files = files_between(engine, at)
        back = {name for name in files.then if _at_or_below(name, path)}
        gone = {name for name in engine.git.manifest() if _at_or_below(name, path)}
        for name, before in files.moved.items():
            if (name in gone and name not in back) or (before in back and before not in files.now):
                gone.add(name)
                back.add(before)
        if not back and not gone:
            raise NoSuchMoment(f"{path!r} is not in the artifacts, neither now nor after event {at}.")
        contents: dict[str, Content | None] = dict.fromkeys(sorted(gone - back))
        contents |= {name: _content(engine.git, files.then[name]) for name in sorted(back)}
        if allowed:
            allowed(contents, None)
        return _write(engine, contents, RESTORE, at, actor, at)


def files_between(engine: Engine, first: int, last: int | None = None) -> ArtifactsBetween:
    """Return the artifacts after each of two events, and what was moved between them.

    The second is the latest by default.
    """
    base, then = _committed(engine, first)
    now = dict(then)
    moved: dict[str, str] = {}
    before: dict[int, dict[str, str]] = {}
    for change in changes(engine, base):
        if last is not None and change.seq > last:
            break
        for made in change.files:
            _apply(made, now)
        if change.seq <= first:
            for made in change.files:
                _apply(made, then)
            continue
        before[change.seq] = moved
        undone = before.get(change.undoes)
        moved = _moved_on(moved, change.files) if undone is None else undone
    kept = {new: old for new, old in moved.items() if new != old and old in then and new in now}
    return ArtifactsBetween(then, now, kept)


def _committed(engine: Engine, seq: int) -> tuple[int, dict[str, FileChange]]:
    """Return the latest commit that holds nothing after an event: its last event, and its artifacts.

    The event is 0 if there is none. It is also 0 if a crash ever interrupted a write, because then only the
    events record the outcome.
    """
    repo = engine.git.repo
    if engine.snapshot().counts.get(WriteReverted.__name__):
        return 0, {}
    for commit in repo.log(engine.commit_of(seq + 1) or engine.git.head):  # newer ones hold more
        through = commit_message.through(commit.trailers) if is_ours(commit) else 0
        if not 0 < through <= seq:
            continue
        last, following = event_at(engine.log, through), event_at(engine.log, through + 1)
        if last is None or following is None or not _goes_on(last, following):  # no change is cut apart
            files = repo.files(repo.subtree(commit.tree, layout.ARTIFACTS))
            return through, {path: change_of(path, None, entry) for path, entry in files}
    return 0, {}


def _moved_on(moved: dict[str, str], files: tuple[FileChange, ...]) -> dict[str, str]:
    """Return the first path of each moved file by its current one, after another change."""
    ended = {made.path for made in files if not made.before or not made.after}
    fresh = {new: moved.get(old, old) for new, old in moves(files).items()}
    return {new: old for new, old in moved.items() if new not in ended} | fresh if ended else moved


def _apply(made: FileChange, files: dict[str, FileChange]) -> None:
    if made.after:
        files[made.path] = made
    else:
        files.pop(made.path, None)


def moves(files: Iterable[FileChange]) -> dict[str, str]:
    """Return what one change moved: the old path by the new one.

    A file counts as moved if its content is the same and the match is unambiguous.
    """
    files = tuple(files)
    gone: dict[str, list[str]] = {}
    for made in files:
        if not made.after:
            gone.setdefault(made.before, []).append(made.path)
    found: dict[str, str] = {}
    for made in files:
        if made.before or not gone.get(made.after):
            continue
        there = gone[made.after]
        name = PurePosixPath(made.path).name
        alike = [old for old in there if PurePosixPath(old).name == name]
        if alike or len(there) == 1:
            found[made.path] = alike[0] if alike else there[0]
            there.remove(found[made.path])
    return found


def changes(engine: Engine, after: int = 0) -> Iterator[Change]:
    """Yield each change to artifacts after an event, in order."""
    history = engine.log.history
    reverted: set[tuple[int, str]] = set()
    if engine.snapshot().counts.get(WriteReverted.__name__):
        events = history.read(after, told_already)
        reverted = {(e.data.event, e.data.path) for e in events if isinstance(e.data, WriteReverted)}
    group: list[Event] = []
    for event in history.read(after, told_already):
        if group and not _goes_on(group[-1], event):
            yield _change(group, reverted)
            group = []
        # An undo counts even if it left no trace in files
        undoes = isinstance(event.data, ToolCallExecuted) and event.data.tool == UNDO
        if group or undoes or changes_of(event):
            group.append(event)
    if group:
        yield _change(group, reverted)


def _change(events: list[Event], reverted: set[tuple[int, str]]) -> Change:
    made = ((event.seq, one) for event in events for one in changes_of(event))
    return Change(tuple(events), tuple(one for seq, one in made if (seq, one.path) not in reverted))


def _last_change(engine: Engine) -> Change:
    """Return the latest change that was not undone, searching from the end of the history."""
    window, last = _WINDOW, engine.log.state.seq
    while True:
        after = max(0, last - window)
        candidates: list[Change] = []
        for change in changes(engine, after):
            if change.undoes:
                candidates = [one for one in candidates if one.seq != change.undoes]
            elif change.files and not change.is_export:
                candidates.append(change)
        if len(candidates) > bool(after):  # the first change of a window may have begun before it
            return candidates[-1]
        if not after:
            raise NothingToUndo("No artifact change is left to undo.")
        window *= 16


def _goes_on(last: Event, event: Event) -> bool:
    """Return whether an event continues the change of the one before it: same call, or same scan."""
    if event.seq != last.seq + 1 or not changes_of(event):
        return False
    if isinstance(last.data, ToolCallExecuted) and isinstance(event.data, ToolCallExecuted):
        return last.data.call_id == event.data.call_id
    if not isinstance(last.data, ArtifactChanged) or not isinstance(event.data, ArtifactChanged):
        return False
    together = [*last.data.changes, event.data.changes[0]]
    full = sum(1 for _ in external_edits.chunks(together)) > 1
    return full and last.data.noticed == event.data.noticed


def _content(git: Committer, made: FileChange) -> Content:
    """Return the content that a change gave to a file."""
    return Content(git.repo.read_blob(made.after), made.executable, made.link)


def _write(
    engine: Engine, contents: dict[str, Content | None], tool: str, reverts: int, actor: str, since: int
) -> Event:
    """Write earlier contents; what was appended to append-only files after the event ``since`` is kept."""
    call_id = f"{tool}-{engine.log.state.seq + 1}"
    events: list[Event] = []
    contents, noted, amended = _with_additions(engine, contents, f"{tool} of event {reverts}", since)
    drafts = [Draft(data=one, actor=actor) for one in amended]
    for step in _steps(contents):
        events += engine.write_path.write(
            step,
            lambda changes: ToolCallExecuted(
                call_id=call_id,
                tool=tool,
                status="SUCCEEDED",
                arguments={"event": reverts},
                changes=changes,
                noted=noted,
                reverts=reverts,
            ),
            actor=actor,
        )
    engine.write_path.record(drafts)
    return events[0]


def _with_additions(
    engine: Engine, contents: dict[str, Content | None], why: str, since: int
) -> tuple[dict[str, Content | None], str, list[FileAmended]]:
    """Complete earlier contents with what was appended since.

    Returns:
        The contents; sentences about what was kept; and for each long-term memory file whose facts change,
        its amendment.
    """
    made, noted, amended = dict(contents), list[str](), list[FileAmended]()
    rulings = rulings_on(engine.log.state, contents)
    for path in dict.fromkeys(one.path for one in rulings if one.sort == "append-only"):
        content, added = made[path], additions(engine, path, since)
        if content is None or not content.link:
            after = joined(content.data if content else b"", added)
            if added:
                made[path] = Content(after, content is not None and content.executable)
                noted.append(told(path, added))
            entry = engine.git.tracked_all([path])[path]
            before = engine.git.repo.read_blob(entry.oid) if entry else b""
            learned, superseded = memory_of(engine, before, after)
            if learned or superseded:
                new = made[path]
                amended.append(
                    FileAmended(
                        path=path,
                        before=entry.oid if entry else "",
                        after=blob_id(after) if new is not None else "",
                        reason=why,
                        learned=learned,
                        superseded=superseded,
                    )
                )
    return made, " ".join(noted), amended


def _steps(contents: dict[str, Content | None]) -> list[dict[str, Content | None]]:
    """Split a write in two, removals first, if a file replaces a directory or the reverse."""
    gone = {path for path, content in contents.items() if content is None}
    fresh = contents.keys() - gone
    if not (gone & _folders(fresh) or fresh & _folders(gone)):
        return [contents]
    return [dict.fromkeys(sorted(gone)), {path: contents[path] for path in sorted(fresh)}]


def _folders(paths: Iterable[str]) -> set[str]:
    return {str(folder) for path in paths for folder in PurePosixPath(path).parents}


def _at_or_below(name: str, path: str) -> bool:
    return not path or name == path or name.startswith(path + "/")
