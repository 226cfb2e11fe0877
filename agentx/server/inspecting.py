"""``inspect.open``: a token for the inspector, and what the inspector needs of the server."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentx.core import layout
from agentx.fleet.place import Place
from agentx.inspector.app import PREFIX, Inspector
from agentx.server.calls import Emit, ServedCall
from agentx.server.connection import Service
from agentx.server.errors import PARAMS, Cancelled, Refused
from agentx.server.following import Stream
from agentx.server.methods import FOLLOWERS
from agentx.server.peers import Peer, TcpPeers
from agentx.settings import Settings
from agentx.storage.events.types import Event
from agentx.workspace import Workspace

MOST_ROOTS = 50
"""Maximum number of workspaces that one token opens."""


def open_inspector(call: ServedCall, params: dict[str, Any], _emit: Emit) -> dict[str, str]:
    """Return an address that opens the inspector for some workspaces.

    Raises:
        Refused: They are not absolute paths.
        NotAWorkspace: There is no workspace at one of them or above.
    """
    given = params.get("workspaces")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_ROOTS:
        raise Refused(PARAMS, f"`workspaces` is a list of 1 to {MOST_ROOTS} directories.")
    roots = []
    for path in given:
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise Refused(PARAMS, "`workspaces` holds absolute paths of directories.")
        roots.append(layout.find_root(Path(path)))
    settings = call.client_settings()
    for root in roots:
        with call.pool.using(root, settings):
            """It can be opened."""
    return {"url": call.inspect(roots, settings)}


class InspectorDesk:
    """Opens workspaces for the inspector, and does its work in the threads of the server.

    Args:
        service: The server.
        peer: Who asks: whoever has the token is the user.

    Attributes:
        inspector: The application.
        port: The port at which it answers.
        busy: Number of requests that are not answered yet, without streams.
        streams: Number of pages that follow the events.
    """

    def __init__(self, service: Service, peer: Peer) -> None:
        self.inspector = Inspector(self)
        self.port = 0
        self.busy = 0
        self.streams = 0
        self._service = service
        self._peer = peer
        self._clients = TcpPeers()

    def inside_run(self, client: tuple[str, int]) -> bool:
        """Return whether an agent's run sends a request."""
        return self._clients.inside_run(client, self.port)

    def hosts(self) -> set[str]:
        """Return the values of ``Host`` that lead here."""
        return {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}

    def address(self, roots: list[Path], settings: Settings, fleet: Place | None = None) -> str:
        """Return the address of the page for workspaces and a fleet, with a new token in its fragment."""
        token = self.inspector.grants.issue(roots, settings, fleet)
        return f"http://127.0.0.1:{self.port}{PREFIX}/#{token}"

    async def run(self, work: Callable[[], Any]) -> Any:
        """Call a function in a worker thread."""
        self._service.call_for(self._peer)
        self.busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._service.workers, work)
        finally:
            self.busy -= 1

    @contextmanager
    def using(self, root: Path, settings: Settings) -> Iterator[Workspace]:
        """Open a workspace of the pool."""
        with self._service.call_for(self._peer).pool.using(root, settings) as found:
            yield found.workspace

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
        call = self._service.call_for(self._peer)
        call.has_room = has_room
        using = call.pool.using(root, settings)
        stream: Stream

        def send(_name: str, about: dict[str, Any]) -> None:
            emit(stream.workspace, about["event"])

        def ended(error: Any) -> None:
            if not isinstance(error, Cancelled):
                finish()

        stream = Stream(call, using, after, send)
        FOLLOWERS.add(stream, ended)
        self.streams += 1

        def stop() -> None:
            self.streams -= 1
            call.cancel()

        return stop
