"""Git's index file, kept in step with the commits so that ``git status`` is clean whenever nobody is writing.

While the index file is behind the latest commit, the engine holds Git's own ``.git/index.lock``. Otherwise a
user's ``git stash``, ``git reset --hard`` or ``git add; git commit`` would work from the old index and revert
what was just written. All of this happens under the workspace's lock.

The lock contains a mark (:class:`Mark`). It also records the event up to which the working files are synced.
After a power cut, the next open checks only the files of later events.

Reading the index file takes time that grows with the number of files, so it is read only if another program
wrote it. Its last 20 bytes are the SHA-1 of what comes before them (gitformat-index), so they identify the
content. The engine records them, with the tree that the content equals, in ``.git/agentx-index-clean``; this
note survives the process.
"""

import contextlib
import functools
import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pygit2
from pygit2.ffi import ffi

from agentx.storage.errors import AgentXError, DiskRefused
from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, sync_file, write_synced
from agentx.storage.git.checked_reader import ObjectReader, TreeEntry
from agentx.storage.git.objects import blob_id

_MARK = b"agentx "
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GIT_WAIT_S = 10.0
_PAUSE_S = 0.02
_DIGITS = 18
_CHECKSUM_BYTES = 20
_RACY_NS = 2_000_000_000
"""Without a checksum, a younger file has no identity.

A second change within one clock tick (2 s on FAT) would be invisible.
"""

_SKIP_WORKTREE = 1 << 14
"""Extended flag of an index entry (gitformat-index): Git never checks the working file for changes."""


class GitIsBusy(AgentXError):
    """A git command holds ``.git/index.lock``."""


class IndexNotWritten(DiskRefused):
    """Git's index file could not be written: a full disk, missing rights."""


class Mark(msgspec.Struct, frozen=True):
    """The content of the engine's lock.

    Attributes:
        pid: Process that took it.
        seq: Everything up to this event is committed, and synced in working files and Git objects.
        boot: Identifies the boot of the machine; empty if the system does not provide it.
    """

    pid: int
    seq: int
    boot: str

    @classmethod
    def of_this_process(cls, seq: int) -> "Mark":
        """Return the mark of this process."""
        return cls(os.getpid(), seq, this_boot())

    @property
    def rebooted(self) -> bool:
        """Whether the machine may have restarted since, so that unsynced data may be lost."""
        return not self.boot or self.boot != this_boot()

    @property
    def is_left(self) -> bool:
        """Whether the process that took the lock has died."""
        if self.boot != this_boot() or self.pid <= 0:
            return True
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            return False
        return False

    def encode(self) -> bytes:
        """Encode as in the file: ``agentx PID SEQ BOOT``."""
        return _MARK + f"{self.pid} {self.seq} {self.boot}".rstrip().encode()


def read_mark(git_dir: Path) -> Mark | None:
    """Read the engine's mark in ``.git/index.lock``; ``None`` if nobody, or Git, holds the lock."""
    try:
        content = nofollow.read(git_dir / "index.lock")
    except OSError:
        return None
    if not content.startswith(_MARK):
        return None
    pid, seq, boot = (*content[len(_MARK) :].decode("ascii", "replace").split(), "", "", "")[:3]
    return Mark(_number(pid), _number(seq), boot)


def _number(text: str) -> int:
    """Parse a number; 0 if the text cannot be a process id or an event number."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


@functools.cache
def this_boot() -> str:
    """Return an identifier of the current boot, on Linux; empty elsewhere."""
    try:
        return nofollow.read_text(_BOOT_ID).strip()
    except (OSError, ValueError):
        return ""


class _Index(pygit2.Index):
    """A readable index file. pygit2's own class prints an error on stderr if the file is damaged."""

    _index: Any = ffi.NULL


