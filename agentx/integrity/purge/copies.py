"""Find what must be purged with an event: events that hold a copy of it, and the contents they brought.

It follows the parts of one tool call, everything that names one of the contents, a run whose task is a purged
message, the items of a kept conversation that tell it, and the conclusions that rest on it. An event that
only quotes it is found by its words (:mod:`agentx.integrity.purge.quoting`).
"""

from collections.abc import Callable, Iterable

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.host_events import ConversationChanged
from agentx.storage.events.types import (
    ApprovalDecided,
    Body,
    Event,
    EventsPurged,
    Purged,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
    WorkspaceCreated,
    WorkspaceForked,
    WriteReverted,
    changes_of,
)
from agentx.storage.git.objects import blob_id
from agentx.storage.log.blobs import named_blobs
from agentx.synthesis.memory.conclusions import Add, Change, Concluded, Counted, Patch

_EMPTY = blob_id(b"")
"""The empty file is never a secret."""

_NEEDED = (WorkspaceCreated, WorkspaceForked, WriteReverted, EventsPurged)
_Call = ToolCallRequested | ApprovalDecided | ToolCallExecuted
_TELLING = ("text", "short", "scope", "until", "detail")
"""Fields of a patch that hold the content of an item."""

Events = Callable[[], Iterable[Event]]
"""Returns the whole history from its beginning, each time it is called."""


class PurgeRefused(UsageError):
    """The request cannot be purged; nothing was changed."""


class Closure(msgspec.Struct, frozen=True):
    """What is purged together.

    Attributes:
        events: Type and hash, by seq.
        contents: Blob IDs of long texts and files, with the event that brought each.
        paths: Files that the events changed.
        items: Memory items that are removed.
        purged: Requested events whose content is already purged.
        conclusions: Purged conclusions that also contain items that do not rest on what is purged.
    """

    events: dict[int, tuple[str, str]]
    contents: dict[str, int]
    paths: frozenset[str]
    items: tuple[str, ...]
    purged: tuple[int, ...]
    conclusions: tuple[int, ...]


def follow(events: Events, seeds: Iterable[int]) -> Closure:
    """Return what must be purged with some events.

    Raises:
        PurgeRefused: The event does not exist, or the history cannot be read without it.
    """
    following = _Following(set(seeds))
    while following.grows:
        following.grows = False
        following.begin()
        for event in events():
            following.look(event)
    return following.closure()


class _Following:
    def __init__(self, seeds: set[int]) -> None:
        self.grows = True
        self._seqs = set(seeds)
        self._seeds = set(seeds)
        self._events: dict[int, tuple[str, str]] = {}
        self._contents: dict[str, int] = {}
        self._paths: set[str] = set()
        self._items: dict[str, None] = {}
        self._messages: set[Body] = set()
        self._keys: set[str] = set()
        self._mixed: set[int] = set()
        self._purged: set[int] = set()
        self._last = 0

    def begin(self) -> None:
        """Begin reading the history from its first event."""
        self._calls: dict[tuple[str, str], list[Event]] = {}

    def look(self, event: Event) -> None:
        """Add an event if it must be purged."""
        self._last = event.seq
        if isinstance(event.data, Purged):
            self._purged |= {event.seq} & self._seeds
            return
        if isinstance(event.data, _Call):
            self._group(event, event.data)
        if event.seq in self._seqs or self._falls(event):
            self._take(event)

    def _group(self, event: Event, data: _Call) -> None:
        """Keep the parts of one call together: request, approval and results."""
        key = event.run, data.call_id
        group = self._calls.get(key, [])
        fresh = isinstance(data, ToolCallRequested) or (
            bool(group) and isinstance(group[-1].data, ToolCallExecuted) and group[-1].seq + 1 != event.seq
        )
        self._calls[key] = group = [event] if fresh else [*group, event]
        if any(part.seq in self._seqs for part in group):
            for part in group:
                self._take(part)

    def _falls(self, event: Event) -> bool:
        if self._named(event) & self._contents.keys():
            return True
        if isinstance(event.data, RunStarted):
            return event.data.task in self._messages
        if isinstance(event.data, ConversationChanged):
            return not self._keys.isdisjoint(" ".join(event.data.facts).split())
        return isinstance(event.data, Concluded) and any(map(self._rests, event.data.changes))

    @staticmethod
    def _named(event: Event) -> set[str]:
        named = {*named_blobs(event.data), *(change.after for change in changes_of(event))}
        return named - {"", _EMPTY}

    def _rests(self, change: Change) -> bool:
        """Return whether a change rests on what is purged, or repeats the content of such an item."""
        if isinstance(change, Counted):
            return change.seq in self._seqs
        evidence = change.item.evidence if isinstance(change, Add) else change.evidence
        if evidence is not msgspec.UNSET and any(one.seq in self._seqs for one in evidence):
            return True
        return (
            isinstance(change, Patch)
            and change.id in self._items
            and not change.fields().keys().isdisjoint(_TELLING)
        )

    def _take(self, event: Event) -> None:
        if event.seq in self._events:
            return
        if isinstance(event.data, _NEEDED):
            raise PurgeRefused(
                f"Event {event.seq} ({event.type}) cannot be purged: the history cannot be read without it."
            )
        self._seqs.add(event.seq)
        self._events[event.seq] = event.type, event.hash
        self._keys |= {event.key.rpartition(":")[2]} - {""}
        self.grows = True
        for oid in sorted(self._named(event)):
            self._contents.setdefault(oid, event.seq)
        self._paths |= {change.path for change in changes_of(event)}
        if isinstance(event.data, UserMessageSent):
            self._messages.add(event.data.body)
        elif isinstance(event.data, Concluded):
            self._items |= {change.item.id: None for change in event.data.changes if isinstance(change, Add)}
            if event.seq not in self._seeds and not all(map(self._rests, event.data.changes)):
                self._mixed.add(event.seq)

    def closure(self) -> Closure:
        """Return the result.

        Raises:
            PurgeRefused: A requested event does not exist.
        """
        missing = sorted(self._seeds - self._events.keys() - self._purged)
        if missing:
            raise PurgeRefused(
                f"Event {missing[0]} does not exist; the history has events 1 to {self._last}. `agentx log` "
                "lists them."
            )
        return Closure(
            events=dict(sorted(self._events.items())),
            contents=self._contents,
            paths=frozenset(self._paths),
            items=tuple(self._items),
            purged=tuple(sorted(self._purged)),
            conclusions=tuple(sorted(self._mixed)),
        )
