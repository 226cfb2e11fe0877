"""``agentx done`` inside a run: what a program reports, through the run's process or without it."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.text import Text

from agentx.cli.terminal import Terminal
from agentx.directing.act_reports import ALREADY, DONE, ActReports, RunFile
from agentx.directing.act_socket import RUN_FILE
from agentx.directing.report_act import NOBODY, ask, carry_out, parted
from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.workspace import Workspace


def report(terminal: Terminal, place: str, words: Sequence[str]) -> int:
    """Report an act, and return the exit status.

    Args:
        terminal: Where to print.
        place: Directory of the run's socket.
        words: The arguments of ``agentx done``.

    Raises:
        UsageError: The run has ended, so nothing more belongs to it.
    """
    act, command = parted(words)
    if command is not None:
        environ = {**terminal.settings.environ, **terminal.settings.keys}
        status, text = carry_out(lambda told: _tell(terminal, place, told), act, command, environ)
        if text:
            terminal.fail(text)
        return status
    status, text = _tell(terminal, place, words)
    if status in (DONE, ALREADY):
        terminal.show(*([Text(plain(text))] if text else []))
    else:
        terminal.fail(text)
    return status


def _tell(terminal: Terminal, place: str, words: Sequence[str]) -> tuple[int, str]:
    status, text = ask(place, words)
    if status != NOBODY:
        return status, text
    try:  # the process of the run was killed, and the program goes on
        run = msgspec.json.decode(Path(place, RUN_FILE).read_bytes(), type=RunFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError("The run has ended; nothing was recorded.") from error
    with Workspace.open(run.root, settings=terminal.settings) as ws:
        reports = ActReports(ws.engine, run.occasion, run.actor)
        return reports.command([word.encode(errors="surrogateescape") for word in words])
