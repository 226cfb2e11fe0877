"""``agentx purge``: remove content with every local copy of it, once the user has agreed to the list."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, facts, table
from agentx.integrity.purge.copies import PurgeRefused
from agentx.integrity.purge.purge import PurgePlan, PurgeReport
from agentx.storage.text import encodable, one_line

SHOWN = 40
"""Maximum number of rows of one kind; for more, only their number is shown."""

WORD = "purge"
"""What the user types to agree."""

_EVERYWHERE = (
    "Clones, forks, backups, remotes, and models that were sent it still have it; "
    "this command cannot reach them."
)


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
        if not yes and not _agrees(terminal):
            terminal.note("Nothing was purged.")
            raise typer.Exit(1)
        with terminal.progress() as told:
            done = ws.purge(
                *event, also=also, reason=encodable(reason), backup=backup, agreed=plan, progress=told
            )
    _report(terminal, done)


def _agrees(terminal: Terminal) -> bool:
    if terminal.json or not terminal.interactive:
        raise PurgeRefused(
            "There is no terminal to ask for confirmation. Preview with --dry-run, "
            "and agree with --yes; nothing was purged."
        )
    terminal.err.print(Text(f"Type {WORD} to go on: ", "bold red"), end="")
    try:
        return input().strip() == WORD
    except EOFError:
        return False


def _show(terminal: Terminal, plan: PurgePlan) -> None:
    rows = [(Text(str(one.seq)), one.type, one_line(one.told)) for one in plan.events[:SHOWN]]
    terminal.show(table("event>", "type", "what would be deleted", rows=rows))
    _more(terminal, len(plan.events))
    details = [
        ("memory", ", ".join(plan.items) and f"forget {', '.join(plan.items)}"),
        ("contents", plan.contents and f"drop {plan.contents} long texts or files of earlier commits"),
        (
            "history",
            plan.commits
            and f"rewrite {plan.commits:,} commit{'s' * (plan.commits != 1)}, "
            f"from {plan.first_commit[:12]} on",
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


def _warnings(plan: PurgePlan) -> list[str]:
    found = [_EVERYWHERE]
    if plan.remotes:
        found.append(
            f"{', '.join(plan.remotes)} still has it. Delete the branch there, then run "
            "`agentx push --url URL`. Any push, pull or fetch before that brings everything back."
        )
    if plan.files:
        found.append(f"Check that it is not in the current content of {', '.join(plan.files[:SHOWN])}.")
    if plan.conclusions:
        names = ", ".join(map(str, plan.conclusions))
        found.append(
            f"Event {names} also recorded items that are not based on it. Check `agentx memory list` "
            "afterwards; `agentx rebuild --resynthesize` derives them again."
        )
    if plan.purged:
        found.append(f"Purged already: event {', '.join(map(str, plan.purged))}.")
    return found


def _report(terminal: Terminal, done: PurgeReport) -> None:
    if terminal.json:
        terminal.document({"dry_run": False, "purged": done})
        return
    count = len(done.plan.events)
    rows: list[tuple[str, str | Text]] = [
        ("purged", f"{count} event{'s' * (count != 1)}; event {done.seq} records it"),
        ("commit", done.commit),
    ]
    if done.backup:
        rows.append(("backup", f"{done.backup}, complete"))
    terminal.show("", facts(rows), "Next: agentx verify")
