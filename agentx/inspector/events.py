"""The timeline of a workspace: pages of events, one event with its causes and effects, and moments."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any, Literal

import msgspec

from agentx.engine.moment_parser import event_at, events_at
from agentx.history.bisect import Cause, causes
from agentx.history.diff import FileDiff, changed_file
from agentx.inspector.access import InspectorError
from agentx.inspector.asking import MOST_CHARACTERS, Asked, cut
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Body, Event, ToolCallExecuted, changes_of
from agentx.storage.index.filters import path_test
from agentx.storage.log.history import told_already
from agentx.storage.text import one_line
from agentx.synthesis.memory.conclusions import Add, Concluded, Counted
from agentx.synthesis.memory.items import Evidence
from agentx.synthesis.state.state import State
from agentx.workspace import Workspace

MOST_READ = 5_000
"""Maximum number of events that one request with a filter reads; the next goes on where it ended."""

MOST_PATHS = 20
"""Maximum number of paths in the row of an event."""

MOST_FILES = 50
"""Maximum number of files whose changes are shown of one event."""

MOST_MARKS = 200
"""Maximum number of moments for the slider."""

_FILE_BYTES, _DIFF_BYTES = 1 << 20, 2 << 20
"""A larger content is not compared, nor more than the second of one event, whatever sizes the event says."""

Test = Callable[[Event], bool]


def row(ws: Workspace, event: Event) -> dict[str, Any]:
    """Return an event as a row of the timeline."""
    changes = changes_of(event)
    return {
        "seq": event.seq,
        "at": event.at,
        "type": event.type,
        "actor": event.actor,
        "run": event.run,
        "text": one_line(event.describe()),
        "paths": [made.path for made in changes[:MOST_PATHS]],
        "commit": ws.engine.commits.find(event.seq),
    }


def page(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return a page of events: the newest first, or with ``after`` the oldest first.

    With a filter it may hold fewer rows than ``limit``, or none, though there are more: ``next`` goes on.
    """
    state = ws.engine.snapshot()
    ws.engine.commits.extend(ws.engine.git.head)
    wanted, test = asked.limit, _test(asked)
    first, last = _bounds(ws, asked, state)
    total = _total(asked, state)
    if total == 0:
        return {"events": [], "next": None, "total": 0}
    if asked.given("after"):
        first = max(first, asked.number("after") + 1)
        found, end = _forwards(ws, first, last, wanted, test)
        following = end if end < last else None
    else:
        last = min(last, asked.number("before", state.seq + 1) - 1)
        found, end = _backwards(ws, first, last, wanted, test)
        following = end if end > first else None
    return {
        "events": [row(ws, event) for event in found],
        "next": following,
        "total": total,
    }


def _bounds(ws: Workspace, asked: Asked, state: State) -> tuple[int, int]:
    """Return the first and the last event that can match: of a run, its own."""
    if not (name := asked.text("run")):
        return 1, state.seq
    run = ws.engine.links.at(state, lambda index: index.runs.get(name))
    return (run.record.seq, run.last) if run else (1, 0)


def _total(asked: Asked, state: State) -> int | None:
    """Return the number of all events that match, if it is known without reading them."""
    if any(asked.given(name) for name in ("actor", "run", "path", "q")):
        return None
    types = asked.names("type")
    return sum(state.counts.get(name, 0) for name in types) if types else state.seq


def _test(asked: Asked) -> Test | None:
    """Return what tells whether an event matches the filters; ``None`` without any."""
    tests: list[Test] = []
    if types := asked.names("type"):
        tests.append(lambda event: event.type in types)
    if actor := asked.text("actor"):
        tests.append(lambda event: event.actor == actor or event.actor.startswith(f"{actor.rstrip(':')}:"))
    if run := asked.text("run"):
        tests.append(lambda event: event.run == run)
    if path := asked.text("path"):
        inside = path_test(path)
        tests.append(lambda event: any(inside(made.path) for made in changes_of(event)))
    if words := asked.text("q").casefold().split():
        tests.append(lambda event: _has(event, words))
    return (lambda event: all(test(event) for test in tests)) if tests else None


