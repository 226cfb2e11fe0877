"""What happens at each moment of a host's session; shown with the payloads of Claude Code."""

import json
import subprocess
from pathlib import Path

import pytest

from agentx.core.beside import checks_file
from agentx.hosts.action import HostAction
from agentx.hosts.away import check
from agentx.hosts.claude_code import ClaudeCode
from agentx.hosts.served.responses import SentAction
from agentx.hosts.served.serving import respond
from agentx.policy.hook_checks import compiled
from agentx.storage.events.types import (
    AgentMessageSent,
    ArtifactChanged,
    ContextProvided,
    TaskGraded,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.synthesis.memory.checks import CommandCheck, FollowUpCheck, PathCheck, ProgramCheck
from tests.agentx.hosts.conftest import context, decision

PYTEST = {"command": "python -m pytest -q"}
FAILED = "Exit code 1\nFAILED tests/test_pay.py::test_pay - assert 1 == 2\n1 failed in 0.10s"
PASSED = {"stdout": "1 passed in 0.10s", "stderr": "", "interrupted": False}


def facts(ws, kind):
    return [event for event in ws.events() if isinstance(event.data, kind)]


def test_a_prompt_is_the_users_message_and_its_rule_is_captured(session, ws):
    claude = session()
    claude("UserPromptSubmit", prompt="From now on, use tabs.")
    (said,) = facts(ws, UserMessageSent)
    assert (said.actor, said.run) == ("user", "s-1")
    (rule,) = ws.memory("constraint")
    assert rule.text == "From now on, use tabs."
    assert rule.trust == "user"


def test_a_session_begins_with_what_its_agent_needs(session):
    claude = session()
    claude("UserPromptSubmit", prompt="From now on, use tabs.")
    for source in ("startup", "resume", "clear", "compact"):
        assert "From now on, use tabs." in context(claude("SessionStart", source=source))


def test_where_the_start_could_not_be_told_the_first_prompt_tells_it(session):
    session(session="earlier")("UserPromptSubmit", prompt="From now on, use tabs.")
    late = session(session="later")
    assert "From now on, use tabs." in context(late("UserPromptSubmit", prompt="Format the payments."))
    assert "From now on, use tabs." not in context(late("UserPromptSubmit", prompt="Format the refunds."))


def test_a_prompt_gets_what_it_calls_for_and_nothing_twice(session):
    claude = session()
    claude("SessionStart", source="startup")
    claude("UserPromptSubmit", prompt="In src/, never use eval(). Fix the totals.")
    shown = context(claude("UserPromptSubmit", prompt="Look at the totals in src/ again."))
    assert "never use eval()" in shown
    assert context(claude("UserPromptSubmit", prompt="And the totals in src/?")) == ""


def test_a_call_against_a_rule_is_denied_with_the_rule_and_recorded(session, ws, project):
    claude = session()
    claude("UserPromptSubmit", prompt="Never create a requirements.txt file.")
    answer = claude.call("Write", {"file_path": str(project / "requirements.txt"), "content": "flask\n"})
    denied, why = decision(answer)
    assert denied == "deny"
    assert "Never create a requirements.txt file." in why
    (call,) = facts(ws, ToolCallExecuted)
    assert (call.data.status, call.actor, call.run) == ("DENIED", "agent:claude-code", "s-1")
    assert call.data.denied_by


def test_a_command_against_a_rule_is_denied_with_the_one_that_is_allowed(session):
    claude = session()
    claude("UserPromptSubmit", prompt="Never run git push --force.")
    denied, why = decision(claude.call("Bash", {"command": "git push --force origin main"}))
    assert denied == "deny"
    assert "git push --force" in why
    assert decision(claude.call("Bash", {"command": "git push origin main"}, result=PASSED))[0] == ""


def test_an_edit_is_an_artifact_by_its_agent(session, ws, project):
    claude = session()
    claude("UserPromptSubmit", prompt="Double it.")
    path = project / "src" / "pay.py"
    edit = {"file_path": str(path), "old_string": "return 1", "new_string": "return 2"}
    claude.call("Edit", edit, do=lambda: path.write_text("def pay():\n    return 2\n"))
    (call,) = facts(ws, ToolCallExecuted)
    assert [change.path for change in call.data.changes] == ["src/pay.py"]
    assert call.actor == "agent:claude-code"
    assert ws.engine.git.repo.read_blob(call.data.changes[0].after) == b"def pay():\n    return 2\n"
    assert "old" not in call.data.arguments


def test_a_patch_is_an_edit_of_the_files_that_it_names(session, ws, project):
    codex = session("codex")
    codex("UserPromptSubmit", prompt="Never create a requirements.txt file. Double it.")
    patch = "*** Begin Patch\n*** Add File: {}\n+flask\n*** End Patch"
    named = {"tool_name": "apply_patch", "tool_use_id": "call_1"}
    denied, _ = decision(
        codex("PreToolUse", **named, tool_input={"command": patch.format("requirements.txt")})
    )
    assert denied == "deny"
    given = {**named, "tool_input": {"command": patch.format("src/rate.txt")}}
    assert decision(codex("PreToolUse", **given))[0] == ""
    (project / "src" / "rate.txt").write_text("flask\n")
    codex("PostToolUse", **given, tool_response="Success.")
    made = facts(ws, ToolCallExecuted)[-1]
    assert [change.path for change in made.data.changes] == ["src/rate.txt"]
    assert made.actor == "agent:codex"


def test_rules_hold_in_a_project_that_shares_the_memory_and_its_files_are_no_artifacts(session, ws, project):
    other = project.parent / "second"
    (other / "src").mkdir(parents=True)
    claude = session()
    claude("UserPromptSubmit", prompt="Never create a requirements.txt file. Double it.")
    claude.base["cwd"] = str(other)
    claude.sharing = str(other)
    denied, _ = decision(claude.call("Write", {"file_path": f"{other}/requirements.txt", "content": "x"}))
    assert denied == "deny"
    denied, _ = decision(claude.call("Bash", {"command": "echo flask > requirements.txt"}))
    assert denied == "deny"
    path = other / "src" / "pay.py"
    claude.call("Write", {"file_path": str(path), "content": "x"}, do=lambda: path.write_text("x"))
    assert facts(ws, ToolCallExecuted)[-1].data.changes == ()


def test_what_the_user_changed_before_is_not_the_agents(session, ws, project):
    claude = session()
    path = project / "src" / "pay.py"
    path.write_text("def pay():\n    return 5\n")
    edit = {"file_path": str(path), "old_string": "return 5", "new_string": "return 6"}
    claude.call("Edit", edit, do=lambda: path.write_text("def pay():\n    return 6\n"))
    own = facts(ws, ArtifactChanged)[-1].data.changes[0]
    made = facts(ws, ToolCallExecuted)[-1].data.changes[0]
    assert own.after == made.before
    assert ws.engine.git.repo.read_blob(made.before) == b"def pay():\n    return 5\n"


def test_files_that_a_command_changed_are_recorded_after_it(session, ws, project):
    claude = session()
    command = {"command": "echo 3 > src/rate.txt"}
    claude.call("Bash", command, result=PASSED, do=lambda: (project / "src" / "rate.txt").write_text("3\n"))
    (changed,) = facts(ws, ArtifactChanged)[1:]  # the first is the project itself
    assert [change.path for change in changed.data.changes] == ["src/rate.txt"]


def test_what_a_command_changed_beyond_its_words_is_recorded_at_the_end_of_the_turn(session, ws, project):
    claude = session()
    claude("UserPromptSubmit", prompt="Generate the tables.")
    made = project / "src" / "tables.txt"
    claude.call("Bash", {"command": "make tables"}, result=PASSED, do=lambda: made.write_text("1\n"))
    assert len(facts(ws, ArtifactChanged)) == 1  # the project itself
    claude("Stop", stop_hook_active=False, last_assistant_message="They are there.")
    assert [change.path for change in facts(ws, ArtifactChanged)[-1].data.changes] == ["src/tables.txt"]


def test_what_a_hook_said_is_not_the_users_when_the_host_sends_it_on(session, ws):
    gemini = session("gemini-cli")
    gemini("BeforeAgent", prompt="Never mention Elon Musk. Draft the outlook.")
    answer = gemini("AfterAgent", prompt_response="Elon Musk will decide.", stop_hook_active=False)
    assert answer["decision"] == "deny"
    gemini("BeforeAgent", prompt=answer["reason"])
    assert len(facts(ws, UserMessageSent)) == 1


def test_a_failing_test_stays_in_front_until_it_passes(session):
    claude = session()
    claude("SessionStart", source="startup")
    claude("UserPromptSubmit", prompt="Fix the payments.")
    claude.call("Bash", PYTEST, error=FAILED)
    for prompt in ("Go on.", "And now?", "Format the refunds."):
        assert "tests/test_pay.py::test_pay" in context(claude("UserPromptSubmit", prompt=prompt))
    assert "tests/test_pay.py::test_pay" in context(claude("SessionStart", source="compact"))
    claude.call("Bash", PYTEST, result=PASSED)
    assert "test_pay" not in context(claude("UserPromptSubmit", prompt="Go on."))


def refuse(project, call, words):
    """Write what Claude Code's transcript has of a refused call."""
    text = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
        "new_string was NOT written to the file). To tell you how to proceed, the user said:\n" + words
    )
    block = {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": text}
    record = {"type": "user", "message": {"role": "user", "content": [block]}}
    with (project.parent / "log.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


def test_a_call_that_the_user_refused_is_asked_about_when_it_comes_again(session, ws, project):
    claude = session()
    claude("UserPromptSubmit", prompt="Clean up.")
    removal = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}, "tool_use_id": "toolu_9"}
    assert decision(claude("PreToolUse", **removal))[0] == ""
    refuse(project, "toolu_9", "not now, somebody reads it")
    claude("UserPromptSubmit", prompt="Format the refunds instead.")
    refused = facts(ws, ToolCallExecuted)[-1].data
    assert (refused.status, refused.arguments["command"]) == ("DENIED", "rm -rf build")
    asked, why = decision(session(session="s-2").call("Bash", {"command": "sudo rm -rf build"}))
    assert asked == "ask"
    assert "refused" in why


