"""One connection: JSON-RPC 2.0, one JSON object a line."""

import asyncio
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from agentx.client.identity import identity
from agentx.server.calls import Later, ServedCall
from agentx.server.errors import (
    BUSY,
    INSIDE_RUN,
    INVALID,
    LEAVING,
    OTHER_VERSION,
    PARAMS,
    PARSE,
    UNKNOWN,
    Cancelled,
    Refused,
    as_object,
)
from agentx.server.methods import METHODS, Handler
from agentx.server.peers import Peer, identify
from agentx.storage import stopping
from agentx.storage.errors import AgentXError

MOST_BYTES = 8 << 20
"""Maximum length of a request."""

MOST_AT_ONCE = 32
"""Maximum number of requests of one connection that are not answered yet."""

MOST_INSIDE_RUNS = 8
"""Maximum number of requests from inside agents' runs that are not answered yet; the user's do not wait."""

MOST_HEARD = 64 << 20
"""Maximum length of all requests together that have not arrived completely."""

LONG_BYTES = 1 << 20
"""Only a request longer than this is refused because of the others that have not arrived completely."""

BEHIND_BYTES = 16 << 20
"""While a client has not read this much of its answers, its requests are not read, and what sends waits."""

BEHIND_S = 30.0
"""A client that reads nothing for this long is disconnected."""


DEAF_S = 5.0
"""How long a client that was refused may go on sending before it is disconnected."""


class Service(Protocol):
    """What a connection needs of the server."""

    workers: ThreadPoolExecutor
    leaving: bool

    def call_for(self, peer: Peer) -> ServedCall:
        """Return a call for a client."""
        ...

    def own(self, method: str, peer: Peer) -> Any:
        """Answer a method of the server itself."""
        ...

    def stale(self) -> bool:
        """Whether the code on disk is no longer the code that runs."""
        ...

    def leave(self) -> None:
        """Finish the requests in progress, and exit."""
        ...

    def others(self) -> "Collection[Connection]":
        """Return all connections."""
        ...

    def opened(self, connection: "Connection") -> None:
        """Register a connection."""
        ...

    def closed(self, connection: "Connection") -> None:
        """Forget a connection."""
        ...


OWN = {"hello", "server.status", "server.stop"}
"""Methods of the server itself; answered at once."""


