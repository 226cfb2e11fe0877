"""LangGraph on a workspace: checkpoints, store, facts and gates.

As in::

    from agentx import Workspace
    from agentx.orchestrators.langgraph import AgentXSaver, AgentXStore

    ws = Workspace.open("task")
    graph = builder.compile(checkpointer=AgentXSaver(ws), store=AgentXStore(ws))

Every checkpoint, result and item is an event of the workspace's history. What is acknowledged is on the disk.
"""

import asyncio
import random
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from agentx.orchestrators.langgraph_facts import GraphFacts, gate
from agentx.orchestrators.langgraph_values import MOST_EXPANDED, Trees, reference
from agentx.orchestrators.threads import (
    ChannelValue,
    CheckpointUnreadable,
    KeptCheckpoint,
    KeptItem,
    KeptNamespace,
    KeptThreads,
    Threads,
    pack,
)
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.checkpoint_events import (
    CheckpointSaved,
    CheckpointWritesSaved,
    StoreItemDeleted,
    StoreItemSet,
    ThreadCopied,
    ThreadsDeleted,
)
from agentx.storage.events.types import Body, Draft, Payload
from agentx.storage.extras import LANGGRAPH, needs
from agentx.storage.secrets.redaction import clean, clean_value
from agentx.workspace import Workspace

with needs(LANGGRAPH):
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
        get_checkpoint_id,
        get_serializable_checkpoint_metadata,
        writes_sort_key,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.store.base import BaseStore, GetOp, IndexConfig, Op, PutOp, Result, SearchOp
    from langgraph.store.memory import InMemoryStore

__all__ = ["AgentXSaver", "AgentXStore", "GraphFacts", "SerializerRefused", "gate"]

ACTOR = "engine:langgraph"
"""Who records checkpoints and items: not an agent's words, and never the user's."""

LINE_BYTES = 10_000
"""JSON of one checkpoint or item that stays in its event; the rest is in a blob."""

LISTS_KEPT = 100
"""Number of channels of which the latest list is held to compare the next one with; others are read again."""

EMBED_S = 60.0
"""Longest time that texts of the store are embedded at once."""

_KINDS = ("null", "bytes", "bytearray", "msgpack")
"""What LangGraph's serializer makes. It reads ``json`` too, which may name any class of LangChain."""

_Allowed = Iterable[type | tuple[str, str]]


class SerializerRefused(AgentXError):
    """A workspace that is not trusted is to be read by a serializer that may make any object."""


class _Place(NamedTuple):
    """Where a checkpoint is; ``checkpoint`` is empty for the latest."""

    thread: str
    namespace: str
    checkpoint: str

    @classmethod
    def of(cls, config: RunnableConfig) -> "_Place":
        named = config.get("configurable", {})
        if "thread_id" not in named:
            raise UsageError(
                'A checkpointer needs a thread: pass config={"configurable": {"thread_id": "…"}}.'
            )
        thread = clean(str(named["thread_id"]))  # as it is recorded
        return cls(thread, str(named.get("checkpoint_ns") or ""), get_checkpoint_id(config) or "")

    def config(self, checkpoint: str) -> RunnableConfig:
        """Return the configuration that names a checkpoint of this place."""
        named = {"thread_id": self.thread, "checkpoint_ns": self.namespace, "checkpoint_id": checkpoint}
        return {"configurable": named}


class _Found(NamedTuple):
    """A checkpoint as it is kept, with the trees of its values."""

    place: _Place
    kept: KeptCheckpoint
    values: dict[str, Any]
    pieces: dict[str, msgspec.Raw]


class _List(NamedTuple):
    """A list: what tells its entries apart, and how it was serialized, if it was in this process."""

    entries: Sequence[str] = ()
    packed: bytes = b""


class _Before(NamedTuple):
    """The channels whose value is kept already, and by channel the list to compare a new value with."""

    stored: frozenset[str]
    lists: dict[str, tuple[str, _List]]


