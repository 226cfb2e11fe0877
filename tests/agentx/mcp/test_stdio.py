"""`agentx mcp` as a host starts it, asked by the SDK's own client and by bytes."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from mcp import MCPError
from mcp import types as mcp_types

from agentx import Workspace
from agentx.client.client import Client
from agentx.settings import Settings
from agentx.storage.events.types import ApprovalDecided
from tests.agentx.mcp.conftest import command, host, run, text
from tests.agentx.server.conftest import end

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""The protocol of 2026, without a handshake, and the one before."""


def accept(**content):
    return lambda _params: mcp_types.ElicitResult(action="accept", content=content)


@ERAS
def test_a_host_gets_tools_resources_and_prompts(task, place, mode):
    async def work():
        async with host(task, place, mode=mode) as client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
            assert len((await client.list_tools()).tools) == 8
            assert "Never deploy on a Friday." in text(
                await client.call_tool("context", {"message": "deploy"})
            )
            assert "staging" in text(await client.call_tool("search", {"query": "staging server"}))
            wrong = await client.call_tool("no_such", {})
            assert wrong.is_error
            assert "Unknown tool" in text(wrong)
            found = {str(one.uri) for one in (await client.list_resources()).resources}
            assert {"agentx://state", "agentx://artifacts/poisoned.md"} <= found
            assert len((await client.list_resource_templates()).resource_templates) == 3
            (state,) = (await client.read_resource("agentx://state")).contents
            assert "Never deploy on a Friday." in state.text
            with pytest.raises(MCPError, match="refused"):
                await client.read_resource("agentx://artifacts/%2e%2e/agentx.toml")
            assert [one.name for one in (await client.list_prompts()).prompts] == [
                "boot",
                "recovery",
                "hand_over",
            ]
            (message,) = (await client.get_prompt("recovery")).messages
            assert "Never deploy on a Friday." in message.content.text

    run(work)


def wait_until_gone(pid):
    """Wait until a process and its threads have ended: the last of them closes its files."""
    with suppress(OSError):
        while len(os.listdir(f"/proc/{pid}/task")) > 1 or (
            Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
        ):
            time.sleep(0.01)


def test_the_server_answers_and_its_end_is_survived(task, place):
    async def work():
        async with host(task, place) as client:
            await client.call_tool("context", {})
            with Client.connect(place, start=False) as server:
                first = server.call("hello")["pid"]
                assert [one["root"] for one in server.call("server.status")["workspaces"]] == [task]
            os.kill(first, signal.SIGKILL)
            wait_until_gone(first)  # its socket is open until then
            kept = await client.call_tool(
                "remember", {"text": "It is in Oslo.", "quote": "our staging server"}
            )
            assert not kept.is_error, text(kept)
            with Client.connect(place, start=False) as server:
                assert server.call("hello")["pid"] != first

    run(work)


def stop_without_locks(pid, root):
    """Stop a process at a moment at which it holds no lock of a workspace: those who need one would wait for it."""
    for _ in range(1_000):
        os.kill(pid, signal.SIGSTOP)
        stat = Path(f"/proc/{pid}/stat")
        while stat.read_text().rpartition(") ")[2][0] != "T":  # a signal takes effect a moment later
            time.sleep(0.001)
        names = [root / ".git/agentx.lock", root / ".agentx/index.feeding", root / ".agentx/index/index.lock"]
        if not any(map(is_locked, filter(Path.exists, names))):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    raise AssertionError("it always holds a lock")


def is_locked(path):
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_server_that_was_stopped_is_not_waited_for(task, place):
    async def work():
        async with host(task, place) as client:
            await client.call_tool("context", {})
            with Client.connect(place, start=False) as server:
                pid = server.call("hello")["pid"]
                server.call("settle", workspace=task)
            stop_without_locks(pid, Path(task))
            try:
                assert "Never deploy on a Friday." in text(await client.call_tool("context", {}))
                kept = await client.call_tool(
                    "remember", {"text": "It is in Oslo.", "quote": "our staging server"}
                )
                assert not kept.is_error, text(kept)
            finally:
                os.kill(pid, signal.SIGCONT)

    run(work)


def test_without_a_server_it_does_the_same(task, place):
    async def work():
        async with host(task, {**place, "AGENTX_NO_SERVER": "1"}, "--profile", "all") as client:
            assert "Never deploy on a Friday." in text(
                await client.call_tool("context", {"message": "deploy"})
            )
            written = await client.call_tool("write_file", {"path": "a.md", "content": "# A\n"})
            assert not written.is_error, text(written)
            assert "+# A" in text(await client.call_tool("diff", {"first": "3"}))

    run(work)
    assert (Path(task) / "artifacts" / "a.md").read_text() == "# A\n"
    assert not Path(place["AGENTX_RUNTIME_DIR"], "lock").exists()