class Connection(asyncio.Protocol):
    """Reads requests, runs them in worker threads, and writes each answer when it is ready."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        self._service = service
        self._loop = loop
        self._heard = bytearray()
        self._calls: dict[str | int | None, ServedCall] = {}
        self._submitted: dict[str | int | None, Future[None]] = {}
        self._deaf = False
        self._room = threading.Event()
        self._room.set()
        self.transport: asyncio.Transport
        self.peer: Peer

    # --- what asyncio calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Find out who connected."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=BEHIND_BYTES)
        try:
            self.peer = self.identify()
            self._service.opened(self)
        except Refused as error:
            self._answer(None, error=error)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what nobody waits for any more."""
        del exc
        self._room.set()
        for call in self._calls.values():
            call.cancel()
        self._service.closed(self)

    def pause_writing(self) -> None:
        """Make the handlers and further requests wait."""
        self._room.clear()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Let the handlers and further requests go on."""
        self._room.set()
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Handle each whole line."""
        if self._deaf or self.transport.is_closing():
            return
        start = len(self._heard)
        self._heard += data
        end = self._heard.find(b"\n", start)
        if end < 0:
            if len(self._heard) > MOST_BYTES:
                self._refuse_all(Refused(INVALID, f"A request has more than {MOST_BYTES:,} bytes."))
            elif len(self._heard) > LONG_BYTES and self._heard_together() > MOST_HEARD:
                self._refuse_all(Refused(BUSY, "Too many long requests at a time."))
            return
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard = bytearray(rest)
        for line in lines:
            if line.strip():
                self._handle(line)

    # --- requests ---------------------------------------------------------------------------------

    def _handle(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            self._refuse_all(Refused(PARSE, f"The request is not JSON: {error}."))
            return
        try:
            self._begin(*_parts(message))
        except (AgentXError, OSError) as error:
            number = message.get("id") if isinstance(message, dict) else None
            self._answer(number if isinstance(number, str | int) else None, error=error)

    def _begin(self, number: str | int | None, method: str, params: dict[str, Any], version: str) -> None:
        if method == "cancel":
            asked = params.get("id")
            call = self._calls.get(asked) if isinstance(asked, str | int) else None
            if call is not None:
                call.cancel()
            if number is not None:
                self._answer(number, call is not None)
            return
        if (version and version != identity()) or self._service.stale():
            if not self.peer.inside_run:
                self._service.leave()
            raise Refused(OTHER_VERSION, "The server runs another version of AgentX; it makes room.")
        if method == "hello" and self._service.leaving:
            raise Refused(LEAVING, "The server is about to exit.")
        if method in OWN:
            if self.peer.inside_run and method == "server.stop":
                raise _inside_run(method)
            self._answer(number, self._service.own(method, self.peer))
            return
        self._start(number, method, params)

    def _start(self, number: str | int | None, method: str, params: dict[str, Any]) -> None:
        """Give a request to a worker thread."""
        if self._service.leaving:
            raise Refused(LEAVING, "The server is about to exit.")
        known = METHODS.get(method)
        if known is None:
            raise Refused(UNKNOWN, f"Unknown method {method!r}.")
        if self.peer.inside_run and not known.reads:
            raise _inside_run(method)
        if number in self._calls:
            raise Refused(INVALID, "This id is in use.")
        if len(self._calls) >= MOST_AT_ONCE:
            raise Refused(BUSY, f"More than {MOST_AT_ONCE} requests at a time.")
        if self.peer.inside_run and self._busy_inside_runs() >= MOST_INSIDE_RUNS:
            raise Refused(BUSY, f"More than {MOST_INSIDE_RUNS} requests from inside runs at a time.")
        call = self._service.call_for(self.peer)
        call.has_room = self._room.is_set
        self._calls[number] = call
        self._submitted[number] = self._service.workers.submit(self._work, number, known.load, call, params)

    def _work(
        self, number: str | int | None, load: Callable[[], Handler], call: ServedCall, params: dict[str, Any]
    ) -> None:
        """Run a request in a worker thread."""

        def emit(event: str, about: dict[str, Any]) -> None:
            call.check()
            self._send({"jsonrpc": "2.0", "method": event, "params": {"id": number, **about}})
            if not self._room.wait(BEHIND_S):
                self._loop.call_soon_threadsafe(self.transport.abort)
                raise Cancelled("The client does not read.")

        try:
            call.check()
            with stopping.while_wanted(lambda: not call.cancelled):
                result = load()(call, params, emit)
            if isinstance(result, Later):
                result.begin(lambda outcome: self._complete(number, outcome))
                return
        except BaseException as error:  # noqa: BLE001 - the client gets a sentence
            result = Cancelled() if isinstance(error, KeyboardInterrupt) else error
        self._complete(number, result)

    def _complete(self, number: str | int | None, result: Any) -> None:
        """Answer a request from any thread."""
        try:
            line = msgspec.json.encode(_response(number, result))
        except Exception as error:  # noqa: BLE001 - a result that cannot be encoded
            line = msgspec.json.encode(_response(number, error))
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._finish, number, line)

    def _finish(self, number: str | int | None, line: bytes) -> None:
        self._calls.pop(number, None)
        self._submitted.pop(number, None)
        if number is not None and not self.transport.is_closing():
            self.transport.write(line + b"\n")
            self._after_answer()

    def _send(self, message: dict[str, Any]) -> None:
        """Send from a worker thread."""
        line = msgspec.json.encode(message) + b"\n"
        self._loop.call_soon_threadsafe(self._write, line)

    def _write(self, line: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(line)

    def _answer(
        self, number: str | int | None, result: Any = None, *, error: BaseException | None = None
    ) -> None:
        self._write(msgspec.json.encode(_response(number, result if error is None else error)) + b"\n")

    def _refuse_all(self, error: Refused) -> None:
        """Refuse what cannot be read, and hang up: where the next request begins is unknown.

        What the client still sends is read and ignored for a moment: otherwise it would not get the answer.
        """
        self._answer(None, error=error)
        self._heard.clear()
        self.hang_up()

    def hang_up(self) -> None:
        """Send what is left to send, and disconnect; what the client still sends is ignored."""
        self._deaf = True
        self.transport.write_eof()
        self._loop.call_later(DEAF_S, self.transport.abort)

    def dismiss(self) -> None:
        """Send requests that have not begun away, and disconnect: what the others did is unknown."""
        for number, submitted in list(self._submitted.items()):
            if submitted.cancel():
                self._calls.pop(number, None)
                self._answer(number, error=Refused(LEAVING, "The server is about to exit."))
        self.transport.close()

    def _heard_together(self) -> int:
        return sum(len(one._heard) for one in self._service.others())  # noqa: SLF001 - of its own class

    def _busy_inside_runs(self) -> int:
        return sum(one.busy for one in self._service.others() if one.peer.inside_run)

    def _after_answer(self) -> None:
        """Do what follows an answer of a worker thread: nothing, the next request may come."""

    @property
    def busy(self) -> int:
        """Number of requests that are not answered yet."""
        return len(self._calls)

    def identify(self) -> Peer:
        """Return who is at the other end."""
        return identify(self.transport.get_extra_info("socket"))


def _parts(message: Any) -> tuple[str | int | None, str, dict[str, Any], str]:
    """Return the id, method, parameters and version of a request.

    Raises:
        Refused: It is not a request of JSON-RPC 2.0 with parameters by name.
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Refused(INVALID, "A request is one JSON object with `jsonrpc`: `2.0`.")
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(number, str | int | None) or isinstance(number, bool):
        raise Refused(INVALID, "A request has a `method` and an `id` that is a text or a whole number.")
    if not isinstance(params, dict):
        raise Refused(PARAMS, "`params` is an object.")
    version = message.get("agentx", "")
    return number, method, params, version if isinstance(version, str) else "?"


def _response(number: str | int | None, outcome: Any) -> dict[str, Any]:
    failed = isinstance(outcome, BaseException)
    return {
        "jsonrpc": "2.0",
        "id": number,
        **({"error": as_object(outcome)} if failed else {"result": outcome}),
    }


def _inside_run(method: str) -> Refused:
    return Refused(
        INSIDE_RUN,
        f"`{method}` acts as you or changes the workspace, so it is refused inside an agent's run.",
    )
