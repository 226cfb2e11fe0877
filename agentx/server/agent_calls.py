"""``mcp``: answer a question of another agent's host; what it changes, an agent changes."""

from typing import Any

import msgspec

from agentx.mcp.calls import answer, changes
from agentx.mcp.catalogue import TOOLS
from agentx.mcp.messages import McpAnswer, McpRequest
from agentx.server.calls import Emit, ServedCall
from agentx.server.errors import PARAMS, Refused


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
        if not changes(request):
            return answer(found.workspace, request)
        return found.write(lambda: answer(found.workspace, request))
