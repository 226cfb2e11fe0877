"""``agentx schedule heartbeat``: resume an interrupted run, if any."""

from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal
from agentx.cli.work.run import EXIT
from agentx.engine import models
from agentx.scheduling.resume_check import Beat, Pulse, beat
from agentx.storage.text import plain

_COLOURS: dict[Pulse, str] = {
    "HEARTBEAT_OK": "green",
    "CONTINUED": "cyan",
    "BUSY": "cyan",
    "WAITING": "yellow",
    "STOPPED": "yellow",
}


def heartbeat(
    terminal: Terminal,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="PROVIDER/NAME, as litellm writes it, or script:FILE.")
    ] = "",
) -> None:
    """Resume an interrupted run, if any; otherwise print HEARTBEAT_OK without asking a model.

    Exit 1 if the user must act; after a resumed run, as `agentx run`.
    """
    with opened(terminal) as ws, terminal.busy("A pulse …"):
        found = beat(ws, lambda: models.model(ws.engine, model))
    _show(terminal, found)
    if status := _exit(found):
        raise typer.Exit(status)


def _show(terminal: Terminal, found: Beat) -> None:
    if terminal.json:
        terminal.document(found)
        return
    terminal.show(Text.assemble((found.status, _COLOURS[found.status]), f"  {plain(found.said)}"))
    if found.result and (told := found.result.answer or found.result.reason):
        terminal.show(Text(plain(told)))


def _exit(found: Beat) -> int:
    if found.result is not None:
        return EXIT[found.result.status]
    return int(found.status in ("WAITING", "STOPPED"))
