"""``agentx purge``: remove content with every local copy of it, once the user has agreed to the list."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, table
from agentx.integrity.purge.copies import PurgeRefused
from agentx.integrity.purge.purge import PurgePlan
from agentx.storage.text import encodable, one_line

SHOWN = 40
"""Maximum number of rows of one kind; for more, only their number is shown."""


def purge(
    terminal: Terminal,
    event: Annotated[
        list[int],
        typer.Option("--event", metavar="SEQ", show_default=False, help="Event to purge (repeatable)."),
    ],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", show_default=False, help="The reason; it is recorded.")
    ] = "",
    backup: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="First copy the workspace there, with the purged data in it.",
        ),
    ] = None,
    *,
    also: Annotated[bool, typer.Option("--also", help="Also purge events with the same content.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a secret or personal data for good, with every copy in this workspace.

    This is the only command that rewrites history: commits get new IDs. It cannot be undone.
    """
    with opened(terminal) as ws:
        with terminal.busy("Looking for every copy"):
            plan = ws.plan_purge(*event, also=also)
        if not terminal.json:
            _show(terminal, plan)
        if dry_run:
            if terminal.json:
                terminal.document({"dry_run": True, "plan": plan})
            return
        refusal = PurgeRefused(
            "Confirmation needs a terminal. Preview with --dry-run, and agree with --yes; nothing was purged."
        )
        if not yes and not terminal.confirms("Type purge to go on: ", "purge", refusal):
            terminal.note("Nothing was purged.")
            raise typer.Exit(1)
        with terminal.progress() as progress:
            done = ws.purge(
                *event, also=also, reason=encodable(reason), backup=backup, agreed=plan, progress=progress
            )
    rows = [
        ("purged", f"{counted(len(done.plan.events), 'event')}; event {done.seq} records it"),
        ("commit", done.commit),
        *([("backup", f"{done.backup}, complete")] if done.backup else []),
    ]
    terminal.result({"dry_run": False, "purged": done}, "", facts(rows), "Next: agentx verify")


def _show(terminal: Terminal, plan: PurgePlan) -> None:
    rows = [(Text(str(one.seq)), one.type, one_line(one.told)) for one in plan.events[:SHOWN]]
    terminal.show(table("event>", "type", "what would be deleted", rows=rows))
    _more(terminal, len(plan.events))
    details = [
        ("memory", ", ".join(plan.items) and f"forget {', '.join(plan.items)}"),
        ("contents", plan.contents and f"drop {plan.contents} long texts or files of earlier commits"),
        (
            "history",
            plan.commits and f"rewrite {counted(plan.commits, 'commit')}, from {plan.first_commit[:12]} on",
        ),
        ("remotes", plan.remotes and f"forget {', '.join(plan.remotes)}"),
        ("refs", plan.refs and f"remove {', '.join(plan.refs)}"),
        ("caches", "delete all of .agentx; it is rebuilt"),
    ]
    terminal.show("", facts([(name, str(what)) for name, what in details if what]), "")
    terminal.show(Text("This rewrites history and cannot be undone.", "bold red"))
    for sentence in _warnings(plan):
        terminal.note(sentence)
    if plan.also:
        rows = [(Text(str(one.seq)), one.type, one_line(one.quote)) for one in plan.also[:SHOWN]]
        terminal.show(
            "", table("event>", "type", "has the same content and would stay; --also includes it", rows=rows)
        )
        _more(terminal, len(plan.also))


def _more(terminal: Terminal, count: int) -> None:
    if count > SHOWN:
        terminal.show(f"and {count - SHOWN:,} more")


def _warnings(plan: PurgePlan) -> Iterator[str]:
    yield (
        "Clones, forks, backups, remotes, and models that were sent it still have it; "
        "this command cannot reach them."
    )
    if plan.remotes:
        yield (
            f"{', '.join(plan.remotes)} still has it. Delete the branch there, and what a fleet keeps below "
            "refs/agentx/; then run `agentx push --url URL`. Any push, pull or fetch before that brings "
            "everything back."
        )
    if plan.files:
        yield f"Check that it is not in the current content of {', '.join(plan.files[:SHOWN])}."
    if plan.conclusions:
        yield (
            f"Event {', '.join(map(str, plan.conclusions))} also recorded items that are not based on it. "
            "Check `agentx memory list` afterwards; `agentx rebuild --resynthesize` derives them again."
        )
    if plan.purged:
        yield f"Purged already: event {', '.join(map(str, plan.purged))}."
