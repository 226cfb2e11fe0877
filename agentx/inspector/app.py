"""The application of the inspector: its routes, its checks, and its stream of events.

It does not know the server that runs it: a :class:`Desk` opens workspaces and does the work in threads.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from agentx import __version__
from agentx.core.layout import NotAWorkspace
from agentx.engine.moment_parser import NoSuchMoment
from agentx.inspector import acts, contexts, events, files, fleet, memory, overview, work
from agentx.inspector.access import KEY_SHOWN, Grant, Grants, InspectorError, require_own_page
from agentx.inspector.asking import Asked
from agentx.inspector.streaming import EventStream
from agentx.memory.editing import NoSuchItem
from agentx.settings import Settings
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import Event
from agentx.storage.files.lock import WorkspaceBusy
from agentx.storage.files.paths import PathRefused
from agentx.storage.text import encodable
from agentx.workspace import Workspace

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PREFIX = "/inspect"
"""Everything of the inspector is below this path."""

PAGE = Path(__file__).parent / "page"
"""The static files of the page; they hold no data."""

MOST_BODY = 64 << 10
"""Maximum length of the body of a request."""

SLOW_S = 10.0
"""A body that has not arrived after this time is given up."""

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
"""Media types of static files; the machine's own table may say something else."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

Reading = Callable[[Workspace, Asked], Any]
"""Answers a request about a workspace; called in a worker thread."""


class Desk(Protocol):
    """What the application needs of the process that runs it."""

    async def run(self, work: Callable[[], Any]) -> Any:
        """Call a function in a worker thread."""
        ...

    def using(self, root: Path, settings: Settings) -> AbstractContextManager[Workspace]:
        """Open a workspace, which stays open while the body of the ``with`` runs."""
        ...

    def follow(
        self,
        root: Path,
        settings: Settings,
        after: int,
        emit: Callable[[Workspace, Event], None],
        has_room: Callable[[], bool],
        finish: Callable[[], None],
    ) -> Callable[[], None]:
        """Send the events after one, and future ones, while there is room; return what ends that."""
        ...

    def inside_run(self, client: tuple[str, int]) -> bool:
        """Return whether an agent's run sends a request."""
        ...

    def hosts(self) -> set[str]:
        """Return the values of ``Host`` that lead here."""
        ...


