"""The state of a pipeline in a terminal: a grid of stages by items if it fits, otherwise counts."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from difflib import unified_diff
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentx.cli.terminal import facts
from agentx.pipelines.board import Board, BoardRow, Cell, Mark
from agentx.storage.text import one_line, plain, shorten

_MARKS: dict[Mark, tuple[str, str]] = {
    "waiting": ("·", "bright_black"),
    "running": ("▶", "cyan"),
    "proved": ("✓", "green"),
    "not_passed": ("!", "bold yellow"),
    "again": ("↻", "yellow"),
    "asks": ("?", "bold yellow"),
    "failed": ("✗", "bold red"),
    "left-out": (" ", "dim"),
}
_MOVING: tuple[Mark, ...] = ("running", "again", "asks", "failed", "not_passed")
_STATUS = {"COMPLETED": "green", "RUNNING": "cyan", "FAILED": "red"}

_CELL_COLUMNS = 5
"""Width of a cell: a mark, with its seconds or its round."""

_NAME_COLUMNS, _BAR_COLUMNS = 24, 24
_NAMED, _FEW_NAMED = 6, 2
"""Maximum number of working agents, and of failures, to name; and the same below approvals."""

_REASON_WORDS, _FEW_WORDS = 40, 9
"""Maximum number of words of a reason, and of each of several."""

_ASKS_SHOWN, _LINES_SHOWN, _LINES_OF_MANY = 3, 12, 3
"""Maximum number of approvals shown, of changed lines of a single one, and of changed lines of several: with
the counts of some stages, they fit a screen of 24 lines.
"""

_DIFF_HEADS = ("---", "+++", "@@")

ReadBlob = Callable[[str], str]


def shown(board: Board, width: int, now: datetime, read: ReadBlob | None = None) -> Group:
    """Return the state of a pipeline at a time in UTC, within a width in columns.

    ``read`` returns the text of a content id, for the changes that a person is asked to approve.
    """
    names = min(max(len(name) for row in board.rows for name in (row.stage, row.for_each)), _NAME_COLUMNS) + 1
    parts: list[RenderableType] = [*_heading(board, width, now), Text()]
    if read is not None:
        parts += _asked(board, read)
    for (for_each, missing), rows in groupby(board.rows, key=lambda row: (row.for_each, row.open)):
        if missing:
            parts.append(_not_known(list(rows), for_each, missing, names))
            continue
        items = board.items[for_each] if for_each else ("",)
        wide = max(_CELL_COLUMNS, *(len(item) + 1 for item in items))
        if names + wide * len(items) <= width:
            parts.append(_grid(list(rows), for_each, items, names, wide, now))
        else:
            parts.append(_counts(list(rows), for_each, len(items), names))
    if named := list(_named(board, now, asked=read is not None)):
        parts += [Text(), facts(named)]
    return Group(*parts)


def _asked(board: Board, read: ReadBlob) -> Iterator[RenderableType]:
    """Yield what a person is asked to approve: how, and what changed since they last did."""
    cells = [cell for row in board.rows for cell in row.cells if cell.calls]
    left = _LINES_SHOWN if len(cells) == 1 else _LINES_OF_MANY
    for cell in cells[:_ASKS_SHOWN]:
        yield Text.assemble(("? ", "bold yellow"), (cell.key, "bold"), f"  agentx approve {cell.calls[0]}")
        for path, blob in cell.shown.items():
            if not left or cell.before.get(path) == blob:
                continue
            old, new = (read(one).splitlines() if one else [] for one in (cell.before.get(path, ""), blob))
            yield Text(f"  {plain(path)}{'' if path in cell.before else '  new'}", "dim")
            lines = unified_diff(old, new, n=0, lineterm="")
            changed = [line for line in lines if line[1:].strip() and not line.startswith(_DIFF_HEADS)]
            for line in changed[:left]:
                yield Text(f"  {plain(line)}", "green" if line.startswith("+") else "red")
            if len(changed) > left:
                yield Text(f"  … and {len(changed) - left:,} more lines", "dim")
            left = max(left - len(changed), 0)
    if len(cells) > _ASKS_SHOWN:
        more = f"and {len(cells) - _ASKS_SHOWN:,} more wait for you: agentx pipeline status --json names them"
        yield Text(more, "yellow")
    if cells:
        yield Text()


def _heading(board: Board, width: int, now: datetime) -> Iterator[RenderableType]:
    title = Text.assemble((plain(board.title or board.pipeline), "bold"), "  ")
    colour = "yellow" if board.not_passed else _STATUS.get(board.status, "yellow")
    title.append(board.status or "NOT STARTED", colour)
    named = any(cell.mark in {"failed", "not_passed"} for row in board.rows for cell in row.cells)
    if board.reason and not (named and board.status in {"FAILED", "COMPLETED"}):
        title.append(f"  {shorten(one_line(plain(board.reason)), _REASON_WORDS)}", "dim")
    yield title
    yield _bar(board.proved, board.steps, min(width, 60))
    lasted = ""
    if board.started_at:
        end = datetime.fromisoformat(board.ended_at) if board.ended_at else now
        lasted = _seconds((end - datetime.fromisoformat(board.started_at)).total_seconds())
    figures = [
        f"{board.proved:,} of {board.steps:,} proved",
        f"{board.not_passed:,} with the verdict FAIL" if board.not_passed else "",
        f"{board.found:,} of them with files that were there" if board.found else "",
        f"{board.dispatches:,} dispatch{'es' * (board.dispatches != 1)}",
        f"{board.retries:,} not accepted" if board.retries else "",
        f"{len(board.incidents):,} incident{'s' * (len(board.incidents) != 1)}" if board.incidents else "",
        f"{board.tokens:,} tokens" if board.tokens else "",
        f"${board.cost_usd:.4f}" if board.cost_usd else "",
        lasted,
    ]
    yield Text(" · ".join(filter(None, figures)), "dim")


def _bar(done: int, of: int, width: int) -> Text:
    full = width * done // max(of, 1)
    return Text.assemble(("━" * full, "green"), ("─" * (width - full), "bright_black"))


def _seconds(seconds: float) -> str:
    """Format a duration, short enough for a cell.

    >>> _seconds(12.7), _seconds(95), _seconds(7300)
    ('12s', '1m', '2h')
    """
    whole = max(0, int(seconds))
    minute, hour = 60, 3600
    if whole < minute:
        return f"{whole}s"
    return f"{whole // minute}m" if whole < hour else f"{whole // hour}h"


def _name(row: BoardRow, names: int) -> Text:
    name = Text(plain(row.stage))
    name.truncate(names - 1, overflow="ellipsis")
    return name


def _table(names: int) -> Table:
    made = Table(box=None, pad_edge=False, padding=0, show_header=False)
    made.add_column(no_wrap=True, width=names, overflow="ellipsis")
    return made


def _grid(
    rows: list[BoardRow], for_each: str, items: tuple[str, ...], names: int, wide: int, now: datetime
) -> Table:
    """Return stages by items, with a mark for each."""
    made = _table(names)
    for _ in items:
        made.add_column(no_wrap=True, width=wide)
    if for_each:
        made.add_row(Text(for_each, "dim"), *(Text(item, "dim") for item in items))
    for row in rows:
        made.add_row(_name(row, names), *(_cell(cell, now) for cell in row.cells))
    return made


def _not_known(rows: list[BoardRow], for_each: str, missing: str, names: int) -> Table:
    """Return stages whose items are not known yet."""
    made = _table(names)
    made.add_column()
    made.add_row(Text(for_each, "dim"), Text(f"{missing}: not known yet", "dim"))
    for row in rows:
        made.add_row(_name(row, names), Text("·", "bright_black"))
    return made


def _cell(cell: Cell, now: datetime) -> Text:
    mark, style = _MARKS[cell.mark]
    shown = Text(mark, style)
    if cell.mark == "running":
        shown.append(_since(cell, now), style)
    elif cell.round > 1:
        shown.append(str(cell.round), "dim")
    return shown


def _since(cell: Cell, now: datetime) -> str:
    return _seconds((now - datetime.fromisoformat(cell.since)).total_seconds())


def _counts(rows: list[BoardRow], for_each: str, items: int, names: int) -> Table:
    """Return, for each stage, the number of items in each state."""
    made = _table(names)
    made.add_column(width=_BAR_COLUMNS + 2)
    made.add_column(justify="right", no_wrap=True)
    for _ in _MOVING:
        made.add_column(no_wrap=True)
    made.add_row(Text(for_each, "dim"), "", Text(f"of {items:,}", "dim"))
    for row in rows:
        counted = Counter(cell.mark for cell in row.cells)
        others = [(counted[name], mark, style) for name, (mark, style) in _MARKS.items() if name in _MOVING]
        cells = [Text(f"  {mark} {number:,}" if number else "", style) for number, mark, style in others]
        proved = counted["proved"] + counted["not_passed"]
        made.add_row(_name(row, names), _bar(proved, items, _BAR_COLUMNS), f"{proved:,}", *cells)
    return made


def _named(board: Board, now: datetime, *, asked: bool) -> Iterator[tuple[str, Text]]:
    """Yield the agents at work, then the steps that failed or ask; of many, only their number.

    With ``asked``, those that ask were shown before.
    """
    cells = [cell for row in board.rows for cell in row.cells]
    for marks, more in ((("running",), " more at work"), (("asks", "failed", "not_passed"), " more")):
        found = [cell for cell in cells if cell.mark in marks and not (asked and cell.calls)]
        named = found[: _FEW_NAMED if any(cell.calls for cell in cells) else _NAMED]
        for cell in named:
            mark, style = _MARKS[cell.mark]
            again, since = f", round {cell.round}" if cell.round > 1 else "", ""
            if cell.mark == "running":
                since = f"  {_since(cell, now)}"
            else:
                words = _REASON_WORDS if len(found) == 1 else _FEW_WORDS
                again = f": {shorten(one_line(plain(cell.reason)), words)}"
            yield cell.key, Text.assemble((f"{mark} ", style), f"{plain(cell.role)}{again}", (since, "dim"))
        if len(found) > len(named):
            yield "", Text(f"  and {len(found) - len(named)}{more}", "dim")
