"""A server of each test's own, in a process and a runtime directory of its own."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.client.client import Client, RequestFailed, ServerLost, ServerUnavailable
from agentx.settings import Settings

WAIT_S = 60.0


@pytest.fixture
def place(tmp_path):
    """Environment with a runtime directory of its own; a server that a test started there ends with it."""
    with tempfile.TemporaryDirectory(prefix="agentx-rt-", dir="/tmp") as name:
        environ = {
            **os.environ,
            "AGENTX_NO_SERVER": "",
            "AGENTX_RUNTIME_DIR": f"{name}/rt",
            "AGENTX_CACHE_DIR": str(tmp_path / "no-models"),
            "AGENTX_STATE_DIR": str(tmp_path / "state"),
        }
        yield environ
        end(environ)


def end(environ):
    """Stop the server, also one that is still starting, and wait until it has released its lock."""
    lock = Path(environ["AGENTX_RUNTIME_DIR"]) / "lock"
    deadline = time.monotonic() + WAIT_S
    while lock.exists():
        with (
            suppress(ServerUnavailable, ServerLost, RequestFailed),
            Client.connect(environ, start=False) as client,
        ):
            client.call("server.stop")
        if not subprocess.run(["flock", "-w", "0.2", str(lock), "true"], check=False).returncode:
            break
        assert time.monotonic() < deadline, "the server does not end"


@pytest.fixture
def server(place):
    """A running server: its process; ``place`` is its environment."""
    with subprocess.Popen([sys.executable, "-P", "-m", "agentx", "serve"], env=place) as process:
        for _ in range(int(WAIT_S / 0.05)):
            with suppress(ServerUnavailable), Client.connect(place, start=False):
                break
            time.sleep(0.05)
        yield process
        process.terminate()
        process.wait(WAIT_S)


@pytest.fixture
def client(server, place):
    """A connection to it."""
    with Client.connect(place, start=False) as client:
        yield client


@pytest.fixture
def root(tmp_path, place):
    """A workspace that no process has open."""
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    Workspace.create(tmp_path / "task", title="A task", settings=settings).close()
    return str(tmp_path / "task")
