"""opencode: a plugin in JavaScript hands each event to this program, and acts on its answer.

After packages/plugin/src/index.ts of anomalyco/opencode, version 1. The payloads are those of our own plugin
(``opencode_plugin.js``): the field ``hook_event_name`` has opencode's name of the hook or event.
"""

import json
import re

from agentx.hosts.action import (
    AFTER,
    BEFORE,
    COMPACT,
    COMPACTED,
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
from agentx.hosts.host import CHANGE, NAMES, PATH, Host

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_EVENTS = {
    "session.created": START,
    "chat.message": PROMPT,
    "tool.execute.before": BEFORE,
    "tool.execute.after": AFTER,
    "session.idle": STOP,
    "experimental.session.compacting": COMPACT,
    "session.compacted": COMPACTED,
    "session.deleted": END,
}

_TOOLS = {
    "bash": (SHELL, {"workdir": "cwd"}),
    "read": (READ, PATH),
    **dict.fromkeys(("glob", "grep", "list", "todoread", "todowrite", "lsp", "skill"), (READ, NAMES)),
    "write": (WRITE, PATH),
    **dict.fromkeys(("edit", "multiedit"), (EDIT, CHANGE)),
    **dict.fromkeys(("patch", "apply_patch"), (EDIT, {"patchText": "patch"})),
    **dict.fromkeys(("webfetch", "websearch"), (WEB, NAMES)),
}


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
"""A prompt as ``opencode run`` hands it on if it has a blank: quotes in it are escaped."""


class OpenCode(Host):
    """The table of opencode."""

    name = "opencode"
    version = "1"
    events = _EVENTS
    tools = _TOOLS
    asks = False
    folder = ".config/opencode", "OPENCODE_CONFIG_DIR"
    user_file = "plugins/agentx.js"
    project_file = ".opencode/plugins/agentx.js"
    server_file = "opencode.json"
    server_project_file = "opencode.json"
    server_names = ("mcp",)
    enable = "opencode loads the plugin at its next start."

    def read(self, payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> HostAction:
        """Return the action; ``opencode run "..."`` puts a prompt with blanks in quotes of its own."""
        action = super().read(payload, environ)
        found = _QUOTED.fullmatch(action.text) if action.moment == PROMPT else None
        if found and " " in found[1]:
            action.text = found[1].replace('\\"', '"')
        return action

    def take_result(self, action: HostAction, payload: "Mapping[str, Any]") -> None:
        """Set the output, and the exit status from the metadata of a command."""
        about = payload.get("metadata")
        status = about.get("exit") if isinstance(about, dict) else None
        action.exit_code = status if type(status) is int else None
        action.output = "" if action.kind == READ else shortened(text_of(payload.get("tool_response")))

    def write(self, action: HostAction, reply: HostReply) -> tuple[str, int]:
        """Return one JSON object for the plugin."""
        del action
        answer = {name: value for name in reply.__slots__ if (value := getattr(reply, name))}
        return json.dumps(answer), 0


HOST = OpenCode()
