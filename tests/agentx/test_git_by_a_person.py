"""A person uses plain git in a workspace, before, while and after the engine writes: nothing is lost, all is on record."""

import pytest

from agentx.recording.committer import BranchLeft
from agentx.storage.events.types import ArtifactChanged, Draft, UserMessageSent


@pytest.fixture
def file(task):
    return task / "artifacts" / "a.txt"


def _noticed(path):
    return [
        event.data.noticed for event in path.log.history.read() if isinstance(event.data, ArtifactChanged)
    ]


def test_an_edit_is_recorded_before_a_write_covers_it(path, write, file, contents, sound):
    write(path, "a.txt", "engine 1")
    file.write_text("person")
    write(path, "a.txt", "engine 2")
    assert contents("a.txt") == ["engine 1", "person", "engine 2"]
    assert _noticed(path) == ["write"]
    path.flush()
    sound()


def test_a_new_a_changed_and_a_deleted_file_are_found_by_a_scan(path, write, task, contents, sound):
    write(path, "a.txt", "1")
    write(path, "b.txt", "1")
    (task / "artifacts/a.txt").unlink()
    (task / "artifacts/b.txt").write_text("2")
    (task / "artifacts/c.txt").write_text("new")
    path.edits.scan()
    assert (contents("a.txt"), contents("b.txt"), contents("c.txt")) == (["1", None], ["1", "2"], ["new"])
    path.flush()
    sound()


def test_what_was_staged_is_kept(path, write, file, git, contents, sound):
    write(path, "a.txt", "1")
    path.flush()
    file.write_text("staged")
    git("add", "artifacts/a.txt")
    path.edits.scan()
    path.flush()
    assert contents("a.txt") == ["1", "staged"]
    sound()


def test_what_was_staged_and_edited_again_is_kept_in_both_forms(path, write, file, git, contents, sound):
    write(path, "a.txt", "1")
    path.flush()
    file.write_text("staged")
    git("add", "artifacts/a.txt")
    file.write_text("edited again")
    path.edits.scan()
    path.flush()
    assert contents("a.txt") == ["1", "staged", "edited again"]
    sound()


def test_what_was_staged_and_edited_again_is_kept_when_a_write_covers_both(
    path, write, file, git, contents, sound
):
    write(path, "a.txt", "1")
    path.flush()
    file.write_text("staged")
    git("add", "artifacts/a.txt")
    file.write_text("edited again")
    write(path, "a.txt", "engine")
    path.flush()
    assert contents("a.txt") == ["1", "staged", "edited again", "engine"]
    sound()


def test_what_was_staged_before_the_workspace_was_opened_is_kept(
    path, write, file, git, contents, sound, reopen
):
    write(path, "a.txt", "1")
    path.flush()
    path.close()
    file.write_text("staged")
    git("add", "artifacts/a.txt")
    file.write_text("edited again")
    later = reopen()
    write(later, "b.txt", "other")
    write(later, "a.txt", "engine")
    later.flush()
    assert [
        event.data.noticed for event in later.log.history.read() if isinstance(event.data, ArtifactChanged)
    ] == ["index", "write"]
    sound()


@pytest.mark.parametrize("untracked", [False, True])
def test_what_was_stashed_is_on_record_and_the_stash_pops(
    path, write, file, task, git, contents, sound, untracked
):
    write(path, "a.txt", "1")
    path.flush()
    file.write_text("stashed")
    (task / "artifacts/new.txt").write_text("untracked")
    git("stash", *(["-u"] if untracked else []))
    path.edits.scan()
    write(path, "b.txt", "other")
    path.flush()
    assert contents("a.txt") == ["1", "stashed", "1"]
    assert contents("new.txt") == (["untracked", None] if untracked else ["untracked"])
    git("stash", "pop")
    path.edits.scan()
    path.flush()
    assert contents("a.txt") == ["1", "stashed", "1", "stashed"]
    assert git("stash", "list") == ""
    sound()


def test_several_stashes_and_what_was_staged_in_them_are_on_record_once(
    path, write, file, git, contents, sound
):
    write(path, "a.txt", "1")
    path.flush()
    for n in (1, 2):
        file.write_text(f"staged {n}")
        git("add", ".")
        file.write_text(f"working {n}")
        git("stash")
    path.edits.scan()
    path.edits.scan()
    path.flush()
    assert contents("a.txt") == ["1", "staged 1", "working 1", "1", "staged 2", "working 2", "1"]
    sound()


