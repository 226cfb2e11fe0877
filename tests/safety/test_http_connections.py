"""Connections over HTTP that have shown no key keep nobody out who has one."""

import http.client
import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentx.client.client import Client
from agentx.client.place import runtime_dir
from tests.agentx.server.conftest import place, root  # noqa: F401 - fixtures

MANY = 150

SENT = {
    "nothing": b"",
    "half a head": b"POST /rpc HTTP/1.1\r\nHost: x\r\n",
    "a head and half a body": b"POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n{",
    "a request without a key": b"GET /inspect/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a wrong key": b"POST /rpc HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n",
}


@pytest.fixture
def access(place):  # noqa: F811 - the fixture
    """Port and token of a server that answers over HTTP."""
    with Client.connect({**place, "AGENTX_SERVER_HTTP": "0"}):
        file = Path(runtime_dir(place), "http.json")
        while not file.exists():
            time.sleep(0.05)
        yield json.loads(file.read_text())


def hello(access):
    """The status of a request with the key, on a connection of its own."""
    one = http.client.HTTPConnection("127.0.0.1", access["port"], timeout=60)
    headers = {"Authorization": f"Bearer {access['token']}", "Content-Type": "application/json"}
    one.request("POST", "/rpc", b'{"jsonrpc": "2.0", "id": 1, "method": "hello"}', headers)
    status = one.getresponse().status
    one.close()
    return status


@pytest.mark.parametrize("name", SENT)
def test_who_has_the_key_is_answered_beside_many_who_have_none(access, name):
    with ExitStack() as many:
        for number in range(MANY):
            one = many.enter_context(socket.create_connection(("127.0.0.1", access["port"])))
            if SENT[name]:
                one.sendall(SENT[name])
            if number % 10 == 0:
                assert hello(access) == 200
        assert [hello(access) for _ in range(20)] == [200] * 20


def test_a_connection_without_a_key_makes_room_when_it_is_not_young(access):
    with ExitStack() as many:
        old = [many.enter_context(socket.create_connection(("127.0.0.1", access["port"]))) for _ in range(40)]
        while True:  # each new one may end an old one
            many.enter_context(socket.create_connection(("127.0.0.1", access["port"])))
            old[0].settimeout(0.2)
            try:
                assert old[0].recv(1) == b""
                break
            except TimeoutError:
                continue
            except ConnectionResetError:
                break
        assert hello(access) == 200


def test_a_descriptor_is_left_beside_more_than_a_thousand(access):
    with ExitStack() as many:
        for _ in range(1_200):
            many.enter_context(socket.create_connection(("127.0.0.1", access["port"])))
        assert [hello(access) for _ in range(5)] == [200] * 5
