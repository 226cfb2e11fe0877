"""Secrets recognised by context: behind a telling name, in a URL, in a header, in a PEM block.

A context alone is not enough, because code is full of names: ``token = next(tokens)``, ``password: str``. The
value must also look as if somebody made it up or a machine generated it, and must not be a placeholder.
"""

import base64
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from agentx.storage.secrets.secret_signs import WORDS, lower
from agentx.storage.secrets.secret_values import (
    LONGEST,
    PASSWORD_LENGTH,
    RANDOM_LENGTH,
    Places,
    Span,
    finds,
    is_made_up,
    is_mixed,
    is_placeholder,
    is_random,
    windows,
)

_LONGEST_BARE = 512
"""Maximum length of a value within a line, in characters; anything longer is data."""

_TOKEN_LENGTH = 8
_NAME_CHARACTERS, _LONGEST_PREFIX = 48, 16

# --- names --------------------------------------------------------------------------------------------------

_KEYS = tuple(
    """
    access account admin api app auth client consumer deploy encrypt encryption function functions host
    instrumentation license master private secret service shared sharedaccess signature signing ssh storage
    subscription webhook
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""Words that make a ``key`` a secret one: most keys are dictionary keys."""

_REST = re.compile(
    r"(?P<ending>word|wd|wort|phrase|code|(?<=credential)s)?"
    r"(?:[_-]?(?:key|base|hash|salt|value|string|b64|base64|text|prod|production|dev|development|test|testing"
    r"|staging|stage|live"
    r"|old|new|primary|secondary|main|root|admin|user|[0-9]{1,3})){0,2}"
    r"(?P<close>\\{0,3}[\"'`]?\]?\)?)"
    r"(?P<operator>[ \t]{0,8}"
    r"(?::[ \t]{0,2}[A-Za-z_][\w.]{0,30}(?:\[[\w., |]{1,30}\])?(?:[ ]\|[ ]None)?[ \t]{0,4}=(?!=)"
    r"|[=!]==?|:=|=>|\?\?=?|\|\|=?|[=:])[ \t]{0,8}(?:\r?\n[ \t]{0,40}(?=\\{0,3}[\"']))?"
    r"|,[ \t\n]{0,8}(?=\\{0,3}[\"'`])|[ \t]{1,4}|>)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(?:page|next|prev|previous|sync|continuation|cursor|resume|cancel|cancellation|stop"
    r"|eos|bos|pad|unk|mask|sep|cls|special|image|"
    r"audio|start|end|begin|max|min|num|per|class|count|total|input|output|prompt|completion"
    r"|public|lock|fencing|change|request|action|delete|device_?|"
    r"foreign|primary|sort|partition|idempotency|cache|x_?css|design)[_-]?$"
    r"|(?:unexpected|unrecognized|unknown|invalid|illegal|bad)[ ]?$"
    r"|(?:[0-9]:[ ]|[0-9]{7}:)$|public[_-]?key[_-]?$",
    re.IGNORECASE,
)
_PASSES = re.compile(r"(?:by|com|tres|sur|over|under|en)[_-]?$", re.IGNORECASE)
_QUOTE = re.compile(r"[rbuf$]{0,2}(\\{0,3}[\"'`])", re.IGNORECASE)
_BARE = re.compile(rf"[^\s\"'`,;&<>(){{}}\[\]|\\]{{4,{_LONGEST_BARE}}}+(?![\w=:.])")
_LINE_VALUE = re.compile(rf"[^\s\"'`]{{4,{LONGEST}}}+(?=[ \t]*(?:[#;].*)?(?:$|[\r\n]|\\+[nr]))", re.MULTILINE)
_LINE_START = re.compile(
    r"(?:\A|\\n|[\r\n])(?:(?:[^\s:]{1,80}:[ \t]?){0,2}\d{1,6}[:-])?[ \t]{0,16}(?:[-+>][ \t]?)?"
    r"(?:(?:export|set|ENV|ARG)[ \t]+|-e[ \t]*|\$env:)?[A-Za-z0-9_.-]{0,48}$"
)
"""The start of a line, optionally after the file name and line number that ``grep -n`` prints."""

_XML = re.compile(rf"([^\s<>]{{6,{_LONGEST_BARE}}})</")
_FLAG = re.compile(r"(?<![\w-])--?[\w-]*$")
_LABEL = re.compile(r"([\"'`])[\w -]{0,40}$")
_ARGUMENT = re.compile(r"\([ \t\n]{0,8}\\{0,3}[\"'`][\w.-]{0,40}$|[\"'`]--?[\w-]{0,40}$")
"""The end of a call up to its first argument, or of a listed flag: the value is the next argument."""

_INLINE = re.compile(r"[\w+/=.~-]+")
_COMPARISONS = ("==", "===", "!=", "!==", "||", "??")
_OPENING = ("(", "[", "{")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[\w$]+)*[.:]?")


