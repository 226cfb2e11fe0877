"""Who may ask the inspector: whoever has its token, no web page, no other name, and nothing of an agent's run."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

from agentx import Workspace
from agentx.client.client import Client, RequestFailed
from agentx.inspector.access import HEADERS, Grants, InspectorError
from agentx.quality.process import run_process
from agentx.server.peers import TcpPeers
from agentx.settings import Settings
from tests.agentx.inspector.conftest import Page, opened

API = "/inspect/api"


def raw(page, data):
    """What the server answers to bytes, until it closes the connection."""
    with socket.create_connection((page.url.hostname, page.url.port), timeout=60) as one:
        one.sendall(data)
        heard = b""
        while piece := one.recv(1 << 16):
            heard += piece
        return heard


def test_a_web_page_another_name_and_a_wrong_token_are_refused(page):
    host = page.url.netloc
    path = f"{API}/{page.w}/overview"
    refused = [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer other"}, 401),
        ({"authorization": f"Basic {page.token}"}, 401),
        ({"authorization": f"bearer {page.token}"}, 401),
        ({"host": "evil.example"}, 403),
        ({"host": f"evil.example:{page.url.port}"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"https://{host}"}, 403),
        ({"origin": f"http://localhost:{page.url.port}"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 403),
    ]
    for headers, status in refused:
        found, _, body = page.send("GET", path, **headers)
        assert found == status, headers
        assert json.loads(body)["error"]
    for headers in ({}, {"origin": f"http://{host}", "sec_fetch_site": "same-origin"}):
        assert page.send("GET", path, **headers)[0] == 200
    twice = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert raw(page, twice.encode()).split(b" ")[1] == b"400"


def test_the_page_itself_needs_no_token_and_a_link_may_lead_to_it(page):
    for headers in ({}, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}):
        status, found, body = page.send("GET", "/inspect/", authorization="", **headers)
        assert status == 200
        assert found["content-type"] == "text/html; charset=utf-8"
        assert body.startswith(b"<!doctype html>")
    assert page.send("GET", "/inspect/", sec_fetch_site="cross-site")[0] == 403
    tag = found["etag"]
    assert page.send("GET", "/inspect/", if_none_match=tag)[0] == 304


def test_a_token_opens_its_own_workspaces_alone(page, place, root, tmp_path):
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    Workspace.create(tmp_path / "other", title="Another", settings=settings).close()
    other = opened(place, str(tmp_path / "other"))
    assert other.get("overview")["title"] == "Another"
    assert page.send("GET", f"{API}/{other.w}/overview")[0] == 404
    assert other.send("GET", f"{API}/{page.w}/act", b"{}")[0] in {404, 405}
    assert other.send("POST", f"{API}/{page.w}/act", {"what": "pin", "id": "c-2", "seq": 3})[0] == 404
    both = opened(place, root, str(tmp_path / "other"))
    assert {page.w, other.w} == {
        one["id"] for one in json.loads(both.send("GET", f"{API}/workspaces")[2])["workspaces"]
    }


def test_every_answer_has_the_headers_that_confine_the_page(page):
    asked = {
        200: ("GET", f"{API}/workspaces", {}),
        304: ("GET", "/inspect/", {"if_none_match": page.send("GET", "/inspect/")[1]["etag"]}),
        307: ("GET", "/inspect", {}),
        400: ("GET", f"{API}/{page.w}/events?limit=x", {}),
        401: ("GET", f"{API}/workspaces", {"authorization": ""}),
        403: ("GET", f"{API}/workspaces", {"origin": "null"}),
        404: ("GET", f"{API}/{page.w}/nothing", {}),
        405: ("DELETE", f"{API}/{page.w}/overview", {}),
    }
    for status, (method, path, headers) in asked.items():
        found, got, _ = page.send(method, path, **headers)
        assert found == status, path
        for name, value in HEADERS.items():
            assert got[name] == value, (status, name)
        if path.startswith(API):
            assert got["cache-control"] == "no-store"
            assert got["content-type"] == "application/json"
    broken = raw(page, b"GET / NONSENSE\r\n\r\n")
    assert broken.startswith(b"HTTP/1.1 400")
    assert b"default-src 'none'" in broken


OUTSIDE = (
    "/inspect/../../../../etc/passwd",
    "/inspect/%2e%2e/%2e%2e/app.py",
    "/inspect/..%2fapp.py",
    "/inspect/%2e%2e%2f%2e%2e%2f__init__.py",
    "/inspect//etc/passwd",
    "/inspect/index.html%00.js",
    "/inspect/page/../app.py",
    "/inspect/api/../app.py",
)


def test_static_files_lead_nowhere_else(page):
    for path in OUTSIDE:
        request = f"GET {path} HTTP/1.1\r\nHost: {page.url.netloc}\r\nConnection: close\r\n\r\n"
        answer = raw(page, request.encode())
        assert answer.split(b" ")[1] in {b"400", b"401", b"404"}, path
        assert b"root:" not in answer
        assert b"import" not in answer.partition(b"\r\n\r\n")[2]


def test_a_path_or_a_link_leads_to_nothing_outside(page, root):
    os.symlink("/etc/passwd", f"{root}/artifacts/link")
    with Workspace.open(root) as ws:
        ws.engine.edits.scan()
    link = page.get("file?path=link")
    assert (link["text"], link["link"]) == ("/etc/passwd", True)
    for path in (
        "../agentx.toml",
        "/etc/passwd",
        "link/../../history.jsonl",
        "a%00b",
        "..%2f..%2fetc%2fpasswd",
    ):
        status, _, body = page.send("GET", f"{API}/{page.w}/file?path={path}")
        assert status in {400, 404}, path
        assert b"root:" not in body


def test_odd_parameters_are_answered_with_a_sentence(page):
    odd = [
        "events?limit=0", "events?limit=501", "events?limit=-1", "events?limit=1e9", "events?limit=١",
        "events?before=99999999999999999999", "events?after=abc", "events/0", "events/abc", "events/-1",
        "context?tier=4", "context?max_tokens=0", "context?at=yesterdayish", f"search?q={'x' * 401}",
        f"events?q={'y' * 5_000}", "memory?offset=-3", "runs/nothing", "pipelines/nothing", "stream?after=x",
    ]  # fmt: skip
    for path in odd:
        status, _, body = page.send("GET", f"{API}/{page.w}/{path.replace('١', '%D9%A1')}")
        assert status in {400, 404}, path
        assert json.loads(body)["error"].endswith((".", "`"))
    assert page.send("GET", f"{API}/{page.w}/events?q={'z' * 200_000}")[0] == 400
    for body in (b"", b"[]", b"{", b'{"what": 1}', b"[" * 50_000, b'"\xff"'):
        assert page.send("POST", f"{API}/{page.w}/act", body, content_type="application/json")[0] == 400
    assert page.send("POST", f"{API}/{page.w}/act", b"x" * 70_000, content_type="application/json")[0] == 413
    assert page.send("POST", f"{API}/{page.w}/act", b"{}", content_type="text/plain")[0] == 415
    assert page.send("OPTIONS", f"{API}/{page.w}/act")[0] == 405
    status, _, body = page.send("HEAD", f"{API}/{page.w}/overview")
    assert (status, body) == (200, b"")


ASK = """
import http.client, json, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
head = {"authorization": "Bearer " + url.fragment, "content-type": "application/json"}
act = json.dumps({"what": "retire", "id": "c-2", "seq": 99})
for path in sys.argv[3:] or ("overview", "act", "stream"):
    method, body = ("POST", act) if path == "act" else ("GET", None)
    connection.request(method, f"/inspect/api/{sys.argv[2]}/{path}", body, head)
    answer = connection.getresponse()
    answer.read()
    print(answer.status)
