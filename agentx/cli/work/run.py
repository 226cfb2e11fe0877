"""``agentx run``: run agents."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.terminal_theme import MONOKAI

from agentx.agents.loop import run_task
from agentx.agents.run_types import Approval, AskPerson, Limits, Observer, RunResult
from agentx.cli.memory.check_writing import show_written
from agentx.cli.memory.review import show_judged
from agentx.cli.opened import as_json, opened, say_restricted, scan_sources
from agentx.cli.terminal import Terminal, counted
from agentx.cli.work.chat import answer_once
from agentx.cli.work.live import LiveView
from agentx.cli.work.play import play
from agentx.cli.work.say import read_text
from agentx.cognition.turn import ROLE as COGNITIVE
from agentx.engine import models
from agentx.memory.model_extraction import judge
from agentx.policy import approvals
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import RunStatus
from agentx.storage.text import encodable
from agentx.synthesis.model.open import SCRIPT
from agentx.synthesis.model.port import ModelClient
from agentx.workspace import Workspace

LOG_COLUMNS = 100
"""Width of a run that is shown in a pipe or a file."""

EXIT: dict[RunStatus, int] = {
    "COMPLETED": 0,
    "INTERRUPTED": 130,
    "WAITING": 1,
    "LIMIT_REACHED": 1,
    "FAILED": 1,
}
"""Exit status for each end of a run: only an answer is a success."""


_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich loads its font from a server; a self-contained picture uses the reader's font instead."""


def run(  # noqa: PLR0913, PLR0917 - each limits the run
    terminal: Terminal,
    message: Annotated[
        str,
        typer.Argument(
            metavar="[MESSAGE]", help="What to do; '-' reads stdin; without it, unfinished work continues."
        ),
    ] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="PROVIDER/NAME, as litellm writes it, or script:FILE.")
    ] = "",
    max_steps: Annotated[int | None, typer.Option(min=1, help="Maximum number of model calls.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum tokens of all prompts and answers.")
    ] = None,
    max_cost_usd: Annotated[float | None, typer.Option(min=0, help="Maximum cost in US dollars.")] = None,
    max_time_s: Annotated[float | None, typer.Option(min=0, help="Maximum time in seconds.")] = None,
    sample: Annotated[str, typer.Option(metavar="NAME", help="Play a sample offline, in a fresh copy.")] = "",
    into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --sample: directory of the copy; a temporary one by default."),
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save the output of each run as DIR/RUN.svg.")
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="The agent's role; by default main, or that of the resumed run. "
            "`cognitive` answers from a buffer of memories.",
        ),
    ] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Approve every tool call that needs approval.")] = False,
) -> None:
    """Let an agent work on a message until it answers or a limit stops it; Ctrl-C ends it cleanly.

    Exit 0 only if the agent answers. Limits default to those of agentx.toml. The next run continues.
    """
    terminal.pictures = pictures
    if _is_played(terminal, sample, message or model, into):
        return
    if agent == COGNITIVE:
        if status := answer_once(terminal, read_text(terminal, message), model):
            raise typer.Exit(status)
        return
    with opened(terminal, look=True) as ws:
        client = models.model(ws.engine, model)
        say_restricted(terminal, ws)
        scan_sources(terminal, ws)
        ws.engine.indexer.start()
        limits = _limits(ws, max_steps, max_tokens, max_cost_usd, max_time_s)
        with ws.watching():
            result = _work(
                terminal, ws, read_text(terminal, message), client, limits, yes=yes, agent=encodable(agent)
            )
        if result.status == "COMPLETED" and ws.config.memory.judge and not client.name.startswith(SCRIPT):
            _judge(terminal, ws, client)
    if EXIT[result.status]:
        raise typer.Exit(EXIT[result.status])


def _is_played(terminal: Terminal, sample: str, other: str, into: Path | None) -> bool:
    """Play a sample if one is named. Return whether it was.

    Raises:
        UsageError: The options do not go together.
    """
    if sample and other:
        raise UsageError("A sample brings its own messages and model: use --sample alone, or with --into.")
    if sample:
        play(terminal, sample, into)
    elif into is not None:
        raise UsageError("--into requires --sample; a run works in the workspace of -C DIR.")
    return bool(sample)


def _limits(
    ws: Workspace, steps: int | None, tokens: int | None, cost_usd: float | None, time_s: float | None
) -> Limits:
    """Return the limits of ``agentx.toml``, overridden by those that are given."""
    given = {"max_steps": steps, "max_tokens": tokens, "max_cost_usd": cost_usd, "max_time_s": time_s}
    return msgspec.structs.replace(
        Limits.of(ws.config), **{name: value for name, value in given.items() if value is not None}
    )


def _judge(terminal: Terminal, ws: Workspace, model: ModelClient) -> None:
    """Have the model of a run read the user's messages in it. On failure, the next run catches up."""
    try:
        with terminal.busy("Looking for lasting demands …"):
            judged = judge(ws, model)
            written = ws.scribe.write_checks(model, judged)
    except AgentXError as error:
        terminal.note(f"No demands were extracted; the next run tries again. {error}")
    except KeyboardInterrupt:
        terminal.note("No demands were extracted; the next run tries again.")
    else:
        if not terminal.json:
            show_judged(terminal, judged)
            show_written(terminal, written)
            if left := ws.scribe.pending().messages:
                terminal.note(f"{counted(left, 'earlier message')} not read yet: `agentx memory scribe`.")
        elif judged.model:
            terminal.line({"type": "Judged", "data": judged})


def _work(
    terminal: Terminal,
    ws: Workspace,
    message: str,
    model: ModelClient,
    limits: Limits,
    *,
    yes: bool,
    agent: str,
) -> RunResult:
    """Run a task and show it: live on a terminal, as a log in a pipe, or as one line of JSON per event."""
    if terminal.pictures:
        terminal.out.record = True
    last = ws.state.unfinished_run({call.run for call in approvals.waiting(ws.engine)})
    with _shown(terminal, ws) as (observer, ask):
        result = run_task(
            ws,
            message,
            model,
            limits=limits,
            observer=observer,
            ask_person=(lambda _call: Approval(approved=True)) if yes else ask,
            agent=agent or (last.agent if last and not message else "main"),
        )
    if terminal.pictures:
        path, title = terminal.pictures / f"{result.run}.svg", f"agentx run: {ws.state.title}"
        svg = _FONT_FACE.sub("", terminal.out.export_svg(title=title, theme=MONOKAI, clear=True))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(svg, "utf-8")
        except OSError as error:
            raise UsageError(f"The picture {path} cannot be written: {error.strerror}.") from error
    if terminal.json:
        terminal.line({"type": "RunResult", "data": result})
    return result


@contextlib.contextmanager
def _shown(terminal: Terminal, ws: Workspace) -> Iterator[tuple[Observer, AskPerson | None]]:
    if terminal.json:
        end = ws.on("*", lambda event: terminal.line(as_json(event)))
        try:
            yield Observer(), None
        finally:
            end()
        return
    if not terminal.out.is_terminal and "COLUMNS" not in terminal.settings.environ:
        terminal.out.width = LOG_COLUMNS
    view = LiveView(terminal.out, canned=not terminal.unattended)
    with view.watching(ws):
        asks = terminal.stdin.isatty() and terminal.out.is_terminal and not terminal.unattended
        yield view, view.ask if asks else None