class _Named(NamedTuple):
    """A name that marks its value as secret: text before its keyword, the keyword, and the rest."""

    before: str
    word: str
    rest: re.Match[str]

    @property
    def shortest(self) -> int:
        """Minimum length of its value."""
        return PASSWORD_LENGTH if self.word.startswith(("pass", "pwd")) else _TOKEN_LENGTH


def word_places(lowered: str) -> Places:
    """Find the keywords of secret names in a lower-case text."""
    return sorted((at, word) for word in WORDS for at in finds(lowered, word))


def named(text: str, places: Places) -> Iterator[Span]:
    """Yield values behind a telling name: assignments, ``.env`` lines, JSON, YAML, flags, XML.

    Args:
        text: The text to search.
        places: Its keywords, from :func:`word_places`.
    """
    for name in _names(text, places):
        if span := _value(text, name):
            yield span


def is_secret_value(name: str, value: str) -> bool:
    """Return whether a value stored under a name (a dictionary key) is a secret."""
    return any(is_made_up(value, shortest) for shortest in _shortest_values(name))


def is_secret_name(name: str) -> bool:
    """Return whether the value of a name is a secret."""
    return bool(_shortest_values(name))


@lru_cache(maxsize=1_024)
def _shortest_values(name: str) -> tuple[int, ...]:
    """Return the length of the shortest secret for each reading of a name; empty for a plain name."""
    text = f"{name}="
    found = _names(text, word_places(lower(text)))
    return tuple(one.shortest for one in found if one.rest.end() == len(text))


def _names(text: str, places: Places) -> Iterator[_Named]:
    for at, word in places:
        rest = _REST.match(text, at + len(word))
        before = text[max(0, at - _NAME_CHARACTERS) : at]
        # A keyword followed only by a space names a value only if it is a flag; most are plain words.
        named_here = rest and (rest["operator"].strip() or "-" in before)
        if rest and named_here and _says_secret(before, word + (rest["ending"] or "")):
            yield _Named(before, word + (rest["ending"] or ""), rest)


def _says_secret(before: str, word: str) -> bool:
    """Return whether a name really means a secret, unlike ``bypass``, ``page_token``, ``public_key``."""
    stem = before.rstrip("_- ").lower()
    if word == "key":
        return stem.endswith(_KEYS) and len(before) - len(stem) <= 1
    if word.startswith("key"):
        return False  # keyword, keycode
    if (
        word in ("pass", "pwd")
        and before[-1:].isalpha()
        and not stem.endswith(("db", "my", "smtp", "user", "root"))
    ):
        return False
    if word == "pass" and _PASSES.search(before):
        return False
    return not _NO_SECRET.search(before[-_LONGEST_PREFIX:])


def names_secret(text: str, at: int, word: str, ending: str) -> bool:
    """Return whether a keyword at an offset of a text, with its ending, is the name of a secret."""
    return _says_secret(text[max(0, at - _NAME_CHARACTERS) : at], word + ending)


def _value(text: str, name: _Named) -> Span | None:
    operator, start = name.rest["operator"].strip(), name.rest.end()
    if operator == ">":
        found = _XML.match(text, start)
        return found.span(1) if found and is_made_up(found[1], _TOKEN_LENGTH) else None
    if operator == "," and not _ARGUMENT.search(name.before):
        return None
    if not operator and not _FLAG.search(name.before):
        return None
    if not name.rest["close"] and (label := _LABEL.search(name.before)) and text.startswith(label[1], start):
        line = text.rfind("\n", max(0, start - 300), start) + 1 or max(0, start - 300)
        if text.count(label[1], line, name.rest.start()) % 2:
            return None  # "Password:" is a label
    if opened := _QUOTE.match(text, start):
        return _quoted(text, opened, name)
    return None if operator in _COMPARISONS else _bare(text, name)


