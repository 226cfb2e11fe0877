"""The acts that were done: one look-up for each by its identity, and the latest of each name as a list.

Both come from the history alone. The look-up uses the keys of events, so its cost does not grow with the
history. The list is a cached projection.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from agentx.core.cached_projection import Kept
from agentx.recording.write_path import WritePath
from agentx.storage.events.act_events import ActDone
from agentx.storage.events.types import Body, Draft, Event
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.storage.secrets.redaction import clean_value
from agentx.synthesis.directing import acts
from agentx.synthesis.state.state import PendingCall, State

VERSION = 3
"""Increase it if the same events would be read differently; a cache with another version is ignored."""

KEY_BYTES = 1_000
"""A longer key is stored in a blob, and in the event only its beginning and end."""

_Read = TypeVar("_Read")


class DoneActIndex:
    """The acts that were done in a workspace.

    Args:
        write_path: Reads and writes the log; the list is kept in its cache.
    """

    def __init__(self, write_path: WritePath) -> None:
        log = write_path.log

        def anew(state: State) -> acts.DoneActs:
            done = acts.DoneActs()
            for event in log.history.read(on_damage=told_already):
                if event.seq <= state.seq:
                    done.take(event)
            return done

        self._write_path, self._log = write_path, log
        self._kept = Kept(
            log.history, write_path.cache / "acts", str(VERSION), anew, acts.DoneActs.take, acts.DoneActs
        )

    def find(self, act: str) -> tuple[Event | None, str]:
        """Return the event that did an act, and the key under which the next such event is recorded.

        The caller holds the workspace's lock. There is one more look-up for each time that the act was taken
        back.

        Args:
            act: Identity of the act.
        """
        number = 0
        while True:
            key = f"act:{act}{f':{number}' if number else ''}"
            done = self._log.event_of(key)
            if done is None:
                return None, key
            if self._log.event_of(retraction(key)) is None:
                return done, key
            number += 1

    def drafts(
        self, name: str, done: Iterable[acts.KeyedAct], *, actor: str, run: str, call_id: str = ""
    ) -> list[Draft]:
        """Return the events that record acts as done; one that is on record already is not recorded again.

        The caller holds the workspace's lock, and records them before the result of the call: if the record
        is cut off in between, no act is lost.
        """
        return [
            Draft(
                data=ActDone(name=name, key=self._body(act.key), window=act.window, call_id=call_id),
                actor=actor,
                run=run,
                key=self.find(act.id)[1],
            )
            for act in done
        ]

    def announced(self, announced: Sequence[acts.KeyedAct]) -> Body:
        """Return acts as a call announces them."""
        listed = [msgspec.structs.replace(act, key=clean_value(act.key)) for act in announced]
        return self._write_path.body(msgspec.json.encode(listed).decode(), KEY_BYTES) if listed else Body("")

    def begun_by(self, call: PendingCall) -> list[acts.KeyedAct]:
        """Return what a call without a result was about to do, as far as it can be read."""
        try:
            return msgspec.json.decode(self.text(call.acts) or "[]", type=list[acts.KeyedAct])
        except ValueError:
            return []

    def key(self, body: Body) -> dict[str, Any]:
        """Return the values of an act's key, as far as they can be read."""
        try:
            return msgspec.json.decode(self.text(body), type=dict[str, Any])
        except ValueError:
            return {"…": body.text}

    def text(self, body: Body) -> str:
        """Return the text of a body; if the blob is damaged, the extract stored in the event."""
        try:
            return self._log.blobs.text(body)
        except BlobDamaged:
            return body.text

    def _body(self, key: Mapping[str, Any]) -> Body:
        return self._write_path.body(json.dumps(clean_value(acts.plain(key))), KEY_BYTES)

    def read(self, state: State, read: Callable[[acts.DoneActs], _Read]) -> _Read:
        """Return ``read`` of the acts done up to the last event of a state."""
        return self._kept.at(state, read)

    def clear(self) -> None:
        """Drop the list; it is read again from the log."""
        self._kept.clear()


def retraction(key: str) -> str:
    """Return the key of the event that takes back the act recorded under a key."""
    return f"{key}:not"
