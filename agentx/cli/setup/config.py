"""``agentx config``: the settings of a workspace, from ``agentx.toml`` or by default."""

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, table
from agentx.config import FILE, read_config
from agentx.core.layout import find_root
from agentx.storage.errors import UsageError
from agentx.storage.text import encodable, plain
from agentx.trust.trust import set_value

_TABLES = ("director.acts.",)
"""Sections whose parts the user names."""

Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Section and key, such as model.name.")
]


def show(terminal: Terminal) -> None:
    """Show every setting, its value, and whether agentx.toml sets it."""
    root, values = _settings(terminal)
    if terminal.json:
        terminal.document(read_config(root).model_dump())
        return
    changed = dict(flat(tomllib.loads((root / FILE).read_text("utf-8")))) if (root / FILE).exists() else {}
    rows = [
        (
            Text(name, "cyan"),
            Text(plain(_text(value)), "" if name in changed else "dim"),
            "set" if name in changed else "",
        )
        for name, value in values.items()
    ]
    terminal.show(table("setting", "value", f"in {FILE}", rows=rows))


def get(terminal: Terminal, name: Name) -> None:
    """Print one setting."""
    _, values = _settings(terminal)
    _require(name, values)
    terminal.result(values[name], plain(_text(values[name])))


def set_one(
    terminal: Terminal,
    name: Name,
    value: Annotated[
        str,
        typer.Argument(metavar="VALUE", show_default=False, help="A TOML value; a bare word is a string."),
    ],
) -> None:
    """Change one setting in agentx.toml; the rest of the file stays, and the change is recorded."""
    root, values = _settings(terminal)
    if not name.startswith(_TABLES):
        _require(name, values)
    set_value(root, terminal.settings, name, encodable(value))
    with opened(terminal):
        pass  # closing records the changed file
    _, values = _settings(terminal)
    terminal.result({name: values[name]}, plain(f"{name} = {_text(values[name])}"))


def _settings(terminal: Terminal) -> tuple[Path, dict[str, Any]]:
    root = find_root(terminal.directory)
    return root, dict(flat(read_config(root).model_dump()))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings by their full names.

    >>> dict(flat({"model": {"name": "openai/gpt-4o-mini"}}))
    {'model.name': 'openai/gpt-4o-mini'}
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _require(name: str, values: Mapping[str, Any]) -> None:
    """Refuse a name that is not a setting, with the nearest one that is."""
    if name not in values:
        last = {known.rpartition(".")[2]: known for known in values}
        near = get_close_matches(name, values, n=1)
        near = near or [last[key] for key in get_close_matches(name, last, n=1)]
        hint = f"Do you mean {near[0]}?" if near else "See `agentx config`."
        raise UsageError(f"Unknown setting {name!r}. {hint}")
