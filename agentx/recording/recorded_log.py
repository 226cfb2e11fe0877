"""The log of one workspace with the state that its events fold into: append, read on, fold, publish.

Everything that changes the state runs here, under the workspace's lock, which
:class:`agentx.recording.write_path.WritePath` holds.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from agentx.core.event_bus import ALL, MEMORY_CHANGED, Bus, MemoryChanged
from agentx.storage.errors import WriterConflict
from agentx.storage.events.codec import GENESIS, Codec
from agentx.storage.events.types import Draft, Event
from agentx.storage.log.blobs import BlobStore
from agentx.storage.log.history import Damage, History, HistoryWriter, told_already
from agentx.storage.log.keys import Keys
from agentx.storage.log.snapshots import Snapshots
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.state.parallel_fold import fold
from agentx.synthesis.state.state import FOLD_VERSION, State

_RECENT = 500
"""Events kept in memory for whoever reads what is new."""

SNAPSHOT_EVENTS = 2_000
"""Save a snapshot of the state after at most this number of events, so that the next open folds fewer."""


class RecordedLog:
    """The events of one workspace and the state after the last of them.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        cache: Directory of the caches.
        bus: Each folded event is queued here; the holder of the lock delivers.
        added: Called with the events of each append or catch-up; it may get an event twice.

    Attributes:
        state: The fold of everything that this process has read.
        folding: Held by the thread that changes the state. Holding it alone is enough to read the state and
            does not wait for other processes. Do not take the workspace lock while holding it.
        history: Reads the log.
        blobs: The long texts beside it.
        writer: Appends to the live log.
        damage: Damage found in the log.
        last_write: ``time.monotonic()`` of the latest append by this process.
    """

    def __init__(
        self, root: Path, codec: Codec, cache: Path, bus: Bus, added: Callable[[Sequence[Event]], None]
    ) -> None:
        self.state = State()
        self.folding = threading.RLock()
        self._applying = threading.Lock()
        self.history = History(root, codec)
        self.blobs = BlobStore(root)
        self.writer = HistoryWriter(root, codec)
        self.damage: list[Damage] = []
        self.last_write = 0.0
        self._recent: deque[Event] = deque(maxlen=_RECENT)
        self._unpublished: deque[tuple[int, int, list[tuple[str, Any]]]] = deque()
        self._publishing = threading.Lock()
        self._published = 0
        self._root = root
        self._codec = codec
        self._bus = bus
        self._added = added
        self._snapshots = snapshots_of(cache, self.history)
        self._snapshot_seq = 0
        self._keys = Keys(cache / "keys.sqlite3", self.history)

    def close(self) -> None:
        """Release files and handles."""
        self.writer.close()
        self._keys.close()

    # --- the state --------------------------------------------------------------------------------

    def copy_state(self) -> State:
        """Return a copy of the state between two appends; waits for no sync and for no other process."""
        with self._applying:
            return self.state.copy()

    def open(self) -> None:
        """Fold the log, from the newest usable snapshot on."""
        found = self._snapshots.load(State.decode)
        self._snapshot_seq = found[1].seq if found else 0
        if found is None:
            self.fold_from_zero()
        else:
            self._begin_with(found[0].apply_all(self.history.read(found[1], self.damage.append)))

    def fold_from_zero(self) -> None:
        """Fold the whole log again, and look for damage again."""
        self.damage.clear()
        self._begin_with(fold(self._root, self._codec, self.damage.append))

    def _begin_with(self, state: State) -> None:
        self.state = state
        self._recent.clear()
        if not self._unpublished:
            self._published = state.seq
        self.writer.start_at(state.seq, state.hash or GENESIS)

    def adopt(self, state: State) -> None:
        """Use a state folded elsewhere from the whole log, unless it is newer than this one."""
        if state.seq <= self.state.seq:
            state.apply_all(self.history.read(state.seq, told_already))
            self.state, self._snapshot_seq = state, 0

    def forget_snapshots(self) -> None:
        """Delete the snapshots."""
        self._snapshots.clear()

    @property
    def snapshot_seq(self) -> int:
        """The event of the latest snapshot; 0 for none."""
        return self._snapshot_seq

    @property
    def snapshot_age(self) -> int:
        """Number of events folded since the last snapshot; 0 if the log is damaged and none may be saved."""
        return 0 if self.damage else self.state.seq - self._snapshot_seq

    @property
    def snapshot_due(self) -> bool:
        """Whether enough events were folded since the last snapshot."""
        return self.snapshot_age >= SNAPSHOT_EVENTS

    def save_snapshot(self, state: State) -> None:
        """Save a copy of the state."""
        self._snapshots.save(state.seq, state.hash, state.dump())
        self._snapshot_seq = state.seq

    def after(self, seq: int) -> list[Event]:
        """Return the folded events after one; the latest are in memory."""
        if self._recent and self._recent[0].seq <= seq + 1:
            skipped = seq + 1 - self._recent[0].seq
            return list(islice(self._recent, skipped, None))
        return list(self.history.read(seq, told_already))

    # --- reading on and appending -----------------------------------------------------------------

    def read_on(self) -> None:
        """Fold what others appended, without changing anything on disk."""
        self.fold(list(self.history.read(self.state.seq, told_already)))
        self._publish()

    def catch_up(self) -> list[Event]:
        """Return what others appended, strictly checked and not folded yet.

        Raises:
            HistoryRewound: The log ends before the last event that was read.
        """
        if self.writer.seq != self.state.seq:  # a signal arrived between the append and the fold
            self.writer.start_at(self.state.seq, self.state.hash or GENESIS)
        return self.writer.catch_up(self.damage.append, strict=True)

    def find(self, drafts: Sequence[Draft]) -> dict[str, Event]:
        """Return the recorded events, by key, of drafts that are in the history already."""
        keys = [draft.key for draft in drafts if draft.key]
        return self._keys.find(keys) if keys else {}

    def has_key(self, key: str) -> bool:
        """Return whether an event with a key is recorded."""
        return self.event_of(key) is not None

    def event_of(self, key: str) -> Event | None:
        """Return the event with a key; ``None`` if there is none."""
        return self._keys.find([key]).get(key)

    def append(self, drafts: Sequence[Draft], *, sync: bool = True) -> list[Event]:
        """Append events, and fold them. They are durable on return, or after :meth:`sync`.

        Raises:
            WriterConflict: Another process wrote first; what it wrote is folded, and nothing of this is
                recorded.
        """
        try:
            events = self.writer.append(drafts, sync=sync)
        except WriterConflict:  # whoever wrote to the file first wins; our lines are set aside
            self.fold(self.writer.catch_up(self.damage.append))
            raise
        self.last_write = time.monotonic()
        self.fold(events)
        return events

    def sync(self, through: int) -> None:
        """Make the first ``through`` batches of the log durable, and queue their events on the bus.

        Needs no lock.

        Raises:
            HistoryWriteFailed: The disk refuses; :meth:`undo_failed` is due.
        """
        self.writer.sync(through)
        self._publish()

    def undo_failed(self) -> int:
        """Take back what a failed sync left in doubt; then open the log again.

        Returns:
            The last event whose subscribers were told of it.
        """
        self._publish()
        self.writer.undo_failed()
        self._unpublished.clear()
        return self._published

    def fold(self, events: Sequence[Event]) -> None:
        """Apply events to the state.

        They are queued on the bus, with the changes to memory, once they are durable.
        """
        self._added(events)  # first: an event that a signal keeps from the state is read again
        with self._applying:
            for event in events:
                self._apply(event)
                self._recent.append(event)

    def _apply(self, event: Event) -> None:
        changes = event.data.changes if isinstance(event.data, Concluded) else ()
        touched = dict.fromkeys(made.item.id if isinstance(made, Add) else made.id for made in changes)
        before = {item: self.state.items.get(item) for item in touched}
        self.state.apply(event)
        messages: list[tuple[str, Any]] = [(event.type, event), (ALL, event)]
        messages += (
            (MEMORY_CHANGED, MemoryChanged(self.state.items[item], before[item], event))
            for item in touched
            if item in self.state.items
        )
        self._unpublished.append((self.writer.appended, event.seq, messages))

    def _publish(self) -> None:
        """Queue on the bus what is durable."""
        with self._publishing:
            while self._unpublished and self._unpublished[0][0] <= self.writer.synced:
                _, self._published, messages = self._unpublished.popleft()
                self._bus.enqueue(messages)

    def publish_again(self, after: int) -> None:
        """Queue the events after one on the bus again."""
        self._published = max(self._published, self.state.seq)
        for event in self.history.read(after, told_already):
            self._bus.enqueue([(event.type, event), (ALL, event)])


def state_version(history: History) -> str:
    """Return what identifies the fold and the event types: a state of another version is not used."""
    return f"{FOLD_VERSION}-{history.fingerprint}"


def snapshots_of(cache: Path, history: History) -> Snapshots:
    """Return the snapshots of a workspace's state, which are below the directory of its caches."""
    return Snapshots(cache / "snapshots", history, state_version(history), sealed=True)
