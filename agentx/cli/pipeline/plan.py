"""``agentx pipeline plan`` and ``matrix``: a dry run that shows file access, token budgets and costs."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.pipeline.upkeep import out_of_date
from agentx.cli.terminal import Terminal, facts, table
from agentx.config import Config
from agentx.core.layout import NotAWorkspace, find_root
from agentx.engine import models
from agentx.pipelines.costs import Outlook, Planned, outlook_of
from agentx.pipelines.found_items import find_items
from agentx.pipelines.matrix import Access, Matrix, RoleRow, all_stages, matrix_of
from agentx.pipelines.pointing.pointed_files import Files
from agentx.pipelines.tracked import pipelines
from agentx.pipelines.upkeep.out_of_date import StaleOverview, overview
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, plain
from agentx.synthesis.pipelines.definition.faults import Source, hint
from agentx.synthesis.pipelines.definition.pipeline import Bounds, Pipeline
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.definition.reading import read, with_variables
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.synthesis.pipelines.dispatching.estimates import Budget
from agentx.synthesis.pipelines.running.due_steps import Schedule

_NAME_COLUMNS, _BAR_COLUMNS = 24, 10
_WIDE = 80
"""A narrower terminal shows no bar beside a share."""

_NAMED = 6
_FULL = 0.8
"""A context window filled beyond this share is shown in yellow."""


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

Variables = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="NAME=VALUE", show_default=False, help="Value of a variable; repeatable."),
]


def variables_of(words: list[str] | None) -> dict[str, str]:
    """Return variables from ``NAME=VALUE`` words.

    Raises:
        UsageError: A word has no ``=``.
    """
    made = {}
    for word in words or ():
        name, equals, value = encodable(word).partition("=")
        if not equals:
            raise UsageError(f"`--var` takes NAME=VALUE, not {word!r}.")
        made[name.strip()] = value
    return made


File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The pipeline, a YAML file.")]


def show_plan(
    terminal: Terminal,
    file: File,
    step: Annotated[
        str,
        typer.Option(
            metavar="STEP", help="Only the budget of this dispatch, file by file: write[03], or outline."
        ),
    ] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Model of roles that name none, for the price.")
    ] = "",
    variables: Variables = None,
) -> None:
    """Dry run: show who reads and writes what, the tokens of each dispatch, and the cost.

    In a workspace, existing files are counted and finished steps left out; elsewhere all is estimated.
    """
    pipeline, source = read(file)
    pipeline = with_variables(pipeline, source, variables_of(variables))
    with (
        _looked_up(terminal, pipeline, source, file.resolve().parent) as known,
        terminal.busy("Counting …"),
    ):
        plan, done, found = known.plan, known.done, known.stale
        outlook = outlook_of(plan, known.files, model or known.model, done or (), made=done is not None)
    if step:
        _show_one(terminal, outlook, step)
    elif terminal.json:
        open_ = {name: one.items for name, one in plan.open.items()}
        parts = {"matrix": matrix_of(plan.pipeline), "outlook": outlook, "open": open_}
        terminal.document(parts | ({"stale": found} if found else {}))
    else:
        terminal.show(*_parts(plan, outlook, terminal.out.width))
        if found and (found.steps or found.left_over):
            terminal.show(*_headed("What is out of date", Group(*out_of_date(found))))
    if outlook.missing or any(one.budget.problem for one in outlook.planned if step in ("", one.key)):
        raise typer.Exit(1)


class _Known(msgspec.Struct):
    """What is known of a pipeline.

    Attributes:
        plan: With the items that are known.
        done: The proved steps; ``None`` without a workspace.
        model: The configured one.
        stale: What is out of date; ``None`` where nothing is proved.
    """

    plan: Plan
    files: Files
    done: set[str] | None
    model: str
    stale: StaleOverview | None = None


@contextlib.contextmanager
def _looked_up(terminal: Terminal, pipeline: Pipeline, source: Source, folder: Path) -> Iterator[_Known]:
    try:
        find_root(terminal.directory)
    except NotAWorkspace:
        with tempfile.TemporaryDirectory() as nothing:
            artifacts = Artifacts(Path(nothing), Config().limits.max_file_bytes)
            files = Files(artifacts, pipeline, folder)
            found = find_items(pipeline, files, (), made=False)
            yield _Known(resolve(pipeline, source, found.known), files, None, terminal.settings.model)
        return
    with opened(terminal, look=True) as ws:
        progress = pipelines(ws.engine).of(pipeline.pipeline)
        files = Files(ws.engine.artifacts, pipeline, folder, ws.engine.trust)
        plan = resolve(pipeline, source, find_items(pipeline, files, progress.proved).known)
        schedule = Schedule(plan, progress)
        done = {key for key in plan.steps if schedule.standing.get(key) == "done"}
        stale = overview(ws.engine, plan, files) if progress.proved else None
        yield _Known(plan, files, done, models.model_name(ws.engine), stale)


# --- all of it ----------------------------------------------------------------------------------------------


def _parts(plan: Plan, outlook: Outlook, width: int) -> Iterator[RenderableType]:
    items = [f"{len(found):,} × {name}" for name, found in plan.items.items()]
    proved = [f"{outlook.proved:,} proved already"] if outlook.proved else []
    steps = f"{outlook.steps:,} step{'s' * (outlook.steps != 1)}"
    yield Text(plain(plan.pipeline.title or plan.pipeline.pipeline), "bold")
    yield Text(" · ".join([*items, steps, *proved]), "dim")
    for missing, stages in _open_stages(plan):
        yield Text(f"{missing} is not known yet, so these stages are not in the plan: {stages}", "yellow")
    yield from _headed("Who reads and writes what", _by_role(matrix_of(plan.pipeline)))
    rows: list[tuple[str | Text, ...]] = []
    for one, count in _largest(outlook):
        budget = one.budget
        times = f"{count:,}" if one.rounds == 1 else f"{count:,}–{count * one.rounds:,}"
        own = [f"{number:,}" for number in (budget.prompt, budget.system, budget.output)]
        name = one.stage if len(one.stage) <= _NAME_COLUMNS else f"{one.stage[: _NAME_COLUMNS - 1]}…"
        window = _fill(budget, bar=width >= _WIDE)
        rows.append((name, times, _about(budget.reads, budget.is_estimated), *own, window))
    if rows:
        columns = ("stage", "×>", "reads>", "prompt>", "system>", "answer>", "of its window")
        title = "What the largest dispatch of each stage takes, in tokens"
        yield from _headed(title, table(*columns, rows=rows))
    if remarks := list(_remarks(outlook)):
        yield Text()
        yield facts(remarks)
    yield from _headed("What it takes in all", facts(_costs(outlook, plan.pipeline.limits)))


def _open_stages(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the items that are not known yet, each with the stages that wait for them."""
    for missing in dict.fromkeys(one.items for one in plan.open.values()):
        named = [stage.id for stage in all_stages(plan.pipeline)]
        yield (
            missing,
            ", ".join(name for name in named if name in plan.open and plan.open[name].items == missing),
        )


