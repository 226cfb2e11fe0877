"""A program run over pipes: its time limit always holds, and memory stays bounded.

The program may print without end, never read, close its stdin, or leave or detach children that hold its
pipes.
"""

import math
import os
import selectors
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agentx.directing.act_socket import ActSocket
from agentx.quality.process import (
    COOKIE,
    DRAIN_S,
    POLL_S,
    READ_BYTES,
    HeadAndTail,
    end_all,
    has_ended,
    marked,
    outlived,
)
from agentx.storage.errors import AgentXError
from agentx.storage.text import sized

LINE_BYTES = 10_000_000
"""Maximum number of bytes of a line, or of a whole output, where the caller names no other."""

_ASIDE_BYTES = 4_000
_PIPE_BYTES = 1 << 20
"""Maximum number of bytes that a pipe can still hold when its program has ended."""


class OutputTooLong(AgentXError):
    """A program printed more than is allowed.

    Attributes:
        max_bytes: The limit.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"It printed more than {sized(max_bytes)}")
        self.max_bytes = max_bytes


class Program:
    """A running program; on leaving the context, it is ended with all processes that it started.

    Args:
        words: The program and its arguments.
        environ: Its whole environment, except a variable that identifies the processes it starts.
        place: Its working directory.
        time_limit_s: Time limit in seconds; 0 for none.
        max_bytes: Maximum number of bytes of a line, or of a whole output; 0 for the default.
        acts: Where it reports what it has done; served while anything is waited for.

    Attributes:
        deadline: ``time.monotonic()`` at which its time is up.
        late: Whether its time was up before it had finished.
        aside: What it printed on stderr.
        outlived: Whether processes that it started outlived it and were ended; known after the context is
            left.
        open_ended: Whether such a process still held its output, which may lack its end.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        place: Path,
        time_limit_s: float = 0.0,
        max_bytes: int = 0,
        acts: ActSocket | None = None,
    ) -> None:
        self.limit(time_limit_s)
        self._cookie = uuid.uuid4().hex
        self._process = subprocess.Popen(
            words,
            bufsize=0,
            cwd=place,
            env={**environ, COOKIE: self._cookie},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=marked(),  # noqa: PLW1509 - one system call; takes no lock
        )
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self.late = self.outlived = self.open_ended = False
        self._max_bytes = max_bytes or LINE_BYTES
        self.aside = HeadAndTail(_ASIDE_BYTES)
        self._heard = bytearray()
        self._unsent = bytearray()
        self._stdin = self._process.stdin
        os.set_blocking(self._stdin.fileno(), False)
        self._open = selectors.DefaultSelector()
        self._open.register(self._process.stdout, selectors.EVENT_READ, self._heard.extend)
        self._open.register(self._process.stderr, selectors.EVENT_READ, self.aside.add)
        self._acts = acts
        if acts is not None:
            self._open.register(acts, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        try:
            self.outlived = self.open_ended or outlived(self._process, self._cookie)
            end_all(self._process, self._cookie)
            self._move(0)
        finally:
            self._open.close()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()

    @property
    def exit_status(self) -> int | None:
        """Negative where a signal ended it; known after the context is left."""
        return self._process.returncode

    @property
    def has_ended(self) -> bool:
        """Whether the program itself has ended."""
        return has_ended(self._process)

    def limit(self, time_limit_s: float) -> None:
        """Set the time limit anew, in seconds from now; 0 for none."""
        self.deadline = time.monotonic() + (time_limit_s or math.inf)

    def send(self, content: bytes) -> None:
        """Send a content, or as much of it as the program reads."""
        if self._stdin.closed:
            return
        self._unsent += content
        self._open.register(self._stdin, selectors.EVENT_WRITE)
        self._go_on(lambda: not self._unsent or self._overfull)
        if not self._stdin.closed:
            self._open.unregister(self._stdin)

    def line(self) -> bytes:
        """Return the next line; empty where there are no more.

        Raises:
            OutputTooLong: It is longer than ``max_bytes``.
        """
        self._go_on(lambda: b"\n" in self._heard or self._overfull or not self._talks)
        end = self._heard.find(b"\n") + 1 or len(self._heard)
        self.check_length(end)
        line = bytes(self._heard[:end])
        del self._heard[:end]
        return line

    def whole(self, content: bytes) -> bytes:
        """Send a last content, close stdin, wait for the end, and return the output.

        Raises:
            OutputTooLong: It is longer than ``max_bytes``; nobody waits for its end then.
        """
        self.send(content)
        self._stdin.close()
        self._go_on(lambda: self._overfull)
        self.check_length(len(self._heard))
        return bytes(self._heard)

    def rest(self, content: bytes, max_bytes: int) -> str:
        """Send a last content, close stdin, and wait for the end.

        Returns:
            The output; its middle is cut out where it is longer than ``max_bytes``.
        """
        kept = HeadAndTail(max_bytes)
        kept.add(bytes(self._heard))
        if self._talks:
            assert self._process.stdout
            self._open.modify(self._process.stdout, selectors.EVENT_READ, kept.add)
        self.send(content)
        self._stdin.close()
        self._go_on(lambda: False)
        return kept.text()

    # --- the pipes ------------------------------------------------------------------------------------------

    @property
    def _overfull(self) -> bool:
        return len(self._heard) > self._max_bytes

    def check_length(self, count: int) -> None:
        """Refuse a length of more than ``max_bytes``.

        Raises:
            OutputTooLong: It is longer.
        """
        if count > self._max_bytes:
            raise OutputTooLong(self._max_bytes)

    @property
    def _talks(self) -> bool:
        assert self._process.stdout
        return self._process.stdout in self._open.get_map()

    @property
    def _has_pipes(self) -> bool:
        return len(self._open.get_map()) > (self._acts is not None)

    def _go_on(self, done: Callable[[], bool]) -> None:
        """Move data through the pipes until ``done()``, the end of the program, or the time limit."""
        ended, left_over = False, 0
        while not done():
            left_s = self.deadline - time.monotonic()
            if left_s <= 0:
                self.late = not ended
                return
            moved = self._move(min(left_s, DRAIN_S if ended and self._talks else POLL_S))
            left_over += moved if ended else 0
            if ended and (not moved or left_over > _PIPE_BYTES or not self._has_pipes):
                self.open_ended = self._talks
                return
            ended = ended or has_ended(self._process)

    def _move(self, wait_s: float) -> int:
        """Read and write once where possible; return the number of bytes, and of pipes that ended."""
        count = 0
        for key, _ in self._open.select(wait_s):
            if key.fileobj is self._acts:
                count += self._acts.serve()
                continue
            if key.fileobj is self._stdin:
                try:
                    written = os.write(self._stdin.fileno(), self._unsent[:READ_BYTES])
                    del self._unsent[:written]
                    count += written
                except BrokenPipeError:  # it has stopped reading; its output says why
                    self._unsent.clear()
                    self._open.unregister(self._stdin)
                    self._stdin.close()
                continue
            part = os.read(key.fd, READ_BYTES)
            count += len(part) or 1
            if part:
                key.data(part)
            else:
                self._open.unregister(key.fileobj)
        return count
