"""``agentx verify`` and ``repair``: check integrity, and restore what is damaged."""

from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.terminal import Terminal, counted, table
from agentx.core.findings import Finding
from agentx.core.layout import find_root
from agentx.integrity.repair import repair as repair_workspace
from agentx.integrity.verify import Verified
from agentx.integrity.verify import verify as verify_workspace
from agentx.storage.events.types import Lost
from agentx.storage.text import one_line


def verify(
    terminal: Terminal,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="COMMIT", show_default=False, help="Only what came after this commit."
        ),
    ] = "",
) -> None:
    """Check the integrity of log, commits, artifacts, state, index and Git objects; read-only.

    Exit 1, with one line per finding, if something is damaged.
    """
    root = find_root(terminal.folder)
    with terminal.progress() as progress:
        found = verify_workspace(root, since=since, progress=progress)
    if terminal.json:
        terminal.document({"sound": found.sound, "verified": found})
    else:
        _show(terminal, found)
    if not found.sound:
        raise typer.Exit(1)


def repair(
    terminal: Terminal,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Continue without events that exist nowhere; each is marked as lost."
        ),
    ] = False,
) -> None:
    """Restore damaged or missing data from another copy of the same content; nothing is discarded.

    Replaced files are kept in .agentx/repaired. Exit 1 if something cannot be restored.
    """
    root = find_root(terminal.folder)
    with terminal.progress() as progress:
        done = repair_workspace(root, dry_run=dry_run, accept_loss=accept_loss, progress=progress)
    if terminal.json:
        terminal.document({"dry_run": dry_run, "repaired": done})
    else:
        for mended in done.mended:
            terminal.show(Text.assemble(("✓ ", "green"), one_line(f"{mended.what} {mended.how}")))
        for finding in done.left:
            _show_finding(terminal, finding)
        if done.aside:
            terminal.show(Text(f"Damaged data was moved to {done.aside}.", "dim"))
        if not done.mended and not done.left:
            terminal.show("Nothing to repair.")
    if done.left:
        raise typer.Exit(1)


def _show(terminal: Terminal, found: Verified) -> None:
    for finding in found.findings:
        _show_finding(terminal, finding)
    for purge in found.purged:
        what = "is lost, as accepted" if purge.type == Lost.__name__ else f"({purge.type}) was purged"
        terminal.show(f"· event {purge.seq} {what}; the chain is intact")
    for note in found.notes:
        terminal.note(note)
    rows = [
        (
            Text("✗", "red") if check.findings else Text("✓", "green"),
            check.name,
            f"{check.duration_ms / 1_000:.1f} s",
            check.what,
        )
        for check in found.checks
    ]
    terminal.show(table("", "check", "time>", "what", rows=rows))
    if found.findings:
        terminal.show(Text(f"\n{counted(len(found.findings), 'finding')}.", "bold red"))
    else:
        terminal.show(Text(f"\nNo damage found, up to event {found.seq:,}.", "bold green"))


def _show_finding(terminal: Terminal, finding: Finding) -> None:
    what = one_line(f"{finding.where} {finding.what}.")
    terminal.show(Text.assemble(("✗ ", "red"), what, (f" → {finding.todo}", "yellow")))