class IndexFile:
    """The index file of a workspace and the lock that guards it.

    Args:
        git_dir: The ``.git`` directory.
        outer: Whether the artifacts are outside the working directory, so that Git must not look for them
            there.
    """

    def __init__(self, git_dir: Path, *, outer: bool = False) -> None:
        self._path = git_dir / "index"
        self._lock = git_dir / "index.lock"
        self._scratch = git_dir / "agentx-index"
        self._note = git_dir / "agentx-index-clean"
        self._outer = outer
        self._clean = ""
        self._parsed: tuple[str, _Index] | None = None

    def hold(self, seq: int = 0) -> None:
        """Keep git commands off the index until :meth:`refresh` releases it; cheap if it is held already.

        Args:
            seq: The last event that is committed and synced; 0 if unknown.

        Raises:
            GitIsBusy: A git command holds the lock and does not release it.
            IndexNotWritten: The lock file could not be written.
        """
        deadline = 0.0
        while True:
            try:
                mark = self.mark
                if mark is not None and not mark.is_left:
                    return
                if mark is not None:  # take over a dead engine's lock; its events are still not synced
                    self._put(Mark.of_this_process(mark.seq), os.replace)
                    return
                self._put(Mark.of_this_process(seq), os.link)
            except FileExistsError:
                deadline = deadline or time.monotonic() + self._patience_s()
                if time.monotonic() > deadline:
                    raise GitIsBusy(
                        f"A git command is at work in this workspace ({self._lock} is there). "
                        "Wait for it; if no git command is running, delete that file."
                    ) from None
                time.sleep(_PAUSE_S)
            except OSError as error:
                raise IndexNotWritten(
                    f"{self._lock} could not be written: {error.strerror}. Make room, or fix permissions, "
                    "then repeat; `agentx log` shows what was recorded."
                ) from error
            else:
                return

    def _patience_s(self) -> float:
        """Return how long to wait for the git command that holds the lock.

        It is less if the command has held it for long already. Writers come one after another, and each waits
        while it holds the workspace's lock.
        """
        with contextlib.suppress(OSError):
            age_s = time.time() - nofollow.status(self._lock).st_mtime
            return min(max(_GIT_WAIT_S - age_s, _GIT_WAIT_S / 10), _GIT_WAIT_S)
        return _GIT_WAIT_S

    def _put(self, mark: Mark, name: Callable[[Path, Path], None]) -> None:
        """Create the lock durably in one step, with its mark inside.

        An empty lock, left by a crash, would be mistaken for Git's.
        """
        beside = self._lock.with_name("agentx-index-mark")
        write_synced(beside, mark.encode())
        try:
            name(beside, self._lock)
            sync_directory(self._lock.parent)
        finally:
            nofollow.remove(beside, missing_ok=True)

    @property
    def mark(self) -> Mark | None:
        """The engine's mark in the lock; ``None`` if nobody, or Git, holds the lock."""
        return read_mark(self._lock.parent)

    @property
    def held(self) -> bool:
        """Whether the engine (in any process) holds the lock."""
        return self.mark is not None

    @property
    def held_by_us(self) -> bool:
        """Whether this process holds the lock."""
        mark = self.mark
        return mark is not None and (mark.pid, mark.boot) == (os.getpid(), this_boot())

    def is_clean(self, tree: str) -> bool:
        """Return whether the file is as the engine wrote it, with nothing staged.

        Does not read the whole file.

        Args:
            tree: The tree of the latest commit. A note of another process counts only if it names this tree.
        """
        identity = self._identity()
        if identity and identity == self._clean:
            return True
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if identity and nofollow.read_text(self._note) == _noted(identity, tree):
                self._clean = identity
                return True
        return False

    def _identity(self) -> str:
        """Return an identifier of the file's content; empty without a file or a reliable identifier."""
        try:
            fd = nofollow.open_descriptor(self._path)
        except FileNotFoundError:
            return ""
        try:
            info = os.fstat(fd)
            checksum = os.pread(fd, _CHECKSUM_BYTES, max(0, info.st_size - _CHECKSUM_BYTES))
        finally:
            os.close(fd)
        if any(checksum):
            return f"{info.st_size} {checksum.hex()}"
        if info.st_ctime_ns > time.time_ns() - _RACY_NS:  # `index.skipHash`: rely on file times
            return ""
        return f"{info.st_size} {info.st_ino} {info.st_mtime_ns} {info.st_ctime_ns}"

    def discard_damaged(self, tree: str) -> bool:
        """Remove an index file that cannot be read, as after a power cut; return whether it was removed.

        Args:
            tree: As for :meth:`is_clean`.
        """
        try:
            if not self.is_clean(tree):
                self._read()
        except pygit2.GitError:
            nofollow.remove(self._path, missing_ok=True)
            return True
        return False

    def _read(self) -> _Index:
        """Parse the whole file, once for each content."""
        identity = self._identity()
        if self._parsed is None or not identity or self._parsed[0] != identity:
            self._parsed = identity, _Index(str(self._path))
        return self._parsed[1]

    def staged(self, names: Collection[str], tree: str) -> dict[str, TreeEntry]:
        """Return the file's entries for some names if the user may have staged something; otherwise nothing.

        Args:
            names: Paths relative to the working directory.
            tree: As for :meth:`is_clean`.
        """
        if not names or self.is_clean(tree):
            return {}
        found: dict[str, TreeEntry] = {}
        with contextlib.suppress(pygit2.GitError):  # damaged: it is rebuilt at the end of the turn
            index = self._read()
            for name in names:
                with contextlib.suppress(KeyError):
                    found[name] = TreeEntry(str(index[name].id), int(index[name].mode))
        return found

    def _differences(self, tree: str) -> dict[str, TreeEntry | None]:
        """Return the changes that make the file equal a tree.

        A damaged file is removed, so everything changes.

        Returns:
            An entry by path, ``None`` for a path to remove.
        """
        try:
            index = _Index(str(self._path))
        except pygit2.GitError:
            nofollow.remove(self._path, missing_ok=True)
            index = _Index(str(self._path))
        known = {str(entry.path): TreeEntry(str(entry.id), int(entry.mode)) for entry in index}
        for conflict in index.conflicts or ():
            known |= {str(entry.path): TreeEntry("", 0) for entry in conflict if entry is not None}
        reader = ObjectReader(self._path.parent)
        wanted: dict[str, TreeEntry | None] = dict.fromkeys(known)
        wanted |= dict(reader.files(tree)) if tree else {}
        return {path: entry for path, entry in wanted.items() if known.get(path) != entry or entry is None}

    def release(self) -> None:
        """Release Git's index lock although the index file is behind.

        Git commands are needed to fix what stops the engine.
        """
        if self.held:
            nofollow.remove(self._lock, missing_ok=True)

    def refresh(self, changes: Mapping[str, TreeEntry | None] | None, root: Path, tree: str) -> None:
        """Update the index file to the latest commit and release Git's index lock.

        Args:
            changes: Every path that differs from the index file's entry; ``None`` for a removed path. If the
                whole argument is ``None``, the file is made to equal the tree, whatever it contains.
            root: The working directory. Times and sizes of its files are stored, so that ``git status`` need
                not read them.
            tree: The tree that results from the changes.
        """
        self.hold()
        try:
            if changes is None:
                changes = self._differences(tree)
            if changes:
                self._write(changes, root, tree)
            nofollow.remove(self._lock, missing_ok=True)
        except (pygit2.GitError, KeyError, OSError) as error:
            raise IndexNotWritten(
                f"{self._path} could not be written ({error}), so git commands stay blocked until it can be."
            ) from error

    def _write(self, changes: Mapping[str, TreeEntry | None], root: Path, tree: str) -> None:
        clean = self.is_clean(tree) or not self._differences(tree).keys() - changes.keys()
        try:
            index = self._copy()
        except pygit2.GitError:
            changes, clean = self._differences(tree), True
            index = self._copy()
        unmerged = {one.path for stages in index.conflicts or () for one in stages if one is not None}
        clean = clean and not unmerged
        for path, entry in changes.items():
            if path in unmerged:
                continue  # a merge of the user, who must resolve it
            if entry is not None:
                index.add(_StatEntry(path, entry, root, skip=self._outer and path.startswith("artifacts/")))
            elif path in index:
                index.remove(path)
        index.write()
        sync_file(self._scratch)
        nofollow.replace(self._scratch, self._path)
        sync_directory(self._path.parent)  # before the lock is released
        self._parsed = None
        self._clean = self._identity() if clean else ""
        if clean:
            with contextlib.suppress(OSError):  # a cache: without it, the next open reads the index file
                nofollow.write(self._note, _noted(self._clean, tree).encode())

    def _copy(self) -> _Index:
        """Return a copy of the file, to be changed and renamed over it."""
        for leftover in (self._scratch, self._scratch.with_name(f"{self._scratch.name}.lock")):
            nofollow.remove(leftover, missing_ok=True)  # from a crash

        if nofollow.exists(self._path):
            nofollow.write(self._scratch, nofollow.read(self._path))
        return _Index(str(self._scratch))


