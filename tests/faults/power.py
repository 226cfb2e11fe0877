"""A disk that forgets, at a power cut, what was not synced.

The content of a file is kept from its ``fsync`` or ``fdatasync`` on, a name from the ``fsync`` of its directory. What
is not may be lost, kept, cut short, empty, or as long as it was with zeros at its end, each by the draw of a seed. What
libgit2 writes in C is never synced, so it is found by comparing what lies there with what is remembered.
"""

import contextlib
import dataclasses
import os
import pickle
import random
import resource
import stat
import time
from pathlib import Path

LONG_AGO_S = 60.0
"""So long the power is away, or nobody comes: no lock of before is fresh."""

Names = dict[str, int]


@dataclasses.dataclass
class Memory:
    """What the disk holds for certain, by inode.

    Attributes:
        files: Mode and content of each file and link.
        folders: Names in each directory.
        top: The inode of the outermost directory.
    """

    files: dict[int, tuple[int, bytes]]
    folders: dict[int, Names]
    top: int


class Remembers:
    """Follows, in the process that writes, what was synced; no inode is used again while it does."""

    def __init__(self, root: Path) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        self.memory = Memory({}, {}, os.stat(root).st_ino)
        self._kept: list[int] = []
        self._open = os.open
        for folder, _, files in os.walk(root):
            for place in (folder, *(os.path.join(folder, name) for name in files)):
                if os.path.islink(place):
                    info = os.lstat(place)
                    self.memory.files[info.st_ino] = (info.st_mode, os.fsencode(os.readlink(place)))
                    continue
                self.synced(fd := os.open(place, os.O_RDONLY))
                os.close(fd)

    def synced(self, fd: int) -> None:
        """A descriptor was synced."""
        info, here = os.fstat(fd), f"/proc/self/fd/{fd}"
        if stat.S_ISDIR(info.st_mode):
            names = self.memory.folders[info.st_ino] = {}
            for name in os.listdir(here):
                with contextlib.suppress(FileNotFoundError):
                    found = os.lstat(f"{here}/{name}")
                    names[name] = found.st_ino
                    if stat.S_ISLNK(found.st_mode):
                        self.memory.files[found.st_ino] = (
                            found.st_mode,
                            os.fsencode(os.readlink(f"{here}/{name}")),
                        )
                        continue
                    # Names of what was never synced itself must keep their inode from being used again.
                    self._kept.append(self._open(f"{here}/{name}", os.O_RDONLY))
        else:
            reading = self._open(here, os.O_RDONLY)
            self._kept.append(reading)
            self.memory.files[info.st_ino] = (info.st_mode, os.pread(reading, info.st_size, 0))

    def keep(self, place: Path) -> None:
        """Write down what is certain; the power goes now."""
        fd = self._open(place, os.O_WRONLY | os.O_CREAT, 0o600)
        content = memoryview(pickle.dumps(self.memory))
        with open(fd, "wb", buffering=0) as file:
            while content:
                content = content[file.write(content) :]


def after_the_cut(left: Path, memory: Memory, target: Path, draw: random.Random) -> int:
    """Make the directory that is found when the power is back.

    Args:
        left: The directory as it was when the power went.
        memory: What of it was certain.
        target: Where to make it.
        draw: Decides on everything else.

    Returns:
        How many things the draw decided on.
    """
    decided = _Cut(left, memory, draw).make(target)
    mark = target / ".git" / "index.lock"
    if mark.is_file() and (said := mark.read_bytes()).startswith(b"agentx "):
        mark.write_bytes(b" ".join([*said.split()[:3], b"another-run-of-the-machine"]))
    return decided


class _Cut:
    def __init__(self, left: Path, memory: Memory, draw: random.Random) -> None:
        self._memory = memory
        self._draw = draw
        self._made: dict[int, Path] = {}
        self._kept: dict[int, bool] = {}
        self._decided = 0
        self._here: dict[int, Path] = {}
        for folder, folders, files in os.walk(left):
            for name in (*folders, *files):
                self._here[os.lstat(os.path.join(folder, name)).st_ino] = Path(folder, name)
        self._here[memory.top] = left

    def make(self, target: Path) -> int:
        self._folder(self._memory.top, target)
        return self._decided

    def _folder(self, inode: int, target: Path) -> None:
        target.mkdir()
        here = self._here.get(inode)
        certain = self._memory.folders.get(inode, {})
        now = {entry.name: entry.inode() for entry in os.scandir(here)} if here else {}
        for name in sorted(certain.keys() | now.keys()):
            was, is_now = certain.get(name, 0), now.get(name, 0)
            chosen = is_now if was == is_now or self._keeps(is_now or was) else was
            if chosen:
                self._place(chosen, target / name)

    def _keeps(self, inode: int) -> bool:
        """Whether what happened to the names of an inode reached the disk; a rename did as a whole or not at all."""
        if inode not in self._kept:
            self._decided += 1
            self._kept[inode] = self._draw.random() < 0.5
        return self._kept[inode]

    def _place(self, inode: int, target: Path) -> None:
        here = self._here.get(inode)
        if inode in self._memory.folders or (here and here.is_dir() and not here.is_symlink()):
            self._folder(inode, target)
        elif inode in self._made:
            os.link(self._made[inode], target, follow_symlinks=False)
        else:
            mode, certain = self._memory.files.get(inode, (0, None))
            mode = os.lstat(here).st_mode if here else mode
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(here) if here else os.fsdecode(certain or b""), target)
            else:
                target.write_bytes(self._content(here, certain))
                target.chmod(stat.S_IMODE(mode) or 0o644)
                os.utime(target, (time.time() - LONG_AGO_S,) * 2)
            self._made[inode] = target

    def _content(self, here: Path | None, certain: bytes | None) -> bytes:
        if here is None:
            return certain or b""
        now = here.read_bytes()
        if now == certain:
            return now
        self._decided += 1
        kept = len(certain) if certain and now.startswith(certain) else 0
        end = self._draw.randint(kept, len(now))
        return self._draw.choice(
            (certain or b"", now, now[:end], now[:kept], now[:end] + b"\0" * (len(now) - end))
        )
