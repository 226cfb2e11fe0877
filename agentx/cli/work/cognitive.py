"""``agentx run --agent cognitive``: an answer from a buffer of memories, and what it took."""

from rich.text import Text

from agentx.agents.port import RunResult
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal
from agentx.cognition.agent import ROLE, SESSION
from agentx.cognition.runs import run_cognitive
from agentx.engine import models
from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.workspace import Workspace

COGNITIVE = ROLE
"""``--agent`` of this name is no role of the loop, but another way to answer."""


def think(terminal: Terminal, message: str, name: str) -> RunResult:
    """Answer a message from memory; without a model that is named, by code alone.

    Raises:
        UsageError: There is no message.
        ModelError: The model that is named cannot be used.
    """
    if not message.strip():
        raise UsageError('A cognitive agent answers a message: `agentx run --agent cognitive "…"`.')
    with opened(terminal, look=True) as ws:
        named = name or ws.config.model.name or terminal.settings.model
        model = models.model(ws.engine, name) if named else None
        with terminal.busy("Thinking …"):
            result = run_cognitive(ws, message, model)
        if terminal.json:
            terminal.line({"type": "RunResult", "data": result})
            return result
        terminal.show(Text(plain(result.answer)), "", Text(_took(ws), "dim"))
        return result


def _took(ws: Workspace) -> str:
    """What the interaction did, in a line."""
    mind = ws.state.minds[SESSION]
    used, held = len(mind.recent[-1].used), len(mind.buffer)
    return f"interaction {mind.interactions} · {used} of {held} memories at hand were used · {mind.evicted} faded away so far"
