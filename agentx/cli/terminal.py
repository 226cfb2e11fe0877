"""Output of every command: results on stdout, everything else on stderr, JSON on request.

Loads nothing of the engine, so that ``agentx --help`` appears at once.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import measure_renderables
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from agentx.settings import Settings
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.progress import Progress as ReportProgress
from agentx.storage.text import plain

if TYPE_CHECKING:
    from agentx.workspace import Workspace

PIPE_COLUMNS = 160
"""Width of tables in a pipe or a file; longer lines are cut or wrapped."""

PANEL_COLUMNS = 100
"""Maximum width of a panel: longer lines are hard to read."""

RUN_COLOURS = {"COMPLETED": "green", "RUNNING": "cyan", "WAITING": "yellow", "INTERRUPTED": "yellow"}
"""Colour of a run's status; all others are red."""

_GAP = 2
"""Columns between two columns of a table."""

_LAST_COLUMNS = 16
"""Minimum width of the last column of a table, unless its content is narrower."""

_SIZE = (80, 25)
"""What Rich takes for the size if no stream is a terminal."""

PIPE_CLOSED = 141
"""Exit status if the reader of a pipe is gone: 128 plus SIGPIPE, as if the signal had ended the program."""


class NotServed(AgentXError):
    """The server does not run this command here: the process that asked runs it itself."""


@dataclass(frozen=True)
class Caller:
    """The process for which the server runs a command.

    Attributes:
        stdin: Its input.
        stdout: Its output.
        stderr: Where its notes go.
        directory: Its working directory.
        size: Columns and lines of its terminal; ``None`` if it has none.
        key: Makes an event that the command records idempotent.
        take: Opens the workspace at or above a directory, or takes it from those that are open.
    """

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    directory: Path
    size: tuple[int, int] | None
    key: str
    take: "Callable[[Path], AbstractContextManager[Workspace]]"


