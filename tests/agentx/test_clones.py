"""A clone that Git made of a workspace is a workspace: the same history, the same digest, the same bytes."""

import os
import shutil
import subprocess

import pygit2
import pytest

from agentx import Workspace
from agentx.integrity.verify import verify
from agentx.settings import Settings
from agentx.storage.errors import UsageError

RULE = "From now on, never create a requirements.txt file."


@pytest.fixture
def clone(tmp_path):
    """Clone with the git program, as a person does."""

    def clone(source, name, *options):
        subprocess.run(["git", *options, "clone", "--quiet", str(source), str(tmp_path / name)], check=True)
        return tmp_path / name

    return clone


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A workspace with a rule, files of every sort, and a sealed segment; the tests only clone it."""
    folder = tmp_path_factory.mktemp("filled")
    settings = Settings(environ=dict(os.environ), cache_dir=folder / "no-models")
    with Workspace.create(folder / "task", title="A task", settings=settings) as ws:
        _fill(ws)
        yield ws


def _fill(ws):
    ws.say(RULE)
    ws.tools.write_file("src/a.py", "print('a')\n")
    ws.tools.write_file("mixed.txt", "one\r\ntwo\n")
    ws.tools.write_file(".gitattributes", "*.py text eol=crlf\n")
    (ws.artifacts / "run.sh").write_bytes(b"#!/bin/sh\n")
    (ws.artifacts / "run.sh").chmod(0o755)
    (ws.artifacts / "link").symlink_to("run.sh")
    ws.status()
    for number in range(20):
        ws.say(f"{number} " + "x" * 4_500)
    ws.flush()
    assert (ws.root / "history/000/001.jsonl").exists()


def files(root):
    return {
        path.relative_to(root).as_posix(): (path.is_symlink(), path.stat().st_mode & 0o100, path.read_bytes())
        for folder in ("artifacts", "history")
        for path in (root / folder).rglob("*")
        if path.is_file()
    } | {"history.jsonl": (root / "history.jsonl").read_bytes()}


def is_the_same(root, ws, lexical):
    wanted, digest = files(ws.root), ws.state.digest
    with Workspace.open(root, settings=lexical) as clone:
        status = clone.status()
        assert (clone.state.digest, status.outside, status.damage, status.notes) == (digest, (), (), ())
        assert clone.rebuild().state_digest == digest
        assert files(root) == wanted
    shown = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True)
    assert shown.stdout == b""


def test_a_clone_opens_and_gives_the_same_digest_and_bytes(filled, clone, lexical):
    root = clone(filled.root, "clone")
    is_the_same(root, filled, lexical)
    assert verify(root).findings == ()


def test_a_clone_of_a_clone_through_a_bare_repository_opens(filled, clone, lexical):
    bare = clone(filled.root, "bare", "-c", "clone.defaultRemoteName=up")
    subprocess.run(["git", "clone", "-q", "--bare", str(bare), f"{bare}.git"], check=True)
    is_the_same(clone(clone(f"{bare}.git", "first"), "second"), filled, lexical)


def test_a_clone_by_libgit2_opens(filled, tmp_path, lexical):
    pygit2.clone_repository(str(filled.root), str(tmp_path / "clone")).free()
    is_the_same(tmp_path / "clone", filled, lexical)
    assert verify(tmp_path / "clone").findings == ()


def test_a_shallow_clone_opens(filled, clone, lexical, tmp_path):
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{filled.root}", str(tmp_path / "shallow")], check=True
    )
    is_the_same(tmp_path / "shallow", filled, lexical)


def test_line_ends_that_git_converted_come_back(filled, clone, lexical):
    root = clone(filled.root, "clone", "-c", "core.autocrlf=true")
    assert b"\r\n" in (root / "history.jsonl").read_bytes()
    is_the_same(root, filled, lexical)


def test_an_edit_in_a_clone_before_it_is_opened_is_recorded(filled, clone, lexical):
    root = clone(filled.root, "clone", "-c", "core.autocrlf=true")
    (root / "artifacts/src/a.py").write_text("print('mine')\r\n")
    with Workspace.open(root, settings=lexical) as ws:
        assert [made.path for made in ws.status().outside] == ["src/a.py"]
        assert (root / "artifacts/src/a.py").read_text() == "print('mine')\n"


def test_a_clone_can_be_worked_in_and_keeps_what_git_lacks(filled, clone, lexical):
    root = clone(filled.root, "clone")
    with Workspace.open(root, settings=lexical) as ws:
        ws.tools.write_file("b.txt", "b\n")
        digest = ws.state.digest
    (root / ".git/info/exclude").unlink()
    shutil.rmtree(root / ".agentx")
    with Workspace.open(root, settings=lexical) as ws:
        assert ws.state.digest == digest
    assert (root / ".git/info/exclude").exists()


def test_a_clone_of_an_empty_workspace_opens(ws, clone, lexical):
    ws.flush()
    root = clone(ws.root, "clone")
    with Workspace.open(root, settings=lexical) as copy:
        copy.tools.write_file("a.txt", "a\n")
        assert copy.status().notes == ()


def test_a_clone_of_a_task_beside_a_project_does_not_take_the_directory_above(tmp_path, clone, lexical):
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("print()\n")
    with Workspace.create(project / ".task", artifacts="..", settings=lexical) as ws:
        digest = ws.state.digest
    root = clone(project / ".task", "clone")
    for _ in range(2):
        with pytest.raises(UsageError, match="belongs to a project directory"):
            Workspace.open(root, settings=lexical)
    (root / "agentx.toml").write_text('[workspace]\nartifacts = "artifacts"\n')
    with Workspace.open(root, settings=lexical) as ws:
        assert ws.state.digest == digest
        assert ws.tools.read_file("main.py").text == "print()"


def test_a_clone_of_thousands_of_files_opens(ws, clone, lexical):
    ws.flush()
    for number in range(3_000):
        path = ws.artifacts / f"d{number % 100}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n")
    person = ["git", "-C", ws.root, "-c", "user.name=Pat", "-c", "user.email=pat@example.org"]
    subprocess.run([*person, "add", "."], check=True)
    subprocess.run([*person, "commit", "-q", "-m", "Bring the files"], check=True)
    ws.flush()
    root = clone(ws.root, "clone")
    with Workspace.open(root, settings=lexical) as copy:
        status = copy.status()
        assert (copy.state.digest, status.outside, status.files) == (ws.state.digest, (), 3_000)


def test_what_a_first_opening_left_that_was_killed_is_removed(filled, clone, lexical):
    root = clone(filled.root, "clone")
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/.agentx-tmp-x").write_text("half of it")
    is_the_same(root, filled, lexical)
    assert not list((root / ".git").rglob(".agentx-tmp-*"))


def test_a_clone_whose_first_opening_died_while_it_made_its_cache_is_clean_in_git(clone, filled, lexical):
    root = clone(filled.root, "half-opened")
    (root / ".agentx").mkdir()
    (root / ".agentx/.gitignore").touch()
    is_the_same(root, filled, lexical)
    assert (root / ".agentx/.gitignore").read_text().strip() == "*"