def _headed(title: str, body: RenderableType) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, "bold")
    yield body


def _largest(outlook: Outlook) -> Iterator[tuple[Planned, int]]:
    """Return the largest dispatch of each stage, and the number of its dispatches, in order of stages."""
    stages: dict[str, list[Planned]] = {}
    for one in outlook.planned:
        stages.setdefault(one.stage, []).append(one)
    for same in stages.values():
        yield max(same, key=lambda one: (bool(one.budget.problem), one.budget.total)), len(same)


def _about(tokens: int, estimated: bool) -> str:  # noqa: FBT001 - the two parts of one number
    return f"~{tokens:,}" if estimated else f"{tokens:,}"


def _fill(budget: Budget, *, bar: bool) -> Text:
    share = budget.total / budget.window
    style = "red" if budget.problem else "yellow" if share > _FULL else "green"
    full = min(round(share * _BAR_COLUMNS), _BAR_COLUMNS)
    drawn = Text.assemble(("━" * full, style), ("─" * (_BAR_COLUMNS - full), "bright_black"), " ")
    return (drawn if bar else Text()).append(f"{share:.0%}", style if budget.problem or not bar else "")


def _remarks(outlook: Outlook) -> Iterator[tuple[str, Text]]:
    """Yield what cannot be sent and what is cut, once for each stage."""
    if any(one.budget.is_estimated for one in outlook.planned):
        yield ("~", Text("some of these files do not exist yet or will grow; their size is estimated", "dim"))
    for sentence in outlook.missing:
        yield "missing", Text.assemble(("✗ ", "bold red"), plain(sentence))
    for one, _ in _largest(outlook):
        if one.budget.problem:
            yield one.key, Text.assemble(("✗ ", "bold red"), plain(one.budget.problem))
        elif one.budget.parts > 1:
            yield one.key, Text(f"the task is split into {one.budget.parts} parts")
        for row in one.budget.rows:
            if row.cut and not one.budget.problem:
                yield one.key, Text(f"{plain(row.path)} is cut: {plain(row.cut)}")
        for path, why in one.budget.left_out:
            yield one.key, Text(f"{plain(path)} is left out: {plain(why)}")


