"""Hooks of other coding agents, called with what the real ones wrote: install, rules, denials, checks, compaction, removal."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.abilities.conftest import OLD_PROJECT, CommandLine, Hooks

RULE = "Never create a CHANGES.txt file."
PUSH = "Never run git push here."
PROMPT = f"{RULE} {PUSH} Now give parcels to zone 3 a discount of one euro."
OTHERS_PROMPT = "Never touch pyproject.toml. Never run ruff here."
FAILED = "FAILED tests/test_postage.py::test_heavy - assert 610 == 630\n1 failed, 2 passed in 0.04s\n"
PASSED = "...                                                  [100%]\n3 passed in 0.04s\n"
RUN_TESTS = "python -m pytest -q"
HOSTS = sorted(OLD_PROJECT)


@dataclass
class Words:
    """The names of a host's payloads, and what its fields are called."""

    prompt: str
    before_write: str
    before_shell: str
    after_shell: str
    start: str
    stop: str
    answer: str
    end: str | None = "SessionEnd"
    before_compaction: str | None = "PreCompact-manual"
    after_compaction: str = "SessionStart-compact"
    result: Callable[[str, int], dict[str, Any]] = field(default=lambda text, code: {"tool_response": text})


def gemini_result(text: str, code: int) -> dict[str, Any]:
    """What Gemini CLI says of a command that ended."""
    told = f"Output: {text}\nExit Code: {code}\nProcess Group PGID: 2101\n"
    return {"tool_response": {"llmContent": told, "returnDisplay": text}}


WORDS = {
    "claude-code": Words(
        "UserPromptSubmit",
        "PreToolUse-Write",
        "PreToolUse-Bash",
        "PostToolUse-Bash",
        "SessionStart-startup",
        "Stop",
        "last_assistant_message",
        result=lambda text, code: {"tool_response": {"stdout": text, "stderr": "", "interrupted": False}},
    ),
    "codex": Words(
        "UserPromptSubmit",
        "PreToolUse-apply_patch",
        "PreToolUse-Bash",
        "PostToolUse-Bash",
        "SessionStart-startup",
        "Stop",
        "last_assistant_message",
        before_compaction=None,
        after_compaction="SessionStart-resume",
        result=lambda text, code: {
            "tool_response": f"Exit code: {code}\nWall time: 0 seconds\nOutput:\n{text}"
        },
    ),
    "gemini-cli": Words(
        "BeforeAgent",
        "BeforeTool-write_file",
        "BeforeTool-run_shell_command",
        "AfterTool-run_shell_command",
        "SessionStart-startup",
        "AfterAgent",
        "prompt_response",
        before_compaction="PreCompress-manual",
        after_compaction="BeforeAgent",
        result=gemini_result,
    ),
    "opencode": Words(
        "chat.message",
        "tool.execute.before-write",
        "tool.execute.before-bash",
        "tool.execute.after-bash",
        "session.created-startup",
        "session.idle",
        "last_assistant_message",
        end=None,
        before_compaction=None,
        after_compaction="session.created-resume",
        result=lambda text, code: {
            "tool_response": text,
            "metadata": {"output": text, "exit": code, "truncated": False},
        },
    ),
}


class Session:
    """A session of a host in a project, of which each step was done once; its answers, for all tests to read."""

    def __init__(self, host: str, command: CommandLine):
        self.host, self.words, self.command = host, WORDS[host], command
        self.hooks = Hooks(host, command)
        self.id = self.hooks.payload(self.words.start)["session_id"]

    def hook(self, name: str, **changes: Any) -> dict[str, Any]:
        """Call a hook as one of this session."""
        return self.hooks(name, **{"session_id": self.id, **changes})

    def shell(self, command: str) -> dict[str, Any]:
        """The agent is about to run a command."""
        return self.hook(self.words.before_shell, tool_input={"command": command})

    def ran(self, command: str, text: str, code: int) -> dict[str, Any]:
        """The agent ran a command."""
        if self.host == "claude-code" and code:
            error = f"Exit code {code}\n{text}"
            return self.hook("PostToolUseFailure-Bash", tool_input={"command": command}, error=error)
        changes = self.words.result(text, code)
        return self.hook(self.words.after_shell, tool_input={"command": command}, **changes)

    def play(self) -> "Session":
        """From the first prompt to the end."""
        words = self.words
        self.hook(words.start)
        self.prompted = self.hook(words.prompt, prompt=PROMPT)
        self.rules = self.active("constraint")
        self.write = self.hook(words.before_write)
        self.push = self.shell("git push origin main")
        self.listing = self.shell("git status")
        self.ran(RUN_TESTS, FAILED, 1)
        self.failing = self.active("hot_issue")
        self.next_prompt = self.hook(words.prompt, prompt="And what about the weight?")
        if words.before_compaction:
            self.hook(words.before_compaction)
        self.compacted = self.hook(words.after_compaction, prompt="Go on.")
        self.ran(RUN_TESTS, PASSED, 0)
        self.over = self.active("hot_issue")
        self.hook(words.stop, **{words.answer: "The discount is in."})
        if words.end:
            self.hook(words.end)
        self.begun = self.hook(words.start, session_id="another-session")
        self.events = self.command.at(self.memory).events()
        return self

    @property
    def memory(self):
        """The workspace beside the project."""
        return self.command.cwd / ".agentx-project/workspace"

    def active(self, kind: str) -> list[str]:
        """The texts of what is active in memory."""
        return [item["text"] for item in self.command.json("memory", "list", "--kind", kind)]


