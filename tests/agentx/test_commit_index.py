"""Which commit was the first to hold an event, found without reading every commit at once."""

import subprocess

import pytest

from agentx import Workspace
from agentx.engine.commit_index import CommitIndex


@pytest.fixture
def made(ws):
    """A workspace with six more commits, and the first event and the commit of each write."""
    pairs = []
    for number in range(6):
        ws.tools.write_file("a.md", f"{number}\n")
        pairs.append((ws.state.seq, ws.engine.git.head))
    return pairs


def fresh(ws):
    return CommitIndex(ws.engine.git.repo, ws.root / ".agentx" / "commits")


def found(index, pairs):
    return [index.find(seq) for seq, _ in pairs]


def test_each_event_has_the_first_commit_that_holds_it_and_one_that_waits_has_none(ws, made):
    index = fresh(ws)
    assert not index.extend(ws.engine.git.head)
    assert found(index, made) == [commit for _, commit in made]
    assert index.find(made[-1][0] + 1) == ""


def test_a_few_are_read_at_a_time_the_newest_first_and_what_was_read_is_kept(ws, made):
    head, commits = ws.engine.git.head, [commit for _, commit in made]
    index = fresh(ws)
    assert index.extend(head, 3)
    assert found(index, made) == ["", "", "", "", *commits[4:]]
    while index.extend(head, 3):
        pass
    assert found(index, made) == commits
    again = fresh(ws)
    assert not again.extend(head, 1)  # the file ends with the head
    assert found(again, made) == commits


def test_what_is_committed_meanwhile_is_found_before_the_old_is_read(ws, made):
    index = fresh(ws)
    assert index.extend(ws.engine.git.head, 2)
    ws.tools.write_file("b.md", "new\n")
    assert index.extend(ws.engine.git.head, 1)
    assert index.find(ws.state.seq) == ws.engine.git.head


@pytest.mark.parametrize("content", [b"", b"torn", b"\xff" * 28 * 4, bytes(range(28)) * 3 + b"x"])
def test_a_file_that_is_torn_or_of_another_branch_is_read_past(ws, made, content):
    (ws.root / ".agentx" / "commits").write_bytes(content)
    index = fresh(ws)
    while index.extend(ws.engine.git.head):
        pass
    assert found(index, made) == [commit for _, commit in made]


def test_a_persons_commit_with_a_trailer_of_ours_is_not_trusted(ws, lexical, made):
    ws.close()
    message = "Mine\n\nAgentX-Event: 9000\n"
    git = [
        "git",
        "-c",
        "user.name=p",
        "-c",
        "user.email=p@example.org",
        "commit",
        "--allow-empty",
        "-qm",
        message,
    ]
    subprocess.run(git, cwd=ws.root, check=True)
    with Workspace.open(ws.root, settings=lexical) as again:
        index = fresh(again)
        while index.extend(again.engine.git.head):
            pass
        assert index.find(8_999) == ""
        assert found(index, made) == [commit for _, commit in made]
