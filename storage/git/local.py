"""What a repository needs so that files are taken byte for byte: it is in no commit, and so a clone does not bring it."""

import contextlib
from pathlib import Path

import pygit2

from agentx.storage import nofollow
from agentx.storage.durable import TEMPORARY_PREFIX, write_file

_SETTINGS = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.logAllRefUpdates": "true",
    "commit.gpgSign": "false",
}

_ATTRIBUTES = """\
# What AgentX records are the very bytes of the files.
* -text -filter -ident -working-tree-encoding
# `git log -p` is to show what changed in the artifacts; the log says in each commit's message what it holds.
history.jsonl -diff
history/** -diff
"""

_EXCLUDE = f"{TEMPORARY_PREFIX}*\n"


def is_set_up(git_dir: Path) -> bool:
    """Whether the engine has worked in a repository; in a fresh clone it has not."""
    return nofollow.is_file(git_dir / "info" / "attributes")


def setting(path: Path, key: str) -> str:
    """A value in a configuration file of Git's; empty where it is not set, or the file cannot be read."""
    try:
        config = pygit2.Config(str(path))
        return str(config[key]) if key in config else ""
    except (OSError, ValueError, pygit2.GitError):
        return ""


def set_up(git_dir: Path) -> None:
    """Give a repository what it lacks; cheap where it lacks nothing."""
    config = pygit2.Config(str(git_dir / "config"))
    for key, value in _SETTINGS.items():
        if key not in config or config[key] != value:
            config[key] = value
    for name, wanted in (("exclude", _EXCLUDE), ("attributes", _ATTRIBUTES)):
        path = git_dir / "info" / name
        with contextlib.suppress(FileNotFoundError):
            if nofollow.read_text(path, "replace") == wanted:
                continue
        write_file(path, wanted.encode())
