"""The socket at which a run hears what its program has done, served between the program's own lines."""

import selectors
import shlex
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from agentx.directing import report_act
from agentx.directing.report_act import SOCKET, words_of
from agentx.settings import ACTS

Answer = Callable[[Sequence[bytes]], bytes]

_PATH_BYTES = 80
"""A longer path of a directory leaves no room for the socket's name in an address, which has 104 bytes."""
_MOST = 64
"""Number of conversations at a time; others wait."""
_REQUEST_BYTES = 1 << 18
_READ_BYTES = 1 << 16

_COMMAND = """#!/bin/sh
{acts}={place}; export {acts}
if [ "$1" = done ]; then
    shift
    exec {python} -I -S {client} {place} "$@"
fi
exec {python} -P -m agentx "$@"
"""


class ActSocket:
    """Answers reports of acts, one after the other, in the thread that serves it.

    Args:
        place: An empty directory, private to the user.
        answer: Returns the answer to the words of a report.
    """

    def __init__(self, place: Path, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(place / SOCKET))
        self._listener.listen()
        self._listener.setblocking(False)
        self._open = selectors.DefaultSelector()
        self._open.register(self._listener, selectors.EVENT_READ)
        self._heard: dict[socket.socket, bytearray] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        for one in (*self._heard, self._listener):
            one.close()
        self._open.close()

    def fileno(self) -> int:
        """Return a descriptor that is readable where there is something to serve."""
        return self._open.fileno()

    def serve(self) -> int:
        """Do what can be done without waiting; return the number of steps."""
        ready = self._open.select(0)
        for key, _ in ready:
            if key.fileobj is self._listener:
                self._accept()
            else:
                assert isinstance(key.fileobj, socket.socket)
                self._hear(key.fileobj)
        return len(ready)

    def _accept(self) -> None:
        with suppress(OSError):  # it has gone already, or there are no more descriptors
            one, _ = self._listener.accept()
            one.setblocking(False)
            self._open.register(one, selectors.EVENT_READ)
            self._heard[one] = bytearray()
            if len(self._heard) == _MOST:
                self._open.unregister(self._listener)

    def _hear(self, one: socket.socket) -> None:
        try:
            part = one.recv(_READ_BYTES)
        except OSError:
            part = b""
        heard = self._heard[one]
        heard += part
        words = words_of(bytes(heard)) if part else None
        if words is None and part and len(heard) <= _REQUEST_BYTES:
            return
        try:
            if part:
                answer = b"1 The report is too long." if words is None else self._answer(words)
                with suppress(OSError):  # the act is on record, whether or not somebody still listens
                    one.send(answer)
        finally:
            if len(self._heard) == _MOST:
                self._open.register(self._listener, selectors.EVENT_READ)
            del self._heard[one]
            self._open.unregister(one)
            one.close()


@contextmanager
def listening(answer: Answer, about: bytes, assignment: bytes = b"{}") -> Iterator[tuple[ActSocket, Path]]:
    """Open a socket in a directory with the command ``agentx``, which reports to it.

    The directory is left behind where this process is killed: what it started can report still.

    Args:
        answer: Returns the answer to the words of a report.
        about: What a report needs to be recorded without this process.
        assignment: The assignment as JSON, for the file that ``AGENTX_ASSIGNMENT`` names.
    """
    with tempfile.TemporaryDirectory(prefix="agentx-acts-", dir=_short(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        with ActSocket(place, answer) as acts:
            (place / RUN_FILE).write_bytes(about)
            (place / _ASSIGNMENT_FILE).write_bytes(assignment)
            (place / "bin").mkdir()
            command = place / "bin" / "agentx"
            command.write_text(
                _COMMAND.format(
                    acts=ACTS,
                    place=shlex.quote(name),
                    python=shlex.quote(sys.executable),
                    client=shlex.quote(str(Path(report_act.__file__).resolve())),
                ),
                "utf-8",
            )
            command.chmod(0o700)
            yield acts, place


RUN_FILE = "run.json"
_ASSIGNMENT_FILE = "assignment.json"


def _short() -> str | None:
    """Return a directory for temporary ones whose path leaves room for a socket; ``None`` for the usual."""
    return "/tmp" if len(tempfile.gettempdir().encode()) > _PATH_BYTES else None  # noqa: S108


def with_acts(environ: Mapping[str, str], place: Path) -> dict[str, str]:
    """Return the environment of a program that reports to a directory and finds its assignment there."""
    path = environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    own = {ACTS: str(place), "AGENTX_ASSIGNMENT": str(place / _ASSIGNMENT_FILE)}
    return {**environ, **own, "PATH": f"{place / 'bin'}:{path}"}
