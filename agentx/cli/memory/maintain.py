"""``agentx memory maintain``: run nightly memory maintenance, and show what happened to each rule and why."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, table
from agentx.memory.maintenance import Maintained, undo
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, shorten
from agentx.synthesis.learning.maintenance_plan import Done, What
from agentx.synthesis.memory.items import MemoryItem

_CHANGES: dict[What, tuple[str, str]] = {
    "promoted": ("promoted", "bold green"),
    "woken": ("woken", "green"),
    "stronger": ("stronger", "green"),
    "merged": ("merged", "cyan"),
    "proposed": ("perhaps the same", "yellow"),
    "faded": ("passed over", "yellow"),
    "asleep": ("asleep", "yellow"),
    "retired": ("retired", "red"),
    "archived": ("laid aside", "dim"),
    "used": ("recalled", "dim"),
}
"""Word and colour for each kind of change, in the order of the output."""

_MOST = 12
"""Maximum number of items listed for each kind of change; JSON has all of them."""


def maintain(
    terminal: Terminal,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    back: Annotated[
        bool, typer.Option("--undo", help="Undo the latest maintenance; repeat for earlier ones.")
    ] = False,
) -> None:
    """Run the nightly maintenance of memory for each night since the last time.

    Rules that tasks passed over fade, near-duplicates are merged, lessons that may be rules become rules,
    and resolved items are retired. A second run on the same day does nothing more.
    """
    if dry_run and back:
        raise UsageError("--dry-run and --undo exclude each other.")
    with opened(terminal) as ws:
        if not back:
            done = ws.maintain(dry_run=dry_run)
            if terminal.json:
                terminal.document({"dry_run": dry_run, "maintained": done})
            else:
                _show(terminal, done, dry_run=dry_run)
            return
        items = undo(ws.engine, terminal.settings.actor)
    rows = [
        (Text(item.id, "cyan"), item.kind, item.status, f"{item.score:g}", one_line(shorten(item.text)))
        for item in items
    ]
    restored = table("id", "kind", "status", "score>", "what", rows=rows)
    terminal.result(items, Text(items[0].reason, "bold"), "", restored)


def _show(terminal: Terminal, done: Maintained, *, dry_run: bool) -> None:
    found = done.upkeep
    counts = Counter(one.what for one in found.done)
    since = f" since {found.since[:10]}" if found.since else ""
    changes = ", ".join(f"{counts[what]} {words}" for what, (words, _) in _CHANGES.items() if counts[what])
    nights = f"{found.nights or 'No'} night{'s' * (found.nights != 1)}{since}"
    dry = " (dry run: nothing was changed)" if dry_run else ""
    terminal.show(Text(f"{nights}: {changes or 'nothing to change'}{dry}.", "bold"))
    if rows := _rows(found.done):
        terminal.show("", table("id", "what", "score>", "text, and why", rows=rows))
    for number, one in enumerate(done.advice):
        gap = "\n" * (not number)
        do = (f"{one.action} it", "yellow")
        terminal.show(Text.assemble(gap, "Flow ", (one.item, "cyan"), ": ", do, f", {one_line(one.why)}."))
    asleep = f", {done.dormant} asleep" if done.dormant else ""
    critical = f" ({done.critical} critical)" if done.critical else ""
    rules = f"Rules: {done.active} active{critical}{asleep}."
    if done.events and found.changes:
        numbers = (
            f"Event {done.events[0]}"
            if len(done.events) == 1
            else f"Events {done.events[0]} to {done.events[-1]}"
        )
        rules += f" {numbers}; `agentx memory maintain --undo` undoes it."
    terminal.show(Text(f"\n{rules}" if rows or done.advice else rules, "dim"))


def _rows(done: Sequence[Done]) -> list[tuple[Text, ...]]:
    rows: list[tuple[Text, ...]] = []
    for what, (words, colour) in _CHANGES.items():
        of_it = [one for one in done if one.what == what]
        if what == "used":
            continue
        for one in of_it[:_MOST]:
            before, after = one.score, one.item.score
            score = f"{after:g}" if before == after else f"{before:g} → {after:g}"
            score = "" if what in ("merged", "archived") else score
            rows.append((Text(one.item.id, "cyan"), Text(words, colour), Text(score), _words(one.item)))
        if more := of_it[_MOST:]:
            rows.append((Text(""), Text(words, colour), Text(""), Text(f"and {len(more)} more", "dim")))
    return rows


def _words(item: MemoryItem) -> Text:
    return Text.assemble(
        one_line(shorten(item.text)), *([("\n" + one_line(item.reason), "dim")] * bool(item.reason))
    )