"""

RUNS = ("{ask}", "env -i {ask}", "setsid env -i {ask}")


def test_an_agents_run_gets_no_token_and_its_requests_are_refused_with_one(
    page, client, root, place, tmp_path
):
    client.call("say", workspace=root, text="Never create a setup.py file.")
    script = tmp_path / "ask.py"
    script.write_text(ASK)
    asks = f"{sys.executable} {script} '{page.url.geturl()}' {page.w}"
    opens = f"{sys.executable} -P -m agentx inspect {root} --no-open"

    def inside(line):
        return run_process(
            ["sh", "-c", line],
            cwd=tmp_path,
            env={name: place[name] for name in ("PATH", "AGENTX_RUNTIME_DIR", "AGENTX_STATE_DIR")},
            cookie="a-run",
            timeout_s=60,
            max_output_bytes=10_000,
        ).output

    for line in RUNS:
        assert inside(line.format(ask=asks)).split() == ["403"] * 3
    assert "http://" not in inside(opens)
    assert "http://" not in inside(f"env -i AGENTX_RUNTIME_DIR={place['AGENTX_RUNTIME_DIR']} {opens}")
    assert "http://" not in inside(f"env -i AGENTX_NO_SERVER=1 {opens}")
    assert page.get("memory/c-2")["item"]["status"] == "active"
    words = ["sh", "-c", f"{asks} overview"]
    outside = subprocess.run(words, capture_output=True, text=True, check=True)
    assert outside.stdout.split() == ["200"]


PARK = """
import array, json, os, socket, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
act = json.dumps({"what": "retire", "id": "c-2", "seq": 99})
head = f"Host: {url.netloc}\\r\\nAuthorization: Bearer {url.fragment}\\r\\nConnection: close\\r\\n"
read = f"GET /inspect/api/{sys.argv[2]}/overview HTTP/1.1\\r\\n{head}\\r\\n"
write = f"POST /inspect/api/{sys.argv[2]}/act HTTP/1.1\\r\\n{head}Content-Type: application/json\\r\\n"
write += f"Content-Length: {len(act)}\\r\\n\\r\\n{act}"
for request in (read, write):
    ours, theirs = socket.socketpair()
    one = socket.create_connection((url.hostname, url.port))
    name = f":{one.getsockname()[1]:04X}"
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno()]))])
    start, rest = request[:-1].encode(), request[-1:].encode()
    one.sendall(start)
    there = one.detach()
    dup = os.dup(there)
    os.write(dup, rest)
    os.close(there), os.close(dup)  # now it lies in the queue of a socket, and no process holds it
    while not any(f[1].endswith(name) and f[4][-8:] != "00000000" for f in map(str.split, open("/proc/net/tcp"))):
        pass
    found = array.array("i", [0])
    got = theirs.recvmsg(1, socket.CMSG_SPACE(4))[1]
    found.frombytes(got[0][2])
    print(socket.socket(fileno=found[-1]).recv(12).split()[1].decode())
