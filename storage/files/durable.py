"""Durable file operations: when a function here returns, its result is on disk.

Every write goes to a temporary file beside its target, is synced, and is renamed to its final name, so that a
reader sees the old content or the new and never a part. No symbolic link is followed
(:mod:`agentx.storage.files.nofollow`).
"""

import contextlib
import errno
import os
from pathlib import Path

from agentx.storage.files import nofollow

write_all = nofollow.write_all

TEMPORARY_PREFIX = ".agentx-tmp-"
"""Name prefix of temporary files beside their targets; a scan skips them, the next open removes them."""


def sync_directory(path: Path) -> None:
    """Make renames and new names in a directory durable."""
    fd = nofollow.open_directory(path)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    """Make the content of a file durable.

    Raises:
        OSError: The file does not exist, or the disk refuses.
    """
    fd = nofollow.open_descriptor(path)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents, durably."""
    if nofollow.is_directory(path):
        return
    if not nofollow.is_directory(path.parent) and nofollow.is_held(path.parent):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    make_directory(path.parent)
    nofollow.make_directory(path)
    sync_directory(path.parent)


def write_temporary(directory: Path, content: bytes, mode: int = 0o644, *, sync: bool = True) -> Path:
    """Write a temporary file into a directory; a full disk or missing permissions show up here.

    It is synced by default; pass ``sync=False`` for content that can be created again.

    Raises:
        OSError: The content could not be written; nothing is left behind.
    """
    fd, path = nofollow.temporary(directory, TEMPORARY_PREFIX)
    try:
        try:
            write_all(fd, content)
            os.fchmod(fd, mode)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            nofollow.remove(path)
        raise
    return path


def write_synced(path: Path, content: bytes) -> None:
    """Write a file in place and sync its content; its name is not made durable."""
    fd = nofollow.open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(temporary: Path, target: Path) -> None:
    """Rename a temporary file to its final name, durably."""
    nofollow.replace(temporary, target)
    sync_directory(target.parent)


def write_file(target: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a complete file durably, replacing its previous content.

    Raises:
        OSError: The disk refuses; the error names the target, not the temporary file.
    """
    make_directory(target.parent)
    try:
        temporary = write_temporary(target.parent, content, mode)
    except OSError as error:
        error.filename = os.fspath(target)
        raise
    try:
        replace(temporary, target)
    except BaseException:
        nofollow.remove(temporary, missing_ok=True)
        raise
