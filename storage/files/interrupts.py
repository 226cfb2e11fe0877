"""Defer Ctrl-C while an operation must not stop halfway.

Python raises ``KeyboardInterrupt`` between any two bytecodes of the main thread: also between taking a lock
and the ``try`` that releases it, where neither ``with`` nor ``finally`` helps. Code that takes a lock for
which other threads and processes wait defers Ctrl-C meanwhile.
"""

import _signal  # type: ignore[import-not-found]
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Self

_SIGINT = int(signal.SIGINT)
"""The module ``signal`` converts each number and handler to an enum, which takes longer than the call."""

PATIENCE_S = 1.0
"""A second Ctrl-C after this time is raised at once, whatever is running."""

_Handler = Callable[[int, FrameType | None], object]


class PutOff:
    """Defers Ctrl-C during the body of a ``with``; a deferred one is raised at its end.

    Python delivers Ctrl-C to the main thread alone. In another thread, without a handler, or inside another
    instance, this does nothing.
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
        """Start to defer Ctrl-C."""
        if threading.get_ident() == threading.main_thread().ident:
            before = _signal.getsignal(_SIGINT)
            if callable(before) and not isinstance(getattr(before, "__self__", None), PutOff):
                self._before = before
                _signal.signal(_SIGINT, self._note)

    def let_through(self) -> None:
        """Raise deferred interrupts and stop deferring."""
        if self._before is None:
            return
        if _signal.getsignal(_SIGINT) == self._note:
            _signal.signal(_SIGINT, self._before)
        self._before = None
        while self._came:
            self._came.pop()
            # The first call may have installed another handler.
            handler = _signal.getsignal(_SIGINT)
            if callable(handler):
                handler(_SIGINT, None)

    def check(self) -> None:
        """Raise deferred interrupts: for use while waiting, when nothing is half done."""
        if self._came:
            self.let_through()
            self.put_off()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append(time.monotonic())
        if self._before is not None and self._came[-1] - self._came[0] > PATIENCE_S:
            self._came.clear()
            self._before(number, frame)
