"""Text of others: what of it can be kept, and what of it can be shown without steering a terminal."""

BINARY_BYTES = 8_000
"""So much of a content is looked at, as Git does, to tell whether it is binary."""


def is_binary(data: bytes) -> bool:
    """Whether a content is binary, by Git's rule: a NUL stands near its start."""
    return b"\0" in data[:BINARY_BYTES]


def decoded(data: bytes) -> str | None:
    """The text of a content; ``None`` where it is binary or no UTF-8."""
    try:
        return None if is_binary(data) else data.decode()
    except UnicodeDecodeError:
        return None


def encodable(text: str) -> str:
    r"""A text that UTF-8 can hold: halves of a surrogate pair are joined where they meet, others become U+FFFD.

    >>> encodable("caf\udce9 \ud83d\ude00")
    'caf� 😀'
    """
    return (
        text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def plain(text: str) -> str:
    r"""A text without what could steer a terminal: control characters and marks that reverse its direction.

    Lines stay lines, other white space becomes spaces, and lone surrogates U+FFFD.

    >>> plain("one\x1b[2J two\u202e\n\tthree")
    'one[2J two\n    three'
    """
    if text.isprintable():
        return text
    text = encodable(text).replace("\r\n", "\n").replace("\t", "    ")
    return "".join(
        letter if letter == "\n" or letter.isprintable() else " " * letter.isspace() for letter in text
    )


def one_line(text: str) -> str:
    r"""The same in one line, with single spaces.

    >>> one_line(" one\x85\n two\0\u202e ")
    'one two'
    """
    return " ".join(plain(text).split())
