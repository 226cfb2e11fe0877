"""Claude Code: its hook events, tools and answers.

After https://code.claude.com/docs/en/hooks, version 2.1. HTTP hooks are not used: they do not serve
``SessionStart``, need a token in the settings or the environment, and decide nothing without a server.
"""

import re

from agentx.hosts.action import (
    AFTER,
    BEFORE,
    COMPACT,
    COMPACTED,
    END,
    PROMPT,
    READ,
    SHELL,
    START,
    STOP,
    SUBSTOP,
    SUMMARY,
    WEB,
    HostAction,
    shortened,
    text_of,
)
from agentx.hosts.host import NAMES, PATH, SHARED_TOOLS, Host

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_STATUS = re.compile(r"\A(?:Error: )?Exit code (\d+)\b")


_EVENTS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreToolUse": BEFORE,
    "PostToolUse": AFTER,
    "PostToolUseFailure": AFTER,
    "Stop": STOP,
    "SubagentStop": SUBSTOP,
    "PreCompact": COMPACT,
    "PostCompact": COMPACTED,
    "SessionEnd": END,
}

_TOOLS = {
    **SHARED_TOOLS,
    "PowerShell": (SHELL, NAMES),
    "Read": (READ, PATH),
    **dict.fromkeys(("Glob", "Grep", "LS", "NotebookRead", "TodoWrite"), (READ, NAMES)),
    **dict.fromkeys(("WebFetch", "WebSearch"), (WEB, NAMES)),
}


class ClaudeCode(Host):
    """The table of Claude Code."""

    name = "claude-code"
    version = "2.1"
    events = _EVENTS
    tools = _TOOLS
    folder = ".claude", "CLAUDE_CONFIG_DIR"
    project_variable = "CLAUDE_PROJECT_DIR"
    preamble = ("CLAUDE_ENV_FILE",)
    user_file = "settings.json"
    project_file = ".claude/settings.local.json"
    server_file = ".claude.json"  # beside the directory, unless the variable names that
    server_project_file = ""  # `.mcp.json` is for what a team commits
    enable = "Claude Code reads its settings at its next start; `/hooks` lists them."

    def entry(self, event: str, command: str) -> "dict[str, Any]":
        """Return the entry of an event; those of tools are for all tools."""
        found = super().entry(event, command)
        return {"matcher": "*", **found} if "Tool" in event else found

    def read(self, payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> HostAction:
        """Return the action; what sums up a compaction comes as a subagent without a type."""
        action = super().read(payload, environ)
        if action.moment == SUBSTOP and payload.get("agent_type") == "":
            action.source = SUMMARY
        return action

    def take_result(self, action: HostAction, payload: "Mapping[str, Any]") -> None:
        """Set the output and the exit status of a command; a failed tool has an event of its own."""
        given = payload.get("tool_response")
        took = payload.get("duration_ms")
        action.duration_ms = took if isinstance(took, int) else 0
        action.failed = action.event == "PostToolUseFailure"
        if action.failed:
            action.output = shortened(text_of(payload.get("error")))
            found = _STATUS.match(action.output)
            action.exit_code = int(found[1]) if found else None
            return
        if action.kind == SHELL and isinstance(given, dict):
            parts = (text_of(given.get(name)).strip("\n") for name in ("stdout", "stderr"))
            action.output = shortened("\n".join(part for part in parts if part))
            action.exit_code = None if given.get("interrupted") or given.get("backgroundTaskId") else 0
        elif action.kind == READ:
            action.output = ""  # the file is there
        else:
            action.output = shortened(text_of(given))


HOST = ClaudeCode()
