"""``agentx doctor``: one line for each check, and what to do if it fails."""

from collections.abc import Iterable
from typing import Literal

import typer
from rich.text import Text

from agentx.cli.setup import checkup
from agentx.cli.setup.checkup import CheckupResult
from agentx.cli.terminal import Terminal
from agentx.core.layout import NotAWorkspace, find_root
from agentx.storage.text import plain

_MARKS: dict[Literal["ok", "warning", "failure"], tuple[str, str]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "failure": ("✗", "red"),
}


def doctor(terminal: Terminal) -> None:
    """Check Python, Git, and the history, repository, index and settings; exit 1 if something is broken."""
    folder = terminal.folder
    findings: list[CheckupResult] = []

    def tell(found: Iterable[CheckupResult]) -> None:
        for finding in found:
            findings.append(finding)
            if not terminal.json:
                _show(terminal, finding)

    tell(checkup.machine(terminal.settings))
    try:
        root = find_root(folder)
    except NotAWorkspace as error:
        tell([CheckupResult("workspace", "warning", str(error), "")])
    else:
        with terminal.busy("Looking through the workspace"):
            tell(checkup.at_rest(root, terminal.settings))
            if not any(finding.mark == "failure" for finding in findings):
                tell(checkup.at_work(root, terminal.settings))
    broken = sum(finding.mark == "failure" for finding in findings)
    if terminal.json:
        terminal.document({"healthy": not broken, "checks": findings})
    else:
        _sum_up(terminal, findings, broken)
    if broken:
        raise typer.Exit(1)


def _show(terminal: Terminal, finding: CheckupResult) -> None:
    mark, colour = _MARKS[finding.mark]
    line = Text.assemble((f"{mark} ", colour), (f"{finding.name:<12}", "bold"), plain(finding.what))
    terminal.show(line)
    if finding.todo:
        terminal.show(Text.assemble(" " * 14, ("→ ", colour), (plain(finding.todo), colour)))


def _sum_up(terminal: Terminal, findings: list[CheckupResult], broken: int) -> None:
    hints = sum(finding.mark == "warning" for finding in findings)
    if broken:
        terminal.show(Text(f"\n{broken} of {len(findings)} checks failed.", "bold red"))
    else:
        more = f"; {hints} hint{'s' * (hints != 1)}" if hints else ""
        terminal.show(Text(f"\nNo problems found{more}.", "bold green"))
