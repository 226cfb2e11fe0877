"""Odd states of a workspace's directory: each gives a clear sentence and a way on, and nothing is lost."""

import re
import shutil
import subprocess

import pytest

from agentx import Workspace
from agentx.integrity.verify import verify

KEPT_FILES = [
    "history.jsonl", "agentx.toml", "history/orphans.jsonl", ".git/HEAD", ".git/config", ".git/index", ".git/index.lock",
    ".git/packed-refs", ".git/refs/heads/main", ".git/logs/refs/heads/main", ".git/info/attributes", ".git/info/exclude",
    ".git/agentx.lock", ".git/agentx-run.lock", ".git/agentx-whole", ".git/agentx-purge", ".git/agentx-pull",
    ".git/agentx-ref", ".git/agentx-index-clean",
]  # fmt: skip
KEPT_DIRECTORIES = [
    "artifacts", "history", "history/blobs", ".agentx", ".git/objects", ".git/objects/pack", ".git/refs",
    ".git/refs/heads", ".git/logs", ".git/info",
]  # fmt: skip
CACHES = [
    ".agentx/index", ".agentx/snapshots", ".agentx/keys.sqlite3", ".agentx/made-here", ".agentx/commits", ".agentx/waiting",
    ".agentx/read-through", ".agentx/recap", ".agentx/repaired", ".agentx/index.feeding", ".agentx/meanings",
]  # fmt: skip
CALLS = (["status"], ["say", "go on"], ["log"], ["verify"], ["repair"])


def git(root, *words, check=True):
    command = ["git", "-C", str(root), "-c", "user.name=P", "-c", "user.email=p@example.org", *words]
    return subprocess.run(command, capture_output=True, text=True, check=check).stdout


def take(path, keep):
    """Move what is in a place away; an odd thing of the same name can be put there."""
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        shutil.move(path, keep)


def refused(call, root, said):
    """Every command says what is wrong in one sentence, which names what to do."""
    for words in CALLS:
        done = call("-C", root, *words)
        assert done.code in (1, 2), (words, done)
        assert re.fullmatch(r"agentx: [^\n]+\n", done.err), (words, done)
        assert re.search(said, done.err), (words, done)


def works(call, root):
    for words in CALLS:
        done = call("-C", root, *words)
        assert done.code == 0, (words, done)
    return done


@pytest.mark.parametrize("name", KEPT_FILES)
def test_a_directory_in_the_place_of_a_file_is_named(root, call, tmp_path, name):
    """It is moved away, and everything is as it was."""
    take(root / name, tmp_path / "kept")
    (root / name).mkdir()
    refused(call, root, f"{re.escape(name)} is a directory, but must be a file. Move it away")
    (root / name).rmdir()
    if (tmp_path / "kept").exists():
        shutil.move(tmp_path / "kept", root / name)
    works(call, root)
    assert verify(root).sound


@pytest.mark.parametrize("name", KEPT_DIRECTORIES)
def test_a_file_in_the_place_of_a_directory_is_named(root, call, tmp_path, name):
    """It is moved away, and everything is as it was."""
    take(root / name, tmp_path / "kept")
    (root / name).write_text("odd")
    refused(call, root, f"{re.escape(name)} is a file, but must be a directory. Move it away")
    (root / name).unlink()
    if (tmp_path / "kept").exists():
        shutil.move(tmp_path / "kept", root / name)
    works(call, root)
    assert verify(root).sound


@pytest.mark.parametrize("odd", ["file", "directory"])
def test_something_odd_in_the_place_of_a_cache_stops_nothing(root, call, tmp_path, odd):
    """Caches are made anew or done without."""
    for number, name in enumerate(CACHES):
        take(root / name, tmp_path / f"kept{number}")
        (root / name).mkdir() if odd == "directory" else (root / name).write_text("odd")
    assert call("-C", root, "search", "revenue").code == 0
    works(call, root)


