"""A cached projection outside the state: folded from the whole history and updated with new events.

It is kept in ``.agentx/`` between processes, so it can be deleted at any time. Rebuilding it from the log has
the same result.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from agentx.storage.events.types import Event, EventsPurged
from agentx.storage.log.history import History, Position, told_already
from agentx.storage.log.snapshots import Snapshots
from agentx.synthesis.state.state import State

SAVE_EVENTS = 500
"""Save after this number of events, so that the next process reads no more than these."""

_Folded = TypeVar("_Folded")
_Read = TypeVar("_Read")


class Kept(Generic[_Folded]):
    """A cached projection of a history.

    Args:
        history: The log.
        folder: Directory that keeps it between processes; a cache.
        version: Version of the fold. A copy of another version, or with other types of events, is ignored.
        build: Builds it from the log, up to the last event of a state.
        apply: Folds an event in.
        kind: Its type, for decoding.
        save_share: Also wait for this share of the history before it is saved again.
        newer_serves: Whether a projection of more events than were asked for serves as well. It is then saved
            by :meth:`read_ahead` only, so that who holds the workspace's lock does not wait for that.
    """

    def __init__(
        self,
        history: History,
        folder: Path,
        version: str,
        build: Callable[[State], _Folded],
        apply: Callable[[_Folded, Event], None],
        kind: type[_Folded],
        *,
        save_share: float = 0,
        newer_serves: bool = False,
    ) -> None:
        self._history = history
        self._kept = Snapshots(folder, history, f"{version}-{history.fingerprint}")
        self._build, self._apply, self._save_share = build, apply, save_share
        self._newer_serves = newer_serves
        self._decode = msgspec.json.Decoder(kind).decode
        self._lock = threading.Lock()
        self._folded: _Folded | None = None
        self._position = Position()
        self._saved_seq = 0

    def at(self, state: State, read: Callable[[_Folded], _Read]) -> _Read:
        """Return ``read`` of the projection, folded up to the last event of the current state."""
        with self._lock:
            folded = self._brought_to(state)
            if not self._newer_serves:
                self._save(state)
            return read(folded)

    def read_ahead(self, state: State) -> None:
        """Fold and save what a later :meth:`at` would have to; to be called without the workspace's lock.

        Args:
            state: A state that nobody changes meanwhile.
        """
        with self._lock:
            self._brought_to(state)
            self._save(state)

    def _brought_to(self, state: State) -> _Folded:
        if self._folded is None and (found := self._kept.load(self._decode)):
            self._folded, self._position = found
            self._saved_seq = self._position.seq
        newer = self._newer_serves and state.seq < self._position.seq
        if newer and self._folded is not None and self._history.holds(self._position):
            return self._folded
        folded = self._extended(state)
        if folded is None:
            folded, self._saved_seq = self._build(state), 0
        self._folded, self._position = folded, self._locate(state)
        return folded

    def _save(self, state: State) -> None:
        # a newer projection than the state has another place in the log
        exact = (state.seq, state.hash) == (self._position.seq, self._position.hash)
        if exact and state.seq - self._saved_seq >= max(SAVE_EVENTS, self._save_share * state.seq):
            self._kept.save(state.seq, state.hash, msgspec.json.encode(self._folded))
            self._saved_seq = state.seq

    def _locate(self, state: State) -> Position:
        """Return the position of the last event of a state, looking first where the one before was."""
        if (state.seq, state.hash) == (self._position.seq, self._position.hash):
            return self._position
        near = self._position.segment if self._position.seq else 0
        found = self._history.locate(state.seq, state.hash, near=near) if near else None
        return found or self._history.locate(state.seq, state.hash) or Position()

    def _extended(self, state: State) -> _Folded | None:
        """Return the cached value with new events folded in; ``None`` if the log was rewound or purged."""
        folded, position = self._folded, self._position
        if folded is None or not 0 < position.seq <= state.seq or not self._history.holds(position):
            return None
        fresh = [event for event in self._history.read(position, told_already) if event.seq <= state.seq]
        if any(isinstance(event.data, EventsPurged) for event in fresh):
            return None
        for event in fresh:
            self._apply(folded, event)
        return folded

    def clear(self) -> None:
        """Drop the projection; it is rebuilt from the log."""
        with self._lock:
            self._folded, self._saved_seq = None, 0
            self._kept.clear()
