"""The inputs of a pipeline: those that are missing before it starts, and those that a step rests on."""

import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path, PurePath, PurePosixPath

import msgspec

from agentx.pipelines.pointing.pointed_files import PYTHON, Files, PointedText, PointerMissing
from agentx.recording.write_path import WritePath
from agentx.storage.errors import AgentXError
from agentx.storage.events.pipeline_events import Basis
from agentx.storage.events.types import Body
from agentx.storage.files import nofollow
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.pipeline import Role
from agentx.synthesis.pipelines.definition.plan import Plan, ReadFile, Step, is_by_program
from agentx.synthesis.pipelines.running.basis import basis_of
from agentx.synthesis.pipelines.running.staleness import as_list

_TOLD = 6
"""Number of files that a message names; of more, it names the directory."""


_INLINE_BYTES = 2_000
"""A longer list of inputs is stored as a blob, so that its event stays small."""

_NAME = 60
"""Maximum number of characters of a program's name."""


class _Absent(msgspec.Struct):
    """A file that a role reads and that does not exist; for a file per item, all of them."""

    role: str
    steps: list[str]
    read: ReadFile
    paths: list[str]


def missing(plan: Plan, files: Files, done: Collection[str] = (), *, made: bool = True) -> list[str]:
    """Return a sentence for each input that cannot be read and that no role will write.

    Each sentence states the role, the stage, the file, and what to do.

    Proved steps, whose keys are in ``done``, need no input any more. Without a workspace, ``made`` is
    false, and only source trees are checked.
    """
    absent: dict[tuple[str, str], _Absent] = {}
    unreadable: list[str] = []
    for key, role, read in _needed(plan, done):
        if not made and not read.source:
            continue
        try:
            files.of(read)
        except PointerMissing as error:
            if not error.absent:
                unreadable.append(f"Role {role} (stage {key}) reads {read.rule.file}: {error}")
                continue
            same = absent.setdefault((role, read.rule.file), _Absent(role, [], read, []))
            same.steps.append(key)
            same.paths.append(error.absent)
    programs = _programs(plan, files, done) if made else []
    return [*(_sentence(one, files) for one in absent.values()), *unreadable, *programs]


def _needed(plan: Plan, done: Collection[str]) -> Iterator[tuple[str, str, ReadFile]]:
    """Yield each input that no step writes, once: the key of the step, its role, and the file."""
    written = {one.path for step in plan.steps.values() for one in step.writes}
    seen = set[tuple[str, tuple[str, ...]]]()
    for key, step in plan.steps.items():
        for read in step.reads if key not in done else ():
            place = (read.source, read.paths)
            if place not in seen and not _is_written(read, written):
                seen.add(place)
                yield key, step.role, read


def _programs(plan: Plan, files: Files, done: Collection[str]) -> list[str]:
    """Return a sentence for each program that plays a role and is not installed."""
    played = {step.role: plan.role(step) for key, step in plan.steps.items() if key not in done}
    wanted = {name: role.by[0] for name, role in played.items() if is_by_program(role)}
    return [
        f"The program {word} of role {name} was not found: install it, or fix `by` of the role."
        for name, word in wanted.items()
        if word != PYTHON and not (files.folder / word).is_file() and not shutil.which(word)
    ]


def _is_written(read: ReadFile, written: Collection[str]) -> bool:
    if read.source:
        return False
    return any(
        path in written or ("*" in path and any(map(path_pattern(path).fullmatch, written)))
        for path in read.paths
    )