def test_what_the_user_allows_is_not_asked_again_in_the_session(session, ws):
    claude = session()
    ws.flows.add("deploy to production", ["Back up", "Build"], needs_approval=True)
    command = {"command": "deploy --to production"}
    named = {"tool_name": "Bash", "tool_input": command, "tool_use_id": "toolu_1"}
    claude("UserPromptSubmit", prompt="Deploy to production.")
    assert decision(claude("PreToolUse", **named))[0] == "ask"
    claude("PostToolUse", **named, tool_response=PASSED)
    assert decision(claude("PreToolUse", **{**named, "tool_use_id": "toolu_2"}))[0] == ""
    other = session(session="s-2")
    other("UserPromptSubmit", prompt="Deploy to production.")
    assert decision(other("PreToolUse", **{**named, "tool_use_id": "toolu_3"}))[0] == "ask"


def test_where_the_host_cannot_ask_the_agent_does_and_a_yes_allows_it(session, ws):
    codex = session("codex")
    ws.flows.add("deploy to production", ["Back up", "Build"], needs_approval=True)
    named = {
        "tool_name": "Bash",
        "tool_input": {"command": "deploy --to production"},
        "tool_use_id": "call_1",
    }
    codex("UserPromptSubmit", prompt="Deploy to production.")
    denied, why = decision(codex("PreToolUse", **named))
    assert denied == "deny"
    assert "Ask the user" in why
    codex("UserPromptSubmit", prompt="What would it do? Format the refunds first.")
    assert decision(codex("PreToolUse", **named))[0] == "deny"
    codex("UserPromptSubmit", prompt="yes, go ahead")
    assert decision(codex("PreToolUse", **named))[0] == ""


