"""Gemini CLI: its hook events, tools and answers.

After docs/hooks/reference.md of google-gemini/gemini-cli, version 0.26 and later. Standard output must be one
JSON object and nothing else, so that also "go on" is one.
"""

import json
import re

from agentx.hosts.action import (
    AFTER,
    BEFORE,
    COMPACT,
    EDIT,
    END,
    PROMPT,
    READ,
    SHELL,
    START,
    STOP,
    WEB,
    WRITE,
    HostAction,
    HostReply,
    shortened,
    text_of,
)
from agentx.hosts.host import CHANGE, NAMES, PATH, TIMEOUT_S, Host

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_EVENTS = {
    "SessionStart": START,
    "BeforeAgent": PROMPT,
    "BeforeTool": BEFORE,
    "AfterTool": AFTER,
    "AfterAgent": STOP,
    "PreCompress": COMPACT,
    "SessionEnd": END,
}

_READING = ("list_directory", "glob", "grep_search", "search_file_content", "read_many_files", "write_todos")

_TOOLS = {
    "run_shell_command": (SHELL, {"directory": "cwd", "dir_path": "cwd"}),
    "read_file": (READ, PATH),
    **dict.fromkeys(_READING, (READ, NAMES)),
    "write_file": (WRITE, PATH),
    "replace": (EDIT, CHANGE),
    **dict.fromkeys(("web_fetch", "google_web_search"), (WEB, NAMES)),
}


_STATUS = re.compile(r"^Exit Code: (\d+)$", re.MULTILINE)
_AROUND = re.compile(
    r"\A(?:Command: .*\n)?(?:Directory: .*\n)?(?:Output|Stdout): "
    r"|\n(?:Exit Code|Error|Signal|Background PIDs|Process Group PGID): .*(?=(?:\n[A-Z][A-Za-z ]+: .*)*\Z)"
)
"""What the host writes around the output of a command."""


class GeminiCli(Host):
    """The table of Gemini CLI."""

    name = "gemini-cli"
    version = "0.26"
    events = _EVENTS
    tools = _TOOLS
    asks = False
    mute = (BEFORE,)
    project_variable = "GEMINI_PROJECT_DIR"
    folder = ".gemini", ""
    user_file = "settings.json"
    project_file = ".gemini/settings.json"
    server_file = "settings.json"
    server_project_file = ".gemini/settings.json"
    enable = (
        "Hooks are on from version 0.26 of Gemini CLI on (before: `tools.enableHooks`). It warns of new "
        "hooks of a project; `/hooks panel` lists them."
    )

    def entry(self, event: str, command: str) -> "dict[str, Any]":
        """Return the entry of an event; its time is in milliseconds."""
        del event
        hook = {"name": "agentx", "type": "command", "command": command, "timeout": TIMEOUT_S * 1000}
        return {"matcher": "*", "hooks": [hook]}

    def read(self, payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> HostAction:
        """Return the action; the answer of an agent is in ``prompt_response``."""
        action = super().read(payload, environ)
        if action.moment == STOP:
            action.text = shortened(text_of(payload.get("prompt_response")))
        return action

    def take_result(self, action: HostAction, payload: "Mapping[str, Any]") -> None:
        """Set the output and the exit status, which a command's output names if it is not 0."""
        given = payload.get("tool_response")
        if not isinstance(given, dict):
            given = {"llmContent": given}
        output = shortened(text_of(given.get("llmContent")))
        action.failed = bool(given.get("error"))
        if action.kind == SHELL:
            found = _STATUS.search(output)
            action.exit_code = int(found[1]) if found else None if action.failed else 0
            output = _AROUND.sub("", output)
        action.output = "" if action.kind == READ else output

    def write(self, action: HostAction, reply: HostReply) -> tuple[str, int]:
        """Return one JSON object in Gemini CLI's format."""
        answer: dict[str, Any] = {}
        if (action.moment == BEFORE and reply.decision in ("ask", "deny")) or (
            action.moment == STOP and reply.decision == "go_on"
        ):
            answer = {"decision": "deny", "reason": reply.reason}
        if reply.context and action.moment in (START, PROMPT, AFTER):
            # Nothing in it may end the element in which the host puts it above the user's words.
            text = reply.context.replace("hook_context>", "hook_context&gt;")
            answer["hookSpecificOutput"] = {"hookEventName": action.event, "additionalContext": text}
        if reply.message:
            answer["systemMessage"] = reply.message
        return json.dumps(answer), 0


HOST = GeminiCli()
