"""Missions by hand: one for each role, and one for everybody; a new one takes the place of the old."""

from agentx.engine.engine import Engine
from agentx.memory import editing
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import MemoryItem, NoteDetail

EVERYBODY = ""


def listed(engine: Engine) -> list[MemoryItem]:
    """The missions that stand, that of everybody first."""
    return sorted(engine.snapshot().active("north_star"), key=lambda item: (item.agent, item.created_seq))


def set_mission(engine: Engine, text: str, agent: str = EVERYBODY) -> MemoryItem:
    """Give a role its mission; where it has one by this way already, that says this from now on.

    Args:
        engine: The workspace.
        text: What it is there for, as a sentence.
        agent: The role; empty for every agent of the workspace.

    Raises:
        UsageError: There is no text, or it is too long.
    """
    text, agent = one_line(text), one_line(agent)
    if not text:
        raise UsageError('A mission needs words: `agentx mission set --agent writer "…"`.')
    with engine.write_path.exclusive():
        actor = engine.settings.actor
        of_it = [item for item in listed(engine) if item.agent == agent]
        if of_it:
            return editing.edit(engine, of_it[-1].id, text, actor)
        return editing.write_down(engine, "north_star", text, NoteDetail(), actor, agent=agent)
