"""A client of an MCP server that is a program: JSON-RPC over its stdin and stdout.

It speaks as much of the Model Context Protocol (https://modelcontextprotocol.io) as tools need: initialize,
tools/list and tools/call.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from agentx import __version__
from agentx.directing.piped_program import OutputTooLong, Program
from agentx.storage.errors import AgentXError
from agentx.storage.text import one_line, shorten
from agentx.tools.toolset import CallCutOff

PROTOCOL = "2025-06-18"
_START_S = 30.0
_MOST_PAGES = 100
_ERROR_WORDS = 40
_NO_METHOD = -32601


class ServerFailed(AgentXError):
    """An MCP server could not be started, refused a call, did not answer in time, or broke the protocol.

    Attributes:
        answered: Whether it refused with an answer.
    """

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered


class Annotations(msgspec.Struct, frozen=True, rename="camel"):
    """What a server states about a tool."""

    read_only_hint: bool = False
    idempotent_hint: bool = False


class ServerTool(msgspec.Struct, frozen=True, rename="camel"):
    """A tool of a server, as it lists it."""

    name: str
    description: str | None = None
    input_schema: dict[str, Any] = {}
    annotations: Annotations | None = None


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    tools: list[ServerTool]
    next_cursor: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _RpcMessage(msgspec.Struct, frozen=True):
    """A message of the server: an answer, or a request or notification of its own."""

    id: int | str | None = None
    method: str = ""
    result: dict[str, Any] | None = None
    error: _Error | None = None


class McpServer:
    """A server, started when it is first asked; after a failure the next call starts it anew.

    Args:
        words: The program and its arguments.
        environ: Its environment.
        place: Its working directory.
        timeout_s: Time limit of a call.
    """

    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], place: Path, timeout_s: float
    ) -> None:
        self._words, self._environ, self._place, self._timeout_s = words, environ, place, timeout_s
        self._program: Program | None = None
        self._asked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        program, self._program = self._program, None
        if program is not None:
            program.__exit__(kind, error, where)

    def tools(self) -> list[ServerTool]:
        """Return the tools that it offers.

        Raises:
            ServerFailed: It cannot be started, or does not list them.
        """
        return list(self._pages())

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool and return its answer as text.

        Raises:
            ServerFailed: It could not be started, or refused the call.
            CallCutOff: It did not answer, so nobody knows what came of the call.
        """
        self._start()
        try:
            result = self._ask("tools/call", {"name": tool, "arguments": dict(arguments)}, self._timeout_s)
        except ServerFailed as error:
            if error.answered:
                raise
            raise CallCutOff(f"{error} The outcome of {tool} is unknown.") from error
        text = "\n".join(_texts(result))
        if result.get("isError"):
            raise ServerFailed(shorten(one_line(text), _ERROR_WORDS), answered=True)
        return text

    # --- the conversation -----------------------------------------------------------------------------------

    def _pages(self) -> Iterator[ServerTool]:
        self._start()
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            asked = {"cursor": cursor} if cursor else {}
            try:
                page = msgspec.convert(self._ask("tools/list", asked, _START_S), _Page)
            except msgspec.ValidationError as error:
                raise self._failed(f"listed its tools in a form that is not MCP's: {error}") from error
            yield from page.tools
            cursor = page.next_cursor
            if not cursor:
                return

    def _start(self) -> None:
        if self._program is not None and not self._program.has_ended:
            return
        self.__exit__(None, None, None)
        try:
            self._program = Program(self._words, self._environ, self._place)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ServerFailed(f"The MCP server {self._words[0]!r} cannot be run: {why}.") from error
        about = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "agentx", "version": __version__},
        }
        self._ask("initialize", about, _START_S)
        self._send({"method": "notifications/initialized"})

    def _ask(self, method: str, params: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """Send a request, and return its result; requests of the server meanwhile are answered."""
        program = self._program
        assert program is not None
        self._asked += 1
        program.limit(limit_s)
        self._send({"id": self._asked, "method": method, "params": params})
        try:
            while line := program.line():
                message = _read(line)
                if message is None:
                    continue
                if message.method:
                    if message.id is not None:
                        self._answer(message)
                elif message.id == self._asked:
                    if message.error is not None:
                        said = shorten(one_line(message.error.message), _ERROR_WORDS)
                        raise ServerFailed(f"{said} ({message.error.code})", answered=True)
                    return message.result or {}
        except OutputTooLong as error:
            raise self._failed(f"wrote a line that is too long: {error}") from error
        raise self._failed(
            f"did not answer {method} within {limit_s:g} seconds"
            if time.monotonic() >= program.deadline
            else f"ended before it answered {method}"
        )

    def _answer(self, message: _RpcMessage) -> None:
        if message.method == "ping":
            self._send({"id": message.id, "result": {}})
        else:
            error = {"code": _NO_METHOD, "message": "This client offers no such method."}
            self._send({"id": message.id, "error": error})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._program is not None
        self._program.send(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def _failed(self, why: str) -> ServerFailed:
        """End the server, and return the error."""
        assert self._program is not None
        program = self._program
        self.__exit__(None, None, None)
        said = shorten(one_line(program.aside.text()), _ERROR_WORDS)
        return ServerFailed(f"The MCP server {self._words[0]!r} {why}{f': {said}' if said else '.'}")


def _read(line: bytes) -> _RpcMessage | None:
    """Return the message of a line; ``None`` for a line that is not one, such as a program's log."""
    try:
        return msgspec.json.decode(line, type=_RpcMessage)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _texts(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of an answer as text; data that is not text is only named."""
    parts = result.get("content")
    texts = [_text(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    yield from texts
    if not texts and (structured := result.get("structuredContent")) is not None:
        yield msgspec.json.encode(structured).decode()


def _text(part: Mapping[str, Any]) -> str:
    inner = part.get("resource")
    for found in (part.get("text"), inner.get("text") if isinstance(inner, dict) else None, part.get("uri")):
        if isinstance(found, str):
            return found
    return f"[{part.get('type')} {part.get('mimeType', '')}]"