class AgentXSaver(BaseCheckpointSaver[str]):
    """A LangGraph checkpointer that keeps threads in a workspace.

    Any number of processes may use it on one workspace. Secrets are redacted before they are recorded, so a
    resumed graph sees ``[redacted: …]`` in their place.

    Args:
        workspace: The open workspace.
        allow: Your own classes that values consist of; an object of any other class that LangGraph does not
            know comes back as plain data.
        serde: A serializer in place of LangGraph's; refused where the workspace is not trusted.

    Raises:
        SerializerRefused: The workspace is restricted, and ``serde`` is given.
    """

    def __init__(
        self, workspace: Workspace, *, allow: _Allowed = (), serde: SerializerProtocol | None = None
    ) -> None:
        if serde is not None and workspace.restricted:
            raise SerializerRefused(
                f"{workspace.root} is not trusted, and a serializer of yours may make any object of what it "
                "holds. Leave out `serde`, or run `agentx trust` first."
            )
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=tuple(allow)))
        self._ws = workspace
        self._threads = KeptThreads(workspace.engine)
        self._pieces: Mapping[str, Any] = {}
        self._kinds = _KINDS if serde is None else None
        most = MOST_EXPANDED if workspace.restricted else 0
        self._trees = Trees(lambda name: name in self._pieces, most=most)
        self._latest: OrderedDict[tuple[str, str, str], tuple[str, _List]] = OrderedDict()
        self._packing = threading.Lock()

    # --- saving -----------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; it is on the disk on return.

        Args:
            config: Names the thread, and the checkpoint before this one.
            checkpoint: The checkpoint.
            metadata: More about it.
            new_versions: The channels that changed.
        """
        place, fresh = _Place.of(config), dict[str, Any]()
        rest = {
            name: value
            for name, value in checkpoint.items()
            if name not in ("channel_values", "channel_versions")
        }
        told = get_serializable_checkpoint_metadata(config, metadata)
        # Under the lock, so that no other process deletes what a value is told by.
        with self._packing, self._ws.engine.write_path.exclusive():
            before = self._threads.read_known(lambda found: self._before(found, place, checkpoint))
            changed = {
                channel: self._changed(channel, checkpoint, before, fresh)
                for channel in checkpoint["channel_versions"]
                if (channel in new_versions or channel in checkpoint["channel_values"])
                and channel not in before.stored
            }
            record = {
                "checkpoint": self._tree(rest, fresh),
                "metadata": self._tree(dict(told), fresh),
                "versions": checkpoint["channel_versions"],
                "values": [
                    [channel, _key(checkpoint["channel_versions"][channel]), value]
                    for channel, (value, _) in changed.items()
                ],
            }
            if run := told.get("run_id"):
                record["run"] = str(run)
            self._record(
                CheckpointSaved(
                    thread=place.thread,
                    namespace=place.namespace,
                    checkpoint=checkpoint["id"],
                    parent=place.checkpoint,
                    record=record,
                    pieces=fresh,
                ),
                place.thread,
            )
            for channel, (_, now) in changed.items():
                version = _key(checkpoint["channel_versions"][channel])
                self._latest[place.thread, place.namespace, channel] = (version, now)
                self._latest.move_to_end((place.thread, place.namespace, channel))
            while len(self._latest) > LISTS_KEPT:
                self._latest.popitem(last=False)
        return place.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save results of a task that are to become part of the next checkpoint.

        Args:
            config: Names the checkpoint that they follow.
            writes: Channels with values.
            task_id: The task.
            task_path: Its path.
        """
        place, fresh = _Place.of(config), dict[str, Any]()
        with self._packing:
            self._pieces = self._threads.read_known(lambda found: found.pieces)
            record = [
                [WRITES_IDX_MAP.get(channel, number), channel, self._tree(value, fresh)]
                for number, (channel, value) in enumerate(writes)
            ]
            self._record(
                CheckpointWritesSaved(
                    thread=place.thread,
                    namespace=place.namespace,
                    checkpoint=place.checkpoint,
                    task=task_id,
                    path=task_path,
                    record={"writes": record},
                    pieces=fresh,
                ),
                place.thread,
            )

    def _before(self, found: Threads, place: _Place, checkpoint: Checkpoint) -> _Before:
        """Return what is kept of a checkpoint's values, and the lists that they may be told by."""
        self._pieces = found.pieces
        here = found.threads.get(place.thread, {}).get(place.namespace)
        if here is None:
            return _Before(frozenset(), {})
        stored = {
            channel
            for channel, version in checkpoint["channel_versions"].items()
            if _key(version) in here.values.get(channel, {})
        }
        lists: dict[str, tuple[str, _List]] = {}
        parent = here.checkpoints.get(place.checkpoint)
        for channel, version in (parent.versions if parent else {}).items():
            if channel in stored or not isinstance(checkpoint["channel_values"].get(channel), list):
                continue
            key = _key(version)
            latest, old = self._latest.get((place.thread, place.namespace, channel), ("", _List()))
            if latest != key:
                value = here.value(channel, key) if key in here.values.get(channel, {}) else None
                old = _List(_entries(value) if isinstance(value, list) else ())
            lists[channel] = (key, old)
        return _Before(frozenset(stored), lists)

    def _tree(self, value: Any, fresh: dict[str, Any]) -> Any:
        return self._trees.tree(self.serde.dumps_typed(value), fresh)

    def _changed(
        self, channel: str, checkpoint: Checkpoint, before: _Before, fresh: dict[str, Any]
    ) -> tuple[ChannelValue | None, _List]:
        """Return a value as it differs from the one before, and what a later one is compared with.

        The value is ``None`` where the channel was emptied.
        """
        if channel not in checkpoint["channel_values"]:
            return None, _List()
        serialized = self.serde.dumps_typed(checkpoint["channel_values"][channel])
        base, old = before.lists.get(channel, ("", _List()))
        if (added := self._trees.appended(serialized, old.packed, fresh)) is not None:
            now = _List([*old.entries, *_entries(added)], serialized[1])
            return ChannelValue(added, base, len(old.entries)), now
        tree = self._trees.tree(serialized, fresh)
        if not isinstance(tree, list):
            return ChannelValue(tree), _List()
        now = _List(_entries(tree), serialized[1])
        head, tail = _shared(old.entries, now.entries)
        if not head + tail:
            return ChannelValue(tree), now
        return ChannelValue(tree[head : len(tree) - tail], base, head, tail), now

    def _record(self, payload: Payload, run: str) -> None:
        if isinstance(payload, CheckpointSaved | CheckpointWritesSaved):
            payload = pack(payload, self._ws.engine.write_path.keep, LINE_BYTES)
        self._ws.record(Draft(data=payload, actor=ACTOR, run=run))

    # --- reading ----------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint with the results that follow it; without an id, the latest of the thread.

        Raises:
            CheckpointUnreadable: It needs content that was purged or is damaged.
        """
        place = _Place.of(config)
        found = self._threads.read(lambda threads: _find(threads, place))
        return self._tuple(found) if found else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest first.

        Args:
            config: Names a thread, and perhaps a namespace or a checkpoint; ``None`` for all.
            filter: Values that their metadata have.
            before: Only those before this one.
            limit: Maximum number.
        """
        named = (config or {}).get("configurable", {})
        end = get_checkpoint_id(before) if before else None
        left = -1 if limit is None else max(limit, 0)
        for place in self._threads.read(lambda threads: _places(threads, named)):
            if left == 0:
                return
            if end and place.checkpoint >= end:
                continue
            found = self._threads.read_known(partial(_find, place=place))
            if found is None or not self._fits(found, filter or {}):
                continue
            left -= 1
            yield self._tuple(found)

    def _fits(self, found: _Found, wanted: Mapping[str, Any]) -> bool:
        metadata = self._value(found.kept.record["metadata"], found.pieces) if wanted else {}
        return all(metadata.get(name) == value for name, value in wanted.items())

    def _tuple(self, found: _Found) -> CheckpointTuple:
        place, kept, values, pieces = found
        checkpoint = self._value(kept.record["checkpoint"], pieces)
        checkpoint["channel_versions"] = dict(kept.versions)
        checkpoint["channel_values"] = {name: self._value(tree, pieces) for name, tree in values.items()}
        ordered = sorted(
            kept.writes.values(), key=lambda one: writes_sort_key(one.path, one.task, one.number)
        )
        return CheckpointTuple(
            config=place.config(place.checkpoint),
            checkpoint=checkpoint,
            metadata=self._value(kept.record["metadata"], pieces),
            parent_config=place.config(kept.parent) if kept.parent else None,
            pending_writes=[(one.task, one.channel, self._value(one.value, pieces)) for one in ordered],
        )

    def _value(self, tree: Any, pieces: Mapping[str, msgspec.Raw]) -> Any:
        kind, data = self._trees.serialized(tree, pieces)
        if self._kinds is not None and kind not in self._kinds:
            raise CheckpointUnreadable(
                f"A checkpoint holds a value as {str(kind)[:40]!r}, which AgentX does not write: it is "
                "forged, or was written with `serde`. Pass the same `serde`, or go on from an earlier one."
            )
        return self.serde.loads_typed((kind, data))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the results and the stored value from which each delta channel is rebuilt.

        Checkpoints that a prune took away still count: the history has them.
        """
        place = _Place.of(config)
        found = self._threads.read(lambda threads: _find(threads, place))
        results: dict[str, DeltaChannelHistory] = {name: {"writes": []} for name in channels}
        remaining, parent = set(channels), found.kept.parent if found else ""
        seen = set[str]()
        while parent and remaining and parent not in seen:
            seen.add(parent)
            at = place._replace(checkpoint=parent)
            found = self._threads.read_known(partial(_find, place=at, hidden=True))
            if found is None:
                break
            ordered = sorted(
                found.kept.writes.values(), key=lambda one: writes_sort_key(one.path, one.task, one.number)
            )
            for one in reversed(ordered):
                if one.channel in remaining:
                    written = (one.task, one.channel, self._value(one.value, found.pieces))
                    results[one.channel]["writes"].insert(0, written)
            for name in sorted(remaining & found.values.keys()):
                results[name]["seed"] = self._value(found.values[name], found.pieces)
                remaining.discard(name)
            parent = found.kept.parent
        return results

    def get_next_version(self, current: str | float | None, channel: None) -> str:  # noqa: ARG002
        """Return the version of a channel that follows one; two processes never make the same."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:08}.{random.getrandbits(40):010x}"

    # --- deleting and copying ---------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Return no checkpoint of a thread from now on; the history keeps them until a purge."""
        self.prune([thread_id], strategy="delete")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Return only the latest checkpoint of each namespace of these threads from now on.

        Args:
            thread_ids: The threads.
            strategy: ``keep_latest``, or ``delete`` for none of them.

        Raises:
            UsageError: The strategy is another one.
        """
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(f"A prune has the strategy keep_latest or delete, not {strategy!r}.")
        known = self._threads.read(
            lambda found: [one for one in map(str, thread_ids) if one in found.threads]
        )
        if known:
            self._record(ThreadsDeleted(threads=tuple(known), keep_latest=strategy == "keep_latest"), "")
            self._forget(known)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Return no checkpoint of these runs from now on."""
        if self._threads.read(lambda found: found.has_run(set(run_ids))):
            self._record(ThreadsDeleted(runs=tuple(run_ids)), "")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Let a thread have all checkpoints of another one, with their results."""
        if self._threads.read(lambda found: source_thread_id in found.threads):
            self._record(ThreadCopied(source=source_thread_id, target=target_thread_id), target_thread_id)
            self._forget([target_thread_id])

    def _forget(self, threads: Sequence[str]) -> None:
        with self._packing:
            for name in [one for one in self._latest if one[0] in threads]:
                del self._latest[name]

    # --- the same, awaited ------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Await :meth:`get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield what :meth:`list` yields."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Await :meth:`put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Await :meth:`put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Await :meth:`delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Await :meth:`delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Await :meth:`copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Await :meth:`prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Await :meth:`get_delta_channel_history`."""
        return await asyncio.to_thread(
            lambda: self.get_delta_channel_history(config=config, channels=channels)
        )


