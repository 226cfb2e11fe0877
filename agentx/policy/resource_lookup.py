"""Find existing resources by name: scripts of this workspace and of its neighbours, and credentials.

An agent that does not look builds a second one, or reports an existing resource as missing. So the gate
looks. Only the name of a credential is ever read: the value never enters this process.
"""

import re
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import GitRepository
from agentx.storage.text import decoded, one_line
from agentx.synthesis.gates.action_gate import Line
from agentx.synthesis.gates.action_relevance import SCRIPT_FOLDERS, doing, is_script
from agentx.synthesis.state.flows import terms

MAX_SCRIPTS = 300
"""Maximum number of scripts known per workspace, the first by path."""

MAX_BESIDE = 50
"""Maximum number of neighbouring workspaces that are searched."""

SHOWN = 4
"""Maximum number of resources shown per kind."""

_HEAD_BYTES = 2_000
_COMMENT = re.compile(r"^\s*(?:#(?!!)|//|--|\"\"\"|'''|/\*+|\*)\s*(.*\w.*?)\s*(?:\*/|\"\"\"|''')?\s*$")
_CREDENTIAL = re.compile(
    r"(?:^|_)(?:TOKEN|PAT|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?"
    r"|(?:API|ACCESS|AUTH|PRIVATE|SECRET|SSH)_?KEY(?:_ID)?|AUTH|DSN)(?:_|$)"
)
_NO_LETTERS = re.compile(r"[^\w.@:/ -]+")


class Script(msgspec.Struct, frozen=True):
    """A script: its path, and the description in its first comment."""

    path: str
    about: str = ""


class Scripts:
    """The scripts among the artifacts, each with its first comment; refreshed when the artifacts change.

    Args:
        repo: The repository that holds them.
    """

    def __init__(self, repo: GitRepository) -> None:
        self._repo = repo
        self._tree = ""
        self._found: list[Script] = []
        self._about: dict[str, str] = {}

    def all(self, tree: str, manifest: Callable[[], Mapping[str, TreeEntry]]) -> list[Script]:
        """Return the scripts of a tree.

        Args:
            tree: ID of the tree.
            manifest: Returns its files.
        """
        if tree != self._tree:
            known = manifest()
            named = sorted(path for path in known if is_script(path))[:MAX_SCRIPTS]
            before, oids = self._about, [known[path].oid for path in named]
            self._about = {
                oid: before[oid] if oid in before else first_comment(self._repo.read_blob(oid))
                for oid in oids
            }
            self._found = [Script(path, self._about[known[path].oid]) for path in named]
            self._tree = tree
        return self._found


def scripts_beside(root: Path) -> list[Script]:
    """Return the scripts of neighbouring workspaces, by name alone."""
    found: list[Script] = []
    for place in [root.parent / name for name in _names(root.parent, folders=True)][:MAX_BESIDE]:
        if place != root and nofollow.is_file(place / "history.jsonl"):
            artifacts = place / "artifacts"
            for folder in (artifacts, *(artifacts / name for name in sorted(SCRIPT_FOLDERS))):
                names = (f"{folder.relative_to(root.parent).as_posix()}/{name}" for name in _names(folder))
                found += [Script(f"../{name}") for name in names if is_script(name)]
    return found[:MAX_SCRIPTS]


def credentials(environ: Mapping[str, str]) -> list[str]:
    """Return the names of set environment variables that look like credentials.

    >>> credentials({"GITHUB_TOKEN": "x", "HOME": "/", "KEYBOARD": "us", "EMPTY_TOKEN": ""})
    ['GITHUB_TOKEN']
    """
    return sorted(name for name, value in environ.items() if value and _CREDENTIAL.search(name.upper()))


def for_action(
    text: str,
    own: list[Script],
    beside: list[Script],
    variables: list[str],
) -> tuple[Line, ...]:
    """Return the resources that an action could use: those that share a specific word with it.

    Words that only say that something is done do not count.

    Args:
        text: What is about to be done.
        own: Scripts of this workspace.
        beside: Scripts of neighbouring workspaces.
        variables: Names of environment variables.
    """
    wanted = _words(text) - doing()
    sorts = (
        ((one.path, "script", one.about) for one in own),
        ((one.path, "script", "another workspace's") for one in beside),
        ((name, "credential", "set in the environment") for name in variables),
    )
    lines: list[Line] = []
    for sort in sorts:
        scored = []
        for name, kind, about in sort:
            plain = _NO_LETTERS.sub(" ", one_line(name))
            own_name = PurePosixPath(plain).with_suffix("").as_posix() if kind == "script" else plain
            said = about if kind == "script" and about != "another workspace's" else ""
            common = len(wanted & _words(f"{own_name.replace('/', ' ')} {said}"))
            if common:
                scored.append((-common, Line(id=plain, kind=kind, text=about)))
        scored.sort(key=lambda one: (one[0], one[1].id))
        lines += [line for _, line in scored[:SHOWN]]
    return tuple(lines)


def _words(text: str) -> frozenset[str]:
    """Return the stems of a text, also in lower case.

    A name like GitHub counts both in one word and in its parts, because GITHUB_TOKEN has it in one.
    """
    return frozenset((*terms(text), *terms(text.casefold())))


def first_comment(content: bytes) -> str:
    r"""Return the first comment or docstring of a script, in one line.

    >>> first_comment(b"#!/bin/sh\n# Deploy to staging.\nrsync")
    'Deploy to staging.'
    """
    text = decoded(content[:_HEAD_BYTES]) or ""
    lines = (_COMMENT.match(line) for line in text.splitlines()[:12])
    return next((one_line(found[1])[:120] for found in lines if found), "")


def _names(place: Path, *, folders: bool = False) -> list[str]:
    """Return the names of the files in a directory, or of its directories; none if it cannot be read."""
    try:
        with nofollow.entries(place) as found:
            named = (
                one.name for one in found if (one.is_dir if folders else one.is_file)(follow_symlinks=False)
            )
            return list(islice(named, MAX_SCRIPTS))
    except OSError:
        return []
