"""``agentx init`` and ``agentx add``: create a workspace, and add files to it."""

from pathlib import Path
from typing import Annotated

import typer

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts
from agentx.storage.text import one_line, plain
from agentx.workspace import Workspace

SHOWN = 10
"""Maximum number of files, or of reasons for files left out, to list."""


def init(
    terminal: Terminal,
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", show_default=False, help="An empty or new directory.")
    ] = Path(),
    title: Annotated[str, typer.Option(help="Title of the task; the directory's name by default.")] = "",
    from_dir: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Copy an existing project, except files that its .gitignore excludes.",
        ),
    ] = None,
    artifacts: Annotated[
        str,
        typer.Option(
            help="'..' puts the workspace beside an existing project, whose own repository is never written."
        ),
    ] = "artifacts",
) -> None:
    """Create a workspace: a directory that is a Git repository, with artifacts/ and history.jsonl."""
    root = terminal.directory / directory
    with terminal.busy("Making the workspace"):
        ws = Workspace.create(
            root, title=one_line(title), from_dir=from_dir, artifacts=artifacts, settings=terminal.settings
        )
    with ws:
        files, left_out = len(ws.engine.git.manifest()), list(ws.engine.write_path.notes)
        made = ws.state.title
    if terminal.json:
        terminal.document({"root": str(ws.root), "title": made, "files": files, "left_out": left_out})
        return
    count = f"{counted(files, 'file') if files else 'empty,'} in {ws.artifacts}"
    terminal.show(facts([(made, str(ws.root)), ("artifacts", count)]))
    _left_out(terminal, left_out)
    where = "" if root.absolute() == Path.cwd() else f" -C {root}"
    terminal.show(plain(f'Next: agentx{where} run "what to do"'))


def add(
    terminal: Terminal,
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", show_default=False, help="Files and directories.")
    ],
    to: Annotated[str, typer.Option(metavar="DIR", help="Directory in the artifacts to copy them to.")] = "",
) -> None:
    """Copy files and directories into the artifacts, in one recorded change."""
    with opened(terminal) as ws, terminal.busy("Adding"):
        changes, left_out = ws.add(paths, to)
    if terminal.json:
        terminal.document({"added": changes, "left_out": left_out})
        return
    for change in changes[:SHOWN]:
        terminal.show(
            plain(f"{'changed' if change.before else 'added'}  {change.path}  {change.size_bytes:,} bytes")
        )
    if len(changes) > SHOWN:
        terminal.show(f"and {len(changes) - SHOWN} more")
    if not changes:
        terminal.show("Nothing changed: all files are already there.")
    _left_out(terminal, left_out)


def _left_out(terminal: Terminal, reasons: list[str]) -> None:
    for reason in reasons[:SHOWN]:
        terminal.note(f"Left out: {reason}")
    if len(reasons) > SHOWN:
        terminal.note(f"Left out: {len(reasons) - SHOWN} more.")