def test_while_the_engine_writes_git_is_refused_and_nothing_is_reverted(path, write, file, git):
    write(path, "a.txt", "1")
    path.flush()
    write(path, "a.txt", "2")
    for command in (
        ["stash"],
        ["reset", "--hard"],
        ["add", "."],
        ["commit", "-am", "x"],
        ["checkout", "-b", "x", "HEAD~1"],
    ):
        assert git(*command, check=False).returncode != 0
    assert file.read_text() == "2"
    path.flush()
    assert git("status", "--porcelain") == ""
    git("add", ".")


@pytest.mark.parametrize("between_sessions", [False, True])
@pytest.mark.parametrize("mode", ["--soft", "--mixed", "--hard"])
def test_a_branch_that_was_set_back_goes_forward_again(
    path, write, git, contents, sound, *, reopen, mode, between_sessions
):
    write(path, "a.txt", "1")
    write(path, "a.txt", "2")
    write(path, "b.txt", "b")
    path.flush()
    if between_sessions:
        path.close()
    git("reset", "-q", mode, "HEAD~2")
    now = reopen() if between_sessions else path
    now.edits.scan()
    now.flush()
    assert contents("a.txt") == ["1", "2"] + (["1"] if mode == "--hard" else [])
    assert any("moved forward" in note for note in now.notes)
    sound()


@pytest.mark.parametrize("between_sessions", [False, True])
def test_a_branch_that_was_set_back_beyond_the_first_commit_s_child_and_written_upon_is_kept(
    path, write, file, git, contents, sound, reopen, between_sessions
):
    """The person's commit stands, and the log of what it dropped comes back."""
    write(path, "a.txt", "1")
    write(path, "a.txt", "2")
    long = path.body("a long text " * 2_000)
    path.record([_said(long)])
    path.flush()
    if between_sessions:
        path.close()
    git("reset", "-q", "--hard", "HEAD~2")
    file.write_text("person")
    git("commit", "-q", "-am", "Mine")
    now = reopen() if between_sessions else path
    now.edits.scan()
    write(now, "a.txt", "engine")
    now.flush()
    assert contents("a.txt") == ["1", "2", "person", "engine"]
    assert now.log.blobs.text(long) == "a long text " * 2_000
    sound()
    assert "Mine" in git("log", "--format=%s")


@pytest.mark.parametrize("between_sessions", [False, True])
def test_a_commit_is_recorded_and_stays(path, write, file, git, contents, sound, reopen, between_sessions):
    write(path, "a.txt", "1")
    path.flush()
    if between_sessions:
        path.close()
    file.write_text("person 1")
    git("commit", "-q", "-am", "By hand")
    file.write_text("person 2")
    git("commit", "-q", "-am", "By hand again")
    now = reopen() if between_sessions else path
    now.refresh()
    write(now, "a.txt", "2")
    now.flush()
    assert contents("a.txt") == ["1", "person 2", "2"]
    assert _noticed(now) == ["git"]
    log = git("log", "--format=%an: %s")
    assert "\nPat: By hand again\nPat: By hand\nagent:main: Create a.txt\n" in log
    sound()


@pytest.mark.parametrize("between_sessions", [False, True])
def test_an_amended_commit_is_recorded_and_stays(
    path, write, file, git, contents, sound, reopen, between_sessions
):
    write(path, "a.txt", "1")
    write(path, "a.txt", "2")
    path.flush()
    if between_sessions:
        path.close()
    file.write_text("amended")
    git("commit", "-q", "-a", "--amend", "--no-edit")
    now = reopen() if between_sessions else path
    now.refresh()
    write(now, "a.txt", "3")
    now.flush()
    assert contents("a.txt") == ["1", "2", "amended", "3"]
    sound()


def test_a_squash_loses_no_event(path, write, file, git, contents, sound):
    for n in range(4):
        write(path, "a.txt", str(n))
    path.flush()
    git("reset", "-q", "--soft", "HEAD~3")
    git("commit", "-q", "-m", "All in one")
    write(path, "a.txt", "4")
    path.flush()
    assert contents("a.txt") == ["0", "1", "2", "3", "4"]
    sound()


def test_a_merge_is_recorded(path, write, file, task, git, contents, sound):
    write(path, "a.txt", "1")
    path.flush()
    git("checkout", "-q", "-b", "side")
    (task / "artifacts/side.txt").write_text("side")
    git("add", ".")
    git("commit", "-q", "-m", "Side")
    git("checkout", "-q", "main")
    write(path, "a.txt", "2")
    path.flush()
    git("merge", "-q", "--no-edit", "side")
    path.refresh()
    write(path, "a.txt", "3")
    path.flush()
    assert contents("side.txt") == ["side"]
    assert contents("a.txt") == ["1", "2", "3"]
    sound()