def make_project(folder):
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    (folder / "postage.py").write_text("def postage():\n    return 1\n")
    return folder


@pytest.fixture(scope="module", params=HOSTS)
def played(request, programs, runtime, tmp_path_factory):
    """A session of each host, played once."""
    folder = make_project(tmp_path_factory.mktemp("hosts") / "parcel")
    command = CommandLine(programs / "agentx", folder, {**runtime, "HOME": str(folder.parent)})
    command("install", request.param, "--yes")
    return Session(request.param, command).play()


def decision(answer: dict[str, Any]) -> tuple[str, str]:
    """What a hook decided about a call, and why, in the form of any host."""
    found = answer.get("hookSpecificOutput", answer)
    decided = found.get("permissionDecision", found.get("decision", ""))
    return decided, found.get("permissionDecisionReason", found.get("reason", ""))


def told(answer: dict[str, Any]) -> str:
    """What a hook tells the agent, in the form of any host."""
    return str(answer.get("hookSpecificOutput", answer).get("additionalContext", answer.get("context", "")))


# --- a session, on each host --------------------------------------------------------------------------


def test_a_prompt_of_the_host_is_the_users_message_and_its_rules_hold(played):
    """A rule in a prompt is the user's and active at once."""
    (said, *_) = [event for event in played.events if event["type"] == "UserMessageSent"]
    assert (said["actor"], said["run"]) == ("user", played.id)
    assert said["data"]["body"]["text"] == PROMPT
    assert {RULE, PUSH} <= set(played.rules)


def test_a_write_against_a_rule_is_denied_before_the_tool_runs(played):
    """A write that breaks a rule is denied with the user's sentence, and the denied call is in the history."""
    denied, why = decision(played.write)
    assert denied == "deny"
    assert RULE in why
    call = next(event for event in played.events if event["type"] == "ToolCallExecuted")
    assert (call["data"]["status"], call["actor"]) == ("DENIED", f"agent:{played.host}")


def test_a_command_against_a_rule_is_denied_before_it_runs(played):
    """A command that breaks a rule is denied with the user's sentence."""
    denied, why = decision(played.push)
    assert denied == "deny"
    assert PUSH in why


def test_a_call_that_breaks_nothing_goes_on(played):
    """A call that breaks no rule is not held up."""
    assert decision(played.listing)[0] in {"", "allow"}


def test_a_failing_test_of_the_host_stays_in_front_of_the_agent(played):
    """A test that failed in the host's shell is a hot issue, and the next prompt brings it to the agent."""
    (issue,) = played.failing
    assert "test_heavy" in issue
    assert "test_heavy" in told(played.next_prompt)


def test_a_failing_test_of_the_host_is_over_when_it_passes(played):
    """The hot issue is over when the same test passed in the host's shell."""
    assert played.over == []


def test_after_a_compaction_or_resume_the_agent_has_rules_and_failing_tests_again(played):
    """What matters is told again after the host cut its conversation."""
    text = told(played.compacted)
    assert RULE in text
    assert "test_heavy" in text


def test_the_answer_of_the_host_is_the_agents_message(played):
    """At a stop the agent's answer is recorded as its own."""
    said = [event for event in played.events if event["type"] == "AgentMessageSent"][-1]
    assert said["data"]["body"]["text"] == "The discount is in."
    assert said["actor"] == f"agent:{played.host}"


def test_a_new_session_begins_with_the_rules(played):
    """The next session of the host is told the rules at its start."""
    text = told(played.begun)
    assert RULE in text
    assert PUSH in text
    assert "test_heavy" not in text


# --- installing ---------------------------------------------------------------------------------------

SETTINGS = {
    "claude-code": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini-cli": ".gemini/settings.json",
    "opencode": "opencode.json",
}


