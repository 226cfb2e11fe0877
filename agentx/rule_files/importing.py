"""Import files of rules: each statement becomes a proposal, with its file and line."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from agentx.engine.engine import Engine
from agentx.rule_files.places import RulePlace, files_of, read_text
from agentx.rule_files.proposing import offered, propose
from agentx.storage.errors import UsageError
from agentx.synthesis.memory.items import MemoryItem, Scope, would_change
from agentx.synthesis.rule_files import block
from agentx.synthesis.rule_files.differences import Found, differences
from agentx.synthesis.rule_files.front_matter import read_front_matter
from agentx.synthesis.rule_files.hidden import Hidden
from agentx.synthesis.rule_files.statements import RuleFile, split

MAX_STATEMENTS = 500
"""Maximum number of statements that are read from a file."""


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one file.

    Attributes:
        path: Its name in the record.
        statements: Number of rules that it states.
        left: Number of its sentences and items that demand nothing.
        hidden: Places that its reader does not see; no proposal comes from them.
        names: Files that it names with ``@`` and that were not read.
        refused: Why it was not read; empty if it was.
    """

    path: str
    statements: int = 0
    left: int = 0
    hidden: tuple[Hidden, ...] = ()
    names: tuple[str, ...] = ()
    refused: str = ""


class ImportedRules(msgspec.Struct, frozen=True):
    """What an import proposes.

    Attributes:
        files: The files.
        proposals: The new proposals.
    """

    files: tuple[ImportedFile, ...]
    proposals: tuple[MemoryItem, ...]


def import_rules(engine: Engine, paths: Sequence[Path], actor: str) -> ImportedRules:
    """Read files of rules and propose what memory does not know yet.

    A second import of the same file proposes nothing; of a changed file, what changed.

    Args:
        engine: The workspace.
        paths: Files, and directories of them; none for the usual ones of the project.
        actor: Who imports.

    Raises:
        RuleFileRefused: A file does not exist, or is the only one and cannot be read.
    """
    engine.write_path.require_writable()
    places = list(files_of(engine, paths))
    files: list[ImportedFile] = []
    proposals: list[MemoryItem] = []
    for place in places:
        try:
            text = read_text(place.path)
            file, new = _import(engine, place, text, actor)
        except UsageError as error:
            if len(places) == 1:
                raise
            files.append(ImportedFile(path=place.name, refused=str(error)))
            continue
        files.append(file)
        proposals += new
    return ImportedRules(tuple(files), tuple(proposals))


def _import(engine: Engine, place: RulePlace, text: str, actor: str) -> tuple[ImportedFile, list[MemoryItem]]:
    front = read_front_matter(block.without(text))
    read = split(front.text)
    found = _found(read, place, front.globs)
    with engine.write_path.exclusive():
        items = engine.log.state.items
        former = [item for item in offered(list(items.values()), place.name) if not would_change(item)]
        made = differences(found, former, items)
        new = propose(engine, place.name, text, made, how="imported", actor=actor)
    file = ImportedFile(
        path=place.name, statements=len(found), left=read.left, hidden=read.hidden, names=read.imports
    )
    return file, new


def _found(read: RuleFile, place: RulePlace, globs: tuple[str, ...]) -> list[Found]:
    folder = place.folder
    paths = tuple(f"{folder}{glob.removeprefix('/')}" for glob in globs) or (
        (f"{folder}**",) if folder else ()
    )
    return [
        Found(
            text=one.text, kind=one.kind, scope=Scope(paths=paths),
            where=_where(place.name, one.line, one.heading),
            start=one.start, end=one.end, quote=one.text,
        )
        for one in read.statements[:MAX_STATEMENTS]
    ]  # fmt: skip


def _where(name: str, line: int, heading: str) -> str:
    return f"{name}:{line}" + (f", under “{heading[:60]}”" if heading else "")
