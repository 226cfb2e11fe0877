"""Replays a context that an agent was shown, from the recorded ids and the history that they name.

The index is not queried, so neither its ranking nor later additions can change anything. Only purged content
and passages of read-only sources can be missing; they are marked as such.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import msgspec

from agentx.context.assembler import FULL_LOG, RECAP, Context, Request, assemble
from agentx.engine.daily_recap import Told, day_at, log_at, said_at
from agentx.engine.engine import Engine, last_user_message
from agentx.engine.followed import with_notes
from agentx.engine.moment_parser import NoSuchMoment, as_it_was, event_at
from agentx.recording.recorded_log import RecordedLog
from agentx.search.background_worker import SearchLate
from agentx.search.event_chunks import Passages
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import ContextProvided, Event, Purged, UserMessageSent
from agentx.storage.index.port import Chunk, ChunkKind
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.synthesis.memory.items import (
    FOLLOWED_SEPARATOR,
    FORMER_KINDS,
    FORMER_PREFIXES,
    PREFIXES,
    ConstraintDetail,
    HotIssueDetail,
    Kind,
    MemoryItem,
    NoteDetail,
    NoteSort,
    RejectionDetail,
)
from agentx.synthesis.recall.retrieval import SearchHit, as_hit
from agentx.synthesis.state.flows import FlowMatch
from agentx.synthesis.state.state import RECENT_MESSAGES, Message, State

PURGED = "(purged)"
GONE = "(no longer there)"
"""Placeholder for a passage that cannot be restored: it was purged, or its source changed."""

_MESSAGES = ("UserMessageSent", "AgentMessageSent")
_KINDS: dict[str, tuple[Kind, NoteSort]] = {
    **{prefix: (kind, "") for kind, prefix in PREFIXES.items()},
    **{prefix: FORMER_KINDS[kind] for prefix, kind in FORMER_PREFIXES.items()},
}
"""Kind and sort of an item by the first letter of its id."""

_FROM_EVENTS: dict[str, ChunkKind] = {"a": "artifact", "m": "message", "t": "tool"}
"""Kind of a chunk by the first letter of its id, if it comes from an event."""

_ITEM = re.compile(r"([a-z])-[0-9]+(?:\.[0-9]+)?")


def shown_at(log: RecordedLog, seq: int) -> Event | None:
    """Return the record of the context shown at an event, or just before it in the same run.

    Returns:
        The ``ContextProvided`` event; ``None`` if there is none.
    """
    event = event_at(log, seq)
    if event is None or isinstance(event.data, ContextProvided):
        return event
    before = event_at(log, seq - 1)
    if before and event.run and before.run == event.run and isinstance(before.data, ContextProvided):
        return before
    return None


def replay(engine: Engine, shown: Event) -> Context:
    """Assemble a context as it was shown in a ``ContextProvided`` event.

    Returns:
        The context. ``replays`` is the event. ``exact`` says whether the text is byte for byte the one that
        was shown (by its digest, or by its length if an older version recorded no digest).

    Raises:
        NoSuchMoment: The event is of another type.
    """
    data = shown.data
    if not isinstance(data, ContextProvided):
        raise NoSuchMoment(f"Event {shown.seq} is a {shown.type}; no context was shown in it.")
    state = _state_then(engine.log, data.as_of or shown.seq - 1)
    state = with_notes(engine.following.at(data.followed).merged(state).state, data.followed)
    lost = (name for name in data.items if name not in state.items and FOLLOWED_SEPARATOR in name)
    state.items |= {name: _gone(name) for name in lost}
    for name in data.items:
        if name not in state.items and (letter := _ITEM.fullmatch(name)):
            kind, sort = _KINDS.get(letter[1], ("situation", ""))  # its conclusion was purged
            note = NoteDetail(sort=sort)
            detail = HotIssueDetail(runner=PURGED, check=PURGED) if kind == "hot_issue" else note
            state.items[name] = MemoryItem(id=name, kind=kind, text=PURGED, short=PURGED, detail=detail)
    hits = [_passage(engine, state, name) for name in data.recalled]
    request = Request(
        message=_message(engine, state),
        max_tokens=data.max_tokens,
        tier=data.tier,
        asked=data.asked,
        again=True,
        late=data.late,
    )
    items = (state.items.get(name) for name in data.items)
    flows = [
        FlowMatch(item, 1.0, "it was shown then", "words") for item in items if item and item.kind == "flow"
    ]

    def recall(_query: str, _most: int) -> list[SearchHit]:
        if "search" in data.late:
            raise SearchLate("The deadline cut the search off.", hits)
        return hits

    def made_again(state: State, request: Request) -> Context:
        return assemble(state, request, recall, _cut_off(told_at(engine, state, data.tier), data.late), flows)

    made = made_again(state, request)
    same = made.digest == data.digest if data.digest else made.tokens == data.tokens
    if not same and not {*data.items} <= {item.id for item in made.items}:
        # An older version divided the room differently: show what it showed
        shown_then = {name: one for name, one in state.items.items() if name in data.items}
        made = made_again(
            msgspec.structs.replace(state, items=shown_then), msgspec.structs.replace(request, former=True)
        )
    return msgspec.structs.replace(made, replays=shown.seq, exact=same, followed=data.followed)


def _gone(name: str) -> MemoryItem:
    """Return a placeholder for a rule of a followed workspace that cannot be read any more."""
    kind = _KINDS.get(name.rpartition(FOLLOWED_SEPARATOR)[2][:1], ("constraint", ""))[0]
    detail = ConstraintDetail() if kind == "constraint" else RejectionDetail(GONE)
    return MemoryItem(id=name, kind=kind, text=GONE, short=GONE, detail=detail)


def told_at(engine: Engine, state: State, tier: int) -> Iterator[Told]:
    """Yield what happened up to a state's last event, newest first, for a tier.

    At tier 1 these are the messages before those in the state; at tier 0, nothing.
    """
    history = engine.log.history
    if tier >= FULL_LOG:
        yield from log_at(history, state, engine.read_body)
    elif tier == RECAP:
        yield from day_at(history, state).told()
    elif tier == 1:
        yield from said_at(history, state)


def _cut_off(told: Iterator[Told], late: Sequence[str]) -> Iterator[Told]:
    """Yield what happened, as far as there was time to read it then."""
    read = {kind: number for kind, _, number in (one.partition(":") for one in late)}
    if "recap" in read:
        raise SearchLate("The deadline left no time for the recap of the day.")
    yield from islice(told, int(read["log"]) if "log" in read else None)
    if "log" in read:
        raise SearchLate("The deadline left no time to read further back.")


def _state_then(log: RecordedLog, seq: int) -> State:
    """Return the state that the context was made from, with placeholders for what was purged since."""
    state = State()
    for event in log.history.read(on_damage=told_already):
        if event.seq > seq:
            break
        state.apply(event)
        if isinstance(event.data, Purged) and event.type in _MESSAGES:
            state.messages.append(Message(event.seq, event.at, event.actor, PURGED, event.run))
            del state.messages[:-RECENT_MESSAGES]
    return state


def _message(engine: Engine, state: State) -> str:
    """Return the message that the context was for: the user's latest message, in full."""
    seq = next((m.seq for m in reversed(state.messages) if Actor.parse(m.actor).is_user), 0)
    event = event_at(engine.log, seq)
    if event is None or not isinstance(event.data, UserMessageSent):
        return last_user_message(state)
    try:
        return engine.read_body(event.data.body)
    except BlobDamaged:
        return event.data.body.text


