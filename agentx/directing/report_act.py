"""Tell the process of the run that an act was done: what ``agentx done`` is inside a run.

Runs as a separate program, ``python -I -S report_act.py PLACE WORD…``, so that it starts in an instant. It
uses only the standard library.
"""

import os
import socket
import sys
from collections.abc import Sequence

SOCKET = "socket"
NOBODY = 75
"""Exit status if the process of the run does not answer. The caller records the act itself then."""

_ANSWER_BYTES = 1 << 16
_END = b"\0"


def ask(place: str, words: Sequence[str]) -> tuple[int, str]:
    """Send the words of a report.

    Args:
        place: Directory of the run's socket.
        words: The arguments of ``agentx done``.

    Returns:
        The exit status and the sentence to print.
    """
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(os.path.join(place, SOCKET))
            connection.sendall(request(words))
            while part := connection.recv(_ANSWER_BYTES):
                answer += part
        except OSError:
            pass
    status, found, text = answer.partition(b" ")
    return (int(status), text.decode()) if found else (NOBODY, "")


def request(words: Sequence[str]) -> bytes:
    """Return the request that says these words: its length, then a NUL behind each word."""
    content = b"".join(os.fsencode(word) + _END for word in words)
    return b"%d\n" % len(content) + content


def words_of(heard: bytes) -> list[bytes] | None:
    """Return the words of a request; ``None`` while it is not complete.

    >>> words_of(request(["offer", ""])), words_of(request(["offer", ""])[:-1])
    ([b'offer', b''], None)
    """
    length, _, content = heard.partition(b"\n")
    return content.split(_END)[:-1] if length == b"%d" % len(content) else None


if __name__ == "__main__":
    status, text = ask(sys.argv[1], sys.argv[2:])
    os.write(2 if status in (1, 2) else 1, f"{text}\n".encode() if text else b"")
    sys.exit(status)
