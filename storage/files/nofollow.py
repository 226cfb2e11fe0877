"""Files below a workspace, reached by directory descriptors and never through a symbolic link.

A clone or a copied directory may contain a symbolic link wherever the engine expects one of its files or
directories. So every path given here must be free of symbolic links from the file system's root on: callers
canonicalise the workspace's path once (:func:`canonical`), and any link below it is refused with
:class:`LinkRefused`. Anything that is neither a regular file nor a directory (a FIFO, a device, a socket) is
refused with :class:`NotAFile`; the engine never blocks on one.

Linux resolves a whole path in one system call (openat2(2) with ``RESOLVE_NO_SYMLINKS``). Elsewhere, and where
a container forbids that call, the components are opened one by one with ``O_NOFOLLOW``.
"""

import contextlib
import ctypes
import errno
import functools
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from agentx.storage import stopping
from agentx.storage.errors import AgentXError

_SYS_OPENAT2 = 437
"""The same on every architecture that Python runs on (Linux: include/uapi/asm-generic/unistd.h)."""

_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 0x04
_PASSING = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_QUIET = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Never follow a link, never wait for the other end of a FIFO, never acquire a controlling terminal."""

_SMALL_BYTES = 4096
"""Read at least this much at a time: files of ``/proc`` claim to be empty."""

_WRITE = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "a+": os.O_RDWR | os.O_CREAT | os.O_APPEND,
}


class LinkRefused(AgentXError, OSError):
    """A symbolic link, or ``..``, would lead from a path below the workspace to somewhere else."""

    def __init__(
        self, path: str | Path, why: str = "a symbolic link is in its place or on the way to it"
    ) -> None:
        OSError.__init__(self, errno.ELOOP, why, str(path))

    def __str__(self) -> str:
        return f"{self.filename} is not used: {self.strerror}. Check where the link points, then delete it."


class NotAFile(AgentXError, OSError):
    """A FIFO, a device or a socket is in the place of a file of the workspace."""

    def __init__(self, path: str | Path) -> None:
        OSError.__init__(self, errno.EINVAL, "it is neither a regular file nor a directory", str(path))

    def __str__(self) -> str:
        return f"{self.filename} is not used: {self.strerror}. Find out what created it, then delete it."


def canonical(path: str | Path) -> Path:
    """Return the absolute path without symbolic links; it need not exist.

    For the workspace's own directory, which the user may reach through links, and for nothing below it.
    """
    return Path(os.path.realpath(path))


# --- opening ------------------------------------------------------------------------------------------------


def open_descriptor(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Open a regular file.

    Args:
        path: Canonical, except for components that may be links.
        flags: As :func:`os.open` takes them.
        mode: Permissions of a newly created file.

    Returns:
        The descriptor, which child processes do not inherit.

    Raises:
        LinkRefused: A symbolic link is in its place, or on the way to it.
        NotAFile: A FIFO, a device or a socket is in its place.
        OSError: As :func:`os.open`; ``IsADirectoryError`` for a directory.
    """
    try:
        fd = _open(path, flags | _QUIET, mode)
    except OSError as error:
        # A socket, or a FIFO without a reader opened for writing.
        if error.errno == errno.ENXIO:
            raise NotAFile(path) from error
        raise
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NotAFile(path)


def open_file(path: str | Path, mode: str = "r", buffering: int = -1) -> IO[bytes]:
    """Open a regular file in binary mode; see :func:`open_descriptor`.

    Args:
        path: The file.
        mode: ``r``, ``r+``, ``w``, ``a`` or ``a+``.
        buffering: As the built-in ``open`` takes it.
    """
    return os.fdopen(open_descriptor(path, _WRITE[mode]), f"{mode}b", buffering)


def open_directory(path: str | Path) -> int:
    """Open a directory to list its names; see :func:`open_descriptor`."""
    return _open(path, _DIRECTORY)


def _open(path: str | Path, flags: int, mode: int = 0) -> int:
    name = os.fspath(path)
    _require_inside(name)
    try:
        return _at_once()(name, flags, mode)
    except OSError as error:
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name)):
            raise LinkRefused(name) from error
        raise


def _require_inside(path: str) -> None:
    """Refuse ``..``: a canonical path contains none, so it came from a foreign name."""
    if ".." in path and ".." in path.split("/"):
        raise LinkRefused(path, "'..' in it leads out of its directory")


def _is_link(path: str) -> bool:
    """Return whether a path that ``O_DIRECTORY`` refused is a symbolic link.

    Linux reports ENOTDIR for a link with ``O_NOFOLLOW``.
    """
    try:
        with _parent(path) as (fd, name):
            return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except LinkRefused:
        return True
    except OSError:
        return False


