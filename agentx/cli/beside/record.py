"""``agentx record``: record what an agent outside AgentX said and did."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal, counted
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Event
from agentx.storage.text import one_line, plain
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.tools.reported import ReportedCall, agent_actor, report_answer, report_call
from agentx.workspace import Workspace

MAX_LINE = 8_000_000
"""Maximum length of a line of JSON, in characters."""

_USER = "An agent cannot speak for the user: a person uses `agentx say`, outside of agents' runs."
_FIELDS = frozenset((*ReportedCall.__struct_fields__, "role", "content", "text", "final", "model", "as"))


def record(  # noqa: PLR0913, PLR0917 - each is a field of the event
    terminal: Terminal,
    text: Annotated[
        str,
        typer.Argument(
            metavar="[TEXT]", show_default=False, help="The answer, or the tool's output; '-' reads stdin."
        ),
    ] = "",
    role: Annotated[str, typer.Option(metavar="ROLE", show_default=False, help="assistant or tool.")] = "",
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="The agent's name.")] = "shell",
    tool: Annotated[str, typer.Option(metavar="NAME", help="Of a call: the tool.")] = "",
    arguments: Annotated[
        str, typer.Option(metavar="JSON", help="Of a call: its arguments, a JSON object.")
    ] = "",
    status: Annotated[
        str,
        typer.Option(metavar="STATUS", help="Of a call: succeeded, failed or denied; by its exit status."),
    ] = "",
    command: Annotated[
        str, typer.Option(metavar="LINE", help="Of a call: the command line that it ran.")
    ] = "",
    exit_code: Annotated[
        int | None, typer.Option(metavar="N", show_default=False, help="Its exit status.")
    ] = None,
    call: Annotated[
        str, typer.Option("--id", metavar="ID", help="A second report with this ID is not recorded again.")
    ] = "",
    *,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", help='Read JSON lines from stdin: {"role": "tool", "tool": "Bash", "output": "…"}.'
        ),
    ] = False,
) -> None:
    """Record an agent's answer, a tool call with its result, or a denied call.

    The reporter is an agent: what it records never counts as your words. You speak with `agentx say`.
    """
    if lines and (text or role):
        raise UsageError("--lines reads everything from stdin: give no text and no --role.")
    entries: Iterator[Mapping[str, Any]] | list[dict[str, Any]]
    if lines:
        entries = _lines(terminal)
    else:
        said = terminal.stdin.read() if text == "-" else text
        entries = [
            {
                "role": role, "content": said, "tool": tool, "arguments": _object(arguments),
                "status": status, "command": command, "exit_code": exit_code, "id": call,
            }
        ]  # fmt: skip
    agent_actor(name)
    with opened(terminal) as ws:
        seen: set[int] = set()
        for entry in entries:
            event, broken = _record(ws, entry, name)
            seen.add(event.seq)
            _show(terminal, event, broken, many=lines)
        if lines and not terminal.json:
            terminal.show(f"{counted(len(seen), 'event')} recorded.")


def _record(ws: Workspace, entry: Mapping[str, Any], name: str) -> tuple[Event, tuple[Violation, ...]]:
    role = entry.get("role")
    agent = entry.get("as", name)
    if role == "user":
        raise UsageError(_USER)
    if role not in ("assistant", "tool"):
        raise UsageError("Say whose words these are: `--role assistant` or `--role tool`.")
    if unknown := sorted(set(entry) - _FIELDS):
        raise UsageError(f"Unknown field {unknown[0]!r}; the fields are {', '.join(sorted(_FIELDS))}.")
    content = entry.get("content") or entry.get("text") or ""
    if not isinstance(content, str) or not isinstance(agent, str):
        raise UsageError("The content and the agent's name must be text.")
    if role == "assistant":
        final, model = entry.get("final", True), str(entry.get("model", ""))
        return report_answer(
            ws.engine, content, agent, final=bool(final), model=model, key=str(entry.get("id", ""))
        )
    fields = {key: value for key, value in entry.items() if key in ReportedCall.__struct_fields__}
    fields["output"] = entry.get("output") or content
    try:
        call = msgspec.convert(fields, ReportedCall)
    except msgspec.ValidationError as error:
        raise UsageError(f"The call has a wrong field: {error}.") from error
    return report_call(ws.engine, call, agent), ()


def _lines(terminal: Terminal) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(terminal.stdin, start=1):
        if not line.strip():
            continue
        if len(line) > MAX_LINE:
            raise UsageError(f"Line {number} is too long; the lines before it are recorded.")
        try:
            yield _object(line)
        except UsageError as error:
            raise UsageError(f"Line {number}: {error} The lines before it are recorded.") from error


def _object(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"This is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise UsageError('This is not a JSON object such as {"path": "report.md"}.')
    return found


def _show(terminal: Terminal, event: Event, broken: tuple[Violation, ...], *, many: bool) -> None:
    if terminal.json:
        value = {"event": as_json(event), "broke": broken}
        (terminal.line if many else terminal.document)(value)
    elif not many:
        terminal.show(Text.assemble((f"{event.seq}  ", "dim"), one_line(event.describe() or event.type)))
    for one in () if terminal.json else broken:
        terminal.note(plain(f"It breaks {one.item_id}: {one.rule}"))
