"""Which code a client and a server run; a server of other code finishes and makes room."""

import os

from agentx import __version__


def identity() -> str:
    """Return the version and the directory of this package.

    Whether the files there have changed since the server loaded them, the server finds out itself: a client
    would need a millisecond for it at every start.
    """
    return f"{__version__} {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}"
