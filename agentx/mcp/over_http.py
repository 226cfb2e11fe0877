"""Streamable HTTP: the protocol for hosts that ask a URL. Who may ask was checked before."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from agentx.mcp.catalogue import PROFILES, Profile
from agentx.mcp.protocol import Desk, McpPlace, Protocols

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MOST_SESSIONS = 64
MOST_BODY = 4 << 20
_IDLE_S = 1_800.0

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class McpOverHttp:
    """Answers requests to ``/mcp``; the SDK keeps the sessions.

    Args:
        desk: Answers questions.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._manager: StreamableHTTPSessionManager | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep())
        await self._ready.wait()
        assert self._manager is not None
        await self._manager.handle_request(scope, cast("Any", receive), cast("Any", send))

    async def _keep(self) -> None:
        """Keep the sessions until the end; what the SDK opens, one task opens and closes."""
        protocols = await asyncio.to_thread(Protocols, self._desk, place_of)  # loads the SDK
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - heavy

        self._manager = StreamableHTTPSessionManager(
            protocols.server,
            max_request_body_size=MOST_BODY,
            session_idle_timeout=_IDLE_S,
            max_sessions=MOST_SESSIONS,
        )
        async with self._manager.run():
            self._ready.set()
            await self._stop.wait()

    async def close(self) -> None:
        """End all sessions."""
        self._stop.set()
        if self._task is not None:
            await self._task


def place_of(ctx: Any) -> McpPlace:
    """Return what a request is about: the parameters ``workspace`` and ``profile`` of its URL."""
    given = ctx.request.query_params
    profile = given.get("profile", "default")
    known = cast("Profile", profile if profile in PROFILES else "default")
    return McpPlace(given.get("workspace", ""), known)
