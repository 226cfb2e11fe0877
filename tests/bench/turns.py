"""Processes that take turns: one runs at a time, from one turn to the next.

A machine is never as fast as a minute ago. So what is to be compared is measured in small steps: a child runs until it
is about to take a time, hands its turn over, and waits.
"""

import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_VARIABLE = "AGENTX_BENCH_TURNS"
_TURN = b"."


class Child:
    """A process that runs one turn at a time.

    Args:
        command: What it runs.
        cwd: Its directory.
        environ: Its environment.
    """

    def __init__(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> None:
        self._ours, its = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - `result` and `end` close it
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - the same
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**environ, _VARIABLE: str(its.fileno())},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            pass_fds=[its.fileno()],
        )
        its.close()

    def step(self) -> bool:
        """Let it run to the end of its turn; return whether it has more to do."""
        try:
            self._ours.sendall(_TURN)
            return bool(self._ours.recv(1))
        except ConnectionError:
            return False

    def result(self) -> tuple[int, str, str]:
        """Wait for its end; return its exit status, output and errors."""
        self._ours.close()
        status = self._process.wait()
        texts = []
        for file in (self._output, self._errors):
            with file:
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return status, texts[0], texts[1]

    def end(self) -> None:
        """Kill it if it still runs."""
        self._ours.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._errors.close()


def take_turns(children: Sequence[Child]) -> None:
    """Run all of them to their ends, one turn of each at a time; end all of them if we are interrupted."""
    going = list(children)
    try:
        while going:
            going = [child for child in going if child.step()]
            hand_over()
    except BaseException:
        for child in children:
            child.end()
        raise


def hand_over() -> None:
    """Let the others take their turn, and return when ours comes; at once in a process that takes no turns."""
    if _PARENT is not None:
        _PARENT.sendall(_TURN)
        if not _PARENT.recv(1):
            raise SystemExit("The benchmark that started this process has ended.")


def _parent() -> socket.socket | None:
    """Return the connection to the process that gives the turns, after our first turn has come."""
    number = os.environ.pop(_VARIABLE, "")  # our own children take no turns with us
    if not number:
        return None
    parent = socket.socket(fileno=int(number))
    parent.set_inheritable(False)
    if not parent.recv(1):
        raise SystemExit("The benchmark that started this process has ended.")
    return parent


_PARENT = _parent()
