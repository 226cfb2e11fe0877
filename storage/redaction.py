"""Secrets are replaced where text enters, so that log, blobs, bus, model and commit messages see the same bytes.

The rules know the published formats of keys and tokens, and the places where a password stands (a URL, an assignment
to a name that says so). They do not guess from entropy: code is full of hashes.
"""

import re
from typing import Any, TypeVar

import msgspec

_RULES: tuple[tuple[str, str], ...] = (
    (
        "private-key",
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:(?!-----BEGIN)[\s\S]){0,20000}?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    ),
    ("aws-access-key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("github-token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36,255}|github_pat_[0-9A-Za-z_]{60,255})\b"),
    ("gitlab-token", r"\bglpat-[0-9A-Za-z_-]{20,64}\b"),
    ("slack-token", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,250}"),
    ("api-key", r"\bsk-(?:proj-|ant-|or-|live-|svcacct-)?[0-9A-Za-z_-]{20,250}"),
    ("stripe-key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{20,250}\b"),
    ("google-api-key", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("npm-token", r"\bnpm_[0-9A-Za-z]{36}\b"),
    ("pypi-token", r"\bpypi-[0-9A-Za-z_-]{50,250}"),
    ("json-web-token", r"\beyJ[0-9A-Za-z_-]{10,2000}\.eyJ[0-9A-Za-z_-]{10,4000}\.[0-9A-Za-z_-]{10,2000}"),
)
_URL_PASSWORD = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,100}:)(?P<secret>[^\s/@]{3,200})(?=@)"
)
_ASSIGNMENT = re.compile(
    r"(?P<before>(?:^|[\s;,{(])(?:export\s+)?[\"']?[A-Z0-9_]{0,40}(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY)"
    r"(?:_[A-Z0-9]{1,20})?[\"']?[ \t]{0,4}[=:][ \t]{0,4}[\"']?)(?P<secret>[^\s\"'#$<{\[(]{8,200}+)(?![\[(])",
    re.MULTILINE,
)
_TOKENS = re.compile("|".join(f"(?P<{name.replace('-', '_')}>{pattern})" for name, pattern in _RULES))

_T = TypeVar("_T", bound=msgspec.Struct)


def redact(text: str) -> str:
    """Replace what is a secret by ``[redacted: what it was]``.

    >>> redact("curl https://bob:hunter2222@example.org")
    'curl https://bob:[redacted: password]@example.org'
    """
    text = _TOKENS.sub(lambda match: f"[redacted: {str(match.lastgroup).replace('_', ' ')}]", text)
    text = _URL_PASSWORD.sub(r"\g<before>[redacted: password]", text)
    return _ASSIGNMENT.sub(r"\g<before>[redacted: secret]", text)


def clean(text: str) -> str:
    """Redact a text and make it valid Unicode; lone surrogates cannot be written as UTF-8."""
    return redact(text.encode("utf-8", "replace").decode() if not text.isascii() else text)


def clean_value(value: Any) -> Any:
    """Clean every text in a JSON value, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [clean_value(part) for part in value]
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(part) for key, part in value.items()}
    return value


def clean_struct(struct: _T) -> _T:
    """Clean every text in a struct, returning a new one."""
    return msgspec.convert(clean_value(msgspec.to_builtins(struct)), type(struct))
