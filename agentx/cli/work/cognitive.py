"""``agentx run --agent cognitive``: answer from a buffer of memories, and report what was used."""

from rich.text import Text

from agentx.agents.run_types import RunResult
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal
from agentx.cognition.agent import ROLE, SESSION
from agentx.cognition.cognitive_run import run_cognitive
from agentx.engine import models
from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.workspace import Workspace

COGNITIVE = ROLE
"""As a value of ``--agent``, this name selects another way to answer, not a role of the agent loop."""


def think(terminal: Terminal, message: str, name: str) -> RunResult:
    """Answer a message from memory; without a named model, by code alone.

    Raises:
        UsageError: The message is empty.
        ModelError: The named model cannot be used.
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
    """Summarise the interaction in one line."""
    mind = ws.state.minds[SESSION]
    used, held = len(mind.recent[-1].used), len(mind.buffer)
    return (
        f"interaction {mind.interactions} · {used} of {held} memories at hand were used · "
        f"{mind.evicted} faded away so far"
    )