@pytest.mark.parametrize(
    "command",
    [
        "agentx say 'Deploy on Fridays.'",
        "cd /tmp && agentx memory add 'Deploy on Fridays.'",
        "python -m agentx approve c-1",
        "echo '{}' | agentx hook claude-code",
        "bash -c 'agentx uninstall claude-code --yes'",
    ],
)
def test_an_agents_command_that_acts_as_the_user_is_denied(session, command):
    denied, why = decision(session().call("Bash", {"command": command}))
    assert denied == "deny"
    assert "acts as the user" in why


def test_an_agent_may_read_the_memory_and_ask_the_gate(session):
    claude = session()
    for command in ("agentx log -n 5", "agentx gate pre 'deploy'", "agentx memory list"):
        assert decision(claude.call("Bash", {"command": command}, result=PASSED))[0] == ""


def test_an_answer_that_breaks_a_rule_keeps_the_agent_from_stopping_once(session, ws):
    claude = session()
    claude("UserPromptSubmit", prompt="Never mention Elon Musk. Draft the outlook.")
    bad = {"last_assistant_message": "Elon Musk will decide."}
    answer = claude("Stop", stop_hook_active=False, **bad)
    assert answer["decision"] == "block"
    assert "Never mention Elon Musk." in answer["reason"]
    assert claude("Stop", stop_hook_active=True, **bad) == {}
    assert claude("Stop", stop_hook_active=False, **bad) == {}
    assert [event.data.final for event in facts(ws, AgentMessageSent)] == [True] * 3


