"""The runs of a history as a backtest reads them, updated with new events."""

from pathlib import Path

from agentx.core.cached_projection import Kept
from agentx.storage.log.history import History, told_already
from agentx.synthesis.learning.past_runs import Run, RunReader
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import State

VERSION = 2
"""Increase it if the same events would be read differently; a cache with another version is ignored."""


class PastRuns:
    """The past runs of a workspace.

    Args:
        history: The log.
        folder: Directory that keeps them between processes; a cache.
        read: Returns the whole text of a body.
    """

    def __init__(self, history: History, folder: Path, read: ReadBody) -> None:
        def anew(state: State) -> RunReader:
            replay = RunReader()
            for event in history.read(on_damage=told_already):
                if event.seq <= state.seq:
                    replay.take(event, read)
            return replay

        self._replay = Kept(
            history,
            folder,
            str(VERSION),
            anew,
            lambda replay, event: replay.take(event, read),
            RunReader,
        )

    def at(self, state: State, after: int = 0) -> list[Run]:
        """Return the runs after an event and up to the last event of the current state, oldest first."""
        return self._replay.at(state, lambda replay: [run for run in replay.past if run.seq > after])

    def clear(self) -> None:
        """Drop the runs; they are read again from the log."""
        self._replay.clear()
