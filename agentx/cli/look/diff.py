"""``agentx diff`` and ``agentx bisect``: what changed between two moments, and which event caused it."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from agentx.cli.opened import MOMENT, opened
from agentx.cli.terminal import Terminal, table
from agentx.history.bisect import Cause, Trace
from agentx.history.diff import Difference, FieldDiff, FileDiff
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, one_line, plain, shorten

BAR = 24
"""Width of the bar beside a file's line counts."""

_QUOTE_WORDS = 30
_FILE_MARKS = {
    "added": ("+", "green"),
    "changed": ("～", "yellow"),
    "moved": ("→", "cyan"),
    "deleted": ("－", "red"),
}
_ITEM_MARKS = {
    "came": ("+", "green"),
    "changed": ("～", "yellow"),
    "ended": ("－", "red"),
    "came and ended": ("±", "dim"),
}
_LINES = {"+": "green", "-": "red", "@": "cyan"}


def diff(
    terminal: Terminal,
    first: Annotated[
        str,
        typer.Argument(
            metavar="[A]", help=f"First moment: {MOMENT}; by default the start of the latest turn."
        ),
    ] = "",
    last: Annotated[str, typer.Argument(metavar="[B]", help="Second moment; now by default.")] = "",
    *,
    patch: Annotated[bool, typer.Option("--patch", "-p", help="Also show changed lines.")] = False,
) -> None:
    """Show what changed between two moments, in files and in memory."""
    with opened(terminal, look=not last) as ws:
        made = ws.diff(encodable(first) or None, encodable(last) or None, patches=patch or terminal.json)
    if terminal.json:
        terminal.document(made)
        return
    if not made.files and not made.items:
        terminal.show(f"No difference between event {made.first} and event {made.last}.")
        return
    terminal.show(_head(made))
    if made.files:
        terminal.show("", _files(made.files))
    if made.items:
        terminal.show("", _items(made))
    for file in made.files if patch else ():
        terminal.show("", _patch(file))


def _head(made: Difference) -> Text:
    times = f"{_time(made.first_at) or 'the beginning'} to {_time(made.last_at)}"
    added, removed = sum(file.added for file in made.files), sum(file.removed for file in made.files)
    return Text.assemble(
        (f"event {made.first} → {made.last}", "bold"), (f"  {times}  ", "dim"), *_counts(added, removed)
    )


def _time(at: str) -> str:
    return f"{at[:10]} {at[11:19]}".strip()


def _counts(added: int, removed: int) -> list[tuple[str, str] | str]:
    parts: list[tuple[str, str] | str] = [(f"+{added:,}", "green")] if added else []
    parts += [" "] if added and removed else []
    return parts + ([(f"−{removed:,}", "red")] if removed else [])


def _files(files: tuple[FileDiff, ...]) -> Table:
    most = max(file.added + file.removed for file in files)
    rows = [
        (
            Text(*_FILE_MARKS[file.what]),
            one_line(f"{file.old_path} → {file.path}" if file.old_path else file.path),
            Text.assemble(*_counts(file.added, file.removed)),
            Text.assemble(*_bar(file, most), (_remarks(file), "dim")),
        )
        for file in files
    ]
    return table("", "artifacts", "lines>", "", rows=rows)


def _bar(file: FileDiff, most: int) -> Iterator[tuple[str, str]]:
    scale = min(1.0, BAR / most) if most else 0.0
    for count, sign, style in ((file.added, "+", "green"), (file.removed, "−", "red")):
        if count:
            yield sign * max(1, int(count * scale)), style


def _remarks(file: FileDiff) -> str:
    """Return what line counts do not show: a missing content, binary sizes, a new mode."""
    if file.missing:
        return "one version is no longer stored"
    sizes = f"binary, {file.old_bytes:,} → {file.new_bytes:,} bytes" if file.binary else ""
    return ", ".join(part for part in (sizes, f"now {file.mode}" if file.mode else "") if part)


def _items(made: Difference) -> Table:
    rows: list[tuple[Text | str, ...]] = []
    for item in made.items:
        ended = item.status if item.what in ("ended", "came and ended") or item.status == "candidate" else ""
        text = Text.assemble(one_line(item.text), (f"  {ended}" if ended else "", "dim"))
        rows.append((Text(*_ITEM_MARKS[item.what]), Text(item.id, "cyan"), item.kind.replace("_", " "), text))
        rows += [
            ("", "", "", _field(field)) for field in item.fields if not (ended and field.name == "status")
        ]
    return table("", "memory", "kind", "what", rows=rows)


def _field(field: FieldDiff) -> Text:
    old, new = one_line(field.old) or "nothing", one_line(field.new) or "nothing"
    return Text.assemble((f"  {field.name}: ", "dim"), (old, "red"), (" → ", "dim"), (new, "green"))


def _patch(file: FileDiff) -> Text:
    if not file.patch:
        return Text(f"{one_line(file.path)}: {_remarks(file) or 'the same lines'}", "dim")
    shown = Text()
    for number, line in enumerate(plain(file.patch).splitlines()):
        style = "bold" if number < 2 else _LINES.get(line[:1], "")  # noqa: PLR2004 - two lines of names
        shown.append(f"{line}\n", style)
    shown.rstrip()
    return shown


def bisect(
    terminal: Terminal,
    item: Annotated[
        str, typer.Option(metavar="ID", help="A memory item, from `agentx memory list --all`.")
    ] = "",
    path: Annotated[str, typer.Option(help="A file of the artifacts, existing or deleted.")] = "",
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Every event that changed it, not only the last.")
    ] = False,
) -> None:
    """Find the event that made an item or a file what it is, with its causes back to the user's message."""
    if bool(item) == bool(path):
        raise UsageError("Give either `--item ID` or `--path PATH`.")
    with opened(terminal, look=bool(path)) as ws:
        trace = ws.bisect(encodable(item), path=encodable(path), every=every)
    if terminal.json:
        terminal.document(trace)
        return
    terminal.show(_tree(trace))
    if trace.changes > len(trace.steps):
        terminal.note(f"The last of {trace.changes} changes; `--all` shows each.", "·")


def _tree(trace: Trace) -> Tree:
    head = Text(one_line(trace.path), "bold cyan")
    if trace.item:
        kind = trace.item.kind.replace("_", " ")
        head = Text.assemble(
            (trace.item.id, "bold cyan"),
            (f"  {kind} · {trace.item.status}\n", "dim"),
            one_line(trace.item.text),
        )
    tree = Tree(head, guide_style="dim")
    for step in trace.steps:
        link = "made by " if step.made else "changed by "
        head = _event(step.event, link, described=not step.fields)
        node = tree.add(Text("\n").join([head, *map(_field, step.fields)]))
        for cause in step.causes:
            node = node.add(_event(cause, "because "))
    return tree


def _event(cause: Cause, link: str, *, described: bool = True) -> Text:
    text = one_line(cause.told).removeprefix(f"{cause.actor} ")
    if cause.quote:
        quote = shorten(one_line(cause.quote), _QUOTE_WORDS)
        text = f"said “{quote}”" if cause.type.endswith("MessageSent") else f"{text}: “{quote}”"
    return Text.assemble(
        (link, "dim"),
        (f"event {cause.seq}", "bold"),
        (f"  {_time(cause.at)}  ", "dim"),
        (one_line(cause.actor), "cyan" if cause.actor.startswith("user") else ""),
        f"  {text}" if described else "",
        (f"  {cause.commit[:7]}" if cause.commit else "", "yellow"),
    )
