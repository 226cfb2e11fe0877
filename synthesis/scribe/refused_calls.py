"""Recognise a call that the user refused before: the same one, or one with the same effect in other words.

Commands are compared by what they do (:mod:`agentx.synthesis.shell.repeated_commands`), writes by their path
and content, other calls by tool and main argument.
"""

import difflib
import json
import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import Any

from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.memory.items import RefusedCall
from agentx.synthesis.shell.repeated_commands import removed_by, repeats_command

NEAR = 0.8
"""Minimum likeness of the contents of two writes of one file."""

_KEPT = 1_500
_MOST = 6
_COMPARED = 500
_COMMANDS = ("command", "cmd", "commandline")
_PATHS = ("path", "filepath", "filename", "notebookpath", "file", "targetfile", "absolutepath")
_CONTENTS = ("content", "contents", "text", "filetext", "newsource", "newstring", "newstr", "new", "patch")
_MAIN = ("pattern", "query", "url", "uri", "title", "name", "to", "id", "message", "question", "prompt")
_REMOVES = re.compile(r"delete|remove|unlink", re.IGNORECASE)


def refused_call(tool: str, arguments: Mapping[str, Any], command: str = "") -> RefusedCall:
    """Return what is kept of a refused call.

    >>> refused_call("Bash", {"command": ["rm", "-r", "a b"]}).arguments
    {'command': "rm -r 'a b'"}
    """
    given = _plain(arguments)
    if command := command or _command(given):
        return RefusedCall(tool, {"command": _cut(command)})
    names = [name for name in (*_PATHS, *_MAIN, *_CONTENTS) if name in given]
    others = [name for name in sorted(given) if name not in names]
    kept = {name: _cut(given[name]) for name in (*names, *others)[:_MOST]}
    return RefusedCall(tool, {("path" if name in _PATHS else name): value for name, value in kept.items()})


def repeats_call(refused: RefusedCall, tool: str, arguments: Mapping[str, Any], root: str = "") -> bool:
    """Return whether a call does again what a refused one would have done.

    Args:
        refused: The refused call.
        tool: The tool that is about to be called.
        arguments: Its arguments.
        root: The directory of the artifacts; paths below it are relative ones.

    >>> refused = refused_call("run_command", {"command": "rm -rf build"})
    >>> repeats_call(refused, "delete_file", {"path": "./build"})
    True
    """
    given = _plain(arguments)
    former, command = refused.arguments.get("command", ""), _command(given)
    path = _path(next((given[name] for name in _PATHS if name in given), ""), root)
    if former and command:
        return repeats_command(former, _cut(command), root)
    if former or command:
        return _removes_again(refused, tool, command, path, root)
    same_tool = refused.tool.casefold() == tool.casefold()
    if "path" in refused.arguments:
        if _path(refused.arguments["path"], root) != path:
            return False
        contents = [refused.arguments[name] for name in _CONTENTS if name in refused.arguments]
        written = [_cut(given[name]) for name in _CONTENTS if name in given]
        return _alike(contents[0], written[0]) if contents and written else same_tool
    now = refused_call(tool, arguments).arguments
    main = next((name for name in _MAIN if name in refused.arguments), "")
    if not same_tool:
        return False
    if main:
        return _normal(refused.arguments[main]) == _normal(now.get(main, ""))
    return refused.arguments == now


def _removes_again(refused: RefusedCall, tool: str, command: str, path: str, root: str) -> bool:
    """Return whether one call removes by a tool what the other removes by a command."""
    former = refused.arguments.get("command", "")
    removed = {_path(one, root) for one in removed_by(former or command)}
    other = path if former else _path(refused.arguments.get("path", ""), root)
    return bool(_REMOVES.search(tool if former else refused.tool)) and other in removed


def _alike(one: str, other: str) -> bool:
    first, second = (" ".join(text[:_COMPARED].split()) for text in (one, other))
    return first == second or difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= NEAR


def _plain(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {re.sub(r"[_-]", "", str(name)).casefold(): _as_text(value) for name, value in arguments.items()}


def _as_text(value: object) -> str:
    """Return an argument as text; a list of words as a command line."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        shell = len(value) > 2 and re.fullmatch(r"-\w*c", value[1])  # noqa: PLR2004 - ["bash", "-lc", "…"]
        return str(value[2]) if shell else shlex.join(value)
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (ValueError, RecursionError):  # it contains itself, or is nested too deeply
        return ""


def _command(given: Mapping[str, str]) -> str:
    return next((given[name] for name in _COMMANDS if given.get(name)), "")


def _path(value: str, root: str) -> str:
    inside = value.removeprefix(f"{root}/") if root else value
    return posixpath.normpath(inside) if inside else ""


def _normal(text: str) -> str:
    return one_line(text).casefold().rstrip("/.")


def _cut(text: str) -> str:
    """Return a text without secrets, cut; more is read than kept, so that no secret is cut in half."""
    return clean(text[: 2 * _KEPT])[:_KEPT]
