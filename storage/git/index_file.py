"""Git's index file, kept in step with the commits so that ``git status`` is clean whenever nobody is writing.

While a commit has moved on and the index file has not, the engine holds Git's own ``.git/index.lock``: otherwise a
person's ``git stash``, ``git reset --hard`` or ``git add; git commit`` would work from the old index and revert what was
just written. All of it happens under the workspace's lock.

What stands in the lock is a mark (:class:`Mark`). It also says from which event on the working files are not synced yet,
so that the next open knows after a power cut which of them to look at.
"""

import contextlib
import functools
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pygit2

from agentx.storage.durable import sync_directory, sync_file, write_synced
from agentx.storage.errors import AgentXError
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repository import TreeEntry

_MARK = b"agentx "
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GIT_WAIT_S = 10.0
_PAUSE_S = 0.02
_DIGITS = 18
_SKIP_WORKTREE = 1 << 14
"""Extended flag of an index entry (gitformat-index): Git takes the working file as unchanged and never looks at it."""


class GitIsBusy(AgentXError):
    """A git command holds ``.git/index.lock``."""


class IndexNotWritten(AgentXError):
    """Git's index file could not be written: a full disk, missing rights."""


class Mark(msgspec.Struct, frozen=True):
    """What the engine's lock says.

    Attributes:
        pid: Process that took it.
        seq: Everything up to this event is settled: committed, and on the disk in working files and Git objects.
        boot: Identifies the run of the machine; empty where the system does not tell.
    """

    pid: int
    seq: int
    boot: str

    @classmethod
    def of_this_process(cls, seq: int) -> "Mark":
        """The mark that this process leaves."""
        return cls(os.getpid(), seq, this_boot())

    @property
    def rebooted(self) -> bool:
        """Whether the machine may have gone down since: what was not synced may be lost."""
        return not self.boot or self.boot != this_boot()

    @property
    def is_left(self) -> bool:
        """Whether the process that took it is gone."""
        return self.boot != this_boot() or not _alive(self.pid)

    def encode(self) -> bytes:
        """As it stands in the file: ``agentx PID SEQ BOOT``."""
        return _MARK + f"{self.pid} {self.seq} {self.boot}".rstrip().encode()


def read_mark(git_dir: Path) -> Mark | None:
    """The engine's mark in ``.git/index.lock``; ``None`` where nobody, or Git, holds it."""
    try:
        content = (git_dir / "index.lock").read_bytes()
    except OSError:
        return None
    if not content.startswith(_MARK):
        return None
    pid, seq, boot = (*content[len(_MARK) :].decode("ascii", "replace").split(), "", "", "")[:3]
    return Mark(_number(pid), _number(seq), boot)


def _number(text: str) -> int:
    """The number that a text says; 0 where it says none that a process or an event could have."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


@functools.cache
def this_boot() -> str:
    """Identifies the run of the machine, on Linux; empty elsewhere."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