def _find(threads: Threads, place: _Place, *, hidden: bool = False) -> _Found | None:
    here = threads.threads.get(place.thread, {}).get(place.namespace)
    if here is None:
        return None
    shown = (name for name, kept in here.checkpoints.items() if not kept.hidden)
    name = place.checkpoint or max(shown, default="")
    kept = here.checkpoints.get(name)
    if kept is None or (kept.hidden and not hidden) or not kept.record:
        return None
    at = place._replace(checkpoint=name)
    return _Found(at, kept, _values_of(here, kept), threads.pieces)


def _values_of(here: KeptNamespace, kept: KeptCheckpoint) -> dict[str, Any]:
    return {
        channel: here.value(channel, _key(version))
        for channel, version in kept.versions.items()
        if here.values.get(channel, {}).get(_key(version)) is not None
    }


def _places(threads: Threads, named: Mapping[str, Any]) -> Sequence[_Place]:
    wanted = str(named["thread_id"]) if "thread_id" in named else None
    found = [
        _Place(thread, namespace, name)
        for thread, namespaces in threads.threads.items()
        if wanted in (None, thread)
        for namespace, here in namespaces.items()
        if named.get("checkpoint_ns") in (None, namespace)
        for name, kept in here.checkpoints.items()
        if not kept.hidden and named.get("checkpoint_id") in (None, "", name)
    ]
    return sorted(found, key=lambda place: place.checkpoint, reverse=True)


