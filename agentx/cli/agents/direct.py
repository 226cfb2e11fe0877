"""``agentx agent direct``: the prompt of the next run, the reasons for it, and the run itself."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from agentx.agents.turn import DueTime
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, panel
from agentx.cli.work.run import EXIT
from agentx.directing.configured import executor
from agentx.directing.configured_tools import configured_tools
from agentx.directing.directed_runs import occasion_of, run_directed
from agentx.directing.director import EXECUTOR, Director
from agentx.directing.executor_tools import Hands
from agentx.engine.models import director_model
from agentx.engine.moment_parser import event_at
from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import DirectiveIssued
from agentx.storage.text import clip, one_line
from agentx.synthesis.directing.policy import Decision
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.state.schedule_items import of_schedule
from agentx.tools.functions import FunctionTools
from agentx.workspace import Workspace

VALUE_CHARACTERS = 200
"""Characters shown of a field's value."""


class ActiveDirective(msgspec.Struct, frozen=True, kw_only=True):
    """The active directive, and whether it serves in the next run.

    Attributes:
        schedule: The schedule whose runs it directs; empty for runs without one.
        decision: Decision of the policy, over the current history.
        directive: Seq of the directive; 0 for none.
        runs: Number of runs that it has served.
        rules: Number of the user's demands and rejections that follow its prompt at each run.
        values: What each field gives now.
    """

    decision: Decision
    schedule: str = ""
    directive: int = 0
    runs: int = 0
    rules: int = 0
    values: dict[str, str] = {}
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
    schedule: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="The directed schedule; by default runs without one, or the only one if there are none.",
        ),
    ] = "",
) -> None:
    """Show the current directive, have a new one written, or run it.

    A director sees the whole history and writes the prompt. The executor (director.executor in agentx.toml)
    sees that prompt alone. Without a model the directive is composed of your messages, the rules in effect,
    what was done already and what failed.
    """
    if why + now + run > 1:
        raise UsageError("Give one of --why, --now and --run.")
    with opened(terminal) as ws:
        of = _chosen(ws, schedule)
        if run:
            _run(terminal, ws, of)
            return
        director = _director(ws, {}, of)
        if now:
            with terminal.busy("The director reads the history …"):
                failed = _written(terminal, ws, of)
            ws.flush()
            if failed:
                terminal.note(failed)
        active = _active(ws, director, of)
        others = [name for name in _directed(ws) if name != of]
    if terminal.json:
        terminal.document(active.decision if why else active)
        return
    asked = ("asked", "yellow") if active.decision.direct else ("not asked", "green")
    reason = f" before the next run: {one_line(active.decision.why)}."
    terminal.show(Text.assemble((f"The director is {asked[0]}", asked[1]), reason))
    if not why:
        _show(terminal, ws, active)
    if others:
        terminal.show(Text(f"`--schedule` shows that of another schedule: {', '.join(others)}.", "dim"))


def _director(
    ws: Workspace,
    functions: Mapping[str, Callable[..., Any]],
    schedule: str,
    model: ModelClient | None = None,
) -> Director:
    section = ws.config.director
    hands = Hands(ws.engine, functions, actor=f"agent:{EXECUTOR}", run="", files=section.files)
    return Director(
        ws.engine,
        model,
        hands.schemas(),
        outside=hands.outside,
        agent=ws.state.schedules[schedule].rule.agent if schedule else EXECUTOR,
        occasion=occasion_of(ws.state, "", DueTime(schedule)),
        text_only=bool(section.executor) and section.speaks != "jsonl",
        declarations=hands.declarations,
        repeatable=hands.repeatable,
    )


def _written(terminal: Terminal, ws: Workspace, schedule: str) -> str:
    """Have a directive written now; return a sentence on why the director failed, if it did."""
    with configured_tools(ws.engine) as functions:
        _note_undeclared(terminal, ws, functions)
        director = _director(ws, functions, schedule, director_model(ws.engine))
        director.direct("it was asked for")
    return director.failed


def _note_undeclared(terminal: Terminal, ws: Workspace, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Name the tools that do not declare what makes two calls the same act, and what to write."""
    declared = FunctionTools(ws.engine, functions).declarations
    for name in functions:
        if name not in declared:
            terminal.note(
                f"{name} does not declare what makes two calls the same act, so none is refused. "
                f"For example: `agentx config set director.acts.{name}.window once`; see docs/directing.md."
            )


def _directed(ws: Workspace) -> list[str]:
    return [name for name, known in ws.state.schedules.items() if known.rule.directed]


def _chosen(ws: Workspace, schedule: str) -> str:
    """Return the schedule whose directive is meant.

    Raises:
        UsageError: No directed schedule has that name.
    """
    directed = _directed(ws)
    if schedule and schedule not in directed:
        known = f"there are: {', '.join(directed)}" if directed else "there are none"
        raise UsageError(f"No directed schedule is called {schedule!r}; {known}.")
    if not schedule and not ws.state.directives.get("") and len(directed) == 1:
        return directed[0]
    return schedule


def _active(ws: Workspace, director: Director, schedule: str) -> ActiveDirective:
    serving, decision = ws.state.directives.get(schedule), director.decide()
    event = event_at(ws.engine.log, serving.seq) if serving else None
    if serving is None or event is None or not isinstance(event.data, DirectiveIssued):
        return ActiveDirective(decision=decision, schedule=schedule)
    issued = msgspec.structs.replace(event.data, prompt=ws.body(ws.read_body(event.data.prompt)))
    rules = sum(1 for _ in of_schedule(ws.state, schedule).active("constraint", "rejection"))
    return ActiveDirective(
        decision=decision,
        schedule=schedule,
        directive=serving.seq,
        runs=serving.runs,
        rules=rules,
        values=director.values(issued.policy),
        issued=issued,
    )


def _show(terminal: Terminal, ws: Workspace, active: ActiveDirective) -> None:
    issued = active.issued
    if issued is None:
        terminal.show(Text("`--now` has a directive written, `--run` carries one out.", "dim"))
        return
    policy = issued.policy
    rows: list[tuple[str, str | Text]] = [
        *([("schedule", active.schedule)] if active.schedule else []),
        ("written", f"event {active.directive} by {issued.model}, because {one_line(issued.why)}"),
        ("summary", one_line(issued.summary)),
        ("strategy", one_line(issued.strategy)),
        ("reflection", one_line(issued.reflection)),
        ("serves", f"{active.runs} of {policy.valid_for_runs} runs so far"),
        ("ends with", ", ".join(policy.invalidate_on) or "nothing else"),
        *(
            ("{{" + name + "}}", f"{text} gives now: {clip(one_line(active.values[name]), VALUE_CHARACTERS)}")
            for name, text in policy.dynamic_fields.items()
        ),
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


def _run(terminal: Terminal, ws: Workspace, schedule: str) -> None:
    section = ws.config.director
    rule = ws.state.schedules[schedule].rule if schedule else None
    with terminal.busy("Running …"), configured_tools(ws.engine) as tools:
        _note_undeclared(terminal, ws, tools)
        made = run_directed(
            ws.engine,
            executor(ws.engine),
            tools,
            model=director_model(ws.engine),
            agent=rule.agent if rule else EXECUTOR,
            files=section.files,
            due=DueTime(schedule),
            time_limit_s=(rule.time_limit_s if rule else 0) or section.time_limit_s,
        )
    assert made is not None  # None only for a due time that was already run
    outcome = made.outcome
    if made.failed:
        terminal.note(made.failed)
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
