"""Hand a command line to the server: one request over a Unix socket, with the standard library alone.

Whatever goes wrong before anything was done, the command runs in its own process, as if there were no server.
"""

import io
import json
import os
import sys
from _socket import AF_UNIX, SOCK_STREAM
from _socket import socket as Socket  # noqa: N812 - the module `socket` would double the time of the import

from agentx.cli.commands import COMMANDS, MOVED, find, front, line, spoken
from agentx.client import place
from agentx.client.identity import identity
from agentx.storage.errors import UsageError

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

METHOD = "command.run"

ALONE = {"-h", "--help", "--version", "--follow", "-f", "--check", "--try"}
"""Options with which no command is served: it reads other files, or goes on until it is stopped."""

INTERRUPTED, PIPE_CLOSED = 130, 141

_CONNECT_S = 1.0
_SILENT_S = 60.0
"""A server that sends nothing for this long is given up."""

_LOOK_S = 1.0
"""How long a server is silent before it is asked whether it lives, and how long that may take."""

_HELLO = b'{"jsonrpc": "2.0", "id": 0, "method": "hello"}\n'

_MOST_INPUT = 2 << 20
"""Maximum number of bytes of standard input that are sent to the server."""

_PIECE = 1 << 16
_STDERR = 2
_OTHER_VERSION, _LEAVING = -32001, -32004
"""Errors of a server that is about to exit."""


class Here(Exception):
    """The command line is to run in this process.

    Attributes:
        key: Makes an event idempotent that the server may have recorded.
    """

    def __init__(self, key: str = "") -> None:
        super().__init__()
        self.key = key


def forward(words: "Sequence[str]") -> int:
    """Have the server run a command line; return its exit status.

    Raises:
        Here: This process is to run it.
    """
    name, environ = served(words), place.environment()
    inside = environ.get("AGENTX_RUN") or environ.get("AGENTX_DEBUG")
    if not name or inside or place.is_off(environ) or not (sys.stdin and sys.stdout and sys.stderr):
        raise Here
    connection = _connected(environ)
    try:
        key = os.urandom(12).hex()
        request = {"argv": list(words), "cwd": os.getcwd(), "key": key, **_drawing(), **_input(words)}
        return _ask(connection, name, request)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        connection.close()


def served(words: "Sequence[str]") -> str:
    """Return the command that a command line calls if the server runs it; otherwise an empty text.

    >>> served(["memory", "--json"]), served(["log", "--follow"]), served(["run", "Do it."])
    ('memory list', '', '')
    """
    try:
        own = line(front(words))
    except UsageError:
        return ""
    if not own or own[0] in MOVED or ALONE.intersection(words):
        return ""
    name = find(own)
    if name and name not in COMMANDS:
        name = spoken(name.split())[0]
    return name if name in COMMANDS and COMMANDS[name].served else ""


def _connected(environ: "Mapping[str, str]") -> Socket:
    """Return a connection to the server; without one, start it for the next command.

    Raises:
        Here: There is no server yet, or it cannot be used.
    """
    connection = Socket(AF_UNIX, SOCK_STREAM)
    try:
        where = place.runtime_dir(environ)
        try:
            place.check(where)
            connection.settimeout(_CONNECT_S)
            connection.connect(f"{where}/{place.SOCKET}")
            if place.is_stopped(connection):  # it would do later what this process does now
                raise Here
            connection.settimeout(_SILENT_S)
        except (FileNotFoundError, ConnectionRefusedError):
            _start(environ)
            raise Here from None
    except (OSError, place.PlaceRefused):
        raise Here from None
    return connection


def _lives() -> bool:
    """Return whether the server answers anything at all; its loop does, however busy it is."""
    one = Socket(AF_UNIX, SOCK_STREAM)
    try:
        one.settimeout(_LOOK_S)
        one.connect(f"{place.runtime_dir(place.environment())}/{place.SOCKET}")
        one.sendall(_HELLO)
        return bool(one.recv(1))
    except OSError:
        return False
    finally:
        one.close()


