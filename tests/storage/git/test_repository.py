"""Objects, trees, commits and the one ref, checked by the git program itself."""

import os
import subprocess
import threading
import zlib

import pytest

from agentx.storage.errors import WriterConflict
from agentx.storage.files import nofollow
from agentx.storage.git import branch
from agentx.storage.git.branch import BRANCH, RefLocked
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import ObjectDamaged, blob_id, loose_path, read_loose, write_blob
from agentx.storage.git.repository import EXECUTABLE, LINK, REGULAR, GitRepository, NotARepository

_AUTHOR = ("agent:writer", "writer@agent.agentx.invalid")


@pytest.fixture
def repo(tmp_path):
    made = GitRepository.init(tmp_path)
    yield made
    made.close()


@pytest.fixture
def git(tmp_path):
    def run(*arguments, data=b""):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=P", "-c", "user.email=p@x", *arguments]
        return subprocess.run(command, capture_output=True, check=True, input=data).stdout.decode().strip()

    return run


def _put(repo, content, mode=REGULAR):
    return TreeEntry(repo.write_blob(content), mode)


def _commit(repo, tree, parent="", message="m\n"):
    commit = repo.commit(tree, parent, message, _AUTHOR)
    repo.move_ref(commit, parent, "test")
    return commit


@pytest.mark.parametrize("content", [b"", b"a\n", b"\0" * 5_000, os.urandom(100_000)], ids=len)
def test_a_blob_is_one_that_git_reads(repo, git, tmp_path, content):
    oid = repo.write_blob(content)
    assert oid == git("hash-object", "--stdin", data=content)
    assert repo.read_blob(oid) == content
    assert (
        subprocess.run(
            ["git", "-C", str(tmp_path), "cat-file", "blob", oid], capture_output=True, check=True
        ).stdout
        == content
    )


@pytest.mark.parametrize("harm", ["empty", "cut", "zeros", "other content", "no zlib"])
def test_a_damaged_object_is_noticed_without_libgit2_and_written_again(repo, git, tmp_path, harm):
    content = b"some content " * 500
    oid = repo.write_blob(content)
    path = loose_path(tmp_path / ".git", oid)
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(
        {
            "empty": b"", "cut": whole[: len(whole) // 2], "zeros": b"\0" * len(whole),
            "other content": zlib.compress(b"blob 5\0other"), "no zlib": b"garbage",
        }[harm]
    )  # fmt: skip
    with pytest.raises(ObjectDamaged):
        repo.read_blob(oid)
    assert not repo.has_blob(oid)
    assert repo.write_blob(content) == oid
    assert git("cat-file", "-s", oid) == str(len(content))


def _inode(repo, oid):
    return loose_path(repo.git_dir, oid).stat().st_ino


def test_an_object_that_is_written_again_stays_the_one_that_is_on_the_disk(repo):
    """A replacement is not durable, so a power cut could take what an earlier commit names."""
    tree = repo.update_tree(
        "", {"a/b": _put(repo, b"x"), "log": TreeEntry(repo.write_blob_unsynced(b"y"), REGULAR)}
    )
    commit = _commit(repo, tree)
    repo.sync()
    known = {oid: _inode(repo, oid) for oid in (tree, commit, blob_id(b"x"), blob_id(b"y"))}
    repo.write_blob_unsynced(b"x")
    repo.write_blob_unsynced(b"y")
    changed = repo.update_tree(tree, {"a/c": _put(repo, b"z")})
    assert repo.update_tree(changed, {"a/c": None}) == tree
    assert {oid: _inode(repo, oid) for oid in known} == known


def test_an_object_that_is_written_again_is_as_new_for_git_which_prunes_old_ones(repo):
    """No commit names it yet when a `git gc` beside the writer looks for what may go."""
    oid = repo.write_blob_unsynced(b"x")
    os.utime(loose_path(repo.git_dir, oid), (1, 1))
    repo.write_blob_unsynced(b"x")
    assert loose_path(repo.git_dir, oid).stat().st_mtime > 1


def test_a_damaged_tree_is_replaced_when_it_is_written_again(repo, git):
    """A damaged object is of no use to an earlier commit."""
    entries = {"a": _put(repo, b"x")}
    tree = repo.update_tree("", entries)
    path = loose_path(repo.git_dir, tree)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:5])
    assert repo.update_tree("", entries) == tree
    assert git("cat-file", "-t", tree) == "tree"


