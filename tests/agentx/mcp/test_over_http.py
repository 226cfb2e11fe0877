"""MCP over the server's HTTP, by the SDK's own client: for who has the token, on this machine."""

import asyncio
import http.client
import json
import urllib.parse
from contextlib import asynccontextmanager, closing

import httpx2
import pytest
from mcp import Client
from mcp import types as mcp_types
from mcp.client.streamable_http import streamable_http_client

from agentx.client.client import Client as ServerClient
from tests.agentx.mcp.conftest import run, text

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        },
    }
)


@asynccontextmanager
async def host(access, workspace, profile="default", mode="auto", answers=None):
    async def asked(_context, params):
        return answers(params)

    query = urllib.parse.urlencode({"workspace": workspace, "profile": profile})
    url = f"http://127.0.0.1:{access.port}/mcp?{query}"
    given = {"elicitation_callback": asked} if answers else {}
    headers = {"Authorization": f"Bearer {access.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode, **given) as client,
    ):
        yield client


def post(access, body=INITIALIZE, path="/mcp", method="POST", **other):
    """The status of a request, with other headers than a good one; empty ones are left out."""
    headers = {
        "Host": f"127.0.0.1:{access.port}",
        "Authorization": f"Bearer {access.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in other.items()},
    }
    with closing(http.client.HTTPConnection("127.0.0.1", access.port, timeout=60)) as one:
        one.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            if value:
                one.putheader(name, value)
        one.endheaders(body.encode())
        answer = one.getresponse()
        return answer.status, answer.read()


@ERAS
def test_a_host_gets_tools_resources_and_prompts(access, task, mode):
    async def work():
        async with host(access, task, "storage", mode) as client:
            assert "write_file" in [tool.name for tool in (await client.list_tools()).tools]
            assert "Never deploy on a Friday." in text(
                await client.call_tool("context", {"message": "deploy"})
            )
            wrong = await client.call_tool("run_tests", {})
            assert wrong.is_error
            written = await client.call_tool("write_file", {"path": "a.md", "content": "# A\n"})
            assert not written.is_error, text(written)
            (state,) = (await client.read_resource("agentx://artifacts/a.md")).contents
            assert state.text == "# A"
            assert len((await client.list_prompts()).prompts) == 3

    run(work)


@ERAS
def test_the_user_is_asked_through_the_host(access, task, mode, ws):
    def agree(_params):
        return mcp_types.ElicitResult(action="accept", content={"agree": True})

    async def work():
        async with host(access, task, mode=mode, answers=agree) as client:
            return text(
                await client.call_tool("remember", {"text": "Never use Redis.", "kind": "constraint"})
            )

    assert "Kept as the user's" in run(work)
    assert [item.trust for item in ws.memory("constraint") if "Redis" in item.text] == ["user"]


def test_two_hosts_use_two_workspaces(access, task, tmp_path):
    async def work():
        async with host(access, task) as one, host(access, str(tmp_path)) as other:
            made = await asyncio.gather(*(client.call_tool("context", {}) for client in (one, other)))
            return [(result.is_error, text(result)) for result in made]

    (failed, told), (failed_too, told_too) = run(work)
    assert (failed, failed_too) == (False, True)
    assert "Never deploy" in told
    assert "agentx init" in told_too


@pytest.mark.parametrize("workspace", ["", "relative", "/nowhere", "/etc/passwd", "/proc/1/root", "/a\0b"])
def test_a_workspace_that_is_none_is_a_tool_error(access, workspace):
    async def work():
        async with host(access, workspace) as client:
            made = await client.call_tool("context", {})
            assert made.is_error
            assert text(made)

    run(work)


def test_programs_are_not_run_here(access, task):
    async def work():
        async with host(access, task, "quality") as client:
            made = await client.call_tool("check_document", {"path": "poisoned.md"})
            assert made.is_error
            assert "use `agentx mcp`" in text(made)

    run(work)


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": ""}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:{port}.evil.example"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Content_Type": "text/plain"}, 400),
        ({"path": "/mcp/x"}, 404),
        ({"path": "/"}, 404),
        ({"body": "{"}, 400),
        ({"body": '"text"'}, 400),
        ({"body": "[" * 100_000}, 400),
        ({"body": "x" * (5 << 20)}, 413),
        ({"method": "PUT"}, 405),
        ({"Mcp_Session_Id": "invented"}, 404),
    ],
)
def test_only_a_program_of_the_user_is_answered(access, other, status):
    given = {name: value.replace("{port}", str(access.port)) for name, value in other.items()}
    assert post(access, **given)[0] == status


def test_what_is_refused_costs_no_session_and_the_server_goes_on(access, place, task):
    for _ in range(100):
        assert post(access, Authorization="Bearer wrong")[0] == 401
    sessions = [post(access)[0] for _ in range(70)]
    assert set(sessions) == {200, 503}  # more than a limited number are not kept
    with ServerClient.connect(place, start=False) as client:
        assert client.call("state", workspace=task)["title"] == "A task"
