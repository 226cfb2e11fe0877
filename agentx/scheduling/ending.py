"""End the processes of runs: first they may finish, then they are interrupted, then they are killed."""

import time
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess

_LOOK_S = 0.25


def end_processes(alive: Callable[[], Iterable[BaseProcess]], grace_s: float, end_s: float) -> None:
    """Wait for processes, then terminate those that still run, then kill them.

    Args:
        alive: Returns the processes that still run.
        grace_s: How long they may go on, in seconds.
        end_s: How long they have to end after SIGTERM, in seconds.
    """
    _wait(alive, grace_s)
    for process in alive():
        process.terminate()
    _wait(alive, end_s)
    for process in alive():
        process.kill()


def _wait(alive: Callable[[], Iterable[BaseProcess]], limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while any(alive()) and time.monotonic() < until:
        time.sleep(_LOOK_S)
