"""Where files of rules are, how they are read, and for which files of the project they hold."""

import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from agentx.engine.engine import Engine
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.paths import PathRefused, check_path

MAX_BYTES = 1_000_000
"""Maximum size of a file of rules; no agent reads a larger one."""

MAX_FILES = 200
"""Maximum number of files in a directory of rules."""

FORMS = {
    "agents-md": "AGENTS.md",
    "claude-md": "CLAUDE.md",
    "cursor-rules": ".cursor/rules/agentx.mdc",
}
"""What can be exported, each with its default file, relative to the artifacts.

AGENTS.md (https://agents.md) and CLAUDE.md (https://code.claude.com/docs/en/memory) are plain Markdown; a
rule of Cursor has a front matter (https://cursor.com/docs/context/rules).
"""

USUAL = (
    "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", ".claude/rules", "GEMINI.md", ".cursorrules",
    ".cursor/rules", ".github/copilot-instructions.md", ".github/instructions",
)  # fmt: skip
"""Files and directories of rules that are looked for if none is named."""

SUFFIXES = (".md", ".mdc")
"""File names of Markdown that hosts read."""

_FOLDERS = ("/.cursor/rules/", "/.claude/", "/.github/", "/.agents/")
"""Directories of a host: the rules in them are for the directory above."""


class RuleFileRefused(UsageError):
    """A file of rules cannot be read."""


class RulePlace(msgspec.Struct, frozen=True):
    """A file of rules.

    Attributes:
        path: The file on the disk.
        name: Its name in the record: relative to the artifacts, absolute if it is outside.
        inside: Whether it is an artifact.
    """

    path: Path
    name: str
    inside: bool

    @property
    def folder(self) -> str:
        """The directory of the artifacts for which its rules are, with a slash behind; empty for all."""
        if not self.inside:
            return ""
        name = f"/{self.name}"
        for host in _FOLDERS:
            if host in name:
                return name.partition(host)[0].removeprefix("/") + "/" * (name.index(host) > 0)
        above = posixpath.dirname(self.name)
        return f"{above}/" if above else ""


def place_of(engine: Engine, path: Path) -> RulePlace:
    """Return a file as a place; links are followed, so that one file has one name.

    Raises:
        RuleFileRefused: It is in the workspace itself, or its name cannot be recorded.
    """
    real = Path(os.path.realpath(path))
    root = engine.artifacts.root
    if not real.is_relative_to(root) or (real.is_relative_to(engine.root) and root in engine.root.parents):
        return RulePlace(real, str(real), inside=False)
    try:
        name = check_path(real.relative_to(root).as_posix())
        return RulePlace(engine.artifacts.locate(name), name, inside=True)
    except PathRefused as error:
        raise RuleFileRefused(str(error)) from error


def read_text(path: Path) -> str:
    """Return a file's text; bytes that are not UTF-8 are kept as lone surrogates.

    Raises:
        RuleFileRefused: It does not exist, is too large or binary.
    """
    try:
        if not path.is_file():
            raise RuleFileRefused(f"{path} is not a file.")
        if path.stat().st_size > MAX_BYTES:
            raise RuleFileRefused(f"{path} is larger than {MAX_BYTES:,} bytes: that is not a file of rules.")
        data = nofollow.read(path)
    except OSError as error:
        raise RuleFileRefused(f"{path} cannot be read: {error.strerror}.") from error
    if b"\0" in data:
        raise RuleFileRefused(f"{path} is binary: that is not a file of rules.")
    return data.decode("utf-8", errors="surrogateescape")


def files_of(engine: Engine, paths: Sequence[Path]) -> Iterator[RulePlace]:
    """Yield the files of rules that are named, directories opened; without a name, the usual ones.

    Raises:
        RuleFileRefused: A named file does not exist.
    """
    root = engine.artifacts.root
    named = list(paths) or [root / usual for usual in USUAL if (root / usual).exists()]
    if not named:
        raise RuleFileRefused(f"There is no AGENTS.md, CLAUDE.md or the like in {root}; name a file.")
    seen: set[Path] = set()
    for path in named:
        if not path.exists():
            raise RuleFileRefused(f"{path} does not exist.")
        found = [path]
        if path.is_dir():
            found = _below(nofollow.canonical(path))
        for one in found:
            place = place_of(engine, one)
            if place.path not in seen:
                seen.add(place.path)
                yield place


def _below(folder: Path) -> list[Path]:
    """Return the Markdown files below a directory, without following links."""
    files = Artifacts(folder, MAX_BYTES).walk(lambda _name, _directory: False)
    return [folder / name for name, _ in files if name.endswith(SUFFIXES)][:MAX_FILES]


def form_of(name: str) -> str:
    """Return what the name of a file says about its form.

    >>> form_of("docs/AGENTS.md"), form_of(".cursor/rules/agentx.mdc")
    ('agents-md', 'cursor-rules')
    """
    path = PurePosixPath(name)
    if path.suffix == ".mdc":
        return "cursor-rules"
    return "claude-md" if path.name.startswith("CLAUDE") else "agents-md"
