"""Foreign text: decode it, make it encodable, and strip what could control a terminal."""

import re

BINARY_BYTES = 8_000
"""Number of leading bytes that are checked for a NUL, as in Git, to detect binary content."""

_LOGIN = re.compile(r"(://[^/@:\s]*):(?!\d{1,5}/)\S*@")
_IN_QUERY = re.compile(r"([?&][a-z]*password=)[^&\s]*", re.IGNORECASE)


def is_binary(data: bytes) -> bool:
    """Return whether the content is binary by Git's rule: a NUL byte near its start."""
    return b"\0" in data[:BINARY_BYTES]


def decoded(data: bytes) -> str | None:
    """Decode the content as UTF-8; ``None`` if it is binary or not valid UTF-8."""
    try:
        return None if is_binary(data) else data.decode()
    except UnicodeDecodeError:
        return None


def text_of(data: bytes) -> str:
    """Return the searchable text of a content; empty if it is binary."""
    return "" if is_binary(data) else data.decode("utf-8", "replace")


def encodable(text: str) -> str:
    r"""Return the text in a form that UTF-8 can encode.

    Adjacent halves of a surrogate pair are joined; other surrogates become U+FFFD.

    >>> encodable("caf\udce9 \ud83d\ude00")
    'caf� 😀'
    """
    return (
        text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def plain(text: str) -> str:
    r"""Remove what could control a terminal: control characters and marks that reverse the text direction.

    Line breaks are kept, other white space becomes spaces, and lone surrogates become U+FFFD.

    >>> plain("one\x1b[2J two\u202e\n\tthree")
    'one[2J two\n    three'
    """
    if text.isprintable():
        return text
    text = encodable(text).replace("\r\n", "\n").replace("\t", "    ")
    return "".join(
        letter if letter == "\n" or letter.isprintable() else " " * letter.isspace() for letter in text
    )


def without_passwords(text: str) -> str:
    """Replace the passwords of URLs, whatever characters they have.

    >>> without_passwords("postgresql://me:a/b@c@host:5432/db?sslpassword=x&y=1")
    'postgresql://me:…@host:5432/db?sslpassword=…&y=1'
    >>> without_passwords("https://host:8443/~me@work")
    'https://host:8443/~me@work'
    """
    return _IN_QUERY.sub(r"\1…", _LOGIN.sub(r"\1:…@", text))


def one_line(text: str) -> str:
    r"""Like :func:`plain`, on one line with single spaces.

    >>> one_line(" one\x85\n two\0\u202e ")
    'one two'
    """
    return " ".join(plain(text).split())


def sized(count: int) -> str:
    """Return a number of bytes in the largest unit that is not rounded much.

    >>> sized(900), sized(20_000), sized(12_500_000), sized(3_000_000_000)
    ('900 bytes', '20 kB', '12.5 MB', '3 GB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def folded(text: str) -> str:
    """Return a text in lower case on one line with single spaces, to compare it with another."""
    return " ".join(text.casefold().split())


def clip(text: str, most: int) -> str:
    """Cut a text to a number of characters, with an ellipsis if something was cut.

    >>> clip("one two", 7), clip("one two", 4)
    ('one two', 'one…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


_BYTES_A_WORD = 20
"""Average bytes allowed per word of a short form: a text without spaces must not count as one long word."""


def shorten(text: str, max_words: int = 15) -> str:
    """Cut a text to its first words, with an ellipsis if something was cut.

    >>> shorten("one two three", max_words=2)
    'one two …'
    """
    words = text.split(maxsplit=max_words)
    first = " ".join(words[:max_words])
    most = max_words * _BYTES_A_WORD
    kept = first.encode(errors="replace")[:most].decode(errors="ignore").rstrip()
    return kept if kept == first and len(words) <= max_words else f"{kept} …"
