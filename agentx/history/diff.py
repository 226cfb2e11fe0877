"""The difference between two moments: artifacts and memory."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from agentx.engine.engine import Engine
from agentx.engine.moment_parser import STANDING, NoSuchMoment, event_at, states_at
from agentx.history.undo_restore import ArtifactsBetween, files_between
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import FileChange
from agentx.storage.git import patch
from agentx.storage.git.objects import ObjectDamaged
from agentx.synthesis.memory.items import HotIssueDetail, Kind, MemoryItem, status_in_words
from agentx.synthesis.state.state import State


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs.

    Attributes:
        what: Kind of change; a file that was ``moved`` may be changed as well.
        path: Its path at the later moment; for a deleted file, at the earlier moment.
        old_path: Its path at the earlier moment if it was moved; otherwise empty.
        added: Number of added lines.
        removed: Number of removed lines.
        binary: Whether it is not text, so that lines are not counted.
        old_bytes: Its size before; 0 if it did not exist.
        new_bytes: Its size after.
        mode: Its new mode, if that changed: ``executable``, ``link`` or ``plain file``.
        missing: Whether a content is no longer stored, so that nothing can be compared.
        patch: The unified diff, if requested.
    """

    what: Literal["added", "changed", "moved", "deleted"]
    path: str
    old_path: str = ""
    added: int = 0
    removed: int = 0
    binary: bool = False
    old_bytes: int = 0
    new_bytes: int = 0
    mode: str = ""
    missing: bool = False
    patch: str = ""


class FieldDiff(msgspec.Struct, frozen=True):
    """A field of a memory item before and after, as text."""

    name: str
    old: str
    new: str


