"""Git's index file is in step with the commits, and nobody works from an old one meanwhile."""

import os
import subprocess
import sys
import threading

import pytest

from agentx.storage.git import index_file
from agentx.storage.git.index_file import GitIsBusy, IndexFile, Mark
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR, GitRepository, TreeEntry


@pytest.fixture
def repo(tmp_path):
    made = GitRepository.init(tmp_path)
    yield made
    made.close()


@pytest.fixture
def index(repo):
    return IndexFile(repo.git_dir)


@pytest.fixture
def git(tmp_path):
    def run(*arguments, check=True):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=P", "-c", "user.email=p@x", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=check)

    return run


@pytest.fixture
def committed(repo, tmp_path):
    """Write files and commit them, as the engine does; what the index file is to be told."""

    def commit(**files):
        entries = {}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
            entries[name] = TreeEntry(repo.write_blob(content.encode()), REGULAR)
        tree = repo.update_tree(repo.tree_of(repo.head), entries)
        made = repo.commit(tree, repo.head, "m\n", ("a", "a@x"))
        repo.move_ref(made, repo.head, "test")
        return entries

    return commit


def test_after_a_refresh_git_sees_nothing_to_do(index, committed, git, tmp_path):
    index.refresh(committed(a="1", b="2"), tmp_path)
    assert git("status", "--porcelain").stdout == ""
    assert not index.held


def test_while_it_is_held_git_refuses_what_would_work_from_the_old_index(index, committed, git, tmp_path):
    index.refresh(committed(a="1"), tmp_path)
    index.hold()
    changes = committed(a="2")
    for command in (
        ["add", "."],
        ["stash"],
        ["reset", "--hard"],
        ["commit", "-am", "x"],
        ["checkout", "--", "a"],
    ):
        done = git(*command, check=False)
        assert done.returncode != 0, command
        assert "index.lock" in done.stderr or command == ["stash"]  # which says nothing
    index.refresh(changes, tmp_path)
    assert git("status", "--porcelain").stdout == ""
    assert (tmp_path / "a").read_text() == "2"
    git("add", ".")


def test_executables_links_and_deletions_are_in_it(index, repo, tmp_path, git):
    (tmp_path / "run").write_text("x")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("run")
    entries = {
        "run": TreeEntry(repo.write_blob(b"x"), EXECUTABLE),
        "link": TreeEntry(repo.write_blob(b"run"), LINK),
    }
    first = repo.commit(repo.update_tree("", entries), "", "m\n", ("a", "a@x"))
    repo.move_ref(first, "", "test")
    index.refresh(entries, tmp_path)
    assert git("status", "--porcelain").stdout == ""
    assert index.entries() == entries
    index.refresh({"run": None, "never": None}, tmp_path)
    assert list(index.entries()) == ["link"]


def test_an_edit_since_the_commit_is_shown_and_not_hidden(index, committed, git, tmp_path):
    changes = committed(a="engine")
    (tmp_path / "a").write_text("person")
    index.refresh(changes, tmp_path)
    assert git("status", "--porcelain").stdout == " M a\n"


def test_what_a_person_staged_elsewhere_stays_staged(index, committed, git, tmp_path):
    index.refresh(committed(a="1", b="1"), tmp_path)
    (tmp_path / "b").write_text("staged")
    git("add", "b")
    index.refresh(committed(a="2"), tmp_path)
    assert git("status", "--porcelain").stdout == "M  b\n"


def test_it_is_known_when_someone_else_wrote_it(index, committed, git, tmp_path):
    assert index.touched
    index.refresh(committed(a="1"), tmp_path)
    assert not index.touched
    (tmp_path / "new").write_text("x")
    git("add", "new")
    assert index.touched


def test_the_lock_of_a_dead_engine_is_taken_over_with_what_it_left_unsettled(index, committed, tmp_path, git):
    code = (
        "from pathlib import Path; from agentx.storage.git.index_file import IndexFile;"
        f"IndexFile(Path({str(tmp_path / '.git')!r})).hold(7)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert index.mark.is_left
    assert not index.mark.rebooted
    index.hold(9)
    assert index.mark == Mark.of_this_process(7)
    index.refresh(committed(a="1"), tmp_path)
    assert git("status", "--porcelain").stdout == ""


@pytest.mark.parametrize("content", [b"agentx ", b"agentx x", b"agentx 99999999999999999999 3"])
def test_a_lock_of_ours_that_names_nobody_is_taken_over(index, tmp_path, content):
    (tmp_path / ".git/index.lock").write_bytes(content)
    index.hold()
    assert index.mark.pid == os.getpid()


def test_after_the_machine_went_down_no_process_of_that_number_passes_for_the_owner(index, tmp_path):
    (tmp_path / ".git/index.lock").write_text(f"agentx {os.getpid()} 3 another-boot")
    assert index.mark.is_left
    assert index.mark.rebooted


def test_git_s_own_lock_is_waited_for(index, tmp_path):
    (tmp_path / ".git/index.lock").touch()
    timer = threading.Timer(0.2, (tmp_path / ".git/index.lock").unlink)
    timer.start()
    index.hold()
    timer.join()
    assert index.held


def test_git_s_own_lock_that_stays_is_told_of_and_left_alone(index, tmp_path, monkeypatch):
    monkeypatch.setattr(index_file, "_GIT_WAIT_S", 0.1)
    (tmp_path / ".git/index.lock").touch()
    with pytest.raises(GitIsBusy, match="if no git command is running, delete that file"):
        index.hold()
    assert (tmp_path / ".git/index.lock").read_bytes() == b""
    assert not index.held


def test_what_a_crash_left_beside_it_is_no_obstacle(index, committed, git, tmp_path):
    for name in ("agentx-index", "agentx-index.lock", "agentx-index-mark"):
        (tmp_path / ".git" / name).write_text("half")
    index.refresh(committed(a="1"), tmp_path)
    assert git("status", "--porcelain").stdout == ""


def test_artifacts_outside_the_working_directory_are_not_looked_for(repo, tmp_path, git):
    index = IndexFile(repo.git_dir, outer=True)
    entries = {"artifacts/a": TreeEntry(repo.write_blob(b"x"), REGULAR)}
    made = repo.commit(repo.update_tree("", entries), "", "m\n", ("a", "a@x"))
    repo.move_ref(made, "", "test")
    index.refresh(entries, tmp_path)
    assert git("status", "--porcelain").stdout == ""
