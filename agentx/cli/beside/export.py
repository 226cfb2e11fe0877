"""``agentx export``: write the active rules to a file that another agent reads."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.beside.proposals import proposed_table
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted
from agentx.rule_files.exporting import Exported
from agentx.rule_files.places import place_of
from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.synthesis.rule_files import block
from agentx.trust.trust import set_value
from agentx.workspace import Workspace

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", show_default=False, help="The file; the usual one of the project by default."
    ),
]
Tokens = Annotated[
    int | None, typer.Option("--max-tokens", min=100, show_default=False, help="Budget; 2,000 by default.")
]
Check = Annotated[
    bool, typer.Option("--check", help="Change nothing; exit 1 if the file is not up to date (for CI).")
]
Keep = Annotated[bool, typer.Option("--keep", help="From now on, let the file follow memory (export.keep).")]


def show(terminal: Terminal, max_tokens: Tokens = None) -> None:
    """Print the rules that an export would contain, the most important first; write nothing."""
    with opened(terminal) as ws:
        budget = ws.config.export.max_tokens if max_tokens is None else max_tokens
        made = block.render(block.exported(ws.state.items.values()), budget)
    value = {"text": made.body, "items": made.items, "more": made.more, "tokens": made.tokens}
    terminal.result(value, plain(made.body))


def agents_md(
    terminal: Terminal,
    file: File = None,
    max_tokens: Tokens = None,
    *,
    check: Check = False,
    keep: Keep = False,
) -> None:
    """Write the active rules between markers to AGENTS.md, which Codex, Cursor, Copilot and others read.

    What stands outside the markers stays as it is. What you edit inside becomes proposals.
    """
    _export(terminal, "agents-md", file, max_tokens, check=check, keep=keep)


def claude_md(
    terminal: Terminal,
    file: File = None,
    max_tokens: Tokens = None,
    *,
    check: Check = False,
    keep: Keep = False,
) -> None:
    """Write the active rules between markers to CLAUDE.md, which Claude Code reads."""
    _export(terminal, "claude-md", file, max_tokens, check=check, keep=keep)


def cursor_rules(
    terminal: Terminal,
    file: File = None,
    max_tokens: Tokens = None,
    *,
    check: Check = False,
    keep: Keep = False,
) -> None:
    """Write the active rules between markers to .cursor/rules/agentx.mdc, which Cursor reads."""
    _export(terminal, "cursor-rules", file, max_tokens, check=check, keep=keep)


def _export(
    terminal: Terminal, form: str, file: Path | None, max_tokens: int | None, *, check: bool, keep: bool
) -> None:
    if check and keep:
        raise UsageError("--check changes nothing, so it cannot be combined with --keep.")
    path = _absolute(terminal, file)
    with opened(terminal) as ws:
        done = ws.export_rules(form, path, max_tokens=max_tokens, check=check)
        if keep:
            _keep(ws, done, max_tokens)
    terminal.result(
        done, _told(done, check=check), *([proposed_table(done.proposals)] if done.proposals else [])
    )
    if done.more:
        terminal.note(f"{counted(done.more, 'rule')} did not fit: raise --max-tokens.")
    if done.proposals:
        terminal.note(f"{done.path} was edited between the markers. Settle with `agentx memory review`.")
    if check and (done.written or done.edited):
        raise typer.Exit(1)


def _absolute(terminal: Terminal, file: Path | None) -> Path | None:
    base = terminal.caller.directory if terminal.caller else Path.cwd()
    return base / file if file else None


def _keep(ws: Workspace, done: Exported, max_tokens: int | None) -> None:
    if not place_of(ws.engine, ws.artifacts / done.path).inside or Path(done.path).is_absolute():
        raise UsageError(f"{done.path} is not among the artifacts: only their files can be kept up to date.")
    names = list(dict.fromkeys((*ws.config.export.keep, done.path)))
    set_value(ws.root, ws.settings, "export.keep", json.dumps(names))
    if max_tokens is not None:
        set_value(ws.root, ws.settings, "export.max_tokens", str(max_tokens))


def _told(done: Exported, *, check: bool) -> Text:
    size = f"{counted(done.rules, 'rule')}, {done.tokens:,} tokens"
    if check:
        stale = done.written or done.edited
        why = "was edited between the markers" if done.edited else "is not up to date"
        return Text(
            plain(f"{done.path} {why if stale else 'is up to date'} ({size})."), "red" if stale else "green"
        )
    return Text(plain(f"{done.path}: {size}; {'written' if done.written else 'unchanged'}."))