def _has(event: Event, words: list[str]) -> bool:
    data = msgspec.json.encode(event.data).decode()
    whole = f"{event.type} {event.actor} {event.describe()} {data}".casefold()
    return all(word in whole for word in words)


def _backwards(
    ws: Workspace, first: int, last: int, wanted: int, test: Test | None
) -> tuple[list[Event], int]:
    """Return the events from ``last`` back to ``first`` that match, and the seq before which to go on."""
    found: list[Event] = []
    end, read, window = last + 1, 0, wanted
    while len(found) < wanted and end > first and read < MOST_READ:
        begin = max(first, end - window)
        for event in reversed(_between(ws, begin, end - 1)):
            if test is None or test(event):
                found.append(event)
                if len(found) == wanted:
                    return found, event.seq
        read, end, window = read + end - begin, begin, min(window * 2, 1_000)
    return found, end


def _forwards(
    ws: Workspace, first: int, last: int, wanted: int, test: Test | None
) -> tuple[list[Event], int]:
    """Return the events from ``first`` on that match, and the seq after which to go on."""
    found: list[Event] = []
    for read, event in enumerate(_reading(ws, first, last), 1):
        if test is None or test(event):
            found.append(event)
        if len(found) == wanted or read == MOST_READ:
            return found, event.seq
    return found, last


def _between(ws: Workspace, first: int, last: int) -> list[Event]:
    return list(_reading(ws, first, last))


def _reading(ws: Workspace, first: int, last: int) -> Iterator[Event]:
    if last < first:
        return iter(())
    events = ws.engine.log.history.read(first - 1, told_already)
    return takewhile(lambda event: event.seq <= last, events)


# --- one event ----------------------------------------------------------------------------------------------


def detail(ws: Workspace, asked: Asked) -> dict[str, Any]:
    """Return one event: whole, with what led to it, what came of it, and its commit.

    Raises:
        InspectorError: It does not exist.
    """
    engine, state, seq = ws.engine, ws.engine.snapshot(), asked.number("seq")
    event = event_at(engine.log, seq)
    if event is None:
        raise InspectorError(404, f"There is no event {seq}; the history has {state.seq:,}.")
    began, caused = engine.links.at(
        state,
        lambda index: (
            {name: run.record.seq for name, run in index.runs.items()},
            list(index.effects.get(seq, ())),
        ),
    )
    quoted = _evidence(event)
    quotes = {one.seq for one in quoted}
    commit = engine.commit_of(seq)
    return {
        "event": msgspec.to_builtins(event),
        "row": row(ws, event),
        "text": one_line(event.describe()),
        "bodies": dict(_bodies(ws, event)),
        "cause": [
            {**_told(cause), "why": _why(event, cause, quotes, began), "quote": cause.quote}
            for cause in causes(engine, event, quoted, began)
        ],
        "effects": list(_effects(ws, event, caused, state)),
        "items": list(_items(event, state)),
        "files": list(_files(ws, event)),
        "commit": _commit(ws, commit) if commit else None,
    }


def _told(cause: Cause) -> dict[str, Any]:
    return {
        "seq": cause.seq,
        "at": cause.at,
        "actor": cause.actor,
        "type": cause.type,
        "text": one_line(cause.told),
    }


def _why(event: Event, cause: Cause, quotes: set[int], began: dict[str, int]) -> str:
    """Return how an event led to another, in a few words."""
    if cause.seq == event.cause:
        return "led to it"
    if cause.seq in quotes:
        return "it rests on these words"
    if isinstance(event.data, ToolCallExecuted) and cause.seq == event.data.reverts:
        return "it takes this back"
    return "its run began" if cause.seq == began.get(event.run) else "before that"


def _evidence(event: Event) -> list[Evidence]:
    """Return what the changes of memory in an event rest on."""
    if not isinstance(event.data, Concluded):
        return []
    found: list[Evidence] = []
    for change in event.data.changes:
        given = change.item.evidence if isinstance(change, Add) else getattr(change, "evidence", ())
        found += given or ()
    return [one for one in found if one.seq < event.seq]


