"""The layer under the file calls of one process: each call that changes a file below a directory is a numbered step.

A fault happens at one step: the process dies before it or, of a write, in its middle; the disk refuses it; the power goes.
Python's own calls are wrapped one by one. What libgit2 writes in C is seen as the calls that lead into it.
"""

import builtins
import dataclasses
import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pygit2

from agentx.storage.files import nofollow
from agentx.storage.git.repository import GitRepository

BY_PATH = ("replace", "rename", "link", "unlink", "remove", "rmdir", "mkdir", "symlink", "truncate")
BY_DESCRIPTOR = ("write", "pwrite", "writev", "pwritev", "ftruncate", "posix_fallocate", "fsync", "fdatasync")
IN_C = (
    (GitRepository, "update_tree"),
    (GitRepository, "move_ref"),
    (pygit2.Repository, "create_blob"),
    (pygit2.Repository, "create_commit"),
    (pygit2.Index, "write"),
)
_CREATES = os.O_CREAT | os.O_TRUNC
_NEED_NO_ROOM = {"unlink", "remove", "rmdir", "truncate", "ftruncate"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """What goes wrong, and where.

    Attributes:
        kind: ``kill`` before the step, ``tear`` (half of a write is made, then death), ``refuse``, ``cut`` (of the power),
            or ``none``.
        at: Number of the step, from 1.
        code: The error number of a refusal.
        lasting: Whether the disk goes on refusing.
    """

    kind: str = "none"
    at: int = 0
    code: int = 0
    lasting: bool = False


class Disk:
    """Counts the steps of this process below ``root`` and brings about one fault.

    Args:
        root: Only what lies below it counts.
        fault: What happens.
        synced: Told of each descriptor that was synced, after it was.
        dies: Told of the step before which the process dies, or the power goes.
    """

    def __init__(
        self,
        root: Path,
        fault: Fault,
        synced: Callable[[int], None] = lambda _: None,
        dies: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._root = str(root)
        self._fault = fault
        self._synced = synced
        self._dies = dies
        self._refusing = False
        self.steps = 0
        self.real = {name: getattr(os, name) for name in (*BY_PATH, *BY_DESCRIPTOR, "open")}

    def install(self) -> None:
        """Put the layer under everything that this process does from now on."""
        for name in BY_PATH:
            setattr(os, name, self._by_path(name))
        for name in BY_DESCRIPTOR:
            setattr(os, name, self._by_descriptor(name))
        for owner, name in IN_C:
            setattr(owner, name, self._in_c(name, getattr(owner, name)))
        os.open = self._open
        nofollow._at_once = lambda: nofollow._step_by_step  # what one system call opens is not seen here
        io.open = builtins.open = self._open_file(io.open)

    def mend(self) -> None:
        """The disk refuses nothing any more."""
        self._fault, self._refusing = Fault(), False

    def step(
        self, name: str, place: str, run: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        """One call that changes a file."""
        self.steps += 1
        fault = self._fault
        if fault.kind == "refuse":
            self._refuse(name, place)
        elif self.steps == fault.at:
            if half is not None and (fault.kind == "tear" or (fault.kind == "cut" and fault.at % 2)):
                half()
            self._dies(f"{name} {place[len(self._root) :]}")
            os.kill(os.getpid(), signal.SIGKILL)
        return run()

    def _refuse(self, name: str, place: str) -> None:
        fault = self._fault
        self._refusing = self.steps == fault.at or (self._refusing and fault.lasting)
        if not self._refusing or (fault.code == errno.ENOSPC and name in _NEED_NO_ROOM):
            return
        if name.startswith("git."):
            raise pygit2.GitError(f"failed to write {place}: {os.strerror(fault.code)}")
        raise OSError(fault.code, os.strerror(fault.code), place)

    def _counts(self, place: str) -> bool:
        return place.startswith(self._root)

    def _by_path(self, name: str) -> Callable[..., Any]:
        real = self.real[name]

        def call(*arguments: Any, **named: Any) -> Any:
            last = name in {"replace", "rename", "link", "symlink"}
            folder = named.get("dst_dir_fd", named.get("dir_fd"))
            place = "" if isinstance(arguments[0], int) else _path(arguments[-1 if last else 0], folder)
            if not self._counts(place):
                return real(*arguments, **named)
            return self.step(name, place, lambda: real(*arguments, **named))

        return call

    def _by_descriptor(self, name: str) -> Callable[..., Any]:
        real = self.real[name]

        def call(fd: int, *arguments: Any) -> Any:
            place = _place(fd)
            if not self._counts(place):
                return real(fd, *arguments)
            half = None
            if name in {"write", "pwrite"} and len(arguments[0]) > 1:
                part = bytes(arguments[0])[: len(arguments[0]) // 2]
                half = lambda: real(fd, part, *arguments[1:])  # noqa: E731
            result = self.step(name, place, lambda: real(fd, *arguments), half)
            if name in {"fsync", "fdatasync"}:
                self._synced(fd)
            return result

        return call

    def _in_c(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(owner: Any, *arguments: Any, **named: Any) -> Any:
            if self._fault.kind == "refuse" and isinstance(owner, GitRepository):
                return real(
                    owner, *arguments, **named
                )  # it translates what libgit2 says, so libgit2 must say it
            return self.step(f"git.{name}", f"{self._root}/.git", lambda: real(owner, *arguments, **named))

        return call

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        def real() -> int:
            return self.real["open"](path, flags, mode, dir_fd=dir_fd)

        place = _path(path, dir_fd)
        return self.step("open", place, real) if flags & _CREATES and self._counts(place) else real()

    def _open_file(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """``open()``, whose files write through :func:`os.write`."""

        def call(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
                 newline: Any = None, *arguments: Any, **named: Any) -> Any:  # fmt: skip
            place = _place(file) if isinstance(file, int) else os.path.abspath(os.fsdecode(file))
            if not set(mode) & set("wax+") or not self._counts(place):
                return real(file, mode, buffering, encoding, errors, newline, *arguments, **named)
            plain = mode.replace("b", "").replace("t", "")
            make = lambda: _File(file, plain, *arguments, **named)  # noqa: E731
            raw = make() if isinstance(file, int) else self.step("open", place, make)
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return raw if buffering == 0 else buffered
            return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

        return call


class _File(io.FileIO):
    def write(self, content: Any) -> int:
        return os.write(self.fileno(), bytes(content))

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        os.ftruncate(self.fileno(), size)
        return size


def _path(path: Any, folder: int | None) -> str:
    """The path that a call names, where it names it relative to an open directory, too."""
    name = os.fsdecode(path)
    return os.path.abspath(name if folder is None else os.path.join(_place(folder), name))


def _place(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""
