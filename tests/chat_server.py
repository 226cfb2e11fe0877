"""A server on this machine that speaks the OpenAI chat protocol, so that the real client is driven over real HTTP."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatServer(ThreadingHTTPServer):
    """Plays one prepared answer for each request, or answers all by a rule, and keeps the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[Callable[[_Handler], None]] = []
        self.rule: Callable[[dict[str, Any]], str] | None = None
        self.released = threading.Event()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def will_stream(self, *chunks: dict[str, Any] | str, done: bool = True) -> None:
        """A stream of chunks: text, a choice's delta, or raw words of the protocol after ``raw:``."""
        self.answers.append(lambda handler: handler.stream(chunks, done=done))

    def will_say(self, text: str) -> None:
        words = [{"content": word + " "} for word in text.split()]
        self.will_stream({"role": "assistant"}, *words, {"finish": "stop"}, {"usage": [11, 7]})

    def will_call(self, *calls: tuple[str, str, str], thought: str = "") -> None:
        deltas = [
            {
                "tool_calls": [
                    {"index": i, "id": id_, "type": "function", "function": {"name": n, "arguments": a}}
                ]
            }
            for i, (id_, n, a) in enumerate(calls)
        ]
        self.will_stream({"content": thought}, *deltas, {"finish": "tool_calls"}, {"usage": [11, 7]})

    def will_fail(self, status: int, message: str, **error: Any) -> None:
        body = json.dumps({"error": {"message": message, **error}})
        self.answers.append(lambda handler: handler.plain(status, body))

    def will_return(self, body: str) -> None:
        self.answers.append(lambda handler: handler.plain(200, body))

    def will_hang(self, *chunks: dict[str, Any] | str, drip: bool = False) -> None:
        """Send some chunks and then nothing, or (``drip``) comments that keep the connection busy."""
        self.answers.append(lambda handler: handler.hang(chunks, drip=drip))

    def embeds(self, count: int, vector: Callable[[str], list[float]]) -> None:
        self.answers += [lambda handler: handler.embed(vector)] * count


@contextmanager
def serving() -> Iterator[ChatServer]:
    """A server that runs while the body of the ``with`` does."""
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(self.body)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.rule:
            self.stream(
                ({"content": self.server.rule(self.body)}, {"finish": "stop"}, {"usage": [11, 7]}), done=True
            )
        else:
            self.server.answers.pop(0)(self)

    def plain(self, status: int, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, chunks: tuple[dict[str, Any] | str, ...], *, done: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(f"data: {self._chunk(chunk)}\n\n".encode())
            self.wfile.flush()
        if done:
            self.wfile.write(b"data: [DONE]\n\n")

    def hang(self, chunks: tuple[dict[str, Any] | str, ...], *, drip: bool) -> None:
        self.stream(chunks, done=False)
        while not self.server.released.wait(0.05):
            if drip:
                self.wfile.write(b": still thinking\n\n")
                self.wfile.flush()

    def embed(self, vector: Callable[[str], list[float]]) -> None:
        rows = [
            {"object": "embedding", "index": i, "embedding": vector(t)}
            for i, t in enumerate(self.body["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        # The protocol numbers the rows; their order is not promised.
        self.plain(200, json.dumps({"object": "list", "model": "m", "data": rows[::-1], "usage": usage}))

    def _chunk(self, chunk: dict[str, Any] | str) -> str:
        if isinstance(chunk, str):
            return chunk
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": self.body["model"]}
        if "usage" in chunk:
            prompt, completion = chunk["usage"]
            usage = {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            }
            return json.dumps({**head, "choices": [], "usage": usage})
        finish = chunk.get("finish")
        delta = {name: value for name, value in chunk.items() if name != "finish"}
        return json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
