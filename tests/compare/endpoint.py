"""A server on this machine that speaks OpenAI's protocol, so that every product gets the same vectors and no cloud is asked.

``/hash/v1`` embeds by a hash of the text, which costs nothing and means nothing; ``/minilm/v1`` by the installed MiniLM. The model
notes everything that it is handed as a memory: the product's own pipeline alone decides what that is.
"""

import hashlib
import json
import random
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.eval.ranked import embed

_DIMENSIONS = 384
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def serving() -> Iterator[str]:
    """Yield the address without a path while the body runs."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def hashed(text: str) -> list[float]:
    """Return a unit vector that depends on the text alone."""
    draw = random.Random(hashlib.sha256(text.encode()).digest())
    made = [draw.gauss(0, 1) for _ in range(_DIMENSIONS)]
    length = sum(value * value for value in made) ** 0.5
    return [value / length for value in made]


def noted(prompt: str) -> list[str]:
    """Return each sentence of the new messages in a prompt; nothing from a prompt without such a part.

    >>> noted("## New Messages\\nuser: I am here. Go on!\\n\\n## Current Date\\n2026")
    ['I am here.', 'Go on!']
    """
    part = re.search(r"^## New Messages\n(.*?)(?=^## |\Z)", prompt, re.DOTALL | re.MULTILINE)
    lines = re.sub(r"^\w+: ", "", part[1].strip(), flags=re.MULTILINE).splitlines() if part else []
    return [one for line in lines for one in re.split(r"(?<=[.!?])\s+", line) if one.strip()]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, _request: object, _address: object) -> None:
        """Say nothing: a client that was killed closes its connection in the middle."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
            found = [
                {"object": "embedding", "index": number, "embedding": vector}
                for number, vector in enumerate(self._vectors(texts))
            ]
            self._answer({"object": "list", "model": "local", "data": found, "usage": _USAGE})
        elif self.path.endswith("/chat/completions"):
            prompt = "\n".join(
                str(one.get("content") or "") for one in asked["messages"] if one["role"] == "user"
            )
            memories = [
                {"id": str(number), "text": text, "attributed_to": "user"}
                for number, text in enumerate(noted(prompt))
            ]
            message = {"role": "assistant", "content": json.dumps({"memory": memories})}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            made = {"id": "1", "object": "chat.completion", "created": 0, "model": "local"}
            self._answer({**made, "choices": [choice], "usage": _USAGE})
        else:
            self.send_error(404)

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        if "/minilm/" not in self.path:
            return [hashed(text) for text in texts]
        with _ONE_AT_A_TIME:
            found = embed(texts)
        if found is None:
            raise RuntimeError("MiniLM is not installed: make model")
        return [[float(value) for value in vector] for vector in found]

    def _answer(self, made: dict) -> None:
        body = json.dumps(made).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
