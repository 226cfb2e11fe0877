"""Proposals from files of rules for display, and one screen on which a person accepts them."""

import re
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from agentx.cli.terminal import Terminal, counted, table
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import WOULD_END, MemoryItem, would_change
from agentx.workspace import Workspace

_ASK = "Accept which?  a all · 1,3-5 these · n none, reject all · Enter later  "


def proposed_table(items: Sequence[MemoryItem], *, numbered: bool = False) -> Table:
    """Return proposals as a table: what each would do, its words, and its file and line."""
    rows = [
        [Text(str(number), "bold")] * numbered
        + [
            Text(item.id, "cyan"),
            Text(_effect(item), "yellow" if would_change(item) else "green"),
            Text.assemble(one_line(item.text), "\n", (_place(item), "dim")),
        ]
        for number, item in enumerate(items, start=1)
    ]
    return table(*["no."] * numbered, "id", "would be", "what, and where", rows=rows)


def _effect(item: MemoryItem) -> str:
    if about := would_change(item):
        return f"end of {about.target}" if about.relation == WOULD_END else f"new text of {about.target}"
    return item.kind


def _place(item: MemoryItem) -> str:
    paths = f" · in {', '.join(item.scope.paths)}" if item.scope.paths else ""
    return one_line(f"{item.reason}{paths}")


def review_together(terminal: Terminal, ws: Workspace, items: Sequence[MemoryItem]) -> int:
    """Ask once about proposals from files; return how many were settled."""
    terminal.show(proposed_table(items, numbered=True))
    while True:
        terminal.out.print(Text(_ASK, "bold"), end="")
        try:
            answer = input().strip().lower()
        except EOFError:
            answer = ""
        try:
            chosen = picked(answer, len(items))
            break
        except UsageError as error:
            terminal.note(str(error))
    for number, item in enumerate(items):
        if chosen is not None and (number in chosen or answer == "n"):
            ws.review(item.id, accept=number in chosen)
    count = len(items) if answer == "n" else len(chosen or ())
    accepted = 0 if answer == "n" else count
    left = len(items) - count
    terminal.show(
        Text(f"{counted(accepted, 'proposal')} accepted, {count - accepted} rejected, {left} left.\n", "dim")
    )
    return count


def picked(answer: str, count: int) -> set[int] | None:
    """Return which of ``count`` proposals an answer accepts, from 0; ``None`` for later.

    Raises:
        UsageError: The answer is none of those that are offered.

    >>> sorted(picked("1,3-4", 5)), picked("", 5), picked("n", 5)
    ([0, 2, 3], None, set())
    """
    if answer in ("", "q", "s"):
        return None
    if answer in ("a", "n"):
        return set(range(count)) if answer == "a" else set()
    chosen: set[int] = set()
    for part in re.split(r"[,\s]+", answer):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= count:
            raise UsageError(f"{part!r} is not a number from 1 to {count}, nor a, n or Enter.")
        chosen.update(range(first - 1, last))
    return chosen
