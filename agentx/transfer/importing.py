"""Import material: an existing project at the start, files and directories later."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentx.engine.engine import Engine
from agentx.recording.secret_report import notes_on
from agentx.recording.staging import Content
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.types import FileChange, ToolCallExecuted, changes_of
from agentx.storage.files import nofollow
from agentx.storage.files.ignore import IgnoreRules
from agentx.storage.files.paths import check_folder, check_path

BATCH_FILES = 500
"""Maximum number of files per commit; a batch is held in memory while it is written."""

_BATCH_BYTES = 50_000_000


def gather(source: Path, max_file_bytes: int) -> Iterator[tuple[str, Content | str]]:
    """Yield the files of a directory that Git would not ignore.

    Each comes with its path, and its content or the reason why it is left out.

    Raises:
        UsageError: The directory does not exist.
    """
    if not source.is_dir():
        raise UsageError(f"The directory {source} does not exist.")
    source = nofollow.canonical(source)
    rules = IgnoreRules(source)
    files = Artifacts(source, max_file_bytes)
    for path, info in files.walk(lambda name, directory: rules.ignores(name, directory=directory)):
        try:
            check_path(path)
            data = files.content(path)
        except AgentXError as error:
            yield path, str(error)
        except OSError as error:
            yield path, f"{path} cannot be read: {error.strerror}."
        else:
            yield path, Content(data, bool(info.st_mode & 0o100), stat.S_ISLNK(info.st_mode))


def add(engine: Engine, paths: Sequence[Path], to: str, actor: str) -> tuple[list[FileChange], list[str]]:
    """Copy files and directories into the artifacts.

    Args:
        engine: The workspace.
        paths: What to copy; a directory keeps its name, without what Git would ignore.
        to: Target directory in the artifacts; empty for the root.
        actor: Who adds them.

    Returns:
        The changes; and what was left out, with the reasons.

    Raises:
        UsageError: A path does not exist.
        PathRefused: A name is not valid on another system, or in Git.
    """
    folder = f"{check_folder(to)}/".removeprefix("/")
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"{missing[0]} does not exist.")
    own = [str(path) for path in paths if engine.root in (path.resolve(), *path.resolve().parents)]
    if own:
        raise UsageError(
            f"{own[0]} is the workspace itself or is inside it; choose a path outside the workspace, or copy "
            "the file to `artifacts` with `cp`."
        )
    files: Iterator[tuple[str, Content | str]] = (
        (f"{folder}{name}", content)
        for path in paths
        for name, content in _below(path, engine.config.limits.max_file_bytes)
    )
    return write_batches(engine, files, tool="add", actor=actor)


def import_project(engine: Engine, source: Path, actor: str) -> list[str]:
    """Copy the files of an existing project to the artifacts; return what was left out, with the reasons."""
    files = gather(source, engine.config.limits.max_file_bytes)
    with engine.write_path.bulk():
        _, left_out = write_batches(engine, files, tool="add", actor=actor)
    engine.write_path.notes.extend(left_out)
    return left_out


def _below(path: Path, max_file_bytes: int) -> Iterator[tuple[str, Content | str]]:
    try:
        name = check_path(path.resolve().name)
        info = path.stat()
        if path.is_dir():
            yield from ((f"{name}/{below}", content) for below, content in gather(path, max_file_bytes))
        elif not stat.S_ISREG(info.st_mode):
            yield name, f"{path} is neither a file nor a directory."
        elif info.st_size > max_file_bytes:
            yield name, f"{path} has {info.st_size:,} bytes, over the limit of {max_file_bytes:,}."
        else:
            yield name, Content(path.read_bytes(), bool(info.st_mode & 0o100))
    except OSError as error:
        yield str(path), f"{path} cannot be read: {error.strerror}."


def write_batches(
    engine: Engine, files: Iterator[tuple[str, Content | str]], *, tool: str, actor: str
) -> tuple[list[FileChange], list[str]]:
    """Write many files in few commits, with at most one batch in memory."""
    changes: list[FileChange] = []
    left_out: list[str] = []
    batch: dict[str, Content | None] = {}
    size = 0
    for path, content in files:
        if isinstance(content, str):
            left_out.append(content)
            continue
        batch[path] = content
        size += len(content.data)
        if len(batch) >= BATCH_FILES or size >= _BATCH_BYTES:
            changes += _write_batch(engine, batch, tool, actor)
            batch, size = {}, 0
    if batch:
        changes += _write_batch(engine, batch, tool, actor)
    return changes, left_out


def _write_batch(engine: Engine, batch: dict[str, Content | None], tool: str, actor: str) -> list[FileChange]:
    count = len(batch)
    call_id = f"{tool}-{engine.log.state.seq + 1}"
    events = engine.write_path.write(
        batch,
        lambda changes: ToolCallExecuted(
            call_id=call_id, tool=tool, status="SUCCEEDED", arguments={"files": count}, changes=changes
        ),
        actor=actor,
    )
    changes = [change for event in events for change in changes_of(event)]
    engine.write_path.notes += notes_on({change.path: batch[change.path] for change in changes})
    return changes