"""
"""Asks over a connection that no process holds while the server looks for who does."""


def test_a_connection_that_no_process_holds_is_an_agents_runs(page, client, root, place, tmp_path):
    client.call("say", workspace=root, text="Never create a setup.py file.")
    script = tmp_path / "park.py"
    script.write_text(PARK)
    told = run_process(
        ["sh", "-c", f"env -i {sys.executable} {script} '{page.url.geturl()}' {page.w}"],
        cwd=tmp_path,
        env={"PATH": place["PATH"]},
        cookie="a-run",
        timeout_s=60,
        max_output_bytes=10_000,
    ).output
    assert told.split() == ["403", "403"]
    assert page.get("memory/c-2")["item"]["status"] == "active"


def test_a_connection_that_is_closed_already_is_refused():
    # Another process holds it, as in life: where an agent's run goes on, only such a one is looked at.
    connect = "import socket, sys; one = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with subprocess.Popen([sys.executable, "-c", connect, str(port)], stdin=subprocess.PIPE) as other:
            ours, client = server.accept()
            assert not TcpPeers().inside_run(client, port)
        assert other.returncode == 0
        assert TcpPeers().inside_run(client, port)
        ours.close()


def test_the_method_is_refused_with_odd_parameters(client, root):
    for given in ([], ["relative"], [root] * 51, "text", None, [root + "\0"], ["/"]):
        with pytest.raises(RequestFailed):
            client.call("inspect.open", workspaces=given)


def wait_until_gone(pid):
    """Wait until a process that is nobody's child has ended."""
    with suppress(OSError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.05)