@functools.cache
def _at_once() -> Callable[[str, int, int], int]:
    """Return the function that opens a path on this system."""
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
        call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
        call.restype = ctypes.c_long
        os.close(_openat2(call, "/", _PASSING, 0))
    except (OSError, AttributeError):
        return _step_by_step
    return functools.partial(_openat2, call)


class _OpenHow(ctypes.Structure):
    """``struct open_how`` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@functools.cache
def _how(flags: int, mode: int) -> tuple[Any, int]:
    """Return the last two arguments of openat2(2), cached: building them takes as long as the call."""
    how = _OpenHow(flags, mode if flags & os.O_CREAT else 0, _RESOLVE_NO_SYMLINKS)
    return ctypes.byref(how), ctypes.sizeof(how)


def _openat2(call: Callable[..., int], path: str, flags: int, mode: int) -> int:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    while True:
        fd = call(_SYS_OPENAT2, _AT_FDCWD, encoded, *_how(flags, mode))
        if fd >= 0:
            return fd
        problem = ctypes.get_errno()
        # EAGAIN: a rename raced with the look-up.
        if problem not in (errno.EINTR, errno.EAGAIN):
            raise OSError(problem, os.strerror(problem), path)


def _step_by_step(path: str, flags: int, mode: int) -> int:
    """Open a path by opening each directory relative to its parent."""
    *folders, name = Path(os.path.abspath(path)).parts
    if not folders:
        return os.open(name, flags, mode)
    fd = os.open(folders[0], _PASSING)
    try:
        for folder in folders[1:]:
            below = os.open(folder, _PASSING, dir_fd=fd)
            os.close(fd)
            fd = below
        return os.open(name, flags, mode, dir_fd=fd)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)


class _parent:  # noqa: N801 - used like a function; a generator would take as long as the system calls
    """The open parent directory of a path, and the name in it."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str | Path) -> None:
        self._path = os.fspath(path)
        _require_inside(self._path)

    def __enter__(self) -> tuple[int, str]:
        folder, _, name = self._path.rpartition("/")
        self._fd = _open(folder or ("/" if self._path.startswith("/") else "."), _PASSING)
        return self._fd, name

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self._fd)
        if isinstance(error, OSError) and error.filename == self._path.rpartition("/")[2]:
            error.filename = self._path


class opened_directory:  # noqa: N801 - as above
    """An open directory, for several calls with ``dir_fd``; see :func:`open_descriptor`."""

    __slots__ = ("_fd",)

    def __init__(self, path: str | Path) -> None:
        self._fd = _open(path, _PASSING)

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.close(self._fd)


# --- looking ------------------------------------------------------------------------------------------------


def status(path: str | Path) -> os.stat_result:
    """Return the status of a file, a directory, or a link itself.

    Raises:
        FileNotFoundError: It does not exist, or a file is in the place of a directory on the way.
        LinkRefused: A symbolic link is on the way.
    """
    try:
        with _parent(path) as (fd, name):
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except NotADirectoryError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error


def exists(path: str | Path) -> bool:
    """Return whether something has that name, even a link; false if it cannot be checked."""
    return mode(path) != 0


def is_file(path: str | Path) -> bool:
    """Return whether the path is a regular file."""
    return stat.S_ISREG(mode(path))


def is_directory(path: str | Path) -> bool:
    """Return whether the path is a directory, and not a link to one."""
    return stat.S_ISDIR(mode(path))


def is_link(path: str | Path) -> bool:
    """Return whether the path is a symbolic link."""
    return stat.S_ISLNK(mode(path))


def mode(path: str | Path) -> int:
    """Return the kind and permissions of a file, a directory or a link itself; 0 if it cannot be checked."""
    try:
        return status(path).st_mode
    except OSError:
        return 0


def may_write(path: str | Path) -> bool:
    """Return whether this process may write a file or directory.

    Best effort: the file system does not report every obstacle beforehand.
    """
    try:
        with _parent(path) as (fd, name):
            return os.access(name, os.W_OK, dir_fd=fd, effective_ids=os.access in os.supports_effective_ids)
    except OSError:
        return False


def is_on_read_only_media(path: str | Path) -> bool:
    """Return whether a directory's file system is mounted read-only."""
    with opened_directory(path) as fd:
        return bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)


def names(path: str | Path) -> list[str]:
    """Return the names in a directory, sorted.

    Raises:
        OSError: The directory does not exist, or it cannot be read.
    """
    fd = open_directory(path)
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def listed(path: str | Path, prefix: str = "", suffix: str = "") -> list[Path]:
    """Return the paths in a directory by name prefix and suffix, sorted; empty for a missing directory."""
    try:
        found = names(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Path(path, name) for name in found if name.startswith(prefix) and name.endswith(suffix)]


