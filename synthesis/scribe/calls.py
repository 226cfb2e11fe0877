"""A short name for a tool call, as a user would describe it."""

from collections.abc import Mapping
from typing import Any

from agentx.storage.text import clip, one_line
from agentx.synthesis.memory.items import Scope
from agentx.synthesis.scribe.harness import is_plan_tool, title_of

MAX_NAME = 160

_COMMANDS = ("command", "cmd", "script", "code")
_PATHS = ("path", "file_path", "filename", "notebook_path", "file")
_OTHERS = ("pattern", "query", "url", "title", "name", "prompt", "description", "message", "question")


def call_name(tool: str, arguments: Mapping[str, Any], command: str = "") -> str:
    """Return one line that describes what a call would do.

    >>> call_name("run_command", {"command": "git push --force"})
    'run_command `git push --force`'
    >>> call_name("ExitPlanMode", {"plan": "# Move the queue"})
    'the plan “Move the queue”'
    """
    if is_plan_tool(tool):
        title = title_of(_text(arguments, ("plan",)))
        return f"the plan “{title}”" if title else "the plan"
    if line := command or _text(arguments, _COMMANDS):
        return f"{tool} `{_cut(line)}`"
    if path := _text(arguments, _PATHS):
        return f"{tool} {_cut(path)}"
    if other := _text(arguments, _OTHERS):
        return f"{tool} “{_cut(other)}”"
    return tool if tool.strip(" ?") else "a tool call"


def call_scope(tool: str, arguments: Mapping[str, Any]) -> Scope:
    """Return the scope of a call: its tool, and its file if it names one."""
    path = _text(arguments, _PATHS)
    return Scope(tools=(tool,), paths=(path,) if path else ())


def _text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    found = (arguments.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")


def _cut(text: str) -> str:
    return clip(one_line(text[: 4 * MAX_NAME]), MAX_NAME)
