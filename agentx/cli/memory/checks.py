"""``agentx memory check``: show, set and try the checks of a rule."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from agentx.cli.memory.items import show_items
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, table
from agentx.memory.editing import find, with_checks
from agentx.memory.rule_checks import TrialFinding, compiled, set_checks, try_checks
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, shorten
from agentx.synthesis.enforcement.check_file import format_checks, parse_checks
from agentx.synthesis.memory.checks import MODES, Check
from agentx.synthesis.memory.items import MemoryItem, checks_of
from agentx.workspace import Workspace

MAX_CHECK_BYTES = 100_000
"""Maximum size of a file of checks."""

MOST_FINDINGS = 40
"""Maximum number of findings shown; all are in the JSON."""


def check(
    terminal: Terminal,
    name: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="Its ID, from `agentx memory list`.")
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", show_default=False, help="With --try: only these files."),
    ] = None,
    given: Annotated[
        str,
        typer.Option(
            "--set", metavar="FILE", help="Replace its checks by those of a YAML file; '-' reads stdin."
        ),
    ] = "",
    mode: Annotated[str, typer.Option(help=f"What happens to what breaks them: {', '.join(MODES)}.")] = "",
    *,
    none: Annotated[bool, typer.Option("--none", help="Remove its checks: it is only shown.")] = False,
    again: Annotated[bool, typer.Option("--compile", help="Compile its text to checks again.")] = False,
    trial: Annotated[
        bool,
        typer.Option("--try", help="Show what they would have stopped in files and history; change nothing."),
    ] = False,
) -> None:
    """Show the checks of a rule as YAML, change them, or try them."""
    if bool(given) + none + again > 1 or (none and (mode or trial)):
        raise UsageError("Use one of --set, --none and --compile; --none alone.")
    if paths and not trial:
        raise UsageError("A path is only for --try.")
    new = read_checks(given) if given else None
    with opened(terminal, look=trial) as ws:
        item = find(ws.engine, name)
        with_checks(item.kind, item.detail, ())  # its kind may have none
        checks = new if new is not None else () if none else compiled(item) if again else checks_of(item)
        if again and not checks:
            raise UsageError(f"The text of {name} does not compile to a check; write one with --set.")
        checks = in_mode(checks, mode) if mode else checks
        if trial:
            show_trial(terminal, ws, _with(item, checks), paths or ())
            return
        changes = bool(given or mode or none or again)
        if changes:
            item = set_checks(ws.engine, name, checks, ws.settings.actor)
    if changes:
        show_items(terminal, [item])
    elif terminal.json:
        terminal.document({"id": name, "text": item.text, "checks": checks_of(item)})
    elif checks:
        terminal.show(as_shown(name, item.text, checks))
    else:
        terminal.show(f"{name} has no check: it is only shown.")


def read_checks(path: str) -> tuple[Check, ...]:
    """Read checks from a YAML file; ``-`` is stdin.

    Raises:
        UsageError: The file cannot be read, or does not describe checks.
    """
    try:
        data = sys.stdin.read(MAX_CHECK_BYTES + 1).encode() if path == "-" else Path(path).read_bytes()
        text = data.decode()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"Cannot read {path!r} as text: {why}.") from error
    if len(data) > MAX_CHECK_BYTES:
        raise UsageError(f"{path}: a file of checks has at most {MAX_CHECK_BYTES:,} bytes.")
    return parse_checks(text, "stdin" if path == "-" else path)


def as_shown(name: str, text: str, checks: Sequence[Check]) -> str:
    """Return the checks of a rule as YAML, below the rule and the model that wrote them."""
    authors = dict.fromkeys(one_line(check.written_by) for check in checks if check.written_by)
    by = f"# Written by {', '.join(authors)}.\n" if authors else ""
    return f"# {name}: {one_line(text)}\n{by}{format_checks(checks)}".rstrip()


def in_mode(checks: Sequence[Check], mode: str) -> tuple[Check, ...]:
    """Return checks in another mode; by that, the user adopts those that a model wrote.

    Raises:
        UsageError: The mode does not exist, or there are no checks.
    """
    if mode not in MODES:
        raise UsageError(f"Unknown mode {mode!r}. Choose from {', '.join(MODES)}.")
    if not checks:
        raise UsageError("It has no check, so it has no mode; write one with --set.")
    return tuple(
        msgspec.structs.replace(check, mode=mode, by_hand=check.by_hand or bool(check.written_by))
        for check in checks
    )


def _with(item: MemoryItem, checks: Sequence[Check]) -> MemoryItem:
    return msgspec.structs.replace(item, detail=with_checks(item.kind, item.detail, checks))


def show_trial(terminal: Terminal, ws: Workspace, item: MemoryItem, paths: Sequence[str] = ()) -> None:
    """Show what the checks of an item would have stopped."""
    trial = try_checks(ws.engine, item, paths)
    if terminal.json:
        terminal.document(trial)
        return
    shown = trial.findings[:MOST_FINDINGS]
    if shown:
        mixed = len({one.mode for one in trial.findings}) > 1
        columns = ("", "where", "why", *["mode"] * mixed)
        terminal.show(table(*columns, rows=[_row(one)[: len(columns)] for one in shown]))
    if (more := len(trial.findings) - len(shown)) > 0:
        terminal.show(f"and {more:,} more: --json shows all.")
    terminal.show(trial.summary)


def _row(one: TrialFinding) -> tuple[str | Text, ...]:
    where = shorten(one_line(one.where)) if one.what in ("command", "answer") else one.where
    place = f"{where}:{one.line}" if one.line and one.what in ("file", "write") else where
    what = f"{one.what} {one.seq}" if one.seq else one.what
    return Text(what, "dim"), place, one_line(one.reason), one.mode