@contextlib.contextmanager
def entries(path: str | Path) -> Iterator[list[os.DirEntry[str]]]:
    """Yield the entries of a directory, sorted by name; call their ``stat`` and the like inside the ``with``.

    Their ``path`` is the bare name.

    Raises:
        OSError: The directory does not exist, or it cannot be read.
    """
    with _scanned(os.fspath(path)) as found:
        yield sorted(found, key=lambda entry: entry.name)


def walk(path: str | Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each directory, its directories and its other names, as :func:`os.walk` does, without recursion.

    What a caller removes from the list of directories is not entered. Links are among the other names. A
    directory that cannot be listed, or whose path is longer than the system allows, is left out.
    """
    waiting = [os.fspath(path)]
    while waiting:
        folder = waiting.pop()
        folders, others = list[str](), list[str]()
        with contextlib.suppress(OSError), _scanned(folder) as found:
            for entry in found:
                (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
            folders.sort()
            others.sort()
            yield folder, folders, others
            waiting += [f"{folder}/{name}" for name in reversed(folders)]


def tree(path: str | Path) -> Iterator[Path]:
    """Yield every file and link below a directory, without entering links; nothing if it does not exist.

    In no order, so that of a directory with a million files only those met so far are known.
    """
    for entry, place in _below(path):
        if not entry.is_dir(follow_symlinks=False):
            yield Path(place)


def _below(path: str | Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield everything below a directory, and its path; without recursion."""
    waiting = [os.fspath(path)]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), _scanned(folder) as found:
            for entry in found:
                stopping.go_on()
                place = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(place)
                yield entry, place


@contextlib.contextmanager
def _scanned(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Yield the entries of a directory as the system tells them."""
    stopping.go_on()
    fd = open_directory(path)
    try:
        with os.scandir(fd) as found:
            yield found
    finally:
        os.close(fd)


def same_file(one: str | Path, other: str | Path) -> bool:
    """Return whether two names refer to the same file."""
    return os.path.samestat(status(one), status(other))


def require_plain(path: str | Path) -> None:
    """Refuse a path that contains a symbolic link, for libraries that open by path; it may be missing.

    Raises:
        LinkRefused: It contains a symbolic link.
        NotAFile: A FIFO, a device or a socket is there.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = status(path).st_mode
        if stat.S_ISLNK(mode):
            raise LinkRefused(path)
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise NotAFile(path)


def require_directory(path: str | Path) -> None:
    """Refuse a directory that is reached through a symbolic link.

    Raises:
        LinkRefused: A symbolic link is on the way to it, or in its place.
        FileNotFoundError: It does not exist, or is not a directory.
    """
    try:
        os.close(_open(path, _PASSING))
    except NotADirectoryError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error


def require_plain_tree(path: str | Path) -> None:
    """Apply :func:`require_plain` to a directory and everything below it."""
    require_plain(path)
    for entry, place in _below(path):
        if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
            raise LinkRefused(place) if entry.is_symlink() else NotAFile(place)


# --- reading ------------------------------------------------------------------------------------------------


def read(path: str | Path) -> bytes:
    """Return the content of a regular file; see :func:`open_descriptor`."""
    fd = open_descriptor(path)
    try:
        parts, expected = [], max(os.fstat(fd).st_size + 1, _SMALL_BYTES)
        while part := os.read(fd, expected):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def read_text(path: str | Path, errors: str = "strict") -> str:
    """Return the content of a regular file, decoded as UTF-8; see :func:`open_descriptor`."""
    return read(path).decode("utf-8", errors)


def read_link(path: str | Path) -> str:
    """Return the target of a symbolic link, as written in it."""
    with _parent(path) as (fd, name):
        return os.readlink(name, dir_fd=fd)


# --- changing -----------------------------------------------------------------------------------------------


def write(path: str | Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file in place, for content that can be created again.

    See :mod:`agentx.storage.files.durable` for content that cannot.
    """
    fd = open_descriptor(path, _WRITE["w"], mode)
    try:
        write_all(fd, content)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """Write all bytes: a single call of ``os.write`` may write only a part."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def touch(path: str | Path) -> None:
    """Create a file if it does not exist."""
    os.close(open_descriptor(path, os.O_WRONLY | os.O_CREAT))


def temporary(folder: str | Path, prefix: str) -> tuple[int, Path]:
    """Create a file with an unused name, open for writing, readable by its owner alone."""
    while True:
        path = Path(folder, prefix + secrets.token_hex(4))
        with contextlib.suppress(FileExistsError):
            return open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), path


class HeldDirectory:
    """A directory that this process works in, known by its inode: it may be deleted or replaced meanwhile.

    While it is held, :func:`make_directory` does not make it again as a parent of something else.
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self._fd = os.fspath(path), _open(path, _PASSING)  # an open inode is not used again
        self._seen = os.fstat(self._fd)
        with _holding:
            _held[self._path] = _held.get(self._path, 0) + 1

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to it."""
        try:
            return os.path.samestat(os.stat(self._path), self._seen)
        except OSError:
            return False

    def release(self) -> None:
        """Let go of it; a second call does nothing."""
        with _holding:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)
                _held[self._path] -= 1
                if not _held[self._path]:
                    del _held[self._path]

    def __del__(self) -> None:
        """Let go of it where nobody did."""
        if getattr(self, "_fd", -1) >= 0:
            self.release()


