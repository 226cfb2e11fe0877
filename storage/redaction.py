"""Secrets are found by their format or by the place where they stand, and replaced where text enters.

So log, blobs, bus, model, index and commit messages see the same bytes. Nothing is guessed from entropy: code is full
of hashes. What has a format is in :mod:`agentx.storage.secret_formats`, what has a place in
:mod:`agentx.storage.secret_places`; every search takes linear time.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from agentx.storage.events import Draft
from agentx.storage.secret_formats import formats_in
from agentx.storage.secret_places import (
    WORDS,
    in_headers,
    in_logins,
    in_urls,
    is_secret_value,
    lower,
    named,
    private_keys,
)
from agentx.storage.text import encodable

_ANCHORS = ("private key", "private-lines", "@", "auth", "bearer ", " -u", "--user", "login", "sshpass")
"""One of these stands in every text in which a rule for a place finds something, or one of :data:`WORDS`."""

_PASSES = 8
_SHORTEST = 6
_REMEMBERED = 64_000

_T = TypeVar("_T", bound=msgspec.Struct)


class Finding(NamedTuple):
    """A secret in a text: what it is, and from where to where it stands, in characters."""

    rule: str
    start: int
    end: int


def find(text: str) -> list[Finding]:
    """The secrets of a text, in order, none within another.

    >>> find("curl https://bob:hunter2222@example.org")
    [Finding(rule='password', start=17, end=27)]
    """
    if len(text) < _SHORTEST:
        return []
    return list((_find_again if len(text) <= _REMEMBERED else _find)(text))


def _find(text: str) -> tuple[Finding, ...]:
    found = sorted(_candidates(text), key=lambda one: (one.start, -one.end))
    kept: list[Finding] = []
    for one in found:
        if kept and one.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return tuple(kept)


_find_again = functools.lru_cache(maxsize=16)(_find)  # a write looks at its content three times


def _may_hold(text: str) -> bool:
    """Whether a text (also as it stands in JSON, which changes none of these words) can hold anything that a rule finds."""
    lowered = lower(text)
    return any(word in lowered for word in (*_ANCHORS, *WORDS)) or next(formats_in(text), None) is not None


def _candidates(text: str) -> Iterator[Finding]:
    """What each rule finds; a format says more than a place, so it comes first."""
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        yield from (Finding("private key", *span) for span in private_keys(text))
    for name, pattern in formats_in(text):
        yield from (Finding(name, *match.span()) for match in pattern.finditer(text))
    if "://" in text and "@" in text:
        yield from (Finding("password", *span) for span in in_urls(text))
    lowered = lower(text)
    if "authorization" in lowered or "bearer " in lowered or 'auth"' in lowered or "_auth" in lowered:
        yield from (Finding("credentials", *span) for span in in_headers(text))
    if (
        " -u" in text
        or "--user" in text
        or ("login" in lowered and "password" in lowered)
        or "sshpass" in text
    ):
        yield from (Finding("password", *span) for span in in_logins(text))
    yield from (Finding("secret", *span) for span in named(text, lowered))


def redact(text: str, *, keep_lines: bool = False) -> str:
    """Replace what is a secret by ``[redacted: what it was]``; a text that was redacted stays as it is.

    Args:
        text: What is to be kept.
        keep_lines: Leave the line feeds of a secret of many lines, so that no line gets another number.

    >>> redact("curl https://bob:hunter2222@example.org")
    'curl https://bob:[redacted: password]@example.org'
    """
    for _ in range(_PASSES):  # what stood between two secrets can be one beside their marks
        found = find(text)
        if not found:
            break
        parts, last = [], 0
        for rule, start, end in found:
            feeds = "\n" * text.count("\n", start, end) if keep_lines else ""
            parts += [text[last:start], f"[redacted: {rule}]{feeds}"]
            last = end
        text = "".join([*parts, text[last:]])
    return text


def clean(text: str, *, keep_lines: bool = False) -> str:
    """Redact a text and make it one that UTF-8 can hold."""
    return redact(encodable(text), keep_lines=keep_lines)


def clean_value(value: Any) -> Any:
    """Clean every text in a JSON value, keys included; a key that says so makes its text a secret."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [clean_value(part) for part in value]
    if isinstance(value, dict):
        return {clean(str(key)): _clean_field(str(key), part) for key, part in value.items()}
    return value


def _clean_field(key: str, value: Any) -> Any:
    if isinstance(value, str) and is_secret_value(key, value):
        return "[redacted: secret]"
    return clean_value(value)


def clean_struct(struct: _T) -> _T:
    """Clean every text in a struct, returning a new one; the same where nothing in it can be a secret."""
    with contextlib.suppress(UnicodeEncodeError):  # lone surrogates
        text = msgspec.json.encode(struct).decode()
        if not _may_hold(text):
            return struct
    return msgspec.convert(clean_value(msgspec.to_builtins(struct)), type(struct))


def clean_draft(draft: Draft) -> Draft:
    """Clean an event that is about to be recorded: what happened, and who did it."""
    return msgspec.structs.replace(draft, data=clean_struct(draft.data), actor=clean(draft.actor))
