"""``agentx say``: talk to the agents without starting a run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import as_json, opened
from agentx.cli.terminal import Terminal
from agentx.history.status import followed
from agentx.storage.events.types import Event
from agentx.storage.text import encodable, one_line, shorten
from agentx.synthesis.attribution.copies import Copied
from agentx.synthesis.memory.items import MemoryItem, checks_of, ending, sort_of, status_in_words
from agentx.workspace import Workspace

_QUOTED_WORDS = 8
_ENDED = ("closed", "retired")


def read_text(terminal: Terminal, message: str) -> str:
    """Return a message; `-` reads it from stdin."""
    return encodable(terminal.stdin.read() if message == "-" else message)


def say(
    terminal: Terminal,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help="Your message; '-' reads stdin.")
    ],
) -> None:
    """Say something to the agents, without starting a run; the answer is what was made of it.

    Demands, decisions and facts that are explicit are active at once. Doubtful ones are candidates.
    """
    with opened(terminal) as ws:
        message = read_text(terminal, text)
        event = ws.say(message, key=terminal.key)
        news = noted(ws, event)
        copied = ws.engine.heard.at(ws.state).copied(message)
        beside = contrary(ws, news)
    made = _made_of(event, news)
    recorded = Text.assemble((f"{event.seq}  ", "dim"), made)
    told = {name: value for name, value in as_json(event).items() if value != terminal.key}
    terminal.result({"event": told, "made": made, "memory": news}, recorded, *map(shown, news))
    for sentence in (*beside, *copies(message, copied, news)):
        terminal.note(sentence)


def copies(message: str, copied: Copied, news: Iterable[MemoryItem]) -> Iterator[str]:
    """Yield what became of words that an agent or a tool wrote before."""
    for one in copied.quotations:
        begins = shorten(one_line(message[one.start : one.end]), _QUOTED_WORDS)
        yield (
            f"“{begins}” stands in what an agent or a tool wrote before, so it is read as a quotation. "
            'If it is what you want, add it: `agentx memory add "…"`.'
        )
    if copied.doubtful and any(item.status == "candidate" for item in news):
        yield "What an agent or a tool wrote before you is a candidate until you review it."


def contrary(ws: Workspace, news: Iterable[MemoryItem]) -> list[str]:
    """Return a sentence for each rule of a followed workspace to which something new is contrary."""
    new = {item.id for item in news}
    found = [one for one in followed(ws.engine.following.current(), ws.state) if one.gave_way or one.contrary]
    return [
        *(
            f"{name} gives way to {own} here."
            for one in found
            for name, own in one.gave_way.items()
            if own in new
        ),
        *(
            f"{own} is contrary to {name}, which stays in force: it can only be changed in {one.name}."
            for one in found
            for name, own in one.contrary.items()
            if own in new
        ),
    ]


def noted(ws: Workspace, event: Event) -> list[MemoryItem]:
    """Return what an event added to or changed in memory."""
    return [item for item in ws.memory(status=None) if item.changed_seq > event.seq]


def _made_of(event: Event, news: Sequence[MemoryItem]) -> str:
    """Return in one line what was made of a message."""
    said = [item for item in news if any(place.seq == event.seq for place in item.evidence)]
    groups = {
        "Active": [item.id for item in said if item.status == "active"],
        "Candidate": [item.id for item in said if item.status == "candidate"],
        "Ended": [item.id for item in news if item.status in _ENDED and ending(item) != "lapsed"],
        "Perhaps ended": [item.id for item in news if _doubted(item, event)],
    }
    made = (f"{name}: {', '.join(names)}." for name, names in groups.items() if names)
    return " ".join(made) or "Kept as conversation only."


def _doubted(item: MemoryItem, event: Event) -> bool:
    return any(place.seq == event.seq for place in item.perhaps_ended_by)


def shown(item: MemoryItem) -> Text:
    """Return a line about an item that was added or changed."""
    mark, colour = ("+", "yellow") if item.status in ("active", "candidate") else ("✓", "green")
    hint = {"active": "", "candidate": "  (candidate: agentx memory review)"}.get(
        item.status, f"  {status_in_words(item)}"
    )
    return Text.assemble(
        (f"{mark} {sort_of(item).replace('_', ' ')} ", colour),
        (f"{item.id}  ", "dim"),
        one_line(item.text),
        ("  checked" if checks_of(item) else "", "green"),
        (hint, "dim"),
    )
