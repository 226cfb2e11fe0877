"""``agentx pipeline``: its subcommands, and those that draw a pipeline, print its schema or create one."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.pipeline.matrix import planned
from agentx.cli.pipeline.run import started_plan
from agentx.cli.terminal import Terminal
from agentx.pipelines.board import board_of
from agentx.pipelines.drawing.picture import picture
from agentx.pipelines.tracked import pipelines
from agentx.storage.errors import UsageError
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.schema import schema

# --- graph --------------------------------------------------------------------------------------------------


def draw(
    terminal: Terminal,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            show_default=False,
            help="The pipeline, a YAML file; by default the latest one, with its progress.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", show_default=False, help="File to write; by default it is printed."),
    ] = None,
) -> None:
    """Draw the stages as an SVG: dependencies, loops, items, and the progress of a started pipeline."""
    svg = picture(planned(file)) if file is not None else _started_picture(terminal)
    if to is not None:
        _write(to, svg)
    if terminal.json:
        terminal.document({"svg": svg} if to is None else {"to": str(to)})
    elif to is None:
        terminal.show(svg.rstrip("\n"))
    else:
        terminal.show(Text.assemble(("✓ ", "green"), str(to)))


def _started_picture(terminal: Terminal) -> str:
    with opened(terminal) as ws:
        plan = started_plan(ws)
        return picture(plan, board_of(plan, pipelines(ws.engine).of(plan.pipeline.pipeline)))


def _write(path: Path, text: str, *, new: bool = False) -> None:
    try:
        with path.open("x" if new else "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path} already exists; choose another name.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


# --- schema and new -----------------------------------------------------------------------------------------


def show_schema(terminal: Terminal) -> None:
    """Print the JSON schema of pipeline files, for editors that complete and check YAML."""
    terminal.document(schema())


def write_new(
    terminal: Terminal,
    name: Annotated[
        Path, typer.Argument(metavar="NAME", show_default=False, help="Its name; the file is NAME.yaml.")
    ],
) -> None:
    """Create a small example pipeline: a researcher, a writer, and a review loop."""
    path = name if name.suffix in (".yaml", ".yml") else name.with_name(f"{name.name}.yaml")
    text = (files("agentx.pipelines") / "starter.yaml").read_text("utf-8").replace("NAME", path.stem, 1)
    parse(text, str(path))  # refuses a name that is invalid for a pipeline
    _write(path, text, new=True)
    if terminal.json:
        terminal.document({"pipeline": str(path)})
    else:
        said = f"Next: agentx pipeline plan {shlex.quote(str(path))}"
        terminal.show(Text.assemble(("✓ ", "green"), str(path)), Text(said, "dim"))
