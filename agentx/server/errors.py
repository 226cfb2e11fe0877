"""Errors as the protocol sends them: a code, a sentence, and the name of the exception."""

from typing import Any

from agentx.storage.errors import AgentXError

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
"""Codes of JSON-RPC 2.0."""

FAILED, OTHER_VERSION, INSIDE_RUN, BUSY, LEAVING, CANCELLED = -32000, -32001, -32002, -32003, -32004, -32005
"""Codes of ours: an error of AgentX; other code; refused inside a run; too many requests; exiting; cancelled.
"""


class Refused(AgentXError):
    """A request that was not carried out, with its code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Cancelled(AgentXError):
    """The client cancelled the request, or closed the connection."""


def as_object(error: BaseException) -> dict[str, Any]:
    """Return an exception as the ``error`` of a response."""
    data: dict[str, Any] = {"type": type(error).__name__}
    match error:
        case Refused():
            return {"code": error.code, "message": str(error)}
        case Cancelled():
            return {"code": CANCELLED, "message": "The request was cancelled."}
        case AgentXError():
            return {"code": FAILED, "message": str(error), "data": data | {"exit_code": error.exit_code}}
        case OSError() if error.strerror:
            about = f"{error.filename}: " if error.filename else ""
            return {"code": FAILED, "message": f"{about}{error.strerror}.", "data": data | {"exit_code": 1}}
    return {
        "code": INTERNAL,
        "message": f"A fault in AgentX itself ended the request: {type(error).__name__}: {error}. "
        "Everything recorded is kept.",
        "data": data,
    }
