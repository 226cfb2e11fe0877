"""The worker threads of a pipeline: each does one step at a time."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from agentx.pipelines.results import Came
from agentx.synthesis.pipelines.running.due_steps import Due

LOOK_UP_S = 0.5
"""Interval at which the waiting main thread wakes up, so that it notices a Ctrl-C."""


class Crew:
    """Worker threads that do steps and return the results; they end when the context is left.

    They are daemon threads: one that waits for a model does not delay the end of the process.
    """

    def __init__(self, size: int, do: Callable[[Due], Came]) -> None:
        self._do = do
        self._size = size
        self._given: queue.SimpleQueue[Due | None] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[tuple[Due, Came | BaseException] | None] = queue.SimpleQueue()
        for number in range(size):
            threading.Thread(target=self._work, name=f"agentx-pipeline-{number}", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for _ in range(self._size):
            self._given.put(None)

    def give(self, due: Due) -> None:
        """Queue a step."""
        self._given.put(due)

    def wake(self) -> None:
        """Wake the thread that waits in `next`; safe to call from a signal handler."""
        self._came.put(None)

    def next(self) -> tuple[Due, Came] | None:
        """Return the next finished step and its result; ``None`` after `wake`."""
        while True:
            # A signal that comes just before a wait begins does not end that wait
            with suppress(queue.Empty):
                done = self._came.get(timeout=LOOK_UP_S)
                if done is None:
                    return None
                due, came = done
                if isinstance(came, BaseException):
                    raise came
                return due, came

    def _work(self) -> None:
        while (due := self._given.get()) is not None:
            try:
                self._came.put((due, self._do(due)))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                self._came.put((due, error))
