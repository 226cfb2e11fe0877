"""What hooks keep while no server answers holds no secret, and has an end: black boxes over ``agentx hook``."""

# ruff: noqa: F811 - a test takes fixtures that are imported

import json
import subprocess
import sys
import time

import pytest

from agentx import Workspace
from agentx.hosts.setup.project import make_beside
from agentx.settings import Settings
from tests.agentx.hosts.conftest import project  # noqa: F401 - a fixture
from tests.agentx.server.conftest import place  # noqa: F401 - a fixture

TOKEN = "ghp_" + "a1B2" * 9
DAY_NS = 86_400 * 1_000_000_000
PROMPT = {
    "claude-code": "UserPromptSubmit",
    "codex": "UserPromptSubmit",
    "cursor": "beforeSubmitPrompt",
    "gemini-cli": "BeforeAgent",
}


@pytest.fixture
def root(project, tmp_path, place):
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    return make_beside(project, settings)


@pytest.fixture
def hook(project, place, root, tmp_path):
    """Call a hook of a host where no server can come; return what it answers."""
    away = {**place, "AGENTX_RUNTIME_DIR": f"{tmp_path}/{'x' * 120}", "AGENTX_HOOK_WAIT_S": "0.2"}

    def call(event, host="claude-code", **fields):
        payload = {"session_id": "s-1", "cwd": str(project), "hook_event_name": event, **fields}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "agentx", "hook", host], input=json.dumps(payload).encode(), env=away, cwd=project, capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout) if done.stdout else {}

    return call


def spooled(tmp_path):
    """The files of all events that wait."""
    return sorted((tmp_path / "state").glob("hooks/spool/*/*.json"))


def everything(tmp_path):
    return "\n".join(
        one.read_text(errors="replace") for one in (tmp_path / "state").rglob("*") if one.is_file()
    )


@pytest.mark.parametrize("host", PROMPT)
def test_a_prompt_waits_without_its_secrets(hook, host, tmp_path):
    hook(PROMPT[host], host, prompt=f"Log in with {TOKEN}, the password is hx7q7RkZw91.")
    assert len(spooled(tmp_path)) == 1
    left = everything(tmp_path)
    assert "Log in with [redacted: github token]" in left
    assert "hx7q7RkZw91" not in left
    assert TOKEN not in left


def test_arguments_and_outputs_wait_without_their_secrets_and_are_recorded_later(hook, root, place, tmp_path):
    hook(
        "PostToolUse",
        tool_name="Bash",
        tool_use_id="u",
        tool_input={"command": "mysql -uroot -phx7q7RkZw91 app"},
        tool_response={"stdout": f"user\tpassword\nbob\tq7RkZw91hx\n\u001b[31m{TOKEN}\u001b[0m"},
    )
    hook("UserPromptSubmit", prompt="Use tabs in Makefiles.")
    left = everything(tmp_path)
    assert not [one for one in ("hx7q7RkZw91", "q7RkZw91hx", TOKEN) if one in left]
    subprocess.run([sys.executable, "-P", "-m", "agentx", "hook", "--warm", str(root)], env=place, check=True)
    assert spooled(tmp_path) == []
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    with Workspace.open(root, settings=settings) as ws:
        types = [event.type for event in ws.events()]
    assert types.count("UserMessageSent") == 1
    assert types.count("ToolCallExecuted") == 1


def test_what_waits_too_long_is_dropped_and_a_session_is_told_once(hook, tmp_path):
    hook("UserPromptSubmit", prompt="First.")
    hook("UserPromptSubmit", prompt="Second.")
    first, second = spooled(tmp_path)
    bad = first.with_name(f"bad-{time.time_ns() - 31 * DAY_NS:020}-k-9.json")
    bad.write_text("{")
    first.rename(first.with_name(f"{time.time_ns() - 31 * DAY_NS:020}-k-9.json"))
    (first.parent / f".{time.time_ns() - 31 * DAY_NS:020}-k-9").write_text("half")
    told = hook("UserPromptSubmit", prompt="Third.")["systemMessage"]
    assert "1 event waited 30 days" in told
    assert "agentx serve" in told
    kept = [json.loads(one.read_text())["action"]["text"] for one in spooled(tmp_path)]
    assert kept == ["Second.", "Third."]
    assert not [one for one in first.parent.iterdir() if one.name.startswith(("bad-", "."))]
    second.rename(second.with_name(f"{time.time_ns() - 31 * DAY_NS:020}-k.json"))
    assert hook("UserPromptSubmit", prompt="Fourth.") == {}
    assert len(spooled(tmp_path)) == 2


def test_a_spool_that_is_full_takes_no_more_and_a_session_is_told_once(hook, tmp_path):
    hook("UserPromptSubmit", prompt="First.")
    (first,) = spooled(tmp_path)
    first.with_name(f"{time.time_ns():020}-k-{300 << 20}.json").write_text("{}")
    assert "as much waits for it as may" in hook("UserPromptSubmit", prompt="Second.")["systemMessage"]
    assert hook("UserPromptSubmit", prompt="Third.") == {}
    assert len(spooled(tmp_path)) == 2


def test_a_server_drops_what_waits_too_long_for_a_workspace_that_is_gone(root, place, tmp_path):
    gone = tmp_path / "state" / "hooks" / "spool" / "0123456789abcdef"
    gone.mkdir(parents=True)
    (gone / f"{time.time_ns() - 31 * DAY_NS:020}-k-9.json").write_text("{}")
    (gone / f"{time.time_ns():020}-k-9.json").write_text("{}")
    subprocess.run([sys.executable, "-P", "-m", "agentx", "hook", "--warm", str(root)], env=place, check=True)
    assert len(list(gone.iterdir())) == 1
