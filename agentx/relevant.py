"""What is asked of an open workspace: a search and a context, as it is now or as it was at a moment."""

import time

from agentx import moments, replay
from agentx.context import Context, Request, assemble
from agentx.engine import Engine, last_user_message
from agentx.flows import called_for
from agentx.storage.errors import UsageError
from agentx.storage.index.port import Filter
from agentx.synthesis.retrieval import SearchHit

TIERS = range(4)


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
    engine: Engine, message: str, *, max_tokens: int, tier: int, seq: int | None, deadline_ms: float | None
) -> Context:
    """Put a context together: :meth:`agentx.workspace.Workspace.get_relevant_context` says what it holds.

    Args:
        engine: The workspace.
        message: What it is for; the user's last message by default.
        max_tokens: Budget of the whole text.
        tier: How much of the conversation.
        seq: As it was after this event; ``None`` for now.
        deadline_ms: What cannot be had by then is left out.

    Raises:
        BudgetTooSmall: What must not be forgotten does not fit.
        UsageError: There is no such tier.
    """
    if tier not in TIERS:
        raise UsageError(f"There is no tier {tier}; it is 0, 1, 2 or 3.")
    if seq is not None and not message and (shown := replay.shown_at(engine, seq)):
        return replay.replay(engine, shown)
    deadline = None if deadline_ms is None else time.monotonic() + deadline_ms / 1000
    state = engine.snapshot() if seq is None else moments.state_at(engine, seq)
    message = message or last_user_message(state)
    request = Request(message=message, max_tokens=max_tokens, tier=tier, deadline=deadline)

    def recall(wanted: str, k: int) -> list[SearchHit]:
        if seq is None:
            return engine.search(wanted, k, Filter(), deadline=deadline)
        return moments.search_at(engine, wanted, k, Filter(as_of=seq), state, deadline=deadline)

    flows = called_for(engine, state, message, load=False)
    return assemble(state, request, recall, replay.recap(engine, tier, state.seq), flows)
