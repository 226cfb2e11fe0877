"""A client that sends a request slowly keeps no connection over HTTP, be it its first request or a later one."""

import asyncio

import pytest

from agentx.server import http

HEAD = b"POST /inspect/ HTTP/1.1\r\nHost: x\r\n"


async def answer(_scope, _receive, send):
    """Answer at once, without looking at the body."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def asked(port, *parts):
    """What a client hears that sends some bytes, and then one after the other without an end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = b""
    for part in parts:
        writer.write(part)
        if part.endswith(b"\r\n\r\n"):
            heard += await reader.readuntil(b"ok")
    try:
        while True:
            writer.write(b"a")
            try:
                async with asyncio.timeout(0.05):
                    if not await reader.read(1 << 10):
                        return heard
            except TimeoutError:
                pass
    except OSError:
        return heard
    finally:
        writer.transport.abort()


SLOW = {
    "the first request": ([HEAD], 0),
    "a later request": ([HEAD + b"Content-Length: 0\r\n\r\n", HEAD], 1),
    "a body that nobody reads": ([HEAD + b"Content-Length: 60000\r\n\r\n"], 1),
    "a body after another request": (
        [HEAD + b"Content-Length: 0\r\n\r\n", HEAD + b"Content-Length: 9999\r\n\r\n"],
        2,
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_request_that_never_ends_ends_its_connection(monkeypatch, name):
    parts, answers = SLOW[name]
    monkeypatch.setattr(http, "SLOW_S", 0.2)

    async def main():
        listener = http.HttpListener(None, asyncio.get_running_loop(), answer, answer)
        await listener.listen(0)
        async with asyncio.timeout(30):
            heard = await asked(listener.port, *parts)
        listener.close()
        return heard

    assert asyncio.run(main()).count(b"HTTP/1.1 200") == answers
