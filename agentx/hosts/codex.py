"""Codex: its hook events, tools and answers.

After `codex-rs/hooks` of openai/codex and https://developers.openai.com/codex/hooks, version 0.124 and later.
Codex rejects an answer with a field that its schema does not know, and one with a ``permissionDecision``
other than ``deny``.
"""

from agentx.hosts.action import (
    AFTER,
    BEFORE,
    COMPACT,
    COMPACTED,
    EDIT,
    END,
    PROMPT,
    SHELL,
    START,
    STOP,
    SUBSTOP,
    HostAction,
    HostReply,
    shortened,
    text_of,
)
from agentx.hosts.host import NAMES, SHARED_TOOLS, Host, as_object

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_EVENTS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreToolUse": BEFORE,
    "PostToolUse": AFTER,
    "Stop": STOP,
    "SubagentStop": SUBSTOP,
    "PreCompact": COMPACT,
    "PostCompact": COMPACTED,
    "SessionEnd": END,
}

_PATCH = {"command": "patch", "input": "patch"}

_TOOLS = {
    **SHARED_TOOLS,
    **dict.fromkeys(("shell", "local_shell", "exec_command", "shell_command"), (SHELL, {"cmd": "command"})),
    "apply_patch": (EDIT, _PATCH),
    "update_plan": ("read", NAMES),
}


class Codex(Host):
    """The table of Codex."""

    name = "codex"
    version = "0.124"
    events = _EVENTS
    tools = _TOOLS
    asks = False
    folder = ".codex", "CODEX_HOME"
    user_file = "hooks.json"
    project_file = ".codex/hooks.json"
    server_file = "config.toml"
    server_project_file = ".codex/config.toml"
    server_names = ("mcp_servers",)
    enable = (
        "Start Codex, open `/hooks`, and trust those of agentx; they do not run before. A project's hooks "
        "run only in a trusted project. Needed is version 0.124 or later (before: `[features] codex_hooks = "
        "true`)."
    )

    def entry(self, event: str, command: str) -> "dict[str, Any]":
        """Return the entry of an event; Codex grants the end of a session 3 s."""
        found = super().entry(event, command)
        if event == "SessionEnd":
            found["hooks"][0]["timeout"] = 3
        return found

    def take_result(self, action: HostAction, payload: "Mapping[str, Any]") -> None:
        """Set the output and the exit status of a command, as far as the response shows it."""
        given = payload.get("tool_response")
        if isinstance(given, str) and given.lstrip().startswith("{"):
            given = as_object(given) or given
        if isinstance(given, dict):
            about = given.get("metadata")
            status = about.get("exit_code") if isinstance(about, dict) else given.get("exit_code")
            action.exit_code = status if type(status) is int else None
            given = given.get("output", given)
        action.failed = bool(action.exit_code)
        action.output = shortened(text_of(given))

    def write(self, action: HostAction, reply: HostReply) -> tuple[str, int]:
        """Return what to print: as for Claude Code, without ``ask``, which Codex does not know."""
        if reply.decision == "ask":
            reply = HostReply("deny", reply.reason, reply.context, reply.message)
        return super().write(action, reply)


HOST = Codex()
