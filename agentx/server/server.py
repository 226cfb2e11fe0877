"""The server process: its lock, its socket, and when it ends."""

import asyncio
import fcntl
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentx import __version__
from agentx.client import place
from agentx.client.identity import identity
from agentx.core.long_lived import collect_garbage
from agentx.fleet.place import Place
from agentx.mcp.over_http import McpOverHttp
from agentx.server.agent_calls import ServedDesk
from agentx.server.calls import ServedCall
from agentx.server.code import LoadedCode
from agentx.server.connection import Connection
from agentx.server.errors import BUSY, Refused
from agentx.server.http import USER, HttpListener
from agentx.server.inspecting import InspectorDesk
from agentx.server.methods import FOLLOWERS
from agentx.server.peers import Peer
from agentx.server.pool import Pool
from agentx.server.watchdog import watched
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.storage.process_memory import rss_bytes

_LOOK_S = 1.0
_PAUSE_S = 0.02
_LOOK_BUSY_S = 0.05
_BACKLOG = 512
_FIRST_FILE, _MOST_FILES = 3, 8_192
_WAIT_S = 30.0

MOST_CONNECTIONS = 2_000
"""Maximum number of connections; each takes a descriptor."""

MOST_FROM_RUNS = 64
"""Maximum number of connections from inside agents' runs, and of those over HTTP."""

_THREADS = 32

_FAR_OVER = 1.5
"""How far over its memory limit the server ends, whatever its requests do; below, it finishes them first."""

_OVER_S = 10.0
"""How long it finishes its requests while it is over the limit."""

_FLUSH_S = 0.2
"""How long the last answers have to get away."""

_ENDED = 1


class AlreadyServing(AgentXError):
    """Another server of this user runs."""


class ServedFromRun(AgentXError):
    """An agent's run started this process, so it does not serve the user."""


