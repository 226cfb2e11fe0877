"""Modes of checks in our own loop: corrected writes, answers, and commands at the end of a run."""

import shutil

import pytest

from agentx import Workspace
from agentx.agents.loop import run_task
from agentx.storage.events.types import AgentMessageSent, ToolCallExecuted
from agentx.synthesis.memory.checks import ContentCheck, FollowUpCheck, ProgramCheck, SizeCheck, TextCheck

HEADER = ContentCheck(header="Copyright ACME", paths=("src/**",), mode="fix")


def events(ws, *types):
    return [event.data for event in ws.events(after=0) if isinstance(event.data, types)]


def written(ws, path):
    return (ws.artifacts / path).read_text(encoding="utf-8")


@pytest.fixture
def ruled(ws):
    def add(check, text="The rule."):
        return ws.remember("constraint", text, checks=[check]).id

    return add


def test_a_write_is_corrected_and_the_agent_is_told(ws, ruled):
    name = ruled(HEADER)
    result = ws.tools.call("write_file", {"path": "src/a.py", "content": "x = 1\n"})
    assert result.status == "SUCCEEDED"
    assert written(ws, "src/a.py") == "# Copyright ACME\n\nx = 1\n"
    assert f"[Corrected by rule {name}: src/a.py does not begin with “Copyright ACME”.]" in result.output
    (call,) = events(ws, ToolCallExecuted)
    assert f"[Corrected by rule {name}" in call.noted
    assert (call.kept, call.broke) == ((name,), ())


def test_two_corrections_of_one_file_are_both_made(ws, ruled):
    ruled(HEADER)
    ruled(ContentCheck(header="SPDX: MIT", paths=("src/**",), mode="fix"))
    assert ws.tools.call("write_file", {"path": "src/a.py", "content": "x = 1\n"}).status == "SUCCEEDED"
    assert "# Copyright ACME\n" in written(ws, "src/a.py")
    assert "# SPDX: MIT\n" in written(ws, "src/a.py")


def test_what_has_no_mechanical_correction_is_denied(ws, ruled):
    name = ruled(SizeCheck(at_most=1, mode="fix"))
    result = ws.tools.call("write_file", {"path": "a.py", "content": "x = 1\ny = 2\n"})
    assert (result.status, result.denied_by) == ("DENIED", (name,))


@pytest.mark.parametrize("mode", ["deny", "fix", "ask"])
def test_an_answer_goes_back_once(ws, ruled, script, mode):
    name = ruled(TextCheck(phrases=("synergy",), mode=mode))
    result = run_task(ws, "Say it.", script("Synergy!", {"expect": ["The rule."], "answer": "Together."}))
    assert (result.answer, result.violations) == ("Together.", ())
    (sent_back,) = events(ws, ToolCallExecuted)
    assert (sent_back.status, sent_back.denied_by) == ("DENIED", (name,))
    assert events(ws, AgentMessageSent)[-1].kept == (name,)


def test_a_warning_is_told_with_the_answer_and_an_observation_is_recorded(ws, ruled, script):
    warns = ruled(TextCheck(phrases=("synergy",), mode="warn"))
    observes = ruled(TextCheck(phrases=("leverage",), mode="observe"))
    result = run_task(ws, "Say it.", script("Synergy, and leverage."))
    assert (result.status, result.answer) == ("COMPLETED", "Synergy, and leverage.")
    assert f"It breaks {warns}: " in result.reason
    assert observes not in result.reason
    assert set(events(ws, AgentMessageSent)[-1].broke) == {warns, observes}


WRITE = ("write_file", {"path": "api/a.proto", "content": "message A {}\n"})
RUN = ("run_command", {"command": "make generate"})
GENERATE = FollowUpCheck(command="make generate", paths=("api/**",))


def test_an_answer_before_the_follow_up_goes_back(ws, ruled, script):
    name = ruled(GENERATE, "Run make generate after changing api.")
    model = script(WRITE, "Done.", {"expect": ["`make generate` was not run after"], "answer": "I cannot."})
    result = run_task(ws, "Add a message.", model)
    assert [one.item_id for one in result.violations] == [name]
    assert "sent back once and still breaks" in result.reason
    assert events(ws, AgentMessageSent)[-1].broke == (name,)


def test_a_run_that_does_not_change_the_files_needs_no_follow_up(ws, ruled, script):
    ruled(GENERATE)
    other = ("write_file", {"path": "notes.md", "content": "x\n"})
    result = run_task(ws, "Add a note.", script(other, "Done."))
    assert (result.violations, result.reason) == ((), "")


@pytest.mark.parametrize(
    ("command", "passes"), [("test -f api/a.proto", True), ("test -f api/b.proto", False)]
)
def test_a_command_must_pass_at_the_end(ws, ruled, script, command, passes):
    name = ruled(ProgramCheck(command=command, paths=("api/**",)))
    result = run_task(ws, "Add a message.", script(WRITE, "Done.", *["Done again."] * (not passes)))
    message = events(ws, AgentMessageSent)[-1]
    assert (message.kept, message.broke) == (((name,), ()) if passes else ((), (name,)))
    assert ("ended with exit status 1" in result.reason) is not passes


def test_the_follow_up_after_being_sent_back_is_enough(ws, ruled, script):
    name = ruled(FollowUpCheck(command="check_document", paths=("api/**",)))
    follow = ("check_document", {"path": "api/a.md"})
    write = ("write_file", {"path": "api/a.md", "content": "# Interface\n\nThe interface.\n"})
    result = run_task(ws, "Describe it.", script(write, "Done.", follow, "Done, and checked."))
    assert (result.answer, result.violations) == ("Done, and checked.", ())
    assert events(ws, AgentMessageSent)[-1].kept == (name,)


def test_in_a_workspace_that_is_not_trusted_no_command_of_a_rule_runs(ws, ruled, script, tmp_path):
    ruled(ProgramCheck(command="touch ran"))
    ws.flush()
    copy = shutil.copytree(ws.root, tmp_path / "copy", symlinks=True)
    with Workspace.open(copy) as other:
        result = run_task(other, "Add a message.", script(WRITE, "Done."))
    assert (result.status, result.violations) == ("COMPLETED", ())
    assert "`touch ran` could not be checked" in result.reason
