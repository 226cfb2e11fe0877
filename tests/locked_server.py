"""A server over HTTP that wants a password, remembers what it was given, and lets nobody in."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Locked(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.given.append(self.headers.get("Authorization"))
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def locked_server():
    """Yield the server; ``given`` has the ``Authorization`` of each request."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Locked)
    server.given = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