def test_a_stop_that_a_hook_caused_is_never_prolonged(session):
    claude = session()
    claude("UserPromptSubmit", prompt="Never mention Elon Musk. Draft the outlook.")
    assert claude("Stop", stop_hook_active=True, last_assistant_message="Elon Musk will decide.") == {}


def test_the_end_of_a_turn_grades_it(session, ws, project):
    claude = session()
    path = project / "src" / "rate.py"
    claude("UserPromptSubmit", prompt="Add the rate.")
    claude.call(
        "Write", {"file_path": str(path), "content": "r = 1\n"}, do=lambda: path.write_text("r = 1\n")
    )
    claude("Stop", stop_hook_active=False, last_assistant_message="The rate is there.")
    assert [event.data.passed for event in facts(ws, TaskGraded)] == [True]
    claude("UserPromptSubmit", prompt="Test it.")
    claude.call("Bash", PYTEST, error=FAILED)
    claude("Stop", stop_hook_active=False, last_assistant_message="One test fails.")
    assert [event.data.passed for event in facts(ws, TaskGraded)] == [True, False]


def test_sessions_and_subagents_keep_their_own_ids_in_one_workspace(session, ws):
    first, second = session(session="s-1"), session(session="s-2")
    first("UserPromptSubmit", prompt="Fix the payments.")
    second("UserPromptSubmit", prompt="Fix the refunds.")
    first(
        "PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="a", tool_response=PASSED
    )
    first(
        "PostToolUse",
        agent_id="ag-1",
        tool_name="Bash",
        tool_input={"command": "ls"},
        tool_use_id="b",
        tool_response=PASSED,
    )
    second("SubagentStop", agent_id="ag-2", last_assistant_message="Found nothing.")
    runs = [event.run for event in ws.events() if event.actor != "engine:scribe" and event.run]
    assert set(runs) == {"s-1", "s-2", "s-1/ag-1", "s-2/ag-2"}


def test_compaction_is_recorded_and_everything_is_committed_before_it(session, ws):
    claude = session()
    claude("UserPromptSubmit", prompt="Fix the payments.")
    claude("PreCompact", trigger="auto")
    assert not ws.engine.git.pending
    assert claude("PostCompact", trigger="auto") == {}
    claude("SessionStart", source="compact")
    claude("SessionEnd", reason="logout")
    lines = [event.describe() for event in ws.events() if event.type == "SessionNoted"]
    assert lines == [
        "Session s-1 of claude-code is about to be compacted (auto)",
        "Session s-1 of claude-code was compacted (auto)",
        "Session s-1 of claude-code starts (compact)",
        "Session s-1 of claude-code ends (logout) after 0 calls",
    ]


def test_what_was_recalled_for_a_prompt_is_on_record(session, ws):
    claude = session()
    claude("SessionStart", source="startup")
    claude("UserPromptSubmit", prompt="In src/, never use eval(). Fix the totals.")
    claude("UserPromptSubmit", prompt="Look at the totals in src/ again.")
    (shown,) = facts(ws, ContextProvided)
    assert shown.run == "s-1"
    assert shown.data.items == (ws.memory("constraint")[0].id,)


def test_the_same_event_is_recorded_once(ws, project):
    said = SentAction(host="claude-code", moment="prompt", session="s", text="Use tabs.", cwd=str(project))
    for _ in range(2):
        respond(ws, said, "one-key", {"AGENTX_STATE_DIR": str(project.parent / "st")})
    assert len(facts(ws, UserMessageSent)) == 1


def test_a_replay_of_the_history_gives_the_same_state(session, ws, project):
    claude = session()
    claude("SessionStart", source="startup")
    claude("UserPromptSubmit", prompt="Never create a requirements.txt file. Fix the payments.")
    claude.call("Write", {"file_path": str(project / "requirements.txt"), "content": "x"})
    claude.call("Bash", PYTEST, error=FAILED)
    claude("Stop", stop_hook_active=False, last_assistant_message="One test fails.")
    claude("SessionEnd", reason="logout")
    assert ws.rebuild().state_digest == ws.state.digest


