"""Composes commit messages: who did what, what else was recorded, and which events the commit holds.

A message is made from the events that the commit is the first to hold. The subject reports the most
significant of them; for a write, with the thought that led to it. The body lists the others, one per line.
The trailers tie the commit to the log (``AgentX-Event: 9-12``). Text from a model loses its newlines, because
it could forge a trailer, and characters that would truncate a message (NUL) or garble ``git log``.
"""

import re
from collections.abc import Sequence

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import WORDS, AgentThoughtProcess, Event, ToolCallExecuted
from agentx.storage.git.repository import HOST
from agentx.storage.text import one_line, shorten

SUBJECT_CHARACTERS = 72
BODY_LINES = 40


def compose(
    events: Sequence[Event], *, actor: str = "", files: Sequence[str] = ()
) -> tuple[str, tuple[str, str]]:
    """Make a commit's message and author.

    Args:
        events: The events that the commit is the first to hold, in order.
        actor: Who acts; by default the actor of the most significant event.
        files: Files beside the log that the commit holds as well.

    Returns:
        The message, and name and address of the author.
    """
    told = [event for event in events if event.describe()]
    leading = max(told, key=lambda event: (event.rank(), event.seq)) if told else None
    reason = _reason(leading, events) if leading else None
    plain = f"Change {', '.join(files)}" if files else f"Record {len(events)} event{'s' * (len(events) != 1)}"
    subject = one_line(leading.describe()) if leading else plain
    if reason:
        subject = f"{subject}: {one_line(shorten(_thought(reason), WORDS))}"
    author = actor or (leading.actor if leading else "engine:workspace")
    lines = [event.describe() for event in told if event not in (leading, reason)]
    if len(lines) > BODY_LINES:
        lines = [*lines[:BODY_LINES], f"and {len(lines) - BODY_LINES} more"]
    parts = [subject]
    if len(subject) > SUBJECT_CHARACTERS:
        parts = [subject[: SUBJECT_CHARACTERS - 1].rstrip() + "…", subject]
    if lines:
        parts.append("\n".join(f"- {one_line(line)}" for line in lines))
    if events:
        first, last = events[0].seq, events[-1].seq
        span = str(first) if first == last else f"{first}-{last}"
        parts.append(f"AgentX-Event: {span}\nAgentX-Actor: {one_line(author)}")
    return "\n\n".join(parts) + "\n", author_of(author)


def _reason(leading: Event, events: Sequence[Event]) -> Event | None:
    """Return the agent's last thought before a write: the reason for it."""
    if not (isinstance(leading.data, ToolCallExecuted) and leading.data.changes):
        return None
    thoughts = [
        event
        for event in events
        if _thought(event)
        and (event.actor, event.run) == (leading.actor, leading.run)
        and event.seq < leading.seq
    ]
    return thoughts[-1] if thoughts else None


def _thought(event: Event) -> str:
    return event.data.body.text.strip() if isinstance(event.data, AgentThoughtProcess) else ""


def author_of(actor: str) -> tuple[str, str]:
    """Return the Git identity of an actor, so that ``git blame`` and ``git shortlog`` show who did what.

    >>> author_of("agent:writer")
    ('agent:writer', 'writer@agent.agentx.invalid')
    """
    role, name = Actor.parse(actor)
    safe = "".join(c if c.isalnum() or c in "-._" else "-" for c in name or role)
    host = "".join(c if c.isalnum() or c == "-" else "-" for c in role) or "engine"
    shown = one_line(actor).replace("<", "(").replace(">", ")")
    # Git rejects a name without letters or digits.
    return shown if any(map(str.isalnum, shown)) else host, f"{safe or host}@{host}{HOST}"


def through(trailers: dict[str, str]) -> int:
    """Return the last event that a commit holds, by its trailers; 0 if it is not one of ours."""
    last = trailers.get("AgentX-Event", "").rpartition("-")[2]
    return int(last) if re.fullmatch("[0-9]{1,18}", last) else 0
