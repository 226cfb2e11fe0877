"""``agentx pipeline amend`` and ``redo``: accept a changed file, and repeat a stage."""

from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import as_json, opened
from agentx.cli.pipeline.run import started_plan
from agentx.cli.terminal import Terminal
from agentx.pipelines.runner import redo
from agentx.policy.amendments import amend
from agentx.storage.text import encodable, plain


def amend_file(
    terminal: Terminal,
    path: Annotated[
        str, typer.Argument(metavar="PATH", show_default=False, help="The file, relative to the artifacts.")
    ],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", show_default=False, help="The reason; it is recorded.")
    ],
) -> None:
    """Accept your change to a static or append-only file; the amendment is recorded."""
    with opened(terminal, look=True) as ws:
        event = amend(ws.engine, encodable(path), encodable(reason), actor=terminal.settings.actor)
    if terminal.json:
        terminal.document({"event": as_json(event)})
    else:
        terminal.show(Text.assemble(("✓ ", "green"), plain(path), " is to be as it is now."))


def redo_stage(
    terminal: Terminal,
    stage: Annotated[str, typer.Argument(metavar="STAGE", show_default=False, help="ID of the stage.")],
    item: Annotated[
        str, typer.Argument(metavar="[ITEM]", help="Key of the item; all items by default.")
    ] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason; it is recorded.")] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="The pipeline; by default the latest one.")] = "",
) -> None:
    """Mark a stage, and all that depends on it, to be done again in the next run."""
    with opened(terminal) as ws:
        steps = redo(ws.engine, started_plan(ws, name), stage, item, encodable(reason))
    keys = [step.key for step in steps]
    if terminal.json:
        terminal.document({"again": keys})
    else:
        told = ", ".join(keys[:_TOLD]) + (f" and {len(keys) - _TOLD} more" if len(keys) > _TOLD else "")
        terminal.show(
            Text.assemble(
                ("↻ ", "yellow"), told, " and what depends on it. Continue with `agentx pipeline run FILE`."
            )
        )


_TOLD = 6
"""Maximum number of steps named."""
