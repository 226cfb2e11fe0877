"""What a tool call would do to the artifacts, read from its arguments: of our own tools, and of those of other agents.

Agents name their arguments alike: a path, a content, an old and a new text. What cannot be told from them changes nothing
here, and is left to whoever runs the tool.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentx.engine import Engine
from agentx.staging import Content
from agentx.storage.paths import PathRefused, check_path
from agentx.storage.text import decoded, encodable

_PATH = ("path", "file_path", "notebook_path", "filename", "file")
_TARGET = ("to", "new_path", "destination", "target")
_WHOLE = ("content", "text", "file_text", "new_source")
_OLD = ("old", "old_string", "old_str")
_NEW = ("new", "new_string", "new_str")
_REMOVES = ("delete", "remove", "unlink")
_COMMAND = ("command", "cmd", "script", "query")

_FIELD_CHARACTERS = 2_000
_PATH_CHARACTERS = 4_096


def paths_of(engine: Engine, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The artifacts that a call names, relative to the artifacts; what lies elsewhere is none."""
    named = (arguments.get(name) for name in (*_PATH, *_TARGET))
    return tuple(path for value in named if (path := _artifact(engine, value)))


def command_of(arguments: Mapping[str, Any]) -> str:
    """The command that a call runs; empty where it runs none."""
    value = arguments.get("command") or arguments.get("cmd")
    return value[:_FIELD_CHARACTERS] if isinstance(value, str) else ""


def words_of(arguments: Mapping[str, Any]) -> str:
    """What the arguments of a call say of what it does: its command, its question, its paths; not what it writes."""
    named = (arguments.get(name) for name in (*_COMMAND, *_PATH, *_TARGET))
    return " ".join(value[:_FIELD_CHARACTERS] for value in named if isinstance(value, str))


def planned(engine: Engine, tool: str, arguments: Mapping[str, Any]) -> dict[str, Content | None]:
    """The files as a call would leave them; ``None`` for one that it would delete or move away."""
    path = next((found for name in _PATH if (found := _artifact(engine, arguments.get(name)))), "")
    if not path:
        return {}
    if any(word in tool.casefold() for word in _REMOVES):
        return {path: None}
    if target := next((found for name in _TARGET if (found := _artifact(engine, arguments.get(name)))), ""):
        return {target: Content(_bytes(engine, path)), path: None}
    whole = _text(arguments, _WHOLE)
    if whole is not None:
        return {path: Content(encodable(whole).encode())}
    return _edited(engine, path, arguments)


def _edited(engine: Engine, path: str, arguments: Mapping[str, Any]) -> dict[str, Content | None]:
    edits = list(_edits(arguments))
    if not edits:
        return {}
    before = decoded(_bytes(engine, path))
    if before is None:
        return {}
    for old, new in edits:
        before = before.replace(old, new, 1) if old in before else f"{before}\n{new}"
    return {path: Content(encodable(before).encode())}


def _edits(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    several = arguments.get("edits")
    for one in several if isinstance(several, list) else [arguments]:
        new = _text(one, _NEW) if isinstance(one, Mapping) else None
        if new is not None:
            yield _text(one, _OLD) or "", new


def _text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def _artifact(engine: Engine, value: object) -> str:
    """The path of an artifact as the record has it; empty for what is none."""
    if not isinstance(value, str) or not value.strip() or len(value) > _PATH_CHARACTERS:
        return ""
    root = engine.write_path.artifacts.root
    place = Path(encodable(value).replace("\0", ""))
    if place.is_absolute():
        if not place.is_relative_to(root):
            return ""
        place = place.relative_to(root)
    try:
        return check_path(place.as_posix())
    except PathRefused:
        return ""


def _bytes(engine: Engine, path: str) -> bytes:
    """What a file holds now; nothing where there is none, or where it cannot be read."""
    try:
        target = engine.write_path.artifacts.locate(path, follow=True)
        return target.read_bytes() if target.is_file() else b""
    except (OSError, PathRefused):
        return b""