def _is_setting(text: str, name: _Named) -> bool:
    """Return whether the name is at the start of its line."""
    at = name.rest.start()
    return _LINE_START.search(text, max(0, at - 200), at) is not None


def _quoted(text: str, opened: re.Match[str], name: _Named) -> Span | None:
    """Find a value in quotes, including escaped ones."""
    quote, start = opened[1], opened.end()
    end = text.find(quote, start, start + LONGEST)
    while len(quote) == 1 and end > start and text[end - 1] == "\\" and text[end - 2] != "\\":
        end = text.find(quote, end + 1, start + LONGEST)
    if end < 0:
        return None
    value = text[start:end]
    if is_made_up(value, name.shortest):
        return start, end
    capital = name.rest["operator"] == "=" and text[name.rest.start() - 1].isupper()
    if capital and name.shortest <= len(value) and value.isalnum() and not is_placeholder(value):
        return (start, end) if _is_setting(text, name) else None  # a line of .env
    return None


def _bare(text: str, name: _Named) -> Span | None:
    """Find a value without quotes.

    It must fill the line of a setting, or be so mixed that no expression looks like it.
    """
    operator, start = name.rest["operator"], name.rest.end()
    alone = _LINE_VALUE.match(text, start) if _is_setting(text, name) else None
    if alone and alone[0].endswith((",", ";")):
        alone = None
    found = alone or _BARE.match(text, start)
    if not found or len(found[0]) < name.shortest or is_placeholder(found[0]):
        return None
    if name.word == "pass" and not alone and operator != "=":
        return None  # "PASS: test_1" is a verdict
    value, tight = found[0], operator == "="
    expression = any(sign in value for sign in "()[]{}") or text[found.end() : found.end() + 1] in _OPENING
    code = bool(_IDENTIFIER.fullmatch(value))
    if alone and tight and not expression and not (code and "." in value):
        return found.span()  # NAME=value on a line by itself is a line of .env, whatever the value
    loose = alone or tight or not operator.strip()
    if expression or not is_mixed(value) or not (loose or _INLINE.fullmatch(value)):
        return None
    plain = "." not in value and "_" not in value
    sure = not code or is_random(value) or (plain and loose)
    return found.span() if sure else None


# --- a name in one field, its value in another --------------------------------------------------------------

_FIELDS = re.compile(
    r"(?<![A-Za-z])(?:(?:name|key|id|variable|parameterkey|property|setting)\\{0,3}[\"']?\s{0,4}[:=]"
    r"|(?:variable|setting|param)(?=\s{1,4}[\"']))"
    r"\s{0,4}\\{0,3}[\"']?(?P<name>[\w.:/-]{3,80})"
    r"\\{0,3}[\"']?(?P<between>[\s,/]{0,20}(?:\{|[^{}]{0,1})(?:[^{}]|\{[^{}\n]{0,80}\}){0,200}?)"
    r"(?<![A-Za-z])(?:default|value|parametervalue|content|secret_?string)"
    r"\\{0,3}[\"']?\s{0,20}[:=]\s{0,4}\\{0,3}[\"']?(?P<value>[^\s\"'`,;<>{}\\]{4,512})",
    re.IGNORECASE,
)
_VALUE_FIRST = re.compile(
    r"(?<![A-Za-z])(?:value|content)\\{0,3}[\"']?\s{0,4}[:=]\s{0,4}\\{0,3}[\"'](?P<value>[^\s\"'\\]{4,512})\\{0,3}[\"']"
    r"\s{0,20},?\s{0,20}\\{0,3}[\"']?(?:name|key)\\{0,3}[\"']?\s{0,4}[:=]\s{0,4}\\{0,3}[\"'](?P<name>[\w.:/-]{0,60})$"
)
_NAME_END = re.compile(r"[\w.:/-]{0,40}")
_NEXT = re.compile(r"\n\s*-\s|\bname[\"']?\s*[:=]|valueFrom|\bvariable\b", re.IGNORECASE)
_ELEMENT = re.compile(
    r"<(?P<name>[\w:.-]{3,60})(?:\s[^<>]{0,200})?>\s{0,20}(?:<!\[CDATA\[)?(?P<value>[^\s<>\]]{6,512})"
    r"(?:\]\]>)?\s{0,20}</"
)
_ENTRY = re.compile(
    r"(?:key|name)(?:=[\"']|>)(?P<name>[\w.:-]{3,80})[\"']?(?:</[\w:-]{0,30}(?:key|name)>|>)\s{0,80}"
    r"(?:<[\w:-]{1,40}>)?(?P<value>[^<>\s]{6,512})</",
    re.IGNORECASE,
)


