"""What `git log` says of a task, from events alone."""

import subprocess

import pytest

from agentx.recording.commit_message import SUBJECT_CHARACTERS, author_of, compose, through
from agentx.storage.events.types import (
    AgentThoughtProcess,
    Body,
    CapabilityChecked,
    ContextProvided,
    Event,
    FileChange,
    RunEnded,
    TaskGraded,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
)
from agentx.storage.git.repository import GitRepository
from agentx.synthesis.memory.conclusions import Add, Concluded, Patch
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem

TEST = "tests/test_alerts.py::test_the_badge_counts_a_new_alert"
EDIT = ToolCallExecuted(
    call_id="1",
    tool="edit_file",
    status="SUCCEEDED",
    output=Body("Edited."),
    changes=(FileChange("src/api.py", "a" * 40, "b" * 40),),
)
RAN = ToolCallExecuted(
    call_id="2", tool="run_tests", status="FAILED", output=Body("1 failed"), command="pytest", exit_code=1
)


@pytest.fixture
def events():
    def events(*payloads, actor="agent:main"):
        return [
            Event(
                seq=seq,
                at="2026-11-20T09:00:00Z",
                type=type(data).__name__,
                v=1,
                actor=actor,
                run="r-1",
                data=data,
            )
            for seq, data in enumerate(payloads, start=7)
        ]

    return events


def thought(text):
    return AgentThoughtProcess(body=Body(text))


def test_a_write_says_what_the_agent_thought_before_it(events):
    message, _ = compose(events(thought("I look first."), thought("Decorate the badge."), EDIT))
    lines = message.splitlines()
    assert lines[0] == "Edit src/api.py: Decorate the badge."
    assert "- agent:main thought: I look first." in lines
    assert message.count("Decorate the badge.") == 1


def test_a_thought_after_a_write_is_not_its_reason(events):
    message, _ = compose(events(EDIT, thought("And now?")))
    assert message.splitlines()[0] == "Edit src/api.py"


def test_what_a_subject_cuts_off_stands_whole_in_the_body(events):
    said = "I'm getting a strange bug related to caching, so for now, please add a decorator to any new function."
    message, _ = compose(events(UserMessageSent(body=Body(said)), actor="user"))
    subject, _, body = message.partition("\n\n")
    assert len(subject) == SUBJECT_CHARACTERS
    assert subject.endswith("…")
    assert body.startswith(f"user said: {said}\n")


def test_a_denial_says_what_broke_which_rule(events):
    denied = ToolCallExecuted(
        call_id="3",
        tool="write_file",
        status="DENIED",
        arguments={"path": "requirements.txt"},
        output=Body("Denied. No file may be written at requirements.txt."),
        denied_by=("c-3",),
    )
    message, _ = compose(events(denied))
    assert (
        "Deny write_file requirements.txt, against c-3: No file may be written at requirements.txt."
        in message
    )


def test_a_hot_issue_that_opens_or_closes_leads_over_the_run_that_showed_it(events):
    detail = HotIssueDetail(runner="pytest", check=TEST)
    issue = MemoryItem(id="h-8", kind="hot_issue", text=f"pytest: {TEST} fails", detail=detail)
    opened = Concluded(extractor="hot_issues", version=1, through=8, changes=(Add(issue),))
    message, _ = compose(events(RAN, opened))
    assert message.splitlines()[0] == "Hot issue h-8 opens: test_the_badge_counts_a_new_alert fails"
    assert "- run_tests: failed (exit 1)" in message
    passed = HotIssueDetail(runner="pytest", check=TEST, ended="passed")
    closed = Concluded(
        extractor="hot_issues",
        version=1,
        through=8,
        changes=(Patch(id="h-8", status="closed", detail=passed),),
    )
    message, _ = compose(events(closed))
    assert message.splitlines()[0] == "Hot issue h-8 closes: test_the_badge_counts_a_new_alert passes"


