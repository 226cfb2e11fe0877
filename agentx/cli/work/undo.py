"""``agentx undo``, ``restore`` and ``rebuild``: restore earlier contents, and recompute cached data."""

from itertools import takewhile
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import MOMENT, as_json, opened, scan_sources
from agentx.cli.terminal import Terminal, facts
from agentx.storage.events.types import Event, ToolCallExecuted, changes_of
from agentx.storage.text import encodable, one_line, plain
from agentx.workspace import Workspace

EMBED_S = 3_600.0
"""Maximum time that a rebuild spends on embedding; later searches embed the rest."""


def undo(terminal: Terminal) -> None:
    """Undo the latest change to the artifacts, as a new event; the history stays complete."""
    with opened(terminal) as ws:
        event = ws.undo()
        events = _parts(ws, event)
    _show(terminal, events)


def restore(
    terminal: Terminal,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", show_default=False, help="A file or directory of the artifacts; '.' for all."
        ),
    ],
    at: Annotated[str, typer.Option(metavar="MOMENT", show_default=False, help=f"The moment: {MOMENT}.")],
) -> None:
    """Restore a file or directory to an earlier moment, as a new event; moved files move back."""
    with opened(terminal) as ws:
        event = ws.restore(path, encodable(at))
        events = _parts(ws, event)
    _show(terminal, events)


def _parts(ws: Workspace, first: Event) -> list[Event]:
    """Return all events of one change: several if it did not fit into one."""
    name = first.data.call_id if isinstance(first.data, ToolCallExecuted) else ""
    later = ws.events(after=first.seq)
    rest = takewhile(lambda e: isinstance(e.data, ToolCallExecuted) and e.data.call_id == name, later)
    return [first, *rest]


def _show(terminal: Terminal, events: list[Event]) -> None:
    event = events[0]
    if terminal.json:
        terminal.document(as_json(event))
        return
    changes = [change for part in events for change in changes_of(part)]
    noted = event.data.noted if isinstance(event.data, ToolCallExecuted) else ""
    if not changes:
        terminal.show(plain(noted) or "Nothing changed: it is already so.")
        return
    terminal.show(Text.assemble((f"{event.seq}  ", "dim"), one_line(event.describe())))
    for change in changes:
        what = "brought back" if not change.before else "set back" if change.after else "removed"
        terminal.show(plain(f"  {what}  {change.path}"))
    if noted:
        terminal.note(plain(noted))


def rebuild(
    terminal: Terminal,
    *,
    resynthesize: Annotated[
        bool,
        typer.Option(
            "--resynthesize", help="Also run the current extractors again, and record new conclusions."
        ),
    ] = False,
) -> None:
    """Delete every cache and rebuild state and index from the history, without a model.

    The state digest never changes by this; `agentx status` shows it too.
    """
    with opened(terminal) as ws:
        with terminal.progress() as progress:
            concluded = ws.resynthesize() if resynthesize else []
            built = ws.rebuild(progress)
            ws.settle(EMBED_S, progress)
        scan_sources(terminal, ws)
        lexical = ws.engine.indexer.why_lexical
    same = built.state_digest == built.digest_before
    verdict = ("✓ the same as before", "green") if same else (f"✗ it was {built.digest_before}", "red")
    rows: list[tuple[str, str | Text]] = [
        ("history", f"{built.events:,} events"),
        ("index", f"{built.chunks:,} passages"),
    ]
    if resynthesize:
        news = [line for event in concluded if (line := one_line(event.describe()))]
        rows += [("concluded" if not n else "", line) for n, line in enumerate(news or ["nothing new"])]
    rows += [("damage", Text(f"{d.path}:{d.line} {plain(d.reason)}", "red")) for d in built.damage]
    rows += [("state digest", Text(built.state_digest, "dim")), ("", Text(*verdict))]
    document = {"rebuilt": built, "concluded": [as_json(event) for event in concluded]}
    terminal.result(document, facts(rows))
    if lexical and not terminal.json:
        terminal.note(lexical)
    if not same or built.damage:
        raise typer.Exit(1)
