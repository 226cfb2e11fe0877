"""Prompts that a user picks in the host: start, recovery after a compaction, and handing over."""

from typing import Any

from agentx.mcp.catalogue import TasksWanted
from agentx.mcp.memory_calls import tasks
from agentx.mcp.messages import McpAnswer
from agentx.mcp.offers import PROMPTS
from agentx.storage.errors import UsageError
from agentx.workspace import Workspace

_RECOVERY = (
    "The conversation before this was cut. What follows is the record of this project. Continue from “Where "
    "we stopped”. Do what the user demands, and propose nothing that the user ruled out."
)
_HAND_OVER = (
    "Write a handover for whoever continues this work, at most one page: what was asked, what is done, what "
    "is open and why, what the user demands and ruled out, what was tried and failed, and the next step. "
    "Use only the record below and what you did yourself. Call `remember` for what is not in the record."
)


def prompt(ws: Workspace, name: str, arguments: dict[str, Any], agent: str) -> McpAnswer:
    """Return the text of a prompt.

    Raises:
        UsageError: The prompt does not exist.
    """
    match name:
        case "boot":
            text = ws.boot(str(arguments.get("agent") or agent)).text
        case "recovery":
            text = f"{_RECOVERY}\n\n{ws.get_relevant_context('', tier=0, max_tokens=2_000).text}"
        case "hand_over":
            recap = ws.get_relevant_context("", tier=2, max_tokens=6_000).text
            text = f"{_HAND_OVER}\n\n{recap}\n\n{tasks(ws, TasksWanted(), agent).text}"
        case _:
            raise UsageError(
                f"Unknown prompt {name!r}; there are: {', '.join(one['name'] for one in PROMPTS)}."
            )
    return McpAnswer(text=text)