def _passage(engine: Engine, state: State, name: str) -> SearchHit:
    """Return a recalled passage by the id of its chunk, which encodes its origin."""
    letter, _, place = name.partition(":")
    if letter == "i":
        hit = SearchHit(id=name, kind="memory", text=PURGED, symbol=place, score=0.0)
        return as_it_was(engine, hit, state) or hit
    chunk: Chunk | None = None
    seq = place.partition(":")[0]
    event = event_at(engine.log, int(seq)) if letter in _FROM_EVENTS and seq.isdigit() else None
    if event is None:
        chunk = next(iter(engine.indexer.index.get([name]).values()), None)
    else:
        with suppress(BlobDamaged):
            passages = Passages(engine.write_path, event.seq - 1).of(event)
            chunk = next((chunk for chunk in passages if chunk.id == name), None)
    return as_hit(chunk) if chunk else _lost(event, name)


def _lost(event: Event | None, name: str) -> SearchHit:
    """Return a placeholder for a passage that cannot be restored."""
    letter, _, place = name.partition(":")
    kind = _FROM_EVENTS.get(letter, "source")
    path = place.partition(":")[2].rpartition(":")[0] if kind == "artifact" else ""
    if event is None:
        return SearchHit(id=name, text=GONE, score=0.0, kind=kind, path=path)
    return SearchHit(
        id=name, text=PURGED, score=0.0, kind=kind, path=path, seq=event.seq, at=event.at, actor=event.actor
    )