@pytest.mark.parametrize("name", ["artifacts", ".agentx", "history.jsonl", "agentx.toml"])
def test_a_dangling_link_in_the_place_of_a_file_is_named(root, call, tmp_path, name):
    """It is not followed, wherever it leads."""
    take(root / name, tmp_path / "kept")
    (root / name).symlink_to(tmp_path / "nowhere")
    refused(call, root, "symbolic link is in its place.*where the link points")
    assert (root / name).is_symlink()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("missing", ["artifacts", ".agentx", ".git/objects/pack", ".git/index", ".git/logs"])
def test_what_git_or_a_person_left_out_is_made_again(tmp_path, call, missing):
    """A clone of a workspace without files has no directory for them: Git keeps no empty ones."""
    with Workspace.create(tmp_path / "empty"):
        pass
    root = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "empty", "clone")
    assert not (root / "artifacts").exists()
    shutil.rmtree(root / missing) if (root / missing).is_dir() else (root / missing).unlink(missing_ok=True)
    works(call, root)
    with Workspace.open(root) as ws:
        ws.tools.write_file("a.md", "a\n")
    assert verify(root).sound


@pytest.mark.parametrize(
    "setting",
    [
        "[commit]\n\tgpgSign = true\n\tgpgSign = true\n",
        "[commit]\n\tgpgSign\n",
        "[commit]\n\tgpgSign = true\n[COMMIT]\n\tGPGSIGN = 1\n",
        "[core]\n\tautocrlf = true\n\tautocrlf = input\n",
        "[core]\n\tlogAllRefUpdates = always\n[core]\n\tlogAllRefUpdates = false\n",
    ],
)
def test_a_setting_of_git_that_is_there_twice_stops_nothing(root, call, setting):
    """The engine's own value comes last, and a later open adds nothing."""
    with (root / ".git/config").open("a") as file:
        file.write(setting)
    works(call, root)
    assert git(root, "config", "commit.gpgSign").strip() == "false"
    assert git(root, "config", "core.autocrlf").strip() == "false"
    size = (root / ".git/config").stat().st_size
    works(call, root)
    assert (root / ".git/config").stat().st_size == size


@pytest.mark.parametrize("text", ["[core\n", '[x "y]\n', "\0\x01\n", "= 1\n", "[a]\nb = \\q\n"])
def test_a_configuration_that_git_cannot_read_is_named(root, call, text):
    """With its line."""
    kept = (root / ".git/config").read_text()
    (root / ".git/config").write_text(kept + text)
    refused(call, root, r"Git cannot read .*config: .*Correct that line")
    assert (root / ".git/config").read_text() == kept + text
    (root / ".git/config").write_text(kept)
    works(call, root)


def test_a_backup_and_a_clone_without_files_are_told_from_what_is_no_workspace(root, tmp_path, call):
    """Each with the command that makes a workspace of it."""
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare")
    git(tmp_path, "clone", "-q", "-n", str(root), "unfilled")
    shutil.copytree(root, tmp_path / "torn")
    shutil.rmtree(tmp_path / "torn/.git")
    refused(call, tmp_path / "bare", "is a bare repository.*git clone")
    refused(call, tmp_path / "unfilled", "are not checked out.*checkout main")
    refused(call, tmp_path / "torn", "no Git repository.*backup")
    git(tmp_path / "unfilled", "checkout", "main", "--", ".")
    works(call, tmp_path / "unfilled")


def test_verify_says_that_the_log_is_missing_and_repair_brings_it_back(root, call):
    """It is no bare error of the system."""
    whole = (root / "history.jsonl").read_bytes()
    (root / "history.jsonl").unlink()
    done = call("-C", root, "verify")
    assert done.code == 1
    assert "history.jsonl is missing" in done.out
    assert call("-C", root, "repair").code == 0
    assert (root / "history.jsonl").read_bytes() == whole


def test_verify_finds_a_last_line_that_is_there_twice(root, call):
    """As the next write does, which sets it aside."""
    whole = (root / "history.jsonl").read_bytes()
    (root / "history.jsonl").write_bytes(whole + whole.splitlines(keepends=True)[-1])
    done = call("-C", root, "verify")
    assert done.code == 1
    assert "is a second event" in done.out
    assert call("-C", root, "repair").code == 0
    assert (root / "history.jsonl").read_bytes() == whole


