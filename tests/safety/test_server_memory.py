"""A request that needs much memory ends the server, not the machine; one that nobody waits for any more ends."""

import os
import subprocess
import sys

import pytest

from agentx import Workspace
from agentx.client.client import Client, RequestFailed, ServerLost, ServerUnavailable
from agentx.settings import Settings
from agentx.storage import stopping
from tests.agentx.server.conftest import WAIT_S, place, root, server  # noqa: F401 - fixtures

NAMES = 200_000


def git(root, *arguments, given=b""):  # noqa: F811 - fixtures
    done = subprocess.run(["git", "-C", root, *arguments], input=given, capture_output=True, check=True)
    return done.stdout.decode().strip()


MOST_MB = 100
"""A little more than a server with a small workspace needs; half as much again is less than the tree needs."""


@pytest.fixture(autouse=True)
def _little(monkeypatch):
    monkeypatch.setenv("AGENTX_SERVER_MEMORY_MB", str(MOST_MB))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A Git tree of many names."""
    held = tmp_path_factory.mktemp("wide")
    git(held, "init", "-q")
    blob = git(held, "hash-object", "-w", "--stdin", given=b"x\n")
    rows = b"".join(b"100644 blob %b\t%07d\0" % (blob.encode(), n) for n in range(NAMES))
    tree = git(held, "mktree", "-z", given=rows)
    return held, tree


@pytest.fixture
def large(wide, root):  # noqa: F811 - fixtures
    """A workspace that needs some hundred megabytes to be opened."""
    held, tree = wide
    for folder in os.listdir(held / ".git/objects"):
        subprocess.run(["cp", "-r", held / ".git/objects" / folder, f"{root}/.git/objects/"], check=True)
    rows = [*git(root, "ls-tree", "HEAD").splitlines(), f"040000 tree {tree}\tmore"]
    top = git(root, "mktree", given="\n".join(rows).encode() + b"\n")
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    git(root, "update-ref", "HEAD", git(root, *who, "commit-tree", top, "-p", "HEAD", "-m", "Much"))
    return root


@pytest.fixture
def other(tmp_path, place):  # noqa: F811 - fixtures
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    Workspace.create(tmp_path / "other", title="Another task", settings=settings).close()
    return tmp_path / "other"


def test_a_request_that_needs_too_much_ends_the_server_and_others_get_answers(server, place, large, other):  # noqa: F811 - fixtures
    with Client.connect(place, start=False) as follower, Client.connect(place, start=False) as client:
        following = follower.stream("events", workspace=str(other), follow=True)
        next(following)
        with pytest.raises((ServerLost, RequestFailed)):
            client.call("status", workspace=large)
        with pytest.raises((ServerLost, RequestFailed)):
            list(following)
    assert server.wait(WAIT_S) in (0, 1)
    with pytest.raises(ServerUnavailable):
        Client.connect(place, start=False)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "agentx", "--json", "log"],
        cwd=other,
        env=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert (done.returncode, "Another task" in done.stdout) == (0, True), done.stderr


def opened_and_written(root, settings):  # noqa: F811 - fixtures
    with Workspace.open(root, settings=settings) as ws:
        ws.say("Use British English.")
        ws.flush()


@pytest.mark.parametrize("looks", [0, 1, 5, 20])
def test_what_nobody_waits_for_stops_and_leaves_the_workspace_whole(tmp_path, place, looks):  # noqa: F811 - fixtures
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    task = tmp_path / "task"
    Workspace.create(task, title="A task", settings=settings).close()
    for n in range(50):
        (task / "artifacts" / f"d{n}").mkdir()
        (task / "artifacts" / f"d{n}" / "f").write_text("x")
    left = iter(range(looks))
    with stopping.while_wanted(lambda: next(left, None) is not None), pytest.raises(KeyboardInterrupt):
        opened_and_written(task, settings)
    with Workspace.open(task, settings=settings) as ws:
        assert ws.state.title == "A task"
        ws.status()  # which records the files
        assert ws.verify().sound
