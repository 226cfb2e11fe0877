"""Secrets behind a telling name, whatever a language, a form or a sentence puts between the two.

Here the syntax between a name and its value is not known: a declaration with a type, a call around the value,
a block of YAML, ``#define``, a flag, "is". So the value itself has to leave no doubt; see
:func:`agentx.storage.secrets.secret_values.is_sure`. What reads known syntax, and takes weaker values, is
:func:`agentx.storage.secrets.secret_contexts.named`.
"""

import re
from collections.abc import Iterator

from agentx.storage.secrets.secret_contexts import is_secret_name, names_secret
from agentx.storage.secrets.secret_values import (
    PASSWORD_LENGTH,
    Places,
    Span,
    finds,
    is_made_up,
    is_mixed,
    is_placeholder,
    is_sure,
    windows,
)

_TOKEN_LENGTH = 8

_END = re.compile(
    r"(?P<ending>word|wd|wort|phrase|code|(?<=credential)s)?"
    r"(?:[_-]?(?:key|base|value|string|str|b64|base64|text|prod|dev|test|old|new|root|admin|user|[0-9]{1,3})){0,2}"
    r"(?!\w)",
    re.IGNORECASE,
)
"""The rest of a name."""

_QUOTED = re.compile(
    r"(?P<close>\\{0,3}[\"'`]?[\])]{0,2})"
    # Up to the quote: a type, an operator, a call, flags. A lifetime of Rust has a quote of its own.
    r"(?P<gap>[ \t]{0,20}(?:,\s{0,20})?(?:[^\"'`\n;,$]|&'\w{1,16}[ ]){0,64}?)"
    r"(?:[rbufnlRBUFNL@$]{0,2}\#{0,3})"
    r"(?P<quote>\"\"\"|'''|\\{0,3}[\"'`]|\$\w{0,16}\$)(?:(?<=\"\"\"|''')\\?\r?\n[ \t]{0,80})?"
    r"(?P<value>[^\s\"'`]{4,512}?)\s{0,80}(?P=quote)"
)
_DECLARED = re.compile(r"[ \t]{0,20}[\w \t:<>&\[\].'*?|]{0,60}(?:=|:)[ \t]{0,20}|[ \t]{0,20}\(?")
_FLAGS = re.compile(r"(?:[ \t]{1,8}-\w{1,20}){0,4}[ \t]{1,8}")
_OPERATORS = re.compile(r"[=({:<,]")
_ANOTHER = re.compile(r"[{,][^=:]{0,60}\w[ \t]{0,4}[:=]|https?:|[?&][\w.-]{1,40}=")
"""A second name in between."""

_SENTENCE = re.compile(r"\w[ \t]{1,9}\w{1,40}[ \t]{1,9}\w")
_JOINED = re.compile(r"[\w.-]")
_ASSIGNING = ("=", ":")
_QUOTES = ("'", '"', "`")

_BARE = re.compile(
    r"(?P<close>\\{0,3}[\"'`])?[\])]?[*_]{0,3}(?:"
    r"(?P<operator>[ \t]{0,40}(?:[:=]?=>?|->|<-|[:|>\uff1a]|\.{3,80})[*_]{0,3}[ \t]{0,40}"
    r"(?:\r?\n[ \t]{1,40})?)"
    r"|[ \t]{1,40}(?:(?:is|was)(?:[ ]\w[\w@.-]{0,40}){0,5}(?::[ ]|[ ])|(?:-\w{1,20}[ \t]{1,8}){0,3}))"
    r"(?P<quote>\\{0,3}[\"'`])?(?P<value>[^\s\"'`,;&<>(){}\[\]|\\]{6,512})"
)
_HEX = re.compile(r"[0-9a-fA-F]{1,3000}")
_BLOCK = re.compile(
    r"[\"']?[ \t]{0,8}(?::[ \t]{1,8}(?:!\S{1,40}[ \t]{1,8})?[|>][-+0-9]{0,2}[ \t]{0,8}(?:\#[^\n]{0,99})?"
    r"|(?P<here>[=:(]{1,2}[ \t]{0,8}<<[-~]?[\"']?\w{1,40}[\"']?))\r?\n(?:[ \t]{0,80}\r?\n){0,3}"
)
_HERE_LINE = re.compile(r"([ \t]{0,80})([^\s\"'`]{4,512})[ \t]*\r?\n")
_NEXT_ELEMENT = re.compile(
    r"[:\s]{0,8}(?:</\w{1,10}>\s{0,40}){1,3}(?:<\w{1,10}[^<>]{0,100}>\s{0,20}){1,4}(?P<value>[^\s<>]{6,512})\s{0,20}<"
)
_BLOCK_LINE = re.compile(r"([ \t]{1,80})([^\s\"'`]{4,512})[ \t]*(?:\r?\n|\Z)")
_MOST_LINES = 200


