"""The workspace that a command works on: find, open, check and close it."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from agentx.cli.terminal import Terminal, counted
from agentx.recording.write_path import ReadOnly
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Event
from agentx.trust.trust import restricted
from agentx.workspace import Workspace

MOMENT = "an event number, a date or time (UTC), '2h ago', or a commit"
"""How the user can specify a moment, for the help of every option that takes one."""


@contextlib.contextmanager
def opened(terminal: Terminal, *, look: bool = False) -> Iterator[Workspace]:
    """Open the workspace at or above the directory of ``-C``; print its notes for the user on stderr.

    Args:
        terminal: Where to print notes.
        look: Record people's edits first, so that the output matches the files.

    Raises:
        UsageError: The directory does not exist.
        NotAWorkspace: Neither it nor a directory above it is a workspace.
    """
    folder, caller = terminal.folder, terminal.caller
    with caller.take(folder) if caller else Workspace.find(folder, settings=terminal.settings) as ws:
        write_path, why = ws.engine.write_path, ws.engine.write_path.read_only
        if look and not why:
            write_path.edits.scan()
        printed = list(write_path.notes)
        for note in printed:
            if note != why:
                terminal.note(note)
        if count := sum(not one.missing for one in write_path.log.damage):
            terminal.note(f"{counted(count, 'line')} of the history cannot be read; see `agentx doctor`.")
        try:
            yield ws
            if why:
                terminal.note(why)
        except ReadOnly:
            printed = list(write_path.notes)  # the error itself states the reason
            raise
        finally:
            printed += (later := _besides(write_path.notes, printed))
            for note in later:
                terminal.note(note)
            if caller:
                _forget(write_path.notes, printed)


def _besides(notes: list[str], printed: list[str]) -> list[str]:
    """Return the notes that were not printed, also if other commands have removed theirs meanwhile."""
    left = Counter(printed)
    later = []
    for note in list(notes):
        if left[note]:
            left[note] -= 1
        else:
            later.append(note)
    return later


def _forget(notes: list[str], printed: list[str]) -> None:
    """Remove what was printed from the notes of a workspace that stays open, and nothing else."""
    for note in printed:
        with contextlib.suppress(ValueError):  # another command has printed it, too
            notes.remove(note)


def say_restricted(terminal: Terminal, ws: Workspace) -> None:
    """Print once that the workspace's own settings are not used, and why."""
    if why := ws.restricted:
        terminal.note(
            f"{restricted(why)}. Its settings, sources and schedules are not used; review them "
            "with `agentx trust`."
        )


def scan_sources(terminal: Terminal, ws: Workspace) -> None:
    """Update the index of the read-only sources that ``agentx.toml`` declares, with progress."""
    if ws.config.sources and not ws.restricted:
        try:
            with terminal.progress() as progress:
                ws.scan_sources(progress)
        except UsageError as error:
            terminal.note(f"{error} The search uses what was indexed before.")


def as_json(event: Event) -> dict[str, Any]:
    """Return an event for programs: as in the log, without the fields that only the hash chain needs."""
    shown = {name: getattr(event, name) for name in ("seq", "at", "type", "v", "actor", "data")}
    return shown | {name: value for name in ("run", "cause", "key") if (value := getattr(event, name))}
