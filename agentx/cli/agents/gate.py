"""``agentx gate`` and ``agentx capability``: check before an action, grade a task, check tools.

A hook of any other agent can act on the exit status of ``gate pre``.
"""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, facts, panel, table
from agentx.policy.workspace_gates import Graded
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, plain
from agentx.synthesis.gates.action_gate import Decision, GateVerdict, Line, VerdictSection
from agentx.synthesis.learning.grading import NOT_PERMANENT
from agentx.synthesis.memory.items import CapabilityDetail, FlowDetail, MemoryItem
from agentx.synthesis.state.flows import told

EXIT: dict[Decision, int] = {"allow": 0, "allow_with_context": 0, "ask": 3, "deny": 4}
"""Exit status of ``agentx gate pre``; 1 and 2 are failures, as for every command."""

_COLOURS: dict[Decision, str] = {
    "allow": "green",
    "allow_with_context": "cyan",
    "ask": "yellow",
    "deny": "red",
}
_MARKS = {
    "rejections": ("✗", "red"),
    "critical": ("‼", "yellow"),
    "tools": ("⌂", "blue"),
    "lessons": ("·", "dim"),
}

Domain = Annotated[str, typer.Option(metavar="NAME", help="What it belongs to, like payments.")]


# --- before an action ---------------------------------------------------------------------------------------


def look_before(
    ctx: typer.Context,
    action: Annotated[
        str,
        typer.Argument(metavar="TEXT", show_default=False, help="What is about to be done, in any words."),
    ] = "",
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that does it.")] = "",
    arguments: Annotated[
        str, typer.Option(metavar="JSON", help="What the tool is given: an object; - is stdin.")
    ] = "",
    domain: Domain = "",
    agent: Annotated[str, typer.Option(metavar="ROLE", help="Who does it.")] = "",
) -> None:
    """Check an action before it is taken: flow, rejections, rules, resources. Exit status: 3 ask, 4 deny."""
    terminal: Terminal = ctx.obj
    given = _arguments(arguments)
    with opened(terminal) as ws:
        verdict = ws.gates.before(
            encodable(action),
            tool=encodable(tool),
            arguments=given,
            domain=encodable(domain),
            agent=encodable(agent),
        )
    if terminal.json:
        terminal.document(msgspec.to_builtins(verdict) | {"text": verdict.text})
    else:
        terminal.show(*_shown(verdict, terminal.out.width))
    if status := EXIT[verdict.verdict]:
        raise typer.Exit(status)


def _arguments(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        found = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise UsageError('The arguments are no JSON object, like {"path": "report.md"}.')
    return found


def _shown(verdict: GateVerdict, width: int) -> Iterator[RenderableType]:
    """Yield the verdict in a frame, and its size below it."""
    colour = _COLOURS[verdict.verdict]
    title = Text(verdict.verdict.replace("_", " "), f"bold {colour}")
    parts: list[RenderableType] = [Text(plain(verdict.reason))]
    for part in verdict.sections:
        parts += [Text(""), Text(part.title, "bold"), facts([_row(part, line) for line in part.lines])]
    yield panel(Group(*parts), title=title, width=width, style=colour)
    left = f"; {verdict.omitted} line{'s' * (verdict.omitted != 1)} left out" if verdict.omitted else ""
    woke = f"; woke {', '.join(verdict.woken)}" if verdict.woken else ""
    yield Text(f"{verdict.tokens:,} tokens{left}{woke}", "dim")


def _row(part: VerdictSection, line: Line) -> tuple[str, Text]:
    if line.kind == "step":
        return f"{line.id:>4}.", Text(plain(line.text))
    mark, colour = _MARKS.get(part.name, ("•", "dim"))
    if line.kind == "capability":
        mark, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}[line.good]
    why = f"  {plain(line.why)}" if line.why else ""
    return plain(line.id), Text.assemble((f"{mark} ", colour), plain(line.text), (why, "dim"))


# --- after a task -------------------------------------------------------------------------------------------


def grade_after(  # noqa: PLR0913 - each is a part of the recorded fact
    ctx: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="What was done, in one sentence.")
    ],
    *,
    passed: Annotated[
        bool | None,
        typer.Option(
            "--pass/--fail", show_default=False, help="Whether it succeeded; one of them is needed."
        ),
    ] = None,
    flow: Annotated[str, typer.Option(metavar="ID", help="The flow that it followed.")] = "",
    lesson: Annotated[str, typer.Option(metavar="TEXT", help="What was learned, in one sentence.")] = "",
    made: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What the lesson was made: check:ID, flow:ID, script:PATH or rule; it is looked for.",
        ),
    ] = "",
    broke: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A rule that it broke (may be repeated).")
    ] = None,
    kept: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A rule that it kept (may be repeated).")
    ] = None,
    domain: Domain = "",
    agent: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="Grade as this agent; its lessons cannot become rules. The default without a terminal.",
        ),
    ] = "",
) -> None:
    """Grade a task: update the records of its flow and rules, and keep its lesson."""
    terminal: Terminal = ctx.obj
    if passed is None:
        raise UsageError("Say how it went: `--pass` or `--fail`.")
    with opened(terminal) as ws:
        graded = ws.gates.after(
            encodable(task),
            passed=passed,
            flow=flow,
            lesson=encodable(lesson),
            made=made,
            broke=broke or (),
            kept=kept or (),
            domain=encodable(domain),
            actor=_grader(terminal, encodable(agent)),
        )
    for name in graded.unknown:
        terminal.note(
            f"{name} is no {'flow' if name == flow else 'rule'} that is known here; it was passed over."
        )
    if graded.unmade:
        terminal.note(graded.unmade)
    if terminal.json:
        terminal.document(graded)
        return
    colour = "green" if graded.passed else "red"
    title = Text("passed" if graded.passed else "failed", f"bold {colour}")
    terminal.show(panel(facts(_told(graded)), title=title, width=terminal.out.width, style=colour))


