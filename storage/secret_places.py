"""Where a password stands whatever it looks like: behind a name that says so, in a URL, in a header, in a PEM block.

A place alone is not enough, for code is full of names: ``token = next(tokens)``, ``password: str``. What stands there
must look like a value that someone made up or a machine drew, and be no placeholder.
"""

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST, _LONGEST_BARE = 2_048, 512
"""Characters of a value in quotes or on a line by itself, and of one within a line; what is longer is data."""

_PASSWORD_LENGTH, _TOKEN_LENGTH = 6, 8
_RANDOM_LENGTH = 16
_RANDOM_DIGITS = 3
_NAME_CHARACTERS = 48

Span = tuple[int, int]

# --- what is no secret -----------------------------------------------------------------------------------------------

_PLACEHOLDER = re.compile(
    r"""[<$%{\[(*&|^]               # <your token>, ${TOKEN}, %s, {{ token }}, [redacted], ****
    |\.{1,2}/|~?/(?!\S*[+=])|[A-Za-z]:[\\/]    # a path
    |[a-z][a-z0-9+.-]{1,20}://      # an address
    |\#(?:/|[0-9a-fA-F]{3,8}$)      # a reference within a document, a colour
    |[-+]?[0-9.]+e[-+]?[0-9]+$      # a number
    |os\.environ|process\.env|env[./]
    |[xX0*.•_-]+$                   # xxxx, ...
    |.{0,4096}?(?:\.\.\.|…|<|\$\{|\{\{|%\(|xxxx|XXXX|\*\*\*)
    """,
    re.VERBOSE,
)
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_PLAIN_WORD = re.compile(r"[^\W\d_]?[a-z]+|[A-Z]+")
_NUMBERED = re.compile(r"[a-zA-Z]{0,8}[0-9]{1,2}")
_FEW_DIGITS = 6
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_COMMON = frozenset(
    """
    a abc access account actual admin aes after age algorithm an and any api app application argon asdf at auth authorization b bad bar base baz bearer
    bcrypt before body bot bytes by c callback ca cat cert change changed changeme char check class client code column com config
    confirm content cookie count created credential credentials csrf current custom d data date db default demo dev digest disabled
    do dog dummy ec empty enabled encoding end env error es encoded example expected expired f fail fake false field file first fixme foo for form
    from func function get global good grant group gzip h hash head header hello hex hidden hmac host hs http https i id identity
    iam in index info initial input insert int integer invalid is it item jwt k key keys kind label last latin len length line list local
    localhost login long m main max md me message method min missing mock model my mysql n name new next nil no node none not null
    number o oauth ok old on one optional or order org os other out p page param parameter pass passed passphrase password passwords path
    pbkdf pem phone pin placeholder plain port post postgres prefix private prod production provider public put pwd pwned qwerty r random rb raw read
    real redacted redis ref refresh regex region register replace req request required res reset response result role root row rs rsa s salt sample
    scope scrypt second secret secrets secure self send service session set sha shared short sign signature signed smtp some source
    ssh ssl sso start state status stop str string strong super swordfish system t tag tbd temp template temporary test tested testing text
    the this time title tls tmp to todo token tokenizer tokens true two type uint undefined unknown unset update upper uri url use user username users utf uuid v val
    valid value values var variable version via void want was weak web webhook with word wrong www x xsrf y yes you your z zero
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""Words that names and placeholders are made of: a value of nothing else (``id_token_v2``, ``test1234``) is one."""


def _is_placeholder(value: str) -> bool:
    if _PLACEHOLDER.match(value) or len(set(value)) <= 2:  # noqa: PLR2004 - aaaa, abab
        return True
    return _is_worded(value) or value.lower() in "abcdefghijklmnopqrstuvwxyz 01234567890123456789 qwertyuiop"


def _is_worded(value: str) -> bool:
    """Whether a value is made of common words and small numbers, or is a name of several plain words."""
    words = [part.lower() for part in _PART.findall(value) if not part.isdigit()]
    digits = sum(map(str.isdigit, value))
    if not words:
        return False
    if digits <= _FEW_DIGITS and all(word in _COMMON for word in words):
        return not set(value) & set("!#%^*+=~?@$")
    pieces = [piece for piece in re.split(r"[-_./: ]", value) if piece]
    plain = [piece for piece in pieces if _PLAIN_WORD.fullmatch(piece)]
    return len(plain) > 1 and all(piece in plain or _NUMBERED.fullmatch(piece) for piece in pieces)


def _is_mixed(value: str) -> bool:
    """Whether both letters and digits stand in it."""
    return bool(_LETTER.search(value) and _DIGIT.search(value))


def _is_random(value: str) -> bool:
    """Whether it is long and mixed as no name in code is."""
    return len(value) >= _RANDOM_LENGTH and sum(map(str.isdigit, value)) >= _RANDOM_DIGITS


# --- names -----------------------------------------------------------------------------------------------------------

WORDS = ("pass", "pwd", "secret", "token", "key", "credential")
"""In small letters, what the name of a secret value holds."""

_KEYS = tuple(
    """
    access account admin api app auth client consumer deploy encrypt encryption function functions host
    instrumentation license master private secret service shared sharedaccess signature signing ssh storage subscription webhook
    """.split()  # noqa: SIM905 - as above
)
"""What a ``key`` is called that is a secret: most keys are those of a dictionary."""

_REST = re.compile(
    r"(?P<ending>word|wd|wort|phrase|code|(?<=credential)s)?"
    r"(?:[_-]?(?:key|base|hash|salt|value|string|b64|base64|text|prod|production|dev|development|test|testing|staging|stage|live"
    r"|old|new|primary|secondary|main|root|admin|user|[0-9]{1,3})){0,2}"
    r"(?P<close>\\{0,3}[\"'`]?\]?\)?)"
    r"(?P<operator>[ \t]{0,8}(?::[ \t]{0,2}[A-Za-z_][\w.]{0,30}(?:\[[\w., |]{1,30}\])?(?:[ ]\|[ ]None)?[ \t]{0,4}=(?!=)"
    r"|[=!]==?|:=|=>|\?\?=?|\|\|=?|[=:])[ \t]{0,8}|[ \t]{1,4}|>)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(?:page|next|prev|previous|sync|continuation|cursor|resume|cancel|cancellation|stop|eos|bos|pad|unk|mask|sep|cls|special|image|"
    r"audio|start|end|begin|max|min|num|per|class|count|total|input|output|prompt|completion|public|lock|fencing|change|request|action|delete|device_?|"
    r"by|com|tres|sur|over|under|en|foreign|primary|sort|partition|idempotency|cache|x_?css|design)[_-]?$|(?:unexpected|unrecognized|unknown|invalid|illegal|bad|[0-9]:)[ ]?$|public[_-]?key[_-]?$",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"[rbuf]{0,2}(\\{0,3}[\"'`])", re.IGNORECASE)
_BARE = re.compile(rf"[^\s\"'`,;&<>(){{}}\[\]|\\]{{4,{_LONGEST_BARE}}}+(?![\w=:.])")
_LINE_VALUE = re.compile(rf"[^\s\"'`]{{4,{LONGEST}}}+(?=[ \t]*(?:[#;].*)?(?:$|[\r\n]|\\+[nr]))", re.MULTILINE)
_LINE_START = re.compile(
    r"(?:\A|\\n|[\r\n])[ \t]{0,16}(?:[-+>][ \t]?)?(?:(?:export|set|ENV|ARG)[ \t]+|-e[ \t]*|\$env:)?[A-Za-z0-9_.-]{0,48}$"
)
_XML = re.compile(rf"([^\s<>]{{6,{_LONGEST_BARE}}})</")
_FLAG = re.compile(r"(?<![\w-])--?[\w-]*$")
_LABEL = re.compile(r"([\"'`])[\w -]{0,40}$")
_INLINE = re.compile(r"[\w+/=.~-]+")
_COMPARISONS = ("==", "===", "!=", "!==", "||", "??")
_OPENING = ("(", "[", "{")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[\w$]+)*[.:]?")
_PATTERN = re.compile(r"%[sdr(]|\{|\\[wdsbSD]|\[\^?[a-zA-Z]-|\(\?|\.\*|^\^|\$$")


