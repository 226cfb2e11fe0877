"""Trees and folders that were made to hold readers up: every look at them ends, with a sentence."""

import os
import shutil
import subprocess

import pytest

from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import GitRepository


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with a commit; copied by each test."""
    place = tmp_path_factory.mktemp("made")
    settings = Settings(environ=dict(os.environ), cache_dir=place / "no-models", state_dir=place / "state")
    with Workspace.create(place / "task", title="A task", settings=settings) as ws:
        ws.say("Use British English.")
    return place, settings


@pytest.fixture
def task(made, tmp_path):
    place, _ = made
    shutil.copytree(place / "task", tmp_path / "task", symlinks=True)
    return tmp_path / "task"


def git(root, *arguments, given=b""):
    done = subprocess.run(["git", "-C", root, *arguments], input=given, capture_output=True, check=True)
    return done.stdout.decode().strip()


def tree(root, rows):
    return git(root, "mktree", "-z", given=b"".join(f"{row}\0".encode() for row in rows))


def wide(root, levels=10, copies=10):
    """A tree of some objects that stands for ten thousand million files."""
    blob = git(root, "hash-object", "-w", "--stdin", given=b"x\n")
    found = tree(root, [f"100644 blob {blob}\tf{n:02}" for n in range(copies)])
    for _ in range(levels):
        found = tree(root, [f"040000 tree {found}\td{n:02}" for n in range(copies)])
    return found


def deep(root, levels=1_900):
    blob = git(root, "hash-object", "-w", "--stdin", given=b"x\n")
    found = tree(root, [f"100644 blob {blob}\tf"])
    for _ in range(levels):
        found = tree(root, [f"040000 tree {found}\td"])
    return found


def mixed(root):
    return tree(root, [f"040000 tree {deep(root, 300)}\ta", f"040000 tree {wide(root, 5, 30)}\tb"])


def planted(root, bomb, where):
    """Commit a bomb as a folder of the workspace."""
    rows = [row for row in git(root, "ls-tree", "HEAD").splitlines() if not row.endswith(f"\t{where}")]
    top = tree(root, [*rows, f"040000 tree {bomb}\t{where}"])
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    commit = git(root, *identity, "commit-tree", top, "-p", "HEAD", "-m", "A bomb")
    git(root, "update-ref", "HEAD", commit)


@pytest.mark.parametrize("where", ["artifacts", "history", "more", ".agentx", "sub modules"])
@pytest.mark.parametrize("bomb", [wide, deep, mixed])
def test_a_workspace_with_a_tree_bomb_is_refused_in_a_sentence(task, made, bomb, where):
    planted(task, bomb(task), where)
    for _ in range(2):
        with pytest.raises(AgentXError, match=r"again and again|folders deep"):
            Workspace.open(task, settings=made[1])


@pytest.mark.parametrize("bomb", [wide, deep, mixed])
def test_a_pull_of_a_tree_bomb_changes_nothing(task, made, tmp_path, bomb):
    _, settings = made
    theirs = tmp_path / "theirs"
    shutil.copytree(task, theirs, symlinks=True)
    planted(theirs, bomb(theirs), "artifacts")
    with Workspace.open(made[0] / "task", settings=settings) as ws:
        before = git(ws.root, "rev-parse", "HEAD")
        git(ws.root, "remote", "add", "theirs", str(theirs))
        try:
            with pytest.raises(AgentXError, match=r"again and again|folders deep"):
                ws.pull("theirs")
        finally:
            git(ws.root, "remote", "remove", "theirs")
        assert git(ws.root, "rev-parse", "HEAD") == before
        assert ws.engine.log.state.title == "A task"


def test_an_ordinary_tree_with_many_copies_of_a_folder_is_read(task, made):
    planted(task, wide(task, 3, 10), "more")
    Workspace.open(task, settings=made[1]).close()


def test_folders_deep_on_the_disk_hold_nobody_up(made):
    root, settings = made[0] / "task", made[1]
    folder = os.open(root / "artifacts", os.O_RDONLY)
    for _ in range(1_900):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    try:
        with Workspace.open(root, settings=settings) as ws:
            ws.say("Go on.")
            assert [path for path, _ in ws.engine.artifacts.listing()] == ["d/" * 1_900 + "f"]
        with Workspace.open(root, settings=settings) as ws:
            assert ws.engine.log.state.title == "A task", "it was not committed, which nobody could read"
    finally:
        subprocess.run(["rm", "-rf", root / "artifacts" / "d"], check=True)


@pytest.fixture
def tower(made):
    """Make folders in one another below a place in the workspace."""
    made_ones = []

    def make(name, levels=1_900, end=lambda fd: os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))):
        root = made[0] / "task" / name
        root.mkdir(parents=True, exist_ok=True)
        made_ones.append(root / "d")
        folder = os.open(root, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=folder)
            below = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        end(folder)
        os.close(folder)
        return root / "d"

    yield make
    for one in made_ones:
        subprocess.run(["rm", "-rf", one], check=True)


def test_folders_deep_anywhere_in_a_workspace_hold_nobody_up(made, tower):
    for place in ("history/blobs", ".agentx", ".git/refs/heads", ".git/logs", ".git/objects", ".git/info"):
        tower(place, 1_100)
    with Workspace.open(made[0] / "task", settings=made[1]) as ws:
        ws.say("Go on.")
        ws.maintain()
        assert ws.verify() is not None


def test_a_link_deep_in_the_engines_folders_is_found(made, tower):
    tower(".agentx/index", 1_500, lambda fd: os.symlink("/etc", "link", dir_fd=fd))
    with pytest.raises(AgentXError, match="link") as told:
        nofollow.require_plain_tree(made[0] / "task" / ".agentx")
    assert not isinstance(told.value, RecursionError)


@pytest.mark.parametrize("levels", [1, 900, 1_900, 5_000])
@pytest.mark.parametrize("ignore_errors", [False, True])
def test_folders_of_any_depth_are_removed(made, tower, levels, ignore_errors):
    top = tower("deep", levels)
    nofollow.remove_tree(top, ignore_errors=ignore_errors)
    assert not os.path.lexists(top)


def test_folders_of_any_depth_are_made_and_written(made, tmp_path):
    path = tmp_path.joinpath(*["d"] * 1_800)
    nofollow.make_directory(path, parents=True)
    assert nofollow.is_directory(path)
    assert len(list(nofollow.walk(tmp_path))) == 1_801
    with pytest.raises(OSError, match="too long"):
        nofollow.make_directory(tmp_path.joinpath(*["d"] * 5_000), parents=True)
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


def test_a_tree_of_any_depth_is_written(task):
    repo = GitRepository(task)
    try:
        entry = TreeEntry(repo.write_blob(b"x"), 0o100644)
        path = "d/" * 1_900 + "f"
        made = repo.update_tree("", {path: entry, "a/b": entry})
        assert repo.entry(made, path) == entry
        made = repo.update_tree(made, {path: None})
        assert [path for path, _ in repo.files(made)] == ["a/b"]
        assert [path for path, _ in repo.files(repo.update_tree(made, {"a/b/c": None, "a/b/d/e": None}))] == [
            "a/b"
        ]
    finally:
        repo.close()
