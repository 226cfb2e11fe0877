"""Caches that this user's AgentX made in this directory, told from those that came with a copy.

A copied or unpacked workspace brings ``.agentx`` with it. What lies there is believed (a snapshot stands for the history) and
opened by libraries that do what the files say (SQLite deletes what a rollback journal names). So caches count only where a
mark in them was made with a key of this user, for this very directory; all others are thrown away and made again.
"""

import contextlib
import os
import secrets
from hashlib import blake2b
from pathlib import Path

from agentx.core.cache_dir import CACHE, make_cache
from agentx.storage.files import nofollow
from agentx.storage.files.lock import FileLock, LockNotTaken
from agentx.trust.store import Store, StoreUnusable

_KEY = "caches.key"
_MARK = "made-here"
_KEPT = {".gitignore", "repaired", "metrics"}
"""What is no cache: damaged files that were set aside, whose lines a hash chain proves before they are used, and logs."""

NOWHERE = Path(os.devnull) / "caches"
"""The place of the caches where there are none and none can be made: below a file nothing can be."""


def readable(root: Path, state_dir: Path) -> Path:
    """Where the caches of a workspace lie that may not be changed: nowhere, unless this user's AgentX made them.

    Args:
        root: The workspace's directory, canonical, whose layout was checked.
        state_dir: The user's state directory.
    """
    with contextlib.suppress(StoreUnusable, OSError):
        if _is_marked(root, Store(state_dir).key(_KEY)):
            return root / CACHE
    return NOWHERE


def claim(root: Path, state_dir: Path) -> None:
    """Throw away the caches of a workspace where this user's AgentX did not make them in this directory.

    Without a state directory there is no key, and caches are left as they are.

    Args:
        root: The workspace's directory, canonical, whose layout was checked.
        state_dir: The user's state directory.
    """
    try:
        key = Store(state_dir).key(_KEY)
    except StoreUnusable:
        return
    with contextlib.suppress(OSError, LockNotTaken):  # a directory that may only be read
        make_cache(root)
        if _is_marked(root, key):
            return
        with FileLock(root / ".git" / "agentx.lock", brief=True).hold():
            if not _is_marked(root, key):
                _empty(root / CACHE)
                nofollow.write(root / CACHE / _MARK, _mark(root, key), 0o600)


def _mark(root: Path, key: bytes) -> bytes:
    """The mark of this directory: a copy at another path, or unpacked at the same one, has another."""
    found = nofollow.status(root / CACHE)
    said = f"{root}\0{found.st_ino}".encode("utf-8", "surrogateescape")
    return blake2b(said, key=key, digest_size=32).hexdigest().encode()


def _is_marked(root: Path, key: bytes) -> bool:
    try:
        return secrets.compare_digest(nofollow.read(root / CACHE / _MARK), _mark(root, key))
    except OSError:
        return False


def _empty(folder: Path) -> None:
    for name in nofollow.names(folder):
        if name in _KEPT:
            continue
        if nofollow.is_directory(folder / name):
            nofollow.remove_tree(folder / name)
        else:
            nofollow.remove(folder / name)
