"""``agentx pipeline run`` and ``status``: run a pipeline, and show its state."""

import contextlib
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

from agentx.agents.turn import is_anyone_at_work
from agentx.cli.opened import opened
from agentx.cli.pipeline.board import ReadBlob, shown
from agentx.cli.pipeline.plan import Variables, variables_of
from agentx.cli.pipeline.upkeep import PresentFile, is_started, show_stale
from agentx.cli.terminal import Terminal
from agentx.cli.work.run import EXIT
from agentx.engine import models
from agentx.pipelines.board import Board, board_of
from agentx.pipelines.runner import Runner
from agentx.pipelines.tracked import Tracker
from agentx.pipelines.upkeep.out_of_date import overview
from agentx.pipelines.upkeep.started import plan_of, started_plan
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.text import plain
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
    variables: Variables = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE[:ITEM]", show_default=False, help="Do this stage or loop only; repeatable."
        ),
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option(metavar="STAGE", show_default=False, help="Do this and what it waits for; repeatable."),
    ] = None,
    *,
    retry: Annotated[bool, typer.Option("--retry", help="Retry steps that used up their attempts.")] = False,
) -> None:
    """Run a pipeline until every check passes; if interrupted, the next call resumes it.

    The exit status is 3 if all is proved and a last verdict is FAIL (`otherwise: go-on`).
    """
    given = variables_of(variables)
    with opened(terminal, look=True) as ws:
        runner = Runner(
            ws.engine,
            file,
            lambda name: models.model(ws.engine, name or model),
            jobs=jobs,
            note=terminal.note,
            variables=given,
        )
        if kept := [f"{name}={value}" for name, value in runner.variables.items() if name not in given]:
            terminal.note(f"With {', '.join(kept)}, as it was started; `--var` gives other values.")
        tracker = Tracker(ws.engine, runner.name)

        def look() -> Board:
            with tracker.lock:
                return board_of(runner.plan, tracker.progress)

        ws.engine.indexer.start()
        try:
            with ws.watching(), _watched(terminal, look):
                ended = runner.run(retry=retry, only=only or (), until=until or ())
        finally:
            tracker.close()
        terminal.result(ended, shown(look(), terminal.out.width, datetime.now(UTC), _reader(ws)))
        if ended.status == "COMPLETED" and (late := overview(ws.engine, runner.plan, runner.files).steps):
            what = f"{len(late):,} proved step{'s' * (len(late) != 1)}"
            terminal.note(f"Out of date: {what}; `agentx pipeline status --stale` says why.")
    for incident in ended.incidents:
        terminal.note(plain(incident))
    # where no model answered, no attempt was counted, and the next run tries again by itself
    if ended.status == "FAILED" and any(cell.mark == "failed" for row in look().rows for cell in row.cells):
        again = f"agentx pipeline run {shlex.quote(str(file))} --retry"
        terminal.note(f"Failed steps are not retried automatically: {again} retries them.")
    status = 0 if ended.status == "PARTIAL" else EXIT[ended.status]
    if status := status or (NOT_PASSED if ended.not_passed else 0):
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
    stale: Annotated[
        bool, typer.Option("--stale", help="Show which proved steps are out of date, and why.")
    ] = False,
    file: PresentFile = None,
) -> None:
    """Show the progress of a pipeline: stages, items, agents at work, failures and their causes.

    · waiting, ▶ at work, ✓ proved, ! proved with the verdict FAIL, ↻ to be repeated, ? asks you, ✗ failed
    """
    if stale:
        show_stale(terminal, name, file)
        return
    with opened(terminal) as ws:
        if not (name or is_started(terminal, ws)):
            return
        tracker = Tracker(ws.engine, started_plan(ws.engine, name).pipeline.pipeline)

        def look() -> Board:
            with tracker.lock:
                return board_of(plan_of(ws.engine, tracker.progress), tracker.progress)

        with _watched(terminal, look) if follow else contextlib.nullcontext():
            while follow and tracker.progress.status == "RUNNING" and is_anyone_at_work(ws.engine):
                time.sleep(1 / _LOOKS_PER_SECOND)
                ws.engine.write_path.refresh()
        board = look()
        if board.status == "RUNNING" and not is_anyone_at_work(ws.engine):
            nobody = msgspec.structs.replace(
                tracker.progress, status="INTERRUPTED", reason=_CUT_OFF, running={}
            )
            board = board_of(plan_of(ws.engine, nobody), nobody)
        terminal.result(board, shown(board, terminal.out.width, datetime.now(UTC), _reader(ws)))


def _reader(ws: Workspace) -> ReadBlob:
    def read(blob: str) -> str:
        try:
            return ws.engine.git.repo.read_blob(blob).decode(errors="replace")
        except ObjectDamaged:  # purged
            return ""

    return read
