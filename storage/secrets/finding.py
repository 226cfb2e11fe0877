"""Find secrets by format or context, and replace them where text enters the system.

So log, blobs, bus, model, index and commit messages all see the same bytes. Nothing is guessed from entropy,
because code is full of hashes. Known formats are in :mod:`agentx.storage.secrets.secret_formats`, contexts in
:mod:`agentx.storage.secrets.secret_contexts`; every search takes linear time.

Loads the standard library alone: a hook redacts what it keeps.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agentx.storage.secrets.secret_commands import (
    in_arguments,
    in_commands,
    in_cookies,
    in_pairs,
    in_settings,
)
from agentx.storage.secrets.secret_contexts import (
    in_headers,
    in_netrc,
    in_records,
    in_urls,
    is_secret_value,
    key_lines_end,
    named,
    private_keys,
    word_places,
)
from agentx.storage.secrets.secret_formats import PRIVATE_KEY, tokens
from agentx.storage.secrets.secret_readings import in_cookie_records, in_key_sets, in_logins, in_readings
from agentx.storage.secrets.secret_signs import long_words, lower, may_encode, may_hold
from agentx.storage.secrets.secret_tables import in_tables
from agentx.storage.secrets.secret_values import Places, Span
from agentx.storage.secrets.wrapping import DEPTH, View, commands, decodings, encoded, glued
from agentx.storage.text import encodable

_PASSES = 8
_SHORTEST = 6
_MASKED = 12
_SHORT, _REMEMBERED = 100, 64_000

Opened = dict[tuple[str, int], str]
"""The rule of a secret within decoded text, by that text and the layers that were left; empty for none."""


class SecretMatch(NamedTuple):
    """A secret in a text: the rule that found it, and its start and end, in characters."""

    rule: str
    start: int
    end: int


def find(text: str) -> list[SecretMatch]:
    """Return the secrets of a text, in order and without overlaps.

    >>> find("curl https://bob:hunter2222@example.org")
    [SecretMatch(rule='password', start=17, end=27)]
    """
    if len(text) < _SHORTEST:
        return []
    if len(text) <= _SHORT:
        return list(_find_short(text))
    return list((_find_again if len(text) <= _REMEMBERED else _find)(text))


def _find(text: str) -> tuple[SecretMatch, ...]:
    found = sorted(_everywhere(text, DEPTH, {}), key=lambda one: (one.start, -one.end))
    kept: list[SecretMatch] = []
    for one in found:
        if kept and one.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, one.end))
        else:
            kept.append(one)
    return tuple(kept)


def _everywhere(text: str, depth: int, opened: Opened) -> list[SecretMatch]:
    """Return what is found in a text and in its views, with positions in the text.

    Args:
        text: The text.
        depth: Number of layers of base64 that may still be opened. A layer is shorter than the one around it,
            so the work stays linear.
        opened: What was found in each of them: the views of a text show the same ones.
    """
    if not may_hold(text):
        return []
    found = _search(text, depth, opened)
    view: View | None = None
    for layer in decodings(text):
        if view is None:
            # A finding that ends in "=", the padding of base64, keeps its span.
            found = [
                one._replace(start=start, end=end) if text[one.end - 1] != "=" else one
                for one in found
                for start, end in [layer.narrowed(one.start, one.end)]
            ]
        view = layer
        found += _through(view, _near(view, lambda part: _search(part, depth, opened)))
    joined = glued(view.text if view else text, view)
    if joined:
        split = _near(joined, lambda part: _candidates(part, long_words(part)))
        whole = [(one.start, one.end) for one in found]
        found += [one for one in _through(joined, split) if not _is_covered(one, whole)]
    return found


def _search(text: str, depth: int, opened: Opened) -> list[SecretMatch]:
    words = long_words(text)
    found = list(_candidates(text, words))
    for start, end in commands(text):
        found += [
            SecretMatch(rule, start + first, start + last) for rule, first, last in find(text[start:end])
        ]
    if depth and words and may_encode(words):
        for start, end, said in encoded(text):
            if (said, depth) not in opened:
                hidden = _everywhere(said, depth - 1, opened)
                opened[said, depth] = hidden[0].rule if hidden else ""
            if rule := opened[said, depth]:
                found.append(SecretMatch(rule, start, end))
    return found


def _near(view: View, search: Callable[[str], Iterable[SecretMatch]]) -> list[SecretMatch]:
    """Run a search on the parts of a view that differ from the text before."""
    return [
        SecretMatch(one.rule, one.start + start, one.end + start)
        for start, end in view.changed()
        for one in search(view.text[start:end])
    ]


def _through(view: View, found: Iterable[SecretMatch]) -> list[SecretMatch]:
    return [SecretMatch(one.rule, *view.span(one.start, one.end)) for one in found]


# Cached, because a write checks its content three times.
_find_again = functools.lru_cache(maxsize=16)(_find)
_find_short = functools.lru_cache(maxsize=1_024)(_find)


def _candidates(text: str, words: str) -> Iterator[SecretMatch]:
    """Yield what each rule finds; formats come first, because a format says more than a context.

    Args:
        text: The text to search.
        words: Its long words.
    """
    if "PRIVATE KEY" in text or "Private-Lines" in text or "Static key" in text:
        yield from (SecretMatch("private key", *span) for span in private_keys(text))
    for name, match in tokens(text, words):
        # Not a name of several words (fc-event-title-container), and not masked (ghp_xxxxxxxx).
        if not _PHRASE.fullmatch(match[0]) and set(match[0][-_MASKED:]) not in ({"x"}, {"X"}, {"0"}):
            end = key_lines_end(text, match.end()) if name == PRIVATE_KEY else match.end()
            yield SecretMatch(name, match.start(), end)
    if "://" in text and "@" in text:
        yield from (SecretMatch("password", *span) for span in in_urls(text))
    lowered = lower(text)
    places = word_places(lowered)
    if "auth" in lowered or "bearer " in lowered:
        yield from (SecretMatch("credentials", *span) for span in in_headers(text))
    for rule, search in _PLACES:
        yield from (SecretMatch(rule, *span) for span in search(text, lowered, places))
    if places:
        for search in (in_records, in_readings, in_tables):
            yield from (SecretMatch("secret", *span) for span in search(text, lowered, places))
        yield from (SecretMatch("secret", *span) for span in named(text, places))


_PLACES: tuple[tuple[str, Callable[[str, str, Places], Iterator[Span]]], ...] = (
    ("password", in_commands),
    ("password", in_arguments),
    ("password", in_pairs),
    ("cookie", in_cookies),
    ("password", in_netrc),
    ("secret", in_settings),
    ("secret", in_key_sets),
    ("password", in_logins),
    ("cookie", in_cookie_records),
)
"""The name of a finding, and its search: it takes a text, the text in lower case, and keyword places."""

_PIECE = r"(?:[A-Z]?[a-z]{1,14}|[A-Z]{1,14})?[0-9]{0,2}"
_PHRASE = re.compile(rf"{_PIECE}(?:[-_.]{_PIECE}){{3,}}")


def _is_covered(one: SecretMatch, whole: list[Span]) -> bool:
    """Return whether other findings cover a finding, except for the line ends in it.

    It then only joins separate secrets.
    """
    within = sorted(span for span in whole if one.start <= span[0] and span[1] <= one.end)
    return len(within) > 1 and within[0][0] == one.start and within[-1][1] == one.end


def redact(text: str, *, keep_lines: bool = False) -> str:
    """Replace each secret by ``[redacted: RULE]``; redacted text does not change when it is redacted again.

    Args:
        text: The text to store.
        keep_lines: Keep the line feeds of a secret that spans several lines, so that line numbers do not
            change.

    >>> redact("curl https://bob:hunter2222@example.org")
    'curl https://bob:[redacted: password]@example.org'
    """
    # Text between two secrets can itself be a secret once they are marked.
    for _ in range(_PASSES):
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
    """Redact a text and make it encodable in UTF-8."""
    return redact(encodable(text), keep_lines=keep_lines)


def clean_value(value: Any) -> Any:
    """Clean every text in a JSON value, including keys.

    A key or a flag with a telling name makes the text that follows it a secret.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [clean_value(part) for part in _without_arguments(value)]
    if isinstance(value, dict):
        return {clean(str(key)): _clean_field(str(key), part) for key, part in value.items()}
    return value


def _without_arguments(parts: Sequence[Any]) -> list[Any]:
    """Return the parts of a list.

    If they are the arguments of a program, secrets that several of them form together are redacted.
    """
    texts = [encodable(part) if isinstance(part, str) else part for part in parts]
    if not any(isinstance(part, str) and part.startswith(("-", "/p:")) for part in texts):
        return texts
    line = " ".join(part if isinstance(part, str) else str(part) for part in texts)
    found = find(line)
    start = 0
    for number, part in enumerate(texts):
        end = start + len(part if isinstance(part, str) else str(part))
        within = [one for one in found if start <= one.start and one.end <= end]
        for one in reversed(within):
            text = str(texts[number])
            texts[number] = f"{text[: one.start - start]}[redacted: {one.rule}]{text[one.end - start :]}"
        start = end + 1
    return texts


def _clean_field(key: str, value: Any) -> Any:
    *_, plain = (key, *(view.text for view in decodings(key)))
    if isinstance(value, str) and is_secret_value(plain, value):
        return "[redacted: secret]"
    if isinstance(value, list | tuple) and value and all(isinstance(part, str) for part in value):
        return clean_value([_clean_field(key, part) for part in value])
    return clean_value(value)
