"""Fixtures for the quality checks: a small tree, and a way to run a command in a copy of it."""

import os
import sys
from pathlib import Path

import pytest

from agentx.quality.bubblewrap import why_unavailable
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


@pytest.fixture(params=["never", "always"])
def use_bwrap(request):
    """Each test that takes this runs without bubblewrap and, where it works, with it."""
    if request.param == "always" and (reason := why_unavailable(os.environ.get("PATH", os.defpath))):
        pytest.skip(reason)
    return request.param


@pytest.fixture
def run(tree, use_bwrap):
    """Run a command in a copy of the tree; keyword arguments go to the policy where it knows them."""

    def run_it(command, *, root=tree, timeout_s=60, max_output_bytes=20_000, collect_changes=True, **policy):
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
        policy = {"environ": environ, "use_bwrap": use_bwrap, **policy}
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