def test_the_projects_own_repository_is_not_written_and_does_not_see_the_workspace(session, ws, project):
    def repository():
        return {path: path.read_bytes() for path in sorted((project / ".git").rglob("*")) if path.is_file()}

    before = repository()
    claude = session()
    claude("UserPromptSubmit", prompt="Never create a requirements.txt file. Fix the payments.")
    claude.call("Bash", PYTEST, error=FAILED)
    claude("SessionEnd", reason="logout")
    assert repository() == before
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=project, check=True, capture_output=True, text=True
    )
    assert status.stdout.split("\n") == ["?? .gitignore", "?? src/", ""]


def test_an_agent_that_can_settle_is_asked_once_a_session(session, ws):
    claude = session()
    claude.host = SettlingHost()
    claude("UserPromptSubmit", prompt="We're on pnpm here, npm destroys my lockfile.")
    assert [item.status for item in ws.memory("constraint", status="candidate")] == ["candidate"]
    answer = claude("Stop", stop_hook_active=False, last_assistant_message="Noted.")
    assert answer["decision"] == "block"
    assert "`settle`" in answer["reason"]
    assert "pnpm" in answer["reason"]
    assert claude("Stop", stop_hook_active=True, last_assistant_message="Settled.") == {}
    claude("UserPromptSubmit", prompt="Go on.")
    assert claude("Stop", stop_hook_active=False, last_assistant_message="Done.") == {}


class SettlingHost(ClaudeCode):
    """Claude Code whose hooks were installed with ``--settle``."""

    def read(self, payload, environ):
        action = super().read(payload, environ)
        action.settles = True
        return action


def test_a_command_that_a_rule_demands_at_the_end_is_demanded_and_no_program_is_run(session, ws, project):
    claude = session()
    ws.remember(
        "constraint", "Run make generate after changes.", checks=[FollowUpCheck(command="make generate")]
    )
    ws.remember("constraint", "It must build.", checks=[ProgramCheck(command="touch built")])
    claude("UserPromptSubmit", prompt="Add the rate.")
    path = project / "src" / "rate.py"
    claude.call(
        "Write", {"file_path": str(path), "content": "r = 1\n"}, do=lambda: path.write_text("r = 1\n")
    )
    answer = claude("Stop", stop_hook_active=False, last_assistant_message="The rate is there.")
    assert answer["decision"] == "block"
    assert "make generate" in answer["reason"]
    assert not (project / "built").exists()
    claude.call("Bash", {"command": "make generate"}, result=PASSED)
    assert claude("Stop", stop_hook_active=True, last_assistant_message="Generated.") == {}


def test_an_answer_that_the_host_reports_before_the_stop_is_checked(session):
    cursor = session("cursor")
    cursor("beforeSubmitPrompt", prompt="Never mention Elon Musk. Draft the outlook.")
    cursor("afterAgentResponse", text="Elon Musk will decide.")
    answer = cursor("stop", status="completed", loop_count=0)
    assert "Never mention Elon Musk." in answer["followup_message"]
    assert cursor("stop", status="completed", loop_count=1) == {}


def test_the_compiled_checks_follow_the_memory(session, ws, project):
    claude = session()
    claude("UserPromptSubmit", prompt="Never create a requirements.txt file.")
    place = Path(checks_file(str(ws.root), str(ws.settings.state_dir)))

    def decisions(path):
        written = HostAction(kind="write", cwd=str(project), arguments={"path": path, "content": "x"})
        return check(written, json.loads(place.read_bytes())).decision

    assert decisions("requirements.txt") == decisions("api/Requirements.txt") == "deny"
    ws.remember("constraint", "Never touch the legacy folder.", checks=[PathCheck(paths=("legacy/**",))])
    ws.flush()
    assert decisions("legacy/a.py") == "deny"
    for item in ws.memory("constraint"):
        ws.retire(item.id)
    ws.flush()
    assert decisions("legacy/a.py") == decisions("requirements.txt") == ""


@pytest.mark.parametrize(
    ("command", "decided"),
    [
        ("git push --force", "deny"),
        ("cd api && sudo git push -uf origin main", "deny"),
        ("GIT_TRACE=1 git push origin main --force; ls", "deny"),
        ("git push", ""),
        ("echo git push --force", ""),
        ("git pull --force", ""),
        ("git push 'unclosed", ""),
    ],
)
def test_a_command_is_checked_without_the_engine(command, decided, ws):
    rule = CommandCheck(programs=("git push",), forbidden_flags=("--force", "-f"))
    ws.remember("constraint", "Never force a push.", checks=[rule])
    found = compiled(ws.engine.checked(), str(ws.artifacts))
    assert check(HostAction(kind="shell", arguments={"command": command}), found).decision == decided
