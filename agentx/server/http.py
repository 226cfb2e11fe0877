"""HTTP on the loopback address, for a host that needs it; off by default.

``POST /rpc`` takes one JSON-RPC request a connection; the answer is a line for each notification and one for
the response. ``/mcp`` is the streamable HTTP of MCP. Whoever has the token counts as the user. A web page
cannot ask: its browser sends ``Origin``, and a name that leads here by another domain shows in ``Host``.
``/inspect`` is the inspector, which has tokens of its own and checks them itself.
"""

import asyncio
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

import msgspec

from agentx.client import place
from agentx.inspector.access import HEADERS, KEY_SHOWN
from agentx.server.connection import BEHIND_BYTES, MOST_BYTES, Connection, Service
from agentx.server.peers import Peer
from agentx.storage.errors import AgentXError

SLOW_S = 10.0
"""A client that has not sent its whole request after this time is disconnected."""

MOST_OVER_HTTP = 64
"""Maximum number of connections over HTTP that have shown a key."""

_MOST_UNKNOWN, _AT_ONCE, _YOUNG_S = 32, 1_000, 1.0
"""Connections that have shown no key: beyond the first number, the oldest end that are not quite young, which
leaves time to show one; beyond the second, however young they are: each takes a descriptor."""

_ANSWERED_S = 30.0
"""A connection that has shown no key ends after this time, also amid an answer."""

_REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
}
_ONCE = {b"host", b"origin", b"authorization", b"content-type", b"content-length"}
"""Headers that decide whether a request is served: each is given once at most."""

