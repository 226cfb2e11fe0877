"""``command.run``: run a command line for a client, as it would run in the client's own process."""

import codecs
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import msgspec

from agentx.cli.forward import served
from agentx.cli.in_process import carry_out
from agentx.cli.terminal import Caller, NotServed, Terminal
from agentx.core import layout
from agentx.server.calls import Emit, ServedCall
from agentx.server.errors import PARAMS, Refused
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.synthesis.embedding.choose import HOSTED_PREFIX
from agentx.workspace import Workspace

_ENOUGH = 1 << 15
"""Characters of output that are sent before the command has ended."""


class CommandRun(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of ``command.run``.

    Attributes:
        argv: The arguments after the program's name.
        cwd: The client's working directory.
        key: Makes an event that the command records idempotent.
        tty: Whether stdin, stdout and stderr are a terminal.
        encodings: Their encodings.
        size: Columns and lines of the terminal; ``None`` if there is none.
        input: The bytes of standard input, each as one character; empty if the command reads none.
        errors: How bytes of standard input that are not text are decoded.
    """

    argv: list[str]
    cwd: str
    key: str = ""
    tty: tuple[bool, bool, bool] = (False, False, False)
    encodings: tuple[str, str, str] = ("utf-8", "utf-8", "utf-8")
    size: tuple[int, int] | None = None
    input: str = ""
    errors: str = "strict"


def run(call: ServedCall, params: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """Run a command line.

    Returns:
        Its exit status, and the output that was not sent yet: pairs of a stream (1 or 2) and a text.

    Raises:
        NotServed: The client must run it itself; nothing was done.
        Refused: The parameters are not those of a command line.
    """
    try:
        asked = msgspec.convert(params, CommandRun)
        for name in asked.encodings:
            codecs.lookup(name)
        codecs.lookup_error(asked.errors)
        given = io.BytesIO(asked.input.encode("latin-1"))
    except (msgspec.ValidationError, LookupError, UnicodeEncodeError) as error:
        raise Refused(PARAMS, f"command.run: {error}.") from error
    name = served(asked.argv)
    if not name or not call.peer.environ:
        raise NotServed("This command runs in the process that calls it.")
    settings = call.client_settings()
    output = _Output(emit, live=asked.tty[2])
    out, err = (_Stream(output, number, asked) for number in (1, 2))
    caller = Caller(
        stdin=io.TextIOWrapper(given, asked.encodings[0], asked.errors),
        stdout=cast("TextIO", out),
        stderr=cast("TextIO", err),
        directory=Path(asked.cwd),
        size=asked.size,
        key=asked.key,
        take=lambda folder: _taken(call, folder, settings),
    )
    terminal = Terminal(settings, caller)
    status = carry_out(asked.argv, terminal)
    return {"status": status, "output": output.rest()}


@contextmanager
def _taken(call: ServedCall, folder: Path, settings: Settings) -> Iterator[Workspace]:
    """Take the workspace at or above a directory from the pool.

    Raises:
        NotServed: Its settings make the command depend on the client's own process.
    """
    with ExitStack() as stack:
        try:
            found = stack.enter_context(call.pool.using(layout.find_root(folder), settings))
        except (AgentXError, OSError) as error:  # the client's own process tells it in its own words
            raise NotServed(str(error)) from error
        ws = found.workspace
        if ws.engine.write_path.read_only or ws.config.embeddings.model.startswith(HOSTED_PREFIX):
            raise NotServed("This command runs in the process that calls it.")
        yield ws


class _Output:
    """The output of a command, in the order in which it was written.

    Args:
        emit: Sends a notification.
        live: Whether a user watches progress on stderr, which is then sent at once.
    """

    def __init__(self, emit: Emit, *, live: bool) -> None:
        self._emit = emit
        self._live = live
        self._parts: list[tuple[int, list[str]]] = []
        self._size = 0

    def write(self, stream: int, text: str) -> None:
        """Add a text to a stream."""
        if not self._parts or self._parts[-1][0] != stream:
            self._parts.append((stream, []))
        self._parts[-1][1].append(text)
        self._size += len(text)
        if self._size >= _ENOUGH or (self._live and stream == _STDERR):
            self._emit("output", {"output": self.rest()})

    def rest(self) -> list[tuple[int, str]]:
        """Return what was not sent yet; from now on it counts as sent."""
        parts, self._parts, self._size = self._parts, [], 0
        return [(stream, _encodable("".join(texts))) for stream, texts in parts]


_STDERR = 2


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which the client's stream would replace as well."""
    return text.encode(errors="replace").decode()


class _Stream(io.TextIOBase):
    """Stdout or stderr of the client."""

    def __init__(self, output: _Output, number: int, asked: CommandRun) -> None:
        super().__init__()
        self._output = output
        self._number = number
        self._tty, self._encoding = asked.tty[number], asked.encodings[number]

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the client's stream."""
        return self._encoding

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._tty

    def writable(self) -> bool:
        """Whether it can be written."""
        return True

    def write(self, text: str) -> int:
        """Send a text to the client."""
        if text:
            self._output.write(self._number, text)
        return len(text)
