"""HTTP on the loopback address: only whoever has the token, and no web page."""

import http.client
import json
import socket
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentx.client.client import Client
from agentx.server.http import HttpAccess, HttpRefusedError, require_user, rpc_length

ACCESS = HttpAccess(8000, "secret")
GOOD = {
    "host": "127.0.0.1:8000",
    "authorization": "Bearer secret",
    "content-type": "application/json",
    "content-length": "5",
}


def length(method="POST", more=(), **other):
    """The length that a request to /rpc announces, with other headers than a good one; empty ones are left out."""
    fields = {**GOOD, **{name.replace("_", "-"): value for name, value in other.items()}}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in fields.items() if value]
    scope = {"method": method, "headers": [*pairs, *more]}
    return rpc_length(scope, require_user(scope, ACCESS))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"host": "evil.example:8000"}, 403),
        ({"host": ""}, 403),
        ({"host": "127.0.0.1:8000\xff"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer other"}, 401),
        ({"authorization": "Bearer s\xe9cret"}, 401),
        ({"authorization": "Basic secret"}, 401),
        ({"method": "GET"}, 405),
        ({"method": "OPTIONS"}, 405),
        ({"content_type": "text/plain"}, 415),
        ({"content_length": ""}, 411),
        ({"content_length": "-1"}, 411),
        ({"content_length": "9" * 5_000}, 413),
        ({"content_length": "99999999"}, 413),
        ({"transfer_encoding": "chunked"}, 400),
        ({"more": [(b"host", b"evil.example")]}, 400),
    ],
)
def test_a_request_that_is_not_of_a_program_of_the_user_is_refused(given, status):
    with pytest.raises(HttpRefusedError) as caught:
        length(**given)
    assert caught.value.status == status


def test_a_request_with_the_token_is_read():
    assert length() == 5
    assert length(host="localhost:8000", origin="http://localhost:8000") == 5


@pytest.fixture
def access(place):
    """Where a server answers over HTTP, and with which token."""
    with Client.connect({**place, "AGENTX_SERVER_HTTP": "0"}):
        file = Path(place["AGENTX_RUNTIME_DIR"]) / "http.json"
        for _ in range(200):
            if file.exists():
                break
            time.sleep(0.05)
        yield HttpAccess(**json.loads(file.read_text()))


def sent(access, data):
    """What the server answers to bytes on a connection of their own, until it closes it."""
    with socket.create_connection(("127.0.0.1", access.port), timeout=60) as one:
        one.sendall(data)
        heard = b""
        while piece := one.recv(1 << 16):
            heard += piece
        return heard


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("POST /rpc HTTP/1.1", b"200"),
        ("POST /rpc?a=b HTTP/1.1", b"200"),
        ("POST / HTTP/1.1", b"404"),
        ("POST /rpc/ HTTP/1.1", b"404"),
        ("POST /rpc", b"400"),
        ("\x16\x03\x01\x02", b"400"),
    ],
)
def test_a_request_is_answered_by_its_path_and_the_connection_closed(access, line, status):
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "hello"}'
    head = {**GOOD, "host": f"127.0.0.1:{access.port}", "authorization": f"Bearer {access.token}"}
    head["content-length"] = str(len(body))
    rows = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    answer = sent(access, f"{line}\r\n{rows}\r\n".encode("latin-1") + body)
    assert answer.split(b" ")[1] == status
    assert (b'"pid"' in answer) == (status == b"200")


def test_a_client_that_leaves_has_its_request_cancelled(access, place, root):
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "events",
            "params": {"workspace": root, "after": 0, "follow": True},
        }
    ).encode()
    head = {**GOOD, "host": f"127.0.0.1:{access.port}", "authorization": f"Bearer {access.token}"}
    head["content-length"] = str(len(body))
    rows = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    with Client.connect(place, start=False) as client:
        with socket.create_connection(("127.0.0.1", access.port), timeout=60) as one:
            one.sendall(f"POST /rpc HTTP/1.1\r\n{rows}\r\n".encode() + body)
            while b"WorkspaceCreated" not in one.recv(1 << 16):
                pass
            assert client.call("server.status")["followers"] == 1
        for _ in range(200):
            if not client.call("server.status")["followers"]:
                break
            time.sleep(0.05)
        assert client.call("server.status")["followers"] == 0
        assert client.call("server.status")["connections"] == 2


def test_the_protocol_over_http(place, root):
    with Client.connect({**place, "AGENTX_SERVER_HTTP": "0"}) as client:
        file = Path(place["AGENTX_RUNTIME_DIR"]) / "http.json"
        for _ in range(100):
            if file.exists():
                break
            time.sleep(0.05)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        access = json.loads(file.read_text())

        def ask(body, token=access["token"]):
            with closing(http.client.HTTPConnection("127.0.0.1", access["port"], timeout=60)) as one:
                one.request(
                    "POST",
                    "/rpc",
                    body,
                    {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                )
                answer = one.getresponse()
                return answer.status, [json.loads(line) for line in answer.read().splitlines()]

        say = {"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"workspace": root, "text": "Use tabs."}}
        status, (said,) = ask(json.dumps(say))
        assert (status, said["result"]["actor"]) == (200, "user")
        status, lines = ask(json.dumps({**say, "method": "verify", "params": {"workspace": root}}))
        assert lines[0]["method"] == "progress"
        assert lines[-1]["result"]
        assert ask("{")[1][0]["error"]["code"] == -32700
        assert ask(json.dumps(say), token="wrong")[0] == 401
        assert client.call("hello")["pid"]
        client.call("server.stop")
    for _ in range(200):
        if not file.exists():
            break
        time.sleep(0.05)
    assert not file.exists()
