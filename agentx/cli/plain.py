"""Text of others, made fit for a terminal: what models, tools and files say must not steer it."""


def plain(text: str) -> str:
    r"""A text without control characters, marks that reverse its direction, and lone surrogates; lines stay lines.

    >>> plain("one\x1b[2J two\u202e\n\tthree")
    'one[2J two\n    three'
    """
    return "".join(
        letter for letter in readable(text).replace("\t", "    ") if letter == "\n" or letter.isprintable()
    )


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def readable(text: str) -> str:
    r"""A text as valid Unicode: a byte of an argument that is no UTF-8 reaches a program as a lone surrogate.

    >>> readable("caf\udce9")
    'caf�'
    """
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
