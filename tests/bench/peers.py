"""What others take for the same change to one file: the git program, GitPython, dulwich. One that is missing is skipped."""

import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from .grown import GIT_ENVIRONMENT, git, path_of, text, write_files

SLOW = ("GitPython", "dulwich")


class Peers:
    """A plain repository of so many files, and each peer's way to change one durably and commit it."""

    def __init__(self, scratch: Path, files: int) -> None:
        self.root = scratch / f"peers-{files}"
        self._files = files
        write_files(self.root, files)
        git(self.root, "init", "-q", "-b", "main")
        git(self.root, "config", "gc.auto", "0")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "begin")
        git(self.root, "repack", "-a", "-d", "-q")

    def all(self) -> dict[str, Callable[[int], object]]:
        found: dict[str, Callable[[int], object]] = {"git": self.git}
        if importlib.util.find_spec("git"):
            found["GitPython"] = self.gitpython
        if importlib.util.find_spec("dulwich"):
            found["dulwich"] = self.dulwich
        return found

    def _git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-C", str(self.root), *arguments], check=True, env=os.environ | GIT_ENVIRONMENT
        )

    def _change(self, turn: int, seed: int) -> str:
        name = path_of((turn * 7919 + seed) % self._files)
        (self.root / name).write_text(text(turn + seed * 1_000))
        return name

    def git(self, turn: int) -> None:
        self._git("add", self._change(turn, 1))
        self._git("commit", "-q", "-m", "change")

    def gitpython(self, turn: int) -> None:
        import git

        with git.Repo(self.root) as repo:
            repo.index.add([self._change(turn, 2)])
            repo.index.commit("change")

    def dulwich(self, turn: int) -> None:
        from dulwich import porcelain
        from dulwich.repo import Repo

        with Repo(str(self.root)) as repo:
            porcelain.add(repo, paths=[str(self.root / self._change(turn, 3))])
            porcelain.commit(repo, message=b"change", author=b"b <b@x>", committer=b"b <b@x>")