def test_a_new_server_knows_no_old_token(place, root):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environ = {**place, "AGENTX_SERVER_HTTP": port}
    with Client.connect(environ):
        old = opened(environ, root)
    assert str(old.url.port) == port
    with Client.connect(environ, start=False) as client:
        pid = client.call("hello")["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    with Client.connect(environ):
        fresh = opened(environ, root)
    assert str(fresh.url.port) == port
    assert fresh.get("overview")["seq"] == 1
    assert "agentx inspect" in old.get("overview", 401)["error"]


def test_a_workspace_that_is_not_trusted_is_shown_and_nothing_in_it_is_changed(server, place, root, tmp_path):
    with Workspace.open(root) as ws:
        ws.say("Never create a setup.py file.")
    page = opened({**place, "AGENTX_STATE_DIR": str(tmp_path / "somebody else")}, root)
    shown = page.get("overview")
    assert "agentx trust" in shown["read_only"]
    assert "c-2" in page.get("context")["text"]
    assert "Nothing was changed" in page.act(403, what="retire", id="c-2", seq=99)["error"]
    assert page.get("overview")["seq"] == shown["seq"]


def test_a_client_that_does_not_read_is_not_read_ahead_for(page, root):
    with closing(http.client.HTTPConnection(page.url.hostname, page.url.port, timeout=60)) as connection:
        connection.request(
            "GET", f"{API}/{page.w}/stream?after=0", headers={"authorization": f"Bearer {page.token}"}
        )
        answer = connection.getresponse()
        text = "Note this: " + "word " * 40
        with Workspace.open(root) as ws, ws.bulk():
            for number in range(1_500):
                ws.say(f"{text}{number}.")
        assert page.get("overview")["counts"]["UserMessageSent"] == 1_500
        rows = 0
        while rows < 1_501:
            rows += answer.readline().startswith(b"data: ")


def test_without_a_server_the_command_serves_the_page_itself(place, root):
    words = [sys.executable, "-P", "-m", "agentx", "inspect", root, "--no-open", "--json"]
    environ = {**place, "AGENTX_NO_SERVER": "1"}
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(4)]
        page = Page(json.loads("".join(lines))["url"])
        found = json.loads(page.send("GET", f"{API}/workspaces")[2])["workspaces"]
        page.w = found[0]["id"]
        assert page.get("overview")["title"] == "A task"
        assert page.send("POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "hello"})[0] == 404
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_few_tokens_are_kept_and_the_least_used_ends():
    grants = Grants()
    first = grants.issue([], Settings())
    for _ in range(63):
        grants.issue([], Settings())
    grants.find(f"Bearer {first}")
    for _ in range(63):
        grants.issue([], Settings())
    assert grants.find(f"Bearer {first}")
    grants.issue([], Settings())
    grants.issue([], Settings())
    second = grants.issue([], Settings())
    for _ in range(64):
        grants.issue([], Settings())
    with pytest.raises(InspectorError):
        grants.find(f"Bearer {second}")


def test_the_browser_is_opened_where_there_is_a_screen_and_only_if_asked_for(server, place, root, tmp_path):
    browser, got = tmp_path / "browser", tmp_path / "got"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {got}\n')
    browser.chmod(0o700)
    words = [sys.executable, "-P", "-m", "agentx", "inspect", root]
    without = {name: value for name, value in place.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}

    def call(*more, **environ):
        return subprocess.run(
            [*words, *more], env={**without, **environ}, capture_output=True, text=True, check=True
        )

    opened = call(BROWSER=f"{browser} %s").stdout.strip()
    assert got.read_text().strip() == opened
    assert "open the address yourself" in call().stderr
    assert "yourself" not in call("--no-open", BROWSER=f"{browser} %s").stderr
    assert len(got.read_text().split()) == 1
