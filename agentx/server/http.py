"""The protocol over loopback HTTP, for a host that needs it; off by default.

One ``POST /rpc`` a connection, with one JSON-RPC request; the answer is a line for each notification and one
for the response. Whoever has the token counts as the user. A web page cannot ask: its browser sends
``Origin``, and a name that leads here by another domain shows in ``Host``.
"""

import asyncio
import hmac
import os
import secrets

import msgspec

from agentx.client import place
from agentx.server.connection import MOST_BYTES, Connection, Service
from agentx.server.peers import Peer
from agentx.storage.errors import AgentXError

_HEAD_BYTES = 16 << 10
_SLOW_S = 10.0
"""A client that has not sent its whole request after this time is disconnected."""

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


class HttpConnection(Connection):
    """One request over HTTP."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop, access: HttpAccess) -> None:
        super().__init__(service, loop)
        self._access = access
        self._length: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request, for a limited time."""
        super().connection_made(transport)
        self._timer = self._loop.call_later(_SLOW_S, self.transport.abort)

    def identify(self) -> Peer:
        """Return the user: only the token decides."""
        return Peer(pid=0, uid=os.getuid(), inside_run=False)

    def data_received(self, data: bytes) -> None:
        """Check the head before anything of the body is kept; then handle the request."""
        if self._deaf or self.transport.is_closing():
            return
        self._heard += data
        try:
            self._read()
        except HttpRefusedError as error:
            head = f"HTTP/1.1 {error.status} {error}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            self.transport.write(head.encode())
            self._timer.cancel()
            self.hang_up()

    def _read(self) -> None:
        if self._length is None:
            head, end, body = bytes(self._heard).partition(b"\r\n\r\n")
            if len(head) > _HEAD_BYTES:
                raise HttpRefusedError(413)
            if not end:
                return
            self._length = body_length(head, self._access)
            self._heard = bytearray(body)
        if len(self._heard) >= self._length:
            self._timer.cancel()
            body, self._heard = bytes(self._heard[: self._length]), bytearray()
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\n"
                b"Content-Type: application/x-ndjson\r\nX-Content-Type-Options: nosniff\r\n\r\n"
            )
            self._handle(body)
            self._deaf = True
            self._after_answer()

    def _after_answer(self) -> None:
        if not self.busy:
            self.hang_up()


def body_length(head: bytes, access: HttpAccess) -> int:
    """Return the length of the body that a request announces.

    Raises:
        HttpRefusedError: It is not one of a program of the user.
    """
    try:
        line, *rows = head.decode("ascii").split("\r\n")
        method, path, version = line.split(" ")
        pairs = [(name.lower(), value.strip()) for name, _, value in (row.partition(":") for row in rows)]
    except ValueError:
        raise HttpRefusedError(400) from None
    found = dict(pairs)
    if version not in {"HTTP/1.1", "HTTP/1.0"} or len(found) != len(pairs) or "transfer-encoding" in found:
        raise HttpRefusedError(400)
    if found.get("host") not in access.hosts or found.get("origin", "") not in {
        "",
        *(f"http://{host}" for host in access.hosts),
    }:
        raise HttpRefusedError(403)
    if not hmac.compare_digest(found.get("authorization", "").encode(), f"Bearer {access.token}".encode()):
        raise HttpRefusedError(401)
    if path != "/rpc":
        raise HttpRefusedError(404)
    if method != "POST":
        raise HttpRefusedError(405)
    if found.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HttpRefusedError(415)
    length = found.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise HttpRefusedError(411)
    if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
        raise HttpRefusedError(413)
    return int(length)


async def listen_http(
    service: Service, loop: asyncio.AbstractEventLoop, where: str, port: int
) -> asyncio.Server:
    """Listen on a port of the loopback address, and write where and with which token.

    Args:
        service: The server.
        loop: Its loop.
        where: The runtime directory.
        port: The port; 0 for any free one.
    """
    token = secrets.token_urlsafe(32)
    made: list[HttpAccess] = []
    server = await loop.create_server(lambda: HttpConnection(service, loop, made[0]), "127.0.0.1", port)
    made.append(HttpAccess(server.sockets[0].getsockname()[1], token))
    _publish(f"{where}/{place.HTTP}", made[0])
    return server


def _publish(name: str, access: HttpAccess) -> None:
    """Write a file that is never readable by others, not even for a moment, and never half written."""
    descriptor = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.encode(access) + b"\n")
    os.replace(f"{name}.new", name)
