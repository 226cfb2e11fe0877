"""The entry of AgentX's MCP server in the settings of a host: where it is, and how it is added as text.

Only an entry that calls ``python -m agentx mcp`` counts as ours; another one of the same name stays.
"""

import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentx.hosts.host import Host
from agentx.hosts.setup import jsonc
from agentx.storage.errors import AgentXError

NAME = "agentx"
"""Name of the server in the settings."""

_CALL = ("-P", "-m", "agentx", "mcp")
_PROJECTS = "projects"
_SCHEMA = "https://opencode.ai/config.json"


class EntryRefused(AgentXError):
    """A host's settings cannot be read, so no MCP server is added to them."""


class EntryPlace(NamedTuple):
    """Where a host reads its MCP servers.

    Attributes:
        path: The file.
        names: Names that lead to the entry in it.
    """

    path: Path
    names: tuple[str, ...]


def place_of(table: Host, folder: Path, project: Path | None, *, named: bool) -> EntryPlace:
    """Return where a host reads its MCP servers.

    Args:
        table: The host.
        folder: Directory of the user's settings of the host.
        project: The project; ``None`` for all projects of the user.
        named: Whether a variable names that directory.
    """
    names = (*table.server_names, NAME)
    if not table.server_project_file:
        path = (folder if named else folder.parent) / table.server_file
        names = (*(() if project is None else (_PROJECTS, str(project))), *names)
    else:
        path = folder / table.server_file if project is None else project / table.server_project_file
        with_comments = path.with_suffix(".jsonc")
        path = with_comments if table.name == "opencode" and with_comments.exists() else path
    return EntryPlace(Path(os.path.realpath(path)), names)


def entry_of(host: str, workspace: Path | None) -> dict[str, Any]:
    """Return the entry of the server.

    Args:
        host: The host.
        workspace: The workspace to serve; ``None`` for that of the directory in which the host starts it.
    """
    words = [*_CALL, *(["-C", str(workspace)] if workspace is not None else [])]
    if host == "opencode":
        return {"type": "local", "command": [sys.executable, *words]}
    typed = {"type": "stdio"} if host == "claude-code" else {}
    return {**typed, "command": sys.executable, "args": words}


def is_ours(entry: object) -> bool:
    """Return whether an entry calls ``agentx mcp`` as an installation writes it, of whatever place."""
    if not isinstance(entry, dict):
        return False
    command, rest = entry.get("command"), entry.get("args", [])
    words = [
        *(command if isinstance(command, list) else [command]),
        *(rest if isinstance(rest, list) else []),
    ]
    return tuple(words[1:5]) == _CALL and (len(words) == 5 or words[5:6] == ["-C"])  # noqa: PLR2004


def found_in(text: str, place: EntryPlace) -> Any:
    """Return the entry in a host's settings; ``None`` if there is none.

    Raises:
        EntryRefused: The settings cannot be read.
    """
    found: Any = _toml(text, place) if _is_toml(place) else _json(text, place).plain()
    for name in place.names:
        if found is not None and not isinstance(found, dict):
            raise EntryRefused(f"`{name}` in {place.path} is not in an object; correct it first.")
        found = (found or {}).get(name)
    return found


def with_entry(text: str, place: EntryPlace, entry: Mapping[str, Any]) -> str:
    """Return settings with the entry; what else stands in ours stays, and an entry that is not ours too.

    Raises:
        EntryRefused: The settings cannot be read, or nothing can be added to them.
    """
    found = found_in(text, place)
    if found is not None and not is_ours(found):
        return text
    if _is_toml(place):
        return _with_table(text, place, entry, found)
    if not text.strip() and place.names[0] == "mcp":
        text = jsonc.add_member("", jsonc.parse(""), "$schema", _SCHEMA)  # opencode would add it
    if found is None:
        return _with_member(text, place, entry)
    for name, value in entry.items():
        node = _json(text, place).get(*place.names)
        assert node is not None
        own = node.get(name)
        if own is None:
            text = jsonc.add_member(text, node, name, value)
        elif own.plain() != value:
            text = jsonc.replaced(text, own, value)
    return text