class IndexFile:
    """The index file of a workspace and the lock that guards it.

    Args:
        git_dir: The ``.git`` directory.
        outer: Whether the artifacts lie outside the working directory, so that Git must not look for them there.
    """

    def __init__(self, git_dir: Path, *, outer: bool = False) -> None:
        self._path = git_dir / "index"
        self._lock = git_dir / "index.lock"
        self._scratch = git_dir / "agentx-index"
        self._outer = outer
        self._written: tuple[int, ...] = ()

    def hold(self, seq: int = 0) -> None:
        """Keep git commands off the index until :meth:`refresh` releases it; cheap where it is held already.

        Args:
            seq: The last event that is settled now; 0 where it is not known.

        Raises:
            GitIsBusy: A git command holds the lock and does not let go.
            IndexNotWritten: The disk refuses.
        """
        deadline = time.monotonic() + _GIT_WAIT_S
        while True:
            try:
                mark = self.mark
                if mark is not None and not mark.is_left:
                    return
                if mark is not None:  # a dead engine's is taken over: what it left unsettled is so still
                    self._put(Mark.of_this_process(mark.seq), os.replace)
                    return
                self._put(Mark.of_this_process(seq), os.link)
            except FileExistsError:
                if time.monotonic() > deadline:
                    raise GitIsBusy(
                        f"A git command is at work in this workspace ({self._lock} is there). "
                        "Wait for it; if no git command is running, delete that file."
                    ) from None
                time.sleep(_PAUSE_S)
            except OSError as error:
                raise IndexNotWritten(f"{self._lock} could not be written: {error.strerror}.") from error
            else:
                return

    def _put(self, mark: Mark, name: Callable[[Path, Path], None]) -> None:
        """Make the lock with its mark inside in one step, durably: an empty one, left by a crash, would pass for Git's."""
        beside = self._lock.with_name("agentx-index-mark")
        write_synced(beside, mark.encode())
        try:
            name(beside, self._lock)
            sync_directory(self._lock.parent)
        finally:
            beside.unlink(missing_ok=True)

    @property
    def mark(self) -> Mark | None:
        """What the engine's lock says; ``None`` where nobody, or Git, holds it."""
        return read_mark(self._lock.parent)

    @property
    def held(self) -> bool:
        """Whether the engine (in any process) holds the lock."""
        return self.mark is not None

    @property
    def touched(self) -> bool:
        """Whether someone else may have written the index file since :meth:`refresh` did."""
        return not self._written or self._written != self._stamp()

    def _stamp(self) -> tuple[int, ...]:
        try:
            info = os.stat(self._path)
        except FileNotFoundError:
            return ()
        return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns

    def discard_damaged(self) -> bool:
        """Remove an index file that cannot be read, as a power cut leaves it; whether it was one."""
        try:
            if self._path.exists():
                pygit2.Index(str(self._path))
        except pygit2.GitError:
            self._path.unlink(missing_ok=True)
            return True
        return False

    def entries(self) -> dict[str, TreeEntry]:
        """Everything that the index file holds."""
        if not self._path.exists():
            return {}
        return {
            entry.path: TreeEntry(str(entry.id), int(entry.mode)) for entry in pygit2.Index(str(self._path))
        }

    def release(self) -> None:
        """Let git commands in although the index file is behind: they are needed to mend what stops the engine."""
        if self.held:
            self._lock.unlink(missing_ok=True)

    def refresh(self, changes: Mapping[str, TreeEntry | None], root: Path) -> None:
        """Bring the index file up to the commits and let git commands in again.

        Args:
            changes: Every path that differs from what the index file says; ``None`` for a path that is gone.
            root: The working directory, whose files' times and sizes go in, so that ``git status`` need not read them.
        """
        self.hold()
        try:
            self._write(changes, root)
            self._lock.unlink(missing_ok=True)
        except (pygit2.GitError, OSError) as error:
            raise IndexNotWritten(
                f"{self._path} could not be written ({error}), so git commands are kept out until it can."
            ) from error

    def _write(self, changes: Mapping[str, TreeEntry | None], root: Path) -> None:
        if changes:
            self._scratch.unlink(missing_ok=True)
            self._scratch.with_name(f"{self._scratch.name}.lock").unlink(
                missing_ok=True
            )  # of a crash amid `write`
            if self._path.exists():
                self._scratch.write_bytes(self._path.read_bytes())
            index = pygit2.Index(str(self._scratch))
            for path, entry in changes.items():
                if entry is not None:
                    index.add(
                        _StatEntry(path, entry, root, skip=self._outer and path.startswith("artifacts/"))
                    )
                elif path in index:
                    index.remove(path)
            index.write()
            sync_file(self._scratch)
            os.replace(self._scratch, self._path)
            sync_directory(self._path.parent)  # before the lock goes
            self._written = self._stamp()


class _StatEntry(pygit2.IndexEntry):
    """An index entry with the working file's stat data, which pygit2's own leaves out.

    A file that was edited since gets none: Git would take the edit for what the entry says, and hide it.
    """

    def __init__(self, path: str, entry: TreeEntry, root: Path, *, skip: bool) -> None:
        super().__init__(path, pygit2.Oid(hex=entry.oid), pygit2.enums.FileMode(entry.mode))
        self._skip = skip
        self._stat: os.stat_result | None = None
        if not skip:
            with contextlib.suppress(OSError):
                info = os.lstat(root / path)
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
        return os.fsencode(os.readlink(path))
    return path.read_bytes() if stat.S_ISREG(info.st_mode) else b""


def is_abandoned(git_dir: Path) -> bool:
    """Whether an engine that is dead now left the lock: it was cut off while it wrote."""
    mark = read_mark(git_dir)
    return mark is not None and mark.is_left


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
