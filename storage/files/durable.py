"""Durable file operations: what these return from has reached the disk.

Every write goes to a temporary file beside its target, is synced, and takes its name by a rename, so that a reader
sees the old content or the new and never a part. No symbolic link is followed (:mod:`agentx.storage.files.nofollow`).
"""

import contextlib
import os
from pathlib import Path

from agentx.storage.files import nofollow

TEMPORARY_PREFIX = ".agentx-tmp-"
"""Names of temporary files beside their targets; a scan passes over them, the next open removes them."""


def sync_directory(path: Path) -> None:
    """Make renames and new names in a directory durable."""
    fd = nofollow.open_directory(path)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    """Make what a file holds durable.

    Raises:
        OSError: It is not there, or the disk refuses.
    """
    fd = nofollow.open_descriptor(path)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """Write a whole content: one call may take a part of it."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, durably."""
    if nofollow.is_directory(path):
        return
    make_directory(path.parent)
    nofollow.make_directory(path)
    sync_directory(path.parent)


def write_temporary(directory: Path, content: bytes, mode: int = 0o644, *, sync: bool = True) -> Path:
    """Write a temporary file in a directory, synced unless it can be made again; a full disk or missing rights show here.

    Raises:
        OSError: The content could not be written; nothing is left behind.
    """
    fd, path = nofollow.temporary(directory, TEMPORARY_PREFIX)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, mode)
            if sync:
                os.fsync(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            nofollow.remove(path)
        raise
    return path


def write_synced(path: Path, content: bytes) -> None:
    """Write a file in place and sync what it holds; its name is not made durable."""
    fd = nofollow.open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(temporary: Path, target: Path) -> None:
    """Give a temporary file its name, durably."""
    nofollow.replace(temporary, target)
    sync_directory(target.parent)


def write_file(target: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a whole file durably, replacing what was there.

    Raises:
        OSError: The disk refuses; it names the file, and not the temporary one.
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
