"""A turn is graded by its own session's prompt and checks, whatever other sessions do in the workspace."""

# ruff: noqa: F811 - a test takes fixtures that are imported

import pytest

from tests.agentx.conftest import lexical  # noqa: F401 - a fixture
from tests.agentx.hosts.conftest import project, session, ws  # noqa: F401 - fixtures

CHECK = {"command": "python -m pytest -q"}
FAILED = "Exit code 1\nFAILED tests/test_pay.py::test_pay - assert 1 == 2\n1 failed in 0.10s"
PASSED = {"stdout": "1 passed in 0.10s", "stderr": "", "interrupted": False}
LS = {"command": "ls"}


def graded(ws):
    """Each grade with its run and task."""
    events = [event for event in ws.events() if event.type == "TaskGraded"]
    return [(event.run, event.data.task, event.data.passed) for event in events]


def stop(one, **fields):
    one("Stop", stop_hook_active=False, last_assistant_message="Done.", **fields)


@pytest.fixture
def claude(session):
    return session("claude-code", "s-1")


@pytest.fixture
def codex(session):
    return session("codex", "s-2")


def test_a_stop_grades_the_prompt_of_its_own_session(claude, codex, ws):
    claude("UserPromptSubmit", prompt="Format the refunds.")
    codex("UserPromptSubmit", prompt="Fix the failing test.")
    claude.call("Bash", LS, result=PASSED)
    stop(claude)
    assert graded(ws) == [("s-1", "Format the refunds.", True)]
    codex.call("Bash", LS, result="a")
    stop(codex)
    assert graded(ws)[1:] == [("s-2", "Fix the failing test.", True)]


def test_a_session_without_a_prompt_grades_nobodys(claude, codex, ws):
    codex("UserPromptSubmit", prompt="Fix the failing test.")
    claude.call("Bash", LS, result=PASSED)
    stop(claude)
    assert graded(ws) == []


def test_a_check_that_fails_again_is_not_passed(claude, ws):
    claude("UserPromptSubmit", prompt="Write the payments.")
    claude.call("Bash", CHECK, error=FAILED)
    stop(claude)
    claude("UserPromptSubmit", prompt="Fix the failing test.")
    claude.call("Bash", CHECK, error=FAILED)
    stop(claude)
    assert [passed for _, _, passed in graded(ws)] == [False, False]


def test_a_check_of_another_session_that_fails_again_in_this_one_is_not_passed(claude, session, ws):
    claude("UserPromptSubmit", prompt="Write the payments.")
    claude.call("Bash", CHECK, error=FAILED)
    stop(claude)
    later = session("claude-code", "s-3")
    later("UserPromptSubmit", prompt="Fix the failing test.")
    later.call("Bash", CHECK, error=FAILED)
    stop(later)
    assert graded(ws)[-1] == ("s-3", "Fix the failing test.", False)


def test_while_a_check_of_the_run_fails_no_turn_of_it_is_passed(claude, ws):
    claude("UserPromptSubmit", prompt="Write the payments.")
    claude.call("Bash", CHECK, error=FAILED)
    stop(claude)
    claude("UserPromptSubmit", prompt="Fix it.")
    claude.call("Bash", LS, result=PASSED)
    stop(claude)
    assert graded(ws)[-1][2] is False
    claude("UserPromptSubmit", prompt="Run it again.")
    claude.call("Bash", CHECK, result=PASSED)
    stop(claude)
    assert graded(ws)[-1] == ("s-1", "Run it again.", True)


def test_a_check_that_fails_in_a_subagent_is_its_runs(claude, ws):
    claude("UserPromptSubmit", prompt="Write the payments.")
    named = {"tool_name": "Bash", "tool_input": CHECK, "tool_use_id": "u", "agent_id": "a-1"}
    claude("PreToolUse", **named)
    claude("PostToolUseFailure", **named, error=FAILED)
    claude(
        "SubagentStop", agent_id="a-1", agent_type="general-purpose", last_assistant_message="One test fails."
    )
    assert graded(ws) == []
    claude.call("Bash", LS, result=PASSED)
    stop(claude)
    assert graded(ws) == [("s-1", "Write the payments.", False)]


def test_a_check_that_fails_elsewhere_grades_no_other_session(claude, codex, ws):
    claude("UserPromptSubmit", prompt="Format the refunds.")
    codex("UserPromptSubmit", prompt="Run the tests.")
    codex(
        "PostToolUse",
        tool_name="Bash",
        tool_input=CHECK,
        tool_use_id="u",
        tool_response=f"Exit code: 1\n{FAILED}",
    )
    claude.call("Bash", LS, result=PASSED)
    stop(claude)
    assert graded(ws) == [("s-1", "Format the refunds.", True)]


@pytest.mark.parametrize("name", ["test_pay", "tests/test_pay.py", "test_pay.py"])
def test_a_task_that_names_a_failing_check_is_not_passed_without_a_run_of_it(name, claude, session, ws):
    claude("UserPromptSubmit", prompt="Write the payments.")
    claude.call("Bash", CHECK, error=FAILED)
    stop(claude)
    later = session("claude-code", "s-3")
    later("UserPromptSubmit", prompt=f"Fix {name}.")
    later.call("Bash", LS, result=PASSED)
    stop(later)
    assert graded(ws)[-1] == ("s-3", f"Fix {name}.", False)


def test_what_another_session_asks_makes_no_rule_apply_here(claude, codex, ws):
    claude("UserPromptSubmit", prompt="When you write about cars, never mention Elon Musk.")
    claude("UserPromptSubmit", prompt="Write about trains.")
    codex("UserPromptSubmit", prompt="Write about cars.")
    with ws.engine.answering(None):
        answer = claude(
            "Stop", stop_hook_active=False, last_assistant_message="Elon Musk never built trains."
        )
    assert answer == {}


def test_after_a_restart_of_the_server_a_turn_is_still_graded_by_its_own_prompt(
    claude, codex, ws, monkeypatch
):
    claude("UserPromptSubmit", prompt="Format the refunds.")
    codex("UserPromptSubmit", prompt="Fix the failing test.")
    monkeypatch.setattr("agentx.hosts.served.serving.SESSIONS", type(_sessions())())
    claude.call("Bash", LS, result=PASSED)
    stop(claude)
    assert graded(ws) == [("s-1", "Format the refunds.", True)]


def _sessions():
    from agentx.hosts.served.serving import SESSIONS

    return SESSIONS
