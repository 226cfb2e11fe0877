"""Artifacts of an import: what the calls of a transcript show of files, and did to them, in order."""

import posixpath
import re

from agentx.engine.engine import Engine
from agentx.importing.entries import FileStep
from agentx.recording.staging import Content
from agentx.storage.artifacts import change
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import FileChange
from agentx.storage.files.paths import check_path
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import REGULAR
from agentx.storage.secrets.redaction import clean

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_WORKTREE = re.compile(r"/\.(?:claude/)?worktrees/[^/]+\Z")


def name_of(root: str) -> str:
    """Return the name of the project in a directory, also if that is a worktree inside of the project.

    >>> name_of("/home/ann/shop/.worktrees/2"), name_of("C:/work/shop/")
    ('shop', 'shop')
    """
    return posixpath.basename(_WORKTREE.sub("", root.replace("\\", "/").rstrip("/")))


def inside(path: str, root: str) -> str:
    """Return a path of a transcript relative to its project; empty if it is outside.

    >>> inside("/home/ann/shop/src/a.py", "/home/ann/shop"), inside("src/../a.py", "/home/ann/shop")
    ('src/a.py', 'a.py')
    >>> inside("/etc/passwd", "/home/ann/shop"), inside("../b", "/home/ann/shop"), inside("a/.git/x", "/r")
    ('', '', '')
    """
    slashed = path.replace("\\", "/") if _DRIVE.match(path) else path
    if slashed.startswith("/") or _DRIVE.match(slashed):
        base = root.replace("\\", "/").rstrip("/") + "/"
        if not root or not posixpath.normpath(slashed).startswith(base):
            return ""
        slashed = posixpath.normpath(slashed)[len(base) :]
    try:
        return check_path(posixpath.normpath(slashed))
    except AgentXError:
        return ""


class ImportedFiles:
    """The files of one batch, each with its contents one after the other. Used under the workspace's lock.

    Args:
        engine: The workspace.
        owned: By path, whether the import was the last to write it; files of others are never changed.

    Attributes:
        last: The last content of each file that changed, for the working files.
        unapplied: Number of steps whose file is outside, another's, or not known whole.
    """

    def __init__(self, engine: Engine, owned: dict[str, bool]) -> None:
        self._engine = engine
        self._owned = owned
        self._now: dict[str, tuple[TreeEntry | None, str | None]] = {}
        self.last: dict[str, Content | None] = {}
        self.unapplied = 0

    def apply(self, path: str, step: FileStep) -> tuple[FileChange | None, FileChange | None]:
        """Apply a step to a file.

        Args:
            path: The path in the artifacts; empty if it is outside.
            step: The step.

        Returns:
            What somebody else must have changed before, as the transcript shows; and what the step changed.
        """
        entry, text = self._read(path) if path else (None, None)
        if not path or (entry is not None and not self._owned.get(path, False)):
            self.unapplied += step.how != "seen"
            return None, None
        shown = step.content if step.how == "seen" else step.base
        before = None
        if shown not in (None, text) and (known := clean(shown)) != text:
            before = self._write(path, known)
            text = known
        if step.how == "seen":
            return before, None
        if step.how == "removed":
            return before, self._write(path, None) if text is not None else None
        after = clean(step.content) if step.how == "written" else _edited(text, step)
        if after is None:
            self.unapplied += 1
            return before, None
        return before, self._write(path, after) if after != text else None

    def _read(self, path: str) -> tuple[TreeEntry | None, str | None]:
        if path not in self._now:
            entry = self._engine.git.tracked(path)
            data = self._engine.git.repo.read_blob(entry.oid) if entry else b""
            self._now[path] = entry, data.decode("utf-8", "replace") if entry else None
        return self._now[path]

    def _write(self, path: str, text: str | None) -> FileChange | None:
        before, _ = self._now[path]
        data = b"" if text is None else text.encode()
        try:
            self._engine.artifacts.check_size(path, len(data))
        except AgentXError:
            self.unapplied += 1
            return None
        after = None if text is None else TreeEntry(self._engine.git.repo.write_blob(data), REGULAR)
        self._now[path] = after, text
        self.last[path] = None if text is None else Content(data)
        self._owned[path] = True
        return change(path, before, after, len(data))


def _edited(text: str | None, step: FileStep) -> str | None:
    """Return a file's content after an edit; ``None`` if it does not apply."""
    if not step.old:
        return clean(step.new) if not text else None
    old = step.old if text is not None and step.old in text else clean(step.old)
    if text is None or old not in text:
        return None
    return text.replace(old, clean(step.new), -1 if step.every else 1)