def files(folder):
    """The files of project and home with their bytes, without Git's and the memory."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for top in ("project", "home")
        for path in sorted((folder / top).rglob("*"))
        if path.is_file() and not {".git", ".agentx-project"} & set(path.relative_to(folder).parts)
    }


@pytest.fixture
def project(programs, environ, tmp_path):
    """The command line in a project of Git, with a home of its own and without a server."""
    folder = make_project(tmp_path / "project")
    (tmp_path / "home").mkdir()
    return CommandLine(programs / "agentx", folder, {**environ, "HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("host", SETTINGS)
def test_uninstall_brings_back_the_bytes_from_before(project, host, tmp_path):
    """``install`` keeps what stands in a host's settings, and ``uninstall`` restores them to the byte."""
    text = '{\n    "mine":   {"kept": [1, 2]}\n}\n'
    project.write(SETTINGS[host], text)
    before = files(tmp_path)
    project("install", host, "--yes")
    installed = files(tmp_path)
    assert json.loads(installed[f"project/{SETTINGS[host]}"])["mine"] == {"kept": [1, 2]}
    assert any(b"agentx" in body for name, body in installed.items() if before.get(name) != body)
    project("install", host, "--yes")
    assert files(tmp_path) == installed
    project("uninstall", host, "--yes")
    assert files(tmp_path) == before


def test_the_memory_of_a_project_hides_itself_from_git(project):
    """After ``install`` the project's repository is as before, and ``git status`` does not show the memory."""
    project("install", "claude-code", "--yes")
    shown = subprocess.run(
        ["git", "status", "--porcelain"], cwd=project.cwd, capture_output=True, text=True, check=True
    )
    assert ".agentx-project" not in shown.stdout
    assert (project.cwd / ".agentx-project/workspace/history.jsonl").is_file()
    assert project.json("status")["root"].endswith(".agentx-project/workspace")


def test_installing_for_all_projects_makes_no_memory(project, tmp_path):
    """``install --user`` writes the user's settings, and a project without a memory is left alone by the hooks."""
    project("install", "claude-code", "--user", "--yes")
    assert "agentx" in (tmp_path / "home/.claude/settings.json").read_text()
    assert Hooks("claude-code", project)("UserPromptSubmit", prompt=RULE) == {}
    assert not (project.cwd / ".agentx-project").exists()


def test_an_agent_without_hooks_is_asked_by_a_block_in_agents_md(project):
    """``install agents-md`` adds a block to AGENTS.md, and ``uninstall`` takes it out."""
    path = project.write("AGENTS.md", "# Parcels\n\nBe kind.\n")
    project("install", "agents-md", "--yes")
    assert path.read_text().startswith("# Parcels\n\nBe kind.\n")
    assert "agentx" in path.read_text()
    project("uninstall", "agents-md", "--yes")
    assert path.read_text() == "# Parcels\n\nBe kind.\n"


# --- what real hosts sent -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def memory_of(programs, runtime, tmp_path_factory):
    """Install beside a host in a new project; its hooks, for a test that records something of its own."""

    def memory_of(host: str) -> Session:
        folder = make_project(tmp_path_factory.mktemp("host") / "parcel")
        command = CommandLine(programs / "agentx", folder, {**runtime, "HOME": str(folder.parent)})
        command("install", host, "--no-mcp", "--yes")
        return Session(host, command)

    return memory_of


def said(session: Session) -> list[str]:
    """What stands in the history as the user's words."""
    events = session.command.at(session.memory).events("UserMessageSent")
    return [event["data"]["body"]["text"] for event in events]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        pytest.param(
            "claude-code",
            "UserPromptSubmit",
            marks=pytest.mark.xfail(
                strict=True, reason="a file that a second clause names becomes the only place of the rule"
            ),
        ),
        pytest.param(
            "codex",
            "UserPromptSubmit",
            marks=pytest.mark.xfail(
                strict=True, reason='"Do not create CHANGES.txt." is only a candidate, which nothing enforces'
            ),
        ),
        ("gemini-cli", "BeforeAgent"),
        ("opencode", "chat.message"),
    ],
)
def test_the_prompt_that_a_real_host_sent_makes_its_rules(memory_of, host, name):
    """The recorded prompt of each host makes its two rules, whatever the host puts around the user's words."""
    session = memory_of(host)
    session.hook(name)
    assert "hook_context" not in said(session)[0]
    assert decision(session.hook(session.words.before_write))[0] == "deny"
    assert decision(session.shell("git push origin main"))[0] == "deny"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("claude-code", "UserPromptSubmit-task-notification"),
        ("codex", "UserPromptSubmit-agent"),
        ("gemini-cli", "BeforeTool-invoke_agent"),
        ("opencode", "tool.execute.before-task"),
    ],
)
def test_what_an_agent_tells_its_subagent_is_not_the_users(memory_of, host, name):
    """An agent's words to a subagent, and a subagent's report, are never the user's and make no rule."""
    session = memory_of(host)
    changes = {"tool_input": {"description": "x", "prompt": OTHERS_PROMPT}} if host == "opencode" else {}
    session.hook(name, **changes)
    assert said(session) == []
    assert session.active("constraint") == []


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_subagent_is_held_to_the_rules(memory_of, host):
    """A subagent's command that breaks a rule is denied as its parent's is."""
    session = memory_of(host)
    session.hook("UserPromptSubmit", prompt=PROMPT)
    assert decision(session.hooks("PreToolUse-Bash-agent", tool_input={"command": "git push"}))[0] == "deny"


