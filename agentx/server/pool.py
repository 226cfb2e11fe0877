"""The workspaces that the server keeps open."""

import ctypes
import gc
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentx.config import FILE as CONFIG
from agentx.policy import hook_checks
from agentx.server.mounts import require_local
from agentx.settings import Settings
from agentx.workspace import Workspace

_LOG = logging.getLogger("agentx.server.pool")

Key = tuple[Path, tuple[Any, ...]]
"""What tells two open workspaces apart: the directory, and the settings that decide what one does."""


class OpenWorkspace:
    """A workspace of the pool.

    Attributes:
        workspace: The workspace.
        users: Number of requests that use it now.
        used: ``time.monotonic()`` of the latest use.
        is_stopped: Whether a request was stopped amid its work.
        turn: Held by a request whose steps must not mix with those of another of its kind, such as a hook.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        self.workspace = Workspace.open(root, settings=settings)
        self.users = 0
        self.turn = threading.Lock()
        self.is_stopped = False
        self._checked = -1
        self.used = time.monotonic()
        self._seen = _surroundings(root, settings)

    @property
    def is_outdated(self) -> bool:
        """Whether it must be opened again.

        That is: another directory has its name, its settings or trust changed, it was read-only, or a request
        was stopped amid its work.
        """
        if self.is_stopped or self.workspace.engine.write_path.read_only:
            return True
        return _surroundings(self.workspace.root, self.workspace.settings) != self._seen

    def refresh_checks(self) -> None:
        """Write the checks that hooks apply by themselves, if something was recorded since."""
        if not self.workspace.engine.write_path.is_there:
            return
        known = self.workspace.engine.log.state.seq
        if known != self._checked:
            self._checked = known
            hook_checks.refresh(self.workspace.engine)

    def close(self) -> None:
        """Close the workspace; an error is logged."""
        try:
            self.workspace.close()
        except Exception as error:  # noqa: BLE001 - its directory may be gone; everything recorded is durable
            _LOG.warning("%s could not be closed: %s", self.workspace.root, error)


class Pool:
    """The most recently used workspaces, open.

    Args:
        most: Maximum number of workspaces that stay open while nobody uses them.
        remote: Whether to open those on another machine's file system too.
    """

    def __init__(self, most: int, *, remote: bool = False) -> None:
        self._most = most
        self._remote = remote
        self._open: OrderedDict[Key, OpenWorkspace] = OrderedDict()
        self._leaving: list[OpenWorkspace] = []
        self._lock = threading.Lock()
        self._opening: dict[Key, threading.Lock] = {}

    @contextmanager
    def using(self, root: Path, settings: Settings) -> Iterator[OpenWorkspace]:
        """Open a workspace, or take it if it is open; it stays open while the body of the ``with`` runs.

        Raises:
            RemoteMount: It is on another machine's file system.
            NotAWorkspace: The directory is not a workspace.
        """
        found = self._take(root, settings)
        try:
            yield found
        except KeyboardInterrupt:  # a walk was stopped somewhere: the next request opens it anew
            found.is_stopped = True
            raise
        finally:
            found.refresh_checks()
            with self._lock:
                found.users -= 1
                found.used = time.monotonic()
            self.shrink(self._most)

    def _take(self, root: Path, settings: Settings) -> OpenWorkspace:
        key = root, _essence(settings)
        with self._lock:
            turn = self._opening.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                found = self._open.get(key)
                if found is not None and not found.is_outdated:
                    self._open.move_to_end(key)
                    found.users += 1
                    return found
                if found is not None:
                    self._leaving.append(self._open.pop(key))
            if not self._remote:
                require_local(root)
            made = OpenWorkspace(root, settings)
            with self._lock:
                made.users = 1
                self._open[key] = made
            return made

    def shrink(self, most: int) -> int:
        """Close the least recently used workspaces that nobody uses until ``most`` are open.

        Returns:
            How many were closed.
        """
        gone: list[OpenWorkspace] = []
        with self._lock:
            for one in [one for one in self._leaving if not one.users]:
                self._leaving.remove(one)
                gone.append(one)
            for key in [key for key, one in self._open.items() if not one.users]:
                if len(self._open) <= most:
                    break
                gone.append(self._open.pop(key))
        for one in gone:
            one.close()
        if gone:
            _give_back_memory()
        return len(gone)

    def let_go(self) -> None:
        """Close those that nobody uses and whose directory was deleted or replaced."""
        with self._lock:
            gone = [key for key, one in self._open.items() if not one.workspace.engine.write_path.is_there]
            self._leaving += [self._open.pop(key) for key in gone]
        self.shrink(self._most)

    def __len__(self) -> int:
        return len(self._open)

    def listed(self) -> list[dict[str, Any]]:
        """Return the open workspaces, the most recently used last."""
        now = time.monotonic()
        with self._lock:
            return [
                {
                    "root": str(key[0]),
                    "title": one.workspace.engine.log.state.title,
                    "events": one.workspace.engine.log.state.seq,
                    "requests": one.users,
                    "idle_s": round(now - one.used, 1),
                }
                for key, one in self._open.items()
            ]

    def close(self) -> None:
        """Close all workspaces."""
        self.shrink(0)


def _essence(settings: Settings) -> tuple[Any, ...]:
    """Return the settings that an open workspace depends on; the other variables differ between terminals."""
    return (
        *(settings.model, settings.api_base, settings.api_key, settings.cache_dir, settings.state_dir),
        *(settings.user, settings.trust_record, settings.trusted_keys),
    )


def _surroundings(root: Path, settings: Settings) -> tuple[Any, ...]:
    """Return what changes with everything that is read only when a workspace is opened."""
    found: list[tuple[int, ...]] = []
    for path in (root, root / ".git"):
        with suppress(OSError):
            info = os.stat(path)
            found.append((info.st_dev, info.st_ino))
    trust, record = settings.state_dir / "trust", Path(settings.trust_record)
    for path in (root / CONFIG, trust, record, settings.cache_dir):
        with suppress(OSError):
            info = os.stat(path)
            found.append((info.st_ino, info.st_size, info.st_mtime_ns))
        found.append(())
    return tuple(found)


def _give_back_memory() -> None:
    """Return freed memory to the system, as far as it is in one piece."""
    gc.collect()
    with suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).malloc_trim(0)
