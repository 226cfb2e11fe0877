"""Where the memory of a project is, and where hooks keep what the server has not received yet.

Loads next to nothing: each hook of a host is a new process.
"""

import os

from agentx.client import place
from agentx.core import worktrees
from agentx.core.beside import BESIDE, FOLDER, checks_file, name_of

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping

HOOKS = "hooks"
"""Directory in the user's state directory."""

_MOST_LINK = 10_000
_KIND, _REGULAR = 0o170000, 0o100000


def workspace_of(start: str, environ: "Mapping[str, str]") -> "tuple[str, str]":
    """Return the workspace of a project, and the project if it shares that of another one; empty for none.

    It is beside the project, around it, in another work tree of its repository, or the one that the project
    was given. No link leads to it: a clone may contain one that points into another project.

    Args:
        start: Where the host works; the directories above are searched as well, the nearest first.
        environ: Variables that say where the user's state directory is.
    """
    start = folder = os.path.realpath(start)
    state = place.state_dir(environ)
    given = os.path.isdir(f"{state}/{HOOKS}/projects") if state else False
    while True:
        if found := _memory(folder, environ):
            return found, ""
        if given and (linked := _linked(folder, environ)):
            return linked, folder
        for other in worktrees.elsewhere(start, folder) if os.path.lexists(f"{folder}/.git") else ():
            if found := _memory(other, environ):
                return found, ""
            if given and (linked := _linked(other, environ)):
                return linked, folder + other[len(worktrees.top_of(other)) :]
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


def _memory(folder: str, environ: "Mapping[str, str]") -> str:
    """Return the workspace beside a directory, or the directory if it is one; empty if there is none."""
    if worktrees.is_directory(f"{folder}/{FOLDER}"):
        beside = f"{folder}/{BESIDE}"
        if worktrees.is_directory(beside) and _is_workspace(beside, environ):
            return beside
    return folder if _is_workspace(folder, environ) else ""


def _is_workspace(folder: str, environ: "Mapping[str, str]") -> bool:
    """Return whether a directory is a workspace: never one that Git alone could have put there.

    One whose repository is gone still counts if it is known as the user's, who then learns of it.
    """
    if not worktrees.is_file(f"{folder}/history.jsonl"):
        return worktrees.is_file(f"{folder}/.git/agentx.lock") and worktrees.is_directory(f"{folder}/.git")
    return worktrees.is_directory(f"{folder}/.git") or os.path.exists(
        checks_file(folder, place.state_dir(environ))
    )


def link_file(project: str, environ: "Mapping[str, str]") -> str:
    """Return the file that names the workspace of a project that shares the memory of another."""
    return f"{place.state_dir(environ)}/{HOOKS}/projects/{name_of(project)}"


def spool(workspace: str, environ: "Mapping[str, str]") -> str:
    """Return the directory with what the server has not received yet about a workspace."""
    return f"{place.state_dir(environ)}/{HOOKS}/spool/{name_of(workspace)}"


def read_plain(path: str, most: int) -> bytes:
    """Return the content of a file that is neither a link nor anything that could keep a reader waiting.

    Raises:
        OSError: It cannot be read, or is another thing.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.fstat(file).st_mode & _KIND != _REGULAR:
            raise OSError(f"{path} is not a file.")
        parts = []
        while most > 0 and (part := os.read(file, most)):
            parts.append(part)
            most -= len(part)
        return b"".join(parts)
    finally:
        os.close(file)


def _linked(folder: str, environ: "Mapping[str, str]") -> str:
    try:
        found = os.fsdecode(read_plain(link_file(folder, environ), _MOST_LINK)).strip()
    except OSError:
        return ""
    return found if worktrees.is_file(f"{found}/history.jsonl") else ""
