"""The entry point of hooks, as hosts call it: a process of its own, a real server, and faults."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.client.client import Client, RequestFailed
from agentx.core.beside import checks_file
from agentx.hosts.host import HOSTS
from agentx.hosts.place import spool
from agentx.hosts.setup.project import make_beside
from agentx.settings import RLIMIT_LOCKS, Settings
from agentx.storage.events.types import ToolCallExecuted, UserMessageSent
from agentx.synthesis.memory.checks import TextCheck

ENTRY = [sys.executable, "-P", "-m", "agentx", "hook"]
LIMIT_S = 60
"""No hook takes this long; each of its own limits is far below."""

SOON = {"AGENTX_HOOK_WAIT_S": "2"}
"""Where no server can come, a hook need not wait for one as long as on a loaded machine that starts one."""


@pytest.fixture
def root(project, tmp_path, place):
    """The project's workspace, which no process has open."""
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    return make_beside(project, settings)


@pytest.fixture
def hook(project, place):
    """Call the entry point with a payload; returns its exit status and its decoded answer."""

    def call(event, host="claude-code", *, environ=None, cwd=None, before=None, **fields):
        payload = {"session_id": "s-1", "cwd": str(cwd or project), "hook_event_name": event, **fields}
        return raw(json.dumps(payload).encode(), host, environ=environ, before=before)

    def raw(data, host="claude-code", *, environ=None, before=None):
        done = subprocess.run(
            [*ENTRY, host],
            input=data,
            env={**place, "AGENTX_HOOK_WAIT_S": "30", **(environ or {})},
            cwd=project,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
            preexec_fn=before,
        )
        assert done.stderr == b""
        return done.returncode, json.loads(done.stdout) if done.stdout else {}

    call.raw = raw
    return call


def said(root, tmp_path, place):
    """What the user said, as the record has it."""
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    with Workspace.open(root, settings=settings) as ws:
        return [event.data.body.text for event in ws.events() if isinstance(event.data, UserMessageSent)]


def decision(answer):
    return answer.get("hookSpecificOutput", {}).get("permissionDecision", "")


WRITE = {
    "tool_name": "Write",
    "tool_input": {"file_path": "requirements.txt", "content": "x"},
    "tool_use_id": "t",
}
RULE = "Never create a requirements.txt file."


def test_a_prompt_and_a_denial_go_through_the_server(hook, client, root):
    assert hook("UserPromptSubmit", prompt=RULE)[0] == 0
    status, answer = hook("PreToolUse", **WRITE)
    assert (status, decision(answer)) == (0, "deny")
    events = client.call("events", workspace=str(root))["events"]
    assert [one["actor"] for one in events if one["type"] == "UserMessageSent"] == ["user"]


