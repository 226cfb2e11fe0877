"""``agentx memory write-checks``: let a model write the checks of rules that are only shown."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from agentx.cli.memory.checks import as_shown
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted
from agentx.engine import models
from agentx.memory.check_writing import TIMEOUT_S, WrittenChecks, require_unchecked, unchecked, write_checks
from agentx.memory.editing import find
from agentx.memory.note_taking import limit_reached
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.model.port import ModelClient, Usage
from agentx.workspace import Workspace


def write_by_model(
    terminal: Terminal,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", show_default=False, help="IDs, from `agentx memory list`."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="PROVIDER/NAME, as litellm writes it, or script:FILE; by default, the configured one.",
        ),
    ] = "",
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="All active rules that are only shown, except wishes.")
    ] = False,
) -> None:
    """Let a model write the checks of rules that have none, and show what they would have stopped.

    They are kept in mode observe, which stops nothing; `agentx memory check ID --mode deny` enforces them.
    """
    if bool(names) == everything:
        raise UsageError("Name the rules, or use --all.")
    with opened(terminal, look=True) as ws:
        wanted = list(dict.fromkeys(names or (item.id for item in unchecked(ws.state))))
        for name in wanted:  # if one cannot have checks, the model is not asked
            require_unchecked(find(ws.engine, name))
        done: list[WrittenChecks] = []
        if wanted:
            ws.engine.write_path.require_writable()
            for one in _written(terminal, ws, models.model(ws.engine, model), wanted):
                done.append(one)
                if not terminal.json:
                    _show(terminal, one)
    if terminal.json:
        terminal.document({"written": done, "left": len(wanted) - len(done)})
    elif not wanted:
        terminal.show("There is no active rule without a check.")
    elif len(wanted) > 1:
        checked = sum(bool(one.checks) for one in done)
        terminal.show(f"{checked} of {counted(len(wanted), 'rule')} got checks.")


def _written(
    terminal: Terminal, ws: Workspace, model: ModelClient, names: Sequence[str]
) -> Iterator[WrittenChecks]:
    """Yield what the model wrote for each rule, within the limits of ``agentx.toml``."""
    end = time.monotonic() + ws.config.limits.max_time_s
    used = Usage()
    for number, name in enumerate(names):
        if stopped := limit_reached(ws.engine, used, end):
            terminal.note(f"{counted(len(names) - number, 'rule')} left: {stopped} used up.")
            return
        with terminal.busy(f"{model.name} writes the checks of {name} …"):
            one = write_checks(ws.engine, model, name, timeout_s=min(TIMEOUT_S, end - time.monotonic()))
        used += one.usage
        yield one


def show_written(terminal: Terminal, written: Sequence[WrittenChecks]) -> None:
    """Show the checks that a model wrote besides other work; rules that it cannot check are left out."""
    for one in written:
        if one.checks:
            _show(terminal, one)


def _show(terminal: Terminal, one: WrittenChecks) -> None:
    if one.trial is None:
        terminal.show(f"{one.id} is still only shown: {one_line(one.text)}\n{one.why_not}\n")
        return
    terminal.show(f"{as_shown(one.id, one.text, one.checks)}\n")
    if one.warning:
        terminal.note(one.warning)
    terminal.show(one.trial.summary)
    terminal.show(f"Until you set a mode, it only observes: `agentx memory check {one.id} --mode deny`.\n")
