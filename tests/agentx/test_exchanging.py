"""Random histories with pushes, pulls, clones and forks: every copy is complete and has the same state."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentx import Workspace
from agentx.storage.git.packs.packing import Packer

from . import crashing

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
STEPS = 16
PARTS = 3
"""The examples are divided among so many tests."""

NAMES = st.sampled_from(("a.txt", "x/a.txt", "y/a.txt", "x/deep/a.txt", "y/deep/a.txt", "y/deep/b.txt"))
TEXTS = st.sampled_from(("one\n", "two\n", "long line " * 400))
"""Few of each: the same files and directories come, go, and come back elsewhere."""


class Places(RuleBasedStateMachine):
    """A workspace, a backup of it, and a clone of the backup."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="agentx-places-"))
        self.bare = self.place / "backup.git"
        self.opened: list[Workspace] = []
        self.number = 0

    @initialize()
    def create(self) -> None:
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.bare)], check=True)
        self.ws = Workspace.create(self.place / "0", title="A task", settings=crashing.settings(self.place))
        self.ws._keeper.stop()
        self.ws.push(url=str(self.bare))
        self.other = self._clone("other")

    def teardown(self) -> None:
        for ws in (*self.opened, self.ws):
            ws.close()
        shutil.rmtree(self.place)

    def _clone(self, name: str) -> Workspace:
        subprocess.run(["git", "clone", "-q", str(self.bare), str(self.place / name)], check=True)
        ws = Workspace.open(self.place / name, settings=crashing.settings(self.place))
        ws._keeper.stop()
        self.opened.append(ws)
        return ws

    def _git(self, *arguments: str, root: Path | None = None, **more: str) -> str:
        command = ["git", "-c", "user.name=Pat", "-c", "user.email=pat@example.org", *arguments]
        done = subprocess.run(
            command, cwd=root or self.ws.root, env={**os.environ, **more}, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert not done.returncode, (arguments, done.stdout, done.stderr)
        return done.stdout.strip()

    def _files(self, ws: Workspace) -> dict[str, bytes]:
        return {
            path.relative_to(ws.artifacts).as_posix(): path.read_bytes()
            for path in ws.artifacts.rglob("*")
            if path.is_file()
        }

    # --- work -----------------------------------------------------------------------------------------------

    @rule(path=NAMES, text=TEXTS)
    def write(self, path: str, text: str) -> None:
        self.ws.tools.write_file(path, text)

    @precondition(lambda self: self._files(self.ws))
    @rule(data=st.data())
    def delete(self, data) -> None:
        self.ws.tools.delete_file(data.draw(st.sampled_from(sorted(self._files(self.ws)))))

    @rule(path=NAMES, text=TEXTS)
    def write_for_a_moment(self, path: str, text: str) -> None:
        self.ws.tools.write_file(path, text)
        self.ws.tools.delete_file(path)

    @precondition(lambda self: self._files(self.ws))
    @rule(data=st.data(), to=NAMES)
    def move(self, data, to: str) -> None:
        path = data.draw(st.sampled_from(sorted(self._files(self.ws))))
        if to not in self._files(self.ws):
            self.ws.tools.move_file(path, to)

    @rule(text=st.sampled_from(("Go on.", "word " * 3_000)))
    def say(self, text: str) -> None:
        self.ws.say(text)

    @rule()
    def commit_nothing(self) -> None:
        self.ws.flush()
        self._git("commit", "-q", "--allow-empty", "-m", "Nothing")

    @rule(back=st.integers(0, 3), path=NAMES, text=TEXTS)
    def merge(self, back: int, path: str, text: str) -> None:
        """A person commits a file beside an earlier commit, and merges that."""
        self.ws.flush()
        commits = self._git("rev-list", "--first-parent", "main").split()
        base = commits[min(back, len(commits) - 1)]
        index = {"GIT_INDEX_FILE": str(self.place / "index")}
        self.number += 1
        file = self.place / "file"
        file.write_text(text)
        oid = self._git("hash-object", "-w", str(file))
        self._git("read-tree", base, **index)
        self._git(
            "update-index",
            "--add",
            "--cacheinfo",
            f"100644,{oid},artifacts/side/{self.number}/{path}",
            **index,
        )
        side = self._git("commit-tree", self._git("write-tree", **index), "-p", base, "-m", "Aside")
        self._git("merge", "-q", "--no-ff", "--no-edit", side)
        self.ws.status()

    @rule(how=st.sampled_from(("ours", "gc", "repack", "backup")))
    def pack(self, how: str) -> None:
        self.ws.flush()
        if how == "ours":
            Packer(self.ws.root / ".git").run()
        elif how == "gc":
            self._git("gc", "-q")
        elif how == "repack":
            self._git("-c", "repack.writeBitmaps=true", "repack", "-q", "-a", "-d", "--write-midx")
        else:
            self._git("gc", "-q", "--prune=now", root=self.bare)

    # --- exchange -------------------------------------------------------------------------------------------

    @rule()
    def push(self) -> None:
        self.ws.push()
        self._look_at_the_backup()

    def _look_at_the_backup(self) -> None:
        assert self._git("fsck", "--strict", "--no-progress", "--no-dangling", root=self.bare) == ""
        self.number += 1
        clone = self._clone(f"clone-{self.number}")
        assert clone.verify().findings == ()
        assert clone.state.digest == self.ws.state.digest
        assert self._files(clone) == self._files(self.ws)
        self.opened.remove(clone)
        clone.close()

    @rule(data=st.data())
    def push_to_a_backup_that_lacks_something(self, data) -> None:
        """As an earlier version left it."""
        for pack in list((self.bare / "objects/pack").glob("*.pack")):
            content = pack.read_bytes()
            for path in pack.parent.glob(f"{pack.stem}.*"):
                path.unlink()
            subprocess.run(["git", "unpack-objects", "-q"], cwd=self.bare, input=content, check=True)
        reached = self._git("rev-list", "--objects", "--no-object-names", "main", root=self.bare).split()
        for oid in data.draw(st.sets(st.sampled_from(reached), min_size=1, max_size=4)):
            (self.bare / "objects" / oid[:2] / oid[2:]).unlink()
        assert self.ws.push().restored > 0
        self._look_at_the_backup()

    @rule()
    def pull_into_the_clone(self) -> None:
        self.ws.push()
        self.other.pull()
        self._both_are_the_same()

    @rule(path=NAMES, text=TEXTS)
    def work_in_the_clone(self, path: str, text: str) -> None:
        self.ws.push()
        self.other.pull()
        self.other.tools.write_file(path, text)
        self.other.push()
        self.ws.pull()
        self._both_are_the_same()

    def _both_are_the_same(self) -> None:
        assert self.other.state.digest == self.ws.state.digest
        assert self._files(self.other) == self._files(self.ws)
        assert self.other.verify().findings == ()

    @rule(data=st.data())
    def fork(self, data) -> None:
        at = data.draw(st.integers(1, self.ws.state.seq))
        self.number += 1
        with self.ws.fork(self.place / f"fork-{self.number}", at) as fork:
            assert fork.verify().findings == ()
            assert fork.state_at(at).digest == self.ws.state_at(at).digest
            assert self._git("fsck", "--strict", "--no-progress", "--no-dangling", root=fork.root) == ""


@pytest.mark.parametrize("part", range(PARTS))
def test_every_place_is_whole_and_says_the_same(part):
    """A push to a directory left out files, and said that all was well."""
    run_state_machine_as_test(
        Places,
        settings=settings(
            max_examples=-(-EXAMPLES // PARTS),
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
