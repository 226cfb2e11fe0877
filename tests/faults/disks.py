"""Disks that really refuse: full, read-only, or without rights; and then have room again."""

import contextlib
import importlib.readers  # noqa: F401 - loaded late otherwise, by a user who cannot read it
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2

from . import scenario
from .children import Tell, start
from .runs import Job, Outcome

NOBODY = 65534
RIGHTS = (".", ".git", ".git/objects", ".git/refs/heads", "artifacts", "artifacts/deep", "history")


def full(job: Job, outcome: Outcome, place: Path) -> None:
    """A file system in memory that has ``detail`` KB of room left, then more."""
    _mounted(outcome, place, fill(int(job.detail)), mend)


def read_only(job: Job, outcome: Outcome, place: Path) -> None:
    """A file system that is mounted read-only, then writable."""
    _mounted(
        outcome, place, lambda disk: _mount(disk, "remount,ro"), lambda disk: _mount(disk, "remount,rw"), late=True
    )  # fmt: skip


def _mounted(
    outcome: Outcome,
    place: Path,
    refuse: Callable[[Path], None],
    mend: Callable[[Path], None],
    *,
    late: bool = False,
) -> None:
    disk = place / "disk"
    with small(place, disk) as mounted:
        if not mounted:
            return  # only root may; the survivors are counted, so this shows
        root = disk / "task"
        if not late:
            refuse(disk)

        def work(tell: Tell) -> None:
            before = (lambda: refuse(disk)) if late else (lambda: None)
            scenario.work_against_refusals(root, tell, lambda: mend(disk), before)

        child = start(work)
        child.finish()
        outcome.survived = 1
        outcome.judge(root, outcome.hear(child))


@contextlib.contextmanager
def small(place: Path, disk: Path) -> Iterator[bool]:
    """A file system in memory with a copy of the template; whether it could be mounted."""
    disk.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "none", disk], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        yield False
        return
    try:
        shutil.copytree(place / "task", disk / "task")
        shutil.copytree(place / "material", disk / "material")
        yield True
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(room_kb: int) -> Callable[[Path], None]:
    """Return what leaves so much room on a file system in memory."""

    def refuse(disk: Path) -> None:
        info = os.statvfs(disk)
        used_kb = (info.f_blocks - info.f_bfree) * info.f_frsize // 1024
        _mount(disk, f"remount,size={used_kb + room_kb}k")

    return refuse


def mend(disk: Path) -> None:
    """Make room again."""
    _mount(disk, "remount,size=64m")


def _mount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", options, disk], check=True)


def rights(job: Job, outcome: Outcome, place: Path) -> None:
    """A directory in which the user may not write; then may."""
    root, folder = place / "task", place / "task" / job.detail
    root_user = os.getuid() == 0
    shutil.copytree(root, place / "warm", symlinks=True)
    if root_user:
        place.chmod(0o755)
        _own(place, NOBODY)
        _own(place / "warm", 0)

    def work(tell: Tell) -> None:
        scenario.only_open(place / "warm", lambda _: None)  # what is loaded late may be out of nobody's reach
        if root_user:
            pygit2.settings.search_path[pygit2.enums.ConfigLevel.GLOBAL] = str(place)  # not root's own
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        scenario.work_against_refusals(
            root, tell, lambda: folder.chmod(0o755), lambda: folder.chmod(0o555) if folder.exists() else None
        )

    child = start(work)
    child.finish()
    with contextlib.suppress(FileNotFoundError):
        folder.chmod(0o755)
    if root_user:
        _own(place, 0)
    outcome.survived = 1
    outcome.judge(root, outcome.hear(child))


def _own(place: Path, user: int) -> None:
    for folder, folders, files in os.walk(place):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), user, user, follow_symlinks=False)
