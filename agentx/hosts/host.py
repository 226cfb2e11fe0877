"""A host as a table: its events and tools, how it names their fields, and what it accepts as an answer."""

import json
import re

from agentx.hosts.action import (
    AFTER,
    BEFORE,
    EDIT,
    MOST_PROMPT,
    PROMPT,
    SHELL,
    START,
    STOP,
    SUBSTOP,
    TOOL,
    WRITE,
    HostAction,
    HostReply,
    shortened,
    text_of,
)

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HOSTS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "cursor": "Cursor",
    "opencode": "opencode",
}
"""The hosts, each with its name for people."""

TIMEOUT_S = 10
"""How long a host waits for a hook at most; the hook itself gives up earlier."""

_PARENT = re.compile(r"parent_?(?:[a-z]+_?)?id", re.IGNORECASE)
"""Fields of a payload that name whoever started the session; a session of the user's has none."""

_TEXTS = ("content", "old", "new", "patch", "command")


class Host:
    """What is the same for all hosts that are told apart by a table.

    Attributes:
        name: Its name on the command line.
        version: The version whose documentation the table follows.
        events: The moment of each event; others are answered and not recorded.
        tools: Kind of each tool by its name, and of its arguments our name by theirs.
        asks: Whether a hook can have it ask the user about a call.
        mute: Moments at which it shows the model no text of a hook.
        project_variable: Variable with the directory of the session's project; empty if it has none.
        preamble: Variables that name a file which the host runs before its agent's commands.
        folder: Directory of its settings in the user's home, and the variable that names another one.
        user_file: File with the user's hooks, in that directory.
        project_file: File with a project's hooks, in the project.
        server_file: File with the user's MCP servers, in that directory.
        server_project_file: File with a project's MCP servers; empty if the user's file has them.
        server_names: Names that lead to the MCP servers in these files.
        enable: What the user must still do in it once the hooks are there.
    """

    name: str
    version: str
    events: "Mapping[str, str]"
    tools: "Mapping[str, tuple[str, Mapping[str, str]]]"
    asks = True
    mute: "tuple[str, ...]" = ()
    project_variable = ""
    preamble: "tuple[str, ...]" = ()
    folder: "tuple[str, str]"
    user_file: str
    project_file: str
    server_file: str
    server_project_file: str
    server_names: "tuple[str, ...]" = ("mcpServers",)
    enable: str

    def entry(self, event: str, command: str) -> "dict[str, Any]":
        """Return the entry of an event in the host's settings.

        Args:
            event: The event.
            command: The command line of the hook.
        """
        del event
        return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}

    def read(self, payload: "Mapping[str, Any]", environ: "Mapping[str, str]") -> HostAction:
        """Return the action that a payload reports; its moment is empty if it is of no use here.

        This reads the fields that Claude Code introduced and others took over.
        """
        event = _text(payload, "hook_event_name")
        moment = self.events.get(event, "")
        action = HostAction(
            host=self.name,
            event=event,
            moment=moment,
            session=_text(payload, "session_id") or _text(payload, "conversation_id"),
            agent=_text(payload, "agent_id"),
            cwd=_text(payload, "cwd") or environ.get("PWD", ""),
            source=_text(payload, "source") or _text(payload, "reason") or _text(payload, "trigger"),
            transcript=_text(payload, "transcript_path"),
            model=_text(payload, "model"),
            stopping=payload.get("stop_hook_active") is True,
            asks=self.asks,
            mute=moment in self.mute,
        )
        _take_parent(action, payload)
        if moment == PROMPT:
            action.text = shortened(_text(payload, "prompt"), MOST_PROMPT)
        elif moment in (STOP, SUBSTOP):
            action.text = shortened(_text(payload, "last_assistant_message"))
        elif moment in (BEFORE, AFTER):
            self.take_tool(action, _text(payload, "tool_name"), payload.get("tool_input"))
            action.call = _text(payload, "tool_use_id")
        if moment == AFTER:
            self.take_result(action, payload)
        return action

    def take_tool(self, action: HostAction, tool: str, given: object) -> None:
        """Set the tool of an action, and its arguments by our names."""
        action.tool = tool
        if isinstance(given, str):
            given = as_object(given)
        found: dict[str, Any] = given if isinstance(given, dict) else {}
        action.kind, names = self.tools.get(tool, (TOOL, {}))
        action.arguments = {names.get(name, name): value for name, value in found.items()}
        for name in _TEXTS:
            if isinstance(action.arguments.get(name), str):
                action.arguments[name] = shortened(action.arguments[name])

    def take_result(self, action: HostAction, payload: "Mapping[str, Any]") -> None:
        """Set what the tool returned."""
        action.output = shortened(text_of(payload.get("tool_response")))

    def write(self, action: HostAction, reply: HostReply) -> tuple[str, int]:
        """Return what to print for the host, and the exit status.

        This is the format that Claude Code introduced and others took over.
        """
        answer: dict[str, Any] = {}
        more: dict[str, Any] = {}
        if action.moment == BEFORE and reply.decision in ("ask", "deny"):
            more = {"permissionDecision": reply.decision, "permissionDecisionReason": reply.reason}
        if action.moment in (STOP, SUBSTOP) and reply.decision == "go_on":
            answer = {"decision": "block", "reason": reply.reason}
        if reply.context and action.moment in (START, PROMPT, BEFORE, AFTER):
            more["additionalContext"] = reply.context
        if reply.message:
            answer["systemMessage"] = reply.message
        if more:
            answer["hookSpecificOutput"] = {"hookEventName": action.event, **more}
        return (json.dumps(answer) if answer else ""), 0

    def mark(self, action: HostAction, environ: "Mapping[str, str]") -> None:
        """Have the host mark the commands of its agent, so that they cannot act as the user; if it can.

        At a session's start, some hosts name a file that they run before each of the agent's commands.

        Raises:
            OSError: The file cannot be written.
        """
        place = next((found for name in self.preamble if (found := environ.get(name))), "")
        if action.moment == START and place:
            with open(place, "a", encoding="utf-8") as file:
                file.write(MARK.format(host=self.name))