_NAMING = ("name", "key", "id", "variable", "property", "setting", "param")
_NAME_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789_.:/-"
_FIELD_REACH = 900


def in_records(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield values named in another field: Terraform variables, Kubernetes environment, XML attributes."""
    labelled = [at for at, _ in places if _is_labelled(lowered, at)]
    for at in labelled:
        before = _VALUE_FIRST.search(text, max(0, at - _FIELD_REACH), at)
        rest = _NAME_END.match(text, at)
        if before and rest and is_secret_value(before["name"] + rest[0], before["value"]):
            yield before.span("value")
    for start, end in windows(labelled, 110, _FIELD_REACH, len(text)):
        for match in _FIELDS.finditer(text, start, end):
            if not _NEXT.search(match["between"]) and is_secret_value(match["name"], match["value"]):
                yield match.span("value")
        for pattern in (_ELEMENT, _ENTRY) if text.find("</", start, end) >= 0 else ():
            for match in pattern.finditer(text, start, end):
                if is_secret_value(match["name"].rpartition(":")[2], match["value"]):
                    yield match.span("value")


def _is_labelled(lowered: str, at: int) -> bool:
    """Return whether a keyword is part of a name that is the content of a field or the name of an element."""
    before = lowered[max(0, at - 110) : at]
    stripped = before.rstrip(_NAME_SIGNS)
    if ":" in before[len(stripped) :]:
        return True
    label = stripped.rstrip("\"'\\ \t\r\n")
    if label.endswith(("=", ":")):
        label = label[:-1].rstrip("\"'\\ \t\r\n")
        return label.endswith(_NAMING)
    return stripped.endswith(("<", "key>", "name>")) or (stripped != label and label.endswith(_NAMING))


# --- URLs, headers, .netrc ----------------------------------------------------------------------------------

_URL = re.compile(r"://[^\s:/@\"'<>`]{0,128}:([^\s/\"'<>`]{1,256})@(?=[\w\[.%$-])")
_HEADER = re.compile(
    r"(?:authorization|_authtoken)\\{0,3}[\"']?\]?"
    r"[ \t]{0,4}(?:[:=]|,(?:\s{0,40}\\{0,3}[\"']value\\{0,3}[\"']\s{0,4}:)?)[ \t]{0,4}\\{0,3}[\"']?"
    r"(?:[A-Za-z][\w-]{1,20}[ ]+[\"']?)?([0-9A-Za-z._~+/=-]{8,4096})"
    r"|\bbearer[ ]+[\"']?([0-9A-Za-z._~+/=-]{16,4096})"
    r"|(?<![a-z])_?auth\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
    r"(?P<pair>[0-9A-Za-z+/]{8,4096}={0,2})",
    re.IGNORECASE,
)
_NETRC = re.compile(r"\blogin[ \t]+\S{1,100}\s+password[ \t]+(\S{3,200})", re.IGNORECASE)


def in_urls(text: str) -> Iterator[Span]:
    """Yield passwords between a user and a host."""
    for match in _URL.finditer(text):
        value = match[1]
        if not is_placeholder(value) and not value.isdigit():
            yield match.span(1)


def in_headers(text: str) -> Iterator[Span]:
    """Yield credentials of ``Authorization`` headers and registries' ``auth``, and any bearer tokens."""
    for match in _HEADER.finditer(text):
        value, span = match[match.lastindex or 0], match.span(match.lastindex or 0)
        name = _IDENTIFIER.fullmatch(value) and ("." in value or len(value) < RANDOM_LENGTH)
        if _is_pair(value) if match["pair"] else is_mixed(value) and not name and not is_placeholder(value):
            yield span


def _is_pair(value: str) -> bool:
    """Return whether a value is ``user:password`` in base64, as registries store it."""
    try:
        return ":" in base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        return False


def in_netrc(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield passwords of ``.netrc``."""
    if not any(word == "pass" for _, word in places) or "login" not in lowered:
        return
    for match in _NETRC.finditer(text):
        if not is_placeholder(match[1]):
            yield match.span(1)


# --- private keys -------------------------------------------------------------------------------------------

_BEGIN = re.compile(
    r"-{4,5}[ ]?BEGIN [A-Za-z0-9 ]{0,40}(?:PRIVATE KEY(?: BLOCK)?|Static key V1)[ ]?-{4,5}"
    r"|Private-Lines:[ ]?[0-9]{1,3}(?=\s)"
)
_BODY = re.compile(r"(?:[^-]|-(?!---)){0,20000}+")
_END = re.compile(r"-{4,5}[ ]?END [A-Za-z0-9 ]{0,40}(?:PRIVATE KEY(?: BLOCK)?|Static key V1)[ ]?-{4,5}")
_BETWEEN = re.compile(r"(?:\\+[nrt]|[\s\"'`,>|#*;\\])+")
_ARMOUR = re.compile(
    r"^[\s>|#*\"']*(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash)\b[^\n\\]{0,200}", re.MULTILINE
)
_LINE = re.compile(r"(?:\s|\\+[nrt]|[\"',+>|#*])+[0-9A-Za-z+/]{6,}={0,2}(?=[\s\\\"']|$)")
_KEY_LINE = 16
_FIRST_LINE = re.compile(r"[0-9A-Za-z+/]{16,}={0,2}(?=[\s\\\"']|$)")
_MOST_BODY = 20_000
_PIECES = re.compile(
    r"(?<![0-9A-Za-z+/=-])(?:(?<=\\[nrt])|(?<!\\))[0-9A-Za-z+/]{4,}={0,2}(?![0-9A-Za-z+/=-])"
)


def private_keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM or PuTTY format, also with escaped line ends, and with an end cut off."""
    last = 0
    for ended in _END.finditer(text):
        start = _begin_cut_off(text, last, ended.start())
        if start < ended.start():
            yield start, ended.end()
        last = ended.end()
    for begin in _BEGIN.finditer(text):
        body = _BODY.match(text, begin.end())
        end = _END.match(text, body.end()) if body else None
        if body and end and _is_key_body(body[0]):
            yield begin.start(), end.end()
        elif not end:
            stop = key_lines_end(text, begin.end())
            if stop > begin.end():
                yield begin.start(), stop


def key_lines_end(text: str, stop: int) -> int:
    """Return the end of the lines of base64 that follow an offset, the first one also without a blank."""
    if first := _FIRST_LINE.match(text, stop):
        stop = first.end()
    while line := _LINE.match(text, stop):
        stop = line.end()
    return stop


def _begin_cut_off(text: str, first: int, end: int) -> int:
    """Return where the lines of base64 start that stand before the last line of a key; that line for none."""
    first = max(first, end - _MOST_BODY)
    start = end
    pieces = list(_PIECES.finditer(text, first, end))
    for piece in reversed(pieces):
        if not _BETWEEN.fullmatch(text, piece.end(), start):
            break
        start = piece.start()
    lines = [piece for piece in pieces if piece.start() >= start]
    return start if lines and max(len(piece[0]) for piece in lines) >= _KEY_LINE else end


def _is_key_body(body: str) -> bool:
    """Return whether there is only base64 between the two markers: code and prose mention the markers too."""
    pieces = [
        piece
        for piece in _BETWEEN.split(_ARMOUR.sub(" ", body.replace("\\n", "\n")))
        if piece not in ("", "+")
    ]
    if not pieces or not all(re.fullmatch("[0-9A-Za-z+/=]+", piece) for piece in pieces):
        return False
    return max(map(len, pieces)) >= _KEY_LINE or len(body.split("\n")) > len(pieces)
