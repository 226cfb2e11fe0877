"""HTTP on the loopback address: only whoever has the token, and no web page."""

import http.client
import json
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentx.client.client import Client
from agentx.server.http import HttpAccess, HttpRefusedError, body_length

ACCESS = HttpAccess(8000, "secret")
GOOD = {
    "Host": "127.0.0.1:8000",
    "Authorization": "Bearer secret",
    "Content-Type": "application/json",
    "Content-Length": "5",
}


def head(line="POST /rpc HTTP/1.1", **other):
    fields = {**GOOD, **{name.replace("_", "-"): value for name, value in other.items()}}
    return "\r\n".join([line, *(f"{name}: {value}" for name, value in fields.items() if value)]).encode(
        "latin-1"
    )


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (head(Host="evil.example:8000"), 403),
        (head(Host=""), 403),
        (head(Origin="https://evil.example"), 403),
        (head(Origin="null"), 403),
        (head(Authorization=""), 401),
        (head(Authorization="Bearer other"), 401),
        (head(Authorization="Basic secret"), 401),
        (head("GET /rpc HTTP/1.1"), 405),
        (head("OPTIONS /rpc HTTP/1.1"), 405),
        (head("POST / HTTP/1.1"), 404),
        (head("POST /rpc HTTP/2"), 400),
        (head("POST /rpc"), 400),
        (head(Content_Type="text/plain"), 415),
        (head(Content_Length=""), 411),
        (head(Content_Length="-1"), 411),
        (head(Content_Length="9" * 5_000), 413),
        (head(Content_Length="99999999"), 413),
        (head(Transfer_Encoding="chunked"), 400),
        (head() + b"\r\nhost: evil.example", 400),
        (head(Host="127.0.0.1:8000\xff"), 400),
        (b"", 400),
        (b"\x16\x03\x01\x02", 400),
    ],
)
def test_a_request_that_is_not_of_a_program_of_the_user_is_refused(given, status):
    with pytest.raises(HttpRefusedError) as caught:
        body_length(given, ACCESS)
    assert caught.value.status == status


def test_a_request_with_the_token_is_read():
    assert body_length(head(), ACCESS) == 5
    assert body_length(head(Host="localhost:8000", Origin="http://localhost:8000"), ACCESS) == 5


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
