"""The real store beside a simple model in memory: whatever is done, in whatever order, with crashes in between."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentx import Workspace
from agentx.history.undo_restore import NothingToUndo
from agentx.storage.events.types import UserMessageSent
from agentx.storage.git.objects import blob_id
from agentx.storage.log.history import History
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import State

from . import crashing

_ROOT = Path(__file__).parents[2]
_CODEC = record_codec()
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
STEPS = 20
PARTS = 4
"""The examples are divided among so many tests, each with a seed."""

NAMES = st.sampled_from(("a.txt", "b.txt", "folder/c.txt", "folder/deep/d.txt"))
TEXTS = st.sampled_from(("", "one\n", "two\n", "three\nlines\nhere\n", "ä\u2028\n", "long line " * 400))
SAYINGS = st.sampled_from(("Never use tabs.", "Go on.", "word " * 3_000, "x" * 5_000))
CRASHES = st.integers(-4, -1) | st.integers(1, 40)
"""The step before which a process dies; negative ones count from the append on."""

Files = dict[str, str]


@dataclass
class Model:
    """What the store is to hold.

    Attributes:
        files: The working files.
        recorded: What the record says of them; less, where a person edited some.
        said: The user's words.
        undoable: What an undo takes back, the latest last: the files that changed, and all as they were before.
        moments: The recorded files by event, where nothing was under way.
    """

    files: Files = field(default_factory=dict)
    recorded: Files = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    undoable: list[tuple[set[str], Files]] = field(default_factory=list)
    moments: dict[int, Files] = field(default_factory=dict)

    def copy(self) -> "Model":
        return Model(
            dict(self.files), dict(self.recorded), list(self.said), list(self.undoable), dict(self.moments)
        )

    def notice(self, paths: set[str] | None = None) -> None:
        """A person's edits are put on record: of these files together, or of all."""
        looked_at = (self.files.keys() | self.recorded.keys()) if paths is None else paths
        self.change({path: self.files.get(path) for path in looked_at})

    def change(self, contents: dict[str, str | None]) -> None:
        """Files get new contents, as one change that can be undone."""
        before = dict(self.recorded)
        for path, text in contents.items():
            for files in (self.files, self.recorded):
                files.pop(path, None)
                if text is not None:
                    files[path] = text
        changed = {path for path in contents if before.get(path) != self.recorded.get(path)}
        if changed:
            self.undoable.append((changed, before))

    def undo(self) -> None:
        """The latest change that was not taken back is."""
        paths, before = self.undoable.pop()
        kept = list(self.undoable)
        self.change({path: before.get(path) for path in paths})
        self.undoable = kept

    def do(self, name: str, arguments: list[str]) -> None:
        """What :func:`tests.agentx.crashing.do` does."""
        if name == "say":
            self.said.append(arguments[0])
        elif name == "write":
            self.notice({arguments[0]})
            self.change({arguments[0]: arguments[1]})
        elif name == "delete":
            self.notice({arguments[0]})
            self.change({arguments[0]: None})
        elif name == "move":
            self.notice({arguments[1], arguments[0]})
            self.change({arguments[1]: self.files[arguments[0]], arguments[0]: None})
        elif name == "undo":
            self.notice()
            self.undo()
        elif name == "restore":
            self.notice()
            then = self.moments[int(arguments[0])]
            self.change({path: then.get(path) for path in self.recorded.keys() | then.keys()})


