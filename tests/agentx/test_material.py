"""Bringing material in: a project at the start, files later, and an outer work tree whose repository stays its own."""

import hashlib
import os
import subprocess

import pytest

from agentx import Workspace
from agentx.storage.errors import UsageError
from agentx.storage.files.paths import PathRefused
from agentx.transfer import importing


def git(where, *arguments):
    done = subprocess.run(
        ["git", "-c", "user.name=P", "-c", "user.email=p@example.org", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def names(ws):
    return sorted(ws.engine.git.manifest())


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def project(tmp_path):
    """A project as people have them: ignored files, a nested repository, a binary, links, a script, a large file."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("print('hi')\n")
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (root / "build").mkdir()
    (root / "build" / "out.bin").write_bytes(b"x")
    (root / "debug.log").write_text("noise")
    (root / "keep.log").write_text("kept")
    (root / "logo.png").write_bytes(b"\x89PNG\x00\xff")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    os.symlink("src/app.py", root / "link")
    os.symlink("/etc/passwd", root / "leads-out")
    (root / "vendored").mkdir()
    git(root / "vendored", "init", "-q")
    (root / "vendored" / "lib.py").write_text("theirs\n")
    git(root, "init", "-q")
    git(root, "add", ".gitignore", "src")
    git(root, "commit", "-qm", "theirs")
    return root


def test_a_project_becomes_the_artifacts_without_what_git_would_ignore(project, tmp_path, lexical):
    (project / "huge.bin").write_bytes(b"\0" * 20_000_001)
    before = contents(project)
    with Workspace.create(tmp_path / "task", from_dir=project, settings=lexical) as ws:
        assert names(ws) == [
            ".gitignore",
            "keep.log",
            "leads-out",
            "link",
            "logo.png",
            "run.sh",
            "src/app.py",
        ]
        assert (ws.artifacts / "logo.png").read_bytes() == b"\x89PNG\x00\xff"
        assert os.access(ws.artifacts / "run.sh", os.X_OK)
        assert os.readlink(ws.artifacts / "link") == "src/app.py"
        assert "huge.bin" in " ".join(ws.status().notes)
        with pytest.raises(PathRefused):
            ws.tools.read_file("leads-out")
        ws.flush()
        assert git(ws.root, "status", "--short") == ""
        assert ws.status().outside == ()
    assert contents(project) == before


def test_a_project_that_is_not_there_leaves_nothing_behind(tmp_path, lexical):
    with pytest.raises(UsageError, match="does not exist"):
        Workspace.create(tmp_path / "task", from_dir=tmp_path / "none", settings=lexical)
    assert not (tmp_path / "task").exists()


def test_files_and_directories_are_added_where_they_are_asked_for(ws, project):
    changes, left_out = ws.add([project / "src", project / "run.sh"], to="in/")
    assert names(ws) == ["in/run.sh", "in/src/app.py"]
    assert (len(changes), left_out) == (2, [])
    again, _ = ws.add([project / "run.sh"], to="in")
    assert again == []


@pytest.mark.parametrize("to", ["..", "/tmp", "../x", ".git"])
def test_a_place_outside_the_artifacts_is_refused(ws, project, to):
    with pytest.raises(PathRefused):
        ws.add([project / "run.sh"], to=to)
    assert names(ws) == []


def test_names_that_git_or_another_system_cannot_hold_are_refused(ws, project, tmp_path):
    with pytest.raises(PathRefused):
        ws.add([project / ".git"])
    (tmp_path / "two\nlines").write_text("x")
    with pytest.raises(PathRefused):
        ws.add([tmp_path / "two\nlines"])
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "a\nb").write_text("x")
    with open(os.fsencode(tmp_path / "odd") + b"/\xff", "w") as file:
        file.write("x")
    os.mkfifo(tmp_path / "odd" / "pipe")
    (tmp_path / "odd" / "fine").write_text("x")
    changes, left_out = ws.add([tmp_path / "odd"])
    assert [change.path for change in changes] == ["odd/fine"]
    assert len(left_out) == 3
    _, left_out = ws.add([tmp_path / "odd" / "pipe"])
    assert "neither a file nor a directory" in left_out[0]
    with pytest.raises(UsageError, match="does not exist"):
        ws.add([tmp_path / "none"])


def test_a_name_that_is_not_utf8_among_the_artifacts_is_noted_and_harms_nothing(ws):
    with open(os.fsencode(ws.artifacts) + b"/\xff", "w") as file:
        file.write("x")
    ws.tools.write_file("a.txt", "fine")
    assert ws.status().files == 1
    assert any("not valid Unicode" in note for note in ws.status().notes)


# --- an outer work tree ---------------------------------------------------------------------------------------------


@pytest.fixture
def beside(project, lexical):
    (project / ".gitignore").write_text("build/\n*.log\n.task/\n")
    git(project, "add", "-A", "--", ".", ":!vendored")
    git(project, "commit", "-qm", "all")
    with Workspace.create(project / ".task", artifacts="..", settings=lexical) as ws:
        yield ws


def test_a_task_beside_a_project_mirrors_it_and_never_writes_its_repository(project, beside):
    before = contents(project / ".git")
    assert "src/app.py" in names(beside)
    assert not [name for name in names(beside) if name.startswith((".task", ".git/", "vendored", "build"))]
    beside.say("Never create a requirements.txt file.")
    beside.tools.edit_file("src/app.py", "hi", "hello")
    beside.tools.write_file("new.py", "x = 1\n")
    (project / "theirs.py").write_text("by hand\n")
    assert [change.path for change in beside.status().outside] == ["theirs.py"]
    beside.undo()
    assert not (project / "theirs.py").exists()
    assert beside.tools.call("write_file", {"path": "requirements.txt", "content": ""}).status == "DENIED"
    beside.flush()
    assert contents(project / ".git") == before
    assert git(project, "status", "--short").splitlines() == [" M src/app.py", "?? new.py", "?? vendored/"]
    assert git(beside.root, "status", "--short") == ""
    assert beside.rebuild().state_digest == beside.state.digest


def test_a_stash_in_the_task_s_own_repository_touches_no_file_of_the_project(project, beside):
    beside.tools.edit_file("src/app.py", "hi", "hello")
    beside.flush()
    before = contents(project)
    git(beside.root, "stash")
    after = contents(project)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert not [name for name in changed if not name.startswith(".task/")]
    assert "hello" in beside.tools.read_file("src/app.py").text
    assert beside.state.digest == beside.rebuild().state_digest


def test_a_stash_in_the_project_is_a_persons_edit(project, beside):
    (project / "src" / "app.py").write_text("print('edited')\n")
    beside.status()
    git(project, "stash")
    assert [change.path for change in beside.status().outside] == ["src/app.py"]
    beside.undo()
    assert "edited" in (project / "src" / "app.py").read_text()


def test_the_task_s_own_files_cannot_be_reached_as_artifacts(project, beside):
    for path in (".task/history.jsonl", ".task/agentx.toml", ".task/new.txt"):
        result = beside.tools.call("write_file", {"path": path, "content": "x"})
        assert result.status == "FAILED", path
    assert beside.tools.call("delete_file", {"path": ".task"}).status == "FAILED"
    assert beside.tools.call("read_file", {"path": ".task/history.jsonl"}).status == "FAILED"
    assert beside.tools.call("move_file", {"path": ".task", "to": "moved"}).status == "FAILED"
    assert (project / ".task" / "history.jsonl").is_file()
    assert not [entry for entry in beside.tools.list_directory().entries if entry.path == ".task"]


@pytest.mark.parametrize("artifacts", ["elsewhere", "/nowhere/at/all", "../sibling", "."])
def test_artifacts_lie_inside_or_around_the_workspace_and_nowhere_else(tmp_path, lexical, artifacts):
    with pytest.raises(UsageError, match="artifacts"):
        Workspace.create(tmp_path / "task", artifacts=artifacts, settings=lexical)
    assert not (tmp_path / "task").exists()


def test_an_import_is_one_commit(tmp_path, lexical):
    source = tmp_path / "source"
    source.mkdir()
    for number in range(importing.BATCH_FILES + 5):
        (source / f"{number}.txt").write_text(str(number))
    with Workspace.create(tmp_path / "task", from_dir=source, settings=lexical) as ws:
        subjects = [info.subject for info in ws.engine.git.repo.log()]
        assert len(subjects) == 2, subjects
        with ws.bulk():
            ws.tools.write_file("a.md", "a\n")
            ws.tools.write_file("b.md", "b\n")
        assert len(list(ws.engine.git.repo.log())) == 3
