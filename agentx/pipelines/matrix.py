"""Who reads and writes what: the pointers of all roles of a pipeline, seen at once."""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from agentx.synthesis.pipelines.definition import File, Loop, Pipeline, Role, Stage

Access = Literal["read", "write", "append", "not read"]
"""What a role may do with a file; ``append`` is what the engine adds to it when the role is done."""

_PLACE = re.compile(r"\{\{\s*(?:\w+\.)*(\w+)\s*\}\}")
_OTHER = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


class FileRow(msgspec.Struct, frozen=True):
    """A file of a pipeline.

    Attributes:
        file: The name that roles use.
        path: Where it lies, with ``{id}`` where the item stands.
        sort: Its class; ``source`` for a tree outside the artifacts.
    """

    file: str
    path: str
    sort: str


class RoleRow(msgspec.Struct, frozen=True):
    """A role, and what it does with each file that it names."""

    role: str
    title: str
    agent: str
    stages: tuple[str, ...]
    files: dict[str, tuple[Access, ...]]

    def named(self, access: Access) -> list[str]:
        """The files that it has this access to."""
        return [file for file, found in self.files.items() if access in found]


class Matrix(msgspec.Struct, frozen=True):
    """Roles and files in the order of the pipeline's file; files by class."""

    pipeline: str
    title: str
    files: tuple[FileRow, ...]
    roles: tuple[RoleRow, ...]


def matrix_of(pipeline: Pipeline) -> Matrix:
    """The matrix of a pipeline."""
    order = ("static", "append-only", "overwritable", "source")
    files = [
        FileRow(name, shown_path(file), "source" if file.source else file.sort)
        for name, file in pipeline.files.items()
    ]
    stages: dict[str, list[str]] = {name: [] for name in pipeline.roles}
    for stage in all_stages(pipeline):
        stages[stage.role].append(stage.id)
    return Matrix(
        pipeline.pipeline,
        pipeline.title,
        tuple(sorted(files, key=lambda row: order.index(row.sort))),
        tuple(
            RoleRow(name, role.title or name, _played_by(role), tuple(stages[name]), _files(role))
            for name, role in pipeline.roles.items()
        ),
    )


def all_stages(pipeline: Pipeline) -> Iterator[Stage]:
    """Every stage in the order of the file, those of loops too."""
    for entry in pipeline.stages:
        yield from entry.stages if isinstance(entry, Loop) else (entry,)


def _files(role: Role) -> dict[str, tuple[Access, ...]]:
    named: list[tuple[str, Access]] = [
        *((one.file, "read") for one in role.reads),
        *((one.file, "write") for one in role.writes),
        *((one.to, "append") for one in role.appends),
        *((one.file, "not read") for one in role.does_not_read),
    ]
    return {file: tuple(dict.fromkeys(how for one, how in named if one == file)) for file, _ in named}


def _played_by(role: Role) -> str:
    return role.agent if role.by == ("model",) else role.by[0]


def shown_path(file: File) -> str:
    """The path of a file as people read it, for all items at once.

    >>> shown_path(File(path="drafts/ch{{ chapter.id }}-draft.md"))
    'drafts/ch{id}-draft.md'
    """
    lines = [_OTHER.sub("{…}", _PLACE.sub(r"{\1}", line)) for line in file.path.splitlines() if line.strip()]
    return ", ".join(f"{file.source}:{line}" if file.source else line for line in lines)
