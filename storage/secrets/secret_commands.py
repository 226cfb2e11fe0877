"""Passwords on command lines, in cookies, and in lines of several fields.

There are few ways to pass a password to a program: a short flag beside a user name, a name and a value after
``config set``, an ``echo`` into its input, ``user:password`` before a host. Each rule here covers one of
these ways, not one program. Programs are named only if a flag has another meaning elsewhere (``-p`` usually
is a port).
"""

import re
from collections.abc import Iterator

from agentx.storage.secrets.secret_contexts import is_secret_name
from agentx.storage.secrets.secret_values import (
    PASSWORD_LENGTH,
    Places,
    Span,
    finds,
    is_made_up,
    is_mixed,
    is_placeholder,
    is_random,
    windows,
)

_Q = r"\\{0,3}[\"']?"
_SEPARATOR = rf"(?:[ \t]{{1,8}}|=|{_Q},[ \t\n]{{0,8}}){_Q}"
_VALUE = r"(?P<value>[^\s\"'\\`,;|&<>()]{3,256})"
_REACH = r"[^\n|;&]{0,300}?"

_DATABASES = (
    r"mysql\w*|mariadb(?:-\w+)?|mongo\w*|redis-cli|valkey-cli|keydb-cli|sqlcmd|bcp|influx|cqlsh"
    r"|clickhouse-client"
)
_ARCHIVES = r"7z[ar]?|zip|unzip|rar|unrar"
_OTHERS = (
    r"sshpass|ldap\w{3,12}|mosquitto_\w+|ipmitool|smbclient|rpcclient|htpasswd|xfreerdp|rdesktop|kinit"
    r"|snmp\w{2,12}|usermod|useradd|security|keytool|jarsigner|pdftk|qpdf|openssl"
)
_PROGRAM = re.compile(
    rf"(?<![\w.-])(?:{_DATABASES}|{_ARCHIVES}|{_OTHERS})(?:\.exe)?{_Q}(?=[ ,]){_REACH}"
    rf"[\s\"'](?:-(?:a|A|X|w|pw|k|storepass|keypass){_SEPARATOR}|(?:-[pP]|/p:)(?:{_SEPARATOR}|{_Q})){_VALUE}"
)
_LOGIN = re.compile(
    rf"(?<![\w.-])(?:login|signin|[\w-]*auth){_Q}(?=[ ,]){_REACH}"
    rf"[\s\"']-(?:p|P|w)(?:{_SEPARATOR}|{_Q}){_VALUE}"
    rf"|[\s\"'](?:-u|-U|--user|--username|--user-name)(?:{_SEPARATOR}|{_Q})[\w.@\\-]{{1,64}}{_Q}(?=[ ,])"
    rf"{_REACH}[\s\"']-(?:p|P|w|a)(?:{_SEPARATOR}|{_Q})(?P<after>[^\s\"'\\`,;|&<>()]{{3,256}})"
)
_USER = re.compile(
    rf"(?<![\w.-])(?:curl|wget|http|https|xh|lftp|ftp|smbclient|rpcclient|wrk|ab|siege|hey|rclone)"
    rf"{_Q}(?=[ ,]){_REACH}"
    rf"[\s\"'](?:-u|-U|-a|-A|--user|--proxy-user|--auth)(?:{_SEPARATOR}|{_Q})[\w.@+-]{{0,64}}[:,%]{_VALUE}"
)
_FLAG = re.compile(
    rf"-(?<=[\s\"']-)(?:(?:[pPawkuUAX]|pw|storepass|keypass)(?:{_SEPARATOR}|{_Q})"
    rf"(?=[^\s\"'\\`,;|&<>()]{{3}})|-(?:user|auth|proxy-user))"
)
_PASS_SOURCE = re.compile(r"(?<![\w-])pass:(?P<value>[^\s\"'\\`,;|&<>()]{3,256})")
_COOKIE_FLAG = re.compile(
    rf"(?<![^\s\"'])(?:-b|--cookie)(?:{_SEPARATOR}|{_Q})(?P<cookies>[^\s\"'\\=]{{1,64}}=[^\n\"'\\]{{3,4096}})"
)
_COOKIE_JAR = re.compile(
    r"cookies?[\"']?[ \t]{0,4}[=:][ \t]{0,4}\{(?P<cookies>[^{}]{3,2000})\}", re.IGNORECASE
)
_PIPED = re.compile(
    rf"(?<![\w-])(?:echo|printf|print|Write-Output)[ \t]{{1,4}}(?:-[neE]{{1,3}}[ \t]{{1,4}})?"
    rf"(?:{_Q}%s(?:\\+n)?{_Q}[ \t]{{1,4}})?"
    rf"{_Q}(?:[\w.-]{{1,64}}:)?(?P<value>[^\s\"'\\`|&<>()]{{3,256}})(?:\\+[nr])*{_Q}"
    rf"[ \t]{{0,8}}\|(?=(?P<program>[^\n|]{{0,200}}))"
)
_HERE = re.compile(rf"(?P<program>[^\n|<]{{1,200}}+)<<<[ \t]{{0,4}}{_Q}(?:[\w.-]{{1,64}}:)?{_VALUE}")
_ASKING = re.compile(
    r"\bsudo\b[^\n|]{0,60}?[ \t]-(?:[A-Za-z]{0,6}S\b|-stdin)"
    r"|[ \t]--?(?:password|pass|passphrase|token|pw)?-?(?:stdin|fd)\b"
    r"|(?:^|[ \t/])(?:su|chpasswd|passwd|kinit|cryptsetup|smbpasswd|vncpasswd|ssh-add)\b"
)
_ANSWERED = re.compile(
    rf"(?:assword|assphrase)[^\n]{{0,80}}\n?[ \t]{{0,8}}"
    rf"send(?:line)?[ \t(]{{1,4}}(?:--[ \t])?{_Q}(?P<value>[^\s\"'\\]{{3,256}})",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?<![\w:/@.+%-])(?P<user>[\w.+%-]{1,64}):(?P<value>[^\s/@:\"'`<>(){}\[\],;]{4,128})"
    r"@(?=(?P<host>[\w\[.(%$*-]{1,60}))"
)
_SLASHED = re.compile(
    r"(?:(?:sqlplus|sqlldr|expdp|impdp|rman|exp|imp)\b[^\n|;&]{0,80}?[ \"'=]|:thin:|:oci:)"
    r"[\w$]{1,40}/(?P<value>[^\s/@\"'\\]{4,128})@"
)
_CONFIG = re.compile(
    r"(?<![\w-])(?:config(?:ure|uration)?|secrets?|settings?|variables?|vars?|kv|setx|setenv|putenv|ENV)"
    r"(?::\w{1,10})?(?:[ \t]{1,3}[^\s|;&]{1,80}){0,5}?"
    r"[ \t]{1,4}(?P<name>[^\s\"'|;&=]{0,60}(?:pass|pwd|secret|token|key|credential|auth)[^\s\"'|;&=]{0,60})"
    r"(?:[ \t]{1,4}|=)[\"']?"
    r"(?P<value>[^\s\"'\\|;&]{6,512})",
    re.IGNORECASE,
)
_SETTING_WORDS = (
    "config",
    "secret",
    "setting",
    "variable",
    "vars",
    "kv ",
    "setx",
    "setenv",
    "putenv",
    "env ",
)

_FIELDS = re.compile(
    r"(?<![^\s\"'])(?:[^\s:/\"'][^\s:\"']{0,200}|\*):(?:[0-9]{2,5}|\*):(?:[^\s:0-9][^\s:]{0,100}|\*)"
    r":[^\s:]{1,100}:"
    r"(?P<value>(?:[^\s:\\\"']|\\[:\\]){4,256})(?=[ \t]*(?:$|[\r\n\"']))"
)
_PORT = re.compile(r":(?:[0-9]{2,5}|\*):(?=[^\s:0-9])")
_NO_USERS = frozenset(
    """
    acct actor at author bcc by cc committer contact crate docker email e-mail file from gem git github
    gitlab id image jsr link mail mailto maintainer name npm owner package patch pkg pypi release reply-to
    reviewer sip sips tag tel to user username version workspace xmpp
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""Labels and schemes that precede an address with a colon: ``mailto:ann42@example.org``."""

_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+){1,3}\S*|v[0-9]+|latest|stable|[0-9a-f]{7,40}$")
_DIGEST = re.compile(r"(?:sha(?:1|256|384|512)|md5|blake[23]\w?)\b|\d+\.\d+(?!\.\d+\.\d)")


def in_commands(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield passwords on command lines.

    They follow a short flag, are part of ``user:password``, or are piped into a program that asks.
    """
    flags = [match.start() for match in _FLAG.finditer(text)] if "-" in text else []
    if "/p:" in text:
        flags = sorted([*flags, *finds(text, "/p:")])
    for start, end in windows(flags, 420, 420, len(text)):
        for pattern in (_PROGRAM, _LOGIN, _USER):
            for match in pattern.finditer(text, start, end):
                name = "after" if "after" in pattern.groupindex and match["after"] else "value"
                if not _is_no_password(match[name]):
                    yield match.span(name)
    yield from _in_inputs(text, lowered, places)


def _in_inputs(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield passwords that a program reads: piped, in a here-string, sent by a script, given as ``pass:``."""
    piped = "|" in text
    has_pass = any(word == "pass" for _, word in places)
    for sign, before, after, pattern, needed in _FED:
        if (pattern is _PIPED and not piped) or ("pass" in needed[0] and not has_pass):
            continue
        if sign not in lowered or not any(one in lowered for one in needed):
            continue
        for start, end in windows(finds(lowered, sign), before, after, len(text)):
            for match in pattern.finditer(text, start, end):
                asked = "program" not in pattern.groupindex or _ASKING.search(match["program"])
                if (
                    asked
                    and not is_placeholder(match["value"])
                    and (sign not in ("pass:", "send") or is_mixed(match["value"]))
                ):
                    yield match.span("value")


_ARGUMENT = (
    r"(?:[\"'](?P<quoted>[^\"'\n]{4,128})[\"']"
    r"|(?P<value>[^\s\"'`,;|&<>()/-][^\s\"'`,;|&<>()]{3,127}))(?=[\s;|&)\"'`]|$)"
)
_WORD = r"[ \t]{1,8}[^\s|;&]{1,120}"
_POSITIONAL: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (sign, re.compile(pattern, re.IGNORECASE))
    for sign, pattern in (
        (
            "passw",
            (
                rf"passwd[ \t]{{1,8}}-[a-z]{{0,8}}b[a-z]{{0,8}}(?:{_WORD}){{1,6}}?[ \t]{{1,8}}{_ARGUMENT}"
                r"(?=[ \t]*(?:$|[\r\n;|&)\"'`]))"
            ),
        ),
        ("passw", rf"(?<=_)password[ \t]{{1,8}}[\w.@-]{{1,64}}[ \t]{{1,8}}{_ARGUMENT}"),
        ("passw", rf"password(?<=(?:admin|nnect)[ \t]password)(?<=\w[ \t]password)[ \t]{{1,8}}{_ARGUMENT}"),
        ("passphrase", rf"passphrase(?<=wpa_passphrase){_WORD}[ \t]{{1,8}}{_ARGUMENT}"),
        ("requirepass", rf"requirepass[ \t]{{1,8}}{_ARGUMENT}"),
        ("passw", r"password[ \t]{0,8}[=(]?\s{0,8}N?'(?P<quoted>[^'\n]{4,128})'"),
        (
            "identified",
            (
                rf"identified\s{{1,8}}(?:with\s{{1,8}}[\w'\"]{{1,40}}\s{{1,8}})?by\s{{1,8}}"
                rf"(?:password\s{{1,8}}|values\s{{1,8}})?{_ARGUMENT}"
            ),
        ),
        ("encrypt_string", rf"encrypt_string(?:{_WORD}){{0,6}}?[ \t]{{1,8}}{_ARGUMENT}"),
        ("net u", rf"net user?[ \t]{{1,8}}[^\s|;&/]{{1,64}}[ \t]{{1,8}}{_ARGUMENT}(?=[ \t]{{1,8}}/)"),
        ("net u", rf"net use(?:{_WORD}){{1,4}}?[ \t]{{1,8}}{_ARGUMENT}(?=[ \t]{{1,8}}/u)"),
        ("net u", rf"net use(?:{_WORD}){{1,4}}?[ \t]{{1,8}}/user:\S{{1,80}}[ \t]{{1,8}}{_ARGUMENT}"),
        ("add_user", rf"add_user[ \t]{{1,8}}[\w.@-]{{1,64}}[ \t]{{1,8}}{_ARGUMENT}"),
        ("redis-cli", rf"redis-cli(?:{_WORD}){{0,6}}?[ \t]{{1,8}}auth(?:{_WORD})?[ \t]{{1,8}}{_ARGUMENT}"),
    )
)  # fmt: skip
"""A keyword before a password that is a positional argument, and the pattern from there on."""

_STATEMENT = re.compile(
    r"\b(?:(?:create|alter)\s{1,8}(?:or\s{1,8}replace\s{1,8})?"
    r"(?:user|role|login|group|database|server|subscription)"
    r"|grant|set\s{1,8}password\s{1,8}for)\b[^;]{0,200}$",
    re.IGNORECASE,
)


def in_arguments(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield passwords in positional arguments and in SQL.

    Examples are ``htpasswd -b FILE USER PASSWORD`` and ``IDENTIFIED BY``.
    """
    has_pass = any(word == "pass" for _, word in places)
    for sign, pattern in _POSITIONAL:
        if "pass" in sign and not has_pass:
            continue
        for at in finds(lowered, sign):
            match = pattern.match(text, at)
            if not match:
                continue
            name = "quoted" if match["quoted"] else "value"
            value = match[name]
            if "N?" in pattern.pattern and not _STATEMENT.search(text, max(0, at - 240), at):
                continue
            if is_made_up(value, PASSWORD_LENGTH) and not value.startswith((":", "@")):
                yield match.span(name)


_ASKERS = ("sudo", "stdin", "-fd", "passwd", "kinit", "crypt", "ssh-add", " su", "/su")
_FED = (
    ("pass:", 1, 300, _PASS_SOURCE, ("pass:",)),
    ("echo", 1, 600, _PIPED, _ASKERS),
    ("print", 1, 600, _PIPED, _ASKERS),
    ("write-output", 1, 600, _PIPED, _ASKERS),
    ("<<<", 201, 330, _HERE, _ASKERS),
    ("send", 110, 300, _ANSWERED, ("pass",)),
)
"""A keyword, how far to search before and after it, the pattern, and what else the text must contain."""


def in_settings(text: str, lowered: str, places: Places) -> Iterator[Span]:
    """Yield values after a name in a command that stores settings: ``git config x.token VALUE``."""
    named = [at for at, _ in places] + list(finds(lowered, "auth"))
    # A command that stores settings precedes the name on its line.
    named = sorted(
        at
        for at in named
        if _SET.match(text, at)
        for line in [lowered[max(0, lowered.rfind("\n", max(0, at - 500), at), at - 500) : at + 6]]
        if any(word in line for word in _SETTING_WORDS)
    )
    for start, end in windows(named, 500, 600, len(text)):
        for match in _CONFIG.finditer(text, start, end):
            value = match["value"]
            secret = any(map(is_secret_name, re.split("[./:]", match["name"]))) or is_random(value)
            if secret and is_mixed(value) and not _is_no_password(value):
                yield match.span("value")


_SET = re.compile(r"[^\s\"'|;&=]{2,60}(?:[ \t]{1,4}|=)[\"']?(?=[^\s0-9]{0,512}[0-9])[^\s\"'\\|;&]{6}")


_FILE = re.compile(r"[\w./~-]{0,200}\.[a-z]{1,4}[0-9]?")


def _is_no_password(value: str) -> bool:
    """Return whether the word after a flag is a number, a path, an option or a placeholder."""
    if is_placeholder(value) or value.isdigit() or value.startswith("-") or _FILE.fullmatch(value):
        return True
    # A short value without digits and signs is a word.
    return not (is_mixed(value) or set(value[1:]) & set("!@#^*+~?$%")) and len(value) < 6  # noqa: PLR2004


def in_pairs(text: str, _lowered: str, _places: Places) -> Iterator[Span]:
    """Yield passwords in fields that are separated by colons.

    These are ``user:password@host`` without a scheme, and ``host:port:database:user:password`` lines.
    """
    ends = [
        at
        for at in finds(text, "@")
        if at
        and not text[at - 1].isspace()
        and any(text.find(one, max(0, at - 130), at) >= 0 for one in ":/")
    ]
    for start, end in windows(ends, 320, 70, len(text)):
        for match in _PAIR.finditer(text, start, end):
            value, user = match["value"], match["user"].lower()
            if user in _NO_USERS or _DIGEST.match(match["host"]) or _VERSION.fullmatch(value):
                continue
            if (
                not is_placeholder(value)
                and (is_mixed(value) or set(value) & set("!#$^*?~"))
                and not value.isdigit()
            ):
                yield match.span("value")
        for match in _SLASHED.finditer(text, start, end):
            if not is_placeholder(match["value"]):
                yield match.span("value")
    ports = (match.start() for match in _PORT.finditer(text))
    for start, end in windows(ports, 204, 470, len(text)):
        for match in _FIELDS.finditer(text, start, end):
            if is_made_up(match["value"], PASSWORD_LENGTH):
                yield match.span("value")


# --- cookies ------------------------------------------------------------------------------------------------

_COOKIE = re.compile(
    r"cookie2?\\{0,3}[\"']?\]?[ \t]{0,4}(?::|=>?|,|\()[ \t]{0,4}\\{0,3}[\"'`]?"
    r"(?P<cookies>[!#$%&'*+.^_|~0-9A-Za-z-]{1,64}=[^\n\"'\\`]{3,4096})",
    re.IGNORECASE,
)
_CRUMB = re.compile(
    r"(?P<name>[!#$%&*+.^_|~0-9A-Za-z-]{1,64})(?:=|[\"'][ ]?:[ ]?[\"'])(?P<value>[^\s;,\"'\\]{6,4096})"
)
_ATTRIBUTES = frozenset(
    ["expires", "max-age", "domain", "path", "samesite", "version", "priority", "comment", "port"]
)
_SESSION = re.compile(
    r"sess|sid|auth|token|jwt|csrf|xsrf|remember|login|secret|ticket|credential|pass|key|sso|identity"
    r"|access|refresh",
    re.IGNORECASE,
)
_LETTERS = 5

_JARS = (("cookie", _COOKIE), ("-b", _COOKIE_FLAG), ("--cookie", _COOKIE_FLAG), ("cookie", _COOKIE_JAR))


def in_cookies(text: str, lowered: str, _places: Places) -> Iterator[Span]:
    """Yield cookie values that are session identifiers or random."""
    has_cookie = "cookie" in lowered
    for sign, pattern in _JARS if has_cookie else _JARS[1:2]:
        stop = 0
        for at in finds(lowered, sign):
            if at < stop or not (match := pattern.match(text, at)):
                continue
            stop = match.end()
            for crumb in _CRUMB.finditer(text, *match.span("cookies")):
                value = crumb["value"]
                if crumb["name"].lower() in _ATTRIBUTES or is_placeholder(value):
                    continue
                letters = sum(map(str.isalpha, value))
                session = _SESSION.search(crumb["name"]) and (
                    # Such a long value is an identifier even without digits.
                    is_mixed(value) or len(value) >= 20  # noqa: PLR2004
                )
                if session or (is_random(value) and letters >= _LETTERS):
                    yield crumb.span("value")
