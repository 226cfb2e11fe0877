"""Fixtures for the quality checks: a small tree, and a way to run a command in a copy of it."""

import os
import sys
from pathlib import Path

import pytest

from agentx.quality import bubblewrap, confine
from agentx.quality.sandbox import SandboxPolicy, run_in_copy


@pytest.fixture
def tree(tmp_path):
    """A tree that lies in a workspace, as artifacts do."""
    root = tmp_path / "workspace" / "artifacts"
    root.mkdir(parents=True)
    (root / "notes.md").write_text("# Notes\n")
    (root / "pkg").mkdir()
    (root / "pkg" / "mod.py").write_text("VALUE = 1\n")
    (root.parent / "history.jsonl").write_text('{"seq":1}\n')
    return root


def why_not(isolation):
    """Why an isolation cannot be tested here; None where it can."""
    if isolation == "bubblewrap":
        return bubblewrap.why_unavailable(os.environ.get("PATH", os.defpath))
    return confine.why_unavailable() if isolation == "landlock" else None


@pytest.fixture(params=["none", "bubblewrap", "landlock"])
def isolation(request):
    """Each test that takes this runs without isolation and, where it works, with each kind."""
    if reason := why_not(request.param):
        pytest.skip(reason)
    return request.param


@pytest.fixture
def run(tree, isolation):
    """Run a command in a copy of the tree; keyword arguments go to the policy where it knows them."""

    def run_it(command, *, root=tree, timeout_s=60, max_output_bytes=20_000, collect_changes=True, **policy):
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
        policy = {"environ": environ, "isolation": isolation, **policy}
        return run_in_copy(
            Path(root),
            command,
            timeout_s=timeout_s,
            max_output_bytes=max_output_bytes,
            policy=SandboxPolicy(**policy),
            collect_changes=collect_changes,
        )

    return run_it


@pytest.fixture
def python():
    """The interpreter that runs the tests."""
    return sys.executable
