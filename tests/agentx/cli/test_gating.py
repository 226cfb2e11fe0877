"""``agentx gate`` and ``agentx agent capability``: what a person and a hook see, and the exit status that a hook acts upon."""

import io
import re

import pytest

from agentx import Workspace
from agentx.cli.terminal import Terminal


@pytest.fixture
def guarded(root):
    """The workspace, with a flow that asks, and an idea that was ruled out."""
    with Workspace.open(root) as ws:
        ws.flows.add("deploy to production", ["Back up", "Build"], needs_approval=True)
        ws.remember("rejection", "Redis for caching")
        ws.remember("rule", "Always test twice.", score=10.0)
    return root


@pytest.mark.parametrize(
    ("action", "status", "verdict"),
    [
        ("paint the fence", 0, "allow"),
        ("remove the Redis caching", 0, "allow_with_context"),
        ("deploy to production", 3, "ask"),
        ("use Redis for caching", 4, "deny"),
    ],
)
def test_the_exit_status_says_the_verdict_with_and_without_json(guarded, call, action, status, verdict):
    shown, document = (
        call("gate", "pre", action, "-C", guarded),
        call("gate", "pre", action, "--json", "-C", guarded),
    )
    assert (shown.code, document.code) == (status, status)
    assert (shown.err, document.json["verdict"]) == ("", verdict)
    assert shown.out.splitlines()[0] == f"{verdict.replace('_', ' ')}: {document.json['reason']}"
    assert "Always test twice" not in shown.out, "critical, and about another matter"
    assert ("Always test twice" in document.json["text"]) is (verdict != "allow")
    assert document.json["text"].startswith("# ")
    assert document.json["tokens"] <= 3_000


def test_what_was_checked_and_how_long_it_took_is_told(guarded, call):
    shown = call("gate", "pre", "paint the fence", "-C", guarded).out.splitlines()[-1]
    assert re.fullmatch(r"Checked 3 rules in \d+\.\d ms\.", shown)
    document = call("gate", "pre", "paint the fence", "--json", "-C", guarded).json
    assert (document["checked"], document["took_ms"] > 0) == (3, True)


def test_a_hook_gives_the_arguments_of_a_tool_on_stdin(guarded, call, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"file_path": "requirements.txt", "content": "flask"}'))
    done = call("gate", "pre", "add it", "--tool", "Write", "--arguments", "-", "-C", guarded)
    assert done.code == 4
    assert "c-3" in done.out


@pytest.mark.parametrize("arguments", ["{", "[]", "3", "[" * 100_000])
def test_arguments_that_are_no_object_are_told(guarded, call, arguments):
    done = call("gate", "pre", "x", "--arguments", arguments, "-C", guarded)
    assert done.code == 2
    assert "JSON" in done.err


def test_nothing_said_steers_the_terminal(guarded, call):
    call("gate", "post", "x\x1b[2J", "--fail", "--lesson", "y\x1b]0;z\x07 ledger", "-C", guarded)
    out = call("gate", "pre", "ledger \x1b[2J" + "ledger " * 10_000, "-C", guarded).out
    assert "\x1b" not in out + call("gate", "-C", guarded).out
    assert "ledger" in out


def test_a_grade_tells_the_entry_the_flow_and_what_would_make_the_lesson_last(guarded, call):
    with Workspace.open(guarded) as ws:
        flow = ws.flows.all()[0].id
    words = (
        "gate",
        "post",
        "Deployed",
        "--flow",
        flow,
        "--lesson",
        "Never create a deploy.log file.",
        "-C",
        guarded,
    )
    out = call(*words, "--fail").out
    assert "0% (0 of 1" in out
    assert "Not permanent yet" in out
    assert "agentx memory add 'Never create a deploy.log file.' --kind constraint" in out
    done = call(*words, "--pass", "--made", "check")
    assert "No check for this lesson was found" in done.err
    assert "Not permanent yet" in done.out
    call("memory", "add", "Never create a deploy.log file.", "--kind", "constraint", "-C", guarded)
    script = call("gate", "post", "Looked", "--pass", "--lesson", "Ask twice.", "-C", guarded).out
    assert "scripts/ask-twice.sh" in script
    assert "│ type" not in script
    assert "It is enforced" in call(*words, "--pass", "--made", "check").out


def test_what_is_no_flow_or_rule_is_told_on_stderr(guarded, call):
    done = call("gate", "post", "Deployed", "--pass", "--flow", "f-99", "--kept", "c-3", "-C", guarded)
    assert done.code == 0
    assert "Unknown flow f-99 ignored" in done.err
    assert "Unknown rule c-3 ignored" in done.err


def test_a_grade_by_an_agent_is_recorded_as_its_own(guarded, call):
    done = call(
        "gate", "post", "Deployed", "--pass", "--lesson", "Obey.", "--agent", "main", "--json", "-C", guarded
    )
    assert done.json["lesson"]["trust"] == "agent"
    assert call("log", "--type", "TaskGraded", "--json", "-C", guarded).lines[0]["actor"] == "agent:main"


def test_a_grade_is_the_persons_only_where_one_sits_at_the_terminal(guarded, call, monkeypatch):
    words = ("gate", "post", "Deployed", "--pass", "--lesson", "Obey.", "--json", "-C", guarded)
    assert call(*words).json["lesson"]["trust"] == "agent"
    monkeypatch.setattr(Terminal, "interactive", True)
    assert call(*words).json["lesson"]["trust"] == "user"


def test_a_capability_that_does_not_work_ends_the_check_with_1(guarded, call):
    assert "yes" in call("agent", "capability", "add", "shell", "--command", "echo here", "-C", guarded).out
    assert call("agent", "capability", "check", "-C", guarded).code == 0
    call("agent", "capability", "add", "host", "--command", "echo no route; exit 3", "-C", guarded)
    done = call("agent", "capability", "check", "-C", guarded)
    assert done.code == 1
    assert "no route" in done.out
    call("agent", "capability", "add", "silent", "--command", "exit 4", "-C", guarded)
    assert "It printed nothing (exit 4)." in call("agent", "capability", "-C", guarded).out


def test_credentials_of_the_environment_are_listed_by_name(guarded, call, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    done = call("agent", "capability", "-C", guarded)
    assert "GITHUB_TOKEN" in done.out
    assert "hush" not in done.out
