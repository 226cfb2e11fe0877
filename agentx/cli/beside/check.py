"""``agentx check``: run the workspace's checks; the exit status says whether they pass."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, plain
from agentx.tools.reported import agent_actor
from agentx.tools.toolset import ToolResult
from agentx.workspace import Workspace

_CHECKS = {"tests": "run_tests", "lint": "run_lint", "build": "run_build"}
"""The configured checks, and the tool of each."""

_ISSUES = 20
_OUTPUT_LINES = 15


def check(
    terminal: Terminal,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            show_default=False,
            help="tests, lint, build, or a text among the artifacts; all configured checks by default.",
        ),
    ] = None,
    agent: Annotated[str, typer.Option("--as", metavar="NAME", help="The agent that checks.")] = "shell",
) -> None:
    """Run the configured checks in a copy of the artifacts, and record the results.

    Exit status: 0 if all pass, 1 if one fails, 3 if one waits for approval, 4 if one may not run.
    """
    actor = agent_actor(agent)
    with opened(terminal) as ws:
        results: list[tuple[str, ToolResult]] = []
        for name in _wanted(ws, names or ()):
            tool = _CHECKS.get(name, "check_document")
            with terminal.busy(f"Checking {name}"):
                arguments = {} if name in _CHECKS else {"path": name}
                results.append((name, ws.tools.call(tool, arguments, actor=actor)))
            if not terminal.json:
                terminal.show(*_told(*results[-1]))
        issues = ws.memory("hot_issue")
    passed = all(result.status == "SUCCEEDED" for _, result in results)
    if terminal.json:
        listed = [{"check": name, "result": result} for name, result in results]
        terminal.document({"passed": passed, "checks": listed, "hot_issues": issues})
    elif issues:
        terminal.show("", f"{counted(len(issues), 'open problem')}:")
        terminal.show(
            *(Text(f"  {item.id}  {one_line(item.short or item.text)}", "red") for item in issues[:_ISSUES])
        )
        if len(issues) > _ISSUES:
            terminal.show(f"  and {len(issues) - _ISSUES} more: agentx memory list --kind hot_issue")
    if not passed:
        raise typer.Exit(max(_exit(result) for _, result in results))


def _wanted(ws: Workspace, names: Sequence[str]) -> list[str]:
    configured = [name for name in _CHECKS if getattr(ws.config.checks, name).command]
    if not names and not configured:
        raise UsageError(
            'No check is configured. Set one: `agentx config set checks.tests.command "python -m pytest -q"`.'
        )
    for name in names:
        if name in _CHECKS and name not in configured:
            raise UsageError(f'No command is set: `agentx config set checks.{name}.command "…"`.')
        if name not in _CHECKS and not (ws.artifacts / name).is_file():
            raise UsageError(f"{name!r} is neither tests, lint or build nor a file among the artifacts.")
    return list(dict.fromkeys(names)) or configured


def _told(name: str, result: ToolResult) -> Iterator[Text]:
    passed = result.status == "SUCCEEDED"
    mark, colour = ("✓", "green") if passed else ("✗", "red")
    lines = plain(result.output).splitlines()
    yield Text.assemble((f"{mark} {name}  ", colour), one_line(lines[0]) if lines else "")
    if not passed:
        yield from (Text(f"  {line}", "dim") for line in lines[1:][-_OUTPUT_LINES:])


def _exit(result: ToolResult) -> int:
    if result.status == "SUCCEEDED":
        return 0
    return 3 if result.approval_needed else 4 if result.status == "DENIED" else 1