def test_checks_run_in_the_process_of_the_host(task, place):
    async def work():
        async with host(task, place, "--profile", "quality") as client:
            checked = await client.call_tool("check_document", {"path": "poisoned.md"})
            assert "poisoned.md" in text(checked)

    run(work)


def test_a_workspace_that_is_not_there_is_named_with_what_to_do(tmp_path, place):
    (tmp_path / "empty").mkdir()

    async def work():
        async with host(tmp_path / "empty", place) as client:
            assert len((await client.list_tools()).tools) == 8
            made = await client.call_tool("context", {})
            assert made.is_error
            assert "agentx init" in text(made)
            with pytest.raises(MCPError, match="agentx init"):
                await client.list_resources()

    run(work)


def test_a_run_starts_none(task, place, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "agentx", "mcp", "-C", task],
        env={**place, "AGENTX_RUN": "token"},
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "refused inside an agent's run" in done.stderr


def test_a_run_does_not_ask_the_server_either(server, task, place):
    code = (
        "import json, socket, sys\n"
        "with socket.socket(socket.AF_UNIX) as one:\n"
        "  one.connect(sys.argv[1])\n"
        "  for kind, name in (('call', 'remember'), ('call', 'context'), ('tools', '')):\n"
        "    params = {'workspace': sys.argv[2], 'kind': kind, 'name': name, 'arguments': {'text': 'x'}}\n"
        "    ask = {'jsonrpc': '2.0', 'id': 1, 'method': 'mcp', 'params': params}\n"
        "    one.sendall(json.dumps(ask).encode() + b'\\n')\n"
        "    print(json.loads(one.makefile().readline())['error']['code'])\n"
    )
    socket_ = f"{place['AGENTX_RUNTIME_DIR']}/socket"
    inside = {**place, "AGENTX_RUN": "token"}
    done = subprocess.run(
        [sys.executable, "-c", code, socket_, task], env=inside, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["-32002"] * 3


# --- the user is asked ------------------------------------------------------------------------------------------------


@ERAS
def test_what_the_user_agrees_to_is_the_users_and_says_how_it_was_asked(task, place, mode, ws):
    asked = []

    def answers(params):
        asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"agree": True})

    async def work():
        async with host(task, place, mode=mode, answers=answers) as client:
            given = {"text": "Never use Redis.", "kind": "constraint"}
            assert "Kept as the user's" in text(await client.call_tool("remember", given))

    run(work)
    assert "Never use Redis." in asked[0]
    (rule,) = [item for item in ws.memory("constraint") if "Redis" in item.text]
    assert rule.trust == "user"
    assert rule.reason == "The user agreed, asked by mcp over MCP"
    assert next(iter(ws.events(rule.created_seq - 1))).actor == "user"


@ERAS
@pytest.mark.parametrize(
    ("answer", "trust"),
    [
        (mcp_types.ElicitResult(action="decline"), None),
        (mcp_types.ElicitResult(action="accept", content={"agree": False}), None),
        (mcp_types.ElicitResult(action="accept", content={}), None),
        (mcp_types.ElicitResult(action="cancel"), "reported"),
    ],
)
def test_what_the_user_does_not_agree_to_is_not_the_users(task, place, mode, ws, answer, trust):
    async def work():
        async with host(task, place, mode=mode, answers=lambda _params: answer) as client:
            return text(
                await client.call_tool("remember", {"text": "Never use Redis.", "kind": "constraint"})
            )

    run(work)
    assert [item.trust for item in ws.memory(status=None) if "Redis" in item.text] == (
        [trust] if trust else []
    )


@ERAS
@pytest.mark.parametrize("agree", [True, False])
def test_a_call_that_waits_is_put_to_the_user(task, place, tmp_path, mode, agree):
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    with Workspace.open(task, settings=settings) as ws:
        ws.configure("tools.approve", '["delete_file"]')

    async def work():
        async with host(
            task, place, "--profile", "storage", mode=mode, answers=accept(agree=agree)
        ) as client:
            return await client.call_tool("delete_file", {"path": "poisoned.md"})

    made = run(work)
    assert made.is_error is not agree, text(made)
    assert (Path(task) / "artifacts" / "poisoned.md").exists() is not agree
    with Workspace.open(task, settings=settings) as ws:
        (decided,) = [event for event in ws.events() if isinstance(event.data, ApprovalDecided)]
        assert (decided.actor, decided.data.approved, decided.data.asked) == ("user", agree, "mcp over MCP")
        assert not ws.status().pending


