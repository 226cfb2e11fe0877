"""Resident processes that carry out runs, one after another in each.

The first run in a process pays for everything that is imported, compiled and loaded once, which takes several
times as long as a run. So a process stays for the next run, and ends only when it has become large, has done
many, or did not end a run in order.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import msgspec

from agentx.settings import Settings, hold_keys
from agentx.storage.pattern_cache import PATTERNS
from agentx.storage.process_memory import rss_bytes

MOST_BYTES = 768 * 1024 * 1024
"""Resident memory after which a process takes no further run."""

MOST_RUNS = 1_000
"""Number of runs after which a process takes no further one."""

_SAID, _ASKED, _DONE, _LAST = range(4)

_PRELOADED = (
    "agentx.workspace",
    "agentx.agents.loop",
    "markdown_it",
    "numpy",
    "snowballstemmer",
    "tiktoken",
    "tiktoken_ext.openai_public",
)
"""What every run imports: loaded once, before the processes are forked."""


class _Resident(msgspec.Struct, frozen=True, eq=False):
    """A process, and our end of its pipe."""

    process: BaseProcess
    pipe: Connection


class RunPool:
    """Calls functions in processes of their own that are used again.

    There are as many processes as calls were in progress at once: who calls bounds them.

    Args:
        settings: Settings from the environment; the processes hold their keys.
        preload: Modules that are imported before the processes are forked.
        most_bytes: Resident memory after which a process is replaced, in bytes.
        most_runs: Number of calls after which a process is replaced.
    """

    def __init__(
        self,
        settings: Settings,
        preload: Iterable[str] = (),
        *,
        most_bytes: int = MOST_BYTES,
        most_runs: int = MOST_RUNS,
    ) -> None:
        self._settings, self._limits = settings, (most_bytes, most_runs)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*_PRELOADED, *preload])
        self._lock = threading.Lock()
        self._idle: list[_Resident] = []
        self._busy: set[_Resident] = set()
        self._closed = False

    def call(
        self,
        function: Callable[..., Iterable[Any]],
        *arguments: Any,
        answer: Callable[[Any], Any] = lambda _: None,
    ) -> Iterator[Any]:
        """Call a function in a process, and yield what it yields; it ends early if the process dies.

        Args:
            function: Yields what can be pickled. SIGTERM raises ``KeyboardInterrupt`` in it.
            arguments: Its arguments.
            answer: Called with what the function asks with :func:`ask`; returns the answer.
        """
        one = self._taken()
        last = True
        try:
            one.pipe.send((function, arguments))
            while True:
                kind, value = one.pipe.recv()
                if kind == _SAID:
                    yield value
                elif kind == _ASKED:
                    one.pipe.send(answer(value))
                else:
                    last = kind == _LAST
                    return
        except (EOFError, OSError):  # it died
            return
        finally:
            with self._lock:
                self._busy.discard(one)
                last = last or self._closed
                if not last:
                    self._idle.append(one)
            if last:
                one.pipe.close()
                one.process.join()

    def busy(self) -> list[BaseProcess]:
        """Return the processes with a call in progress."""
        with self._lock:
            return [one.process for one in self._busy]

    def memory(self) -> list[int]:
        """Return the resident memory of each process, in bytes."""
        with self._lock:
            return [rss_bytes(one.process.pid) for one in (*self._idle, *self._busy)]

    def close(self) -> None:
        """End the processes without a call; the others end after theirs."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for one in idle:
            one.pipe.close()
        for one in idle:
            one.process.join()

    def _taken(self) -> _Resident:
        """Return a process, the one that was used last or a new one; it counts as busy."""
        with self._lock:
            while self._idle:
                one = self._idle.pop()
                if one.process.is_alive():
                    self._busy.add(one)
                    return one
                one.pipe.close()
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs, self._settings, *self._limits))
            process.start()
            theirs.close()
            one = _Resident(process, ours)
            self._busy.add(one)
            return one


# --- in a resident process ----------------------------------------------------------------------------------

_turn = threading.Lock()
_asking: Connection | None = None


def ask(question: Any) -> Any:
    """Ask the process that called, in the middle of a call; ``None`` outside of one.

    Raises:
        EOFError: The process that called is gone.
    """
    with _turn:
        if _asking is None:
            return None
        _asking.send((_ASKED, question))
        return _asking.recv()


def tell(said: Any) -> None:
    """Say something to the process that called, which yields it; nothing outside of a call."""
    with _turn:
        if _asking is not None:
            _asking.send((_SAID, said))


def _serve(pipe: Connection, settings: Settings, most_bytes: int, most_runs: int) -> None:
    """Call what comes through a pipe until it is closed, or until this process should be replaced."""
    global _asking  # noqa: PLW0603 - a process serves one pipe
    os.setsid()  # Ctrl-C at the terminal is for the process that called alone
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hold_keys(settings)
    PATTERNS.open(settings.cache_dir / "patterns")
    _asking = pipe
    # The process that called may be gone: what was done is in the history.
    with suppress(KeyboardInterrupt, EOFError, OSError):
        for done in range(1, most_runs + 1):
            function, arguments = pipe.recv()
            for said in function(*arguments):
                with _turn:
                    pipe.send((_SAID, said))
            PATTERNS.save()
            last = done == most_runs or rss_bytes() > most_bytes
            pipe.send((_LAST if last else _DONE, None))
            if last:
                return
