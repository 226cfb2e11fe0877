"""``agentx memory explain``: how a message is read, part by part, and why; nothing is recorded."""

import sys
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, panel, table
from agentx.storage.errors import UsageError
from agentx.storage.events.types import UserMessageSent
from agentx.storage.text import encodable, one_line, plain
from agentx.synthesis.demands.explanation import MessagePart, Verdict, explain

_COLOURS: dict[Verdict, str] = {
    "active": "bold green",
    "proposed": "bold yellow",
    "changes": "bold red",
    "ends": "bold red",
    "left": "",
    "material": "dim",
}
_WORDS: dict[Verdict, str] = {
    "active": "captured",
    "proposed": "proposed",
    "changes": "may change a rule",
    "ends": "may end a rule",
    "left": "left alone",
    "material": "not yours",
}
_EXCERPT = 60


def explain_message(
    terminal: Terminal,
    text: Annotated[
        str, typer.Argument(metavar="MESSAGE", show_default=False, help="Any message; '-' reads stdin.")
    ] = "",
    event: Annotated[int, typer.Option(metavar="SEQ", help="Event number of a recorded message.")] = 0,
) -> None:
    """Show what would be captured from a message, proposed and left alone, and why; records nothing."""
    if bool(text) == bool(event):
        raise UsageError("Give a message, or --event with its number; `agentx log` shows the numbers.")
    message = _recorded(terminal, event) if event else encodable(sys.stdin.read() if text == "-" else text)
    parts = explain(message)
    if terminal.json:
        terminal.document(parts)
        return
    whole = Text(plain(message).rstrip())
    if len(whole) == len(message.rstrip()):  # nothing was stripped, so the offsets still match
        for part in parts:
            whole.stylize(_COLOURS[part.verdict], part.start, part.end)
    title = Text(f"event {event}" if event else "the message", "dim")
    terminal.show(panel(whole, title=title, width=terminal.out.width))
    room = min(_EXCERPT, terminal.out.width // 3)  # leave room for the reason
    rows = [_row(part, message, room) for part in parts]
    terminal.show(table("what", "becomes", "", "why", rows=rows) if rows else "The message is empty.")


def _recorded(terminal: Terminal, seq: int) -> str:
    with opened(terminal) as ws:
        found = next(iter(ws.events(seq - 1)), None) if seq > 0 else None
        if found is None or found.seq != seq or not isinstance(found.data, UserMessageSent):
            raise UsageError(f"Event {seq} is not a user's message; see `agentx log`.")
        return ws.read_body(found.data.body)


def _row(part: MessagePart, message: str, room: int) -> tuple[Text | str, ...]:
    words = one_line(message[part.start : part.end])
    shown = words if len(words) <= room else words[: room - 1] + "…"
    return shown, Text(_WORDS[part.verdict], _COLOURS[part.verdict]), part.kind, one_line(part.why)
