"""``agentx agent direct``: the prompt of the next run, the reasons for it, and the run itself."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, panel
from agentx.cli.work.run import EXIT
from agentx.directing.configured import executor
from agentx.directing.configured_tools import configured_tools
from agentx.directing.directed_runs import run_directed
from agentx.directing.director import EXECUTOR, Director
from agentx.directing.executor_tools import Hands
from agentx.engine.models import director_model
from agentx.engine.moment_parser import event_at
from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued
from agentx.storage.events.types import Event
from agentx.storage.text import one_line
from agentx.synthesis.directing.policy import Decision
from agentx.workspace import Workspace


class ActiveDirective(msgspec.Struct, frozen=True, kw_only=True):
    """The active directive, and whether it serves in the next run.

    Attributes:
        decision: Decision of the policy, over the current history.
        directive: Seq of the directive; 0 for none.
        runs: Number of runs that it has served.
        rules: Number of the user's demands and rejections that follow its prompt at each run.
    """

    decision: Decision
    directive: int = 0
    runs: int = 0
    rules: int = 0
    issued: DirectiveIssued | None = None


def direct(
    terminal: Terminal,
    *,
    why: Annotated[
        bool, typer.Option("--why", help="Only show whether the next run asks the director, and why.")
    ] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Have a new directive written now, regardless of the policy.")
    ] = False,
    run: Annotated[
        bool,
        typer.Option("--run", help="Run once: the director if the policy asks for it, then the executor."),
    ] = False,
) -> None:
    """Show the current directive, have a new one written, or run it.

    A director sees the whole history and writes the prompt. The executor (director.executor in agentx.toml)
    sees that prompt alone. Without a model the directive is composed of your messages, the rules in effect,
    what was done already and what failed.
    """
    if why + now + run > 1:
        raise UsageError("Give one of --why, --now and --run.")
    with opened(terminal) as ws:
        if run:
            _run(terminal, ws)
            return
        director = Director(ws.engine)
        if now:
            with terminal.busy("The director reads the history …"), configured_tools(ws.engine) as functions:
                event = _directed(ws, functions)
            ws.flush()
            if isinstance(event.data, DirectiveFailed):
                terminal.note(
                    f"The director failed ({event.data.error}); the last good directive stays in use."
                )
        active = _active(ws, director)
    if terminal.json:
        terminal.document(active.decision if why else active)
        return
    asked = ("asked", "yellow") if active.decision.direct else ("not asked", "green")
    reason = f" before the next run: {one_line(active.decision.why)}."
    terminal.show(Text.assemble((f"The director is {asked[0]}", asked[1]), reason))
    if not why:
        _show(terminal, ws, active)


def _directed(ws: Workspace, functions: Mapping[str, Callable[..., Any]]) -> Event:
    files = ws.config.director.files
    hands = Hands(ws.engine, functions, actor=f"agent:{EXECUTOR}", run="", files=files)
    director = Director(ws.engine, director_model(ws.engine), hands.schemas(), outside=hands.outside)
    return director.direct("it was asked for")


def _active(ws: Workspace, director: Director) -> ActiveDirective:
    serving, decision = ws.state.directive, director.decide()
    event = event_at(ws.engine.log, serving.seq) if serving else None
    if serving is None or event is None or not isinstance(event.data, DirectiveIssued):
        return ActiveDirective(decision=decision)
    issued = msgspec.structs.replace(event.data, prompt=ws.body(ws.read_body(event.data.prompt)))
    rules = sum(1 for _ in ws.state.active("constraint", "rejection"))
    return ActiveDirective(
        decision=decision, directive=serving.seq, runs=serving.runs, rules=rules, issued=issued
    )


def _show(terminal: Terminal, ws: Workspace, active: ActiveDirective) -> None:
    issued = active.issued
    if issued is None:
        terminal.show(Text("`--now` has a directive written, `--run` carries one out.", "dim"))
        return
    policy = issued.policy
    rows: list[tuple[str, str | Text]] = [
        ("written", f"event {active.directive} by {issued.model}, because {one_line(issued.why)}"),
        ("summary", one_line(issued.summary)),
        ("strategy", one_line(issued.strategy)),
        ("reflection", one_line(issued.reflection)),
        ("serves", f"{active.runs} of {policy.valid_for_runs} runs so far"),
        ("ends with", ", ".join(policy.invalidate_on) or "nothing else"),
        *(("{{" + name + "}}", text) for name, text in policy.dynamic_fields.items()),
        *(
            (one.sort.replace("_", " "), one_line(f"{one.text} {one.actionable}"))
            for one in issued.checkpoints
        ),
        *(("learned", one_line(f"{one.topic}: {one.text}")) for one in issued.knowledge),
    ]
    terminal.show("", facts(rows), "")
    _show_prompt(terminal, "The executor's prompt", ws.read_body(issued.prompt))
    if active.rules:
        appended = f"Each run appends your demands and rejections ({counted(active.rules, 'thing')})."
        terminal.show(Text(appended, "dim"))


def _show_prompt(terminal: Terminal, title: str, prompt: str) -> None:
    terminal.show(panel(Text(prompt), title=Text(title, "bold"), width=terminal.out.width))


def _run(terminal: Terminal, ws: Workspace) -> None:
    section = ws.config.director
    with terminal.busy("Running …"), configured_tools(ws.engine) as tools:
        made = run_directed(
            ws.engine,
            executor(ws.engine),
            tools,
            model=director_model(ws.engine),
            files=section.files,
            time_limit_s=section.time_limit_s,
        )
    assert made is not None  # None only for a due time that was already run
    outcome = made.outcome
    if terminal.json:
        terminal.document(made)
    else:
        asked = "asked" if made.decision.direct else "not asked"
        terminal.show(Text(f"The director was {asked}: {one_line(made.decision.why)}.", "dim"))
        _show_prompt(terminal, f"Run {made.run}: the executor's whole prompt", made.prompt)
        style = "green" if outcome.status == "COMPLETED" else "red"
        reason = f" {one_line(outcome.reason)}".rstrip()
        terminal.show(Text.assemble((outcome.status, style), reason))
        if outcome.summary:
            terminal.show(Text(outcome.summary))
    if EXIT[outcome.status]:
        raise typer.Exit(EXIT[outcome.status])