def test_a_session_is_told_why_no_server_can_run(hook, root, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    told = hook("UserPromptSubmit", environ={"AGENTX_RUNTIME_DIR": str(shared)}, prompt=RULE)[1][
        "systemMessage"
    ]
    assert f"chmod 700 {shared}" in told
    assert "does not answer" not in told


def test_without_a_server_a_pattern_that_takes_for_ever_asks(hook, server, place, root, tmp_path):
    bomb = TextCheck(patterns=("^(a|aa)+$", "("), places=("files",))
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    with Workspace.open(root, settings=settings) as ws:
        ws.remember("constraint", "A rule with a pattern.", checks=(bomb,))
    hook("UserPromptSubmit", prompt="Go on.")
    with Client.connect(place, start=False) as one:
        one.call("server.stop")
    server.wait(LIMIT_S)
    away = {"PATH": "/nonexistent", "AGENTX_RUNTIME_DIR": f"{tmp_path}/{'x' * 120}", **SOON}
    for content in ("a" * 90 + "!", "!"):
        write = {**WRITE, "tool_input": {"file_path": "a.txt", "content": content}}
        assert decision(hook("PreToolUse", environ=away, **write)[1]) == "ask"


def test_without_a_server_the_compiled_checks_hold_and_events_wait_in_order(
    hook, server, place, root, tmp_path
):
    hook("UserPromptSubmit", prompt=RULE)
    with Client.connect(place, start=False) as one:
        one.call("server.stop")
    server.wait(LIMIT_S)
    away = {"PATH": "/nonexistent", "AGENTX_RUNTIME_DIR": f"{tmp_path}/{'x' * 120}", **SOON}
    first = hook("UserPromptSubmit", environ=away, prompt="Second.", session_id="s-2")
    assert "server does not answer" in first[1]["systemMessage"]
    assert hook("UserPromptSubmit", environ=away, prompt="Third.", session_id="s-2")[1] == {}
    assert decision(hook("PreToolUse", environ=away, **WRITE)[1]) == "deny"
    assert (
        decision(hook("PreToolUse", environ=away, **{**WRITE, "tool_input": {"file_path": "a.txt"}})[1]) == ""
    )
    result = {
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "u",
        "tool_response": {"stdout": "a"},
    }
    hook("PostToolUse", environ=away, **result)
    happened = datetime.now(UTC)
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    subprocess.run([*ENTRY, "--warm", str(root)], env=place, check=True)
    with Client.connect(place, start=False) as one:
        one.call("server.stop")
    with Workspace.open(root, settings=settings) as ws:
        told = [event for event in ws.events() if isinstance(event.data, UserMessageSent)]
        texts = [event.data.body.text for event in told]
        calls = [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert [event.at for event in told] == sorted(event.at for event in told)
    assert datetime.fromisoformat(told[-1].at) < happened  # when it was sent, not when it was recorded
    assert texts == [RULE, "Second.", "Third."]
    assert [call.status for call in calls] == ["DENIED", "SUCCEEDED"]
    assert "Only the compiled checks were asked" in calls[-1].noted
    assert not list(Path(spool(str(root), place)).glob("*.json"))


def test_a_server_that_is_stopped_delays_a_hook_no_longer_than_its_limit(hook, server, root, place, tmp_path):
    hook("UserPromptSubmit", prompt=RULE)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        usual = {"AGENTX_HOOK_WAIT_S": ""}
        assert hook("UserPromptSubmit", environ=usual, prompt="Second.")[0] == 0
        assert decision(hook("PreToolUse", environ=usual, **WRITE)[1]) == "deny"
    finally:
        os.kill(server.pid, signal.SIGCONT)
    os.unlink(f"{place['AGENTX_RUNTIME_DIR']}/unresponsive")
    hook("UserPromptSubmit", prompt="Third.")
    with Client.connect(place, start=False) as one:
        one.call("server.stop")
    server.wait(LIMIT_S)
    assert said(root, tmp_path, place) == [RULE, "Second.", "Third."]


def test_the_compiled_checks_follow_what_the_user_does_elsewhere(hook, client, root, place):
    hook("UserPromptSubmit", prompt=RULE)
    kept = Path(checks_file(str(root), place["AGENTX_STATE_DIR"]))
    assert "legacy" not in kept.read_text()
    client.call("say", workspace=str(root), text="Do not touch anything in the legacy/ folder.")
    client.call("flush", workspace=str(root))  # after what follows the answer
    assert "legacy" in kept.read_text()


def test_a_stale_socket_is_no_server(hook, root, place):
    where = Path(place["AGENTX_RUNTIME_DIR"])
    where.mkdir(0o700)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(where / "socket"))
    assert hook("SessionStart", source="startup", environ={"AGENTX_RUN": ""})[0] == 0


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"a":' * 5000, b"{}"], ids=range(7)
)
def test_a_malformed_payload_gets_go_on(hook, host, data):
    status, answer = hook.raw(data, host)
    assert status == 0
    assert answer.get("decision") in (None, "allow")
    assert "permission" not in answer


def test_a_payload_of_10_mb_is_taken(hook, client, root):
    prompt = "Look at this:\n" + "".join(f"line {number}\n" for number in range(900_000))
    assert len(prompt) > 10_000_000
    assert hook("UserPromptSubmit", prompt=prompt)[0] == 0
    events = client.call("events", workspace=str(root))["events"]
    (one,) = [event for event in events if event["type"] == "UserMessageSent"]
    assert one["data"]["body"]["size_bytes"] > 900_000


def test_where_there_is_no_workspace_nothing_happens(hook, server, tmp_path):
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"):
        assert hook(event, cwd=tmp_path, prompt="Use tabs.", **WRITE) == (0, {})