class _Named(NamedTuple):
    """A name that says that its value is secret: what stands before its word, the word, and where the rest begins."""

    before: str
    word: str
    rest: re.Match[str]

    @property
    def shortest(self) -> int:
        """How long its value is at least."""
        return _PASSWORD_LENGTH if self.word.startswith(("pass", "pwd")) else _TOKEN_LENGTH


def named(text: str, lowered: str) -> Iterator[Span]:
    """Values behind a name that says that they are secret: assignments, ``.env`` lines, JSON, YAML, flags, XML.

    Args:
        text: Where to look.
        lowered: The same in small letters, character for character.
    """
    for name in _names(text, lowered):
        if span := _value(text, name):
            yield span


def is_secret_value(name: str, value: str) -> bool:
    """Whether a value that stands under a name (a key of a dictionary) is a secret."""
    text = f"{name}="
    return any(
        one.rest.end() == len(text) and _is_made_up(value, one.shortest) for one in _names(text, lower(text))
    )


def lower(text: str) -> str:
    """A text in small letters, character for character: one letter alone becomes two."""
    return text.replace("İ", "I").lower()


def _names(text: str, lowered: str) -> Iterator[_Named]:
    for word in WORDS:
        at = lowered.find(word)
        while at >= 0:
            rest = _REST.match(text, at + len(word))
            before = text[max(0, at - _NAME_CHARACTERS) : at]
            # A word with nothing behind it but a space names a value only as a flag, and most are but words.
            named_here = rest and (rest["operator"].strip() or "-" in before)
            if rest and named_here and _says_secret(before, word + (rest["ending"] or "")):
                yield _Named(before, word + (rest["ending"] or ""), rest)
            at = lowered.find(word, at + len(word))


