"""Workspaces whose search is lexical (no model is loaded), and other processes that work in the same one."""

import os
import subprocess

import pytest

from agentx import Workspace
from agentx.core.event_bus import Bus
from agentx.core.layout import FORMAT
from agentx.factory import write_layout
from agentx.recording.write_path import Content, WritePath
from agentx.settings import Settings
from agentx.storage.artifacts import Artifacts
from agentx.storage.events.types import Draft, ToolCallExecuted, WorkspaceCreated
from agentx.storage.git.objects import blob_id
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import State
from agentx.trust.trust import Trust
from tests.locked_server import locked_server


@pytest.fixture
def lexical(tmp_path):
    """An environment without an installed model, so that nothing heavy is loaded."""
    return Settings(environ=dict(os.environ), cache_dir=tmp_path / "no-models")


@pytest.fixture
def ws(tmp_path, lexical):
    """An open workspace."""
    with Workspace.create(tmp_path / "task", title="A task", settings=lexical) as ws:
        yield ws


@pytest.fixture
def configured(tmp_path, lexical):
    """Make a workspace whose ``agentx.toml`` says more, and open it."""
    opened = []

    def make(toml, name="configured"):
        Workspace.create(tmp_path / name, settings=lexical).close()
        with (tmp_path / name / "agentx.toml").open("a", encoding="utf-8") as file:
            file.write(toml)
        Trust.read(tmp_path / name, lexical).grant("trusted", commands=True)
        opened.append(Workspace.open(tmp_path / name, settings=lexical))
        return opened[-1]

    yield make
    for ws in opened:
        ws.close()


@pytest.fixture
def elsewhere(in_a_process):
    """Run Python in another process, with ``ws`` open on the workspace of this one; what it printed."""

    def run(ws, code):
        program = (
            "import os, sys\nfrom pathlib import Path\nfrom agentx import Workspace\nfrom agentx.settings import Settings\n"
            "settings = Settings(environ=dict(os.environ), cache_dir=Path(sys.argv[1]) / 'no-models')\n"
            f"with Workspace.open(sys.argv[1], settings=settings) as ws:\n    {code}\n"
        )
        done = in_a_process(program, ws.root)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def task(tmp_path):
    """The directory of a new workspace whose first event is recorded and committed; nothing is open on it."""
    root = tmp_path / "task"
    write_layout(root, "artifacts")
    path = open_path(root)
    path.record([Draft(data=WorkspaceCreated(title="A task", format=FORMAT), actor="user")])
    path.git.include("agentx.toml")
    path.flush()
    path.close()
    return root


@pytest.fixture
def reopen(task):
    """Open the write path of the workspace, as often as is asked for."""
    opened = []

    def reopen():
        opened.append(open_path(task))
        return opened[-1]

    yield reopen
    for path in opened:
        path.close()


@pytest.fixture
def path(reopen):
    """The write path of the workspace, open."""
    return reopen()


@pytest.fixture
def git(task):
    """Run git in the workspace, as a person does; what it printed."""

    def git(*arguments, check=True):
        command = ["git", "-C", str(task), "-c", "user.name=Pat", "-c", "user.email=pat@x", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout if check else done

    return git


@pytest.fixture
def write():
    """Write a file through a write path, as a tool does."""

    def write(path, name, content, actor="agent:main"):
        contents = {name: Content(content.encode()) if content is not None else None}
        return path.write(contents, written, actor=actor)

    return write


@pytest.fixture
def sound(task, git, reopen):
    """Check that a workspace is whole: log, state, tree, files, Git's objects and its index; the history's events."""

    def sound():
        path = reopen()
        path.edits.scan()
        path.flush()
        damage = []
        events = list(path.log.history.read(on_damage=damage.append))
        assert not damage
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert State().apply_all(events).encode() == path.log.state.encode()
        on_disk = {
            name: blob_id((task / "artifacts" / name).read_bytes()) for name, _ in path.artifacts.listing()
        }
        assert {name: entry.oid for name, entry in path.git.manifest().items()} == on_disk
        assert git("fsck", "--strict", "--no-progress", "--no-dangling") == ""
        assert git("status", "--porcelain") == ""
        return events

    return sound


@pytest.fixture
def contents(path):
    """Every content that the history says a file had, in order, read from the repository."""

    def contents(name):
        return [
            path.git.repo.read_blob(made.after).decode() if made.after else None
            for event in path.log.history.read()
            for made in getattr(event.data, "changes", ())
            if getattr(made, "path", "") == name
        ]

    return contents


def open_path(root):
    artifacts = Artifacts(root / "artifacts", 1_000_000)
    path = WritePath(root, record_codec(), artifacts, Bus())
    path.load()
    path.recover()
    return path


def written(changes):
    return ToolCallExecuted(call_id="1", tool="write_file", status="SUCCEEDED", changes=changes)


@pytest.fixture
def locked():
    """A server over HTTP that lets nobody in."""
    with locked_server() as server:
        yield server