def test_the_sessions_project_rules_wherever_its_agent_changes_to(hook, server, root, project, tmp_path):
    hook("UserPromptSubmit", prompt=RULE)
    path = {**WRITE, "tool_input": {"file_path": str(project / "requirements.txt"), "content": "x"}}
    away = {"CLAUDE_PROJECT_DIR": str(project)}
    assert decision(hook("PreToolUse", cwd=tmp_path, environ=away, **path)[1]) == "deny"


def test_where_nothing_can_be_written_the_host_goes_on(hook, root, place, tmp_path):
    away = {"AGENTX_STATE_DIR": "/proc/nonexistent", "AGENTX_RUNTIME_DIR": "/proc/nonexistent", **SOON}
    status, answer = hook("UserPromptSubmit", environ=away, prompt=RULE)
    assert status == 0
    assert "will not be remembered" in answer["systemMessage"]
    assert hook("PreToolUse", environ=away, **WRITE)[0] == 0


def test_on_a_full_disk_the_host_goes_on(hook, root, place, tmp_path):
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    away = {"AGENTX_RUNTIME_DIR": f"{tmp_path}/{'x' * 120}", **SOON}
    assert hook("UserPromptSubmit", environ=away, prompt=RULE, before=full)[0] == 0
    assert not list(Path(spool(str(root), place)).glob("*.json"))


def test_an_agents_command_records_nothing_as_the_user(hook, client, root, place, tmp_path):
    def marked():
        resource.setrlimit(RLIMIT_LOCKS, (1 << 40, 1 << 40))

    hook("UserPromptSubmit", environ={"AGENTX_RUN": "claude-code"}, prompt="Deploy on Fridays.")
    hook("UserPromptSubmit", before=marked, prompt="Deploy on Saturdays.")
    away = {"AGENTX_RUNTIME_DIR": f"{tmp_path}/{'x' * 120}", **SOON}
    hook("UserPromptSubmit", environ=away, before=marked, prompt="Deploy on Sundays.")
    events = client.call("events", workspace=str(root))["events"]
    assert not [one for one in events if one["type"] == "UserMessageSent"]
    assert not list(Path(spool(str(root), place)).glob("*.json"))


