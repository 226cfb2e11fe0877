"""Configuration that makes Git keep files byte for byte.

It is not part of any commit, so a clone does not have it.
"""

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
    """A repository's configuration cannot be read or changed."""


def is_set_up(git_dir: Path) -> bool:
    """Return whether the engine has worked in a repository; false in a fresh clone."""
    return nofollow.is_file(git_dir / "info" / "attributes")


def setting(path: Path, key: str) -> str:
    """Return a value from a Git configuration file; empty if it is not set, or the file cannot be read."""
    try:
        config = pygit2.Config(str(path))
        return str(config[key]) if key in config else ""
    except (OSError, ValueError, pygit2.GitError):
        return ""


def remotes(git_dir: Path) -> dict[str, str]:
    """Return the URL of each remote by name, from the repository's configuration.

    ``url.*.insteadOf`` is ignored: libgit2 would apply such rules of the repository itself, and so send a
    push to another address.
    """
    found: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, pygit2.GitError):
        for entry in pygit2.Config(str(git_dir / "config")):
            if named := _REMOTE.fullmatch(str(entry.name)):
                found.setdefault(named[1], str(entry.value))
    return found


def problem(path: Path) -> str:
    """Return why a configuration file cannot be read, for the middle of a sentence; empty if it can."""
    try:
        for _ in pygit2.Config(str(path)):
            pass
    except (OSError, ValueError, pygit2.GitError) as error:
        return str(error).removeprefix("failed to parse config file: ")
    return ""


def set_up(git_dir: Path) -> None:
    """Add missing settings to a repository; cheap if none is missing.

    Raises:
        SettingsRefused: Its configuration cannot be read or changed.
    """
    added = ""
    try:
        config = pygit2.Config(str(git_dir / "config"))
        for key, wanted in _SETTINGS.items():
            values = list(config.get_multivar(key))
            if values[-1:] == [wanted]:
                continue
            # libgit2 cannot set a value that occurs more than once, and crashes if one has no value.
            if len(values) > 1 or None in values:
                section, _, name = key.rpartition(".")
                added += f"\n[{section}]\n\t{name} = {wanted}\n"  # Git uses the last one
            else:
                config[key] = wanted
    except (ValueError, pygit2.GitError) as error:
        raise SettingsRefused(
            f"{git_dir}/config cannot be used: {error}. "
            f"Correct it with `git config --file {git_dir}/config --edit`."
        ) from error
    if added:
        write_file(git_dir / "config", nofollow.read(git_dir / "config") + added.encode())
    for name, wanted in (("exclude", _EXCLUDE), ("attributes", _ATTRIBUTES)):
        path = git_dir / "info" / name
        with contextlib.suppress(FileNotFoundError):
            if nofollow.read_text(path, "replace") == wanted:
                continue
        write_file(path, wanted.encode())
