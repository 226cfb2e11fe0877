"""Commits made anew: only those that hold what changes, with everything else of them as it was; and nothing left behind."""

import subprocess

import pytest

from agentx.storage.git.branch import BRANCH
from agentx.storage.git.objects import ObjectDamaged, blob_id, loose_path
from agentx.storage.git.packs.prune import set_refs, sweep
from agentx.storage.git.packs.rewriting import Rewriter

WHO = "agentx <engine@engine.agentx.invalid> 1 +0000"
SECRET = b"the secret\n"


def untold(_what, _done, _total):
    pass


@pytest.fixture
def root(tmp_path):
    """Two branches that merge; the secret came on one of them, and one commit is signed."""
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "a.txt", b"one\n", "first")
    git(tmp_path, "branch", "clean")
    git(tmp_path, "switch", "-q", "-c", "side")
    commit(tmp_path, "deep/er/s.txt", SECRET, "tells the secret")
    git(tmp_path, "switch", "-q", "main")
    commit(tmp_path, "b.txt", b"two\n", "second")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merge", "side")
    commit(tmp_path, "deep/er/s.txt", b"gone\n", "third")
    raw = git(tmp_path, "cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN\n wrong\n -----END\n\n", 1
    )
    signed = git(tmp_path, "hash-object", "-w", "-t", "commit", "--stdin", given=raw).strip()
    git(tmp_path, "update-ref", "refs/heads/main", signed)
    return tmp_path


def git(root, *arguments, given=""):
    command = ["git", "-c", "user.name=Pat", "-c", "user.email=pat@x", *arguments]
    done = subprocess.run(command, cwd=root, input=given, capture_output=True, text=True, check=True)
    return done.stdout


def commit(root, name, content, message):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    git(root, "add", name)
    git(root, "commit", "-q", "-m", message)


def rewriter(root, **options):
    return Rewriter(
        root / ".git",
        lambda path, oid, read: b"purged\n" if path.endswith("s.txt") and read() == SECRET else oid,
        lambda message: message.replace(b"the secret", b"something"),
        **options,
    )


def head(root):
    return git(root, "rev-parse", "main").strip()


def test_commits_before_it_keep_their_ids_and_the_others_everything_but_it(root):
    old, clean = head(root), git(root, "rev-parse", "clean").strip()
    before = git(root, "log", "--topo-order", "--format=%an %ae %ad %cn %cd")
    made = rewriter(root).rewrite([old, clean], untold)
    assert made[clean] == clean
    assert made[old] != old
    set_refs(root / ".git", made[old], ["refs/heads/side"], WHO)
    assert git(root, "log", "--topo-order", "--format=%an %ae %ad %cn %cd") == before
    assert git(root, "log", "--topo-order", "--format=%s").split("\n")[:4] == [
        "third",
        "merge",
        "tells something",
        "second",
    ]
    assert git(root, "show", "main^:deep/er/s.txt") == "purged\n"
    assert "gpgsig" not in git(root, "cat-file", "commit", "main")
    assert len(git(root, "rev-list", "--parents", "-1", "main^").split()) == 3
    assert git(root, "fsck", "--strict", "--no-dangling") == ""


def test_a_look_shows_what_would_be_made_anew_and_writes_nothing(root):
    old = head(root)
    packs = sorted((root / ".git/objects").rglob("*"))
    assert rewriter(root, write=False).rewrite([old], untold)[old] != old
    assert sorted((root / ".git/objects").rglob("*")) == packs


def test_it_can_be_done_again_and_changes_nothing_then(root):
    made = rewriter(root).rewrite([head(root)], untold)[head(root)]
    assert rewriter(root).rewrite([made], untold) == {made: made}


def test_after_a_sweep_nothing_is_left_but_what_refs_lead_to(root):
    old = head(root)
    git(root, "tag", "-a", "-m", "kept", "v1", "clean")
    git(root, "pack-refs", "--all")
    git(root, "gc", "-q")
    made = rewriter(root).rewrite([old], untold)[old]
    set_refs(root / ".git", made, ["refs/heads/side"], WHO)
    for _ in range(2):
        sweep(root / ".git", untold)
        listed = git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
        assert sorted(listed) == sorted(
            set(git(root, "rev-list", "--objects", "--all").split()) & set(listed)
        )
        assert old not in listed
        assert blob_id(SECRET) not in listed
        assert git(root, "fsck", "--strict", "--no-dangling") == ""
    assert git(root, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/clean",
        BRANCH,
        "refs/tags/v1",
    ]
    assert git(root, "reflog", "main").split()[0] == made[:7]
    assert len(list((root / ".git/objects/pack").iterdir())) == 2
    assert not list((root / ".git/objects").glob("??/*"))


def test_what_cannot_be_read_stops_it_before_anything_goes(root):
    path = loose_path(root / ".git", git(root, "rev-parse", "main:a.txt").strip())
    path.unlink()
    left = sorted((root / ".git/objects").rglob("*"))
    with pytest.raises(ObjectDamaged):
        sweep(root / ".git", untold)
    assert sorted((root / ".git/objects").rglob("*")) == left