class Terminal:
    """The place where a command prints.

    Attributes:
        caller: The process for which the server runs the command; ``None`` in the command's own process.
        key: Makes an event that the command records idempotent; empty for none.
        directory: Where to look for the workspace (``-C``).
        json: Whether results are JSON (``--json``).
        out: For results.
        err: For notes, progress and errors.
        pictures: Directory for pictures of runs; ``None`` for none.
        unattended: Whether a story is played: nobody is asked anything, and each of a stream of results is
            one line.
    """

    def __init__(self, settings: Settings, caller: Caller | None = None, *, key: str = "") -> None:
        self.settings = settings
        self.caller = caller
        self.key = caller.key if caller else key
        self.directory = Path()
        self.json = False
        self.pictures: Path | None = None
        self.unattended = False
        self.out = _console(settings, caller, stderr=False)
        self.err = _console(settings, caller, stderr=True)

    @property
    def stdin(self) -> TextIO:
        """The input of the command."""
        return self.caller.stdin if self.caller else sys.stdin

    @property
    def stdout(self) -> TextIO:
        """Where results go."""
        return self.caller.stdout if self.caller else sys.stdout

    @property
    def interactive(self) -> bool:
        """Whether there is a user at the terminal who can be asked."""
        return not self.unattended and self.stdin.isatty() and self.err.is_terminal

    @property
    def folder(self) -> Path:
        """The directory of ``-C``.

        Raises:
            UsageError: It does not exist.
        """
        folder = self.caller.directory / self.directory if self.caller else self.directory
        if not folder.is_dir():
            raise UsageError(f"The directory {self.directory} does not exist.")
        return folder

    def confirms(self, question: str, word: str, refusal: UsageError) -> bool:
        """Return whether the user types a word to agree.

        Raises:
            UsageError: Nobody can be asked: the given refusal.
        """
        if self.json or not self.interactive:
            raise refusal
        self.err.print(question, style="bold red", end="")
        try:
            return input().strip().lower() == word
        except EOFError:
            return False

    # --- results --------------------------------------------------------------------------------------------

    def result(self, value: Any, *parts: RenderableType) -> None:
        """Print a result: as JSON on request, otherwise its parts for people."""
        if self.json:
            self.document(value)
        else:
            self.show(*parts)

    def show(self, *parts: RenderableType) -> None:
        """Print results; strings are printed literally, without markup.

        In a pipe or a file, text is not wrapped and trailing blanks are removed.
        """
        for part in parts:
            if self.out.is_terminal:
                self.out.print(part)
                continue
            with self.out.capture() as captured:
                self.out.print(part, soft_wrap=isinstance(part, str | Text))
            self._write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    def document(self, value: Any) -> None:
        """Print a result as one JSON document, or as one line if it is one of many."""
        if self.unattended:
            self.line(value)
            return
        self._write(_escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n")

    def line(self, value: Any) -> None:
        """Print one element of a stream as one line of JSON."""
        self._write(_escaped(msgspec.json.encode(value).decode()) + "\n")

    def _write(self, text: str) -> None:
        try:
            self.stdout.write(text)
            self.stdout.flush()
        except BrokenPipeError:
            hang_up()

    # --- notes and progress ---------------------------------------------------------------------------------

    def note(self, text: str, mark: str = "!") -> None:
        """Print a note for the user on stderr."""
        self._aside(mark, "yellow", text, "dim")

    def fail(self, text: str) -> None:
        """Print an error on stderr."""
        self._aside("agentx:", "bold red", text, "")

    def _aside(self, mark: str, mark_style: str, text: str, style: str) -> None:
        with contextlib.suppress(OSError):
            self.err.print(Text.assemble((mark, mark_style), " ", (plain(text), style)), soft_wrap=True)

    @contextlib.contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """Show on a terminal that something takes a moment."""
        if not self.err.is_terminal:
            yield
            return
        with self.err.status(Text(plain(text), "dim")):
            yield

    @contextlib.contextmanager
    def progress(self) -> Iterator[ReportProgress]:
        """Show progress bars on a terminal, one for each task."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn())
        with Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal) as bars:
            tasks: dict[str, Any] = {}

            def told(what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bars.add_task(_DOING.get(what, plain(what)), total=None)
                growing = what == "embed" or done == total
                bars.update(tasks[what], completed=done, total=None if growing else total)

            yield told


_DOING = {"fold": "Reading the history", "import": "Importing", "index": "Indexing", "embed": "Embedding"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        hang_up()


def _console(settings: Settings, caller: Caller | None, *, stderr: bool) -> Console:
    own = sys.stderr if stderr else sys.stdout
    stream = own if caller is None else caller.stderr if stderr else caller.stdout
    wide = None if stream.isatty() or "COLUMNS" in settings.environ else PIPE_COLUMNS
    if caller is None:
        return _Console(stderr=stderr, width=wide, highlight=False, markup=False, emoji=False)
    # Rich would measure the terminal of this process.
    environ = dict(settings.environ)
    for name, size in zip(("COLUMNS", "LINES"), caller.size or _SIZE, strict=True):
        if not environ.get(name, "").isdigit():
            environ[name] = str(size)
    return _Console(file=stream, width=wide, highlight=False, markup=False, emoji=False, _environ=environ)


def hang_up() -> NoReturn:
    """Exit quietly, because nobody reads the output."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED)


class _Table(Table):
    """Wraps the middle columns where the last column would become too narrow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the rows at the available width."""
        *before, last = (
            max(measure_renderables(console, options, [column.header, *column.cells]).maximum, 1)
            for column in self.columns
        )
        if sum(before) + _GAP * len(before) + min(last, _LAST_COLUMNS) > options.max_width:
            for column in self.columns[1:-1]:
                column.no_wrap, column.overflow = False, "fold"
        yield from super().__rich_console__(console, options)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "event"), counted(1_234, "event")
    ('1 event', '1,234 events')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def minute(at: str) -> str:
    """Return a UTC timestamp in readable form, to the minute."""
    return at[:16].replace("T", " ")


def table(*columns: str, rows: Sequence[Sequence[str | Text]], title: str = "") -> Table:
    """Return a plain table: no lines, dim headings; the last column takes the remaining width.

    Args:
        columns: Headings; one that ends in ``>`` is right-aligned.
        rows: Cells; strings are stripped of control characters.
        title: Title above the table.
    """
    made = _Table(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        header_style="dim",
        title_justify="left",
        title_style="bold",
    )
    made.title = Text(plain(title), "bold") if title else None
    for number, name in enumerate(columns):
        last = number == len(columns) - 1
        right = name.endswith(">")
        made.add_column(
            name.removesuffix(">"),
            justify="right" if right else "left",
            no_wrap=not last,
            overflow="fold" if last else "ellipsis",
        )
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return made


def row(*cells: Text, wrap: bool) -> Table | Text:
    """Return one line of a stream; with ``wrap``, the last cell wraps within its own column."""
    if not wrap:
        return Text("  ").join(cells)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in cells[:-1]:
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(*cells)
    return grid


def panel(body: RenderableType, *, title: Text | None = None, width: int, style: str = "dim") -> Panel:
    """Return a frame around related content."""
    return Panel(
        body,
        title=title and Text.assemble(" ", title, " "),
        title_align="left",
        border_style=style,
        width=min(width, PANEL_COLUMNS),
    )


def facts(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Return a grid with names in the margin and their values beside them."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value if isinstance(value, Text) else Text(plain(value)))
    return grid


def _escaped(text: str) -> str:
    """Escape what a terminal would obey or hide: the same JSON, which a person can read safely."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(one if one == "\n" or one.isprintable() else json.dumps(one)[1:-1] for one in text)
