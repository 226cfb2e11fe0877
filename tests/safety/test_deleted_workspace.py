"""A workspace that was deleted stays deleted, and another one in its place gets nothing of it."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from agentx import Workspace
from agentx.client.client import Client
from agentx.storage.errors import AgentXError
from tests.agentx.server.conftest import WAIT_S, place, server  # noqa: F401 - fixtures

DOORS = {
    "search": lambda ws: ws.search("zebra"),
    "say": lambda ws: ws.say("Always use tabs."),
    "write": lambda ws: ws.tools.write_file("new/deep/file.md", "New."),
    "index": lambda ws: ws.engine.indexer.settle(time.monotonic() + 5),
    "rebuild": lambda ws: ws.engine.indexer.rebuild(),
    "background": lambda ws: ws.engine.indexer.start(),
    "scan": lambda ws: ws.engine.edits.scan(),
    "flush": lambda ws: ws.flush(),
    "close": lambda ws: ws.close(),
}


def create(root, word="zebra"):
    ws = Workspace.create(root, title="A task")
    ws.tools.write_file("notes.md", f"The {word} is here.\n")
    ws.flush()  # a commit in the background would get in the way of its removal
    return ws


def files(root):
    return sorted(
        (str(one.relative_to(root)), one.read_bytes() if one.is_file() else b"") for one in root.rglob("*")
    )


@contextmanager
def used(ws):
    """Close a workspace afterwards, whatever became of it."""
    try:
        yield
    finally:
        with suppress(AgentXError, OSError):
            ws.close()


@pytest.mark.parametrize("was_searched", [False, True], ids=["", "searched before"])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_nothing_makes_a_deleted_workspace_again(tmp_path, door, was_searched):
    root = tmp_path / "desk"
    ws = create(root)
    with used(ws):
        if was_searched:
            assert ws.search("zebra")
        shutil.rmtree(root)
        with suppress(AgentXError, OSError):
            door(ws)
        assert not root.exists()
    assert not root.exists()


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_another_workspace_in_its_place_gets_nothing_of_it(tmp_path, door):
    root = tmp_path / "desk"
    ws = create(root)
    with used(ws):
        assert ws.search("zebra")
        shutil.rmtree(root)
        create(root, "giraffe").close()
        before = files(root)
        with suppress(AgentXError, OSError):
            door(ws)
    assert files(root) == before
    with Workspace.open(root) as other:
        assert "zebra is" not in repr(other.search("zebra"))


@pytest.fixture
def agentx(place, tmp_path):  # noqa: F811 - the fixture
    def start(*words, text=""):
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "agentx", *words],
            env={**place, "PYTHONPATH": os.getcwd()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
        )

    return start


def test_neither_server_nor_watcher_makes_a_deleted_workspace_again(tmp_path, server, agentx, place):  # noqa: F811
    root = tmp_path / "desk"
    create(root).close()
    with Client.connect(place, start=False) as client, agentx("-C", str(root), "watch") as watch:
        try:
            assert "Watching" in watch.stdout.readline()
            with agentx("-C", str(root), "search", "zebra") as search:
                assert "zebra" in search.communicate(timeout=WAIT_S)[0]
            assert client.call("server.status")["workspaces"]
            (root / "artifacts/more.md").write_text("More of the zebra.\n")
            shutil.rmtree(root)
            end = time.monotonic() + WAIT_S
            while client.call("server.status")["workspaces"]:
                assert time.monotonic() < end, "the server keeps it open"
                time.sleep(0.05)
        finally:
            watch.terminate()
        watch.communicate(timeout=WAIT_S)
    assert not root.exists()
