"""North stars: the permanent mission of one agent, or of all agents."""

import msgspec

from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.state.state import State


def missions(state: State, agent: str) -> list[MemoryItem]:
    """Return the missions of a role, its own and those that apply to all agents, oldest first."""
    return [item for item in state.active("north_star") if item.agent in ("", agent)]


def seen_by(state: State, agent: str) -> State:
    """Return the state without the missions of other roles."""
    own = {item.id for item in missions(state, agent)}
    items = {name: item for name, item in state.items.items() if item.kind != "north_star" or name in own}
    return msgspec.structs.replace(state, items=items)