class Server:
    """Answers the requests of one user.

    Args:
        settings: The settings from the environment.
        remote: Whether it opens workspaces on another machine's file system too.
    """

    def __init__(self, settings: Settings, *, remote: bool = False) -> None:
        self.pool = Pool(settings.server_workspaces, remote=remote)
        self.workers = ThreadPoolExecutor(_THREADS, "agentx-worker")
        self.leaving = False
        self._settings = settings
        self._code = LoadedCode()
        self._connections: set[Connection] = set()
        self._started = self._used = time.monotonic()
        self._requests = 0
        self._http = 0
        self._desk = ServedDesk(self, USER)
        self._inspecting = InspectorDesk(self, USER)
        self._watching = False
        self._over_since = 0.0
        self._opening = threading.Lock()
        self._loop: asyncio.AbstractEventLoop
        self._listener: HttpListener
        self._done: asyncio.Event
        self._refusing: asyncio.Event
        self._watcher: asyncio.Future[None]

    # --- what a connection needs ------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """Register a connection.

        Raises:
            Refused: There are too many, or another user is at its other end.
        """
        self._used = time.monotonic()
        peer = connection.peer
        if peer.uid != os.getuid():
            raise Refused(BUSY, "This is the server of another user.")
        kind = peer.inside_run, not peer.pid
        alike = sum((one.peer.inside_run, not one.peer.pid) == kind for one in self._connections)
        if alike >= (MOST_FROM_RUNS if any(kind) else MOST_CONNECTIONS):
            raise Refused(BUSY, "The server has too many connections.")
        self._connections.add(connection)

    def others(self) -> Collection[Connection]:
        """Return all connections."""
        return self._connections

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._used = time.monotonic()
        self._connections.discard(connection)

    def call_for(self, peer: Peer) -> ServedCall:
        """Return a call for a client."""
        self._used = time.monotonic()
        self._requests += 1
        if not self._watching:
            self._watching = True
            self._loop.call_soon_threadsafe(self._begin_to_watch)
        call = ServedCall(peer, self.pool, self._settings)
        call.inspect = self.inspect
        return call

    def inspect(self, roots: list[Path], settings: Settings, fleet: Place | None = None) -> str:
        """Return the address of the inspector for some workspaces and a fleet; called in a worker thread.

        The HTTP listener is started if it is off; then it answers the inspector alone.
        """
        with self._opening:
            if not self._listener.port:
                asyncio.run_coroutine_threadsafe(self._listener.listen(0), self._loop).result(_WAIT_S)
            self._inspecting.port = self._listener.port
        return self._inspecting.address(roots, settings, fleet)

    def own(self, method: str, peer: Peer) -> Any:
        """Answer a method of the server itself."""
        del peer
        match method:
            case "hello":
                return {"version": __version__, "identity": identity(), "pid": os.getpid()}
            case "server.status":
                return self.status()
            case _:
                self.leave()
                return True

    def stale(self) -> bool:
        """Whether the code on disk is no longer the code that runs."""
        return self._code.look()

    def leave(self) -> None:
        """Finish the requests in progress, and exit."""
        self.leaving = True
        FOLLOWERS.leave()
        self._done.set()

    def status(self) -> dict[str, Any]:
        """Return what the server does, for `agentx serve --status`."""
        return {
            "pid": os.getpid(),
            "version": __version__,
            "identity": identity(),
            "uptime_s": round(time.monotonic() - self._started, 1),
            "requests": self._requests,
            "connections": len(self._connections),
            "followers": len(FOLLOWERS),
            "http_port": self._http,
            "inspect_port": self._inspecting.port,
            "pages": self._inspecting.streams,
            "rss_bytes": rss_bytes(),
            "most_rss_bytes": int(self._settings.server_memory_mb * 1e6),
            "most_workspaces": self._settings.server_workspaces,
            "idle_exit_s": self._settings.server_idle_s,
            "workspaces": self.pool.listed(),
        }

    # --- its life ---------------------------------------------------------------------------------

    async def run(self, where: str) -> None:
        """Serve until it is told to stop, or nobody has used it for long."""
        loop = self._loop = asyncio.get_running_loop()
        self._done, self._refusing = asyncio.Event(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.leave)
        listener = listen(where)
        own = _named(where)
        listening = await loop.create_unix_server(
            lambda: Connection(self, loop), sock=listener, backlog=_BACKLOG
        )
        mcp = McpOverHttp(self._desk)
        http = self._listener = HttpListener(self, loop, mcp, self._inspecting.inspector)
        if self._settings.server_http:
            with suppress(OSError, OverflowError):  # the port is in use: the socket is what counts
                await http.listen(int(self._settings.server_http), where)
                self._http = http.port
        try:
            while not self._done.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._done.wait(), _LOOK_S)
                if self._unused or _named(where) != own or await loop.run_in_executor(None, self._look_after):
                    self.leave()
        finally:
            self.leaving = True
            if _named(where) == own:
                os.unlink(f"{where}/{place.SOCKET}")
                with suppress(FileNotFoundError):
                    os.unlink(f"{where}/{place.HTTP}")
            listening.close()
            http.close()
            self._refusing.set()
            await self._finished()
            await mcp.close()
            http.hang_up()
            for connection in self._connections:
                connection.transport.close()
            self.workers.shutdown()
            self.pool.close()

    async def run_inspector(
        self, roots: list[Path], told: Callable[[str], None], fleet: Place | None = None
    ) -> None:
        """Serve the inspector for some workspaces, and nothing else, until told to stop or long unused.

        Args:
            roots: The directories of the workspaces.
            told: Called with the address.
            fleet: The fleet that it shows, too.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._done, self._refusing = asyncio.Event(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.leave)
        http = self._listener = HttpListener(self, loop, _not_here, self._inspecting.inspector)
        try:
            told(await loop.run_in_executor(self.workers, self.inspect, roots, self._settings, fleet))
            while not self._done.is_set() and not self._unused:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._done.wait(), _LOOK_S)
        finally:
            self.leaving = True
            http.close()
            self._refusing.set()
            await self._finished()
            http.hang_up()
            self.workers.shutdown()
            self.pool.close()

    def _look_after(self) -> bool:
        self.pool.let_go()
        return self._too_large()

    def _too_large(self) -> bool:
        """Close workspaces while the server uses too much memory; return whether that did not help."""
        most = self._most_bytes
        while rss_bytes() > most and self.pool.shrink(len(self.pool) - 1):
            pass
        return rss_bytes() > most and not len(self.pool)

    def _begin_to_watch(self) -> None:
        self._watcher = asyncio.ensure_future(self._watch_memory())

    async def _watch_memory(self) -> None:
        """Look at the memory while requests run, so that none takes that of the machine."""
        while self._busy:
            await asyncio.sleep(_LOOK_BUSY_S)
            if rss_bytes() <= self._most_bytes:
                self._over_since = 0.0
                continue
            now = time.monotonic()
            if not self._over_since:
                self._over_since = now
                self._loop.run_in_executor(None, self._make_room)
            elif rss_bytes() > _FAR_OVER * self._most_bytes or now - self._over_since > _OVER_S:
                await self._end_at_once()
        self._watching = False

    def _make_room(self) -> None:
        """Close what nobody uses; if that does not help, take no more requests."""
        self.pool.shrink(0)
        if rss_bytes() > self._most_bytes:
            self._loop.call_soon_threadsafe(self.leave)

    async def _end_at_once(self) -> None:
        """End this process although requests run: they are cut off, as if it had been killed.

        Everything that was answered is durable, and clients do what can be done again by themselves.
        """
        self.leave()
        await self._refusing.wait()  # the socket is closed
        for connection in list(self._connections):
            connection.dismiss()
        await asyncio.sleep(_FLUSH_S)
        os._exit(_ENDED)

    @property
    def _most_bytes(self) -> float:
        return self._settings.server_memory_mb * 1e6

    async def _finished(self) -> None:
        """Wait until every request is answered."""
        while self._busy:  # noqa: ASYNC110 - it is looked at rarely, and counted in one place
            await asyncio.sleep(0.01)

    @property
    def _unused(self) -> bool:
        in_use = self._busy or self._inspecting.streams
        return time.monotonic() - self._used > self._settings.server_idle_s and not in_use

    @property
    def _busy(self) -> int:
        over_http = self._desk.busy + self._inspecting.busy
        return over_http + sum(connection.busy for connection in self._connections)