_OTHERS = [
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpRefusedError(AgentXError):
    """A request that is answered with a status instead of a response."""

    def __init__(self, status: int) -> None:
        super().__init__(_REASONS[status])
        self.status = status


class HttpAccess(msgspec.Struct, frozen=True):
    """What a client needs, as in the file ``http.json`` of the runtime directory."""

    port: int
    token: str

    @property
    def hosts(self) -> set[str]:
        """The values of ``Host`` that lead here."""
        return {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}


def require_user(scope: Scope, access: HttpAccess) -> dict[bytes, bytes]:
    """Check that a request is one of a program of the user, before anything of its body is read.

    Returns:
        Its headers by name in lower case.

    Raises:
        HttpRefusedError: It is not.
    """
    pairs = list(scope["headers"])
    found = dict(pairs)
    decisive = [name for name, _ in pairs if name in _ONCE]
    if len(decisive) != len(set(decisive)):
        raise HttpRefusedError(400)
    hosts = {host.encode() for host in access.hosts}
    if found.get(b"host") not in hosts:
        raise HttpRefusedError(403)
    if found.get(b"origin", b"") not in {b"", *(b"http://" + host for host in hosts)}:
        raise HttpRefusedError(403)
    if not hmac.compare_digest(found.get(b"authorization", b""), f"Bearer {access.token}".encode()):
        raise HttpRefusedError(401)
    return found


def rpc_length(scope: Scope, headers: Mapping[bytes, bytes]) -> int:
    """Return the length of the body that a request to ``/rpc`` announces.

    Raises:
        HttpRefusedError: It is no such request, or too long.
    """
    if scope["method"] != "POST":
        raise HttpRefusedError(405)
    if headers.get(b"content-type", b"").partition(b";")[0].strip() != b"application/json":
        raise HttpRefusedError(415)
    if b"transfer-encoding" in headers:
        raise HttpRefusedError(400)
    length = headers.get(b"content-length", b"")
    if not length.isdigit():
        raise HttpRefusedError(411)
    if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
        raise HttpRefusedError(413)
    return int(length)


class _RpcCall(Connection):
    """One request to ``/rpc``: like a connection whose other end is the user."""

    def identify(self) -> Peer:
        """Return the user: the token was checked."""
        return USER

    def answer(self, body: bytes) -> None:
        """Handle the request."""
        if not self.transport.is_closing():  # refused already
            self._handle(body)
            self._deaf = True
            self._after_answer()

    def _after_answer(self) -> None:
        if not self.busy:
            self.hang_up()


USER = Peer(pid=0, uid=os.getuid(), inside_run=False)
"""Who asks over HTTP: only the token decides."""


class _AnswerStream(asyncio.Transport):
    """Takes what a connection writes, for the body of an HTTP response."""

    def __init__(self, call: _RpcCall, abort: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self._abort = abort
        self._parts: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting = 0
        self._closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the limit is fixed."""

    def pause_reading(self) -> None:
        """Do nothing: there is one request."""

    def resume_reading(self) -> None:
        """Do nothing: there is one request."""

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes when the client reads."""
        if data and not self._closing:
            self._parts.put_nowait(bytes(data))
            self._waiting += len(data)
            if self._waiting > BEHIND_BYTES:
                self._call.pause_writing()

    def write_eof(self) -> None:
        """End the body after what was written."""
        self._closing = True
        self._parts.put_nowait(b"")

    def close(self) -> None:
        """End the body after what was written."""
        if not self._closing:
            self.write_eof()

    def abort(self) -> None:
        """Give the response up."""
        self._closing = True
        self._abort()

    async def next(self) -> bytes:
        """Return the next part of the body; empty at its end."""
        part = await self._parts.get()
        self._waiting -= len(part)
        if self._waiting <= BEHIND_BYTES:
            self._call.resume_writing()
        return part


class HttpListener:
    """Listens on a port of the loopback address, and answers who has the token.

    Args:
        service: The server.
        loop: Its loop.
        mcp: Answers requests to ``/mcp``.
        inspector: Answers requests to ``/inspect``, and checks them itself.

    Attributes:
        port: The port; 0 while it does not listen.
    """

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop, mcp: App, inspector: App) -> None:
        self.port = 0
        self._service = service
        self._loop = loop
        self._mcp = mcp
        self._inspector = inspector
        self._access: HttpAccess | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[Any] = set()

    async def listen(self, port: int, where: str = "") -> None:
        """Listen; if asked for, write where and with which token.

        Args:
            port: The port; 0 for any free one.
            where: The runtime directory, where a client finds the token; without it nobody has one, so that
                ``/rpc`` and ``/mcp`` answer nobody.

        Raises:
            OSError: The port is in use.
        """
        import uvicorn  # noqa: PLC0415 - loaded only where HTTP is on

        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=60,
        )
        config.load()
        state = uvicorn.server.ServerState()
        state.default_headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        self._connections = state.connections
        protocol = _guarded()

        def connection() -> asyncio.Protocol:
            about: dict[str, Any] = {}
            made = protocol(config=config, server_state=state, app_state=about, _loop=self._loop)
            about[KEY_SHOWN] = made.show_key
            found: asyncio.Protocol = made
            return found

        self._server = server = await self._loop.create_server(connection, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        if where:
            self._access = HttpAccess(self.port, secrets.token_urlsafe(32))
            _publish(f"{where}/{place.HTTP}", self._access)

    def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    def hang_up(self) -> None:
        """Close the connections that are left."""
        for connection in list(self._connections):
            connection.transport.close()

    # --- requests ---------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].split("/")[1:2] == ["inspect"]:
            await self._inspector(scope, receive, send)
            return
        if self._access is None:
            await _refuse(404, send)
            return
        try:
            headers = require_user(scope, self._access)
            scope["state"][KEY_SHOWN]()
            match scope["path"]:
                case "/rpc":
                    await self._rpc(rpc_length(scope, headers), receive, send)
                case "/mcp":
                    await self._mcp(scope, receive, send)
                case _:
                    await _refuse(404, send)
        except HttpRefusedError as error:
            await _refuse(error.status, send)

    async def _rpc(self, length: int, receive: Receive, send: Send) -> None:
        body = await _body(length, receive)
        call = _RpcCall(self._service, self._loop)
        task = asyncio.current_task()
        assert task is not None
        stream = _AnswerStream(call, task.cancel)
        call.connection_made(stream)
        watch = asyncio.ensure_future(_gone(receive, stream))
        try:
            call.answer(body)
            json_lines = (b"content-type", b"application/x-ndjson")
            await send({"type": "http.response.start", "status": 200, "headers": [json_lines, *_OTHERS]})
            while part := await stream.next():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            watch.cancel()
            call.connection_lost(None)


async def _refuse(status: int, send: Send) -> None:
    nothing = (b"content-length", b"0")
    await send({"type": "http.response.start", "status": status, "headers": [nothing, *_OTHERS]})
    await send({"type": "http.response.body", "body": b""})


async def _body(length: int, receive: Receive) -> bytes:
    """Return the body of a request.

    Raises:
        HttpRefusedError: It is not as long as announced, or comes too slowly.
    """
    heard = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(SLOW_S):
            while (message := await receive())["type"] == "http.request":
                heard += message.get("body", b"")
                if not message.get("more_body", False):
                    break
    if len(heard) != length:
        raise HttpRefusedError(400)
    return bytes(heard)


async def _gone(receive: Receive, stream: _AnswerStream) -> None:
    """Give a response up when its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.abort()


class _Counted:
    """The connections, those that have shown a key apart from the others."""

    def __init__(self) -> None:
        self.known: set[Any] = set()
        self._unknown: dict[Any, float] = {}

    def add(self, new: Any, now: float) -> None:
        """Count a new one; the oldest of those that have shown no key make room."""
        self._unknown[new] = now
        for one, since in list(self._unknown.items())[: max(len(self._unknown) - _MOST_UNKNOWN, 0)]:
            if now - since < _YOUNG_S and len(self._unknown) <= _AT_ONCE:
                break
            del self._unknown[one]
            one.transport.abort()

    def know(self, one: Any) -> None:
        """Count one among those that have shown a key; it ends if they are too many."""
        self._unknown.pop(one, None)
        self.known.add(one)
        if len(self.known) > MOST_OVER_HTTP:
            one.transport.abort()

    def remove(self, one: Any) -> None:
        self._unknown.pop(one, None)
        self.known.discard(one)


def _guarded() -> type[Any]:  # noqa: C901 - the methods of one class
    """Return the protocol of a connection: uvicorn's, for few connections, none of which may be silent.

    Those that have shown a key are counted apart from the others, which keep nobody out who has one.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415 - loaded only where HTTP is on

    counted = _Counted()

    class Guarded(H11Protocol):
        slow: asyncio.TimerHandle | None = None
        """Ends the connection if the request whose beginning has arrived does not."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            counted.add(self, self.loop.time())
            self.loop.call_later(SLOW_S, self.end_if_unknown)
            self.loop.call_later(_ANSWERED_S, self.end_if_unknown, True)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            counted.remove(self)

        def show_key(self) -> None:
            """Count it among those that have shown a key."""
            if not self.transport.is_closing():
                counted.know(self)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle = getattr(self, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                if self.slow is not None:
                    self.slow.cancel()
                    self.slow = None
            elif self.slow is None:
                self.slow = self.loop.call_later(SLOW_S, self.transport.abort)

        def send_400_response(self, msg: str) -> None:
            head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
            line = f"HTTP/1.1 400 {_REASONS[400]}\r\n{head}content-type: text/plain\r\n"
            text = f"{line}content-length: {len(msg)}\r\nconnection: close\r\n\r\n{msg}"
            self.transport.write(text.encode("ascii"))
            self.transport.close()

        def end_if_unknown(self, answering: bool = False) -> None:  # noqa: FBT001, FBT002 - called later
            cycle = getattr(self, "cycle", None)
            if self not in counted.known and (answering or cycle is None or cycle.response_complete):
                self.transport.abort()

    return Guarded


def _publish(name: str, access: HttpAccess) -> None:
    """Write a file that is never readable by others, not even for a moment, and never half written."""
    descriptor = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.encode(access) + b"\n")
    os.replace(f"{name}.new", name)
