"""A task that stands beside an existing project (``artifacts = ".."``)."""

import subprocess

import pytest

from agentx import Workspace
from agentx.storage.files.paths import PathRefused


@pytest.fixture
def project(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def ws(project):
    with Workspace.create(project / ".task", artifacts="..") as opened:
        yield opened


@pytest.mark.parametrize("path", ["agentx.toml", "history.jsonl", "new/file.txt", ".gitignore"])
def test_no_tool_reaches_the_workspace_itself(ws, path):
    before = {
        file: file.read_bytes() for file in ws.root.glob("*.*") if file.is_file() and file.suffix == ".toml"
    }
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("read_file", {}),
        ("delete_file", {}),
        ("edit_file", {"old": "a", "new": "b"}),
    ):
        result = ws.tools.call(name, {"path": f".task/{path}", **arguments})
        assert (result.status, "belongs to the workspace itself" in result.output) == ("FAILED", True), result
    moved = ws.tools.call("move_file", {"path": "src/a.py", "to": f".task/{path}x"})
    assert moved.status == "FAILED"
    assert {file: file.read_bytes() for file in before} == before


def test_no_tool_reaches_a_repository_of_its_own(ws, project):
    (project / "vendor" / ".git").mkdir(parents=True)
    (project / "vendor" / "v.py").write_text("y = 2\n")
    with pytest.raises(PathRefused, match="separate Git repository"):
        ws.tools.write_file("vendor/v.py", "z = 3\n")
    assert (project / "vendor" / "v.py").read_text() == "y = 2\n"


def test_the_projects_own_repository_is_never_written(ws, project):
    def state():
        return {path: path.read_bytes() for path in sorted((project / ".git").rglob("*")) if path.is_file()}

    before = state()
    ws.tools.write_file("src/b.py", "y = 2\n")
    ws.undo()
    ws.flush()
    assert state() == before
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ws.root, check=True, capture_output=True, text=True
    )
    assert status.stdout == ""