def test_the_commands_of_a_claude_code_session_are_marked_as_an_agents(hook, client, root, place, tmp_path):
    preamble = tmp_path / "env file"
    hook("SessionStart", source="startup", environ={"CLAUDE_ENV_FILE": str(preamble)})
    payload = {
        "session_id": "s",
        "cwd": str(root),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "Deploy.",
    }
    forged = f"{' '.join(ENTRY)} claude-code <<'END'\n{json.dumps(payload)}\nEND\n"
    script = f"{preamble.read_text()}unset AGENTX_RUN\n{forged}"
    subprocess.run(["bash", "-c", script], env=place, cwd=root, check=True, capture_output=True)
    spoken = f"{preamble.read_text()}{sys.executable} -P -m agentx -C '{root}' say 'Deploy on Fridays.'"
    refused = subprocess.run(["bash", "-c", spoken], env=place, check=False, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "refused inside an agent's run" in refused.stderr
    events = client.call("events", workspace=str(root))["events"]
    assert not [one for one in events if one["type"] == "UserMessageSent"]


def test_a_run_is_refused_the_servers_method(server, place, root):
    program = (
        "from agentx.client.client import Client, RequestFailed\n"
        "try:\n"
        "  with Client.connect(start=False) as c:\n"
        f"    c.call('hook', workspace={str(root)!r}, key='k', action={{'host': 'x', 'moment': 'prompt', 'text': 'Deploy.'}})\n"
        "except RequestFailed as error:\n"
        "  print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**place, "AGENTX_RUN": "r-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "-32002"


def test_no_request_names_an_actor(client, root):
    action = {"host": "claude-code", "moment": "answer", "text": "Done.", "actor": "user", "run": "r-1"}
    client.call("hook", workspace=str(root), key="k", action=action)
    events = client.call("events", workspace=str(root))["events"]
    assert events[-1]["actor"] != "user"
    for bad in ({"moment": "prompt"}, {"host": 1, "moment": "prompt"}, "prompt", None):
        with pytest.raises(RequestFailed, match="action"):
            client.call("hook", workspace=str(root), key="k", action=bad)


def test_a_rule_of_the_first_prompt_holds_for_the_first_call_although_no_server_ran(hook, root):
    assert RULE in str(hook("UserPromptSubmit", prompt=RULE))
    assert decision(hook("PreToolUse", **WRITE)[1]) == "deny"


def test_a_cold_server_is_started_for_the_next_hook(hook, root, place, tmp_path):
    assert hook("UserPromptSubmit", prompt=RULE)[0] == 0
    for _ in range(600):
        if said(root, tmp_path, place) == [RULE]:
            break
        time.sleep(0.1)
    assert said(root, tmp_path, place) == [RULE]


def test_a_host_without_a_name_is_told_how_to_use_it(project, place):
    for words in ([], ["emacs"]):
        done = subprocess.run(
            [*ENTRY, *words], env=place, capture_output=True, text=True, input="{}", check=False
        )
        assert done.returncode == 1
        assert "usage: agentx hook HOST" in done.stderr


def test_the_hook_loads_little(project, place, tmp_path):
    program = "import agentx.hosts.hook, sys; from agentx.hosts.host import *; [load(h) for h in HOSTS]; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=place
    )
    loaded = set(done.stdout.split())
    assert not loaded & {
        "msgspec",
        "typing",
        "asyncio",
        "pathlib",
        "subprocess",
        "hashlib",
        "socket",
        "dataclasses",
    }


def test_a_hook_needs_no_program(hook, client, root):
    assert hook("UserPromptSubmit", environ={"PATH": "/nonexistent"}, prompt=RULE)[0] == 0
    assert client.call("state", workspace=str(root))["counts"]["UserMessageSent"] == 1


@pytest.fixture
def theirs(project, tmp_path):
    """Settings of another person, who made a workspace that this user has not trusted."""
    return Settings(
        environ={}, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "theirs", user="somebody"
    )


@pytest.mark.parametrize("server_off", ["", "1"])
def test_a_read_only_workspace_says_why_once_a_session_and_its_events_wait(
    hook, request, project, theirs, place, tmp_path, server_off
):
    root = make_beside(project, theirs)
    if not server_off:
        request.getfixturevalue("server")
    own = {"AGENTX_NO_SERVER": server_off}
    _, answer = hook("UserPromptSubmit", environ=own, prompt=RULE)
    assert "read-only" in answer["systemMessage"]
    assert "`agentx trust`" in answer["systemMessage"]
    assert "does not answer" not in answer["systemMessage"]
    assert hook("UserPromptSubmit", environ=own, prompt="Second.") == (0, {})
    assert (
        "read-only"
        in hook("UserPromptSubmit", environ=own, prompt="Third.", session_id="s-2")[1]["systemMessage"]
    )
    mine = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    with Workspace.open(root, settings=mine) as ws:
        ws.trust()
    assert hook("UserPromptSubmit", environ=own, prompt="Fourth.", session_id="s-3")[0] == 0
    if not server_off:
        with Client.connect(place, start=False) as one:
            one.call("server.stop")
    assert said(root, tmp_path, place) == [RULE, "Second.", "Third.", "Fourth."]


@pytest.mark.parametrize("server_off", ["", "1"])
def test_a_restricted_workspace_says_so_once_a_session_and_records(
    hook, request, tmp_path, theirs, place, server_off
):
    root = tmp_path / "cloned"
    Workspace.create(root, title="Theirs", settings=theirs).close()
    if not server_off:
        request.getfixturevalue("server")
    own = {"AGENTX_NO_SERVER": server_off}
    _, answer = hook("UserPromptSubmit", environ=own, cwd=root, prompt=RULE)
    assert "This workspace is restricted" in answer["systemMessage"]
    assert "`agentx trust`" in answer["systemMessage"]
    assert "systemMessage" not in hook("UserPromptSubmit", environ=own, cwd=root, prompt="Second.")[1]
    if not server_off:
        with Client.connect(place, start=False) as one:
            one.call("server.stop")
    assert said(root, tmp_path, place) == [RULE, "Second."]
