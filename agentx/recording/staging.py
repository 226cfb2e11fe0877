"""Prepares new file contents before their event is appended: a disk that refuses shows here.

The blob is made durable first, by the content journal, because the event names it. The working file is synced
only at the end of the turn: what a power cut takes from it is restored from the blob.
"""

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from agentx.storage.artifacts import Artifacts, change
from agentx.storage.errors import DiskRefused
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR, GitRepository

if TYPE_CHECKING:
    from pathlib import Path

    from agentx.storage.events.types import FileChange
from agentx.storage.files.paths import PathRefused


class WriteFailed(DiskRefused):
    """A file could not be written: full disk, missing rights, read-only file system. Nothing was recorded."""


class Content(msgspec.Struct, frozen=True):
    """New content of a file."""

    data: bytes
    executable: bool = False
    link: bool = False

    @property
    def mode(self) -> int:
        """Git's file mode."""
        return LINK if self.link else EXECUTABLE if self.executable else REGULAR


class Staged:
    """New contents of some files: blobs on disk, and temporary files beside their targets.

    Attributes:
        changes: What will change; files that already have their content are omitted.
    """

    def __init__(
        self,
        contents: Mapping[str, Content | None],
        tracked: Mapping[str, TreeEntry | None],
        repo: GitRepository,
        artifacts: Artifacts,
    ) -> None:
        self._contents = contents
        self._artifacts = artifacts
        self._prepared: dict[str, Path] = {}
        self.changes: list[FileChange] = []
        try:
            for path, content in contents.items():
                self._stage(path, content, tracked.get(path), repo)
            repo.sync_contents()
        except OSError as error:
            self.discard()
            raise WriteFailed(
                f"{error.filename or 'A file'} could not be written: {error.strerror}. Nothing was recorded."
            ) from error
        except BaseException:
            self.discard()
            raise

    def _stage(
        self, path: str, content: Content | None, before: TreeEntry | None, repo: GitRepository
    ) -> None:
        if content is None:
            if before is not None:
                self.changes.append(change(path, before, None))
            return
        self._artifacts.check_size(path, len(content.data))
        after = TreeEntry(repo.stage_blob(content.data), content.mode)
        if after != before:
            self._prepared[path] = self._artifacts.prepare(
                path, content.data, executable=content.executable, link=content.link
            )
            self.changes.append(change(path, before, after, len(content.data)))

    def place(self) -> dict[str, str]:
        """Move the new contents into place; return why, by path, for files where that failed."""
        failed: dict[str, str] = {}
        for made in self.changes:
            try:
                if made.path in self._prepared:
                    self._artifacts.put(self._prepared[made.path], made.path)
                    del self._prepared[made.path]
                else:
                    self._artifacts.remove(made.path)
            except (OSError, PathRefused) as error:
                failed[made.path] = (isinstance(error, OSError) and error.strerror) or str(error)
        self.discard()
        return failed

    def discard(self) -> None:
        """Remove the temporary files; nothing has changed."""
        for temporary in self._prepared.values():
            with contextlib.suppress(OSError):  # a later scan removes what cannot be removed now
                nofollow.remove(temporary, missing_ok=True)
