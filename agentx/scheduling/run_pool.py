"""Resident processes that carry out runs, one after another in each.

The first run in a process pays for everything that is imported, compiled and loaded once, which takes several
times as long as a run. So a process stays for the next run, and ends when it has become large, has done
many, or did not end a run in order. Those that have been idle for long end. All together have a bound: idle
ones end when it is passed, and no new one starts while it would be passed and another is at work.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import msgspec

from agentx.settings import Settings, hold_keys
from agentx.storage.pattern_cache import PATTERNS
from agentx.storage.process_memory import machine_bytes, rss_bytes

MOST_BYTES = 768 * 1024 * 1024
"""Resident memory after which a process takes no further run."""

MOST_RUNS = 1_000
"""Number of runs after which a process takes no further one."""

IDLE_S = 300.0
"""Seconds after which an idle process ends."""

END_S = 10.0
"""Seconds that an idle process has to end, before it is killed."""

_FIRST_BYTES = 192 * 1024 * 1024
"""Estimated resident memory of the first process in a run."""

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


class _Resident(msgspec.Struct, eq=False):
    """A process, our end of its pipe, and since when it is idle."""

    process: BaseProcess
    pipe: Connection
    idle_at: float = 0.0

    def end(self, limit_s: float | None = None) -> None:
        """End it; it has no call.

        Args:
            limit_s: Seconds after which it is killed; by default it is waited for.
        """
        self.pipe.close()
        self.process.join(limit_s)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class RunPool:
    """Calls functions in processes of their own that are used again.

    There are as many processes as calls were in progress at once, within the bound on their memory. Memory
    that they share counts for each, so the bound is an upper estimate.

    Args:
        settings: Settings from the environment; the processes hold their keys.
        preload: Modules that are imported before the processes are forked.
        most_bytes: Resident memory after which a process is replaced, in bytes.
        most_runs: Number of calls after which a process is replaced.
        total_bytes: Bound on the resident memory of all processes, in bytes; by default half of what the
            machine has. One process may always work.
        idle_s: Seconds after which :meth:`tidy` ends an idle process.
    """

    def __init__(
        self,
        settings: Settings,
        preload: Iterable[str] = (),
        *,
        most_bytes: int = MOST_BYTES,
        most_runs: int = MOST_RUNS,
        total_bytes: int = 0,
        idle_s: float = IDLE_S,
    ) -> None:
        self._settings, self._limits = settings, (most_bytes, most_runs)
        self._total_bytes, self._idle_s = total_bytes or machine_bytes() // 2, idle_s
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*_PRELOADED, *preload])
        self._lock = threading.Condition()
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
                    answered = answer(value)
                    with suppress(OSError):  # it was interrupted, and has ended: what it said still comes
                        one.pipe.send(answered)
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
                    one.idle_at = time.monotonic()
                    self._idle.append(one)
                self._lock.notify()
            if last:
                one.end()
            self.tidy()

    def busy(self) -> list[BaseProcess]:
        """Return the processes with a call in progress."""
        with self._lock:
            return [one.process for one in self._busy]

    def has_room(self) -> bool:
        """Return whether a call could begin at once, within the bound on memory."""
        with self._lock:
            return self._fits()

    def tidy(self) -> None:
        """End what has been idle for long and, while memory is over its bound, other idle processes."""
        with self._lock:
            until = time.monotonic() - self._idle_s
            ended = [one for one in self._idle if one.idle_at < until]
            self._idle = [one for one in self._idle if one.idle_at >= until]
            while self._idle and self._bytes() > self._total_bytes:
                ended.append(self._idle.pop(0))
        for one in ended:
            one.end(END_S)

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
            one.end(END_S)

    def _bytes(self) -> int:
        return sum(rss_bytes(one.process.pid) for one in (*self._idle, *self._busy))

    def _fits(self) -> bool:
        if self._idle or not self._busy:
            return True
        sizes = [rss_bytes(one.process.pid) for one in self._busy]
        return sum(sizes) + max(_FIRST_BYTES, *sizes) <= self._total_bytes

    def _taken(self) -> _Resident:
        """Return a process, the one that was used last or a new one; it counts as busy."""
        with self._lock:
            while not self._fits():  # a process at work grows and shrinks, so look again now and then
                self._lock.wait(1.0)
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
_owed = False
"""Whether an answer may be in the pipe that nobody reads, because the question was interrupted."""


def ask(question: Any) -> Any:
    """Ask the process that called, in the middle of a call; ``None`` outside of one.

    After a question that was interrupted the answers are out of step: it is ``None`` from then on, and the
    process takes no further call.

    Raises:
        EOFError: The process that called is gone.
    """
    global _owed  # noqa: PLW0603 - a process serves one pipe
    with _turn:
        if _asking is None or _owed:
            return None
        _owed = True
        _asking.send((_ASKED, question))
        answer = _asking.recv()
        _owed = False
        return answer


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
            last = _owed or done == most_runs or rss_bytes() > most_bytes
            pipe.send((_LAST if last else _DONE, None))
            if last:
                return
