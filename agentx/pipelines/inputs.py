"""Checks before a pipeline starts: input files that no role writes, and the programs that play roles."""

import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from agentx.pipelines.pointed_files import PYTHON, Files, PointerMissing
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.plan import Plan, ReadFile, is_by_program

_TOLD = 6
"""Number of files that a message names; of more, it names the directory."""


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
