"""The one branch of a workspace: read it, and move it by compare-and-swap in Git's own file format.

Git's files backend uses three small files: ``refs/heads/main`` holds the commit id, ``…/main.lock`` keeps
other writers out while the branch is replaced, and ``logs/refs/heads/main`` (the reflog) gets a line for each
move. libgit2 can do the same, but it reads the whole reflog and the user's configuration for each move, so a
move would cost more with every commit.
"""

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agentx.storage.errors import AgentXError, WriterConflict
from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, sync_file

BRANCH = "refs/heads/main"

_OID = re.compile(rb"[0-9a-f]{40}")
_NONE = "0" * 40
_WAIT_S = 3.0
_PAUSE_S = 0.01
_TAIL_BYTES = 64 * 1024
_SCRATCH = "agentx-ref"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class RefLocked(AgentXError):
    """A running or dead git command holds the lock of the branch."""


class Move(msgspec.Struct, frozen=True):
    """One line of the reflog: the branch moved from one commit (empty for none) to another."""

    old: str
    new: str
    note: str


class Branch:
    """The branch ``main`` of one repository.

    Args:
        git_dir: The ``.git`` directory.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._path = git_dir / BRANCH
        self._lock = git_dir / f"{BRANCH}.lock"
        self._scratch = git_dir / _SCRATCH
        self._log = git_dir / "logs" / BRANCH
        self._unsynced = False

    def read(self) -> str:
        """Return the commit that the branch names; empty before the first."""
        with contextlib.suppress(FileNotFoundError):
            found = nofollow.read(self._path).strip()
            return found.decode() if _OID.fullmatch(found) else ""
        with contextlib.suppress(FileNotFoundError):
            for line in nofollow.read(self._git_dir / "packed-refs").splitlines():
                oid, _, name = line.partition(b" ")
                if name == BRANCH.encode() and _OID.fullmatch(oid):
                    return oid.decode()
        return ""

    def move(self, moves: Sequence[Move], who: str) -> None:
        """Move the branch to another commit, by one or more steps, if it still names the commit before.

        Args:
            moves: The steps, each with a note for the reflog, of one line.
            who: For the reflog: ``name <address>``.

        Raises:
            WriterConflict: The branch names another commit.
            RefLocked: Git's lock of the branch was not released in time.
            OSError: A file could not be written.
        """
        new, expected = moves[-1].new, moves[0].old
        with nofollow.opened_directory(self._git_dir) as folder:
            self._take(new, folder)
            try:
                if moved := self.read() != expected:
                    nofollow.remove(self._lock)
                else:
                    self._note(moves, who)
                    nofollow.replace(self._lock, self._path)
                    self._unsynced = True
            except BaseException:
                nofollow.remove(self._lock, missing_ok=True)
                raise
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(_SCRATCH, dir_fd=folder)
        if moved:
            raise WriterConflict(
                f"Another writer moved {self._path}; recorded events will be in the next commit."
            )

    def _take(self, new: str, folder: int) -> None:
        """Take the lock in one step, with the new id inside.

        An empty lock, left by a crash, would be mistaken for Git's. So the lock is a hard link to a scratch
        file that is kept until the move is done: after a crash, the scratch file shows that the engine took
        the lock, whichever commit it names. Runs under the workspace's lock.
        """
        try:
            fd = os.open(_SCRATCH, _NEW, 0o644, dir_fd=folder)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if nofollow.same_file(self._scratch, self._lock):  # the engine took it, and then crashed
                    nofollow.remove(self._lock)
            nofollow.remove(self._scratch)
            fd = os.open(_SCRATCH, _NEW, 0o644, dir_fd=folder)
        try:
            os.write(fd, new.encode() + b"\n")
        finally:
            os.close(fd)
        deadline = time.monotonic() + _WAIT_S
        while True:
            try:
                nofollow.link(self._scratch, self._lock)
            except FileExistsError:
                if time.monotonic() > deadline:  # `git gc` holds the lock only briefly
                    nofollow.remove(self._scratch)
                    raise RefLocked(
                        f"{self._lock} is held, so recorded events are not committed yet. "
                        "If no git command is running, delete that file."
                    ) from None
                time.sleep(_PAUSE_S)
            except FileNotFoundError as error:  # Git removes ref directories that became empty
                nofollow.make_directory(self._lock.parent, parents=True)
                if not nofollow.exists(self._scratch):  # the workspace's lock did not keep another writer out
                    raise WriterConflict(
                        f"Another writer is moving {self._path}; recorded events will be in the next commit."
                    ) from error
            else:
                return

    def break_lock(self) -> None:
        """Remove the lock, whoever took it: the machine has restarted since."""
        nofollow.remove(self._lock, missing_ok=True)

    def _note(self, moves: Sequence[Move], who: str) -> None:
        when = f"{who} {int(time.time())} +0000"
        lines = "".join(f"{move.old or _NONE} {move.new} {when}\t{move.note}\n" for move in moves)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            fd = nofollow.open_descriptor(self._log, flags, 0o644)
        except FileNotFoundError:
            nofollow.make_directory(self._log.parent, parents=True)
            fd = nofollow.open_descriptor(self._log, flags, 0o644)
        try:
            os.write(fd, lines.encode())
        finally:
            os.close(fd)

    def moves(self, limit: int) -> list[Move]:
        """Return the latest lines of the reflog, newest first, reading from its end."""
        try:
            with nofollow.open_file(self._log) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                lines = file.read().splitlines()
        except OSError:
            return []
        found = [move for line in reversed(lines) if (move := _move(line)) is not None]
        return found[:limit]

    def sync(self) -> None:
        """Sync the branch and its reflog to disk if they were moved here since the last call."""
        if not self._unsynced:
            return
        self._unsynced = False
        try:
            for path in (self._path, self._log):
                with contextlib.suppress(FileNotFoundError):
                    sync_file(path)
                    sync_directory(path.parent)
        except BaseException:
            self._unsynced = True
            raise


def _move(line: bytes) -> Move | None:
    """Parse one line of a reflog; ``None`` for a line that a crash left torn."""
    ids, _, note = line.partition(b"\t")
    old, new = ids[:40], ids[41:81]
    if not (_OID.fullmatch(old) and _OID.fullmatch(new)):
        return None
    return Move(
        old.decode().replace(_NONE, ""), new.decode().replace(_NONE, ""), note.decode("utf-8", "replace")
    )