MARK = "export AGENTX_RUN={host}\nulimit -x 1099511627776 2>/dev/null || true\n"
"""Shell commands after which a shell and all that it starts count as an agent's, for AgentX and its server.

The variable tells the command line; the limit of file locks, which Linux does not apply, tells the server,
and only the administrator can raise it again. See :mod:`agentx.server.peers`.
"""


def load(name: str) -> Host:
    """Return a host by its name; only its own module is loaded.

    Raises:
        KeyError: There is none of that name.
    """
    if name not in HOSTS:
        raise KeyError(name)
    module = f"agentx.hosts.{name.replace('-', '_')}"
    found: Host = __import__(module, fromlist=["HOST"]).HOST
    return found


def _text(payload: "Mapping[str, Any]", name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _take_parent(action: HostAction, payload: "Mapping[str, Any]") -> None:
    """Make the session that an agent started one of a subagent: its id below that of its parent."""
    if action.agent:
        return
    parents = (_text(payload, name) for name in payload if _PARENT.fullmatch(name))
    parent = next((one for one in parents if one and one != action.session), "")
    started_by = _text(payload, "thread_source")
    if parent:
        action.agent, action.session = action.session or "subagent", parent
    elif started_by not in ("", "user") or payload.get("isSidechain") is True:
        action.agent = action.session or "subagent"


def as_object(text: str) -> "dict[str, Any]":
    """Return the JSON object in a text; an empty one if there is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


NAMES: "Mapping[str, str]" = {}
PATH = {"file_path": "path", "notebook_path": "path", "absolute_path": "path", "filePath": "path"}
CHANGE = {
    **PATH,
    "old_string": "old",
    "new_string": "new",
    "new_source": "new",
    "oldString": "old",
    "newString": "new",
}
"""Names of arguments that most hosts share, with ours."""

SHARED_TOOLS: "dict[str, tuple[str, Mapping[str, str]]]" = {
    "Bash": (SHELL, NAMES),
    "Write": (WRITE, PATH),
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit"), (EDIT, CHANGE)),
}
