"""Moments: resolve a number, a time or a commit to an event, and recall what was known after it."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from agentx.engine.engine import Engine
from agentx.recording import commit_message
from agentx.recording.recorded_log import RecordedLog
from agentx.recording.recovery import is_ours, last_recorded
from agentx.storage.errors import UsageError
from agentx.storage.events.types import ArtifactChanged, Event
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.index.port import Filter
from agentx.storage.log.history import told_already
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.state import State

_SHORTEST_ID = 7
_SHOWN = 60
_AGO = re.compile(r"([0-9]{1,5}) ?([smhdw])(?: ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?)"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_NEAR = 200
"""Number of events that are read on to the next wanted one rather than looked for anew."""

STANDING = ("candidate", "active", "dormant")
"""The statuses of an item that has not ended."""


class NoSuchMoment(UsageError):
    """The history has no such moment, or no such file at that moment."""


def resolve_moment(engine: Engine, moment: int | str) -> int:
    """Return the event that a moment refers to.

    Args:
        engine: The workspace.
        moment: The seq of an event (0 is before the first); an ISO date or time, UTC if it names no zone; a
            duration (``2h ago``); or a commit, in any notation of Git (an id of at least 7 characters,
            ``HEAD~2``).

    Returns:
        The seq of the event. A time gives the last event before the clock first went past it; a date, a
        minute or a second means its end. The clock may have stepped back, but the order of events never does.
        Imported events have their own times: where all before them is later, the time is looked for in them.
        A commit gives the last event that it holds; a user's commit gives the event that recorded it.

    Raises:
        NoSuchMoment: The moment does not exist.
    """
    engine.write_path.refresh()
    last = engine.log.state.seq
    text = str(moment).strip()
    if re.fullmatch(r"-?[0-9]{1,18}", text) and (len(text) < _SHORTEST_ID or int(text) <= last):
        if not 0 <= int(text) <= last:
            raise NoSuchMoment(f"Event {text} does not exist; the history has events 1 to {last}.")
        return int(text)
    if ago := _AGO.fullmatch(text):
        at = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return _at_time(engine.log, _as_recorded(at), text)
    if time := _TIME.fullmatch(text):
        return _at_time(engine.log, _as_recorded(_parse(text))[: len(time[1])], text)
    return _at_commit(engine, text)


def _parse(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise NoSuchMoment(f"{text!r} is not a date or time: {error}.") from error


def _as_recorded(at: datetime) -> str:
    """Format a UTC time as events store it, without the ``Z``, so that prefixes can be compared."""
    return at.isoformat(timespec="microseconds")[:26]


def _at_time(log: RecordedLog, until: str, said: str) -> int:
    found = 0
    for event in log.history.read(on_damage=told_already):
        if event.at[: len(until)] <= until:
            found = event.seq
        elif found and not isinstance(event.data, Concluded):
            break  # events before the first that is early enough are later than an import that they precede
    if not found:
        raise NoSuchMoment(
            f"There are no events before {said!r}; the history begins later (`agentx log --after 0`)."
        )
    return found


def _at_commit(engine: Engine, text: str) -> int:
    engine.write_path.write_commits()
    repo, head = engine.git.repo, engine.git.head
    too_short = re.fullmatch(f"[0-9a-fA-F]{{0,{_SHORTEST_ID - 1}}}", text)
    try:
        wanted = "" if too_short else repo.resolve(text)
    except ObjectDamaged:
        wanted = ""
    if not wanted:
        raise NoSuchMoment(
            f"Invalid point in time {text[:_SHOWN]!r}. Give an event's number (`agentx log`), a date or "
            "time (2026-11-20, 2026-11-20T09:30, 2h ago), or a commit (HEAD~2, or at least "
            f"{_SHORTEST_ID} characters of its ID)."
        )
    above = engine.log.state.seq
    for commit in repo.log(head):
        through = commit_message.through(commit.trailers) if is_ours(commit) else 0
        if commit.id == wanted:
            return through or _taken_on_record(engine.log, last_recorded(repo, wanted).seq, above)
        above = through or above
    raise NoSuchMoment(f"The commit {text[:_SHOWN]!r} is not on the branch main, which holds the history.")


def _taken_on_record(log: RecordedLog, below: int, above: int) -> int:
    """Return the event that recorded a user's commit: between the engine's commits below and above it."""
    found = below
    for event in log.history.read(below, told_already):
        taken = isinstance(event.data, ArtifactChanged) and event.data.noticed == "git"
        if event.seq > above or (found > below and not taken):
            break
        found = event.seq if taken else found
    return found


# --- what was known at that time ------------------------------------------------------------------


def event_at(log: RecordedLog, seq: int) -> Event | None:
    """Return the event with a seq; ``None`` if its line is damaged or missing."""
    event = next(log.history.read(seq - 1, told_already), None) if seq > 0 else None
    return event if event is not None and event.seq == seq else None


def events_at(log: RecordedLog, seqs: Iterable[int]) -> Iterator[Event]:
    """Yield the events with some seqs, in order; one whose line is damaged or missing is left out.

    Those that are near to each other are read together.
    """
    wanted = sorted({seq for seq in seqs if seq > 0}, reverse=True)
    while wanted:
        for event in log.history.read(wanted[-1] - 1, told_already):
            while wanted and wanted[-1] < event.seq:
                wanted.pop()
            if wanted and wanted[-1] == event.seq:
                wanted.pop()
                yield event
            if not wanted or wanted[-1] > event.seq + _NEAR:
                break
        else:
            return


def state_at(engine: Engine, seq: int) -> State:
    """Return the state after an event, folded again from the history."""
    return next(states_at(engine, seq))


def states_at(engine: Engine, *seqs: int) -> Iterator[State]:
    """Yield the state after each of some events, which are in order; one fold serves all."""
    state, now = State(), engine.snapshot()
    events = engine.log.history.read(on_damage=told_already)
    event = next(events, None)
    for seq in seqs:
        if seq == now.seq:
            yield now
            continue
        while event is not None and event.seq <= seq:
            state.apply(event)
            event = next(events, None)
        yield state.copy()


def search_at(
    engine: Engine,
    query: str,
    k: int,
    where: Filter,
    state: State,
    *,
    deadline: float | None = None,
    files: bool = False,
    grouped: bool = False,
) -> list[SearchHit]:
    """Return the passages that were nearest to a query at an earlier moment.

    The index holds each memory item as it is now. So an item is shown with its text at that moment, and an
    item that did not exist then is not a hit.

    Args:
        engine: The workspace.
        query: Words in any form.
        k: Maximum number of hits.
        where: What to search; ``where.as_of`` is the moment.
        state: The state at that moment.
        deadline: ``time.monotonic()`` after which nothing is embedded.
        files: Return one hit for each file.
        grouped: Return the passages of a file as one hit.
    """
    hits = engine.search(query, k * 2, where, deadline=deadline, files=files, grouped=grouped)
    then = (as_it_was(engine, hit, state) for hit in hits)
    return [hit for hit in then if hit is not None][:k]


def as_it_was(engine: Engine, hit: SearchHit, state: State) -> SearchHit | None:
    """Return a hit as it was in a state; ``None`` for a memory item that did not exist or had ended."""
    if hit.kind != "memory":
        return hit
    item = state.items.get(hit.symbol)
    if item is None or item.status not in STANDING:
        return None
    changed = event_at(engine.log, item.changed_seq)
    at = changed.at if changed else hit.at
    return msgspec.structs.replace(hit, text=item.text, seq=item.created_seq, at=at)
