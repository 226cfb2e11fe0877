"""``agentx recap``: what was learned, in one screen."""

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal


def recap(terminal: Terminal) -> None:
    """Show in one screen what was learned."""
    with opened(terminal) as ws:
        terminal.result([], str(ws.root))