def in_readings(text: str, _lowered: str, places: Places) -> Iterator[Span]:
    """Yield values that leave no doubt, behind a telling name and whatever stands in between."""
    for at, word in places:
        end = _END.match(text, at + len(word))
        if not end or not names_secret(text, at, word, end["ending"] or ""):
            continue
        name = word + (end["ending"] or "")
        shortest = PASSWORD_LENGTH if name.startswith(("pass", "pwd", "psk")) else _TOKEN_LENGTH
        at_end, constant = end.end(), text[at].isupper()
        verb = name == "pass" and not _JOINED.search(text, at - 1, at)
        span = (
            _block(text, at_end, shortest)
            or _quoted(text, at_end, name, shortest, constant=constant, verb=verb)
            or _bare(text, at_end, name)
            or _next_element(text, at_end)
        )
        if span:
            yield span


def _block(text: str, at: int, shortest: int) -> Span | None:
    """Find a block of YAML each of whose lines is one word (a value, or a folded one), or a here-document."""
    opened = _BLOCK.match(text, at)
    here = opened is not None and opened["here"]
    line = (_HERE_LINE if here else _BLOCK_LINE).match(text, opened.end()) if opened else None
    if not line or not is_made_up(line[2], shortest):
        return None
    if here:
        return line.span(2)
    start, end, indent = line.start(2), line.end(2), line[1]
    for _ in range(_MOST_LINES):
        line = _BLOCK_LINE.match(text, line.end())
        if not line or line[1] != indent:
            break
        end = line.end(2)
    return start, end


def _quoted(text: str, at: int, name: str, shortest: int, *, constant: bool, verb: bool) -> Span | None:
    """Find a value in quotes.

    Args:
        text: The text.
        at: The end of the name.
        name: Its keyword.
        shortest: Minimum length of the value.
        verb: Whether it is the word "pass" by itself.
        constant: Whether the name is one in capitals: a macro, a variable of the environment.
    """
    found = _QUOTED.match(text, at)
    if not found or not is_made_up(found["value"], shortest):
        return None
    gap, close = found["gap"], found["close"]
    if _ANOTHER.search(gap) or _SENTENCE.search(gap) or (verb and gap.lstrip()[:1] not in _ASSIGNING):
        return None
    # Behind a closing quote another attribute or argument begins.
    if close.rstrip("])")[-1:] in _QUOTES and gap.lstrip()[:1] not in (
        *_ASSIGNING,
        ",",
        ")",
        "]",
        ".",
        "?",
        "|",
        "<",
    ):
        return None
    if "," in gap and not close and not gap.rstrip().endswith("="):
        return None
    if not _OPERATORS.search(gap) and not _FLAGS.fullmatch(gap):
        return None
    declared = _DECLARED.fullmatch(gap) and ("=" in gap or constant or len(found["quote"]) > 2)  # noqa: PLR2004
    declared = declared or name == "securestring"
    # In quotes a question mark ends no question.
    return found.span("value") if declared or is_sure(found["value"].replace("?", "!")) else None


def _next_element(text: str, at: int) -> Span | None:
    """Find a value in the element of HTML after the one that ends with the name."""
    found = _NEXT_ELEMENT.match(text, at)
    return found.span("value") if found and is_sure(found["value"]) else None


