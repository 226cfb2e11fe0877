"""Where the memory of a project is, and where hooks keep what the server has not received yet.

Loads next to nothing: each hook of a host is a new process.
"""

import os
from _blake2 import blake2b  # `hashlib` would load OpenSSL

from agentx.client import place
from agentx.core.beside import BESIDE

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Mapping

HOOKS = "hooks"
"""Directory in the user's state directory."""

_DIGEST_BYTES = 12
_MOST_LINK = 10_000
_KIND, _REGULAR = 0o170000, 0o100000


def workspace_of(start: str, environ: "Mapping[str, str]") -> "tuple[str, str]":
    """Return the workspace of a project, and the project if it shares that of another one; empty for none.

    It is beside the project, around it, or the one that the project was given.

    Args:
        start: Where the host works; the directories above are searched as well, the nearest first.
        environ: Variables that say where the user's state directory is.
    """
    folder = os.path.realpath(start)
    state = place.state_dir(environ)
    given = os.path.isdir(f"{state}/{HOOKS}/projects") if state else False
    while True:
        beside = f"{folder}/{BESIDE}"
        if os.path.exists(f"{beside}/history.jsonl"):
            return beside, ""
        if os.path.exists(f"{folder}/history.jsonl") and os.path.exists(f"{folder}/.git"):
            return folder, ""
        if given and (linked := _linked(folder, environ)):
            return linked, folder
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


def link_file(project: str, environ: "Mapping[str, str]") -> str:
    """Return the file that names the workspace of a project that shares the memory of another."""
    return f"{place.state_dir(environ)}/{HOOKS}/projects/{_name(project)}"


def spool(workspace: str, environ: "Mapping[str, str]") -> str:
    """Return the directory with what the server has not received yet about a workspace."""
    return f"{place.state_dir(environ)}/{HOOKS}/spool/{_name(workspace)}"


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
    return found if os.path.exists(f"{found}/history.jsonl") else ""


def _name(path: str) -> str:
    return blake2b(os.fsencode(path), digest_size=_DIGEST_BYTES).hexdigest()
