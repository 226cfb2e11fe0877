"""Processes that die: forked from one that has everything loaded, heard through a pipe, and never waited for too long."""

import contextlib
import dataclasses
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

TIMEOUT_S = 60.0
"""A process that takes longer hangs: a finding of its own."""

Tell = Callable[[dict[str, Any]], None]


@dataclasses.dataclass
class Child:
    """A process that was forked, and what it has said."""

    pid: int
    pipe: int
    said: bytes = b""
    status: int | None = None
    hung: bool = False

    def listen(self, until: float) -> None:
        """Hear the child until it ends, or until a moment."""
        listen([self], until)

    def read(self) -> None:
        """Read what the child has said by now, which must be something, or its end."""
        part = os.read(self.pipe, 1 << 16)
        self.said += part
        if not part:
            os.close(self.pipe)
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def finish(self, timeout_s: float = TIMEOUT_S) -> list[dict[str, Any]]:
        """Wait for the child's end; what it said, whole lines only."""
        self.listen(time.monotonic() + timeout_s)
        if self.status is None:
            self.hung = True
            self.kill()
        return self.told

    def kill(self) -> None:
        """End the child at once, and hear what it had said."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.listen(time.monotonic() + TIMEOUT_S)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What the child has said so far."""
        return [json.loads(line) for line in self.said.split(b"\n")[:-1]]


def listen(children: Sequence[Child], until: float) -> None:
    """Hear several children until all have ended, or until a moment. One that nobody hears stops at a full pipe."""
    while talking := {child.pipe: child for child in children if child.status is None}:
        ready, _, _ = select.select(list(talking), [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return
        for pipe in ready:
            talking[pipe].read()


def start(work: Callable[[Tell], None]) -> Child:
    """Do some work in a process of its own, which tells what it does line by line."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    write = os.write

    def tell(message: dict[str, Any]) -> None:
        write(writing, json.dumps(message).encode() + b"\n")

    try:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the engine logs of a fault that is meant
        work(tell)
    except BaseException:
        tell({"error": traceback.format_exc(limit=-6)})
        os._exit(1)
    os._exit(0)