def _bodies(ws: Workspace, event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the long texts of an event by field, whole as far as they are shown."""
    for name in event.data.__struct_fields__:
        body = getattr(event.data, name)
        if isinstance(body, Body) and body.text:
            try:
                yield name, cut(ws.read_body(body))
            except AgentXError as error:  # its blob was purged or is damaged
                yield name, {"text": body.text, "cut": True, "note": str(error)}


def _effects(ws: Workspace, event: Event, caused: Iterable[int], state: State) -> Iterator[dict[str, Any]]:
    """Yield what came of an event: what names it as its cause, and the memory that quotes it."""
    why = dict.fromkeys(caused, "caused by it")
    for item in state.items.values():
        if any(one.seq == event.seq for one in item.evidence) and item.created_seq > event.seq:
            why.setdefault(item.created_seq, f"{item.id} rests on it")
    for other in islice(events_at(ws.engine.log, why), MOST_FILES):
        reverts = isinstance(other.data, ToolCallExecuted) and other.data.reverts == event.seq
        yield {
            "seq": other.seq,
            "at": other.at,
            "actor": other.actor,
            "type": other.type,
            "text": one_line(other.describe() or other.type),
            "why": "takes it back" if reverts else why[other.seq],
        }


def _items(event: Event, state: State) -> Iterator[dict[str, Any]]:
    """Yield the memory items that an event changed, that quote it, or that stopped or let it pass."""
    what: dict[str, str] = {}
    if isinstance(event.data, Concluded):
        for change in event.data.changes:
            if isinstance(change, Add):
                what[change.item.id] = "added"
            elif not isinstance(change, Counted):
                what[change.id] = "changed"
    for word, field in (("denied it", "denied_by"), ("broken", "broke"), ("kept", "kept")):
        what |= dict.fromkeys(getattr(event.data, field, ()), word)
    for item in state.items.values():
        if any(one.seq == event.seq for one in item.evidence):
            what.setdefault(item.id, "quotes it")
    for name, how in what.items():
        known = state.items.get(name)
        text, kind = (known.text, known.kind) if known else ("", "")
        yield {"id": name, "kind": kind, "text": text, "what": how}


def _files(ws: Workspace, event: Event) -> Iterator[dict[str, Any]]:
    """Yield the first files that an event changed, with their changed lines as far as they are compared."""
    left = _DIFF_BYTES
    for made in changes_of(event)[:MOST_FILES]:
        if made.size_bytes <= _FILE_BYTES and left > 0:
            found = changed_file(ws.engine, made, left)
            size = found.old_bytes + found.new_bytes
            yield _file(found, large=size > left)
            left -= size
        else:
            what: Literal["added", "changed", "deleted"]
            what = "deleted" if not made.after else "changed" if made.before else "added"
            yield _file(FileDiff(what=what, path=made.path), large=True)


def _file(made: FileDiff, *, large: bool) -> dict[str, Any]:
    return {
        "large": large,
        "path": made.path,
        "change": made.what,
        "added": made.added,
        "removed": made.removed,
        "binary": made.binary,
        "missing": made.missing,
        "diff": made.patch[:MOST_CHARACTERS],
        "cut": len(made.patch) > MOST_CHARACTERS,
    }


def _commit(ws: Workspace, name: str) -> dict[str, Any]:
    info = ws.engine.git.repo.info(name)
    return {
        "id": info.id,
        "subject": one_line(info.subject),
        "at": stamp(datetime.fromtimestamp(info.at, UTC), timespec="seconds"),
        "author": info.author,
        "trailers": info.trailers,
    }


# --- moments ------------------------------------------------------------------------------------------------


def moments(ws: Workspace, _asked: Asked) -> dict[str, Any]:
    """Return the first and the last event, and the moments between them that stand out."""
    state = ws.engine.snapshot()
    marks, first_at = ws.engine.links.at(state, lambda index: (list(index.marks), index.first_at))
    rare = [mark for mark in marks if mark.what not in {"message", "run"}][-MOST_MARKS:]
    common = [mark for mark in marks if mark.what in {"message", "run"}]
    room = MOST_MARKS - len(rare)
    step = -(-len(common) // room) if room else 0
    shown = sorted([*rare, *(common[::-step] if step else ())], key=lambda mark: mark.seq)
    return {
        "first": {"seq": min(1, state.seq), "at": first_at},
        "last": {"seq": state.seq, "at": state.at},
        "marks": shown,
    }
