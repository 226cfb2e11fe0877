"""What a crash, a power cut or pruning left in a repository is mended at the next open, without hanging."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.integrity.verify import verify
from agentx.settings import Settings
from agentx.storage.git.objects import loose_path
from agentx.storage.git.recovery.git_repair import repair


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "task"
    settings = Settings(environ=dict(os.environ), cache_dir=root.parent / "no-models")
    Workspace.create(root, settings=settings).close()
    with Workspace.open(root, settings=settings) as ws:
        ws.engine.write_path.defer(None)  # so that each object is a file, which can be removed
        for number in range(6):
            ws.tools.write_file(f"folder/f{number % 3}", f"content {number}\n")
    return root


@pytest.fixture
def root(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "task", symlinks=True))


@pytest.fixture
def git(root):
    def git(*arguments):
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return git


@pytest.fixture
def sound(root, git):
    """Open the workspace, and hold that everything is whole then."""

    def sound():
        with Workspace.open(root) as ws:
            events = ws.state.seq
        assert verify(root).findings == ()
        assert git("fsck", "--strict", "--no-dangling") == ""
        assert git("status", "--porcelain") == ""
        return events

    return sound


def test_a_whole_repository_is_left_as_it_is(root):
    assert repair(root) == ""
    noted = (root / ".git/agentx-whole").read_text()
    assert repair(root) == ""
    assert (root / ".git/agentx-whole").read_text() == noted


@pytest.mark.parametrize("name", ["HEAD", "HEAD^{tree}", "HEAD:artifacts", "HEAD:artifacts/folder", "HEAD:history.jsonl",
                                  "HEAD:artifacts/folder/f2", "HEAD:artifacts/folder/f0"])  # fmt: skip
def test_what_pruning_took_from_the_latest_commits_is_there_again(root, git, sound, name):
    events = len((root / "history.jsonl").read_bytes().splitlines())
    (root / ".git/agentx-whole").unlink(missing_ok=True)
    loose_path(root / ".git", git("rev-parse", name)).unlink()
    assert sound() >= events


@pytest.mark.parametrize("name", ["HEAD~1^{tree}", "HEAD~1:history.jsonl", "HEAD~1:artifacts/folder"])
def test_what_git_s_tidying_took_from_an_earlier_commit_is_made_again(root, git, sound, name):
    since = git("rev-parse", "HEAD~4")
    (root / ".git/agentx-whole").write_text(f"{since} 0 0\n")
    (root / ".git/packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n")
    head = git("rev-parse", "HEAD")
    loose_path(root / ".git", git("rev-parse", name)).unlink()
    sound()
    assert head in git("log", "--format=%H").split()


@pytest.mark.parametrize("lock", ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"])
def test_a_lock_of_a_ref_that_a_dead_git_left_is_removed_once_it_is_old(root, sound, lock):
    path = root / ".git" / lock
    path.touch()
    assert repair(root) == ""
    assert path.exists()
    os.utime(path, (0, 0))
    assert "process that died" in repair(root) or not path.exists()
    assert not path.exists()
    sound()


def _git_at_work(*options, **place):
    """Start a git program and wait for its first answer: until then it may still bear Python's name."""
    at_work = subprocess.Popen(
        ["git", *options, "cat-file", "--batch-check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **place
    )
    at_work.stdin.write(b"HEAD\n")
    at_work.stdin.flush()
    assert at_work.stdout.readline().endswith(b"\n")
    return at_work


@pytest.mark.parametrize("how", ["inside", "by --git-dir", "by GIT_DIR"])
def test_an_index_lock_is_left_to_a_git_that_is_at_work(root, sound, how):
    lock = root / ".git/index.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    (root / ".git/index").write_bytes(b"")  # a reason to look closely
    option, place, named = {
        "inside": [[], root, {}],
        "by --git-dir": [[f"--git-dir={root.name}/.git"], root.parent, {}],
        "by GIT_DIR": [[], "/", {"GIT_DIR": str(root / ".git")}],
    }[how]
    with _git_at_work(*option, cwd=place, env=os.environ | named) as at_work:
        repair(root)
        assert lock.read_bytes() == b""
        at_work.communicate()
    (root / ".git/index").write_bytes(b"")
    repair(root)
    assert lock.read_bytes().startswith(b"agentx ")  # the engine's: the next open fills the index anew
    sound()


def test_a_git_that_runs_above_a_workspace_and_names_nothing_in_it_keeps_no_lock_alive(
    root, tmp_path_factory, sound
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    subprocess.run(["git", "init", "-q", str(elsewhere)], check=True)
    lock = root / ".git/index.lock"
    lock.write_bytes(b"\0" * 12)
    os.utime(lock, (0, 0))
    with _git_at_work(f"--git-dir={elsewhere}/.git", cwd="/") as at_work:
        repair(root)
        assert not lock.exists() or lock.read_bytes().startswith(b"agentx ")
        at_work.communicate()
    sound()


@pytest.mark.parametrize("content", [b"", b"\0" * 41, b"0" * 20, b"ref: \n"])
@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs"])
def test_a_damaged_ref_file_is_mended(root, git, sound, name, content):
    head = git("rev-parse", "HEAD")
    (root / ".git" / name).write_bytes(content)
    sound()
    assert head in git("log", "--format=%H").split()


def test_lines_of_a_reflog_that_a_power_cut_left_as_zeros_are_dropped(root, sound):
    log = root / ".git/logs/refs/heads/main"
    log.write_bytes(log.read_bytes() + b"\0" * 200)
    (root / ".git/refs/heads/main").write_bytes(b"")
    sound()
    assert b"\0" not in log.read_bytes()
