"""Every spelling that users, scripts and old histories rely on, in one table: ``tests/spellings.tsv``.

A row is ``kind TAB spelling TAB where``. ``where`` is empty while the spelling exists. A change that takes a spelling
away keeps its row and says there what took its place, or why nothing did; a new spelling gets a new row. So the table
shows what became of each ability since it was first written.

    python -m tests.spellings            show what differs from the table
    python -m tests.spellings --write    add the new ones, and put "?" where a row says nothing about a missing one
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import typer
from pydantic import BaseModel

import agentx
from agentx.cli.app import build
from agentx.cli.commands import COMMANDS, MOVED
from agentx.config import Config
from agentx.mcp.catalogue import TOOLS, schema_of
from agentx.storage.events.facts import FACTS
from agentx.synthesis.memory.conclusions import CONCLUSIONS

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "spellings.tsv"

_VARIABLE = re.compile(r"\bAGENTX_[A-Z0-9_]+\b")
_IMPORT = re.compile(r"^\s*from (agentx[\w.]*) import \(?([\w, ]+)", re.MULTILINE)
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def present() -> dict[tuple[str, str], str]:
    """Return what exists now, each with an empty note."""
    sources = (_commands(), _python(), _imports(), _events(), _settings(Config), _variables(), _tools())
    return {row: "" for rows in sources for row in rows}


def kept() -> dict[tuple[str, str], str]:
    """Return the rows of the table."""
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines()[1:])
    return {(kind, spelling): where for kind, spelling, where in rows}


def differences() -> list[str]:
    """Return a sentence for each row that is not true; an empty list if the table is right."""
    now, table = present(), kept()
    new = [f"{' '.join(row)}: exists, and has no row" for row in now if row not in table]
    gone = [
        f"{' '.join(row)}: is gone, and its row says nothing about where its ability went"
        for row, where in table.items()
        if row not in now and where.strip() in {"", "?"}
    ]
    back = [
        f"{' '.join(row)}: exists, and its row says {where!r}"
        for row, where in table.items()
        if where and row in now
    ]
    return [*new, *gone, *back]


def write() -> None:
    """Bring the table up to date; what is gone and unexplained gets a question mark."""
    now, table = present(), kept() if TABLE.exists() else {}
    rows = {row: table.get(row, "") or ("" if row in now else "?") for row in {**table, **now}}
    lines = ["\t".join((*row, rows[row])) for row in sorted(rows)]
    TABLE.write_text("\n".join(["kind\tspelling\twhere", *lines]) + "\n", "utf-8")


def _commands() -> Iterator[tuple[str, str]]:
    for name in COMMANDS:
        command: Any = typer.main.get_command(build(name.split()))
        for word in name.split():
            command = command.commands[word]
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        yield "command", " ".join(["agentx", name, *(one.name.upper() for one in arguments)])
        for one in command.params:
            if one.param_type_name == "option":
                yield from (
                    ("option", f"agentx {name} {spelled}") for spelled in [*one.opts, *one.secondary_opts]
                )
    yield from (("command", f"agentx {old} (old spelling)") for old in MOVED)


def _python() -> Iterator[tuple[str, str]]:
    for name in agentx.__all__:
        found = getattr(agentx, name)
        yield from _called(f"agentx.{name}", found)
        for inner, member in inspect.getmembers_static(found) if inspect.isclass(found) else ():
            if not inner.startswith("_"):
                wrapped = isinstance(member, staticmethod | classmethod)
                yield from _called(f"agentx.{name}.{inner}", member.__func__ if wrapped else member)


def _called(name: str, found: Any) -> Iterator[tuple[str, str]]:
    """Yield a name, and each parameter that it can be called with."""
    yield "python", name
    if inspect.isfunction(found) or (inspect.isclass(found) and not issubclass(found, Exception)):
        parameters = inspect.signature(found).parameters
        yield from (("python", f"{name}({one})") for one in parameters if one not in {"self", "cls"})


def _imports() -> Iterator[tuple[str, str]]:
    """Yield what the examples of README and docs import."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in _BLOCK.findall(page.read_text("utf-8")):
            for module, names in _IMPORT.findall(block):
                yield from (
                    ("import", f"{module}.{name.split()[0]}") for name in names.split(",") if name.strip()
                )


def _events() -> Iterator[tuple[str, str]]:
    for name, kind in (FACTS | CONCLUSIONS).items():
        yield "event", name
        yield from (("event", f"{name}.{field.encode_name}") for field in msgspec.structs.fields(kind))


def _settings(section: type[BaseModel], above: str = "") -> Iterator[tuple[str, str]]:
    for name, field in section.model_fields.items():
        yield "setting", f"{above}{name}"
        for inner in _sections(field.annotation):
            yield from _settings(inner, f"{above}{name}.")


def _sections(kind: Any) -> Iterator[type[BaseModel]]:
    """Yield the sections in a setting's type, also those of a list or of names given by the user."""
    if inspect.isclass(kind) and not get_args(kind) and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from _sections(inner)


def _variables() -> Iterator[tuple[str, str]]:
    for folder in ("agentx", "storage", "synthesis"):
        for module in (ROOT / folder).rglob("*.py"):
            yield from (("variable", name) for name in _VARIABLE.findall(module.read_text("utf-8")))


def _tools() -> Iterator[tuple[str, str]]:
    for name, tool in TOOLS.items():
        yield "mcp", name
        if tool.arguments:
            yield from (
                ("mcp", f"{name}({argument})") for argument in schema_of(tool.arguments)["properties"]
            )


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    print("\n".join(differences()) or "the table is right")
