"""Missions set by hand: one per role, and one for all agents; a new one replaces the old."""

from agentx.engine.engine import Engine
from agentx.memory import editing
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import MemoryItem, NoteDetail

EVERYBODY = ""


def listed(engine: Engine) -> list[MemoryItem]:
    """Return the active missions; the one for all agents comes first."""
    return sorted(engine.snapshot().active("north_star"), key=lambda item: (item.agent, item.created_seq))


def set_mission(engine: Engine, text: str, agent: str = EVERYBODY) -> MemoryItem:
    """Set the mission of a role, or of every agent; an existing one gets the new text.

    Raises:
        UsageError: The text is empty or too long.
    """
    text, agent = one_line(text), one_line(agent)
    if not text:
        raise UsageError('A mission needs text: `agentx agent mission set --agent writer "…"`.')
    with engine.write_path.exclusive():
        actor = engine.settings.actor
        of_it = [item for item in listed(engine) if item.agent == agent]
        if of_it:
            return editing.edit(engine, of_it[-1].id, text, actor)
        return editing.write_down(engine, "north_star", text, NoteDetail(), actor, agent=agent)