def test_a_blob_that_somebody_left_unsynced_is_synced_by_who_writes_it_again(repo, monkeypatch):
    """An event names a content only once it is durable, whoever wrote it first."""
    path = loose_path(repo.git_dir, repo.write_blob_unsynced(b"x"))
    synced = set()
    kept = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), kept(fd)))
    repo.write_blob(b"x")
    assert {path.stat().st_ino, path.parent.stat().st_ino} <= synced


def test_an_object_that_is_not_there_is_said_to_be_missing(repo):
    with pytest.raises(ObjectDamaged, match="is not in"):
        repo.read_blob("0123456789" * 4)
    assert read_loose(loose_path(repo.git_dir, "0123456789" * 4), "0123456789" * 4) is None


def test_a_blob_in_a_pack_is_found(repo, git):
    tree = repo.update_tree("", {"a": _put(repo, b"packed")})
    _commit(repo, tree)
    git("gc", "-q")
    assert not loose_path(repo.git_dir, blob_id(b"packed")).exists()
    assert repo.read_blob(blob_id(b"packed")) == b"packed"


def test_writing_a_blob_leaves_no_temporary_file(tmp_path, repo):
    write_blob(tmp_path / ".git", b"x")
    assert not list((tmp_path / ".git").rglob(".agentx-tmp-*"))


def test_trees_change_along_a_path_and_are_what_git_makes_of_the_same_files(repo, git):
    base = repo.update_tree(
        "", {name: _put(repo, name.encode()) for name in ("a", "d/e/f", "d/g", "d.x", "z/y")}
    )
    tree = repo.update_tree(
        base,
        {"d/e/f": None, "a": _put(repo, b"new"), "run": _put(repo, b"x", EXECUTABLE), "l": _put(repo, b"a", LINK), "z/y": None, "q/r": None},
    )  # fmt: skip
    assert git("ls-tree", "-r", "--name-only", tree).split() == ["a", "d.x", "d/g", "l", "run"]
    git("read-tree", tree)
    assert git("write-tree") == tree
    assert dict(repo.files(tree))["run"].mode == EXECUTABLE
    assert repo.entry(tree, "d/g") == TreeEntry(blob_id(b"d/g"), REGULAR)
    assert (repo.entry(tree, "d"), repo.entry(tree, "nope/x"), repo.entry("", "a")) == (None, None, None)
    assert [name for name, _ in repo.files(repo.subtree(tree, "d"), "d/")] == ["d/g"]


