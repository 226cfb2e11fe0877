"""Distinguish caches that this user's AgentX made in this directory from those that came with a copy.

A copied or unpacked workspace brings ``.agentx`` with it. Its contents are trusted (a snapshot is used in
place of the history) and opened by libraries that act on the files (SQLite deletes what a rollback journal
names). So caches are used only if a mark in them was made with a key of this user, for this very directory.
All others are deleted and made again.
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
"""Not caches: logs, and damaged files that were set aside, whose lines a hash chain proves before use."""

NOWHERE = Path(os.devnull) / "caches"
"""Cache path where there are no caches and none can be made: nothing can exist below a file."""


def readable(root: Path, state_dir: Path) -> Path:
    """Return the caches of a read-only workspace; ``NOWHERE`` unless this user's AgentX made them."""
    with contextlib.suppress(StoreUnusable, OSError):
        if _is_marked(root, Store(state_dir).key(_KEY)):
            return root / CACHE
    return NOWHERE


def claim(root: Path, state_dir: Path) -> None:
    """Delete the caches of a workspace unless this user's AgentX made them in this directory.

    The workspace's directory is canonical, and its layout was checked. Without a state directory there is no
    key, and caches are left unchanged.
    """
    try:
        key = Store(state_dir).key(_KEY)
    except StoreUnusable:
        return
    with contextlib.suppress(OSError, LockNotTaken):  # a read-only directory
        make_cache(root)
        if _is_marked(root, key):
            return
        with FileLock(root / ".git" / "agentx.lock", brief=True).hold():
            if not _is_marked(root, key):
                _empty(root / CACHE)
                nofollow.write(root / CACHE / _MARK, _mark(root, key), 0o600)


def _mark(root: Path, key: bytes) -> bytes:
    """Return the mark of this directory.

    A copy at another path, or one unpacked at the same path, has another mark.
    """
    place = f"{root}\0{nofollow.status(root / CACHE).st_ino}".encode("utf-8", "surrogateescape")
    return blake2b(place, key=key, digest_size=32).hexdigest().encode()


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
