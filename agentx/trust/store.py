"""Private files of the user that only their own account can have written.

The directory and its files are opened by descriptor, without following links. Anything that belongs to
another account, or that others may write, is refused. It is never repaired silently, because somebody else
may have written it already.
"""

import contextlib
import fcntl
import os
import secrets
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from agentx.storage.errors import AgentXError
from agentx.storage.files.durable import write_all

FOLDER = "trust"

MAX_BYTES = 1_000_000
"""Maximum size of a record; a larger one was not written by AgentX."""

_LOCK = "lock"
_KEY_BYTES = 32
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class StoreUnusable(AgentXError):
    """The user's trust store cannot be used: it is missing, unsafe, or cannot be written."""


class Store:
    """The trust store of one user, in their state directory; an empty path for none.

    Attributes:
        folder: Directory of its files.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self.folder = state_dir / FOLDER

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; ``None`` if there is none.

        Raises:
            StoreUnusable: The store or the file could have been written by somebody else, or cannot be read.
        """
        with self._opened() as folder:
            if folder is None:
                return None
            try:
                fd = os.open(name, _FILE_FLAGS, dir_fd=folder)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise StoreUnusable(f"{self.folder / name} cannot be read: {error.strerror}.") from error
            with open(fd, "rb") as file:
                self._check(os.fstat(fd), self.folder / name, stat.S_ISREG)
                return file.read(MAX_BYTES + 1)

    def write(self, name: str, content: bytes) -> None:
        """Replace a file durably; a reader sees either the old content or the new.

        Raises:
            StoreUnusable: The store is unsafe, or cannot be written.
        """
        with self._opened(make=True) as folder:
            assert folder is not None
            temporary = f".{name}.{uuid.uuid4().hex}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                fd = os.open(temporary, flags, 0o600, dir_fd=folder)
                try:
                    write_all(fd, content)
                    os.fsync(fd)
                finally:
                    os.close(fd)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise StoreUnusable(f"{self.folder / name} cannot be written: {error.strerror}.") from error

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it existed.

        Raises:
            StoreUnusable: The store is unsafe, or cannot be written.
        """
        with self._opened() as folder:
            if folder is None:
                return False
            try:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise StoreUnusable(f"{self.folder / name} cannot be removed: {error.strerror}.") from error
            return True

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files that begin with a prefix, sorted.

        Raises:
            StoreUnusable: The store is unsafe.
        """
        with self._opened() as folder:
            if folder is None:
                return []
            return sorted(one for one in os.listdir(folder) if one.startswith(prefix) and one[0] != ".")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Prevent other processes from changing the store meanwhile.

        Raises:
            StoreUnusable: The store is unsafe, or cannot be written.
        """
        with self._opened(make=True) as folder:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                fd = os.open(_LOCK, flags, 0o600, dir_fd=folder)
            except OSError as error:
                raise StoreUnusable(f"{self.folder} cannot be written: {error.strerror}.") from error
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            finally:
                os.close(fd)

    def key(self, name: str) -> bytes:
        """Return a random key of 32 bytes, kept under a name; made at the first call.

        Raises:
            StoreUnusable: The store is unsafe, or cannot be written.
        """
        key = self.read(name)
        if key is not None and len(key) == _KEY_BYTES:
            return key
        with self.locked():
            key = self.read(name)
            if key is None or len(key) != _KEY_BYTES:
                key = secrets.token_bytes(_KEY_BYTES)
                self.write(name, key)
        return key

    # --- the directory --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int | None]:
        """Yield a descriptor of the directory; ``None`` if it does not exist and is not to be made."""
        if not self._state_dir.is_absolute():
            named = f"AGENTX_STATE_DIR is {str(self._state_dir)!r}"
            raise StoreUnusable(
                f"{named if self._state_dir.name else 'The home directory is unknown'}, so nothing can be "
                "trusted; set AGENTX_STATE_DIR to an absolute path."
            )
        if make:
            self._make()
        try:
            fd = os.open(self.folder, _FOLDER_FLAGS)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            why = "it is a link" if self.folder.is_symlink() else error.strerror
            raise StoreUnusable(f"The trust store {self.folder} cannot be used: {why}.") from error
        try:
            # Anyone who may write the parent directory could replace this one.
            self._check(os.stat(self._state_dir), self._state_dir, stat.S_ISDIR)
            self._check(os.fstat(fd), self.folder, stat.S_ISDIR)
            yield fd
        finally:
            os.close(fd)

    def _make(self) -> None:
        try:
            self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = os.stat(self._state_dir)
            if found.st_uid == os.geteuid() and found.st_mode & _OTHERS_WRITE and not self.folder.exists():
                os.chmod(self._state_dir, 0o700)  # nothing is trusted yet, so there is nothing to doubt
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder, 0o700)
        except OSError as error:
            raise StoreUnusable(
                f"The trust store {self.folder} cannot be created: {error.strerror}."
            ) from error

    @staticmethod
    def _check(found: os.stat_result, path: Path, sort: Callable[[int], bool]) -> None:
        if not sort(found.st_mode):
            raise StoreUnusable(f"{path} in the trust store is not of the expected file type; remove it.")
        if found.st_uid != os.geteuid():
            raise StoreUnusable(f"{path} belongs to another user, so its trust records are ignored.")
        if found.st_mode & _OTHERS_WRITE:
            raise StoreUnusable(
                f"Other users can write to {path}, so its trust records are ignored; run `chmod go-w {path}`."
            )
