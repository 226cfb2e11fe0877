"""``agentx gate`` and ``agentx agent capability``: check before an action, grade a task, check tools.

A hook of any other agent can act on the exit status of ``gate pre``.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, minute, panel, table
from agentx.policy.workspace_gates import Graded
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, plain
from agentx.synthesis.gates.action_gate import (
    MAX_CORRECTED,
    Decision,
    GateVerdict,
    Line,
    VerdictSection,
    not_analysed,
)
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

_WORKS = {True: ("yes", "green"), False: ("no", "red"), None: ("not checked", "yellow")}

Domain = Annotated[str, typer.Option(metavar="NAME", help="Its domain, such as payments.")]


# --- before an action ---------------------------------------------------------------------------------------


def look_before(
    terminal: Terminal,
    action: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="The task or action, in any words.")
    ] = "",
    tool: Annotated[str, typer.Option(metavar="NAME", help="The tool that will be called.")] = "",
    arguments: Annotated[
        str, typer.Option(metavar="JSON", help="Its arguments, a JSON object; '-' reads stdin.")
    ] = "",
    domain: Domain = "",
    agent: Annotated[str, typer.Option(metavar="ROLE", help="The agent's role.")] = "",
) -> None:
    """Check an action before it is taken: flow, rejections, rules, resources. Exit status: 3 ask, 4 deny."""
    given = _arguments(terminal, arguments)
    with opened(terminal) as ws:
        verdict = ws.gates.before(
            encodable(action),
            tool=encodable(tool),
            arguments=given,
            domain=encodable(domain),
            agent=encodable(agent),
        )
    if terminal.json:
        terminal.document(msgspec.to_builtins(verdict) | {"tokens": verdict.tokens, "text": verdict.text})
    else:
        terminal.show(*_shown(verdict, terminal.out.width))
    if status := EXIT[verdict.verdict]:
        raise typer.Exit(status)


def _arguments(terminal: Terminal, text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        found = json.loads(terminal.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise UsageError('The arguments are not a JSON object such as {"path": "report.md"}.')
    return found


def _shown(verdict: GateVerdict, width: int) -> Iterator[RenderableType]:
    """Yield the verdict with its reason in one line, then what concerns the action, in a frame.

    What the gate gives an agent with every verdict, such as critical rules, is left to ``--json``.
    """
    colour = _COLOURS[verdict.verdict]
    word = verdict.verdict.replace("_", " ")
    yield Text.assemble((f"{word}: ", f"bold {colour}"), plain(verdict.reason))
    if verdict.corrected:
        long = len(verdict.corrected) > MAX_CORRECTED
        shown = "the whole text is in the output of --json." if long else plain(verdict.corrected).rstrip()
        yield Text.assemble(("corrected: ", "bold green"), "\n" * ("\n" in shown), shown)
    parts: list[RenderableType] = []
    for part in verdict.sections:
        if part.touches:
            parts += [Text(part.title, "bold"), facts([_row(part, line) for line in part.lines]), Text("")]
    if parts:
        yield panel(Group(*parts[:-1]), width=width, style=colour)
    left = [f"{verdict.omitted} line{'s' * (verdict.omitted != 1)} left out"] if verdict.omitted else []
    woke = [f"woke {', '.join(verdict.woken)}"] if verdict.woken else []
    if left or woke:
        yield Text("; ".join(left + woke), "dim")
    if verdict.unread:
        yield Text(plain(not_analysed(verdict.unread)), "dim")
    yield Text(f"Checked {counted(verdict.checked, 'rule')} in {verdict.took_ms:.1f} ms.", "dim")


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
    terminal: Terminal,
    task: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="What was done, in one sentence.")
    ],
    *,
    passed: Annotated[
        bool | None, typer.Option("--pass/--fail", show_default=False, help="The result (required).")
    ] = None,
    flow: Annotated[str, typer.Option(metavar="ID", help="The flow that was followed.")] = "",
    lesson: Annotated[str, typer.Option(metavar="TEXT", help="What was learned, in one sentence.")] = "",
    made: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What enforces the lesson: check:ID, flow:ID, script:PATH or rule; it must exist.",
        ),
    ] = "",
    broke: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A rule that was broken (repeatable).")
    ] = None,
    kept: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A rule that was kept (repeatable).")
    ] = None,
    domain: Domain = "",
    agent: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="Grade as this agent, whose lessons cannot become rules; the default without a terminal.",
        ),
    ] = "",
) -> None:
    """Grade a task: update the records of its flow and rules, and keep its lesson."""
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
            # Without a terminal it is an agent who grades, even if unnamed; an empty actor is the user.
            actor=f"agent:{encodable(agent) or 'shell'}" if agent or not terminal.interactive else "",
        )
    for name in graded.unknown:
        terminal.note(f"Unknown {'flow' if name == flow else 'rule'} {name} ignored.")
    if graded.unmade:
        terminal.note(graded.unmade)
    colour = "green" if graded.passed else "red"
    title = Text("passed" if graded.passed else "failed", f"bold {colour}")
    terminal.result(
        graded, panel(facts(_changes(graded)), title=title, width=terminal.out.width, style=colour)
    )


def _changes(graded: Graded) -> Iterator[tuple[str, str | Text]]:
    if graded.task is not None:
        yield "state", f"{graded.task.id} {'is new' if graded.new else 'was updated'}: {graded.task.text}"
    if graded.flow is not None and isinstance(graded.flow.detail, FlowDetail):
        yield "flow", f"{graded.flow.id} {graded.flow.text}: works in {told(graded.flow.detail)}"
    for rule in graded.rules:
        yield "rule", f"{rule.id} has the score {rule.score:g}: {rule.text}"
    if graded.lesson is not None:
        yield "learned", f"{graded.lesson.id}: {graded.lesson.text}"
    if graded.permanent:
        yield "", Text("It is enforced from now on.", "green")
    if graded.proposal is not None:
        yield "", Text(NOT_PERMANENT, "yellow")
        yield "instead", graded.proposal.text
        if graded.proposal.command:
            yield "type", Text(plain(graded.proposal.command), "bold")


# --- lessons without an automated check ---------------------------------------------------------------------


def list_lessons(terminal: Terminal) -> None:
    """List lessons and rules that nothing enforces yet, each with what would enforce it."""
    with opened(terminal) as ws:
        found = ws.gates.lessons()
    rows = [
        (
            Text(one.item.id, "bold cyan"),
            one.proposal.kind,
            f"{one.item.text}\n  {one.proposal.command or one.proposal.text}",
        )
        for one in found
    ]
    listed = table("ID", "Make it a", "Lesson, and the command that enforces it", rows=rows)
    terminal.result({"lessons": found}, listed if found else "Every lesson is enforced.")


# --- capabilities -------------------------------------------------------------------------------------------


def list_capabilities(terminal: Terminal) -> None:
    """List tools and credentials with their last check, and variables that look like credentials."""
    with opened(terminal) as ws:
        items, names = ws.capabilities.all(), ws.capabilities.credentials()
    set_by = [Text(plain(f"Set in the environment, by name: {', '.join(names)}"), "dim")] if names else []
    terminal.result({"capabilities": items, "credentials": names}, _listed(items), *set_by)


def add_capability(
    terminal: Terminal,
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Its name, such as GitHub access.")
    ],
    command: Annotated[
        str, typer.Option(metavar="LINE", show_default=False, help="A command that exits with 0 if it works.")
    ],
    domain: Domain = "",
    agent: Annotated[
        str, typer.Option(metavar="ROLE", help="The agent's role; every agent by default.")
    ] = "",
) -> None:
    """Add a tool or credential with the command that checks it, and run that command."""
    with opened(terminal) as ws, terminal.busy("Checking …"):
        item = ws.capabilities.add(
            encodable(name), encodable(command), domain=encodable(domain), agent=encodable(agent)
        )
        items = ws.capabilities.check([item.id])
    terminal.result({"capabilities": items}, _listed(items))


def check_capabilities(
    terminal: Terminal,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", show_default=False, help="IDs; all by default.")
    ] = None,
) -> None:
    """Run the checks of capabilities and record the results; exit 1 if one fails."""
    with opened(terminal) as ws, terminal.busy("Checking …"):
        items = ws.capabilities.check(names or ())
    terminal.result({"capabilities": items}, _listed(items))
    if not all(_detail(item).works for item in items):
        raise typer.Exit(1)


def _listed(items: list[MemoryItem]) -> RenderableType:
    if not items:
        return "There are no capabilities. Add one: `agentx agent capability add NAME --command LINE`."
    rows = [
        (
            Text(item.id, "bold cyan"),
            Text(*_WORKS[detail.works]),
            f"{item.text} ({item.agent})" if item.agent else item.text,
            minute(detail.checked_at),
            detail.said or detail.command,
        )
        for item in items
        for detail in [_detail(item)]
    ]
    return table("ID", "Works", "What", "Checked", "Said", rows=rows)


def _detail(item: MemoryItem) -> CapabilityDetail:
    return item.detail if isinstance(item.detail, CapabilityDetail) else CapabilityDetail("")
