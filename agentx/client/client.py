"""A client of the server, for programs that embed AgentX and for the command line."""

import contextlib
import fcntl
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from agentx.client import place
from agentx.client.identity import identity
from agentx.storage.errors import AgentXError

START_S = 15.0
"""How long a client waits for a server that it starts."""

SILENT_S = 300.0
"""A server that sends nothing for this long counts as lost."""

_PAUSE_S = 0.01
SERVE = ("-P", "-m", "agentx", "serve", "--detached")
"""Arguments of Python that start a server on demand."""

RUN = "AGENTX_RUN"
"""Variable of what an agent's run starts: it uses a server that runs, and starts none."""

OTHER_VERSION = -32001
"""Error code: the server runs other code; it finishes and makes room."""

LEAVING = -32004
"""Error code: the server is about to exit; connect again."""


class ServerUnavailable(AgentXError):
    """No server could be reached or started."""


class ServerLost(AgentXError):
    """The server went away before it answered: whether it did what was asked is unknown."""


class RequestFailed(AgentXError):
    """The server refused a request, or the request failed.

    Attributes:
        code: The JSON-RPC error code.
        kind: Name of the exception in the server; empty if the request did not get that far.
        data: More about it.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "The request failed.")))
        data = error.get("data")
        self.code = int(error.get("code", 0))
        self.data: Mapping[str, Any] = data if isinstance(data, dict) else {}
        self.kind = str(self.data.get("type", ""))
        self.exit_code = int(self.data.get("exit_code", 1))


class Client:
    """A connection to the server of this user. Use :meth:`connect`. One thread at a time.

    Attributes:
        last: Number of the latest request, for :meth:`cancel`.

    >>> with Client.connect() as server:  # doctest: +SKIP
    ...     server.call("say", workspace="tasks/report", text="Use British English.")
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self.last = 0

    @classmethod
    def connect(
        cls, environ: Mapping[str, str] | None = None, *, start: bool = True, timeout_s: float = START_S
    ) -> Self:
        """Connect to the server; start it if none runs, or if the one that runs has other code.

        Args:
            environ: Variables to read instead of those of this process.
            start: Whether to start a server. Inside an agent's run none is started: it would end with that.
            timeout_s: How long to wait for a server that is starting.

        Raises:
            ServerUnavailable: It cannot be reached or started, or ``AGENTX_NO_SERVER`` is set.
        """
        found = place.environment(environ)
        if place.is_off(found):
            raise ServerUnavailable(f"{place.OFF} is set.")
        where, end, started = place.runtime_dir(found), time.monotonic() + timeout_s, 0
        start = start and not found.get(RUN)
        while True:
            client, why, busy = cls._tried(where, max(end - time.monotonic(), _PAUSE_S))
            if client is not None:
                return client
            if not (start or busy) or time.monotonic() > end:
                raise ServerUnavailable(f"No server answers in {where}: {why}")
            if not (started or busy):
                started = start_server(found)
            elif started and _ended(started) and not _is_held(where):
                raise ServerUnavailable(f"The server that was started in {where} ended at once: {_SEE}")
            time.sleep(_PAUSE_S)

    @classmethod
    def _tried(cls, where: str, timeout_s: float) -> tuple[Self | None, str, bool]:
        """Connect; or return ``None``, why that failed, and whether a server is there but busy."""
        try:
            place.check(where)
            return cls._greeted(f"{where}/{place.SOCKET}", timeout_s), "", False
        except BlockingIOError as error:  # many connect at this moment
            return None, str(error), True
        except (FileNotFoundError, ConnectionRefusedError, ServerLost) as error:
            return None, str(error), False
        except RequestFailed as error:
            if error.code not in {OTHER_VERSION, LEAVING}:
                raise
            return None, str(error), False
        except OSError as error:
            raise ServerUnavailable(f"The server cannot be reached: {error.strerror or error}.") from error

    @classmethod
    def _greeted(cls, path: str, timeout_s: float) -> Self:
        """Return a connection to a server that has answered in time."""
        connection = _connected(path, timeout_s)
        client = cls(connection)
        try:
            if place.is_stopped(connection):
                raise ServerUnavailable(_STOPPED)  # noqa: TRY301 - as any other reason
            connection.settimeout(timeout_s)
            client.call("hello")
            connection.settimeout(SILENT_S)
        except BaseException:
            client.close()
            raise
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether the server keeps the connection and is not stopped; nothing may be in progress."""
        look = select.poll()
        look.register(self._connection, select.POLLIN)
        return not look.poll(0) and not place.is_stopped(self._connection)  # to be read is only the end

    def close(self) -> None:
        """Close the connection; the server keeps running."""
        self._lines.close()
        self._connection.close()

    def call(
        self, method: str, *, on_event: Callable[[str, dict[str, Any]], object] | None = None, **params: Any
    ) -> Any:
        """Call a method and return its result.

        Args:
            method: Its name, such as ``say``; see docs/server.md.
            on_event: Called with the method and the parameters of each notification that arrives before the
                answer.
            params: Its parameters.

        Raises:
            RequestFailed: The server refused it, or it failed.
            ServerLost: The server went away before it answered.
        """
        number = self.send(method, **params)
        for message in self._messages():
            if "method" in message:
                if on_event is not None:
                    on_event(message["method"], message.get("params", {}))
            elif message.get("id") in (number, None):
                if "error" in message:
                    raise RequestFailed(message["error"])
                return message.get("result")
        raise ServerLost("The server closed the connection before it answered.")

    def stream(self, method: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Call a method and yield the parameters of its notifications until it is done.

        Raises:
            RequestFailed: The server refused it, or it failed.
            ServerLost: The server went away before it was done.
        """
        number = self.send(method, **params)
        silent_s = self._connection.gettimeout()
        self._connection.settimeout(None)  # nothing may happen for long
        try:
            for message in self._messages():
                if "method" in message:
                    yield message.get("params", {})
                elif message.get("id") in (number, None):
                    if "error" in message:
                        raise RequestFailed(message["error"])
                    return
        finally:
            with contextlib.suppress(OSError):  # it was closed meanwhile
                self._connection.settimeout(silent_s)
        raise ServerLost("The server closed the connection before it was done.")

    def cancel(self, number: int) -> None:
        """Ask the server to stop a request, by its number."""
        self._write({"jsonrpc": "2.0", "method": "cancel", "params": {"id": number}})

    def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting for its answer; return its number."""
        self.last += 1
        request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self._write(request | {"agentx": identity()})
        return self.last

    def _write(self, message: Mapping[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ServerLost("The server closed the connection.") from error

    def _messages(self) -> Iterator[dict[str, Any]]:
        with contextlib.suppress(OSError):  # a connection that broke has ended
            while line := self._lines.readline():
                yield json.loads(line)


def _connected(path: str, timeout_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


_STOPPED = "The server is stopped, and answers when it is continued."
_SEE = "`agentx serve` in a terminal shows why."


def start_server(environ: Mapping[str, str]) -> int:
    """Start a server that outlives this process; if another one starts at the same time, one of them ends.

    Args:
        environ: Its environment.

    Returns:
        Its process.
    """
    place.make(place.runtime_dir(environ))
    return start_detached(environ, SERVE)


def start_detached(environ: Mapping[str, str], arguments: Sequence[str]) -> int:
    """Start Python with arguments, so that it outlives this process and is nobody's child.

    Args:
        environ: Its environment.
        arguments: Its arguments.

    Returns:
        Its process; 0 if it could not be started.
    """
    # The shell leaves it to init.
    words = ["sh", "-c", '"$0" "$@" </dev/null >/dev/null 2>&1 & echo $!', sys.executable, *arguments]
    told, tell = os.pipe()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, tell, _STDOUT)]
        shell = os.posix_spawn("/bin/sh", words, dict(environ), setsid=True, file_actions=actions)
        os.waitpid(shell, 0)
        os.set_blocking(told, False)
        return int(os.read(told, _PID_BYTES) or 0)
    except (BlockingIOError, ValueError):  # the shell could not start it
        return 0
    finally:
        os.close(told)
        os.close(tell)


_STDOUT, _PID_BYTES = 1, 32


def _ended(pid: int) -> bool:
    """Return whether a process that is not this one's child has ended."""
    try:
        os.kill(pid, 0)
    except OSError:
        return True
    return False


def _is_held(where: str) -> bool:
    """Return whether a server holds the lock of a runtime directory: it starts, or is about to end."""
    try:
        lock = os.open(f"{where}/{place.LOCK}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
