"""The git program: what steers it, how it ends, and what is said of it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agentx.storage.git.exchange import git_program
from agentx.storage.git.exchange.git_program import GitFailed, GitMissing, objects_of, run


def command(shell):
    """A git command line that runs a shell script."""
    return ["git", "-c", f"alias.try=!{shell}", "try"]


def wait_for(path):
    """A number that a script writes to a file."""
    while not (path.exists() and path.read_text().strip()):
        time.sleep(0.01)
    return int(path.read_text())


def is_alive(pid):
    """Whether a process is at work; one that ended and that nobody waited for is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid):
    """Wait until a process has ended, which takes a moment behind its signal."""
    while is_alive(pid):
        time.sleep(0.01)


def test_what_the_last_of_several_prints_is_returned_and_progress_is_told():
    told = []
    first = command("printf 'Counting objects: 7, done.\\rWriting objects:  50%% (1/2)\\n' >&2; cat; echo; #")
    assert (
        run(first, command("tr a-z A-Z; #"), given=["one", "two"], progress=lambda *one: told.append(one))
        == "ONE\nTWO\n\n"
    )
    assert told == [("Counting objects", 7, 7), ("Writing objects", 1, 2)]


def test_a_failure_has_the_reasons_and_the_objects_that_it_names():
    oid = "1234567890" * 4
    script = (
        f"echo 'remote: fatal: {oid[::-1]}' >&2; echo 'fatal: unable to read {oid}' >&2; echo out; exit 3; #"
    )
    with pytest.raises(GitFailed, match=f"`git try` failed: fatal: unable to read {oid}") as failure:
        run(command(script))
    assert (failure.value.named, failure.value.printed) == ([oid], "out\n")


def test_of_what_is_said_a_little_is_kept():
    """A server may say anything, for ever."""
    with pytest.raises(GitFailed) as failure:
        run(
            command("yes 'fatal: no' | head -9999 >&2; head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1; #")
        )
    assert len(str(failure.value)) < 10_000
    assert sum(map(len, failure.value.said)) < 30_000


def test_a_failure_anywhere_in_the_row_is_a_failure():
    with pytest.raises(GitFailed):
        run(command("exit 1; #"), command("cat; #"))
    with pytest.raises(GitFailed):
        run(command("yes; #"), command("exit 1; #"))


def test_one_that_says_nothing_is_ended_with_all_that_it_started(tmp_path):
    with pytest.raises(GitFailed, match="printed nothing for"):
        run(command(f"sleep 600 & echo $! > {tmp_path}/pid; wait; #"), silent_s=0.5)
    ends(wait_for(tmp_path / "pid"))


def test_ctrl_c_ends_it(tmp_path):
    def interrupt(*_told):
        raise KeyboardInterrupt

    script = f"echo $$ > {tmp_path}/pid; echo 'Writing objects: 1% (1/100)' >&2; exec sleep 600; #"
    with pytest.raises(KeyboardInterrupt):
        run(command(script), progress=interrupt)
    ends(wait_for(tmp_path / "pid"))


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path):
    """An ssh master or a credential daemon keeps the pipes open."""
    assert run(command(f"sleep 600 & echo $! > {tmp_path}/pid; echo done; #")) == "done\n"
    pid = wait_for(tmp_path / "pid")
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_git_program_that_is_missing_is_said(tmp_path, monkeypatch):
    (tmp_path / "env").symlink_to(shutil.which("env"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with objects_of(tmp_path) as objects, pytest.raises(GitMissing, match="Install Git"):
        run(objects.command("rev-list", "--all"))


@pytest.fixture
def repository(tmp_path):
    """A repository with a commit, and an object that nothing leads to."""
    git = ("git", "-C", str(tmp_path / "r"), "-c", "user.name=P", "-c", "user.email=p@x")
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "r")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    hashing = [*git, "hash-object", "-w", "--stdin"]
    subprocess.run(hashing, input=b"nobody names me", check=True, capture_output=True)
    return tmp_path / "r"


def test_of_a_repository_nothing_but_its_objects_is_read(repository, tmp_path):
    """Its own configuration, hooks, refs and grafts may have come with a copy."""
    head = (repository / ".git/refs/heads/main").read_text().strip()
    (repository / ".git/config").write_text("[core\nnonsense")
    (repository / ".git/HEAD").write_text("nonsense")
    (repository / ".git/info/grafts").write_text("nonsense")
    with objects_of(repository / ".git") as objects:
        assert run(objects.command("rev-parse", "--is-bare-repository")) == "true\n"
        assert run(objects.command("cat-file", "-t", head)) == "commit\n"
        assert run(objects.command("for-each-ref")) == ""
        listed = run(objects.command("config", "--list", "--name-only"))
        own = objects.own
    assert set(listed.split()) == set(
        run(["git", "config", "-f", str(_written(tmp_path)), "--list", "--name-only"]).split()
    )
    assert not own.exists()


def _written(tmp_path):
    (tmp_path / "config").write_text(git_program._CONFIG)
    return tmp_path / "config"


def test_variables_of_another_repository_do_not_reach_it(repository, tmp_path, monkeypatch):
    """As in a hook: git sets them for what it runs."""
    local = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True
    )
    for name in (*local.stdout.split(), "GIT_NAMESPACE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    with objects_of(repository / ".git") as objects:
        assert run(objects.command("rev-parse", "--git-dir")).strip() == str(objects.own)
        assert len(run(objects.command("cat-file", "--batch-all-objects", "--batch-check")).splitlines()) == 3


def test_no_garbage_is_collected_where_everything_looks_like_garbage(repository, monkeypatch, tmp_path):
    (tmp_path / "global").write_text("[gc]\nauto = 1\n[maintenance]\nauto = true\n[gc]\npruneExpire = now\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    with objects_of(repository / ".git") as objects:
        for person in (False, True):
            run(objects.command("gc", "--auto", "--quiet", person=person))
            run(objects.command("maintenance", "run", "--auto", person=person))
        assert len(run(objects.command("cat-file", "--batch-all-objects", "--batch-check")).splitlines()) == 3
