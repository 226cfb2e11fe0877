"""What a repository needs so that files are taken byte for byte: it is in no commit, and so a clone does not bring it."""

import contextlib
import re
from pathlib import Path

import pygit2

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, write_file

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

_REMOTE = re.compile(r"remote\.(.+)\.url", re.DOTALL)

_EXCLUDE = f"{TEMPORARY_PREFIX}*\n"


class SettingsRefused(AgentXError):
    """A repository's configuration cannot be read, or not be changed."""


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


def remotes(git_dir: Path) -> dict[str, str]:
    """URL of each remote, by name, as the repository's own configuration says, without ``url.*.insteadOf``.

    libgit2 would apply what the repository itself says there, and send a push for one address to another.
    """
    found: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, pygit2.GitError):
        for entry in pygit2.Config(str(git_dir / "config")):
            if named := _REMOTE.fullmatch(str(entry.name)):
                found.setdefault(named[1], str(entry.value))
    return found


def problem(path: Path) -> str:
    """Why a configuration file cannot be read, for the middle of a sentence; empty where it can."""
    try:
        for _ in pygit2.Config(str(path)):
            pass
    except (OSError, ValueError, pygit2.GitError) as error:
        return str(error).removeprefix("failed to parse config file: ")
    return ""


def set_up(git_dir: Path) -> None:
    """Give a repository what it lacks; cheap where it lacks nothing.

    Raises:
        SettingsRefused: Its configuration cannot be read, or not be changed.
    """
    added = ""
    try:
        config = pygit2.Config(str(git_dir / "config"))
        for key, wanted in _SETTINGS.items():
            values = list(config.get_multivar(key))
            if values[-1:] == [wanted]:
                continue
            if (
                len(values) > 1 or None in values
            ):  # libgit2 refuses to set the one, and crashes over the other
                section, _, name = key.rpartition(".")
                added += f"\n[{section}]\n\t{name} = {wanted}\n"  # the last one counts
            else:
                config[key] = wanted
    except (ValueError, pygit2.GitError) as error:
        raise SettingsRefused(
            f"{git_dir}/config cannot be used: {error}. Correct it with `git config --file {git_dir}/config --edit`."
        ) from error
    if added:
        write_file(git_dir / "config", nofollow.read(git_dir / "config") + added.encode())
    for name, wanted in (("exclude", _EXCLUDE), ("attributes", _ATTRIBUTES)):
        path = git_dir / "info" / name
        with contextlib.suppress(FileNotFoundError):
            if nofollow.read_text(path, "replace") == wanted:
                continue
        write_file(path, wanted.encode())
