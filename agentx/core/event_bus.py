"""The event bus: delivers every event, once durable, to the subscribers in this process.

blinker calls receivers in no fixed order, holds them weakly and stops at the first exception. Here each is
held strongly, called in the order of subscription, and isolated: a failing receiver is logged and stops
nothing.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

from blinker import Namespace

from agentx.storage.events.types import Event
from agentx.synthesis.memory.items import MemoryItem

_LOG = logging.getLogger("agentx.core.event_bus")

ALL = "*"
MEMORY_CHANGED = "MemoryChanged"

Receiver = Callable[[Any], object]


class MemoryChanged:
    """A memory item was added, changed or removed.

    Attributes:
        item: The item as it is now.
        before: The item as it was; ``None`` if it is new.
        event: The conclusion that changed it.
    """

    def __init__(self, item: MemoryItem, before: MemoryItem | None, event: Event) -> None:
        self.item = item
        self.before = before
        self.event = event


class Bus:
    """Signals by name: each event type, ``"*"`` for every event, and ``"MemoryChanged"``."""

    def __init__(self) -> None:
        self._signals = Namespace()
        self._order: list[Callable[..., None]] = []
        self._receivers: dict[str, list[Callable[..., None]]] = {}
        self._queue: deque[tuple[str, Any]] = deque()
        self._delivering = RLock()
        self._busy = False

    def subscribe(self, name: str, receiver: Receiver) -> Callable[[], None]:
        """Call ``receiver`` with everything published under ``name``; return a function that ends this."""

        def deliver(_sender: object, *, message: Any) -> None:
            receiver(message)

        self._signals.signal(name).connect(deliver, weak=False)
        self._order.append(deliver)
        self._receivers = {}

        def unsubscribe() -> None:
            self._signals.signal(name).disconnect(deliver)
            if deliver in self._order:
                self._order.remove(deliver)
            self._receivers = {}

        return unsubscribe

    def enqueue(self, messages: Iterable[tuple[str, Any]]) -> None:
        """Queue messages; they keep this order whichever thread delivers them."""
        self._queue.extend(messages)

    def deliver(self) -> None:
        """Publish the queued messages; those that a receiver adds come last, in the same round."""
        with self._delivering:
            if self._busy:
                return
            self._busy = True
            try:
                while self._queue:
                    name, message = self._queue.popleft()
                    self._publish(name, message)
            finally:
                self._busy = False

    def _publish(self, name: str, message: Any) -> None:
        receivers, known = self._receivers, self._receivers.get(name)
        if known is None:
            connected = set(self._signals.signal(name).receivers_for(self))
            known = receivers[name] = [receiver for receiver in self._order if receiver in connected]
        for receiver in known:
            try:
                receiver(self, message=message)
            except Exception:  # noqa: BLE001 - a failing subscriber must not stop recording
                _LOG.exception("A subscriber of %s failed; the event is recorded all the same.", name)
