"""Workspaces whose search is lexical (no model is loaded), and other processes that work in the same one."""

import os
import subprocess
import sys

import pytest

from agentx import Workspace
from agentx.settings import Settings


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
        opened.append(Workspace.open(tmp_path / name, settings=lexical))
        return opened[-1]

    yield make
    for ws in opened:
        ws.close()


@pytest.fixture
def elsewhere():
    """Run Python in another process, with ``ws`` open on the workspace of this one; what it printed."""

    def run(ws, code):
        program = (
            "import os, sys\nfrom pathlib import Path\nfrom agentx import Workspace\nfrom agentx.settings import Settings\n"
            "settings = Settings(environ=dict(os.environ), cache_dir=Path(sys.argv[1]) / 'no-models')\n"
            f"with Workspace.open(sys.argv[1], settings=settings) as ws:\n    {code}\n"
        )
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(
            [sys.executable, "-c", program, str(ws.root)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
