"""A server of each test's own, a workspace with some history, and a page that asks over real HTTP."""

import http.client
import json
import subprocess
import sys
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.agentx.server.conftest import client, end, place, root, server

__all__ = ["client", "end", "page", "place", "root", "server"]


class Page:
    """What a browser would ask of the inspector."""

    def __init__(self, url):
        self.url = urlsplit(url)
        self.token = self.url.fragment
        self.w = ""

    def send(self, method, path, body=None, **headers):
        """The status, the headers and the body of an answer; an empty header is left out."""
        fields = {
            "authorization": f"Bearer {self.token}",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            fields.setdefault("content-type", "application/json")
        with closing(http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)) as connection:
            connection.request(method, path, body, {name: value for name, value in fields.items() if value})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def get(self, path, status=200):
        """The answer to a question about the workspace, as JSON."""
        found, _, body = self.send("GET", f"/inspect/api/{self.w}/{path}")
        assert found == status, body
        return json.loads(body)

    def stream(self, path):
        """The rows of the stream as they come."""
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        with closing(connection):
            connection.request(
                "GET", f"/inspect/api/{self.w}/{path}", headers={"authorization": f"Bearer {self.token}"}
            )
            answer = connection.getresponse()
            assert answer.getheader("content-type") == "text/event-stream"
            while line := answer.readline():
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def act(self, status=200, **act):
        """The answer to an act."""
        found, _, body = self.send("POST", f"/inspect/api/{self.w}/act", act)
        assert found == status, body
        return json.loads(body)


@pytest.fixture
def page(server, place, root):
    """The inspector of the workspace."""
    return opened(place, root)


def opened(place, *roots):
    """The inspector of some workspaces, as the command opens it; it asks about the first of them."""
    words = [sys.executable, "-P", "-m", "agentx", "inspect", *roots, "--no-open", "--json"]
    done = subprocess.run(words, env=place, capture_output=True, text=True, check=True)
    page = Page(json.loads(done.stdout)["url"])
    found = json.loads(page.send("GET", "/inspect/api/workspaces")[2])["workspaces"]
    page.w = next(one["id"] for one in found if one["path"] == roots[0])
    return page