def _grader(terminal: Terminal, agent: str) -> str:
    """Return the actor who grades; empty for the user. Without a terminal it is an agent, even if unnamed."""
    return f"agent:{agent or 'shell'}" if agent or not terminal.interactive else ""


def _told(graded: Graded) -> Iterator[tuple[str, str | Text]]:
    if graded.task is not None:
        yield "state", f"{graded.task.id} {'is new' if graded.new else 'was updated'}: {graded.task.text}"
    if graded.flow is not None and isinstance(graded.flow.detail, FlowDetail):
        yield "flow", f"{graded.flow.id} {graded.flow.text}: works in {told(graded.flow.detail)}"
    for rule in graded.rules:
        yield "rule", f"{rule.id} stands at {rule.score:g}: {rule.text}"
    if graded.lesson is not None:
        yield "learned", f"{graded.lesson.id}: {graded.lesson.text}"
    if graded.permanent:
        yield "", Text("It is more than words: it lasts.", "green")
    if graded.proposal is not None:
        yield "", Text(NOT_PERMANENT, "yellow")
        yield "instead", graded.proposal.text
        if graded.proposal.command:
            yield "type", Text(plain(graded.proposal.command), "bold")


# --- lessons without an automated check ---------------------------------------------------------------------


def list_lessons(ctx: typer.Context) -> None:
    """List the lessons and rules that are only words, each with what would make it permanent."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        found = ws.gates.lessons()
    if terminal.json:
        terminal.document({"lessons": found})
        return
    if not found:
        terminal.show("No lesson is only words.")
        return
    rows = [
        (
            Text(one.item.id, "bold cyan"),
            one.proposal.kind,
            f"{one.item.text}\n  {one.proposal.command or one.proposal.text}",
        )
        for one in found
    ]
    terminal.show(table("ID", "Make it a", "Learned, and what to type", rows=rows))


# --- capabilities -------------------------------------------------------------------------------------------


def list_capabilities(ctx: typer.Context) -> None:
    """List tools and credentials with what their last check said, and names that look like credentials."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws:
        items, names = ws.capabilities.all(), ws.capabilities.credentials()
    if terminal.json:
        terminal.document({"capabilities": items, "credentials": names})
        return
    _show(terminal, items)
    if names:
        terminal.show(Text(plain(f"Set in the environment, by name: {', '.join(names)}"), "dim"))


def add_capability(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="What it is, like GitHub access.")
    ],
    command: Annotated[
        str, typer.Option(metavar="LINE", show_default=False, help="Exits with 0 where it works.")
    ],
    domain: Domain = "",
    agent: Annotated[
        str, typer.Option(metavar="ROLE", help="The agent that has it; every agent where none is named.")
    ] = "",
) -> None:
    """Name a tool or a credential with the command that finds out whether it works, and run that."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws, terminal.busy("Checking …"):
        item = ws.capabilities.add(
            encodable(name), encodable(command), domain=encodable(domain), agent=encodable(agent)
        )
        items = ws.capabilities.check([item.id])
    _tell(terminal, items)


def check_capabilities(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", show_default=False, help="Only these; all by default."),
    ] = None,
) -> None:
    """Run the commands of capabilities and record what each said; ends with 1 where one does not work."""
    terminal: Terminal = ctx.obj
    with opened(terminal) as ws, terminal.busy("Checking …"):
        items = ws.capabilities.check(names or ())
    _tell(terminal, items)
    if not all(_detail(item).works for item in items):
        raise typer.Exit(1)


def _tell(terminal: Terminal, items: list[MemoryItem]) -> None:
    if terminal.json:
        terminal.document({"capabilities": items})
    else:
        _show(terminal, items)


def _show(terminal: Terminal, items: list[MemoryItem]) -> None:
    if not items:
        terminal.show("No capability is known; name one: `agentx capability add NAME --command LINE`.")
        return
    rows = [
        (
            Text(item.id, "bold cyan"),
            _works(detail),
            f"{item.text} ({item.agent})" if item.agent else item.text,
            detail.checked_at[:16].replace("T", " "),
            detail.said or detail.command,
        )
        for item in items
        for detail in [_detail(item)]
    ]
    terminal.show(table("ID", "Works", "What", "Checked", "Said", rows=rows))


def _works(detail: CapabilityDetail) -> Text:
    word, colour = {True: ("yes", "green"), False: ("no", "red"), None: ("not checked", "yellow")}[
        detail.works
    ]
    return Text(word, colour)


def _detail(item: MemoryItem) -> CapabilityDetail:
    return item.detail if isinstance(item.detail, CapabilityDetail) else CapabilityDetail("")


COMMANDS = {
    "gate": {"lessons": list_lessons, "pre": look_before, "post": grade_after},
    "capability": {
        "list": list_capabilities,
        "add": add_capability,
        "check": check_capabilities,
    },
}