def _says_secret(before: str, word: str) -> bool:
    """Whether a name does not only sound so: ``bypass``, ``page_token``, ``public_key``."""
    stem = before.rstrip("_- ").lower()
    if word == "key":
        return stem.endswith(_KEYS) and len(before) - len(stem) <= 1
    if (
        word in ("pass", "pwd")
        and before[-1:].isalpha()
        and not stem.endswith(("db", "my", "smtp", "user", "root"))
    ):
        return False
    return not _NO_SECRET.search(before)


def _value(text: str, name: _Named) -> Span | None:
    operator, start = name.rest["operator"].strip(), name.rest.end()
    if operator == ">":
        return _element(text, start)
    if not operator and not _FLAG.search(name.before):
        return None
    if not name.rest["close"] and (label := _LABEL.search(name.before)) and text.startswith(label[1], start):
        return None  # "Password:" is a label
    if opened := _QUOTE.match(text, start):
        return _quoted(text, opened, name)
    return None if operator in _COMPARISONS else _bare(text, name)


def _is_setting(text: str, name: _Named) -> bool:
    """Whether nothing but the name stands before it on its line."""
    at = name.rest.start()
    return _LINE_START.search(text, max(0, at - 80), at) is not None


def _is_made_up(value: str, shortest: int) -> bool:
    """Whether a quoted value is one word of letters and digits, or of letters and signs, and no placeholder."""
    if not shortest <= len(value) <= LONGEST or len(value.split(None, 1)) != 1:
        return False
    if _is_placeholder(value) or _PATTERN.search(value):
        return False
    if _is_mixed(value) or (value.isdigit() and shortest == _PASSWORD_LENGTH):
        return True
    return bool(_LETTER.search(value)) and bool(set(value[1:]) & set("!@#^*+=~?"))


def _quoted(text: str, opened: re.Match[str], name: _Named) -> Span | None:
    """A value in quotes, escaped ones too."""
    quote, start = opened[1], opened.end()
    end = text.find(quote, start, start + LONGEST)
    while len(quote) == 1 and end > start and text[end - 1] == "\\" and text[end - 2] != "\\":
        end = text.find(quote, end + 1, start + LONGEST)
    if end < 0:
        return None
    value = text[start:end]
    if _is_made_up(value, name.shortest):
        return start, end
    capital = name.rest["operator"] == "=" and text[name.rest.start() - 1].isupper()
    if capital and name.shortest <= len(value) and value.isalnum() and not _is_placeholder(value):
        return (start, end) if _is_setting(text, name) else None  # a line of .env
    return None


def _bare(text: str, name: _Named) -> Span | None:
    """A value without quotes: a setting's that fills its line, or one so mixed that no expression looks like it."""
    operator, start = name.rest["operator"], name.rest.end()
    alone = _LINE_VALUE.match(text, start) if _is_setting(text, name) else None
    if alone and alone[0].endswith((",", ";")):
        alone = None
    found = alone or _BARE.match(text, start)
    if not found or len(found[0]) < name.shortest or _is_placeholder(found[0]):
        return None
    if name.word == "pass" and not alone and operator != "=":
        return None  # "PASS: test_1" is a verdict
    value, tight = found[0], operator == "="
    expression = any(sign in value for sign in "()[]{}") or text[found.end() : found.end() + 1] in _OPENING
    code = bool(_IDENTIFIER.fullmatch(value))
    if alone and tight and not expression and not (code and "." in value):
        return found.span()  # NAME=value on a line by itself is a line of .env, whatever the value
    loose = alone or tight or not operator.strip()
    if expression or not _is_mixed(value) or not (loose or _INLINE.fullmatch(value)):
        return None
    plain = "." not in value and "_" not in value
    sure = not code or _is_random(value) or (plain and loose)
    return found.span() if sure else None