@pytest.mark.xfail(strict=True, reason="what the user answers to a question of the host is not captured live")
def test_what_the_user_answers_to_a_question_of_the_host_is_the_users(memory_of):
    """Words that the user typed into the host's own question make a rule."""
    session = memory_of("claude-code")
    session.hook("PostToolUse-AskUserQuestion")
    assert any("Postgres" in text for text in session.active("constraint"))


def test_an_edit_by_a_host_is_a_version_of_the_artifact(memory_of):
    """A file that the host's agent wrote is recorded as its change."""
    session = memory_of("claude-code")
    session.hook("UserPromptSubmit", prompt="Write the notes.")
    given = {"tool_input": {"file_path": str(session.command.cwd / "notes.md"), "content": "Notes.\n"}}
    session.hook("PreToolUse-Write", **given)
    session.command.write("notes.md", "Notes.\n")
    session.hook("PostToolUse-Write", **given)
    (call,) = session.command.at(session.memory).events("ToolCallExecuted")
    assert call["actor"] == "agent:claude-code"
    assert [change["path"] for change in call["data"]["changes"]] == ["notes.md"]


def test_an_answer_that_breaks_a_rule_is_held_back_once(memory_of):
    """An agent whose answer breaks a rule is kept from stopping once, with the user's sentence, and never twice."""
    session = memory_of("claude-code")
    rule = "Never mention Redis in your answers."
    session.hook("UserPromptSubmit", prompt=rule)
    held = session.hook("Stop", last_assistant_message="Use Redis for it.")
    assert decision(held)[0] == "block"
    assert rule in decision(held)[1]
    assert session.hook("Stop", last_assistant_message="Use Redis for it.", stop_hook_active=True) == {}


# --- without a server ---------------------------------------------------------------------------------


def test_without_a_server_rules_hold_and_prompts_are_kept(memory_of, tmp_path):
    """Where no server can run, compiled rules still deny, and the prompt is kept in the user's state directory."""
    session = memory_of("claude-code")
    session.hook("UserPromptSubmit", prompt=PROMPT)
    state = tmp_path / "state"
    shutil.copytree(session.command.environ["AGENTX_STATE_DIR"], state)
    place = {
        "AGENTX_RUNTIME_DIR": f"{tmp_path}/{'x' * 120}",
        "AGENTX_HOOK_WAIT_S": "0.2",
        "AGENTX_STATE_DIR": str(state),
    }
    alone = {**session.command.environ, **place}
    hooks = Hooks("claude-code", CommandLine(session.command.program, session.command.cwd, alone))
    assert decision(hooks("PreToolUse-Write"))[0] == "deny"
    hooks("UserPromptSubmit", prompt="Never touch the file seeds.csv.", prompt_id="another")
    assert any(b"seeds.csv" in path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_hooks_work_in_their_own_process_if_told_so(project):
    """With ``AGENTX_NO_SERVER=1`` a hook captures and denies by itself."""
    project("install", "claude-code", "--no-mcp", "--yes")
    hooks = Hooks("claude-code", project)
    hooks("UserPromptSubmit", prompt=PROMPT)
    assert decision(hooks("PreToolUse-Write"))[0] == "deny"


@pytest.mark.parametrize("sent", ["", "{", "[]", '{"hook_event_name": "PreToolUse"}', '{"session_id": 5}'])
def test_a_malformed_payload_never_holds_up_the_host(project, sent):
    """Whatever goes wrong, a hook ends with 0 and lets the host go on."""
    done = project("hook", "claude-code", stdin=sent)
    assert done.code == 0
    assert not done.out.strip() or decision(json.loads(done.out))[0] == ""
