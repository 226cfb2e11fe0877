"""Distinguish values that were made up or drawn at random from words, placeholders and references."""

import re
from collections.abc import Iterable, Iterator

LONGEST = 2_048
"""Maximum length of a value in quotes or on a line by itself, in characters; anything longer is data."""

PASSWORD_LENGTH = 6
RANDOM_LENGTH = 16
_RANDOM_DIGITS = 3

Span = tuple[int, int]
"""Start and end of a secret, in characters."""

Places = list[tuple[int, str]]
"""Offsets at which keywords of secret names occur, in order, each with its keyword."""

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
_NUMBERED = re.compile(r"(?:[a-zA-Z]?[a-z]{0,7}|[A-Z]{0,8})[0-9]{1,2}")
_FEW_DIGITS = 6
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_COMMON = frozenset(
    """
    a abc access account actual admin aes after age algorithm an and anonymous any api app application argon
    asdf at auth authorization b bad bar base baz bearer bcrypt before body bot bytes by c callback ca cat
    cert change changed changeme char check class client code column com config confirm content cookie count
    created credential credentials csrf current custom d data date db default demo dev digest disabled do
    dog dummy ec empty enabled encoding end env error es encoded example expected expired f fail fake false
    field file first fixme foo for form from func function get global good grant group guest gzip h hash
    head header hello hex hidden hmac host hs http https i id identity iam in index info initial input
    insert int integer invalid is it item jwt k key keys kind label last latin len length line list local
    localhost login long m main max md me message method min missing mock model my mysql n name new next nil
    no node none not null number o oauth ok old on one optional or order org os other out p page param
    parameter pass passed passphrase password passwords path pbkdf pem phone pin placeholder plain port post
    postgres prefix private prod production provider public put pwd pwned qwerty r random rb raw read real
    redacted redis ref refresh regex region register replace req request required res reset response result
    role root row rs rsa s salt sample scope scrypt second secret secrets secure self send service session
    set sha shared short sign signature signed smtp some source ssh ssl sso start state status stop str
    string strong super swordfish system t tag tbd temp template temporary test tested testing text the this
    time title tls tmp to todo token tokenizer tokens true two type uint undefined unknown unset update
    upper uri url use user username users utf uuid v val valid value values var variable version via void
    want was weak web webhook with word wrong www x xsrf y yes you your z zero
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""Words of names and placeholders: a value of these alone (``id_token_v2``, ``test1234``) counts as one."""


def is_placeholder(value: str) -> bool:
    """Return whether the value is a placeholder, or refers to a value."""
    if _PLACEHOLDER.match(value) or len(set(value)) <= 2:  # noqa: PLR2004 - aaaa, abab
        return True
    return is_worded(value) or value.lower() in "abcdefghijklmnopqrstuvwxyz 01234567890123456789 qwertyuiop"


def is_worded(value: str) -> bool:
    """Return whether a value consists of common words and small numbers, or of several plain words."""
    words = [part.lower() for part in _PART.findall(value) if not part.isdigit()]
    digits = sum(map(str.isdigit, value))
    if not words:
        return False
    if digits <= _FEW_DIGITS and all(word in _COMMON for word in words):
        return not set(value) & set("!#%^*+=~?@$")
    pieces = [piece for piece in re.split(r"[-_./: ]", value) if piece]
    plain = [piece for piece in pieces if _PLAIN_WORD.fullmatch(piece)]
    return len(plain) > 1 and all(piece in plain or _NUMBERED.fullmatch(piece) for piece in pieces)


def is_mixed(value: str) -> bool:
    """Return whether the value contains both letters and digits."""
    return bool(_LETTER.search(value) and _DIGIT.search(value))


def is_random(value: str) -> bool:
    """Return whether the value is longer and has more digits than names in code do."""
    return len(value) >= RANDOM_LENGTH and sum(map(str.isdigit, value)) >= _RANDOM_DIGITS


_SURE = 8
_MIXED_RUN = re.compile(r"[A-Za-z][0-9]{1,64}[A-Za-z]{1,64}[0-9]|[0-9][A-Za-z]{1,64}[0-9]{1,64}[A-Za-z]")
_LONG_WORD = re.compile(r"(?=[A-Za-z][a-z]{0,20}?[aeiouy])(?:[A-Z][a-z]{2,}|[a-z]{3,})|[A-Z]{3,}(?![a-z])")
_LEFT = 5
_CODE = re.compile(r"(?=[A-Z]{0,40}[0-9])[A-Z0-9]{16,}")
_NAMED_DIGEST = re.compile(
    r"(?:sha[0-9]|md5|blake|crc|0x|v[0-9]|[0-9]{4}-?[0-9]{2}-?[0-9]{2}T)"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    re.IGNORECASE,
)
_RUN = re.compile(rf"[0-9A-Za-z]{{{_LEFT},}}")
_STRONG = re.compile(r"[!#$^*+~][^!#$^*+~]|[^!#$%^*+~?@&][!#*~]$")


def is_sure(value: str) -> bool:
    """Return whether neither code nor prose would write this: a made-up value, whatever stands before it.

    Letters and digits take turns and are no words, or letters, digits and signs are mixed.

    >>> [is_sure(one) for one in ("q7RkZw91", "Falcon92!", "varchar(255)", "users/42/token", "sha256")]
    [True, True, False, False, False]
    """
    if len(value) < _SURE or not is_mixed(value) or _NAMED_DIGEST.match(value):
        return False
    if not set("()[]{}<>/=@") & set(value) and _STRONG.search(value):
        return True
    return any(map(_is_drawn, _RUN.findall(value)))


def _is_drawn(run: str) -> bool:
    """Return whether a run of letters and digits was drawn at random, unlike ``s3Client2Pool``."""
    left = _LONG_WORD.sub("", run)  # without words
    if len(run) >= _SURE and 2 * len(left) >= len(run) and _MIXED_RUN.search(run):
        return True
    if _CODE.fullmatch(run):
        return True
    return (
        len(left) >= _LEFT
        and 3 * len(left) > len(run)
        and is_mixed(left)
        and left.upper() != left != left.lower()
    )


_PATTERN = re.compile(r"%[sdr(]|\{|\\[wdsbSD]|\[\^?[a-zA-Z]-|\(\?|\.\*|^\^|\$$")


def is_made_up(value: str, shortest: int) -> bool:
    """Return whether a quoted value is one word mixing letters with digits or signs, not a placeholder."""
    if not shortest <= len(value) <= LONGEST or len(value.split(None, 1)) != 1:
        return False
    if is_placeholder(value) or _PATTERN.search(value):
        return False
    if is_mixed(value) or (value.isdigit() and shortest == PASSWORD_LENGTH):
        return True
    return bool(_LETTER.search(value)) and bool(set(value[1:]) & set("!@#^*+=~?"))


# --- windows ------------------------------------------------------------------------------------------------


def finds(text: str, sign: str) -> Iterator[int]:
    """Yield the offsets at which a substring occurs in a text."""
    at = text.find(sign)
    while at >= 0:
        yield at
        at = text.find(sign, at + 1)


def windows(places: Iterable[int], before: int, after: int, end: int) -> Iterator[Span]:
    """Yield the parts of a text around the given, sorted offsets; parts that overlap are merged."""
    start = stop = -1
    for place in places:
        if stop < 0 or place - before > stop:
            if stop >= 0:
                yield start, stop
            start = max(0, place - before)
        stop = min(place + after, end)
    if stop >= 0:
        yield start, stop
