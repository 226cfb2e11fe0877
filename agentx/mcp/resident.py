"""Asks the resident process; where there is none, this process opens the workspace itself."""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from agentx.client.client import Client, RequestFailed, ServerLost, ServerUnavailable
from agentx.mcp.catalogue import TOOLS
from agentx.mcp.messages import McpAnswer, McpRequest, UserQuestion
from agentx.storage.errors import AgentXError

if TYPE_CHECKING:
    from agentx.settings import Settings
    from agentx.workspace import Workspace

METHOD = "mcp"
"""The method of the server that answers a host's question."""

_CONNECT_S = 10.0
_AGAIN_S = 30.0
"""How long this process works alone before it looks for a server again."""

_ELSEWHERE = {"RemoteMount"}
"""Errors by which the server leaves a workspace to the process that asks."""

_BROKEN = (
    "The server of AgentX ended before it answered, so it is unknown whether this was done. Call `history` "
    "before you call it again."
)


class Resident:
    """Answers the questions of one host, from any thread.

    Args:
        directory: An absolute path; the workspace is there or above.
        settings: The settings from the environment.
    """

    def __init__(self, directory: str, settings: "Settings") -> None:
        self._directory = directory
        self._settings = settings
        self._idle: list[Client] = []
        self._lock = threading.Lock()
        self._here: Workspace | None = None
        self._turn = threading.Lock()
        self._alone_until = 0.0

    def begin(self) -> None:
        """Start the server, if none runs, so that it is ready for the first question."""
        with suppress(AgentXError, OSError):
            self._give_back(self._connected())

    def ask(self, request: McpRequest) -> McpAnswer:
        """Answer a question; errors are answers that say what to do."""
        tool = TOOLS.get(request.name) if request.kind == "call" else None
        if tool is not None and tool.programs:
            return self._answer_here(request)
        again = tool is None or tool.again
        try:
            return msgspec.convert(self._call(METHOD, msgspec.to_builtins(request), again=again), McpAnswer)
        except ServerUnavailable:
            return self._answer_here(request)
        except ServerLost:
            return McpAnswer(text=_BROKEN, failed=True)
        except RequestFailed as error:
            if error.kind in _ELSEWHERE:
                return self._answer_here(request)
            return McpAnswer(text=str(error), failed=True)

    def decide(self, question: UserQuestion, asked: str, *, approved: bool) -> None:
        """Record what the user answered, as the user's.

        Raises:
            AgentXError: It cannot be recorded.
        """
        method, arguments = question.decision(asked, approved=approved)
        try:
            self._call(method, arguments, again=False)
        except ServerUnavailable:
            with self._turn:
                getattr(self._opened(), method)(**arguments)

    def close(self) -> None:
        """Close the connections, and the workspace if this process has it open."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()
        with self._turn:
            here, self._here = self._here, None
            if here is not None:
                here.close()

    # --- the server -------------------------------------------------------------------------------

    def _call(self, method: str, params: Mapping[str, Any], *, again: bool) -> Any:
        """Call a method of the server, on a new connection if the one at hand has broken."""
        for last in (False, True):
            client = self._connected()
            try:
                result = client.call(method, workspace=self._directory, **params)
            except ServerLost:
                client.close()
                if last or not again:
                    raise
            except RequestFailed as error:
                client.close()
                if last or error.code not in _ENDING:
                    raise
            except BaseException:
                client.close()
                raise
            else:
                self._give_back(client)
                return result
        raise ServerLost(_BROKEN)

    def _connected(self) -> Client:
        """Return a connection that nobody else uses now.

        Raises:
            ServerUnavailable: There is no server; this process works alone for a while.
        """
        with self._lock:
            while self._idle:
                client = self._idle.pop()
                if client.is_open:
                    return client
                client.close()
        if time.monotonic() < self._alone_until:
            raise ServerUnavailable("No server answered a moment ago.")
        try:
            return Client.connect(self._settings.environ, timeout_s=_CONNECT_S)
        except AgentXError as error:
            self._alone_until = time.monotonic() + _AGAIN_S
            if isinstance(error, ServerUnavailable):
                raise
            raise ServerUnavailable(str(error)) from error

    def _give_back(self, client: Client) -> None:
        with self._lock:
            self._idle.append(client)

    # --- this process -----------------------------------------------------------------------------

    def _answer_here(self, request: McpRequest) -> McpAnswer:
        try:
            with self._turn:
                answer: McpAnswer = import_module("agentx.mcp.calls").answer(self._opened(), request)
        except (AgentXError, OSError) as error:
            return McpAnswer(text=str(error), failed=True)
        return answer

    def _opened(self) -> "Workspace":
        """Return the workspace, open in this process; the caller has its turn."""
        if self._here is None:
            self._here = import_module("agentx.workspace").Workspace.find(
                self._directory, settings=self._settings
            )
        return self._here


_ENDING = {-32001, -32004}
"""Errors of a server that makes room: nothing was done."""