def _entries(tree: Sequence[Any]) -> list[str]:
    """Return what tells the entries of a list apart."""
    return [reference(entry) or msgspec.json.encode(entry).decode() for entry in tree]


def _shared(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many entries two lists share at their heads, and at their tails."""
    most, head, tail = min(len(old), len(new)), 0, 0
    while head < most and old[head] == new[head]:
        head += 1
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _key(version: Any) -> str:
    return version if isinstance(version, str) else f"{version!r}:"


class AgentXStore(BaseStore):
    """A LangGraph store that keeps its items in a workspace, with the answers of LangGraph's own.

    Items are strings, numbers, lists and objects of JSON. Secrets in them are redacted.

    Args:
        workspace: The open workspace.
        index: How to compare by meaning, as LangGraph's ``InMemoryStore`` takes it; by default with the
            workspace's embedding model, if there is one. A query then ranks; otherwise it selects nothing.
    """

    def __init__(self, workspace: Workspace, *, index: IndexConfig | None = None) -> None:
        self._ws = workspace
        self._threads = KeptThreads(workspace.engine)
        self._items = InMemoryStore(index=index or _by_meaning(workspace))
        self._shown: dict[tuple[tuple[str, ...], str], KeptItem] = {}
        self._reading = threading.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer and carry out operations; what they put is on the disk on return.

        Reading operations do not see what the same batch puts.
        """
        listed = [_cleaned(op) for op in ops]
        puts = {(op.namespace, op.key): op for op in listed if isinstance(op, PutOp)}
        with self._reading:
            self._read_on()
            asked = [op for op in listed if not isinstance(op, PutOp)]
            answers = iter(self._items.batch(asked) if asked else ())
            results = [None if isinstance(op, PutOp) else next(answers) for op in listed]
        if puts:
            self._ws.record(*map(self._draft, puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Await :meth:`batch`."""
        return await asyncio.to_thread(self.batch, ops)

    def _draft(self, op: PutOp) -> Draft:
        if op.value is None:
            return Draft(data=StoreItemDeleted(namespace=op.namespace, key=op.key), actor=ACTOR)
        value = clean_value(_plain(op.value))
        text, index = msgspec.json.encode(value), op.index if op.index is None else op.index or False
        long = len(text) > LINE_BYTES
        more = self._ws.engine.write_path.keep(text) if long else Body("")
        item = StoreItemSet(
            namespace=op.namespace, key=op.key, value={} if long else value, more=more, index=index
        )
        return Draft(data=item, actor=ACTOR)

    def _read_on(self) -> None:
        """Take over what any process has put since the last time."""
        kept = self._threads.read(
            lambda found: {
                (namespace, key): item
                for namespace, items in found.namespaces()
                for key, item in items.items()
            }
        )
        gone = [PutOp(*name, None) for name in self._shown if name not in kept]
        new = {name: item for name, item in kept.items() if self._shown.get(name) is not item}
        puts = [PutOp(*name, item.value, index=cast("Any", item.index)) for name, item in new.items()]
        for put in (*gone, *puts):  # one by one: LangGraph's store cannot take equal texts in one batch
            self._items.batch([put])
        for name, item in new.items():
            shown = self._items.get(*name)
            if shown is not None:
                shown.created_at = datetime.fromisoformat(item.created_at)
                shown.updated_at = datetime.fromisoformat(item.updated_at)
        self._shown = kept
        # LangGraph's store lists a namespace whose items are gone, or that was only asked for; another
        # process would not. The name of this field is one that its authors promise to keep.
        held = self._items._data  # noqa: SLF001
        for namespace in [one for one, items in held.items() if not items]:
            del held[namespace]


def _cleaned(op: Op) -> Op:
    """Return an operation with its namespace and key as they are recorded."""
    if isinstance(op, PutOp | GetOp):
        return op._replace(namespace=tuple(map(clean, op.namespace)), key=clean(op.key))
    if isinstance(op, SearchOp):
        return op._replace(namespace_prefix=tuple(map(clean, op.namespace_prefix)))
    return op


def _plain(value: Mapping[str, Any]) -> Any:
    """Return an item's value as JSON holds it.

    Raises:
        UsageError: It holds something else.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"A store's item is JSON: {error}. Convert it to text, numbers, lists, objects."
        ) from error


def _by_meaning(workspace: Workspace) -> IndexConfig | None:
    embedder = workspace.engine.indexer.embedder()
    if embedder is None:
        return None

    def embed(texts: Sequence[str]) -> list[list[float]]:
        found = workspace.engine.meanings.of(texts, within_s=EMBED_S)
        width = max((len(vector) for vector in found.values()), default=embedder.dimensions)
        return [found[text].tolist() if text in found else [0.0] * width for text in texts]

    return IndexConfig(dims=embedder.dimensions, embed=embed)
