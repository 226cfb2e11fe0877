"""``agentx pipeline matrix``: which role reads and writes which file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agentx.cli.terminal import Terminal, table
from agentx.pipelines.matrix import Access, Matrix, RoleRow, matrix_of
from agentx.storage.text import plain
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.definition.reading import read
from agentx.synthesis.pipelines.definition.steps import resolve

_CELLS: dict[Access, tuple[str, str, str]] = {
    "reads": ("r", "cyan", "reads"),
    "writes": ("w", "bold green", "writes"),
    "appends": ("a", "bold yellow", "is appended to when done"),
    "does_not_read": ("×", "red", "does not read"),
}
"""Letter, colour and wording of each kind of access in the matrix."""

_NOTHING = Text("·", "bright_black")
_PATH_COLUMNS = 24
"""Minimum width of paths beside the matrix."""

File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The pipeline, a YAML file.")]


def planned(path: Path) -> Plan:
    """Read and resolve a pipeline's file.

    Raises:
        PipelineInvalid: The file is not a valid pipeline; the error lists all faults by line.
    """
    return resolve(*read(path))


def show_matrix(terminal: Terminal, file: File) -> None:
    """Show which role reads and writes which file."""
    matrix = matrix_of(planned(file).pipeline)
    heading = Text.assemble((plain(matrix.title or matrix.pipeline), "bold"), "\n")
    for letter, style, words in _CELLS.values():
        heading.append(letter, style).append(f" {words}   ", "dim")
    heading.rstrip()
    terminal.result(matrix, heading, Text(), *_grids(matrix, terminal.out.width), Text(), by_role(matrix))


def _grids(matrix: Matrix, width: int) -> list[RenderableType]:
    """Return the matrix, files by roles; in parts if not all roles fit."""
    names = max(len(row.file) for row in matrix.files) + 3
    wide = [max(2, *map(len, role.files.values())) + 1 for role in matrix.roles]
    count = -(-sum(wide) // max(width - names, 1))  # parts
    most = -(-len(wide) // min(count, len(wide)))
    grids: list[RenderableType] = []
    for at in range(0, len(wide), most):
        with_path = width - names - sum(wide[at : at + most]) >= _PATH_COLUMNS
        roles = list(enumerate(matrix.roles, start=1))[at : at + most]
        grids += [Text(), _grid(matrix, roles, with_path=with_path and count == 1)]
    return grids[1:]


def _grid(matrix: Matrix, roles: list[tuple[int, RoleRow]], *, with_path: bool) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    made.add_column("file", no_wrap=True)
    for number, _ in roles:
        made.add_column(str(number), justify="center", min_width=2, no_wrap=True)
    if with_path:
        made.add_column("path", style="dim", overflow="ellipsis", no_wrap=True)
    sort = ""
    for file in matrix.files:
        if file.sort != sort:
            made.add_row(Text(file.sort, "magenta"))
            sort = file.sort
        found = [role.files.get(file.file, ()) for _, role in roles]
        cells = [Text.assemble(*(_CELLS[one][:2] for one in access)) or _NOTHING for access in found]
        made.add_row(Text(f"  {plain(file.file)}"), *cells, *([Text(plain(file.path))] if with_path else []))
    return made


def by_role(matrix: Matrix) -> Table:
    """Return a table of the roles with the files that each reads and writes."""
    rows = []
    for number, role in enumerate(matrix.roles, start=1):
        writes = [*role.named("writes"), *(f"{file} (added to)" for file in role.named("appends"))]
        who = Text.assemble(plain(role.title), (f"\n{plain(role.played_by)}", "dim"))
        rows.append((str(number), who, ", ".join(role.named("reads")), ", ".join(writes)))
    made = table("#>", "role", "reads", "writes", rows=rows)
    for column in made.columns[2:]:
        column.no_wrap, column.overflow, column.ratio = False, "fold", 1
    return made
