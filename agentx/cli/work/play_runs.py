"""Directed runs of a sample: the clock starts them; the sample provides the executor and its tools.

The sample also provides the outside world that the tools act on.
"""

import sys
from pathlib import Path

import msgspec
from rich.text import Text

from agentx.cli.terminal import Terminal, table
from agentx.cli.work.samples import Directed, Sample, SampleInvalid, StoryStep, load_code
from agentx.directing.directed_runs import DirectedRun, run_directed
from agentx.directing.executors import Command
from agentx.storage.text import one_line
from agentx.workspace import Workspace

Row = dict[str, str | int]
"""A row of the table that ends a story: cells by their headings."""


def play_runs(terminal: Terminal, sample: Sample, step: StoryStep, root: Path) -> int:
    """Direct and carry out the runs of a step, until one does not complete.

    Returns:
        Exit status: 0 if all runs completed, otherwise 1.

    Raises:
        SampleInvalid: The tools cannot be imported, or there are none.
    """
    assert sample.directed is not None  # validated: a sample with such a step has it
    folder, world = Path(sample.folder).resolve(), _world(root)
    program = Command((sys.executable, "-I", str(folder / sample.directed.executor)), "jsonl")
    code = load_code(folder / sample.directed.tools, "tools")
    for _ in range(step.direct):
        with Workspace.open(root, settings=terminal.settings) as ws:
            number = ws.state.counts.get("RunStarted", 0) + 1
            made = run_directed(ws.engine, program, code.tools(world, number))
        assert made is not None  # None only for a due time that was already run
        _show_run(terminal, number, made)
        if made.outcome.status != "COMPLETED":
            return 1
    return 0


def compared(directed: Directed, folder: Path, ws: Workspace) -> list[Row]:
    """Return the rows of the table that ends the story; none if the sample has no such table.

    Raises:
        SampleInvalid: The code cannot be imported, or returns something else.
    """
    if not directed.compare:
        return []
    path = folder.resolve() / directed.compare
    try:
        return msgspec.convert(load_code(path, "compare").compare(ws, _world(ws.root)), list[Row])
    except msgspec.ValidationError as error:
        raise SampleInvalid(f"{path} has no rows: {error}.") from error


def show_rows(terminal: Terminal, rows: list[Row]) -> None:
    """Show the rows as a table; numbers are right-aligned."""
    headings = [name + ">" * isinstance(cell, int) for name, cell in rows[0].items()]
    cells = [[_cell(row.get(name, "")) for name in rows[0]] for row in rows]
    made = table(*headings, rows=cells, title="What it comes to")
    for column in made.columns:  # a truncated number would be wrong, so words wrap instead
        column.no_wrap = False
    terminal.show("", made)


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _world(root: Path) -> Path:
    """Return the directory that represents the world outside the workspace.

    It is deleted with the copy, and no agent sees it.
    """
    world = root / ".agentx" / "world"
    world.mkdir(parents=True, exist_ok=True)
    return world


def _show_run(terminal: Terminal, number: int, made: DirectedRun) -> None:
    if terminal.json:
        terminal.line({"type": "DirectedRun", "data": made})
        return
    outcome, good = made.outcome, made.outcome.status == "COMPLETED"
    if made.decision.direct:
        terminal.show(Text(f"        the director writes a prompt: {one_line(made.decision.why)}", "cyan"))
    terminal.show(
        Text.assemble(
            (f"run {number:3d}", "dim"),
            " ",
            one_line(outcome.summary)
            if good
            else (f"{outcome.status} {one_line(outcome.reason)}", "bold red"),
        )
    )