def _named(where: str) -> tuple[int, int] | None:
    """Return what has the socket's name now; ``None`` if nothing has: somebody removed it."""
    with suppress(OSError):
        found = os.lstat(f"{where}/{place.SOCKET}")
        return found.st_dev, found.st_ino
    return None


def listen(where: str) -> socket.socket:
    """Return the listening socket, in place of one that a dead server left. The caller holds the lock."""
    path = f"{where}/{place.SOCKET}"
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o600)
    return listener


@contextmanager
def alone(where: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock that only one server of a user holds, until the process ends.

    Args:
        where: The runtime directory.
        wait_s: How long to wait for a server that finishes its last requests.

    Raises:
        AlreadyServing: Another server holds it.
        OSError: The process number cannot be written.
    """
    path = f"{where}/{place.LOCK}"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + wait_s
        while not _locked(lock):
            if time.monotonic() >= end or answers(where):
                raise AlreadyServing("A server of yours runs already; see `agentx serve --status`.")
            time.sleep(_PAUSE_S)
        try:
            os.ftruncate(lock, 0)
            os.write(lock, f"{os.getpid()}\n".encode())
        except OSError as error:  # a full disk
            raise OSError(error.errno, error.strerror, path) from error
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def answers(where: str) -> bool:
    """Return whether a server accepts connections in a runtime directory."""
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(f"{where}/{place.SOCKET}") == 0


def serve(settings: Settings, *, detached: bool = False) -> None:
    """Serve in this process until stopped.

    Args:
        settings: The settings from the environment.
        detached: Whether a client started it: then it keeps nothing of the client's open or in use, and waits
            for a server that is about to exit.

    Raises:
        AlreadyServing: Another server runs.
        PlaceRefused: The runtime directory is not private to this user.
        FileNotFoundError: The runtime directory was deleted since the client made it.
        ServedFromRun: An agent's run started this process.
    """
    refuse_runs(settings)
    where = place.runtime_dir(settings.environ)
    if detached:
        place.check(where)  # its client made it; who deleted it since wants no server in it
    else:
        place.make(where)
    os.umask(0o077)
    if detached:
        os.closerange(_FIRST_FILE, _MOST_FILES)
        os.chdir("/")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, _MOST_FILES)), hard))
    collect_garbage()
    with alone(where, _WAIT_S if detached else 0.0):
        asyncio.run(watched(Server(settings).run(where)))


def serve_inspector(
    settings: Settings, roots: list[Path], told: Callable[[str], None], fleet: Place | None = None
) -> None:
    """Serve the inspector in this process until stopped; see :meth:`Server.run_inspector`.

    Raises:
        ServedFromRun: An agent's run started this process.
    """
    refuse_runs(settings)
    asyncio.run(Server(settings, remote=True).run_inspector(roots, told, fleet))


def refuse_runs(settings: Settings) -> None:
    """Check that no agent's run started this process.

    Raises:
        ServedFromRun: One did.
    """
    if settings.inside_run:
        raise ServedFromRun("No server is started inside an agent's run: it could not tell agents from you.")


async def _not_here(_scope: object, _receive: object, _send: object) -> None:
    """Answer nothing: nobody has a token for ``/mcp`` here."""
