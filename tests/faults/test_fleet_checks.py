"""The checks after a fleet was hurt at random find each thing that they look for: it is done to a remote, and they say so."""

import os
import shutil
import subprocess

import msgspec
import pytest

from agentx import Workspace
from agentx.fleet import carrying_out
from agentx.fleet.submission import submit
from tests.agentx.fleet.fleets import Fleet
from tests.faults.fleet.checks import check

WORD = "pomegranate"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A remote with two runs, and a worker's home with a copy; the ids of the submissions."""
    root = tmp_path_factory.mktemp("checked")
    fleet = Fleet(root)
    fleet.worker("none")
    settings = msgspec.structs.replace(
        fleet.settings, model=f"script:{fleet.script}", trusted_keys=(fleet.key,)
    )
    remote = root / "remotes" / "task.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", remote], check=True)
    git(remote, "config", "core.logAllRefUpdates", "always")
    queue = type("Seen", (), {"enqueue": lambda *_: None})()
    with Workspace.create(root / "mine" / "task", settings=fleet.settings) as ws:
        made = [submit(ws, fleet.place, queue, text) for text in (f"Write of a {WORD}.", "Do that.")]
    for one in made:
        [result] = carrying_out.in_process(root / "home", str(remote), one, settings)
        assert result.status == "COMPLETED"
    return root, [one.id for one in made]


@pytest.fixture
def found(done, tmp_path):
    """Check a copy of the remote, after something was done to it; return what was found."""
    root, ids = done
    remote = tmp_path / "task.git"
    shutil.copytree(root / "remotes" / "task.git", remote, symlinks=True)
    (tmp_path / "clones").mkdir()

    def found(submissions=ids, secrets=(), do=lambda _: None):
        do(remote)
        one = check(
            "task",
            submissions,
            str(remote),
            remote,
            [root / "home"],
            tmp_path / "clones",
            os.environ,
            secrets,
        )
        return one.findings

    return found


def git(where, *words):
    return subprocess.run(
        ["git", "-C", str(where), "-c", "user.name=x", "-c", "user.email=x@example.invalid", *words],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def test_nothing_is_found_where_all_is_as_it_must_be(found, done):
    assert found(secrets=("grapefruit",)) == []


def test_runs_that_are_missing_too_many_or_in_another_order_are_found(found, done):
    first, second = done[1]
    assert found([first, second, "third"])[0] == "third was never started"
    assert found([first]) == [f"{second} was started 1 times more than it should be"]
    assert found([second, first])[0].startswith("not in order")


def test_a_secret_in_a_history_is_found(found):
    assert found(secrets=(WORD,)) == ["the history holds a secret"]


def test_a_branch_that_moved_back_and_the_events_that_it_lost_are_found(found):
    said = found(do=lambda remote: git(remote, "update-ref", "refs/heads/main", "main~1"))
    assert any(one.startswith("the branch did not move forward") for one in said)
    assert any(one.startswith("the copy of ") and one.endswith("which the branch lacks") for one in said)


def test_a_merge_and_a_ref_that_does_not_belong_are_found(found):
    def merged(remote):
        made = git(remote, "commit-tree", "main^{tree}", "-p", "main", "-p", "main~1", "-m", "Merge")
        git(remote, "update-ref", "refs/other/merged", made)

    assert found(do=merged) == ["its history has a merge", "the remote has a ref refs/other/merged"]


def test_a_history_that_was_altered_is_found(found):
    def altered(remote):
        tree = git(remote, "ls-tree", "main").splitlines()
        log = git(remote, "show", "main:history.jsonl").replace(WORD, "grapefruit") + "\n"
        blob = subprocess.run(
            ["git", "-C", str(remote), "hash-object", "-w", "--stdin"], input=log, check=True, capture_output=True, text=True
        ).stdout.strip()  # fmt: skip
        lines = [
            f"100644 blob {blob}\thistory.jsonl" if line.endswith("\thistory.jsonl") else line
            for line in tree
        ]
        made = subprocess.run(
            ["git", "-C", str(remote), "mktree"], input="\n".join(lines) + "\n", check=True, capture_output=True, text=True
        ).stdout.strip()  # fmt: skip
        git(
            remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", made, "-p", "main", "-m", "x")
        )

    assert any("is not sound" in one or "the check failed" in one for one in found(do=altered))