def _noted(identity: str, tree: str) -> str:
    return f"{identity}\n{tree}\n"


class _StatEntry(pygit2.IndexEntry):
    """An index entry with the working file's stat data, which pygit2's own class leaves out.

    A file edited since the commit gets no stat data: Git would take it as unchanged and hide the edit.
    """

    def __init__(self, path: str, entry: TreeEntry, root: Path, *, skip: bool) -> None:
        super().__init__(path, pygit2.Oid(hex=entry.oid), pygit2.enums.FileMode(entry.mode))
        self._skip = skip
        self._stat: os.stat_result | None = None
        if not skip:
            with contextlib.suppress(OSError):
                info = nofollow.status(root / path)
                if blob_id(_content(root / path, info)) == entry.oid:
                    self._stat = info

    def _to_c(self) -> tuple[Any, Any]:
        entry, path = super()._to_c()
        if self._skip:
            entry.flags_extended = _SKIP_WORKTREE
        if self._stat is not None:
            info = self._stat
            entry.mtime.seconds, entry.mtime.nanoseconds = divmod(info.st_mtime_ns, 1_000_000_000)
            entry.ctime.seconds, entry.ctime.nanoseconds = divmod(info.st_ctime_ns, 1_000_000_000)
            entry.dev, entry.ino = info.st_dev & 0xFFFFFFFF, info.st_ino & 0xFFFFFFFF
            entry.uid, entry.gid = info.st_uid, info.st_gid
            entry.file_size = info.st_size & 0xFFFFFFFF
        return entry, path


def _content(path: Path, info: os.stat_result) -> bytes:
    if stat.S_ISLNK(info.st_mode):
        return os.fsencode(nofollow.read_link(path))
    return nofollow.read(path) if stat.S_ISREG(info.st_mode) else b""


def is_abandoned(git_dir: Path) -> bool:
    """Return whether a dead engine left the lock: it was interrupted while writing."""
    mark = read_mark(git_dir)
    return mark is not None and mark.is_left
