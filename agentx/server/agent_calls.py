"""``mcp``: answer a question of another agent's host; what it changes, an agent changes."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from agentx.mcp.calls import answer
from agentx.mcp.catalogue import TOOLS
from agentx.mcp.messages import McpAnswer, McpRequest, UserQuestion
from agentx.mcp.protocol import McpPlace
from agentx.server.calls import Emit, ServedCall
from agentx.server.connection import Service
from agentx.server.errors import PARAMS, Refused, as_object
from agentx.server.methods import METHODS
from agentx.server.peers import Peer
from agentx.storage.errors import AgentXError


def handle(call: ServedCall, params: dict[str, Any], _emit: Emit) -> McpAnswer:
    """Answer a question.

    Raises:
        Refused: It is no such question, or a tool that runs programs: the process of the host does that.
        NotAWorkspace: There is no workspace at the directory or above.
    """
    given = {name: value for name, value in params.items() if name != "workspace"}
    try:
        request = msgspec.convert(given, McpRequest)
    except msgspec.ValidationError as error:
        raise Refused(PARAMS, f"mcp: {error}.") from error
    tool = TOOLS.get(request.name)
    if request.kind == "call" and tool is not None and tool.programs:
        raise Refused(PARAMS, f"{tool.name} runs programs, so the server does not run it: use `agentx mcp`.")
    with call.workspace(params) as found:
        return answer(found.workspace, request)


class ServedDesk:
    """Answers hosts that ask over HTTP, in the worker threads of the server.

    Args:
        service: The server.
        peer: Who asks.
    """

    def __init__(self, service: Service, peer: Peer) -> None:
        self._service = service
        self._peer = peer
        self.busy = 0

    async def ask(self, place: McpPlace, request: McpRequest) -> McpAnswer:
        """Answer a question; errors are answers that say what to do."""
        params = {**msgspec.to_builtins(request), "workspace": place.directory}
        try:
            made: McpAnswer = await self._run(lambda call: handle(call, params, _silent))
        except (AgentXError, OSError) as error:
            return McpAnswer(text=str(as_object(error)["message"]), failed=True)
        return made

    async def decide(self, place: McpPlace, question: UserQuestion, asked: str, *, approved: bool) -> None:
        """Record what a user answered, as the user's.

        Raises:
            AgentXError: It cannot be recorded.
        """
        method, params = question.decision(asked, approved=approved)
        work = METHODS[method].load()
        await self._run(lambda call: work(call, {**params, "workspace": place.directory}, _silent))

    async def _run(self, work: Callable[[ServedCall], Any]) -> Any:
        call = self._service.call_for(self._peer)
        loop = asyncio.get_running_loop()
        self.busy += 1
        try:
            return await loop.run_in_executor(self._service.workers, work, call)
        finally:
            self.busy -= 1


def _silent(_event: str, _about: dict[str, Any]) -> None:
    """Send no notification."""
