"""``agentx done``: the user's word that an act was done, or was not."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from agentx.agents.turn import DueTime
from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal
from agentx.directing.act_reports import ActReports
from agentx.directing.directed_runs import occasion_of
from agentx.directing.report_act import carry_out, parted
from agentx.policy.done_once import AlreadyDone, check, meant, say_done
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, plain
from agentx.synthesis.directing.acts import Occasion, described
from agentx.synthesis.state.state import State

ALREADY = 3
"""Exit status where the act was done already."""


def done(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(help="The tool, or the name under which a program reports acts.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]… [-- COMMAND]",
            help="The values that make it this act, and the command that does it.",
        ),
    ] = None,
    *,
    undone: Annotated[bool, typer.Option("--not", help="It was not done: it may be done again.")] = False,
    only_check: Annotated[
        bool, typer.Option("--check", help="Record nothing: only say whether it was done.")
    ] = False,
    reason: Annotated[str, typer.Option(help="The reason, for the record.")] = "",
) -> None:
    """Record that an act was done, so that the engine refuses to do it again.

    If a call with these values was cut off and its outcome is unknown, this settles it. Of a call with
    several acts, only those that are named are settled, several as a list: 'titles=["a", "b"]'. Objects,
    lists and quoted strings are JSON; an integer may mean a number or a text. The exit status is 3 where the
    act was done already.

    With a command behind --, the act is announced, the command is run, and the act is recorded as done if
    it ends with 0. The exit status is that of the command; 3, or 4 if the outcome of an earlier call is
    unknown, where it was not run.
    """
    key, command = parted(words or ())
    if command is not None:
        if undone or only_check or reason:
            raise UsageError("--not, --check and --reason go without a command.")
        raise typer.Exit(_carried_out(terminal, [name, *key], command))
    given = [encodable(word) for word in key]
    with opened(terminal) as ws:
        occasion = latest_occasion(ws.state)
        try:
            if only_check:
                values = meant(ws.engine, name, given, occasion)
                check(ws.engine, name, values, occasion)
                act, what = described(name, values), "Not done"
                document: object = {"done": False}
            else:
                said = say_done(ws.engine, name, given, occasion, done=not undone, reason=encodable(reason))
                act, what = said.act, "Not done" if undone else "Done"
                document = as_json(said.event)
        except AlreadyDone as error:
            terminal.result({"done": True, "seq": error.seq}, Text(plain(str(error))))
            raise typer.Exit(ALREADY) from error
    terminal.result(document, Text(plain(f"{what}: {act}")))


def _carried_out(terminal: Terminal, act: list[str], command: list[str]) -> int:
    """Run a command that does an act; the workspace is not open meanwhile."""

    def tell(words: Sequence[str]) -> tuple[int, str]:
        with opened(terminal) as ws:
            reports = ActReports(ws.engine, latest_occasion(ws.state), ws.engine.settings.actor)
            return reports.command([word.encode(errors="surrogateescape") for word in words])

    settings = terminal.settings
    status, text = carry_out(tell, act, command, {**settings.environ, **settings.keys})
    if text:
        terminal.fail(text)
    return status


def latest_occasion(state: State) -> Occasion:
    """Return the occasion of the latest run, whose window the user means; a day is today."""
    last = state.last_run
    if last is None:
        return Occasion(by_clock=True)
    occasion = occasion_of(state, last.run, DueTime(last.schedule, last.due))
    return msgspec.structs.replace(occasion, by_clock=True)