class ItemDiff(msgspec.Struct, frozen=True, kw_only=True):
    """A memory item that differs.

    Attributes:
        what: It ``came`` (again), ``changed``, ``ended``, or both ``came and ended`` between the moments.
        text: Its text at the later moment.
        status: Its status at the later moment, or how it ended.
        fields: Its changed fields; empty for a new item.
    """

    what: Literal["came", "changed", "ended", "came and ended"]
    id: str
    kind: Kind
    text: str
    status: str
    fields: tuple[FieldDiff, ...] = ()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between two moments.

    Attributes:
        first: Seq of the earlier event; 0 for before the first.
        last: Seq of the later one.
        first_at: Time of the earlier event, UTC ISO 8601; empty for before the first.
        last_at: Time of the later event.
        files: By path.
        items: In the order of their creation.
    """

    first: int
    last: int
    first_at: str
    last_at: str
    files: tuple[FileDiff, ...]
    items: tuple[ItemDiff, ...]


def turn_begin(engine: Engine) -> int:
    """Return the event before the latest turn.

    That is the one before the user's message that the last run answers, or otherwise before the last message.
    """
    state = engine.snapshot()
    message = next((m.seq for m in reversed(state.messages) if Actor.parse(m.actor).is_user), 0)
    run = state.last_run
    started = event_at(engine.log, run.seq) if run is not None and run.seq > message else None
    return max(0, (started.cause or started.seq if started else message) - 1)


def compare(engine: Engine, first: int, last: int, *, patches: bool = False) -> Difference:
    """Compare the workspace after two events, with unified diffs if ``patches``.

    Raises:
        NoSuchMoment: The second is before the first.
    """
    if last < first:
        raise NoSuchMoment(f"Event {last} is before event {first}; give the earlier one first.")
    files = files_between(engine, first, last)
    then, now = states_at(engine, first, last)
    return Difference(
        first=first,
        last=last,
        first_at=_at(engine, first),
        last_at=_at(engine, last),
        files=tuple(_files(engine, files, patches=patches)),
        items=tuple(_items(then, now)),
    )


def _at(engine: Engine, seq: int) -> str:
    event = event_at(engine.log, seq)
    return event.at if event else ""


# --- artifacts ------------------------------------------------------------------------------------


def _files(engine: Engine, files: ArtifactsBetween, *, patches: bool) -> Iterator[FileDiff]:
    for old, new in names_changed(files):
        before, after = files.then.get(old), files.now.get(new)
        yield _compare_file(engine, old, new, before, after, patches=patches)


def names_changed(files: ArtifactsBetween) -> Iterator[tuple[str, str]]:
    """Yield the files that differ between two moments, by path: the earlier and the later name of each."""
    moved = {new: old for new, old in files.moved.items() if old not in files.now and new not in files.then}
    for path in sorted((files.then.keys() - set(moved.values())) | files.now.keys()):
        old, new = moved.get(path, path), path
        before, after = files.then.get(old), files.now.get(new)
        if old != new or before is None or after is None or _entry(before) != _entry(after):
            yield old, new


def changed_file(engine: Engine, made: FileChange, most_bytes: int) -> FileDiff:
    """Return the difference that one recorded change made to its file, with the changed lines.

    Contents that are longer together than ``most_bytes`` are not compared: their sizes alone are told.
    """
    before = msgspec.structs.replace(made, after=made.before) if made.before else None
    after = made if made.after else None
    return _compare_file(engine, made.path, made.path, before, after, patches=True, most_bytes=most_bytes)


def _compare_file(
    engine: Engine,
    old: str,
    new: str,
    before: FileChange | None,
    after: FileChange | None,
    *,
    patches: bool,
    most_bytes: int | None = None,
) -> FileDiff:
    what: Literal["added", "changed", "moved", "deleted"] = "changed"
    if before is None or after is None:
        what = "added" if after else "deleted"
    elif old != new:
        what = "moved"
    try:
        contents = [engine.git.repo.read_blob(one.after) if one else None for one in (before, after)]
        size = sum(len(content or b"") for content in contents)
        large = most_bytes is not None and size > most_bytes
        made, missing = (
            patch.FilePatch() if large else patch.compare(contents[0], contents[1], old, new),
            False,
        )
    except ObjectDamaged:
        contents, made, missing = [None, None], patch.FilePatch(), True
    return FileDiff(
        what=what,
        path=new,
        old_path=old if what == "moved" else "",
        added=made.added,
        removed=made.removed,
        binary=made.binary,
        old_bytes=len(contents[0] or b""),
        new_bytes=len(contents[1] or b""),
        mode=_mode(after) if before and after and _mode(before) != _mode(after) else "",
        missing=missing,
        patch=made.text if patches else "",
    )


def _entry(made: FileChange) -> tuple[str, bool, bool]:
    return made.after, made.executable, made.link


def _mode(made: FileChange) -> str:
    return "link" if made.link else "executable" if made.executable else "plain file"


# --- memory ---------------------------------------------------------------------------------------


def _items(then: State, now: State) -> Iterator[ItemDiff]:
    for item in now.items.values():
        before = then.items.get(item.id)
        if before is not None and before.changed_seq == item.changed_seq:
            continue
        fields = fields_changed(before, item) if before else ()
        was, is_now = before is not None and before.status in STANDING, item.status in STANDING
        if before is not None and was == is_now and not fields:
            continue
        what: Literal["came", "changed", "ended", "came and ended"] = "changed"
        if was != is_now:
            what = "came" if is_now else "ended"
        elif before is None:
            what = "came and ended"
        yield ItemDiff(
            what=what, id=item.id, kind=item.kind, text=item.text, status=status_in_words(item), fields=fields
        )


def fields_changed(old: MemoryItem, new: MemoryItem) -> tuple[FieldDiff, ...]:
    """Return the changed fields of an item that are worth showing to the user."""
    before, after = _fields(old), _fields(new)
    return tuple(FieldDiff(name, before[name], after[name]) for name in after if before[name] != after[name])


def _fields(item: MemoryItem) -> dict[str, str]:
    detail, scope = item.detail, item.scope
    issue = detail if isinstance(detail, HotIssueDetail) else None
    return {
        "status": status_in_words(item),
        "text": item.text,
        "score": f"{item.score:g}",
        "until": item.until,
        "scope": ", ".join(filter(None, (scope.topic, *scope.paths, *scope.tools))),
        "pinned": "yes" if item.pinned else "no",
        "failures": str(issue.failures) if issue else "",
        "priority": issue.priority if issue else "",
        "evidence": ", ".join(dict.fromkeys(f"event {one.seq}" for one in item.evidence)),
    }