def _costs(outlook: Outlook, limits: Bounds) -> Iterator[tuple[str, str | Text]]:
    least, most = outlook.least, outlook.most
    yield "agents sent", _between(f"{least.dispatches:,}", f"{most.dispatches:,}")
    shown, written = (
        _between(*(_rounded(getattr(takes, name)) for takes in (least, most)))
        for name in ("prompt_tokens", "output_tokens")
    )
    if any(one.model for one in outlook.planned):
        yield "tokens", f"about {shown} shown to models, {written} written by them"
        yield "", Text(f"{_shared(outlook):.0%} of a prompt is a beginning that its stage shares", "dim")
        yield "cost", _cost(outlook)
    else:
        yield "tokens", "none: no model is used"
    if least != most:
        yield "", Text("from: every review passes at once; to: every loop uses all its rounds", "dim")
    bounds = [
        f"{limits.max_dispatches:,} dispatches" if limits.max_dispatches else "",
        f"{limits.max_tokens:,} tokens" if limits.max_tokens else "",
        f"${limits.max_cost_usd:,.2f}" if limits.max_cost_usd else "",
    ]
    if any(bounds):
        yield "it stops at", ", ".join(bound for bound in bounds if bound)


def _shared(outlook: Outlook) -> float:
    """Return the share of prompts that the dispatches of a stage have in common at their beginning."""
    budgets = [one.budget for one in outlook.planned if one.model]
    return sum(one.shared for one in budgets) / max(sum(one.prompt + one.reads for one in budgets), 1)


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _rounded(tokens: int) -> str:
    """Round a number for people.

    >>> _rounded(1_234_567), _rounded(45_678), _rounded(321)
    ('1.2 million', '46,000', '320')
    """
    million, thousand = 1_000_000, 1_000
    if tokens >= million:
        return f"{tokens / million:.1f} million"
    return f"{round(tokens, -3):,}" if tokens >= 10 * thousand else f"{round(tokens, -1):,}"


def _cost(outlook: Outlook) -> Text:
    least, most = outlook.least.cost_usd, outlook.most.cost_usd
    unknown = sorted({one.model for one in outlook.planned if one.model} - set(outlook.prices))
    if least is None or most is None:
        if any(name.startswith("script:") for name in unknown):
            return Text("nothing: the model is a script")
        whose = "no model is given: `--model NAME`" if unknown == ["?"] else ", ".join(unknown)
        return Text(
            f"not known ({whose}); `price` in the pipeline's file says what a million tokens cost", "yellow"
        )
    text = Text(f"about {_between(_dollars(least), _dollars(most))}")
    for name, price in outlook.prices.items():
        whose = "" if name == "?" else f"{plain(name)}: "
        text.append(f"\n{whose}{_dollars(price.prompt)} and {_dollars(price.output)} a million", "dim")
    return text


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.2g}"


# --- one dispatch -------------------------------------------------------------------------------------------


def _show_one(terminal: Terminal, outlook: Outlook, key: str) -> None:
    found = next((one for one in outlook.planned if one.key == key), None)
    if found is None:
        known = [one.key for one in outlook.planned]
        same = [one.key for one in outlook.planned if one.stage == key]
        meant = (
            f"; of {key} there is {', '.join(same[:_NAMED])}{', …' * (len(same) > _NAMED)}"
            if same
            else hint(key, known)
        )
        meant = meant or "; nothing is left to do"
        raise UsageError(f"No agent will be sent for {key!r}{meant}{'.' * (meant[-1] != '?')}")
    if terminal.json:
        terminal.document(found)
        return
    budget = found.budget
    terminal.show(
        Text.assemble((found.key, "bold"), (f"  {plain(found.role)}", "dim")), Text(), _ledger(budget)
    )
    if budget.problem:
        terminal.show(Text(), Text.assemble(("✗ ", "bold red"), plain(budget.problem)))


def _ledger(budget: Budget) -> Table:
    """Return a budget as a sum, file by file."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    made.add_column(overflow="fold")
    made.add_column(justify="right", no_wrap=True)
    made.add_column(style="dim", overflow="fold")
    for row in budget.rows:
        made.add_row(plain(row.path), _about(row.tokens, row.estimated), plain(row.cut))
    for path, why in budget.left_out:
        made.add_row(Text(plain(path), "dim"), Text("–", "dim"), plain(why))
    rule = Text("─" * 10, "bright_black")
    parts = f"of the largest of {budget.parts} parts" if budget.parts > 1 else ""
    made.add_row("", rule, "")
    made.add_row("Total reads", _about(budget.reads, budget.is_estimated), parts)
    made.add_row("Prompt", f"{budget.prompt:,}", "instructions")
    made.add_row("System prompt", f"{budget.system:,}", "the provider's own")
    made.add_row("Output reservation", f"{budget.output:,}", "")
    made.add_row("", rule, "")
    made.add_row(
        Text("Total", "bold"),
        Text(_about(budget.total, budget.is_estimated), "bold"),
        f"of {budget.window:,}, {budget.total / budget.window:.0%}",
    )
    return made


# --- the matrix ---------------------------------------------------------------------------------------------


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
    terminal.result(matrix, heading, Text(), *_grids(matrix, terminal.out.width), Text(), _by_role(matrix))


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


def _by_role(matrix: Matrix) -> Table:
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
