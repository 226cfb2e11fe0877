"""``agentx fork``: a workspace of its own from another's history."""

from pathlib import Path
from typing import Annotated

import typer

from agentx.cli.opened import opened
from agentx.cli.plain import plain
from agentx.cli.terminal import Terminal, facts
from agentx.storage.events import WorkspaceForked


def fork(
    ctx: typer.Context,
    new: Annotated[
        Path, typer.Argument(metavar="NEW", show_default=False, help="A directory that is empty or new.")
    ],
    at: Annotated[
        str | None,
        typer.Option(
            metavar="MOMENT",
            show_default=False,
            help="The last moment to take: an event's number, a time or a commit; now by default.",
        ),
    ] = None,
) -> None:
    """Make a new workspace with the history up to a moment; it shares nothing with this one."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws, terminal.busy("Copying"), ws.fork(new, at) as made:
        state, files = made.state, len(made.engine.write_path.manifest())
        *_, mark = (event.data for event in made.events() if isinstance(event.data, WorkspaceForked))
    if terminal.json:
        terminal.document({"root": str(made.root), "at": mark.at, "hash": mark.hash, "files": files})
        return
    rows = [
        (state.title, str(made.root)),
        ("history", f"{mark.at} events, then its own"),
        ("artifacts", f"{files} file{'s' * (files != 1)}"),
    ]
    terminal.show(facts(rows))
    terminal.show(plain(f'Next: agentx -C {new} run "what to do"'))


COMMANDS = {"fork": fork}