def test_a_tree_without_files_is_the_empty_tree(repo):
    base = repo.update_tree("", {"a/b": _put(repo, b"x")})
    assert repo.update_tree(base, {"a/b": None}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_file_becomes_a_directory_and_a_directory_a_file(repo, git):
    base = repo.update_tree("", {"a": _put(repo, b"1"), "d/x": _put(repo, b"2")})
    tree = repo.update_tree(base, {"a/below": _put(repo, b"3"), "d": _put(repo, b"4")})
    assert git("ls-tree", "-r", "--name-only", tree).split() == ["a/below", "d"]


def test_the_difference_of_two_trees_names_each_file_with_before_and_after(repo):
    old = repo.update_tree(
        "", {"same": _put(repo, b"s"), "gone": _put(repo, b"g"), "d/new": _put(repo, b"1")}
    )
    new = repo.update_tree(
        old, {"gone": None, "d/new": _put(repo, b"2", EXECUTABLE), "more": _put(repo, b"m", LINK)}
    )
    entries = dict(repo.files(new))
    assert repo.diff(old, new) == {
        "gone": (TreeEntry(blob_id(b"g"), REGULAR), None),
        "d/new": (TreeEntry(blob_id(b"1"), REGULAR), entries["d/new"]),
        "more": (None, entries["more"]),
    }
    assert repo.diff("", old).keys() == {"same", "gone", "d/new"}
    assert repo.diff(new, new) == {}


def test_the_ref_moves_only_from_where_it_is_thought_to_be(repo):
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    second = _commit(repo, repo.update_tree("", {"a": _put(repo, b"2")}), first)
    late = repo.commit(repo.tree_of(first), first, "late\n", _AUTHOR)
    with pytest.raises(WriterConflict):
        repo.move_ref(late, first, "test")
    assert repo.head == second
    with pytest.raises(WriterConflict):
        repo.move_ref(late, "", "test")


def test_a_lock_of_git_on_the_branch_is_waited_for(repo, tmp_path):
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    lock = tmp_path / ".git" / f"{BRANCH}.lock"
    lock.touch()
    timer = threading.Timer(0.1, lock.unlink)
    timer.start()
    second = _commit(repo, repo.update_tree("", {"a": _put(repo, b"2")}), first)
    timer.join()
    assert repo.head == second


def test_a_lock_that_a_dead_git_left_on_the_branch_is_named(repo, tmp_path, monkeypatch):
    monkeypatch.setattr(branch, "_WAIT_S", 0.1)
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    lock = tmp_path / ".git" / f"{BRANCH}.lock"
    lock.touch()
    with pytest.raises(RefLocked, match=r"main.lock is held.* delete that file"):
        repo.move_ref(repo.commit(repo.tree_of(first), first, "x\n", _AUTHOR), first, "test")
    assert repo.head == first


def test_a_lock_that_a_dead_engine_left_on_the_branch_is_removed(repo, tmp_path):
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    left = tmp_path / ".git/agentx-ref"
    left.write_text("f" * 40 + "\n")  # of a commit that somebody else made, as a pull takes it over
    os.link(left, tmp_path / ".git" / f"{BRANCH}.lock")
    second = _commit(repo, repo.update_tree("", {"a": _put(repo, b"2")}), first)
    assert repo.head == second
    assert not (tmp_path / ".git" / f"{BRANCH}.lock").exists()
    assert not left.exists()


def test_a_scratch_file_that_a_crash_left_behind_a_move_never_changes_the_branch(repo, tmp_path, monkeypatch):
    monkeypatch.setattr(branch, "_WAIT_S", 0.1)
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    os.link(tmp_path / ".git" / BRANCH, tmp_path / ".git/agentx-ref")
    (tmp_path / ".git" / f"{BRANCH}.lock").write_text("")  # a git command's
    left = repo.commit(repo.tree_of(first), first, "x\n", _AUTHOR)
    with pytest.raises(RefLocked):
        repo.move_ref(left, first, "note")
    assert repo.head == first


def test_moves_are_told_newest_first_whatever_a_crash_left_at_their_end(repo, tmp_path):
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    second = _commit(repo, repo.update_tree("", {"a": _put(repo, b"2")}), first)
    with (tmp_path / ".git/logs" / BRANCH).open("ab") as log:
        log.write(b"\0\0torn")
    assert [(move.old, move.new) for move in repo.moves(9)] == [(first, second), ("", first)]
    assert [move.new for move in repo.moves(1)] == [second]


def test_a_branch_whose_ref_git_packed_is_found_and_moved(repo, git, tmp_path):
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    git("pack-refs", "--all", "--prune")
    assert repo.head == first
    second = _commit(repo, repo.update_tree("", {"a": _put(repo, b"2")}), first)
    assert (repo.head, git("rev-parse", "main")) == (second, second)


def test_commits_pass_a_strict_check_and_name_their_author(repo, git):
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}), message="One\n\nAgentX-Event: 1\n")
    assert git("fsck", "--strict", "--no-progress") == ""
    assert git("log", "-1", "--format=%an <%ae> %s") == "agent:writer <writer@agent.agentx.invalid> One"
    info = repo.info(first)
    assert (info.subject, info.trailers, info.committer) == ("One", {"AgentX-Event": "1"}, _AUTHOR[1])


