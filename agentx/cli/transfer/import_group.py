"""``agentx import``: transcripts of other agents become a workspace with full history."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted, facts, table
from agentx.core.layout import NotAWorkspace
from agentx.importing.hosts import FORMATS
from agentx.importing.recorder import Imported
from agentx.importing.transcripts import FoundTranscript, import_transcripts
from agentx.importing.transcripts import discover as discovered
from agentx.storage.errors import UsageError
from agentx.storage.text import plain
from agentx.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 12
"""Maximum number of projects of a host, or of problems, to list."""

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", show_default=False, help="Transcripts, or directories of them."),
]
Into = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="The workspace, which is created if it does not exist; by default the one that you are in.",
    ),
]


def discover(
    terminal: Terminal,
    *,
    discover: Annotated[bool, typer.Option("--discover", help="The same; for `agentx import` alone.")] = True,
) -> None:
    """List the transcripts in the usual places of each host. Nothing is imported."""
    del discover  # what `agentx import` does anyway
    with terminal.busy("Looking for transcripts"):
        found = list(discovered(_home(terminal)))
    hosts = [(host, list(each)) for host, each in groupby(found, key=lambda one: one.host)]
    parts: list[RenderableType] = [
        table("project", "transcripts>", "MB>", "from", "to", "directory", rows=rows, title=host)
        for host, each in hosts
        if (rows := _rows(terminal, each))
    ]
    if not found:
        parts = [Text(f"No transcripts of {', '.join(FORMATS)} in their usual places.")]
    hints = [
        Text(plain(f"Next: agentx import {host} {_places(host)} --into DIR"), "dim") for host, _ in hosts
    ]
    terminal.result({"transcripts": msgspec.to_builtins(found)}, *parts, *hints)


def _rows(terminal: Terminal, found: Sequence[FoundTranscript]) -> list[list[str]]:
    home = str(_home(terminal))
    groups: dict[str, list[FoundTranscript]] = {}
    for one in found:
        groups.setdefault(str(Path(one.path).parent), []).append(one)
    rows = [
        [
            next((one.project for one in each if one.project), ""),
            f"{len(each):,}",
            f"{sum(one.size_bytes for one in each) / 1e6:,.1f}",
            min((one.began[:10] for one in each if one.began), default=""),
            datetime.fromtimestamp(max(one.changed for one in each), UTC).date().isoformat(),
            folder.replace(home, "~", 1),
        ]
        for folder, each in groups.items()
    ]
    more = rows[_SHOWN:]
    if more:
        rows = [*rows[:_SHOWN], [f"and {len(more)} more", "", "", "", "", ""]]
    return rows


def _places(host: str) -> str:
    return " ".join(f"~/{place}" for place in FORMATS[host].places)


def claude_code(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import transcripts of Claude Code (~/.claude/projects)."""
    _import(terminal, "claude-code", paths, into)


def codex(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import sessions of Codex (~/.codex/sessions)."""
    _import(terminal, "codex", paths, into)


def gemini(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import chats and checkpoints of Gemini CLI (~/.gemini/tmp)."""
    _import(terminal, "gemini", paths, into)


def openhands(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import trajectories of OpenHands, exported or as a directory of events."""
    _import(terminal, "openhands", paths, into)


def swe_agent(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import trajectories of SWE-agent and mini-swe-agent."""
    _import(terminal, "swe-agent", paths, into)


def openai(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import conversations in the form of OpenAI's chat messages."""
    _import(terminal, "openai", paths, into)


def aider(terminal: Terminal, paths: Paths, into: Into = None) -> None:
    """Import chat histories of aider."""
    _import(terminal, "aider", paths, into)


def _import(terminal: Terminal, host: str, paths: Sequence[Path], into: Path | None) -> None:
    placed = [_placed(terminal, path) for path in paths]
    with _workspace(terminal, into) as ws:
        before = ws.state.seq
        with terminal.progress() as progress:
            done = import_transcripts(ws.engine, host, placed, home=_home(terminal), progress=progress)
        ws.flush()
        _tell(terminal, ws, host, done, ws.state.seq - before, into)


@contextlib.contextmanager
def _workspace(terminal: Terminal, into: Path | None) -> Iterator[Workspace]:
    """Open the workspace to import into; create it if it was named and does not exist."""
    if into is None:
        try:
            with opened(terminal) as ws:
                yield ws
        except NotAWorkspace as error:
            raise NotAWorkspace(f"{error} Or name one with --into, which is created.") from error
        return
    root = _placed(terminal, into)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        with Workspace.open(root, settings=terminal.settings) as ws:
            yield ws
        return
    with Workspace.create(root, title=root.absolute().name, settings=terminal.settings) as ws:
        yield ws


def _tell(
    terminal: Terminal, ws: Workspace, host: str, done: Imported, added: int, into: Path | None
) -> None:
    told = msgspec.to_builtins(done) | {"root": str(ws.root), "added": added}
    of = f"{counted(done.files, 'transcript')} of {host}"
    same = f", {done.unchanged:,} unchanged since the last import" if done.unchanged else ""
    rows = [(of, f"{counted(added, 'event')} added to {ws.root}{same}")]
    if done.counted:
        rows.append(("read", ", ".join(f"{count:,} {name}" for name, count in done.counted.items())))
    if done.unknown:
        rows.append(("kept unread", ", ".join(f"{count:,} {name}" for name, count in done.unknown.items())))
    if done.passed:
        rows.append(("only counted", f"{sum(done.passed.values()):,} records without content of their own"))
    if done.unapplied:
        rows.append(
            (
                "edits",
                f"{done.unapplied:,} not applied: the file's content is not known, or not in the project",
            )
        )
    where = f" -C {into}" if into else ""
    terminal.result(told, facts(rows), Text(plain(f"Next: agentx{where} recap"), "dim"))
    for problem in done.problems[:_SHOWN]:
        terminal.note(problem)
    if done.torn:
        terminal.note(
            f"{counted(done.torn, 'file')} end in an incomplete line; import again when it is complete."
        )


def _placed(terminal: Terminal, path: Path) -> Path:
    """Return a path that the user named, from the directory of ``-C`` on; ``~`` is their home."""
    if path.parts[:1] == ("~",):
        return _home(terminal).joinpath(*path.parts[1:])
    return terminal.directory / path


def _home(terminal: Terminal) -> Path:
    """Return the user's home directory.

    Raises:
        UsageError: The environment does not name one.
    """
    home = terminal.settings.environ.get("HOME") or terminal.settings.environ.get("USERPROFILE")
    if not home:
        raise UsageError("HOME is not set, so there is no usual place of transcripts.")
    return Path(home)
