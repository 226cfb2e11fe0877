"""The access matrix of a pipeline: which role reads and writes which file."""

import re
import shlex
from collections.abc import Iterator
from typing import Literal

import msgspec

from agentx.synthesis.pipelines.definition.pipeline import BY_MODEL, File, Loop, Pipeline, Role, Stage

Access = Literal["reads", "writes", "appends", "does_not_read"]
"""What a role does with a file, by the key in the pipeline's file; the engine ``appends`` at the end."""

_PLACE = re.compile(r"\{\{\s*(?:\w+\.)*(\w+)\s*\}\}")
_OTHER = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


class FileRow(msgspec.Struct, frozen=True, rename={"sort": "class"}):
    """A file of a pipeline.

    Attributes:
        file: The name that roles use.
        path: Its path, with ``{id}`` in place of the item.
        sort: Its class; ``source`` for a tree outside the artifacts.
    """

    file: str
    path: str
    sort: str


class RoleRow(msgspec.Struct, frozen=True):
    """A role, and what it does with each file that it names.

    Attributes:
        by: Who plays it: ``model``, ``engine``, or a program and its arguments.
        agent: The type of agent.
    """

    role: str
    title: str
    by: tuple[str, ...]
    agent: str
    stages: tuple[str, ...]
    files: dict[str, tuple[Access, ...]]

    @property
    def played_by(self) -> str:
        """Who plays it, as one phrase."""
        return self.agent if self.by == (BY_MODEL,) else shlex.join(self.by)

    def named(self, access: Access) -> list[str]:
        """Return the files that it has this access to."""
        return [file for file, found in self.files.items() if access in found]


class Matrix(msgspec.Struct, frozen=True):
    """Roles and files of a pipeline: roles in the order of its file, files by class."""

    pipeline: str
    title: str
    files: tuple[FileRow, ...]
    roles: tuple[RoleRow, ...]


def matrix_of(pipeline: Pipeline) -> Matrix:
    """Return the matrix of a pipeline."""
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
            RoleRow(name, role.title or name, role.by, role.agent, tuple(stages[name]), _accesses(role))
            for name, role in pipeline.roles.items()
        ),
    )


def all_stages(pipeline: Pipeline) -> Iterator[Stage]:
    """Yield every stage in the order of the file, including those in loops."""
    for entry in pipeline.stages:
        yield from entry.stages if isinstance(entry, Loop) else (entry,)


def _accesses(role: Role) -> dict[str, tuple[Access, ...]]:
    named: list[tuple[str, Access]] = [
        *((one.file, "reads") for one in role.reads),
        *((one.file, "writes") for one in role.writes),
        *((one.to, "appends") for one in role.appends),
        *((one.file, "does_not_read") for one in role.does_not_read),
    ]
    return {file: tuple(dict.fromkeys(how for one, how in named if one == file)) for file, _ in named}


def shown_path(file: File) -> str:
    """Return the path of a file for display, for all items at once.

    >>> shown_path(File(path="drafts/ch{{ chapter.id }}-draft.md"))
    'drafts/ch{id}-draft.md'
    """
    lines = [_OTHER.sub("{…}", _PLACE.sub(r"{\1}", line)) for line in file.path.splitlines() if line.strip()]
    return ", ".join(f"{file.source}:{line}" if file.source else line for line in lines)
