"""A whole session of Claude Code through the real entry point, from install to uninstall, in a project of Git."""

import json
import subprocess
import sys

import pytest

from tests.agentx.hosts.transcripts import payloads

AGENTX = [sys.executable, "-P", "-m", "agentx"]
RULE = "Never create a requirements.txt file; use pyproject.toml instead."
FAILED = "Exit code 1\nFAILED tests/test_pay.py::test_pay - assert 1 == 2\n1 failed in 0.10s"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\nnot over the others' work"
)


class Log:
    """Writes a transcript as Claude Code 2.1 does."""

    def __init__(self, cwd):
        self.base = {"sessionId": "5e55-10", "cwd": str(cwd), "version": "2.1.37"}
        self.records = []
        self.calls = 0

    def user(self, content, **more):
        message = {"role": "user", "content": content}
        self.records.append({**self.base, "type": "user", "message": message, **more})

    def agent(self, text):
        message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
        self.records.append({**self.base, "type": "assistant", "message": message})

    def call(self, tool, given, result="", *, error=False):
        self.calls += 1
        use = {"type": "tool_use", "id": f"toolu_{self.calls}", "name": tool, "input": given}
        self.records.append(
            {**self.base, "type": "assistant", "message": {"role": "assistant", "content": [use]}}
        )
        block = {"type": "tool_result", "tool_use_id": use["id"], "content": result, "is_error": error}
        self.user([block], toolUseResult={"stdout": result, "stderr": "", "interrupted": False})

    def compacted(self):
        self.records.append({**self.base, "type": "system", "subtype": "compact_boundary"})


def story(cwd):
    log = Log(cwd)
    log.user(f"{RULE} Fix the payments.")
    log.call("Bash", {"command": "python -m pytest -q"}, FAILED, error=True)
    log.call("Write", {"file_path": f"{cwd}/requirements.txt", "content": "flask\n"}, "written")
    log.call("Bash", {"command": "git push --force origin main"}, REFUSED, error=True)
    log.agent("I did not push.")
    log.user("Go on with the payments.")
    log.call("Edit", {"file_path": f"{cwd}/pay.py", "old_string": "1", "new_string": "2"}, "edited")
    log.compacted()
    log.user("And now?")
    log.call("Bash", {"command": "python -m pytest -q"}, "1 passed in 0.10s")
    log.call("Bash", {"command": "sudo git push -f origin main"}, "pushed")
    log.agent("The test passes.")
    log.user("Thanks. Format it.")
    log.agent("It is formatted.")
    return log.records


@pytest.fixture
def replay(tmp_path, place):
    """Replay a transcript; returns what each hook answered, with its payload."""

    def do(project, records):
        transcript = tmp_path / "transcript.jsonl"
        answers, written = [], 0
        for payload, seen in payloads(transcript, records, str(project)):
            with transcript.open("a") as file:
                file.writelines(json.dumps(one) + "\n" for one in seen[written:])
            written = len(seen)
            done = subprocess.run(
                [*AGENTX, "hook", "claude-code"],
                input=json.dumps(payload).encode(),
                env={**place, "AGENTX_HOOK_WAIT_S": "30"},
                cwd=project,
                capture_output=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, b"")
            answers.append((payload, json.loads(done.stdout) if done.stdout else {}))
        return answers

    return do


def test_a_new_users_first_session(replay, server, place, tmp_path):
    project = tmp_path / "my project"
    project.mkdir()
    (project / "pay.py").write_text("pay = 1\n")
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    before = {path: path.read_bytes() for path in sorted((project / ".git").rglob("*")) if path.is_file()}

    def agentx(*words):
        done = subprocess.run(
            [*AGENTX, *words], env=place, cwd=project, capture_output=True, text=True, check=True
        )
        return done.stdout

    agentx("install", "claude-code", "--yes")
    agentx("hook", "--warm", str(project / ".agentx-project" / "workspace"))
    answers = replay(project, story(project))

    def told(event, number):
        found = [answer for payload, answer in answers if payload["hook_event_name"] == event][number]
        return found.get("hookSpecificOutput", {})

    calls = [
        answer.get("hookSpecificOutput", {})
        for payload, answer in answers
        if payload["hook_event_name"] == "PreToolUse"
    ]
    assert calls[1]["permissionDecision"] == "deny"  # against the rule
    assert RULE in calls[1]["permissionDecisionReason"]
    assert "permissionDecision" not in calls[2]  # the user refuses it
    assert calls[5]["permissionDecision"] == "ask"  # what they refused, in other words
    assert "not over the others' work" in calls[5]["permissionDecisionReason"]
    assert "tests/test_pay.py::test_pay" in told("UserPromptSubmit", 1)["additionalContext"]
    recovery = told("SessionStart", 1)["additionalContext"]
    assert RULE in recovery
    assert "tests/test_pay.py::test_pay" in recovery
    assert "test_pay" not in told("UserPromptSubmit", 3).get("additionalContext", "")
    assert RULE in agentx("memory", "list", "--json")
    agentx("verify")
    agentx("uninstall", "claude-code", "--yes")
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=project, capture_output=True, text=True, check=True
    )
    assert status.stdout == "?? pay.py\n"
    assert {
        path: path.read_bytes() for path in sorted((project / ".git").rglob("*")) if path.is_file()
    } == before
