"""Gates, checks, hot issues and capture hold for every host, through its own payloads and answers."""

import json

import msgspec
import pytest

from agentx.hosts.action import HostReply
from agentx.hosts.host import HOSTS, load
from agentx.hosts.served.responses import SentAction
from agentx.hosts.served.serving import respond
from agentx.storage.events.types import ToolCallExecuted, UserMessageSent

EVENTS = {
    "claude-code": ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
    "codex": ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
    "gemini-cli": ("BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"),
    "cursor": ("beforeSubmitPrompt", "beforeShellExecution", "postToolUse", "afterAgentResponse"),
    "opencode": ("chat.message", "tool.execute.before", "tool.execute.after", "session.idle"),
}
SHELL = {
    "claude-code": "Bash",
    "codex": "Bash",
    "gemini-cli": "run_shell_command",
    "cursor": "Shell",
    "opencode": "bash",
}
FAILURE = "FAILED tests/test_pay.py::test_pay - assert 1 == 2\n1 failed in 0.10s"
FAILED = {
    "claude-code": {"error": f"Exit code 1\n{FAILURE}"},
    "codex": {"tool_response": json.dumps({"output": FAILURE, "metadata": {"exit_code": 1}})},
    "gemini-cli": {"tool_response": {"llmContent": f"Output: {FAILURE}\nExit Code: 1"}},
    "cursor": {"tool_output": json.dumps({"exitCode": 1, "stdout": FAILURE})},
    "opencode": {"tool_response": FAILURE, "metadata": {"exit": 1}},
}


@pytest.mark.parametrize("host", HOSTS)
def test_rules_refuse_failures_stand_and_answers_are_kept(host, ws, project):
    table, number = load(host), iter(range(100))
    prompt, before, after, answer = EVENTS[host]

    def hook(event, **fields):
        payload = {
            "hook_event_name": event,
            "session_id": "s",
            "conversation_id": "s",
            "cwd": str(project),
            **fields,
        }
        action = table.read(payload, {})
        reply = respond(
            ws,
            msgspec.convert(action.as_dict(), SentAction),
            f"k{next(number)}",
            {"AGENTX_STATE_DIR": str(project.parent)},
        )
        return table.write(action, HostReply.of(reply))[0]

    def shell(command):
        return {
            "tool_name": SHELL[host],
            "tool_input": {"command": command},
            "tool_use_id": "t",
            "command": command,
        }

    hook(prompt, prompt="Never run git push --force. Fix the payments.")
    assert '"deny"' in hook(before, **shell("git push --force"))
    assert '"deny"' not in hook(before, **shell("git status"))
    failing = "PostToolUseFailure" if host == "claude-code" else after
    hook(failing, **shell("python -m pytest -q"), **FAILED[host])
    (issue,) = ws.memory("hot_issue")
    assert "tests/test_pay.py::test_pay" in issue.text
    told = hook(prompt, prompt="Go on.") + hook(after, **shell("git status"))
    assert "tests/test_pay.py::test_pay" in told
    hook(answer, last_assistant_message="Done.", prompt_response="Done.", text="Done.")
    kinds = [type(event.data).__name__ for event in ws.events() if event.run == "s"]
    assert kinds.count("AgentMessageSent") == 1
    said = [event for event in ws.events() if isinstance(event.data, UserMessageSent)]
    assert {event.actor for event in said} == {"user"}
    calls = [event for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert {event.actor for event in calls} == {f"agent:{host}"}
    assert {event.data.tool for event in calls} == {"run_command"}