def _element(text: str, start: int) -> Span | None:
    found = _XML.match(text, start)
    return found.span(1) if found and _is_made_up(found[1], _TOKEN_LENGTH) else None


# --- URLs, headers, command lines ------------------------------------------------------------------------------------

_URL = re.compile(r"://[^\s:/@\"'<>`]{0,128}:([^\s/\"'<>`]{1,256})@(?=[\w\[.%$-])")
_HEADER = re.compile(
    r"(?:authorization|_authtoken)\\{0,3}[\"']?\]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
    r"(?:(?:bearer|basic|token|apikey|bot)[ ]+)?([0-9A-Za-z._~+/=-]{8,4096})"
    r"|\bbearer[ ]+([0-9A-Za-z._~+/=-]{16,4096})"
    r"|(?<![a-z])_?auth\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?P<pair>[0-9A-Za-z+/]{8,4096}={0,2})",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"\bcurl\b[^\n]{0,400}?[ ](?:-u|--user|--proxy-user)[ =]?\\{0,3}[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{3,200})"
    r"|\blogin[ \t]+\S{1,100}\s+password[ \t]+(\S{3,200})"
    r"|\bsshpass[ ]+-p[ ]?[\"']?([^\s\"']{3,200})",
    re.IGNORECASE,
)


def in_urls(text: str) -> Iterator[Span]:
    """Passwords between a user and a host."""
    for match in _URL.finditer(text):
        value = match[1]
        if not _is_placeholder(value) and not value.isdigit():
            yield match.span(1)


def in_headers(text: str) -> Iterator[Span]:
    """Credentials of an ``Authorization`` header or a registry's ``auth``, and bearer tokens wherever they stand."""
    for match in _HEADER.finditer(text):
        value, span = match[match.lastindex or 0], match.span(match.lastindex or 0)
        name = _IDENTIFIER.fullmatch(value) and ("." in value or len(value) < _RANDOM_LENGTH)
        if _is_pair(value) if match["pair"] else _is_mixed(value) and not name and not _is_placeholder(value):
            yield span


def _is_pair(value: str) -> bool:
    """Whether a value is ``user:password`` in base64, as registries keep it."""
    try:
        return ":" in base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        return False


def in_logins(text: str) -> Iterator[Span]:
    """Passwords on command lines and in ``.netrc``."""
    for match in _LOGIN.finditer(text):
        value = match[match.lastindex or 0]
        if not _is_placeholder(value) and not value.isdigit():
            yield match.span(match.lastindex or 0)


# --- private keys ----------------------------------------------------------------------------------------------------

_BEGIN = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines:[ ]?[0-9]{1,3}(?=\s)"
)
_BODY = re.compile(r"(?:[^-]|-(?!----)){0,20000}+")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BETWEEN = re.compile(r"(?:\\+[nrt]|[\s\"'`,>|#*;\\])+")
_ARMOUR = re.compile(
    r"^[\s>|#*\"']*(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash)\b[^\n\\]{0,200}", re.MULTILINE
)
_LINE = re.compile(r"(?:\s|\\+[nrt]|[\"',+>|#*])+[0-9A-Za-z+/]{6,}={0,2}(?=[\s\\\"']|$)")
_KEY_LINE = 16


def private_keys(text: str) -> Iterator[Span]:
    """Private keys in PEM or PuTTY's form, also with escaped line ends, and where the end was cut off."""
    for begin in _BEGIN.finditer(text):
        body = _BODY.match(text, begin.end())
        end = _END.match(text, body.end()) if body else None
        if body and end and _is_key_body(body[0]):
            yield begin.start(), end.end()
        elif not end:
            stop = begin.end()
            while line := _LINE.match(text, stop):
                stop = line.end()
            if stop > begin.end():
                yield begin.start(), stop


def _is_key_body(body: str) -> bool:
    """Whether nothing but base64 stands between the two marks: code and prose name them too."""
    pieces = [
        piece
        for piece in _BETWEEN.split(_ARMOUR.sub(" ", body.replace("\\n", "\n")))
        if piece not in ("", "+")
    ]
    if not pieces or not all(re.fullmatch("[0-9A-Za-z+/=]+", piece) for piece in pieces):
        return False
    return max(map(len, pieces)) >= _KEY_LINE or len(body.split("\n")) > len(pieces)
