"""``agentx import rules``: propose what AGENTS.md, CLAUDE.md and the like say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.beside.proposals import proposed_table, review_together
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted
from agentx.rule_files.importing import ImportedFile
from agentx.storage.text import one_line


def import_rules(
    terminal: Terminal,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            show_default=False,
            help="AGENTS.md, CLAUDE.md, GEMINI.md, .cursor/rules, copilot-instructions.md, or any "
            "Markdown; those of the project by default.",
        ),
    ] = None,
) -> None:
    """Read files of rules for other agents as proposals, which you accept in one review.

    A file is material: nothing in it applies until you accept it. A second import proposes only what changed.
    """
    base = terminal.caller.directory if terminal.caller else Path.cwd()
    with opened(terminal) as ws:
        done = ws.import_rules(*(base / file for file in files or ()))
        proposals = list(done.proposals)
        if terminal.json:
            terminal.document(done)
            return
        for file in done.files:
            terminal.show(*_told(file))
        if not proposals:
            terminal.show("Nothing new to propose.")
        elif terminal.interactive:
            terminal.show("")
            review_together(terminal, ws, proposals)
        else:
            terminal.show("", proposed_table(proposals))
            first = proposals[0].id
            terminal.note(
                f"{counted(len(proposals), 'proposal')}; none applies yet. Accept: `agentx memory review`, "
                f"with `--accept {first}`, or all of a file: `--accept {done.files[0].path}`."
            )


def _told(file: ImportedFile) -> Iterator[Text]:
    if file.refused:
        yield Text.assemble(
            (one_line(file.path), "bold"), (f"  not read: {one_line(file.refused)}", "yellow")
        )
        return
    size = f"  {counted(file.statements, 'rule')}; {counted(file.left, 'description')} left"
    yield Text.assemble((one_line(file.path), "bold"), size)
    for place in file.hidden:
        yield Text(f"  line {place.line}: {place.what}, left out", "yellow")
    if file.names:
        yield Text(
            one_line(f"  names {', '.join(file.names)}: not read; import such a file by its name"), "dim"
        )