def _bare(text: str, at: int, name: str) -> Span | None:
    """Find a value without quotes, or in those of a sentence."""
    found = _BARE.match(text, at)
    if not found:
        return None
    value = found["value"].rstrip(".:")
    end = found.start("value") + len(value)
    operator = found["operator"]
    sure = is_sure(value) or (name == "securestring" and is_mixed(value))
    if not sure or is_placeholder(value) or text[end : end + 1] in ("(", "[", "{"):
        return None
    # A verb, or the name of an object.
    if operator is None and (name == "pass" or found["close"] or _HEX.fullmatch(value)):
        return None
    if operator and "\n" in operator and _HEX.fullmatch(value):
        return None
    return found.start("value"), end


# --- keys and sessions by the form of a record --------------------------------------------------------------

_KEY_SET = re.compile(
    r"(?<![A-Za-z])(?:d|k|p|q|dp|dq|qi)\\{0,3}[\"']\s{0,4}:\s{0,4}\\{0,3}[\"'](?P<value>[0-9A-Za-z_+/-]{16,2048}={0,2})\\{0,3}[\"']"
)
_KEY_REACH = 8_000


def in_key_sets(text: str, lowered: str, _places: Places) -> Iterator[Span]:
    """Yield the private members of JSON web keys (RFC 7518)."""
    if "kty" in lowered:
        for start, end in windows(finds(lowered, "kty"), _KEY_REACH, _KEY_REACH, len(text)):
            yield from (match.span("value") for match in _KEY_SET.finditer(text, start, end))


_LOGIN = re.compile(
    r"(?:auth|login|credentials?)(?:entication)?\w{0,12}\\{0,3}[\"']?[ \t]{0,4}[=:]?[ \t]{0,4}"
    r"\(\s{0,20}[\"'][^\"'\n]{1,80}[\"'][ \t]{0,4},\s{0,20}(?:\w{1,20}\()?"
    r"[\"'](?P<value>[^\s\"']{6,256})[\"']",
    re.IGNORECASE,
)
_LOGINS = ("auth", "login", "credential")


def in_logins(text: str, lowered: str, _places: Places) -> Iterator[Span]:
    """Yield the password in a pair of texts that a program logs in with: ``auth=("bob", "…")``."""
    if "(" not in text:
        return
    for sign in _LOGINS:
        for at in finds(lowered, sign):
            match = _LOGIN.match(text, at)
            if match and is_made_up(match["value"], PASSWORD_LENGTH) and is_sure(match["value"]):
                yield match.span("value")


_PAIR = re.compile(
    r"(?<![A-Za-z])name\\{0,3}[\"']\s{0,4}:\s{0,4}\\{0,3}[\"'](?P<name>[^\s\"'\\]{2,64})\\{0,3}[\"']\s{0,4},"
    r"\s{0,40}\\{0,3}[\"']value\\{0,3}[\"']\s{0,4}:\s{0,4}\\{0,3}[\"'](?P<value>[^\"'\\]{6,4096})\\{0,3}[\"']"
)
_SESSION = re.compile(r"sess|sid\b|auth|jwt|csrf|remember|login|ticket|sso|identity", re.IGNORECASE)
_SESSION_LENGTH = 20
_CRUMB = re.compile(r"(?P<name>[\w.-]{1,64})=(?P<value>[^\s;,\"'\\]{6,4096})")


def in_cookie_records(text: str, lowered: str, _places: Places) -> Iterator[Span]:
    """Yield sessions in the records of cookies and headers that browsers export."""
    if "cookie" not in lowered or "value" not in lowered:
        return
    for match in _PAIR.finditer(text):
        crumbs = (
            [match] if "cookie" not in match["name"].lower() else _CRUMB.finditer(text, *match.span("value"))
        )
        for crumb in crumbs:
            value = crumb["value"]
            named = _SESSION.search(crumb["name"]) or is_secret_name(crumb["name"])
            if (
                named
                and is_mixed(value)
                and (len(value) >= _SESSION_LENGTH or is_sure(value))
                and not is_placeholder(value)
            ):
                yield crumb.span("value")
