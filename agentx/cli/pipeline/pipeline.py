"""``agentx pipeline``: its subcommands, and those that draw, create, amend and repeat one."""

import shlex
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import as_json, opened
from agentx.cli.pipeline.plan import planned
from agentx.cli.pipeline.upkeep import PresentFile, mark_stale
from agentx.cli.terminal import Terminal
from agentx.pipelines.board import board_of
from agentx.pipelines.drawing.picture import picture
from agentx.pipelines.new_pipeline import REVIEWER, NewPipeline, new_pipeline
from agentx.pipelines.runner import redo
from agentx.pipelines.tracked import pipelines
from agentx.pipelines.upkeep.started import started_plan
from agentx.policy.amendments import amend
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import FileAmended
from agentx.storage.text import encodable, plain
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.schema import schema
from agentx.synthesis.pipelines.definition.steps import resolve

STEPS_SHOWN = 6
"""Maximum number of steps named."""

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
    if file is not None:
        svg = picture(planned(file))
    else:
        with opened(terminal) as ws:
            plan = started_plan(ws.engine)
            svg = picture(plan, board_of(plan, pipelines(ws.engine).of(plan.pipeline.pipeline)))
    if to is None:
        terminal.result({"svg": svg}, svg.rstrip("\n"))
    else:
        _write(to, svg)
        terminal.result({"to": str(to)}, Text.assemble(("✓ ", "green"), str(to)))


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
    items: Annotated[
        str,
        typer.Option(metavar="ITEMS", help="What to repeat the work for: 'inbox/*.md', a number, or a,b,c."),
    ] = "",
    items_from: Annotated[
        str, typer.Option(metavar="FILE", help="Name of a file that an agent writes, and that lists them.")
    ] = "",
    roles: Annotated[
        str, typer.Option(metavar="ROLES", help="Roles, each working on the file of the one before.")
    ] = "",
    *,
    review: Annotated[bool, typer.Option("--review", help="A reviewer judges the last file.")] = False,
    approval: Annotated[bool, typer.Option("--approval", help="A person approves.")] = False,
) -> None:
    """Create a pipeline from these options; without them, it asks, or writes a commented example."""
    path = name if name.suffix in (".yaml", ".yml") else name.with_name(f"{name.name}.yaml")
    asked = items or items_from or roles or review or approval
    wanted = _wanted(items, items_from, roles, review=review, approval=approval)
    if not asked and terminal.interactive:
        wanted = _ask()
    if asked or wanted.items or wanted.items_from:
        text = new_pipeline(path.stem, wanted)
    else:
        text = (files("agentx.pipelines") / "starter.yaml").read_text("utf-8").replace("NAME", path.stem, 1)
    resolve(*parse(text, str(path)))  # refuses what makes no pipeline, such as an invalid name
    _write(path, text, new=True)
    following = Text(f"Next: agentx pipeline plan {shlex.quote(str(path))}", "dim")
    terminal.result({"pipeline": str(path)}, Text.assemble(("✓ ", "green"), str(path)), following)


def _wanted(items: str, items_from: str, roles: str, *, review: bool, approval: bool) -> NewPipeline:
    names = tuple(word.strip() for word in roles.split(",") if word.strip()) or NewPipeline().roles
    return NewPipeline(items, items_from, names, review or REVIEWER in names, approval)


def _ask() -> NewPipeline:
    """Ask what the pipeline is to be; an empty answer to the first question means the example."""
    say = partial(typer.prompt, err=True, default="", show_default=False)
    given = say("Items: a pattern ('inbox/*.md'), a number, ids (a,b,c), or from:FILE (Enter: an example)")
    if not given.strip():
        return NewPipeline()
    listed = given.removeprefix("from:").strip() if given.startswith("from:") else ""
    roles = say("Roles, in order (writer)")
    review = typer.confirm("Does a reviewer judge the work?", default=True, err=True)
    approval = typer.confirm("Does a person approve?", default=False, err=True)
    return _wanted("" if listed else given.strip(), listed, roles, review=review, approval=approval)


# --- amend and redo ---------------------------------------------------------------------------------------


def amend_file(
    terminal: Terminal,
    path: Annotated[
        str, typer.Argument(metavar="PATH", show_default=False, help="The file, relative to the artifacts.")
    ],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", show_default=False, help="The reason; it is recorded.")
    ],
    *,
    as_is: Annotated[
        bool,
        typer.Option(
            "--as-is", help="Also accept that an append-only file lacks the latest entries of the pipeline."
        ),
    ] = False,
) -> None:
    """Accept your change to a static or append-only file; the amendment is recorded."""
    with opened(terminal, look=True) as ws:
        event = amend(
            ws.engine, encodable(path), encodable(reason), actor=terminal.settings.actor, as_is=as_is
        )
    accepted = Text.assemble(("✓ ", "green"), plain(path), " is to be as it is now.")
    terminal.result({"event": as_json(event)}, accepted)
    if isinstance(event.data, FileAmended) and event.data.kept:
        terminal.note(plain(event.data.kept))


def redo_stage(
    terminal: Terminal,
    stage: Annotated[
        str, typer.Argument(metavar="[STAGE]", show_default=False, help="ID of the stage.")
    ] = "",
    item: Annotated[
        str, typer.Argument(metavar="[ITEM]", help="Key of the item; all items by default.")
    ] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason; it is recorded.")] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="The pipeline; by default the latest one.")] = "",
    *,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Only what is out of date, and only as far as contents have changed."),
    ] = False,
    file: PresentFile = None,
) -> None:
    """Mark a stage, and all that depends on it, to be done again in the next run."""
    if stale:
        mark_stale(terminal, stage, item, encodable(reason), name, file)
        return
    if not stage:
        raise UsageError("Name a STAGE, or use `--stale` for all that is out of date.")
    with opened(terminal) as ws:
        steps = redo(ws.engine, started_plan(ws.engine, name), stage, item, encodable(reason))
    keys = [step.key for step in steps]
    more = f" and {len(keys) - STEPS_SHOWN} more" if len(keys) > STEPS_SHOWN else ""
    steps_named = ", ".join(keys[:STEPS_SHOWN]) + more
    advice = " and what depends on it. Continue with `agentx pipeline run FILE`."
    terminal.result({"again": keys}, Text.assemble(("↻ ", "yellow"), steps_named, advice))
