"""Search and context of an open workspace, as it is now or as it was at a moment."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice

import msgspec

from agentx.context import context_replay
from agentx.context.assembler import BUDGETS, FULL_LOG, RECAP, SEARCH_HITS, Context, Request, assemble
from agentx.engine import moment_parser
from agentx.engine.daily_recap import Told
from agentx.engine.engine import Engine, last_user_message
from agentx.engine.followed import Upstreams
from agentx.memory.flows import called_for
from agentx.search.background_worker import SearchLate, done_by
from agentx.search.event_chunks import of_memory
from agentx.storage.errors import UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import ChunkKind, Filter
from agentx.synthesis.recall.recall import is_memory
from agentx.synthesis.recall.retrieval import SearchHit, retrieve
from agentx.synthesis.state.flows import FlowMatch, match
from agentx.synthesis.state.state import State

DEADLINE_MS = 1_000.0
"""Default deadline of a context: an agent waits for it before each of its steps."""

LOCKED, SEARCHED, TOLD = 0.3, 0.8, 0.9
"""Shares of the time until the deadline after which to stop waiting for the lock, the search and the log."""

MOST_SEARCHED = 1_000
"""Maximum number of passages of the state searched if the index is late; takes at most 0.1 s."""


def search(
    engine: Engine,
    query: str,
    k: int,
    where: Filter,
    seq: int | None,
    *,
    files: bool = False,
    grouped: bool = False,
) -> list[SearchHit]:
    """Find ``k`` passages or files, in the workspace as it was after an event (``None``: as it is)."""
    if seq is None:
        return engine.search(query, k, where, files=files, grouped=grouped)
    state = moment_parser.state_at(engine, seq)
    return moment_parser.search_at(engine, query, k, where, state, files=files, grouped=grouped)


def why_lexical(engine: Engine) -> str:
    """Return why the last search used words alone; empty if it did not."""
    if engine.indexer.behind:
        return "Many passages are not embedded yet, so this search was lexical; `agentx rebuild` embeds them."
    return engine.indexer.why_lexical


class _Clock(msgspec.Struct, frozen=True):
    """Divides the time until a deadline among the steps.

    Attributes:
        begin: ``time.monotonic()`` of the request.
        end: When the answer is due; ``None`` for no deadline.
    """

    begin: float
    end: float | None

    @classmethod
    def of(cls, deadline_ms: float | None) -> "_Clock":
        """Return a clock that starts now."""
        now = time.monotonic()
        return cls(now, None if deadline_ms is None else now + deadline_ms / 1000)

    def at(self, share: float) -> float | None:
        """Return when a step is due, given its share of the time; ``None`` for no deadline."""
        return None if self.end is None else self.begin + (self.end - self.begin) * share

    def is_over(self, share: float) -> bool:
        """Return whether that time is over."""
        end = self.at(share)
        return end is not None and time.monotonic() > end


def relevant_context(
    engine: Engine,
    message: str,
    *,
    max_tokens: int | None,
    tier: int,
    seq: int | None,
    deadline_ms: float | None = DEADLINE_MS,
) -> Context:
    """Assemble a context; see :meth:`agentx.workspace.Workspace.get_relevant_context` for its content.

    Raises:
        UsageError: The tier does not exist, or the budget is not positive.
    """
    if tier not in range(len(BUDGETS)):
        raise UsageError(f"Unknown tier {tier}; use 0, 1, 2 or 3.")
    check_budget(max_tokens)
    if seq is not None and not message and (shown := context_replay.shown_at(engine.log, seq)):
        return context_replay.replay(engine, shown)
    clock = _Clock.of(deadline_ms)
    state, late = _state(engine, seq, clock)
    now = datetime.now(UTC).isoformat() if seq is None else state.at
    given = RECAP if tier == FULL_LOG and max_tokens is None and has_begun(state, now) else tier
    request = Request(
        message=message or last_user_message(state),
        max_tokens=BUDGETS[given] if max_tokens is None else max_tokens,
        tier=given,
        asked=tier if tier > given else 0,
        deadline=clock.end,
        late=late,
        memories=engine.config.scribe.auto_recall_top_k if engine.config.scribe.auto_recall else None,
    )

    def find(wanted: str, k: int, *kinds: ChunkKind) -> list[SearchHit]:
        where = Filter(as_of=seq, kinds=kinds)
        if seq is None:
            return engine.search(wanted, k, where, deadline=clock.at(SEARCHED))
        return moment_parser.search_at(engine, wanted, k, where, state, deadline=clock.at(SEARCHED))

    def recall(wanted: str, k: int) -> list[SearchHit]:
        try:
            found = find(wanted, k)
        except SearchLate as late:
            if late.found:
                raise
            index = InMemoryIndex()  # the state itself, by words
            index.put(list(islice(of_memory(state), MOST_SEARCHED)))
            raise SearchLate(str(late), retrieve(index, wanted, None, k, Filter())) from late
        if len(found) == k and sum(is_memory(hit, state) for hit in found) < (request.memories or 0):
            known = {hit.id for hit in found}  # only files are near, so search memories separately
            few = min(k, SEARCH_HITS)
            found += [hit for hit in find(wanted, few, "memory", "message") if hit.id not in known]
        if engine.config.scribe.capture_assistant:
            return found
        return [hit for hit in found if hit.kind != "message" or Actor.parse(hit.actor).role != "agent"]

    history, flows = _told(engine, state, given, seq, clock), _flows(engine, request, state, clock)
    followed = followed_at(engine, clock.at(LOCKED)) if seq is None else Upstreams()
    made = assemble(followed.told(state), request, recall, history, flows)
    return msgspec.structs.replace(made, followed=followed.records)


def followed_at(engine: Engine, deadline: float | None) -> Upstreams:
    """Return the followed workspaces; as last fetched if a remote does not answer by a deadline."""
    if engine.following.ready:
        return engine.following.current()
    try:
        return done_by(deadline, engine.following.current)
    except SearchLate:
        return engine.following.kept()


def check_budget(max_tokens: int | None) -> None:
    """Check the token budget of a text.

    Raises:
        UsageError: It is not positive.
    """
    if max_tokens is not None and max_tokens < 1:
        raise UsageError(f"The budget is {max_tokens} tokens; it must be at least 1.")


def _state(engine: Engine, seq: int | None, clock: _Clock) -> tuple[State, tuple[str, ...]]:
    """Return the state at a moment, and what the deadline cut off."""
    if seq is not None:
        return moment_parser.state_at(engine, seq), ()
    if (by := clock.at(LOCKED)) is None:
        return engine.snapshot(), ()
    state, current = engine.snapshot_by(by)
    return state, () if current else ("lock",)


def _flows(engine: Engine, request: Request, state: State, clock: _Clock) -> list[FlowMatch]:
    """Return the flows that the message calls for; if embeddings take too long, matched by words alone."""
    try:
        return done_by(clock.at(LOCKED), lambda: called_for(engine, state, request.message, load=False))
    except SearchLate:
        return match(state, request.message)


def _told(engine: Engine, state: State, tier: int, seq: int | None, clock: _Clock) -> Iterator[Told]:
    """Yield what happened, newest first, as far as there is time for it.

    Raises:
        SearchLate: The time is over; raised instead of yielding the next one.
    """
    if tier == RECAP:
        made = engine.recaps.at if seq is None else partial(context_replay.told_at, engine, tier=tier)
        yield from done_by(clock.at(TOLD), lambda: list(made(state)))
        return
    for told in context_replay.told_at(engine, state, tier):
        if clock.is_over(TOLD):
            raise SearchLate("The deadline left no time to read further back.")
        yield told


def has_begun(state: State, now: str) -> bool:
    """Return whether an agent has answered on the day of an ISO time, in this machine's calendar."""
    today = _day(now)
    return any(
        Actor.parse(message.actor).role == "agent" and _day(message.at) == today for message in state.messages
    )


def _day(at: str) -> date | None:
    try:
        return datetime.fromisoformat(at).astimezone().date()
    except ValueError:
        return None
