"""A workspace engine for AI agents: durable work, and a memory that can be trusted.

Every task is a directory that is a Git repository. ``artifacts/`` holds what the agents made, an append-only
``history.jsonl`` holds everything that happened, and memory is computed from that history.

Public names load when they are first used, so that ``import agentx`` costs next to nothing.
"""

TYPE_CHECKING = False  # the command line starts without loading `typing`
if TYPE_CHECKING:
    from typing import Any

    from agentx.context.assembler import Context
    from agentx.storage.errors import AgentXError
    from agentx.storage.events.types import Event
    from agentx.synthesis.memory.items import MemoryItem
    from agentx.tools.acts import act
    from agentx.workspace import Workspace

__version__ = "0.1.0"

__all__ = ["AgentXError", "Context", "Event", "MemoryItem", "Workspace", "__version__", "act"]

_HOMES = {
    "AgentXError": "agentx.storage.errors",
    "Context": "agentx.context.assembler",
    "Event": "agentx.storage.events.types",
    "MemoryItem": "agentx.synthesis.memory.items",
    "Workspace": "agentx.workspace",
    "act": "agentx.tools.acts",
}


def __getattr__(name: str) -> "Any":
    """Load a public name from its home when it is first asked for (PEP 562)."""
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'agentx' has no attribute {name!r}") from None
    return getattr(__import__(home, fromlist=[name]), name)