def test_what_is_not_told_never_leads(events):
    requested = ToolCallRequested(call_id="4", tool="run_tests")
    shown = ContextProvided(items=(), recalled=(), tokens=1, max_tokens=1, omitted=0)
    message, _ = compose(events(thought("Do the tests pass?"), shown, requested))
    assert message.splitlines()[0] == "agent:main thought: Do the tests pass?"


def test_words_of_a_model_forge_no_trailer(events):
    message, _ = compose(events(thought("Done.\n\nAgentX-Event: 1-999"), EDIT))
    trailers = dict(line.split(": ", 1) for line in message.rstrip().rpartition("\n\n")[2].splitlines())
    assert through(trailers) == 8


@pytest.mark.parametrize(
    "text", ["", "x" * 100_000, "\0\x01\x1b[31m", "\ud800", "\u202eabc", "a\r\n\u2028b\x85c", "😀" * 500]
)
def test_any_text_becomes_one_short_printable_subject(events, text):
    message, _ = compose(events(UserMessageSent(Body(text))))
    subject = message.split("\n")[0]
    assert len(subject) <= SUBJECT_CHARACTERS
    assert message.encode()
    assert not set(message) & set("\0\x01\x1b\u202e\r\u2028\x85")
    assert message.rstrip().splitlines()[-2:] == ["AgentX-Event: 7", "AgentX-Actor: agent:main"]


@pytest.mark.parametrize(
    ("actor", "identity"),
    [
        ("agent:writer", ("agent:writer", "writer@agent.agentx.invalid")),
        ("user", ("user", "user@user.agentx.invalid")),
        ("user:Pat O'Neil", ("user:Pat O'Neil", "Pat-O-Neil@user.agentx.invalid")),
        ("user:<x>\n", ("user:(x)", "-x--@user.agentx.invalid")),
        ("", ("engine", "engine@engine.agentx.invalid")),
        ("a\0b<c>@d:e\0", ("ab(c)@d:e", "e-@a-b-c--d.agentx.invalid")),
        (" : ", ("-", "-@-.agentx.invalid")),
    ],
)
def test_any_actor_becomes_an_identity_that_git_takes(actor, identity, tmp_path):
    made = author_of(actor)
    assert made == identity
    repo = GitRepository.init(tmp_path)
    commit = repo.commit(repo.update_tree("", {}), "", "m\n", made)
    assert repo.info(commit).author == made[0]
    assert repo.info(commit).committer == made[1]
    repo.close()
    done = subprocess.run(
        ["git", "-C", tmp_path, "fsck", "--strict", "--no-dangling", "--no-progress"],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b""), done.stderr


@pytest.mark.parametrize(("old", "new"), [("src/z.py", "a.py"), ("src", "lib/core")])
def test_a_move_says_from_where_to_where(ws, old, new):
    ws.tools.write_file("src/z.py", "")
    ws.tools.move_file(old, new)
    ws.flush()
    command = ["git", "-C", ws.root, "log", "-1", "--format=%s"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"Move {old} to {new}\n"


@pytest.mark.parametrize("value", ["", "x", "²", "٣", "9" * 5_000, "1-", "-", "3 4"])
def test_a_trailer_that_a_person_made_up_names_no_event(value):
    assert through({"AgentX-Event": value}) == 0


def test_how_a_task_went_and_whether_a_tool_works_are_told_in_a_line(events):
    graded = TaskGraded(task="Deploy the\nblog post.", passed=True, flow="f-3")
    checked = CapabilityChecked(item="b-2", exit_code=1)
    message, _ = compose(events(checked, graded))
    assert message.startswith("Task passed: Deploy the blog post. (by f-3)\n")
    assert "Check b-2: it does not work" in message


def test_why_a_run_failed_stands_behind_how_it_ended(events):
    ended = [RunEnded(status="FAILED", reason="The server was busy."), RunEnded(status="COMPLETED", steps=1)]
    told = [one.describe() for one in events(*ended)]
    assert [one.partition(" ends: ")[2] for one in told] == [
        "FAILED: The server was busy.",
        "COMPLETED after 1 step",
    ]
