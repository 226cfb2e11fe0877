"""``agentx tool``: call a tool of the workspace from any script."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, facts, table
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, plain
from agentx.synthesis.model.port import ToolSchema
from agentx.tools.reported import agent_actor
from agentx.tools.toolset import ToolResult

ASKED, DENIED = 3, 4
"""Exit statuses of a call that waits for approval and of one that was denied, as of ``agentx gate pre``."""

_TYPES = {"integer", "number", "boolean", "array", "object", "null"}


def tool(
    terminal: Terminal,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", show_default=False, help="The tool; none lists all.")
    ] = "",
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ARGUMENT=VALUE...]",
            show_default=False,
            help="Its arguments; VALUE is text, @FILE for a file's content, or - for stdin.",
        ),
    ] = None,
    arguments: Annotated[
        str, typer.Option(metavar="JSON", help="Its arguments, a JSON object; '-' reads stdin.")
    ] = "",
    agent: Annotated[str, typer.Option("--as", metavar="NAME", help="The agent that calls.")] = "shell",
    call: Annotated[str, typer.Option(metavar="ID", help="Repeat a call that was approved.")] = "",
    *,
    describe: Annotated[
        bool, typer.Option("--describe", help="Show the tool's arguments; call nothing.")
    ] = False,
) -> None:
    """Call a tool of the workspace, through its gates, as an agent.

    Exit status: 1 failed, 3 waits for approval, 4 denied.
    """
    actor = agent_actor(agent)
    with opened(terminal) as ws:
        schemas = {schema.name: schema for schema in ws.tools.schemas()}
        if not name:
            _list(terminal, list(schemas.values()))
            return
        if name not in schemas:
            raise UsageError(f"Unknown tool {name!r}. The tools are: {', '.join(schemas)}.")
        if describe:
            _describe(terminal, schemas[name])
            return
        given = _arguments(terminal, schemas[name], values or (), arguments)
        result = ws.tools.call(name, given, call_id=encodable(call), actor=actor)
    _show(terminal, result)


def _show(terminal: Terminal, result: ToolResult) -> None:
    if terminal.json:
        terminal.document(result)
    elif result.status == "SUCCEEDED":
        terminal.show(plain(result.output))
    else:
        terminal.fail(result.output)
        if result.approval_needed:
            terminal.note(
                f"Approve with `agentx approve {result.call_id}`, then repeat with `--call {result.call_id}`."
            )
    if result.status != "SUCCEEDED":
        raise typer.Exit(ASKED if result.approval_needed else DENIED if result.status == "DENIED" else 1)


def _list(terminal: Terminal, schemas: Sequence[ToolSchema]) -> None:
    rows = [(Text(one.name, "bold cyan"), one.description) for one in schemas]
    terminal.result({"tools": schemas}, table("tool", "what it does", rows=rows))
    if not terminal.json:
        terminal.note("Arguments of one: `agentx tool NAME --describe`.", mark="·")


def _describe(terminal: Terminal, schema: ToolSchema) -> None:
    required = schema.parameters.get("required", ())
    rows = [(name, _about(detail, needed=name in required)) for name, detail in _properties(schema).items()]
    terminal.result(
        schema, Text.assemble((schema.name, "bold cyan"), f"  {plain(schema.description)}"), facts(rows)
    )


def _about(detail: Mapping[str, Any], *, needed: bool) -> str:
    default = "required" if needed else f"default {json.dumps(detail.get('default'), ensure_ascii=False)}"
    return plain(", ".join(filter(None, (_type(detail), default, str(detail.get("description", ""))))))


def _properties(schema: ToolSchema) -> dict[str, dict[str, Any]]:
    found = schema.parameters.get("properties", {})
    return found if isinstance(found, dict) else {}


def _type(detail: Mapping[str, Any]) -> str:
    types = [detail, *detail.get("anyOf", ())]
    names = [str(one["type"]) for one in types if "type" in one]
    return " or ".join(dict.fromkeys(names)) or "text"


def _arguments(terminal: Terminal, schema: ToolSchema, values: Sequence[str], whole: str) -> dict[str, Any]:
    """Return the arguments of a call from both forms."""
    given = _object(terminal.stdin.read() if whole == "-" else whole) if whole else {}
    for name, text in _pairs(values):
        if name in given:
            raise UsageError(f"{name} is given twice.")
        types = set(_type(_properties(schema).get(name, {})).split(" or "))
        given[name] = _typed(_read(terminal, text), types) if text else text
    return given


def _pairs(values: Sequence[str]) -> Iterator[tuple[str, str]]:
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise UsageError(f"{value!r} is not an argument: write it as name=value, such as path=report.md.")
        yield name, text


def _read(terminal: Terminal, text: str) -> str:
    if text == "-":
        return encodable(terminal.stdin.read())
    if not text.startswith("@"):
        return encodable(text)
    base = terminal.caller.directory if terminal.caller else Path.cwd()
    try:
        return (base / text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"{text[1:]} cannot be read: {why}. Text that begins with @ goes into --arguments."
        ) from error


def _typed(text: str, types: set[str]) -> Any:
    """Return a value in the type that the tool takes, if it can be read so."""
    if "string" in types or not types & _TYPES:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text  # the tool says what it takes


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise UsageError('The arguments are not a JSON object such as {"path": "report.md"}.')
    return found
