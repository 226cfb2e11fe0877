"""The stream of events for the page: server-sent events, as the HTML standard defines them.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from agentx.storage.events.types import Event
from agentx.workspace import Workspace

HEARTBEAT_S = 15.0
"""Without an event for this long, a comment is sent, so that both ends notice that the other has gone."""

STUCK_S = 60.0
"""A client that reads nothing for this long is disconnected."""

MOST_WAITING = 500
"""While this many rows wait for the client, no more events are read for it."""

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Emit = Callable[[Workspace, Event], None]
Follow = Callable[[Emit, Callable[[], bool], Callable[[], None]], Callable[[], None]]
"""Begins to follow: given what takes an event, whether there is room, and what to call at the end."""


class EventStream:
    """An answer that goes on until the client leaves or the server exits.

    Args:
        follow: Begins to follow the events.
        row: Makes a row of an event.
    """

    def __init__(self, follow: Follow, row: Callable[[Workspace, Event], dict[str, Any]]) -> None:
        self._follow = follow
        self._row = row
        self._rows: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, _scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Send the events."""
        loop = asyncio.get_running_loop()

        def emit(ws: Workspace, event: Event) -> None:
            data = msgspec.json.encode(self._row(ws, event))
            part = b"event: event\nid: %d\ndata: %s\n\n" % (event.seq, data)
            loop.call_soon_threadsafe(self._rows.put_nowait, part)

        def finish() -> None:
            loop.call_soon_threadsafe(self._rows.put_nowait, b"")

        stop = await asyncio.to_thread(self._follow, emit, self.has_room, finish)
        gone = asyncio.ensure_future(_gone(receive))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send_all(send, gone)
        except TimeoutError:  # the client does not read
            pass
        finally:
            gone.cancel()
            stop()

    def has_room(self) -> bool:
        """Return whether few rows wait for the client."""
        return self._rows.qsize() < MOST_WAITING

    async def _send_all(self, send: Send, gone: "asyncio.Future[None]") -> None:
        part = b": open\n\n"
        while part and not gone.done():
            async with asyncio.timeout(STUCK_S):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            part = await self._next(gone)
        if not gone.done():
            end = b"event: end\ndata: {}\n\n"
            await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _next(self, gone: "asyncio.Future[None]") -> bytes:
        """Return the next part: a row, a heartbeat, or nothing at the end."""
        row = asyncio.ensure_future(self._rows.get())
        either: set[asyncio.Future[Any]] = {row, gone}
        await asyncio.wait(either, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
        if row.done():
            return row.result()
        row.cancel()
        return b": still here\n\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