def _start(environ: "Mapping[str, str]") -> None:
    """Start a server in the background."""
    __import__("agentx.client.client", fromlist=["start_server"]).start_server(environ)


def _drawing() -> "dict[str, Any]":
    """Return what decides how the output is drawn."""
    size = None
    for stream in range(3):
        try:
            size = list(os.get_terminal_size(stream))
            break
        except OSError:
            continue
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "tty": [stream.isatty() for stream in streams],
        "encodings": [stream.encoding for stream in streams],
        "size": size,
    }


def _input(words: "Sequence[str]") -> "dict[str, str]":
    """Return standard input, for a command line that reads it.

    Raises:
        Here: It is a terminal, or too long.
    """
    if not any(word == "-" or word.endswith("=-") for word in words):
        return {}
    if sys.stdin.isatty():
        raise Here
    data, errors = sys.stdin.buffer.read(), sys.stdin.errors
    # This process may still have to run the command.
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), sys.stdin.encoding, errors)
    if len(data) > _MOST_INPUT:
        raise Here
    return {"input": data.decode("latin-1"), "errors": errors or "strict"}


def _ask(connection: Socket, name: str, request: "dict[str, Any]") -> int:
    """Send the request, write the output as it comes, and return the exit status.

    Raises:
        Here: The server did not run the command, or it ended and the command can safely be run again.
    """
    message = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": request, "agentx": identity()}
    written = 0
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
        connection.settimeout(_LOOK_S)
        for answer in _answers(connection, again=COMMANDS[name].again):
            if "error" in answer:
                _refused(answer["error"])
            about = answer.get("params") or answer["result"]
            for stream, text in about["output"]:
                written += _write(stream, text)
            if "result" in answer:
                status: int = about["status"]
                return status
    except (OSError, ValueError, KeyError, TypeError):
        pass  # as if the server had gone
    again = COMMANDS[name].again
    if again and not written:
        raise Here(request["key"])
    _write(_STDERR, f"agentx: {_CUT_OFF if again else _UNKNOWN.format(name)}\n")
    return 1


_CUT_OFF = "The server ended in the middle of the output. Run the command again."
_UNKNOWN = (
    "The server ended before it answered, so it is unknown whether `agentx {}` was carried out. "
    "See `agentx log -n 5`."
)


def _answers(connection: Socket, *, again: bool) -> "Iterator[dict[str, Any]]":
    """Yield each message of the server until it closes the connection.

    Raises:
        TimeoutError: It is silent for too long, or does not live and the command can safely be run again.
    """
    heard = b""
    while piece := _heard(connection, again=again):
        *lines, heard = (heard + piece).split(b"\n")
        for one in lines:
            yield json.loads(one)


def _heard(connection: Socket, *, again: bool) -> bytes:
    silent_s = 0.0
    while True:
        try:
            return connection.recv(_PIECE)
        except TimeoutError:
            silent_s += _LOOK_S
            if silent_s >= _SILENT_S or (again and not _lives()):
                raise


def _refused(error: "Mapping[str, Any]") -> None:
    """Handle an error: the server did nothing.

    Raises:
        Here: Always.
    """
    if error.get("code") in {_OTHER_VERSION, _LEAVING}:
        _start(place.environment())
    raise Here


def _write(stream: int, text: str) -> int:
    """Write a text to stdout or stderr; return its length.

    Raises:
        SystemExit: Nobody reads stdout, or it cannot be written.
    """
    data = text.encode((sys.stderr if stream == _STDERR else sys.stdout).encoding, "replace")
    rest = data
    try:
        while rest:
            rest = rest[os.write(stream, rest) :]
    except BrokenPipeError:
        raise SystemExit(PIPE_CLOSED) from None
    except OSError as error:
        if stream != _STDERR:
            report = __import__("agentx.cli.in_process", fromlist=["report"]).report
            raise SystemExit(report(error)) from None
    return len(data)
