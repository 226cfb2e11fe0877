"""The quick check that ends the search in most texts: is there a sign without which no rule can match?

Every sign is searched for here, so that a text without a secret passes no other module.
"""

import re

from agentx.storage.secrets.secret_formats import HEADS, RUN
from agentx.storage.secrets.wrapping import BASE32, BASE64, FULLWIDTH, INVISIBLE, LOST

WORDS = ("pass", "pwd", "secret", "token", "key", "credential", "psk", "securestring")
"""Keywords, in lower case, that occur in the names of secret values."""

_ANCHORS = (
    *WORDS[1:],
    *("private key", "private-lines", "@", "auth", "bearer ", "/p:", "sudo ", "<<<", "cookie"),
    *("identified", "net u", "encrypt_s", "add_user", "/bot", "kty"),
)
"""Every text in which a context rule finds something contains one of these, or ``pass``."""

_FLAGS = re.compile(r"-(?<=[\sn\"'\\]-)(?:[pPawkuUAXb]|-(?:user|proxy-user|stdin))")
_PORTS = re.compile(r":(?:[0-9]{2,5}|\*):[^\s:0-9]")
_BASE64_RUN = re.compile("[0-9A-Za-z]{14}")

_HIDDEN = re.compile(f"[{INVISIBLE}{FULLWIDTH}]")
_TRACES = re.compile(
    rf"[\\%&^'=[{INVISIBLE}{FULLWIDTH}]"
    r"(?:(?<=\\)(?:u[0-9a-fA-F]{4}|\\[uxe0-9\"'/\n]|[\"'](?<=\w..)(?=\w)|n(?<=\\\\\n))"
    r"|(?<=%)(?:25)*[0-9a-fA-F]{2}"
    r"|(?<=&)#?\w{2,8};|(?<=\^)\[\[|(?<=\w')\w|(?<==)(?:3D|\\n)|(?<=\[)[0-9;]{1,12}m"
    rf"|(?<=[{INVISIBLE}{FULLWIDTH}]))"
)
_HARD = re.compile(
    r"\\(?:u[0-9a-fA-F{]|U0|x[0-9a-fA-F]{2}|e\[|[01][0-7]{2}|\r?\n)"
    r"|%(?:25)*[2-7][0-9a-fA-F]|&\#?\w{2,8};|\^\[\["
    r"|=(?:3D|\r?\n)|''(?<=\w'')(?=\w)|\"\"(?<=\w\"\")(?=\w)"
)
_STARTS = tuple(head for head, _ in HEADS)
_UNUSUAL = str.maketrans("\n\r\t", "   ")

_SHAPE = bytes(ord(" " if bytes((one,)).isspace() else "x") for one in range(256))
_LONG = b"x" * 20


def may_hold(text: str) -> bool:
    """Return whether a rule may find something in a text, or in a view of it."""
    if _has_sign(text) or _HARD.search(text) or ("[" in text and LOST.search(text)):
        return True
    if text.isascii():
        return not text.translate(_UNUSUAL).isprintable()
    return _HIDDEN.search(text) is not None


def may_hold_json(text: str) -> bool:
    """Return whether a rule may find something in a text, given as JSON, or in a view of it.

    Encoding as JSON does not change the keywords and signs that the rules need.
    """
    return _has_sign(text) or _TRACES.search(text) is not None


def _has_sign(text: str) -> bool:
    """Return whether a text contains a keyword, a flag, a port, the prefix of a token, or base64."""
    lowered = lower(text)
    for word in _ANCHORS:  # a loop: a generator takes three times as long
        if word in lowered:
            return True
    if "pass" in lowered and lowered.count("pass") > lowered.count("passed"):
        return True
    if ("-" in text and _FLAGS.search(text)) or (":" in text and _PORTS.search(text)):
        return True
    words = long_words(text)
    if RUN.search(words) is not None:
        for head in _STARTS:
            if head in words:
                return True
    return may_encode(words)


def may_encode(words: str) -> bool:
    """Return whether one of the long words of a text can be base64 or base32."""
    return _BASE64_RUN.search(words) is not None and bool(BASE64.search(words) or BASE32.search(words))


def lower(text: str) -> str:
    """Lower-case a text, character for character.

    ``İ`` is replaced first: it is the only letter whose lower case is two characters.
    """
    return text.replace("İ", "I").lower()


def long_words(text: str) -> str:
    """Return the words of a text that may be long enough for a format, joined by spaces."""
    # On UTF-8 bytes, where long words are found without looking at each word.
    found: list[bytes] = []
    data = text.encode("utf-8", "surrogatepass")
    shape = data.translate(_SHAPE)
    start = shape.find(_LONG)
    while start >= 0:
        end = shape.find(b" ", start)
        end = len(shape) if end < 0 else end
        found.append(data[start:end])
        start = shape.find(_LONG, end)
    return b" ".join(found).decode("utf-8", "surrogatepass")
