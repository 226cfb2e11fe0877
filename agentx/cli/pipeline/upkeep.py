"""``agentx pipeline status --stale``, ``redo --stale``, ``verify``: what is out of date or not in order."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, facts, table
from agentx.pipelines.pointing.changes import OutOfDate, State
from agentx.pipelines.upkeep.out_of_date import StaleOverview, mark, overview
from agentx.pipelines.upkeep.started import present
from agentx.pipelines.upkeep.verification import VerifiedStage, verified
from agentx.storage.events.pipeline_events import PipelineStarted
from agentx.storage.text import plain
from agentx.workspace import Workspace

_MARKS: dict[State, tuple[str, str]] = {
    "stale": ("↻ ", "yellow"),
    "after": ("· ", "bright_black"),
    "changed": ("✎ ", "cyan"),
}

ROWS = 30
"""Maximum number of rows of a table; of more, only the number is shown."""

_ITEMS = 4
"""Maximum number of items that a row names."""

PresentFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        show_default=False,
        help="The pipeline's file; by default the one that it was last started from.",
    ),
]


def is_started(terminal: Terminal, ws: Workspace) -> bool:
    """Return whether a pipeline was ever started here; print a note if not."""
    if ws.state.counts.get(PipelineStarted.__name__):
        return True
    nothing = "No pipeline was started here. `agentx pipeline new NAME` creates an example."
    terminal.result({"pipelines": []}, Text(nothing, "dim"))
    return False


# --- what is out of date ------------------------------------------------------------------------------------


def show_stale(terminal: Terminal, name: str, file: Path | None) -> None:
    """Show which proved steps are out of date, and why."""
    with opened(terminal, look=True) as ws:
        if not (name or file or is_started(terminal, ws)):
            return
        runner = present(ws.engine, name, file)
        with terminal.busy("Comparing …"):
            found = overview(ws.engine, runner.plan, runner.files)
    title = Text(plain(runner.plan.pipeline.title or runner.name), "bold")
    advice = "`agentx pipeline redo --stale` marks them; the next run does again what has changed."
    parts = [*out_of_date(found), *([Text(), Text(advice, "dim")] if found.steps else [])]
    terminal.result(found, title, *parts)


def out_of_date(found: StaleOverview) -> Iterator[RenderableType]:
    """Yield what is out of date, for people: steps of a stage with the same reasons in one row."""
    if found.steps:
        late = sum(one.state != "after" for one in found.steps)
        figures = f"{late:,} of {found.proved:,} proved steps out of date"
        after = f", {len(found.steps) - late:,} after such steps" if late < len(found.steps) else ""
        yield Text(figures + after, "yellow")
        yield Text()
        yield table("step", "why", rows=list(_rows(found.steps)))
    else:
        yield Text(f"Nothing is out of date: {found.proved:,} proved steps.", "green")
    if remarks := list(_remarks(found)):
        yield Text()
        yield facts(remarks)


def _rows(steps: Sequence[OutOfDate]) -> Iterator[tuple[Text, str]]:
    groups: dict[tuple[str, State, tuple[str, ...]], list[OutOfDate]] = {}
    for one in steps:
        reasons = tuple(reason.text for reason in one.reasons)
        groups.setdefault((one.step.partition("[")[0], one.state, reasons), []).append(one)
    for number, ((stage, state, _), same) in enumerate(groups.items()):
        if number == ROWS:
            yield Text(), f"… and {len(groups) - ROWS:,} rows more: --json lists all"
            return
        sign, style = _MARKS[state]
        items = [one.step.partition("[")[2].removesuffix("]") for one in same]
        more = f", … {len(items) - _ITEMS:,} more" if len(items) > _ITEMS else ""
        named = same[0].step if len(same) == 1 else f"{stage}: {', '.join(items[:_ITEMS])}{more}"
        why = same[0].why
        if state == "after" and len(same) > 1:
            stages = dict.fromkeys(key.partition("[")[0] for one in same for key in one.after)
            why = f"after steps of {', '.join(stages)}, they may come out the same"
        yield Text.assemble((sign, style), plain(named)), why


def _remarks(found: StaleOverview) -> Iterator[tuple[str, str]]:
    if found.unknown:
        what = "were proved by an earlier version, which did not record what they rest on"
        yield "not known", f"{found.unknown:,} steps {what}"
    for one in found.left_over[:ROWS]:
        read = f"; {', '.join(one.readers)} still reads them" if one.readers else ""
        yield one.step, f"is not in the pipeline any more. Its files remain: {', '.join(one.files)}{read}"


def mark_stale(terminal: Terminal, stage: str, item: str, reason: str, name: str, file: Path | None) -> None:
    """Mark what is out of date to be done again in the next run, as far as it has changed."""
    with opened(terminal, look=True) as ws:
        runner = present(ws.engine, name, file)
        found = mark(ws.engine, runner.plan, runner.files, stage, item, reason)
    if not found.steps:
        terminal.result(found, *out_of_date(found))
        return
    advice = "Continue with `agentx pipeline run FILE`: what comes out the same stays as it is."
    terminal.result(found, *out_of_date(found), Text(), Text(advice, "dim"))


# --- verify -------------------------------------------------------------------------------------------------


def verify(
    terminal: Terminal,
    name: Annotated[str, typer.Option(metavar="NAME", help="The pipeline; by default the latest one.")] = "",
    file: PresentFile = None,
) -> None:
    """Check all that a pipeline made against its present checks and markers; change nothing.

    The exit status is 1 if a file does not pass.
    """
    with opened(terminal, look=True) as ws:
        if not (name or file or is_started(terminal, ws)):
            return
        runner = present(ws.engine, name, file)
        with terminal.progress() as tell:
            steps = list(
                verified(ws.engine, runner.plan, runner.files, lambda done, of: tell("Checking …", done, of))
            )
    wrong = [one for one in steps if one.faults]
    value = {"pipeline": runner.name, "checked": len(steps), "failed": len(wrong), "steps": steps}
    terminal.result(value, *_verdict(runner.plan.pipeline.title or runner.name, steps, wrong))
    if wrong:
        raise typer.Exit(1)


def _verdict(
    title: str, steps: Sequence[VerifiedStage], wrong: Sequence[VerifiedStage]
) -> Iterator[RenderableType]:
    yield Text(plain(title), "bold")
    stages: dict[str, list[VerifiedStage]] = {}
    for one in steps:
        stages.setdefault(one.stage, []).append(one)
    rows = [
        (
            stage,
            f"{len(same):,}",
            Text(f"{sum(not one.faults for one in same):,}", "green"),
            Text(f"{failed:,}", "red") if (failed := sum(bool(one.faults) for one in same)) else "",
        )
        for stage, same in stages.items()
    ]
    yield table("stage", "proved>", "in order>", "not>", rows=rows)
    if wrong:
        yield Text()
        found = [
            (Text.assemble(("✗ ", "bold red"), plain(one.step)), " ".join(one.faults)) for one in wrong[:ROWS]
        ]
        more = [(Text(), f"… and {len(wrong) - ROWS:,} more: --json lists all")] if len(wrong) > ROWS else []
        yield table("step", "what is wrong", rows=[*found, *more])
