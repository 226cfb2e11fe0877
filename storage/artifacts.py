"""The working files of a workspace: the content of ``artifacts/``, compared with a Git tree."""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agentx.storage import stopping
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import FileChange, is_inside
from agentx.storage.files import nofollow
from agentx.storage.files.durable import TEMPORARY_PREFIX, write_temporary
from agentx.storage.files.ignore import IgnoreRules
from agentx.storage.files.paths import PathRefused, check_path, resolve_file, resolve_inside
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import LARGEST, blob_id
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR
from agentx.storage.stamps import Stamp, keep_stamps, load_stamps

_RACY_NS = 2_000_000_000
"""Age up to which a file is read again: a change within one clock tick (2 s on FAT) leaves no other trace."""


_READ_FILES = 64
"""Number of files read by a scan from which the stamps are worth keeping for the next process."""


class FileTooLarge(AgentXError):
    """A file is over the workspace's size limit."""


class ArtifactMissing(AgentXError):
    """The file or directory does not exist in the artifacts."""


class Scan(msgspec.Struct, frozen=True):
    """The result of comparing the working files with a tree.

    Attributes:
        changes: Files that differ, with the blob id of their content.
        notes: What was skipped, and why.
    """

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]


class Artifacts:
    """The working files below one directory.

    Args:
        root: The directory, canonical (:func:`agentx.storage.files.nofollow.canonical`).
        max_file_bytes: Larger files are refused, and skipped by a scan.
        skip: Directories that are not part of the artifacts (the workspace itself, in an outer work tree).
        stamps: File that keeps the stamps of the files that a scan read; ``None`` to keep none.
    """

    def __init__(
        self, root: Path, max_file_bytes: int, skip: tuple[Path, ...] = (), stamps: Path | None = None
    ) -> None:
        self.root = root
        self.max_file_bytes = min(max_file_bytes, LARGEST["blob"])  # a larger one would not be read again
        self._skip = {str(path) for path in skip}
        self._stamps: dict[str, Stamp] = {}
        self._kept = stamps
        self._loaded = False
        self._unkept = 0
        self._leftovers: list[str] = []

    def locate(self, path: str, *, follow: bool = False) -> Path:
        """Return the working file for a checked path.

        Args:
            path: As :func:`agentx.storage.files.paths.check_path` returns it.
            follow: Whether to follow a link in the last component; its target must be inside the artifacts.

        Returns:
            The file's path, free of links except in the last component, which stays a link unless ``follow``
            is set.

        Raises:
            PathRefused: It leads out of the artifacts, or into something that does not belong to them: the
                workspace itself, or a nested Git repository.
        """
        if not is_inside(path):
            raise PathRefused(path, "it leads out of the artifacts.")
        target = resolve_file(self.root, path) if follow else resolve_inside(self.root, path)
        self._refuse_foreign(path, str(target))
        return target

    def _refuse_foreign(self, path: str, target: str) -> None:
        folder = str(self.root)
        for name in target[len(folder) + 1 :].split("/"):
            folder = f"{folder}/{name}"
            if folder in self._skip:
                raise PathRefused(path, "it belongs to the workspace itself.")
            if os.path.lexists(f"{folder}/.git"):
                raise PathRefused(path, f"{name!r} is a separate Git repository.")

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of the working file for a checked path; ``None`` for a missing file.

        Raises:
            PathRefused: As :meth:`locate`.
        """
        if not is_inside(path):
            raise PathRefused(path, "it leads out of the artifacts.")
        target = f"{self.root}/{path}"
        try:
            info = nofollow.status(target)  # which refuses a link on the way
        except OSError:
            try:
                info = nofollow.status(self.locate(path))  # which says why
            except FileNotFoundError:
                return None
        self._refuse_foreign(path, target)
        return info

    def identify(self, path: str) -> TreeEntry | None:
        """Return the tree entry that the working file would have; ``None`` for a missing file.

        Raises:
            FileTooLarge: It is over the limit.
            PathRefused: Something other than a file has that name.
        """
        info = self.status(path)
        if info is None:
            return None
        if stat.S_ISDIR(info.st_mode):
            raise PathRefused(path, "it is a directory.")
        return self._entry(path, self.root / path, info)

    def _entry(self, path: str, target: Path, info: os.stat_result) -> TreeEntry:
        if (known := self._known(path, info)) is not None:
            return known
        seen = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
        entry = TreeEntry(blob_id(self._read(path, target, info)), _mode(info))
        if info.st_ctime_ns < time.time_ns() - _RACY_NS:
            self._stamps[path] = Stamp(*seen, entry.oid, entry.mode)
            self._unkept += 1
        return entry

    def _known(self, path: str, info: os.stat_result) -> TreeEntry | None:
        """Return the entry of a file that was read before and has not changed since."""
        stamp = self._stamps.get(path)
        if (
            stamp is not None
            and stamp.mtime_ns == info.st_mtime_ns
            and stamp.ctime_ns == info.st_ctime_ns
            and stamp.size == info.st_size
            and stamp.inode == info.st_ino
        ):
            return stamp.entry
        return None

    def content(self, path: str) -> bytes:
        """Return the bytes of a working file; for a link, its target.

        Raises:
            ArtifactMissing: The file does not exist.
            FileTooLarge: It is over the limit.
        """
        target = self.locate(path)
        try:
            info = nofollow.status(target)
        except FileNotFoundError:
            raise ArtifactMissing(f"The artifacts have no file {path!r}.") from None
        return self._read(path, target, info)

    def _read(self, path: str, target: Path, info: os.stat_result) -> bytes:
        try:
            if stat.S_ISLNK(info.st_mode):
                return os.fsencode(nofollow.read_link(target))
            if not stat.S_ISREG(info.st_mode):
                raise PathRefused(path, "it is neither a file nor a link.")
            self.check_size(path, info.st_size)
            return nofollow.read(target)
        except (FileNotFoundError, NotADirectoryError):
            raise ArtifactMissing(f"The artifacts have no file {path!r}.") from None

    def check_size(self, path: str, size_bytes: int) -> None:
        """Refuse a file over the limit.

        Raises:
            FileTooLarge: The size is over the limit.
        """
        if size_bytes > self.max_file_bytes:
            raise FileTooLarge(
                f"{path!r} has {size_bytes:,} bytes, over the limit of {self.max_file_bytes:,} "
                "(`limits.max_file_bytes` in agentx.toml; "
                "a large pool of files is better declared as a source)."
            )

    def prepare(self, path: str, content: bytes, *, executable: bool = False, link: bool = False) -> Path:
        """Write new content to a temporary file beside its target, without syncing.

        Missing directories are created.

        Returns:
            The temporary file, for :meth:`put`.

        Raises:
            OSError: It could not be written; nothing is left behind but empty directories.
        """
        folder = self.locate(path).parent
        if link:
            nofollow.make_directory(folder, parents=True)
            temporary = folder / f"{TEMPORARY_PREFIX}{blob_id(content)[:12]}"
            nofollow.remove(temporary, missing_ok=True)
            nofollow.symlink(os.fsdecode(content), temporary)
            return temporary
        mode = 0o755 if executable else 0o644
        try:
            return write_temporary(folder, content, mode, sync=False)
        except FileNotFoundError:
            nofollow.make_directory(folder, parents=True)
            return write_temporary(folder, content, mode, sync=False)

    def put(self, temporary: Path, path: str) -> None:
        """Move prepared content to its final name, which :meth:`prepare` has checked."""
        nofollow.replace(temporary, self.root / path)

    def remove(self, path: str) -> None:
        """Remove a file, and any directories that become empty."""
        target = self.locate(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            nofollow.remove(target)
        self._stamps.pop(path, None)
        parent = target.parent
        while parent != self.root:
            try:
                nofollow.remove_directory(parent)
            except FileNotFoundError:
                pass
            except OSError:
                return  # not empty
            parent = parent.parent

    def listing(self) -> list[tuple[str, int]]:
        """Return path and size in bytes of every working file that is not ignored."""
        rules = IgnoreRules(self.root)
        found = self.walk(lambda name, directory: rules.ignores(name, directory=directory))
        return [(path, info.st_size) for path, info in found]

    def walk(self, ignores: Callable[[str, bool], bool]) -> Iterator[tuple[str, os.stat_result]]:
        """Yield files and links below the root, sorted, except ignored ones, ``.git`` and temporary files.

        Raises:
            LinkRefused: The root is a symbolic link.
        """
        with contextlib.suppress(FileNotFoundError):
            nofollow.require_directory(self.root)
        waiting: list[tuple[str, os.stat_result | None]] = [("", None)]
        while waiting:
            path, info = waiting.pop()
            stopping.go_on()
            if info is not None:
                yield path, info
                continue
            folder = f"{path}/" if path else ""
            # A directory that cannot be listed was removed meanwhile, or is unreadable, or its path is longer
            # than the system allows: _is_gone decides about the recorded files below it.
            with contextlib.suppress(OSError), nofollow.entries(self.root / folder) as entries:
                waiting += reversed(list(self._listed(folder, entries, ignores)))

    def _listed(
        self, folder: str, entries: list[os.DirEntry[str]], ignores: Callable[[str, bool], bool]
    ) -> Iterator[tuple[str, os.stat_result | None]]:
        """Yield the files of one directory, and, without a status, the directories to enter."""
        for entry in entries:
            path = folder + entry.name
            if entry.name.startswith(TEMPORARY_PREFIX):
                self._leftovers.append(path)
            elif entry.name == ".git":
                continue
            elif entry.is_dir(follow_symlinks=False):
                if self._is_part(path) and not ignores(path, True):
                    yield path, None
            elif not ignores(path, False):
                with contextlib.suppress(FileNotFoundError):
                    yield path, entry.stat(follow_symlinks=False)

    def _is_part(self, folder: str) -> bool:
        """Return whether a directory belongs to the artifacts; as in Git, a nested repository does not."""
        place = self.root / folder
        return str(place) not in self._skip and not os.path.lexists(f"{place}/.git")

    def _is_gone(self, path: str) -> bool:
        """Return whether a file that the walk did not meet is really gone.

        It may also be in a directory that the walk did not enter.
        """
        try:
            return stat.S_ISDIR(nofollow.status(resolve_inside(self.root, path)).st_mode)
        except (FileNotFoundError, NotADirectoryError, PathRefused):
            return True

    def _remove_leftovers(self) -> None:
        """Remove the temporary files that a crash left.

        The caller holds the workspace's lock, so no other process is about to rename them.
        """
        for leftover in self._leftovers:
            with contextlib.suppress(OSError):
                nofollow.remove(self.root / leftover)
        self._leftovers.clear()

    def are_one(self, paths: Sequence[str]) -> bool:
        """Return whether several names refer to one file: the file system does not tell them apart."""
        try:
            found = [nofollow.status(self.root / path) for path in paths]
        except OSError:
            return False
        return len({(info.st_dev, info.st_ino) for info in found}) == 1 and found[0].st_nlink == 1

    def scan(self, known: Mapping[str, TreeEntry]) -> Scan:
        """Compare the working files with a tree.

        A file that is not in the tree is skipped if a ``.gitignore`` matches it. Runs under the workspace's
        lock, and removes the temporary files that a crash left.

        Args:
            known: Tree entry by path.
        """
        rules = IgnoreRules(self.root)
        self._leftovers.clear()
        self._load_stamps()
        folders = {path[:end] for path in known for end in _slashes(path)}
        changes: list[FileChange] = []
        notes: list[str] = []
        seen: set[str] = set()
        for path, info in self.walk(
            lambda path, directory: (
                path not in known and path not in folders and rules.ignores(path, directory=directory)
            )
        ):
            seen.add(path)
            if path in known and self._known(path, info) == known[path]:
                continue
            try:
                check_path(path)
                if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
                    raise PathRefused(path, "it is neither a file nor a link.")
                # No check of the path's links: the walk entered nothing that is refused.
                entry = self._entry(path, self.root / path, info)
            except (AgentXError, OSError) as error:
                notes.append(f"{error} It is not recorded.")
                continue
            if entry != known.get(path):
                changes.append(change(path, known.get(path), entry, info.st_size))
        for path in sorted(known.keys() - seen):
            try:
                gone = self._is_gone(path)
            except OSError as error:
                notes.append(f"{path!r} cannot be accessed: {error.strerror}.")
                continue
            if gone:
                changes.append(change(path, known[path], None))
        self._remove_leftovers()
        self._keep_stamps(seen)
        return Scan(tuple(changes), tuple(notes))

    def _load_stamps(self) -> None:
        """Take over the stamps that another process kept."""
        if self._kept is not None and not self._loaded:
            self._stamps = load_stamps(self._kept, self.root) | self._stamps
        self._loaded = True

    def _keep_stamps(self, seen: set[str]) -> None:
        """Keep the stamps of the files that are there for other processes, once enough are new."""
        if self._kept is not None and self._unkept >= _READ_FILES:
            keep_stamps(
                self._kept, self.root, {path: self._stamps[path] for path in seen & self._stamps.keys()}
            )
            self._unkept = 0


def change(path: str, before: TreeEntry | None, after: TreeEntry | None, size_bytes: int = 0) -> FileChange:
    """Return the change of a file from one tree entry to another."""
    return FileChange(
        path=path,
        before=before.oid if before else "",
        after=after.oid if after else "",
        executable=after is not None and after.mode == EXECUTABLE,
        link=after is not None and after.mode == LINK,
        size_bytes=size_bytes,
    )


def entry_after(made: FileChange) -> TreeEntry | None:
    """Return the tree entry after a change; ``None`` if the file is gone."""
    if not made.after:
        return None
    return TreeEntry(made.after, LINK if made.link else EXECUTABLE if made.executable else REGULAR)


def _mode(info: os.stat_result) -> int:
    if stat.S_ISLNK(info.st_mode):
        return LINK
    return EXECUTABLE if info.st_mode & stat.S_IXUSR else REGULAR


def _slashes(path: str) -> Iterator[int]:
    return (index for index, character in enumerate(path) if character == "/")