_held: dict[str, int] = {}
_holding = threading.RLock()  # a collected one is released in whatever thread collects it


def is_held(path: str | Path) -> bool:
    """Return whether a directory, or one below it, is held."""
    above = os.fspath(path)
    return any(one == above or one.startswith(f"{above}/") for one in list(_held))


def make_directory(path: str | Path, *, parents: bool = False) -> None:
    """Create a directory, unless it exists.

    Args:
        path: The directory.
        parents: Also create missing parents.

    Raises:
        FileExistsError: Something else has that name.
        LinkRefused: A symbolic link has that name, or is on the way.
    """
    missing = [os.fspath(path)]
    while missing:
        try:
            _make_one(missing[-1])
            missing.pop()
        except FileNotFoundError:
            above = os.path.dirname(missing[-1])
            if not parents or above == missing[-1] or is_held(above):
                raise
            missing.append(above)


def _make_one(path: str) -> None:
    try:
        with _parent(path) as (fd, name):
            os.mkdir(name, dir_fd=fd)
    except FileExistsError:
        if is_link(path):
            raise LinkRefused(path) from None
        if not is_directory(path):
            raise


def remove(path: str | Path, *, missing_ok: bool = False) -> None:
    """Remove a file, or a link itself."""
    try:
        with _parent(path) as (fd, name):
            os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        if not missing_ok:
            raise


def remove_directory(path: str | Path) -> None:
    """Remove an empty directory."""
    with _parent(path) as (fd, name):
        os.rmdir(name, dir_fd=fd)


def remove_tree(path: str | Path, *, ignore_errors: bool = False) -> None:
    """Remove a directory and its content, following no link; a link in its place is removed itself."""
    try:
        with _parent(path) as (fd, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                # It is the faster one, but takes a descriptor and a call of itself for each level.
                with contextlib.suppress(RecursionError):
                    shutil.rmtree(name, ignore_errors=True, dir_fd=fd)
                with contextlib.suppress(FileNotFoundError):
                    _remove_deep(fd, name)
            else:
                os.unlink(name, dir_fd=fd)
    except OSError:
        if not ignore_errors:
            raise


def _remove_deep(parent: int, name: str) -> None:
    """Remove a directory and its content with two descriptors, however deep it is."""
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    above: list[tuple[str, os.stat_result]] = []
    try:
        while (below := _emptied(fd)) or above:
            if below:
                above.append((below, os.fstat(fd)))
                fd = _moved(fd, below)
                continue
            done, info = above.pop()
            fd = _moved(fd, "..")
            if not os.path.samestat(os.fstat(fd), info):
                raise LinkRefused(name, "somebody moved a directory in it meanwhile")
            os.rmdir(done, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _emptied(fd: int) -> str:
    """Remove the files of a directory up to the first directory in it; return that one's name."""
    with os.scandir(fd) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            os.unlink(entry.name, dir_fd=fd)
    return ""


def _moved(fd: int, name: str) -> int:
    """Open a directory relative to another, which is closed."""
    new = os.open(name, _DIRECTORY, dir_fd=fd)
    os.close(fd)
    return new


def replace(old: str | Path, new: str | Path) -> None:
    """Rename a file, replacing any file with the new name."""
    with _parent(old) as (source, name):
        folder, _, other = os.fspath(new).rpartition("/")
        if folder == os.fspath(old).rpartition("/")[0]:
            os.replace(name, other, src_dir_fd=source, dst_dir_fd=source)
            return
        with _parent(new) as (target, other):
            os.replace(name, other, src_dir_fd=source, dst_dir_fd=target)


def link(old: str | Path, new: str | Path) -> None:
    """Create a hard link to a file.

    Raises:
        FileExistsError: The name is taken.
    """
    with _parent(old) as (source, name), _parent(new) as (target, other):
        os.link(name, other, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)


def symlink(target: str, path: str | Path) -> None:
    """Create a symbolic link; an artifact may be one."""
    with _parent(path) as (fd, name):
        os.symlink(target, name, dir_fd=fd)
