"""Puts Ctrl-C off for as long as something must not stop halfway.

Python raises ``KeyboardInterrupt`` between any two bytecodes of the main thread: also between taking a lock and the ``try``
that gives it back, where no ``with`` and no ``finally`` helps. Whoever takes a lock that other threads and processes wait
for puts it off meanwhile.
"""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Self

PATIENCE_S = 1.0
"""Who presses Ctrl-C again after so long is heard at once, whatever is going on."""

_Handler = Callable[[int, FrameType | None], object]


class PutOff:
    """Puts Ctrl-C off for the body of a ``with``; what came meanwhile is raised at its end.

    Only the main thread hears Ctrl-C, and only
    where it has a handler; elsewhere, and inside another of these, it does nothing.
    """

    def __init__(self) -> None:
        self._before: _Handler | None = None
        self._came: list[float] = []

    def __enter__(self) -> Self:
        self.put_off()
        return self

    def __exit__(self, *_error: object) -> None:
        self.let_through()

    def put_off(self) -> None:
        """From here on."""
        if threading.get_ident() == threading.main_thread().ident:
            before = signal.getsignal(signal.SIGINT)
            if callable(before) and not isinstance(getattr(before, "__self__", None), PutOff):
                self._before = before
                signal.signal(signal.SIGINT, self._note)

    def let_through(self) -> None:
        """Raise what came so far, and what comes from here on."""
        if self._before is None:
            return
        if signal.getsignal(signal.SIGINT) == self._note:
            signal.signal(signal.SIGINT, self._before)
        self._before = None
        while self._came:
            self._came.pop()
            handler = signal.getsignal(signal.SIGINT)  # the first may have put another in its place
            if callable(handler):
                handler(signal.SIGINT, None)

    def check(self) -> None:
        """Raise what came so far: for a wait inside, where nothing stands halfway."""
        if self._came:
            self.let_through()
            self.put_off()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append(time.monotonic())
        if self._before is not None and self._came[-1] - self._came[0] > PATIENCE_S:
            self._came.clear()
            self._before(number, frame)