def without_entry(text: str, place: EntryPlace) -> str:
    """Return settings without our entry, and without what held nothing else.

    Raises:
        EntryRefused: The settings cannot be read.
    """
    if not is_ours(found_in(text, place)):
        return text
    if _is_toml(place):
        return _without_table(text, place)
    names = place.names
    while len(names) > 1 and names[0] != _PROJECTS:
        above = _json(text, place).get(*names[:-1])
        if above is None or len(above.value) > 1:
            break
        names = names[:-1]
    parent, node = _json(text, place).get(*names[:-1]), _json(text, place).get(*names)
    assert parent is not None
    assert node is not None
    return jsonc.removed(text, parent, node)


# --- JSON -----------------------------------------------------------------------------------------------


def _json(text: str, place: EntryPlace) -> jsonc.JsonNode:
    return jsonc.parse_object(text, place.path, EntryRefused)


def _with_member(text: str, place: EntryPlace, entry: Mapping[str, Any]) -> str:
    root, names = _json(text, place), place.names
    depth = next(deep for deep in range(len(names) - 1, -1, -1) if root.get(*names[:deep]) is not None)
    parent = root.get(*names[:depth])
    assert parent is not None
    value: Mapping[str, Any] = entry
    for name in reversed(names[depth + 1 :]):
        value = {name: value}
    if parent.value is None:
        raise EntryRefused(f"`{names[depth - 1]}` in {place.path} is null; correct it first.")
    return jsonc.add_member(text, parent, names[depth], value)


# --- TOML -----------------------------------------------------------------------------------------------


def _is_toml(place: EntryPlace) -> bool:
    return place.path.suffix == ".toml"


def _toml(text: str, place: EntryPlace) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise EntryRefused(f"{place.path} cannot be read: {error}. Correct it first.") from error


_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_OURS = re.compile(
    r"""^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*["']?agentx["']?[ \t]*\][^\n]*\n?""", re.MULTILINE
)


def _with_table(text: str, place: EntryPlace, entry: Mapping[str, Any], found: Any) -> str:
    lines = {name: f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()}
    if found is None:
        between = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        made = f"{text}{between}[{'.'.join(place.names)}]\n" + "".join(f"{line}\n" for line in lines.values())
        return _checked(made, text, place, {**entry})
    start, end = _table(text, place)
    block = text[start:end]
    for name, line in lines.items():
        if found.get(name) != entry[name]:
            own = re.compile(rf"^{name}[ \t]*=[^\n]*", re.MULTILINE)
            block = own.sub(lambda _, line=line: line, block, count=1)  # type: ignore[misc]
    return _checked(text[:start] + block + text[end:], text, place, {**found, **entry})


def _without_table(text: str, place: EntryPlace) -> str:
    start, end = _table(text, place)
    before, after = text[:start], text[end:]
    if not after:  # the empty line before it was added with it
        before = before.rstrip("\n") + "\n" * bool(before.strip())
    return _checked(before + after, text, place, None)


def _table(text: str, place: EntryPlace) -> tuple[int, int]:
    """Return where our table begins and ends; comments before the next one belong to that."""
    header = _OURS.search(text)
    if header is None:
        raise _unable(place)
    following = _HEADER.search(text, header.end())
    end = following.start() if following else len(text)
    block = text[header.start() : end]
    return header.start(), end - len(block) + len(_COMMENTS.sub("", block))


_COMMENTS = re.compile(r"(?:^[ \t]*#[^\n]*\n(?:[ \t]*\n)*)+\Z", re.MULTILINE)


def _checked(made: str, text: str, place: EntryPlace, entry: Mapping[str, Any] | None) -> str:
    """Return a text if it says what it should, and all else as before."""
    wanted = _toml(text, place)
    servers = wanted.setdefault(place.names[0], {})
    servers.pop(NAME, None)
    if entry is not None:
        servers[NAME] = entry
    try:
        found = tomllib.loads(made.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise _unable(place) from error
    found.setdefault(place.names[0], {})
    if found != wanted:
        raise _unable(place)
    return made


def _unable(place: EntryPlace) -> EntryRefused:
    table = f"[{'.'.join(place.names)}] in {place.path}"
    return EntryRefused(
        f"{table} cannot be changed as it is written; do it by hand (`--no-mcp` leaves it out)."
    )