def test_a_submodule_is_told_and_its_commit_is_no_file(root, call):
    """A gitlink among the artifacts is left as it is."""
    head = git(root, "rev-parse", "HEAD").strip()
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{head},artifacts/sub")
    (root / "artifacts/sub").mkdir()
    git(root, "commit", "-q", "-m", "Add a submodule")
    done = call("-C", root, "status")
    assert done.code == 0
    assert "artifacts/sub is a submodule" in done.err
    works(call, root)
    assert "160000" in git(root, "ls-tree", "HEAD", "artifacts/sub")
    with Workspace.open(root) as ws:
        assert "sub" not in ws.engine.git.manifest()


@pytest.mark.parametrize(
    "names", [("Case.txt", "case.txt"), ("caf\u00e9.txt", "cafe\u0301.txt"), ("One.txt", "ONE.TXT")]
)
def test_names_that_other_systems_take_for_one_are_told(root, call, names):
    """Both are recorded here."""
    for name in names:
        (root / "artifacts" / name).write_text(name)
    if len(set((root / "artifacts").iterdir()) & {root / "artifacts" / name for name in names}) < len(names):
        pytest.skip("this file system takes them for one")
    done = call("-C", root, "status")
    assert "differ only in letter case" in done.err
    assert "Rename one" in done.err
    with Workspace.open(root) as ws:
        assert set(names) <= ws.engine.git.manifest().keys()
    works(call, root)


def test_a_name_that_is_not_utf8_is_left_where_it_is_and_told(root, call):
    """And the sentence says that it is not recorded."""
    path = bytes(root / "artifacts") + b"/\xff.txt"
    try:
        with open(path, "wb") as file:
            file.write(b"x")
    except OSError:
        pytest.skip("this file system takes no such name")
    done = call("-C", root, "status")
    assert done.code == 0
    assert "not valid Unicode. It is not recorded." in done.err
    assert call("-C", root, "say", "go on").code == 0


def detached(root):
    git(root, "checkout", "-q", "--detach")


def other_branch(root):
    git(root, "switch", "-q", "-c", "other")


def orphan(root):
    git(root, "switch", "-q", "--orphan", "other")


@pytest.mark.parametrize("left", [detached, other_branch, orphan])
def test_another_branch_is_named_with_the_way_back(root, call, left):
    """A look changes nothing, and afterwards everything is there."""
    left(root)
    for words in (["status"], ["say", "x"], ["log"]):
        done = call("-C", root, *words)
        assert (done.code, "git switch main" in done.err) == (1, True), done
        assert "A fault" not in done.err
    git(root, "switch", "-q", "main")
    works(call, root)


def test_a_clone_that_is_shallow_or_sparse_opens(root, tmp_path, call):
    """Files that a sparse checkout left out are not taken for deleted."""
    with Workspace.open(root) as ws:
        ws.tools.write_file("deep/a.md", "a\n")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    git(root, "sparse-checkout", "set", "artifacts/deep")
    for where in (root, tmp_path / "shallow"):
        assert call("-C", where, "status").code == 0
        assert call("-C", where, "say", "go on").code == 0
    done = call("-C", tmp_path / "shallow", "verify")
    assert done.code == 0, done
    assert "git fetch --unshallow" in done.err
    with Workspace.open(root) as ws:
        assert {"deep/a.md", "outlook.md"} <= ws.engine.git.manifest().keys()


def test_a_merge_that_is_not_finished_is_told(root, call):
    """With both ways out of it; the record goes on."""
    git(root, "switch", "-q", "-c", "side")
    (root / "artifacts/outlook.md").write_text("theirs\n")
    git(root, "commit", "-q", "-am", "Theirs")
    git(root, "switch", "-q", "main")
    (root / "artifacts/outlook.md").write_text("mine\n")
    git(root, "commit", "-q", "-am", "Mine")
    git(root, "merge", "side", check=False)
    done = call("-C", root, "status")
    assert done.code == 0
    assert "A Git merge is in progress" in done.err
    assert "git merge --abort" in done.err
    (root / "artifacts/outlook.md").write_text("both\n")
    git(root, "commit", "-q", "-am", "Both")
    works(call, root)
    assert (root / "artifacts/outlook.md").read_text() == "both\n"