class Store(RuleBasedStateMachine):
    """Does things to a workspace and to the model, and compares them."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="agentx-machine-"))
        self.number = 0
        self.model = Model()
        self.known: dict[int, str] = {}
        self.crasher: subprocess.Popen[str] | None = None

    @initialize()
    def create(self) -> None:
        self.root = self.place / "0"
        self.ws = Workspace.create(self.root, title="A task", settings=crashing.settings(self.root))
        self.ws._keeper.stop()

    def teardown(self) -> None:
        if hasattr(self, "ws"):
            self.ws.close()
        if self.crasher is not None:
            self.crasher.communicate()
        shutil.rmtree(self.place)

    # --- what is done ------------------------------------------------------------------------------------------------

    def _do(self, name: str, *arguments: str) -> None:
        crashing.do(self.ws, name, list(arguments))
        self.model.do(name, list(arguments))

    @rule(text=SAYINGS)
    def say(self, text: str) -> None:
        self._do("say", text)

    @rule(path=NAMES, text=TEXTS)
    def write(self, path: str, text: str) -> None:
        self._do("write", path, text)

    @precondition(lambda self: self.model.files)
    @rule(data=st.data())
    def delete(self, data) -> None:
        self._do("delete", data.draw(st.sampled_from(sorted(self.model.files))))

    @precondition(lambda self: self.model.files)
    @rule(data=st.data(), to=NAMES)
    def move(self, data, to: str) -> None:
        path = data.draw(st.sampled_from(sorted(self.model.files)))
        if to not in self.model.files:
            self._do("move", path, to)

    @rule()
    def undo(self) -> None:
        self.ws.status()
        self.model.notice()
        if self.model.undoable:
            self._do("undo")
        else:
            with pytest.raises(NothingToUndo):
                self.ws.undo()

    @precondition(lambda self: self.model.moments)
    @rule(data=st.data())
    def restore(self, data) -> None:
        at = data.draw(st.sampled_from(sorted(self.model.moments)))
        self.ws.status()
        self.model.notice()
        if self.model.files or self.model.moments[at]:
            self._do("restore", str(at))

    @rule(path=NAMES, text=st.none() | TEXTS)
    def edit_by_hand(self, path: str, text: str | None) -> None:
        file = self.root / "artifacts" / path
        if text is None:
            file.unlink(missing_ok=True)
            self.model.files.pop(path, None)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            self.model.files[path] = text

    @rule()
    def look(self) -> None:
        self.ws.status()
        self.model.notice()

    @rule(writes=st.lists(st.tuples(NAMES, TEXTS), min_size=2, max_size=5))
    def write_in_bulk(self, writes: list[tuple[str, str]]) -> None:
        with self.ws.engine.write_path.bulk():
            for path, text in writes:
                self._do("write", path, text)

    @rule()
    def flush(self) -> None:
        self.ws.flush()
        if self.model.files == self.model.recorded:
            assert self._git("status", "--porcelain") == ""

    @rule()
    def reopen(self) -> None:
        self.ws.close()
        self._open(self.root)

    @rule(step=CRASHES, data=st.data())
    def crash(self, step: int, data) -> None:
        self._crash(step, data, open_beside=False)

    @rule(step=CRASHES, data=st.data())
    def crash_beside(self, step: int, data) -> None:
        self._crash(step, data, open_beside=True)

    def _crash(self, step: int, data, *, open_beside: bool) -> None:
        """Another process dies amid one thing: it is done or it is not, and where it was acknowledged it is."""
        self.ws.status()
        self.model.notice()
        self.ws.flush()
        job = data.draw(self._jobs())
        if not open_beside:
            self.ws.close()
        answer = self._ask([str(self.root), step, *job])
        note(f"it answered {answer}")
        assert not answer["errors"]
        assert not answer["hung"]
        if not open_beside:
            self._open(self.root)
        after = self.model.copy()
        after.do(*job)
        self.ws.engine.write_path.refresh()
        if (self._said(), self._files()) == (after.said, after.files):
            self.model = after if self._is_news() else self.model
        else:
            assert not answer["done"], "what was acknowledged is lost"

    def _is_news(self) -> bool:
        return len(self._events()) > len(self.known)

    def _jobs(self):
        there = sorted(self.model.files)
        free = sorted({"a.txt", "b.txt", "folder/c.txt", "new.txt"} - set(there))
        jobs = [
            st.tuples(st.just("say"), st.tuples(SAYINGS).map(list)),
            st.tuples(st.just("write"), st.tuples(NAMES, TEXTS).map(list)),
        ]
        if there:
            one = st.sampled_from(there)
            jobs.append(st.tuples(st.just("delete"), st.tuples(one).map(list)))
        if there and free:
            jobs.append(
                st.tuples(st.just("move"), st.tuples(st.sampled_from(there), st.sampled_from(free)).map(list))
            )
        if self.model.undoable:
            jobs.append(st.just(("undo", [])))
        return st.one_of(jobs)

    # --- other places ------------------------------------------------------------------------------------------------

    @rule(data=st.data(), stay=st.booleans())
    def fork(self, data, *, stay: bool) -> None:
        moments = sorted(self.model.moments)
        at = data.draw(st.none() | st.sampled_from(moments)) if moments else None
        self.model.notice()
        new = self._new_place()
        with self.ws.fork(new, at) as made:
            wanted = self.model.recorded if at is None else self.model.moments[at]
            assert _files(made.artifacts) == wanted
            assert made.verify().findings == ()
        if stay and at is None:
            self._go_to(new)

    @rule(stay=st.booleans())
    def clone(self, *, stay: bool) -> None:
        self.ws.status()
        self.model.notice()
        self.ws.flush()
        new = self._new_place()
        subprocess.run(["git", "clone", "-q", str(self.root), str(new)], check=True)
        with Workspace.open(new, settings=crashing.settings(new)) as made:
            assert made.state.digest == self.ws.state.digest
            assert _files(made.artifacts) == self.model.files
        if stay:
            self._go_to(new)

    def _new_place(self) -> Path:
        self.number += 1
        return self.place / str(self.number)

    def _go_to(self, root: Path) -> None:
        self.ws.close()
        self._open(root)

    def _open(self, root: Path) -> None:
        self.root = root
        self.ws = Workspace.open(root, settings=crashing.settings(root))
        self.ws._keeper.stop()

    # --- looking -----------------------------------------------------------------------------------------------------

    @rule()
    def verify(self) -> None:
        self.ws.status()
        self.model.notice()
        self.ws.flush()
        assert self.ws.verify().findings == ()

    @rule()
    def rebuild(self) -> None:
        digest, damage = self.ws.state.digest, []
        assert self.ws.engine.write_path.refold(damage.append).digest == digest
        assert damage == []

    @rule()
    def delete_the_cache(self) -> None:
        shutil.rmtree(self.root / ".agentx", ignore_errors=True)  # it is made when it is needed

    @invariant()
    def files_are_the_models(self) -> None:
        assert self._files() == self.model.files

    @invariant()
    def the_record_is_the_models(self) -> None:
        with self.ws.engine.write_path.exclusive():
            record = {path: entry.oid for path, entry in self.ws.engine.git.manifest().items()}
        assert record == {path: blob_id(text.encode()) for path, text in self.model.recorded.items()}

    @invariant()
    def nothing_is_forgotten(self) -> None:
        events = self._events()
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        there = {event.seq: event.hash for event in events}
        assert there.items() >= self.known.items()
        self.known = there
        assert self._said() == self.model.said
        state = self.ws.state
        assert State().apply_all(events).digest == state.digest
        if self.model.files == self.model.recorded:
            self.model.moments[state.seq] = dict(self.model.recorded)

    def _events(self):
        return list(History(self.root, _CODEC).read())

    def _said(self) -> list[str]:
        said = (event.data for event in self._events() if isinstance(event.data, UserMessageSent))
        return [self.ws.read_body(one.body) for one in said]

    def _files(self) -> Files:
        return _files(self.root / "artifacts")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _ask(self, job: list[object]) -> dict[str, object]:
        if self.crasher is None:
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
            self.crasher = subprocess.Popen(
                [sys.executable, "-m", "tests.agentx.crashing"],
                cwd=_ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        self.crasher.stdin.write(json.dumps(job) + "\n")
        self.crasher.stdin.flush()
        return json.loads(self.crasher.stdout.readline())


def _files(artifacts: Path) -> Files:
    found = (path for path in artifacts.rglob("*") if path.is_file() and ".agentx-tmp-" not in path.name)
    return {path.relative_to(artifacts).as_posix(): path.read_bytes().decode() for path in found}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_store_is_what_a_simple_model_says(part):
    run_state_machine_as_test(
        seed(part)(type("Store", (Store,), {})),
        settings=settings(
            max_examples=-(-EXAMPLES // PARTS),
            stateful_step_count=STEPS,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
