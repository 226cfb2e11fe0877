"""Copy a tree for a run, and report afterwards what the run changed in the copy.

The invariants: symbolic links are never followed, neither while copying nor while collecting; only regular
files are opened; the collected changes are bounded in number and size, with a note for what is left out.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.ignore import IgnoreRules
from agentx.storage.matching import globs

CACHES = (
    *("__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/", ".nox/"),
    *(".eggs/", "*.egg-info/", "node_modules/", "*.pyc", ".coverage", ".coverage.*", ".DS_Store"),
)
"""Caches and leftovers of tools, as .gitignore patterns: never reported as a change."""

RACY_NS = 50_000_000
"""File times are as coarse as a kernel tick.

A file time this close to the end of the copy proves nothing.
"""

CHUNK_BYTES = 1 << 20
MAX_DEPTH = 100
"""Directories nested deeper are skipped: paths would exceed what systems accept."""
SHOWN = 5
"""Number of paths that a note names."""


class TreeTooLargeError(AgentXError):
    """The tree exceeds the limits for a copy."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Limits for a copy and for the reported changes.

    Attributes:
        max_files: Maximum number of files and directories; more are refused.
        max_total_bytes: Maximum total size; more is refused.
        max_file_bytes: A larger file is left out of the copy, with a note.
        max_changes: Maximum number of changes reported.
        max_change_bytes: Maximum total content of the reported changes.
    """

    max_files: int = 50_000
    max_total_bytes: int = 2 << 30
    max_file_bytes: int = 256 << 20
    max_changes: int = 500
    max_change_bytes: int = 32 << 20


class ChangedFile(NamedTuple):
    """One file that a run wrote or deleted.

    Attributes:
        path: Path relative to the tree, with ``/``.
        content: Its current content; None if it was deleted.
        executable: Whether its owner may execute it.
    """

    path: str
    content: bytes | None
    executable: bool


class _Seen(NamedTuple):
    """State of a copied file at the start of the run."""

    inode: int
    ctime_ns: int
    size: int
    executable: bool
    digest: bytes


class TreeCopy:
    """A copy of a tree that can report what a run changed in it.

    Attributes:
        root: Root directory of the copy.
    """

    def __init__(
        self, source: Path, target: Path, limits: TreeLimits, *, exclude: Sequence[str] = ()
    ) -> None:
        """Copy files, directories and links (as links) to a new directory, with modes and times.

        Skips every ``.git`` and what ``exclude`` matches. Files that are too large, unreadable or not regular
        are left out with a note. An absolute link into the source is redirected into the copy, so that a
        program that writes through it does not reach the original.

        ``target`` must not exist. ``exclude`` has patterns, as in ``.gitignore``, of what is not copied.

        Raises:
            TreeTooLargeError: The tree exceeds the limits.
            OSError: The copy cannot be written (a full disk).
        """
        # Both are canonical, so that no link is followed below them. Otherwise a process that the command
        # left running could create a link while the changes are read, and pass off an outside file as output.
        self.root = nofollow.canonical(target)
        self._source = nofollow.canonical(source)
        self._named = source.absolute()
        self._limits = limits
        self._excluded = globs.spec([".git", *exclude])
        self._caches = GitIgnoreSpec.from_lines(CACHES)
        self._ignore = IgnoreRules(source)  # the source's rules: a run cannot change them in its copy
        self._left_out: dict[str, list[str]] = {}
        self._files: dict[str, _Seen] = {}
        self._links: dict[str, str] = {}
        self._copy()
        self._done_ns = time.time_ns()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why: one sentence per reason, naming the first few paths."""
        return tuple(
            f"{reason}: {', '.join(paths[:SHOWN])}"
            + (f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else "")
            for reason, paths in self._left_out.items()
        )

    def changes(self) -> tuple[ChangedFile, ...]:
        """Return the differences from the original copy: deletions first, then writes, each sorted by path.

        Caches and files ignored by the tree's own ``.gitignore`` files do not count. Links are never followed
        and never reported as changes; a note names those that were created or changed.
        """
        try:
            files, links = self._list_now()
        except TreeTooLargeError:
            self._leave_out("too many files after the run, so its changes were not kept, in", "")
            return ()
        for path in sorted(links.keys() | self._links.keys()):
            if links.get(path) != self._links.get(path) and path not in files:
                self._leave_out("changed links are not kept", path)
        gone = sorted(self._files.keys() - files.keys() - links.keys())
        written = [path for path in sorted(files) if not self._is_same(path, files[path])]
        changed: list[ChangedFile] = []
        room = self._limits.max_change_bytes
        for path in [*filter(self._is_content, gone), *written]:
            now = files.get(path)
            size = now.st_size if now else 0
            if len(changed) >= self._limits.max_changes or size > room:
                self._leave_out("changed, but not kept, because the run changed too much", path)
            elif now is None:
                changed.append(ChangedFile(path, None, executable=False))
            elif (content := self._read(path)) is not None:
                room -= size
                changed.append(ChangedFile(path, content, executable=bool(now.st_mode & stat.S_IXUSR)))
        return tuple(changed)

    def _copy(self) -> None:
        self.root.mkdir()
        total = 0
        directories = [(self._source, self.root)]
        for path, entry in self._walk(
            self._source, lambda path, is_dir: self._excluded.match_file(path + "/" * is_dir)
        ):
            goal = self.root / path
            if entry.is_symlink():
                leads = (self._source / path).readlink()
                base = next((one for one in (self._named, self._source) if leads.is_relative_to(one)), None)
                if base is not None:
                    leads = self.root / leads.relative_to(base)
                goal.symlink_to(leads)
                self._links[path] = str(leads)
            elif entry.is_dir(follow_symlinks=False):
                goal.mkdir()
                directories.append((self._source / path, goal))
            elif entry.is_file(follow_symlinks=False):
                total += self._copy_file(path)
            else:
                self._leave_out("left out of the copy, being neither files nor directories", path)
            if total > self._limits.max_total_bytes:
                raise self._too_large(f"{self._limits.max_total_bytes} bytes")
        for original, made in reversed(directories):  # last: writing into a directory changes its times
            _give_mode_and_times(made, original.lstat(), at_least=stat.S_IRWXU)

    def _copy_file(self, path: str) -> int:
        try:
            source = nofollow.open_descriptor(self._source / path)
        except OSError:
            self._leave_out("left out of the copy, because they cannot be read", path)
            return 0
        with open(source, "rb") as reader:
            was = os.fstat(source)
            goal = self.root / path
            digest = _digest()
            size = was.st_size
            if size <= self._limits.max_file_bytes:
                size = 0
                with goal.open("xb") as writer:
                    while (part := reader.read(CHUNK_BYTES)) and size <= self._limits.max_file_bytes:
                        digest.update(part)
                        size += writer.write(part)
            if size > self._limits.max_file_bytes:  # it may have grown since its size was read
                goal.unlink(missing_ok=True)
                self._leave_out(
                    f"left out of the copy, being larger than {self._limits.max_file_bytes} bytes", path
                )
                return 0
        _give_mode_and_times(goal, was)
        now = goal.lstat()
        self._files[path] = _Seen(
            now.st_ino, now.st_ctime_ns, now.st_size, bool(now.st_mode & stat.S_IXUSR), digest.digest()
        )
        return now.st_size

    def _list_now(self) -> tuple[dict[str, os.stat_result], dict[str, str]]:
        """Return the files and links of the copy that count as content."""
        files: dict[str, os.stat_result] = {}
        links: dict[str, str] = {}
        for path, entry in self._walk(self.root, self._is_ignored):
            if entry.is_symlink():
                links[path] = os.readlink(self.root / path)
            elif entry.is_file(follow_symlinks=False):
                files[path] = entry.stat(follow_symlinks=False)
        return files, links

    def _walk(self, root: Path, skip: Callable[[str, bool], bool]) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield all entries below a directory with relative paths, sorted, parents before children."""
        most = self._limits.max_files
        seen = 0
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            try:
                held = nofollow.open_directory(root / directory)
            except OSError:
                self._leave_out("directories that cannot be read were left out", directory)
                continue
            try:
                with os.scandir(held) as entries:
                    found = sorted(islice(entries, most + 1), key=lambda entry: entry.name)
                seen += len(found)
                if seen > most:
                    raise self._too_large(f"{most} files and directories")
                below = []
                for entry in found:
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    is_dir = entry.is_dir(follow_symlinks=False)
                    if not _is_text(path):
                        self._leave_out("left out, because their names are not UTF-8", ascii(path))
                    elif not skip(path, is_dir):
                        yield path, entry
                        if is_dir and path.count("/") < MAX_DEPTH:
                            below.append(path)
                        elif is_dir:
                            self._leave_out(f"directories more than {MAX_DEPTH} deep were left out", path)
                waiting.extend(reversed(below))
            finally:
                os.close(held)

    def _is_ignored(self, path: str, is_dir: bool) -> bool:  # noqa: FBT001 - as _walk calls it
        return self._caches.match_file(path + "/" * is_dir) or self._ignore.ignores(path, directory=is_dir)

    def _is_content(self, path: str) -> bool:
        """Return whether neither the file nor a directory above it is ignored."""
        above = (str(directory) for directory in PurePosixPath(path).parents if directory.name)
        return not (self._is_ignored(path, False) or any(self._is_ignored(one, True) for one in above))

    def _is_same(self, path: str, now: os.stat_result) -> bool:
        was = self._files.get(path)
        if was is None or was.size != now.st_size or was.executable != bool(now.st_mode & stat.S_IXUSR):
            return False
        untouched = (was.inode, was.ctime_ns) == (now.st_ino, now.st_ctime_ns)
        if untouched and was.ctime_ns < self._done_ns - RACY_NS:
            return True
        try:
            with open(nofollow.open_descriptor(self.root / path), "rb") as reader:
                return hashlib.file_digest(reader, _digest).digest() == was.digest
        except OSError:
            return False

    def _read(self, path: str) -> bytes | None:
        try:
            with nofollow.open_file(self.root / path) as reader:
                return reader.read()
        except OSError:
            self._leave_out("changed, but cannot be read", path)
            return None

    def _too_large(self, limit: str) -> TreeTooLargeError:
        return TreeTooLargeError(
            f"{self._source} contains more than {limit}, so it is not copied for a check: "
            "exclude files that the check does not need"
        )

    def _leave_out(self, reason: str, path: str) -> None:
        self._left_out.setdefault(reason, []).append(path or ".")


def _digest() -> "hashlib.blake2b":
    return hashlib.blake2b(digest_size=16)


def _give_mode_and_times(path: Path, like: os.stat_result, *, at_least: int = 0) -> None:
    path.chmod(like.st_mode & 0o777 | at_least)  # never set-user-id
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