class Inspector:
    """The inspector of one process: its application, and the tokens that open it.

    Args:
        desk: Opens workspaces.
    """

    def __init__(self, desk: Desk) -> None:
        self.grants = Grants()
        self._desk = desk
        self._app: App | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose path begins with :data:`PREFIX`."""
        if self._app is None:
            self._app = await asyncio.to_thread(_application, self)

        try:
            static = not scope["path"].startswith(f"{PREFIX}/api/")
            require_own_page(scope["method"], scope["headers"], self._desk.hosts(), static=static)
            await self._app(scope, receive, send)
        except InspectorError as error:
            await _refusal(error)(scope, receive, send)

    # --- answers ------------------------------------------------------------------------------------------

    async def workspaces(self, request: "Request") -> "Response":
        """Return the workspaces that the token opens."""
        grant = await self._grant(request)

        def titles() -> dict[str, str]:
            found = {}
            for name, root in grant.roots.items():
                with suppress(AgentXError, OSError), self._desk.using(root, grant.settings) as ws:
                    found[name] = ws.engine.log.state.title
            return found

        return _json(overview.listed(grant, await self._desk.run(titles), __version__))

    async def read(self, reading: Reading, request: "Request") -> "Response":
        """Answer a question about a workspace."""
        grant, asked = await self._grant(request), Asked({**request.query_params, **request.path_params})
        root = grant.root(request.path_params["w"])

        def work() -> bytes:
            with self._desk.using(root, grant.settings) as ws:
                return msgspec.json.encode(reading(ws, asked))

        return _json(await self._desk.run(work))

    async def fleet(self, request: "Request") -> "Response":
        """Return what the fleet does that the token shows."""
        grant, asked = await self._grant(request), Asked(request.query_params)
        place = grant.fleet
        if place is None:
            raise InspectorError(404, "This page was not opened for a fleet: use `agentx inspect --fleet`.")

        def work() -> bytes:
            return msgspec.json.encode(fleet.fleet(place, asked))

        return _json(await self._desk.run(work))

    async def act(self, request: "Request") -> "Response":
        """Carry out an act of the user."""
        grant = await self._grant(request)
        root = grant.root(request.path_params["w"])
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise InspectorError(415, "An act is sent as application/json.")
        body = await _body(request)

        def work() -> bytes:
            with self._desk.using(root, grant.settings) as ws:
                return msgspec.json.encode(acts.act(ws, body))

        return _json(await self._desk.run(work))

    async def _grant(self, request: "Request") -> Grant:
        """Return what a request may see.

        Raises:
            InspectorError: It has no valid token, or an agent's run sent it, wherever it has the token from.
        """
        grant = self.grants.find(request.headers.get("authorization", ""))
        client = request.client
        if client is None or await self._desk.run(partial(self._desk.inside_run, (client.host, client.port))):
            raise InspectorError(403, "The inspector is the user's: it is refused inside an agent's run.")
        shown = request.scope.get("state", {}).get(KEY_SHOWN)
        if shown is not None:
            shown()
        return grant

    async def stream(self, request: "Request") -> "Response":
        """Send events as they are recorded."""
        if request.method != "GET":
            raise InspectorError(405, "The stream is read with GET.")
        grant, asked = await self._grant(request), Asked(request.query_params)
        root = grant.root(request.path_params["w"])
        after = asked.number("after") if asked.given("after") else None

        def seq() -> int:
            with self._desk.using(root, grant.settings) as ws:
                return ws.engine.snapshot().seq

        last = await self._desk.run(seq)
        follow = partial(self._desk.follow, root, grant.settings, last if after is None else after)
        return EventStream(follow, events.row)  # type: ignore[return-value]  # an application like any other


# --- the application ----------------------------------------------------------------------------------------


def _application(inspector: Inspector) -> App:
    """Return the routes; called in a thread, since it loads the library."""
    from starlette.applications import Starlette  # noqa: PLC0415 - loaded only where somebody looks
    from starlette.exceptions import HTTPException  # noqa: PLC0415
    from starlette.routing import Mount, Route  # noqa: PLC0415
    from starlette.staticfiles import StaticFiles  # noqa: PLC0415

    class Page(StaticFiles):
        """The files of the page, with the types that we give them."""

        def file_response(self, full_path: Any, *args: Any, **kwargs: Any) -> "Response":
            response = super().file_response(full_path, *args, **kwargs)
            response.headers["content-type"] = media_type(Path(full_path).suffix)
            response.headers["cache-control"] = "no-cache"
            return response

    async def failed(_request: "Request", error: Exception) -> "Response":
        if isinstance(error, HTTPException):
            return _refusal(InspectorError(error.status_code, f"{error.detail}."))
        return _refusal(error)

    return Starlette(
        routes=[
            Mount(
                PREFIX,
                routes=[
                    Route("/api/workspaces", inspector.workspaces),
                    Route(f"/api/{fleet.ID}", inspector.fleet),
                    Route("/api/{w}/stream", inspector.stream),
                    Route("/api/{w}/act", inspector.act, methods=["POST"]),
                    *(Route(f"/api/{{w}}/{path}", partial(inspector.read, read)) for path, read in READINGS),
                    Mount("/", Page(directory=PAGE, html=True)),
                ],
            ),
        ],
        exception_handlers=dict.fromkeys((HTTPException, AgentXError, OSError, Exception), failed),
    )


READINGS: tuple[tuple[str, Reading], ...] = (
    ("overview", overview.overview),
    ("approvals/{id:path}", overview.approval),
    ("events", events.page),
    ("events/{seq}", events.detail),
    ("moments", events.moments),
    ("context", contexts.context),
    ("context/compare", contexts.compare),
    ("memory", memory.listed),
    ("memory/{id}", memory.detail),
    ("candidates", memory.candidates),
    ("problems", memory.problems),
    ("flows", memory.flows),
    ("runs", work.runs),
    ("runs/{id:path}", work.run_detail),
    ("pipelines", work.pipelines),
    ("pipelines/{name}", work.pipeline),
    ("cognition", work.cognition),
    ("search", files.search),
    ("files", files.listed),
    ("file", files.file),
)
"""What can be read of a workspace, by path."""


def media_type(suffix: str) -> str:
    """Return the media type of a static file.

    >>> media_type(".js"), media_type(".png"), media_type(".exe")
    ('text/javascript; charset=utf-8', 'image/png', 'application/octet-stream')
    """
    kind = _TYPES.get(suffix, "application/octet-stream")
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind == "application/json" else kind


async def _body(request: "Request") -> bytes:
    """Return the body of a request.

    Raises:
        InspectorError: It is too long, or comes too slowly.
    """
    heard = bytearray()
    try:
        async with asyncio.timeout(SLOW_S):
            async for part in request.stream():
                heard += part
                if len(heard) > MOST_BODY:
                    raise InspectorError(413, f"The request has more than {MOST_BODY:,} bytes.")
    except TimeoutError as error:
        raise InspectorError(408, "The request did not arrive in time.") from error
    return bytes(heard)


def _json(value: Any) -> "Response":
    from starlette.responses import Response  # noqa: PLC0415 - loaded already

    content = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return Response(content, media_type="application/json", headers={"cache-control": "no-store"})


def _refusal(error: BaseException) -> "Response":
    from starlette.responses import Response  # noqa: PLC0415 - loaded already

    match error:
        case InspectorError():
            status = error.status
        case NoSuchItem() | NoSuchMoment() | NotAWorkspace():
            status = HTTPStatus.NOT_FOUND
        case UsageError() | PathRefused():
            status = HTTPStatus.BAD_REQUEST
        case WorkspaceBusy():
            status = HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
    text = str(error)
    if not isinstance(error, AgentXError | OSError):
        text = f"A fault in AgentX itself ended the request: {type(error).__name__}: {error}."
    headers = {"cache-control": "no-store"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    content = msgspec.json.encode({"error": encodable(text)})
    return Response(content, status, media_type="application/json", headers=headers)
