"""An append looks at the repository in full only after something in it changed."""

import os
import subprocess
import time

import pytest

from agentx.storage.git.repository_stamp import RepositoryStamp


@pytest.fixture
def stamped(tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    (tmp_path / ".git/refs/heads/main").write_text("0" * 40 + "\n")
    for path in [tmp_path / ".git", *(tmp_path / ".git").rglob("*")]:
        os.utime(path, (1_000_000, 1_000_000))
    stamp = RepositoryStamp(tmp_path / ".git")
    assert not stamp.unchanged()
    stamp.note()
    assert stamp.unchanged()
    return tmp_path / ".git", stamp


@pytest.mark.parametrize("name", ["agentx-pull", "agentx-purge", "index.lock", "packed-refs"])
def test_a_file_that_appears_is_noticed(stamped, name):
    git_dir, stamp = stamped
    (git_dir / name).touch()
    assert not stamp.unchanged()


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
@pytest.mark.parametrize("renamed", [True, False])
def test_a_switch_and_a_move_are_noticed(stamped, name, renamed):
    git_dir, stamp = stamped
    if renamed:
        (git_dir / f"{name}.lock").write_text("ref: refs/heads/other\n")
        (git_dir / f"{name}.lock").rename(git_dir / name)
    else:
        (git_dir / name).write_text("ref: refs/heads/other\n")
    assert not stamp.unchanged()


def test_a_new_pack_and_a_missing_branch_are_noticed(stamped):
    git_dir, stamp = stamped
    (git_dir / "objects/pack/pack-1.pack").touch()
    assert not stamp.unchanged()
    (git_dir / "refs/heads/main").unlink()
    assert not stamp.unchanged()
    stamp.note()
    assert not stamp.unchanged()


def test_what_has_just_changed_may_change_again_without_a_new_time(stamped):
    git_dir, stamp = stamped
    os.utime(git_dir / "HEAD", ns=(time.time_ns(), time.time_ns()))
    assert not stamp.unchanged()
    stamp.note()
    assert not stamp.unchanged()