@pytest.mark.parametrize(
    "way",
    [["checkout", "-q", "-b", "other"], ["checkout", "-q", "HEAD~1"], ["switch", "-q", "--orphan", "none"]],
)
def test_on_another_branch_nothing_is_written_and_the_sentence_says_what_to_do(
    path, write, git, task, way, sound, reopen
):
    write(path, "a.txt", "1")
    path.flush()
    log = (task / "history.jsonl").read_bytes()
    git(*way)
    before = {p: p.read_bytes() for p in task.rglob("*") if p.is_file() and ".git" not in p.parts}
    for attempt in (lambda: write(path, "a.txt", "2"), path.edits.scan, path.flush, path.refresh, reopen):
        with pytest.raises(BranchLeft, match="git switch main"):
            attempt()
    assert {p: p.read_bytes() for p in task.rglob("*") if p.is_file() and ".git" not in p.parts} == before
    git("switch", "-q", "main")
    assert (task / "history.jsonl").read_bytes() == log
    write(path, "a.txt", "2")
    path.flush()
    sound()


def test_a_new_branch_in_the_middle_of_the_work_is_left_again(path, write, git, sound, contents):
    git("branch", "other")
    write(path, "a.txt", "1")  # not flushed: the engine holds the index
    # What `git checkout -b other` does when it slips in just before the engine takes the index.
    git("symbolic-ref", "HEAD", "refs/heads/other")
    write(path, "a.txt", "2")
    path.flush()
    assert git("branch", "--show-current").strip() == "main"
    assert git("status", "--porcelain") == ""
    assert contents("a.txt")[-1] == "2"
    assert any("back on main" in note for note in path.notes)
    sound()


def test_a_left_branch_keeps_no_git_command_out(path, write, git, task):
    write(path, "a.txt", "1")
    path.flush()
    git("checkout", "-q", "-b", "other")
    git("commit", "-q", "--allow-empty", "-m", "mine")
    with pytest.raises(BranchLeft):
        path.flush()
    assert not (task / ".git" / "index.lock").exists()
    git("switch", "-q", "main")
    write(path, "a.txt", "2")


@pytest.mark.parametrize("between_sessions", [False, True])
def test_git_gc_between_writes_loses_nothing(path, write, git, contents, sound, reopen, between_sessions):
    now = path
    for n in range(4):
        write(now, "a.txt", str(n))
        now.record([_said(now.body("long " * 3_000))])
        if between_sessions:
            now.flush()
            now.close()
        git("gc", "-q", "--prune=now") if between_sessions else git("gc", "-q")
        if between_sessions:
            now = reopen()
    now.flush()
    assert contents("a.txt") == ["0", "1", "2", "3"]
    sound()


def test_deleting_the_log_or_its_folder_costs_nothing_that_was_committed(
    path, reopen, write, task, contents, sound
):
    for n in range(30):
        write(path, "a.txt", f"{n} " + "x" * 3_000)
        path.record([_said(path.body("x" * 4_000))])
    path.flush()
    (task / "history.jsonl").unlink()
    write(path, "a.txt", "on")
    path.flush()
    assert len(contents("a.txt")) == 31
    for segment in (task / "history").rglob("*.jsonl"):
        segment.unlink()
    later = reopen()
    write(later, "a.txt", "on and on")
    later.flush()
    assert len(contents("a.txt")) == 32
    sound()


def test_a_branch_that_was_deleted_comes_back(path, write, task, git, contents, sound):
    write(path, "a.txt", "1")
    path.flush()
    git("update-ref", "-d", "refs/heads/main")
    write(path, "a.txt", "2")
    path.flush()
    assert contents("a.txt") == ["1", "2"]
    assert len(git("log", "--format=%h").splitlines()) == 3
    sound()


def test_a_directory_in_the_place_of_a_file_is_recorded_before_a_write_into_it(
    path, write, file, contents, sound
):
    write(path, "a.txt", "file")
    file.unlink()
    file.mkdir()
    write(path, "a.txt/below", "x")
    path.flush()
    assert contents("a.txt") == ["file", None]
    sound()


def test_a_file_in_the_place_of_a_directory_is_recorded_before_a_write_of_it(
    path, write, task, contents, sound
):
    write(path, "d/x", "x")
    (task / "artifacts/d/x").unlink()
    (task / "artifacts/d").rmdir()
    write(path, "d", "file")
    path.flush()
    assert contents("d/x") == ["x", None]
    sound()


def _said(body):
    return Draft(data=UserMessageSent(body=body), actor="user")