def _sentence(one: _Absent, files: Files) -> str:
    several = len(one.paths) > 1
    more = len(one.paths) - _TOLD
    named = ", ".join(one.paths[:_TOLD]) + (f" and {more} more" if more > 0 else "")
    where = f"the source {one.read.source}" if one.read.source else "the artifacts"
    stages = one.steps[0] + (f" and {len(one.steps) - 1} more" if several else "")
    them, there = ("them", "no files") if several else ("it", "no file")
    folders: dict[str, list[str]] = {}
    for path in one.paths:
        folders.setdefault(path.partition("*")[0].rpartition("/")[0], []).append(path)
    commands = " && ".join(_command(folder, same, files) for folder, same in folders.items())
    add = f"Put {them} there" if one.read.source else f"Add {them}: `{commands}`"
    return (
        f"Role {one.role} (stage {stages}) reads {one.read.rule.file}: "
        f"{there} {named} in {where}, and no role writes {them}. "
        f"{add}; or fix the path under `files`, or mark the pointer `optional`."
    )


def _command(folder: str, paths: Sequence[str], files: Files) -> str:
    """Return the shell command that adds files to a directory of the artifacts.

    Files found beside the pipeline's file are taken from there. If they are more than a message names, the
    whole directory is added. Files inside the workspace, but outside the artifacts, are copied, because
    `agentx add` takes nothing from there.
    """
    whole = bool(folder) and (len(paths) > _TOLD or any("**" in path for path in paths))
    wanted, to = ([folder], folder.rpartition("/")[0]) if whole else (list(paths), folder)
    found: list[Path | None] = []
    for path in wanted:  # where it lies beside the pipeline's file
        names = [re.sub(r"\*+", "*", name) for name in (path, PurePosixPath(path).name)]
        places = (files.folder / name for name in names if any(files.folder.glob(name)))
        found.append(next(places, None))
    root = files.artifacts.root.parent
    if all(one and one.resolve().is_relative_to(root) for one in found):
        place = shlex.quote(os.path.relpath(files.artifacts.root / to))
        return f"mkdir -p {place} && cp -r {_words(found)} {place}"
    at = "" if Path.cwd().is_relative_to(root) else f" -C {shlex.quote(str(root))}"
    named = [one or Path("FOLDER", PurePosixPath(path).name) for one, path in zip(found, wanted, strict=True)]
    return f"agentx{at} add {_words(named)}" + (f" --to {shlex.quote(to)}" if to else "")


def _words(paths: Sequence[Path | None]) -> str:
    """Join paths, relative to the current directory, for a command line; the shell expands patterns."""
    told = (os.path.relpath(path) for path in paths if path)
    return " ".join(word if "*" in word else shlex.quote(word) for word in told)


# --- what a step rests on ---------------------------------------------------------------------------------


def rests_on(
    path: WritePath, plan: Plan, step: Step, files: Iterable[PointedText], by: str = ""
) -> tuple[Body, Basis]:
    """Return the list of a step's inputs, and what else it rests on.

    Args:
        path: Stores a long list.
        plan: The pipeline.
        step: The step.
        files: The contents that it was given.
        by: The program that plays its role.
    """
    found = {file.path: file.blob for file in files}
    body = path.body(as_list(found), _INLINE_BYTES)
    return msgspec.structs.replace(body, text="") if body.blob else body, basis_of(plan, step, by)


def inputs_of(files: Files, step: Step) -> list[PointedText]:
    """Return the files that a step reads, as far as they can be read."""
    found: list[PointedText] = []
    for read in step.reads:
        try:
            found += files.of(read)
        except AgentXError:  # it is proved by its own files, whatever became of these
            continue
    return found


def player(role: Role, folder: Path) -> str:
    """Return the program that plays a role, with a digest of its arguments and of its files in ``folder``.

    Empty for others: a model is named where its run starts.

    >>> player(Role(by=("cat", "-n"), writes=[{"file": "a"}]), Path())
    'cat (fc33e26e)'
    """
    if not is_by_program(role):
        return ""
    found = blake2b(digest_size=4)
    for word in role.by:
        beside = (folder / word).resolve()
        own = beside.is_file() and beside.is_relative_to(folder)
        found.update(nofollow.read(beside) if own else word.encode() + b"\0")
    return f"{PurePath(role.by[0]).name[:_NAME]} ({found.hexdigest()})"
