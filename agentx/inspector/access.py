"""Who may ask the inspector, and what every response says about itself to the browser.

A token opens the inspector alone, for named workspaces alone. It is kept in memory only: a server that
starts anew knows no old one. Whoever sends it counts as the user; no web page can have its browser send it.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b, sha256
from pathlib import Path

import msgspec

from agentx.fleet.place import Place
from agentx.settings import Settings
from agentx.storage.errors import AgentXError

MOST_GRANTS = 64
"""Maximum number of tokens; the one that was used least recently ends."""

_TOKEN_BYTES = 32

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every response over HTTP, whatever its status; the listener adds them."""

KEY_SHOWN = "key_shown"
"""What the listener puts into the state of a request: call it once the request has shown a valid key."""

_DECISIVE = ("host", "origin", "authorization", "sec-fetch-site", "content-type")
"""Headers that decide whether a request is served: each is given once at most."""

_OWN_SITE = {"", "same-origin", "none"}
"""``Sec-Fetch-Site`` of the page itself, of the address bar, and of programs that are no browser."""


class InspectorError(AgentXError):
    """A request that the inspector does not carry out.

    Attributes:
        status: The status of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Grant(msgspec.Struct, frozen=True, eq=False):
    """What one token opens.

    Attributes:
        roots: The directories of the workspaces, by the short id that the API uses.
        settings: The settings of the user who asked for the token.
        fleet: The fleet that it shows; ``None`` for none.
    """

    roots: dict[str, Path]
    settings: Settings
    fleet: Place | None = None

    def root(self, name: str) -> Path:
        """Return the directory of a workspace.

        Raises:
            InspectorError: The token is not for it.
        """
        if name not in self.roots:
            raise InspectorError(404, f"This page was not opened for a workspace {name!r}: {AGAIN}")
        return self.roots[name]


AGAIN = "run `agentx inspect` there, and use the address that it prints."
"""What to do about a token that does not open something."""


class Grants:
    """The tokens that are valid."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Grant] = OrderedDict()
        self._lock = threading.Lock()

    def issue(self, roots: Sequence[Path], settings: Settings, fleet: Place | None = None) -> str:
        """Return a new token for some workspaces, and a fleet."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            self._known[_digest(token)] = Grant({short_id(root): root for root in roots}, settings, fleet)
            while len(self._known) > MOST_GRANTS:
                self._known.popitem(last=False)
        return token

    def find(self, authorization: str) -> Grant:
        """Return what the token of a request opens.

        Only digests are compared, so that the time this takes tells nothing about a valid token.

        Raises:
            InspectorError: There is no valid token.
        """
        scheme, _, token = authorization.partition(" ")
        digest = _digest(token)
        with self._lock:
            found = self._known.get(digest) if scheme == "Bearer" else None
            if found is None:
                raise InspectorError(401, f"The key of this page is not, or no longer, valid: {AGAIN}")
            self._known.move_to_end(digest)
            return found


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def short_id(root: Path) -> str:
    """Return the short id of a workspace: the same in every session, and no path."""
    return blake2b(str(root).encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()


def require_own_page(
    method: str, headers: Iterable[tuple[bytes, bytes]], hosts: set[str], *, static: bool
) -> None:
    """Check that a request was not sent by a web page, before anything of it is read.

    Args:
        method: The method of HTTP.
        headers: Its headers, names in lower case.
        hosts: The values of ``Host`` that lead here.
        static: Whether it asks for a file of the page, which any link may lead to: it holds no data.

    Raises:
        InspectorError: A page or a name of another origin sent it, or its headers are ambiguous.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        text = name.decode("latin-1")
        if text in found and text in _DECISIVE:
            raise InspectorError(400, f"The header {text} is given twice.")
        found[text] = value.decode("latin-1")
    if found.get("host") not in hosts:
        raise InspectorError(403, "The inspector answers at 127.0.0.1 and localhost, by no other name.")
    if found.get("origin", "") not in {"", f"http://{found['host']}"}:
        raise InspectorError(403, "Another web page sent this request.")
    followed = static and method == "GET" and found.get("sec-fetch-mode") == "navigate"
    if found.get("sec-fetch-site", "") not in _OWN_SITE and not followed:
        raise InspectorError(403, "Another web page sent this request.")
