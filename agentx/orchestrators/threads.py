"""The threads and stores that orchestrators keep in a workspace: a cached projection of its history.

A value of a channel is kept as it differs from an earlier version of it, in pieces named by their content
(:mod:`agentx.storage.events.checkpoint_events`). Deleting hides: bytes are removed by a purge alone.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from agentx.core.cached_projection import Kept
from agentx.engine.engine import Engine
from agentx.storage.errors import AgentXError
from agentx.storage.events.checkpoint_events import (
    CheckpointSaved,
    CheckpointWritesSaved,
    KeepsPieces,
    StoreItemDeleted,
    StoreItemSet,
    ThreadCopied,
    ThreadsDeleted,
)
from agentx.storage.events.types import Body, Event
from agentx.storage.log.blobs import BlobDamaged
from agentx.storage.log.history import told_already
from agentx.synthesis.state.state import State

VERSION = 1
"""Increase it if the same events would be read differently; a cache with another version is ignored."""

_Read = TypeVar("_Read")
ReadText = Callable[[Body], str]
"""Returns the whole text of a body."""


class CheckpointUnreadable(AgentXError):
    """A checkpoint needs content that was purged or is damaged, or is none that AgentX wrote."""


class KeptWrite(msgspec.Struct, frozen=True, array_like=True):
    """One result of a task: its task, place among the task's results, channel, value and the task's path."""

    task: str
    number: int
    channel: str
    value: Any
    path: str = ""


class KeptCheckpoint(msgspec.Struct, omit_defaults=True):
    """A checkpoint.

    Attributes:
        parent: Id of the checkpoint before it.
        record: Its own fields and metadata.
        versions: The version of each channel.
        writes: Results of tasks that follow it, by task and number.
        run: Id of the run that made it.
        hidden: Whether it was deleted; a later checkpoint may still need its values.
    """

    parent: str = ""
    record: dict[str, Any] = {}
    versions: dict[str, Any] = {}
    writes: dict[str, KeptWrite] = {}
    run: str = ""
    hidden: bool = False


class ChannelValue(msgspec.Struct, frozen=True, array_like=True):
    """A version of a channel's value.

    Attributes:
        tree: The value; of a list with ``base``, the entries that are new.
        base: The version of which it has the first ``head`` and the last ``tail`` entries; empty for none.
    """

    tree: Any
    base: str = ""
    head: int = 0
    tail: int = 0


class KeptNamespace(msgspec.Struct):
    """The checkpoints of one namespace of a thread by id, and the values of its channels by version."""

    checkpoints: dict[str, KeptCheckpoint] = {}
    values: dict[str, dict[str, ChannelValue | None]] = {}

    def value(self, channel: str, version: str) -> Any:
        """Return the value of a channel at a version.

        Raises:
            KeyError: It is not kept.
            CheckpointUnreadable: A value that it is based on is not kept, or is based on it.
        """
        versions, steps = self.values[channel], []
        step = versions[version]
        while step is not None and step.base:
            steps.append(step)
            if len(steps) > len(versions) or step.base not in versions:
                raise CheckpointUnreadable(
                    f"The version {version} of {channel!r} rests on one that is not there: it is damaged "
                    "or forged. Go on from an earlier checkpoint."
                )
            step = versions[step.base]
        found = step.tree if step is not None else None
        if not steps:
            return found
        found = list(found or ())
        for one in reversed(steps):
            found[one.head : len(found) - one.tail] = one.tree
        return found


class KeptItem(msgspec.Struct, frozen=True, array_like=True):
    """An item of a store, with when it was first and last set."""

    value: Any
    created_at: str
    updated_at: str
    index: list[str] | bool | None = None


class Threads(msgspec.Struct):
    """All threads and the store of a workspace.

    Attributes:
        threads: Namespaces by thread.
        pieces: Content by id, as JSON.
        items: Items of the store, by namespace (as a JSON list) and key.
    """

    threads: dict[str, dict[str, KeptNamespace]] = {}
    pieces: dict[str, msgspec.Raw] = {}
    items: dict[str, dict[str, KeptItem]] = {}

    def take(self, event: Event, read: ReadText) -> None:
        """Fold an event in."""
        data = event.data
        if isinstance(data, CheckpointSaved | CheckpointWritesSaved):
            self._keep(data, read)
        elif isinstance(data, StoreItemSet):
            self._set_item(data, event.at, read)
        elif isinstance(data, StoreItemDeleted):
            place = _place(data.namespace)
            self.items.get(place, {}).pop(data.key, None)
            if not self.items.get(place, True):
                del self.items[place]
        elif isinstance(data, ThreadsDeleted):
            self._delete(data)
        elif isinstance(data, ThreadCopied) and data.source in self.threads:
            copied = msgspec.json.encode(self.threads[data.source])
            self.threads[data.target] = msgspec.json.decode(copied, type=dict[str, KeptNamespace])

    def _keep(self, data: CheckpointSaved | CheckpointWritesSaved, read: ReadText) -> None:
        more = _json(data.more, read)
        for name, tree in (data.pieces | more.get("pieces", {})).items():
            self.pieces.setdefault(name, msgspec.Raw(msgspec.json.encode(tree)))
        record = more.get("record", data.record)
        here = self.threads.setdefault(data.thread, {}).setdefault(data.namespace, KeptNamespace())
        kept = here.checkpoints.setdefault(data.checkpoint, KeptCheckpoint(hidden=True))
        if isinstance(data, CheckpointWritesSaved):
            for number, channel, tree in record.get("writes", ()):
                name = f"{data.task} {number}"
                if number < 0 or name not in kept.writes:
                    kept.writes[name] = KeptWrite(data.task, number, channel, tree, data.path)
            return
        kept.parent, kept.hidden = data.parent, False
        kept.record = {name: record.get(name) for name in ("checkpoint", "metadata")}
        kept.versions = record.get("versions", {})
        kept.run = str(record.get("run", ""))
        for channel, version, value in record.get("values", ()):
            one = None if value is None else msgspec.convert(value, ChannelValue)
            here.values.setdefault(channel, {}).setdefault(version, one)

    def _set_item(self, data: StoreItemSet, at: str, read: ReadText) -> None:
        items = self.items.setdefault(_place(data.namespace), {})
        before = items.get(data.key)
        value = _json(data.more, read) or data.value
        items[data.key] = KeptItem(value, before.created_at if before else at, at, data.index)

    def _delete(self, data: ThreadsDeleted) -> None:
        for thread in data.threads:
            if not data.keep_latest:
                self.threads.pop(thread, None)
                continue
            for here in self.threads.get(thread, {}).values():
                shown = [name for name, kept in here.checkpoints.items() if not kept.hidden]
                for name in sorted(shown)[:-1]:
                    here.checkpoints[name].hidden = True
        for namespaces in self.threads.values() if data.runs else ():
            for here in namespaces.values():
                for kept in here.checkpoints.values():
                    kept.hidden = kept.hidden or kept.run in data.runs

    def has_run(self, runs: set[str]) -> bool:
        """Return whether a checkpoint of one of these runs is returned."""
        return any(
            kept.run in runs and not kept.hidden
            for namespaces in self.threads.values()
            for here in namespaces.values()
            for kept in here.checkpoints.values()
        )

    def namespaces(self) -> Iterator[tuple[tuple[str, ...], dict[str, KeptItem]]]:
        """Yield each namespace of the store with its items."""
        for place, items in self.items.items():
            yield tuple(msgspec.json.decode(place)), items


class KeptThreads:
    """The threads and the store of a workspace, as far as the history goes.

    Args:
        engine: The workspace.
    """

    def __init__(self, engine: Engine) -> None:
        log = engine.log

        def read(body: Body) -> str:
            try:
                return engine.read_body(body)
            except BlobDamaged:
                return "{}"  # what needs it says so when it is read

        def rebuilt(state: State) -> Threads:
            found = Threads()
            for event in log.history.read(on_damage=told_already):
                if event.seq <= state.seq:
                    found.take(event, read)
            return found

        self._engine = engine
        self._kept = Kept(
            log.history,
            engine.write_path.cache / "threads",
            str(VERSION),
            rebuilt,
            lambda found, event: found.take(event, read),
            Threads,
        )

    def read(self, read: Callable[[Threads], _Read]) -> _Read:
        """Return ``read`` of the threads after everything that any process recorded."""
        if not self._engine.write_path.is_current:
            self._engine.write_path.refresh()
        return self.read_known(read)

    def read_known(self, read: Callable[[Threads], _Read]) -> _Read:
        """Return ``read`` of the threads after everything that this process recorded or read."""
        return self._kept.at(self._engine.log.copy_state(), read)


def pack(payload: KeepsPieces, keep: Callable[[bytes], Body], limit_bytes: int) -> KeepsPieces:
    """Move what makes an event too long for its line to a blob.

    Args:
        payload: The event's payload.
        keep: Stores a content beside the log.
        limit_bytes: Bytes of JSON that may stay in the line.
    """
    if len(msgspec.json.encode((payload.record, payload.pieces))) <= limit_bytes:
        return payload
    stay: dict[str, Any] = {}
    record, more = payload.record, dict[str, Any]()
    left = limit_bytes - len(msgspec.json.encode(record))
    if left < 0:
        record, more["record"], left = {}, payload.record, limit_bytes
    moved: dict[str, Any] = {}
    for name, tree in sorted(payload.pieces.items(), key=lambda piece: len(msgspec.json.encode(piece))):
        left -= len(msgspec.json.encode((name, tree)))
        (stay if left >= 0 else moved)[name] = tree
    if moved:
        more["pieces"] = moved
    body = keep(msgspec.json.encode(more))
    return msgspec.structs.replace(payload, record=record, pieces=stay, more=body)


def _json(body: Body, read: ReadText) -> dict[str, Any]:
    return msgspec.json.decode(read(body), type=dict[str, Any]) if body.blob else {}


def _place(namespace: tuple[str, ...]) -> str:
    return msgspec.json.encode(namespace).decode()