def test_a_person_s_identity_and_settings_change_nothing(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        "[core]\nautocrlf=true\nsafecrlf=true\n[commit]\ngpgsign=true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repo = GitRepository.init(tmp_path / "ws")
    oid = repo.write_blob(b"a\r\nb\r\n")
    _commit(repo, repo.update_tree("", {"a": TreeEntry(oid, REGULAR)}))
    assert repo.read_blob(oid) == b"a\r\nb\r\n"
    repo.close()


def test_the_branch_that_head_names_is_told(repo, git):
    assert repo.branch == BRANCH
    commit = _commit(repo, repo.update_tree("", {"a": _put(repo, b"1")}))
    git("checkout", "-q", "-b", "other")
    assert repo.branch == "refs/heads/other"
    git("checkout", "-q", commit)
    assert repo.branch == commit


def test_a_directory_without_a_repository_is_told(tmp_path):
    with pytest.raises(NotARepository, match="has no Git repository"):
        GitRepository(tmp_path)


def test_where_another_writer_takes_the_scratch_file_away_a_conflict_is_told(repo, monkeypatch):
    """Locks that do nothing let another one in; it removes the file when it is done."""
    first = _commit(repo, repo.update_tree("", {"a": _put(repo, b"a\n")}))
    link = nofollow.link

    def taken_away(source, target):
        nofollow.remove(source)
        link(source, target)

    monkeypatch.setattr(nofollow, "link", taken_away)
    with pytest.raises(WriterConflict, match="Another writer is moving"):
        repo.move_ref(first, first, "test")
    monkeypatch.setattr(nofollow, "link", link)
    repo.move_ref(first, first, "test")


@pytest.fixture
def chain(repo):
    """The commits of a long history, oldest first, and one that parted from its middle."""
    tree = repo.update_tree("", {"a": _put(repo, b"a\n")})
    commits = [""]
    for number in range(40):
        commits.append(_commit(repo, tree, commits[-1], f"{number}\n"))
    return commits[1:], repo.commit(tree, commits[20], "aside\n", _AUTHOR)


def test_a_commit_descends_from_those_before_it_alone(repo, chain, git):
    commits, aside = chain
    every = [*commits[::7], commits[19], aside]
    for one in every:
        for other in every:
            done = subprocess.run(
                ["git", "--git-dir", str(repo.git_dir), "merge-base", "--is-ancestor", other, one],
                check=False,
            )
            assert repo.descends(one, other) == (done.returncode == 0 and one != other)
    assert not repo.descends(commits[5], "0" * 40)


@pytest.mark.parametrize(("one", "other"), [(-1, -3), (-3, -1)])
def test_whether_close_commits_descend_from_each_other_is_told_without_the_whole_history(
    repo, chain, monkeypatch, one, other
):
    """Each process asks this whenever another one has committed."""
    commits, _ = chain
    read, reader = [], repo._reader
    monkeypatch.setattr(reader, "commit", lambda oid: read.append(oid) or reader._commit(oid))
    assert repo.descends(commits[one], commits[other]) == (one > other)
    assert len(read) < 10


def test_a_commit_that_is_not_there_is_said_to_be_missing(repo):
    with pytest.raises(ObjectDamaged, match=r"The commit 0+1 is missing"):
        repo.info("0" * 39 + "1")
    assert not repo.descends("0" * 39 + "1", "")
    assert (repo.head, repo.moves(5), repo.stashes(), list(repo.log())) == ("", [], [], [])


def test_each_commit_of_the_log_is_read_once(repo, monkeypatch):
    """A search reads a thousand of them."""
    commits = [""]
    for number in range(5):
        tree = repo.update_tree("", {"f": _put(repo, b"%d" % number)})
        commits.append(_commit(repo, tree, commits[-1]))
    read, reading = [], repo._reader.read
    monkeypatch.setattr(repo._reader, "read", lambda oid: read.append(oid) or reading(oid))
    repo._reader.commit.cache_clear()
    assert [info.id for info in repo.log()] == commits[:0:-1] == read


def test_a_closed_repository_holds_no_pack_open_and_can_still_be_read(repo, git, tmp_path):
    """A process that opens one repository after another would run out of file descriptors."""
    _commit(repo, repo.update_tree("", {"f": _put(repo, b"packed")}))
    git("repack", "-adq")
    again = GitRepository(tmp_path)
    assert again.head
    list(again.log())
    assert _open_packs(tmp_path)
    again.close()
    repo.close()
    assert not _open_packs(tmp_path)
    assert list(again.log())


def _open_packs(root):
    links = (os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd"))
    return [link for link in links if link.startswith(str(root)) and "/pack-" in link]
