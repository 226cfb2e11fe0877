"""What is asked of an open workspace: a search and a context, as it is now or as it was at a moment."""

import time
from datetime import UTC, date, datetime

from agentx import moments, replay
from agentx.context import BUDGETS, FULL_LOG, RECAP, Context, Request, assemble
from agentx.engine import Engine, last_user_message
from agentx.flows import called_for
from agentx.storage.errors import UsageError
from agentx.storage.index.port import ChunkKind, Filter
from agentx.synthesis.recall import is_memory
from agentx.synthesis.retrieval import SearchHit
from agentx.synthesis.state import State


def search(
    engine: Engine, query: str, k: int, where: Filter, seq: int | None, *, files: bool = False
) -> list[SearchHit]:
    """Find passages, or files.

    Args:
        engine: The workspace.
        query: Words in any form.
        k: How many.
        where: What to look at.
        seq: As it was after this event; ``None`` for now.
        files: One hit for each file.
    """
    if seq is None:
        return engine.search(query, k, where, files=files)
    return moments.search_at(engine, query, k, where, moments.state_at(engine, seq), files=files)


def relevant_context(
    engine: Engine,
    message: str,
    *,
    max_tokens: int | None,
    tier: int,
    seq: int | None,
    deadline_ms: float | None,
) -> Context:
    """Put a context together: :meth:`agentx.workspace.Workspace.get_relevant_context` says what it holds.

    Args:
        engine: The workspace.
        message: What it is for; the user's last message by default.
        max_tokens: Budget of the whole text; that of the tier by default.
        tier: How much of the conversation.
        seq: As it was after this event; ``None`` for now.
        deadline_ms: What cannot be had by then is left out.

    Raises:
        BudgetTooSmall: What must not be forgotten does not fit.
        UsageError: There is no such tier.
    """
    if tier not in range(len(BUDGETS)):
        raise UsageError(f"There is no tier {tier}; it is 0, 1, 2 or 3.")
    if seq is not None and not message and (shown := replay.shown_at(engine, seq)):
        return replay.replay(engine, shown)
    deadline = None if deadline_ms is None else time.monotonic() + deadline_ms / 1000
    state = engine.snapshot() if seq is None else moments.state_at(engine, seq)
    now = datetime.now(UTC).isoformat() if seq is None else state.at
    given = RECAP if tier == FULL_LOG and max_tokens is None and has_begun(state, now) else tier
    request = Request(
        message=message or last_user_message(state),
        max_tokens=BUDGETS[given] if max_tokens is None else max_tokens,
        tier=given,
        asked=tier if tier > given else 0,
        deadline=deadline,
        memories=engine.config.scribe.auto_recall_top_k if engine.config.scribe.auto_recall else None,
    )

    def find(wanted: str, k: int, *kinds: ChunkKind) -> list[SearchHit]:
        where = Filter(as_of=seq, kinds=kinds)
        if seq is None:
            return engine.search(wanted, k, where, deadline=deadline)
        return moments.search_at(engine, wanted, k, where, state, deadline=deadline)

    def recall(wanted: str, k: int) -> list[SearchHit]:
        found = find(wanted, k)
        if len(found) == k and sum(is_memory(hit, state) for hit in found) < (request.memories or 0):
            known = {hit.id for hit in found}  # files alone are near: the memories are asked for by name
            found += [hit for hit in find(wanted, k, "memory", "message") if hit.id not in known]
        listens = engine.config.scribe.capture_assistant
        return [hit for hit in found if listens or hit.kind != "message" or not _of_agent(hit)]

    flows = called_for(engine, state, request.message, load=False)
    now_told = seq is None and given == RECAP
    told = engine.recaps.at(state) if now_told else replay.told_at(engine, state, given)
    return assemble(state, request, recall, told, flows)


def _of_agent(hit: SearchHit) -> bool:
    return hit.actor.partition(":")[0] == "agent"


def has_begun(state: State, now: str) -> bool:
    """Whether an agent has answered on the day of a time, as the calendar of this machine has it.

    Args:
        state: What is concluded.
        now: An ISO time.
    """
    today = _day(now)
    return any(message.actor.startswith("agent") and _day(message.at) == today for message in state.messages)


def _day(at: str) -> date | None:
    try:
        return datetime.fromisoformat(at).astimezone().date()
    except ValueError:
        return None
