"""``agentx pipeline run`` and ``status``: run a pipeline, and show its state."""

import contextlib
import functools
import shlex
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from agentx.agents.turn import is_anyone_at_work
from agentx.cli.opened import opened
from agentx.cli.pipeline.board import shown
from agentx.cli.terminal import Terminal
from agentx.cli.work.run import EXIT
from agentx.engine import models
from agentx.pipelines.board import Board, board_of
from agentx.pipelines.runner import Runner
from agentx.pipelines.tracked import Tracker
from agentx.storage.errors import UsageError
from agentx.storage.events.pipeline_events import PipelineStarted
from agentx.storage.text import plain
from agentx.synthesis.pipelines.definition.plan import Plan
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve
from agentx.workspace import Workspace

_CUT_OFF = "Its process ended; `agentx pipeline run FILE` resumes it."

NOT_PASSED = 3
"""Exit status where all is proved and a last verdict is FAIL."""

_LOOKS_PER_SECOND = 2
"""How often the display is refreshed, including the elapsed seconds."""


# --- run ----------------------------------------------------------------------------------------------------


def run_pipeline(
    terminal: Terminal,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The pipeline, a YAML file.")
    ],
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Maximum number of concurrent agents.")] = 4,
    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="Model of roles that name none: PROVIDER/NAME, or script:FILE."),
    ] = "",
    *,
    retry: Annotated[bool, typer.Option("--retry", help="Retry steps that used up their attempts.")] = False,
) -> None:
    """Run a pipeline until every check passes; if interrupted, the next call resumes it.

    The exit status is 3 if all is proved and a last verdict is FAIL (`otherwise: go-on`).
    """
    with opened(terminal, look=True) as ws:
        runner = Runner(
            ws.engine,
            file,
            lambda name: models.model(ws.engine, name or model),
            jobs=jobs,
            note=terminal.note,
        )
        tracker = Tracker(ws.engine, runner.name)
        look = functools.partial(_seen, runner.plan, tracker)
        ws.engine.indexer.start()
        try:
            with ws.watching(), _watched(terminal, look):
                ended = runner.run(retry=retry)
        finally:
            tracker.close()
        terminal.result(ended, shown(look(), terminal.out.width, datetime.now(UTC)))
    for incident in ended.incidents:
        terminal.note(plain(incident))
    if ended.status == "FAILED" and any(ended.failed.values()):
        again = f"agentx pipeline run {shlex.quote(str(file))} --retry"
        terminal.note(f"Failed steps are not retried automatically: {again} retries them.")
    if status := EXIT[ended.status] or (NOT_PASSED if ended.not_passed else 0):
        raise typer.Exit(status)


@contextlib.contextmanager
def _watched(terminal: Terminal, look: Callable[[], Board]) -> Iterator[None]:
    """Show the state of a pipeline on a terminal during the body of a ``with``."""
    if terminal.json or not terminal.out.is_terminal:
        yield
        return

    def now() -> Group:
        return shown(look(), terminal.out.width, datetime.now(UTC))

    with Live(
        get_renderable=now,
        console=terminal.out,
        refresh_per_second=_LOOKS_PER_SECOND,
        transient=True,
        vertical_overflow="crop",
    ):
        yield


# --- status -------------------------------------------------------------------------------------------------


def show_status(
    terminal: Terminal,
    name: Annotated[str, typer.Option(metavar="NAME", help="The pipeline; by default the latest one.")] = "",
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Watch until it ends, whichever process runs it.")
    ] = False,
) -> None:
    """Show the progress of a pipeline: stages, items, agents at work, failures and their causes.

    · waiting, ▶ at work, ✓ proved, ! proved with the verdict FAIL, ↻ to be repeated, ? asks you, ✗ failed
    """
    with opened(terminal) as ws:
        if not name and not ws.state.counts.get(PipelineStarted.__name__):
            nothing = "No pipeline was started here. `agentx pipeline new NAME` creates an example."
            terminal.result({"pipelines": []}, Text(nothing, "dim"))
            return
        plan = started_plan(ws, name)
        tracker = Tracker(ws.engine, plan.pipeline.pipeline)
        look = functools.partial(_seen, plan, tracker)
        with _watched(terminal, look) if follow else contextlib.nullcontext():
            while follow and tracker.progress.status == "RUNNING" and is_anyone_at_work(ws.engine):
                time.sleep(1 / _LOOKS_PER_SECOND)
                ws.engine.write_path.refresh()
        board = look()
        if board.status == "RUNNING" and not is_anyone_at_work(ws.engine):
            nobody = msgspec.structs.replace(
                tracker.progress, status="INTERRUPTED", reason=_CUT_OFF, running={}
            )
            board = board_of(plan, nobody)
        terminal.result(board, shown(board, terminal.out.width, datetime.now(UTC)))


def _seen(plan: Plan, tracker: Tracker) -> Board:
    with tracker.lock:
        return board_of(plan, tracker.progress)


def started_plan(ws: Workspace, name: str = "") -> Plan:
    """Return a pipeline as its file was when it was last started; by default the one started last.

    Raises:
        UsageError: It was never started here.
    """
    found = None
    names = dict[str, None]()
    for event in ws.events():
        if isinstance(event.data, PipelineStarted):
            names[event.data.name] = None
            if name in ("", event.data.name):
                found = event.data
    if found is None:
        known = f"; there are: {', '.join(names)}" if names else " yet: `agentx pipeline run FILE` starts one"
        raise UsageError(f"No pipeline{f' {name!r}' if name else ''} was started here{known}.")
    return resolve(*parse(ws.read_body(found.definition), f"{found.name} as it was started"))
