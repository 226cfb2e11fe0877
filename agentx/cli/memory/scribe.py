"""``agentx memory scribe``: process pending notes, and show the backlog."""

import time
from contextlib import suppress
from typing import Annotated

import typer

from agentx.cli.memory.check_writing import show_written
from agentx.cli.memory.review import say_left, show_judged
from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, minute
from agentx.memory.model_extraction import combined
from agentx.memory.note_taking import Pending, ScribeRun
from agentx.storage.errors import UsageError

_LOOK_S = 0.5


def scribe(
    terminal: Terminal,
    *,
    pending: Annotated[bool, typer.Option("--pending", help="Only show how much is not yet read.")] = False,
    due: Annotated[
        bool, typer.Option("--due", help="Run only if a run is due, within scribe.active_hours (for cron).")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep running, until Ctrl-C.")] = False,
) -> None:
    """Extract notes from what happened since the last run: by code, and by the configured model."""
    if pending + due + keep > 1:
        raise UsageError("Choose one of --pending, --due and --keep.")
    with opened(terminal) as ws:
        if pending:
            _show_pending(terminal, ws.scribe.pending())
        elif keep:
            terminal.note("The scribe is running; stop it with Ctrl-C.")
            with ws.scribe.keeping(), suppress(KeyboardInterrupt):
                while True:
                    time.sleep(_LOOK_S)
        elif due and not ws.scribe.pending().due:
            _show_ran(terminal, ScribeRun(left=ws.scribe.pending().messages), ws.scribe.model)
        else:
            with terminal.progress() as progress:
                ran = ws.scribe.run(timeout_s=None if due else ws.config.limits.max_time_s, progress=progress)
            _show_ran(terminal, ran, ws.scribe.model)


def _show_pending(terminal: Terminal, pending: Pending) -> None:
    unread = f"{counted(pending.messages, 'message')} not read"
    if pending.since:
        unread += f", the first of {minute(pending.since)}"
    following = "not due yet (scribe.every_minutes)" if pending.active else "outside the active hours"
    if not pending.messages or not pending.model:
        following = "nothing to do"
    elif pending.due:
        following = "due now: `agentx memory scribe`"
    rows = [
        ("by code", "up to date" if not pending.events else f"{pending.events} events not read"),
        ("by a model", unread if pending.messages else "up to date"),
        ("model", pending.model or "none is configured, so notes come from code only"),
        ("last read", minute(pending.last_read) or "never"),
        ("next run", following),
    ]
    terminal.result(pending, facts(rows))


def _show_ran(terminal: Terminal, ran: ScribeRun, model: str) -> None:
    if terminal.json:
        terminal.document(ran)
        return
    show_judged(terminal, combined(ran.judged))
    if ran.judged:
        count = len(ran.items)
        noted = f"{counted(count, 'item')} noted or changed" if count else "nothing to note"
        terminal.show(f"{model or 'The model'} read {counted(ran.messages, 'message')}: {noted}.")
        show_written(terminal, ran.written)
        say_left(terminal, ran)
        return
    waiting = f"{counted(ran.left, 'message')} wait{'s' * (ran.left == 1)}"
    if not ran.left:
        terminal.show("The notes are up to date.")
    elif not model:
        terminal.show(f"The notes by code are up to date. No model is configured; {waiting} for one.")
    else:
        terminal.show(f"No run is due; {waiting}: `agentx memory scribe --pending`.")
