"""Git's index file is in step with the commits, and nobody works from an old one meanwhile."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from agentx.storage.git import index_file
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.index_file import GitIsBusy, IndexFile, Mark
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR, GitRepository


@pytest.fixture
def repo(tmp_path):
    made = GitRepository.init(tmp_path)
    yield made
    made.close()


@pytest.fixture
def index(repo):
    return IndexFile(repo.git_dir)


@pytest.fixture
def refresh(index, repo, tmp_path):
    """Bring the index file up to the latest commit."""
    return lambda changes: index.refresh(changes, tmp_path, repo.tree_of(repo.head))


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


def test_after_a_refresh_git_sees_nothing_to_do(index, refresh, committed, git, tmp_path):
    refresh(committed(a="1", b="2"))
    assert git("status", "--porcelain").stdout == ""
    assert not index.held


def test_while_it_is_held_git_refuses_what_would_work_from_the_old_index(
    index, refresh, committed, git, tmp_path
):
    refresh(committed(a="1"))
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
    refresh(changes)
    assert git("status", "--porcelain").stdout == ""
    assert (tmp_path / "a").read_text() == "2"
    git("add", ".")


def test_executables_links_and_deletions_are_in_it(index, refresh, repo, tmp_path, git):
    (tmp_path / "run").write_text("x")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("run")
    entries = {
        "run": TreeEntry(repo.write_blob(b"x"), EXECUTABLE),
        "link": TreeEntry(repo.write_blob(b"run"), LINK),
    }
    first = repo.commit(repo.update_tree("", entries), "", "m\n", ("a", "a@x"))
    repo.move_ref(first, "", "test")
    refresh(entries)
    assert git("status", "--porcelain").stdout == ""
    assert IndexFile(repo.git_dir).staged(entries, "of no note") == entries
    refresh({"run": None, "never": None})
    assert list(IndexFile(repo.git_dir).staged(entries, "of no note")) == ["link"]


def test_an_edit_since_the_commit_is_shown_and_not_hidden(refresh, committed, git, tmp_path):
    changes = committed(a="engine")
    (tmp_path / "a").write_text("person")
    refresh(changes)
    assert git("status", "--porcelain").stdout == " M a\n"


def test_what_a_person_staged_elsewhere_stays_staged(refresh, committed, git, tmp_path):
    refresh(committed(a="1", b="1"))
    (tmp_path / "b").write_text("staged")
    git("add", "b")
    refresh(committed(a="2"))
    assert git("status", "--porcelain").stdout == "M  b\n"


@pytest.fixture
def reads(monkeypatch):
    """How often an index file is read whole."""
    read = []
    opened = index_file._Index
    monkeypatch.setattr(index_file, "_Index", lambda path: read.append(path) or opened(path))
    return read


@pytest.fixture
def tree(repo):
    """The tree of the latest commit."""
    return lambda: repo.tree_of(repo.head)


def test_it_is_known_when_someone_else_wrote_it(index, refresh, committed, tree, git, tmp_path):
    assert not index.is_clean("")
    refresh(committed(a="1"))
    assert index.is_clean(tree())
    (tmp_path / "new").write_text("x")
    git("add", "new")
    assert not index.is_clean(tree())
    assert index.staged(["a", "new", "never"], tree()).keys() == {"a", "new"}


def test_another_process_knows_it_without_reading_it(index, refresh, repo, committed, tree, reads):
    """The note beside the index file outlives the process."""
    refresh(committed(a="1"))
    reads.clear()
    reopened = IndexFile(repo.git_dir)
    assert not reopened.discard_damaged(tree())
    assert reopened.staged(["a"], tree()) == {}
    assert reads == []


def test_the_note_counts_only_for_its_tree(refresh, repo, committed, tree):
    """A branch that was moved without the index file makes old entries look staged, as Git shows them."""
    refresh(committed(a="1"))
    committed(a="2")
    assert IndexFile(repo.git_dir).staged(["a"], tree()).keys() == {"a"}


def test_what_is_staged_in_the_same_tick_is_noticed(index, refresh, repo, committed, tree, git, tmp_path):
    """Neither size, inode nor times tell the two files apart; the checksum does."""
    refresh(committed(a="1"))
    path = repo.git_dir / "index"
    before = path.stat()
    (tmp_path / "a").write_text("2")
    git("add", "a")
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    for one in (index, IndexFile(repo.git_dir)):
        assert one.staged(["a"], tree())["a"].oid == blob_id(b"2")


def test_what_only_git_status_rewrote_is_read_once_and_is_clean_again_after_a_turn(
    index, refresh, repo, committed, tree, git, tmp_path, reads
):
    """Git refreshes times and sizes in the index file; that must not make every later write read it."""
    refresh(committed(a="1", b="1"))
    os.utime(tmp_path / "b", ns=(1, 1))
    git("status")
    assert not index.is_clean(tree())
    reads.clear()
    for _ in range(5):
        index.staged(["a"], tree())
    assert len(reads) == 1
    refresh(committed(a="2"))
    assert index.is_clean(tree())
    assert IndexFile(repo.git_dir).is_clean(tree())


def test_what_stays_staged_over_a_turn_is_still_found_after_it(
    index, refresh, repo, committed, tree, git, tmp_path
):
    """The engine writes other entries and keeps this one."""
    refresh(committed(a="1", b="1"))
    (tmp_path / "b").write_text("staged")
    git("add", "b")
    refresh(committed(a="2"))
    for one in (index, IndexFile(repo.git_dir)):
        assert one.staged(["b"], tree())["b"].oid == blob_id(b"staged")


def test_without_a_checksum_times_tell_once_they_are_old_enough(
    index, refresh, committed, tree, git, tmp_path, reads, monkeypatch
):
    """`index.skipHash` of Git 2.40 leaves zeros in its place."""
    refresh(committed(a="1"))
    (tmp_path / "a").write_text("2")
    git("add", "a")
    path = tmp_path / ".git/index"
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    reads.clear()
    for _ in range(3):
        assert index.staged(["a"], tree())["a"].oid == blob_id(b"2")
    assert len(reads) == 3
    monkeypatch.setattr(index_file, "_RACY_NS", 0)
    for _ in range(3):
        assert index.staged(["a"], tree())
    assert len(reads) == 4


def test_an_index_that_is_damaged_inside_is_made_again_at_the_end_of_the_turn(
    refresh, repo, committed, git, tmp_path
):
    """The checksum at its end is untouched, so the file is not read before."""
    refresh(committed(a="1", b="1"))
    content = bytearray((repo.git_dir / "index").read_bytes())
    content[40] ^= 0xFF
    (repo.git_dir / "index").write_bytes(content)
    refresh(committed(a="2"))
    assert git("status", "--porcelain").stdout == ""
    assert git("ls-files").stdout.split() == ["a", "b"]


def test_the_lock_of_a_dead_engine_is_taken_over_with_what_it_left_unsettled(
    index, refresh, committed, tmp_path, git
):
    code = (
        "from pathlib import Path; from agentx.storage.git.index_file import IndexFile;"
        f"IndexFile(Path({str(tmp_path / '.git')!r})).hold(7)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert index.mark.is_left
    assert not index.mark.rebooted
    index.hold(9)
    assert index.mark == Mark.of_this_process(7)
    refresh(committed(a="1"))
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


def test_what_a_crash_left_beside_it_is_no_obstacle(index, refresh, committed, git, tmp_path):
    for name in ("agentx-index", "agentx-index.lock", "agentx-index-mark"):
        (tmp_path / ".git" / name).write_text("half")
    refresh(committed(a="1"))
    assert git("status", "--porcelain").stdout == ""


def test_artifacts_outside_the_working_directory_are_not_looked_for(repo, tmp_path, git):
    index = IndexFile(repo.git_dir, outer=True)
    entries = {"artifacts/a": TreeEntry(repo.write_blob(b"x"), REGULAR)}
    tree = repo.update_tree("", entries)
    repo.move_ref(repo.commit(tree, "", "m\n", ("a", "a@x")), "", "test")
    index.refresh(entries, tmp_path, tree)
    assert git("status", "--porcelain").stdout == ""


@pytest.mark.parametrize(("age_s", "patience_s"), [(0, 10), (6, 4), (3600, 1), (-3600, 10)])
def test_writers_who_come_one_after_another_do_not_each_wait_for_a_git_command_that_hangs(
    index, tmp_path, monkeypatch, age_s, patience_s
):
    lock = tmp_path / ".git/index.lock"
    lock.touch()
    os.utime(lock, (1_000_000 - age_s, 1_000_000 - age_s))
    slept = []
    clock = SimpleNamespace(
        monotonic=lambda: sum(slept) + 5, time=lambda: 1_000_000 + sum(slept), sleep=slept.append
    )
    monkeypatch.setattr(index_file, "time", clock)
    with pytest.raises(GitIsBusy):
        index.hold()
    assert round(sum(slept)) == patience_s
