"""Cursor: its hook events, tools and answers.

After https://cursor.com/docs/hooks.md, version 2.4 and later. ``ask`` works for shell commands only, in
``beforeShellExecution``; ``beforeSubmitPrompt`` takes no context, so that for a prompt goes with the first
tool result after it.
"""

import json

from agentx.hosts.action import (
    AFTER,
    ANSWER,
    BEFORE,
    COMPACT,
    DELETE,
    EDIT,
    END,
    MOST_PROMPT,
    PROMPT,
    READ,
    SHELL,
    START,
    STOP,
    SUBSTOP,
    WEB,
    WRITE,
    HostAction,
    HostReply,
    shortened,
    text_of,
)
from agentx.hosts.host import CHANGE, NAMES, PATH, Host, as_object

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_EVENTS = {
    "sessionStart": START,
    "beforeSubmitPrompt": PROMPT,
    "preToolUse": BEFORE,
    "beforeShellExecution": BEFORE,
    "postToolUse": AFTER,
    "postToolUseFailure": AFTER,
    "afterAgentResponse": ANSWER,
    "stop": STOP,
    "subagentStop": SUBSTOP,
    "preCompact": COMPACT,
    "sessionEnd": END,
}

_SHELL = "Shell"

_TOOLS = {
    _SHELL: (SHELL, {"working_directory": "cwd"}),
    "Read": (READ, PATH),
    **dict.fromkeys(("Grep", "Glob", "LS", "SemanticSearch", "ReadLints", "TodoWrite"), (READ, NAMES)),
    "Write": (WRITE, {**PATH, "contents": "content"}),
    **dict.fromkeys(("Edit", "StrReplace", "TabWrite"), (EDIT, CHANGE)),
    "Delete": (DELETE, PATH),
    **dict.fromkeys(("WebFetch", "WebSearch"), (WEB, NAMES)),
}


class Cursor(Host):
    """The table of Cursor."""

    name = "cursor"
    version = "2.4"
    events = _EVENTS
    tools = _TOOLS
    mute = (PROMPT, BEFORE)
    project_variable = "CURSOR_PROJECT_DIR"
    folder = ".cursor", ""
    user_file = "hooks.json"
    project_file = ".cursor/hooks.json"
    server_file = "mcp.json"
    server_project_file = ".cursor/mcp.json"
    enable = "Restart Cursor; Settings, Hooks lists them."

    def entry(self, event: str, command: str) -> "dict[str, Any]":
        """Return the entry of an event, without a time: sources differ on its unit."""
        del event
        return {"command": command}

    def read(self, payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> HostAction:
        """Return the action; Cursor names the session, the directory and the results in its own way."""
        action = super().read(payload, environ)
        roots = payload.get("workspace_roots")
        if isinstance(roots, list) and roots and not (action.cwd and payload.get("cwd")):
            action.cwd = text_of(roots[0])
        if action.moment == PROMPT:
            action.text = shortened(text_of(payload.get("prompt")), MOST_PROMPT)
        elif action.moment in (ANSWER, SUBSTOP):
            action.text = shortened(text_of(payload.get("text") or payload.get("summary")))
        elif action.moment == STOP:
            action.source = text_of(payload.get("status"))
            action.stopping = bool(payload.get("loop_count")) or action.source != "completed"
        elif action.event == "beforeShellExecution":
            self.take_tool(action, _SHELL, {"command": payload.get("command")})
        elif action.event == "preToolUse":
            action.asks = False
            if action.tool == _SHELL:  # beforeShellExecution follows, which can ask
                action.moment = ""
        return action

    def take_result(self, action: HostAction, payload: "Mapping[str, Any]") -> None:
        """Set the output and the exit status, which are in a JSON text."""
        took = payload.get("duration")
        action.duration_ms = int(took) if isinstance(took, int | float) else 0
        if action.event == "postToolUseFailure":
            action.failed = True
            action.output = shortened(text_of(payload.get("error_message")))
            action.refused = payload.get("failure_type") == "permission_denied"
            return
        given = payload.get("tool_output")
        if isinstance(given, str) and given.lstrip().startswith("{"):
            given = as_object(given) or given
        if isinstance(given, dict):
            status = given.get("exitCode", given.get("exit_code"))
            action.exit_code = status if type(status) is int else None
            if action.kind == SHELL:
                parts = (text_of(given.get(name)).strip("\n") for name in ("stdout", "output", "stderr"))
                given = "\n".join(part for part in parts if part) or given
        action.output = "" if action.kind == READ else shortened(text_of(given))

    def write(self, action: HostAction, reply: HostReply) -> tuple[str, int]:
        """Return one JSON object in Cursor's format."""
        answer: dict[str, Any] = {}
        if action.moment == PROMPT:
            answer["continue"] = True
        elif action.moment == BEFORE and reply.decision in ("ask", "deny"):
            decision = reply.decision if action.asks else "deny"
            answer = {"permission": decision, "user_message": reply.reason, "agent_message": reply.reason}
        elif action.moment == STOP and reply.decision == "go_on":
            answer["followup_message"] = reply.reason
        if reply.context and action.moment in (START, AFTER):
            answer["additional_context"] = reply.context
        if reply.message and action.moment == PROMPT:
            answer["user_message"] = reply.message
        return json.dumps(answer), 0


HOST = Cursor()