def test_an_answer_counts_once_and_for_its_own_call(task, place):
    """A host that invents an answer, or gives one again, gets nothing."""

    async def work():
        async with host(task, place, answers=accept(agree=True)) as client:
            session = client.session
            given = {"text": "Never use Redis.", "kind": "constraint"}
            made = await session.call_tool("remember", given, allow_input_required=True)
            yes = {"user": mcp_types.ElicitResult(action="accept", content={"agree": True})}
            other = {"text": "Always use Redis.", "kind": "constraint"}
            told = []
            for arguments, state in (
                (given, "invented"),
                (other, made.request_state),
                (given, made.request_state),
            ):
                result = await session.call_tool(
                    "remember", arguments, input_responses=yes, request_state=state, allow_input_required=True
                )
                told.append((result.is_error, text(result)))
            return told

    told = run(work)
    assert all(failed and "expired" in said for failed, said in told), told


# --- hostile ----------------------------------------------------------------------------------------------------------


def test_too_large_arguments_are_a_tool_error(task, place):
    async def work():
        async with host(task, place, "--profile", "storage") as client:
            made = await client.call_tool("write_file", {"path": "a.md", "content": "x" * 3_000_000})
            assert made.is_error
            assert "pass less" in text(made)
            assert "Never deploy" in text(await client.call_tool("context", {}))

    run(work)


def test_a_cancelled_call_leaves_the_others(task, place):
    async def work():
        async with host(task, place) as client:
            await client.call_tool("context", {})
            for _ in range(5):
                waiting = asyncio.ensure_future(client.call_tool("search", {"query": "staging"}))
                await asyncio.sleep(0.002)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            assert "Never deploy" in text(await client.call_tool("context", {}))

    run(work)


def test_bytes_that_are_no_messages_end_nothing(task, place):
    given = command(task, **place)
    lines = [
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'"text"',
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "method": "nonsense"}',
        b'{"jsonrpc": "2.0", "id": 2, "method": "no/such"}',
        b"[" * 50_000,
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 3,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "user:ann\n\x1b[2J", "version": "1"},
                },
            }
        ).encode(),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "history", "arguments": []}}',
        b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "remember", "arguments": {"text": "A fact."}}}',
    ]
    done = subprocess.Popen(
        [given.command, *given.args],
        env=given.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with done:
        done.stdin.write(b"".join(line + b"\n" for line in lines))
        done.stdin.flush()
        answers = {}
        while 5 not in answers:
            message = json.loads(done.stdout.readline())
            answers[message.get("id")] = message
        done.stdin.close()
        assert done.wait(60) == 0
        assert done.stderr.read() == b""
    assert answers[3]["result"]["serverInfo"]["name"] == "agentx"
    assert "error" in answers[4]
    assert "trust reported" in answers[5]["result"]["content"][0]["text"]
    with Client.connect(place, start=False) as server:
        events = server.call("events", workspace=task)["events"]
    assert events[-1]["actor"] == "agent:user-ann-2j"


def test_it_ends_with_its_host(task, place):
    given = command(task, **place)
    done = subprocess.run(
        [given.command, *given.args], env=given.env, input=b"", capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_many_calls_take_no_more_memory(task, place):
    """Of the process of the host, and of the server; `python -m tests.measure_mcp` makes a thousand."""

    def resident(pid):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def work():
        async with host(task, place) as client:
            calls = [
                ("context", {"message": "deploy"}),
                ("search", {"query": "staging"}),
                ("check", {"action": "deploy", "tool": "Bash", "arguments": {"command": "make deploy"}}),
                ("history", {}),
                ("read_memory", {"kind": "constraint"}),
                ("remember", {"text": "Staging is in Oslo.", "quote": "our staging server lives in Oslo"}),
            ]

            async def round_(times):
                for _ in range(times):
                    for name, arguments in calls:
                        assert not (await client.call_tool(name, arguments)).is_error

            await round_(10)
            with Client.connect(place, start=False) as server:
                pids = [_child(), server.call("hello")["pid"]]
            before = [resident(pid) for pid in pids]
            await round_(20)
            return [after - then for after, then in zip(map(resident, pids), before, strict=True)]

    grown = run(work)
    assert all(size < 8 << 20 for size in grown), grown


def _child():
    """The process that this one has started and that serves MCP."""
    for path in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in path.read_text().split():
            if b"mcp" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return int(pid)
    raise AssertionError


def test_a_server_that_ends_between_two_calls_is_started_again(task, place):
    async def work():
        async with host(task, place) as client:
            for _ in range(3):
                assert "Never deploy" in text(await client.call_tool("context", {}))
                end(place)
                await asyncio.sleep(0.1)

    run(work)
