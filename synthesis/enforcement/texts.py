"""Checks of text: phrases and patterns that may not be written."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from agentx.synthesis.enforcement.breaches import Breach, CheckedChange
from agentx.synthesis.memory.checks import TextCheck

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_BETWEEN_WORDS = r"[\s_*`~\-]{1,8}"
"""Characters allowed between the words of a phrase: a line break, a hyphen, emphasis."""

_MAX_LINES = 100


def forbidden_texts(check: TextCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each phrase or pattern that occurs more often than before."""
    if change.after is None or "files" not in check.places:
        return
    for name, said in _named(check):
        now, then = _lines_of(name, change.after), _lines_of(name, change.before or "")
        if len(now) > len(then):
            earlier = set((change.before or "").splitlines())
            lines = change.after.splitlines()
            fresh = [line for line in now if line > len(lines) or lines[line - 1] not in earlier]
            line = (fresh or now)[0]
            yield Breach(reason=f"Line {line} of {change.path} {said}.", line=line)


def forbidden_in_answer(check: TextCheck, text: str) -> Iterator[Breach]:
    """Yield a breach for each phrase or pattern that occurs in an answer."""
    if "answers" in check.places:
        yield from _forbidden_in(check, text, "The answer")


def forbidden_in_command(check: TextCheck, command: str) -> Iterator[Breach]:
    """Yield a breach for each phrase or pattern that occurs in a command line."""
    if "commands" in check.places:
        yield from _forbidden_in(check, command, "The command")


def _forbidden_in(check: TextCheck, text: str, what: str) -> Iterator[Breach]:
    for name, said in _named(check):
        if lines := _lines_of(name, text):
            yield Breach(reason=f"{what} {said}.", line=lines[0])


def _named(check: TextCheck) -> Iterator[tuple[re.Pattern[str], str]]:
    for phrase in check.phrases:
        yield _phrase_pattern(phrase), f"says “{phrase}”"
    for pattern in check.patterns:
        yield _compiled(pattern), f"matches `{pattern}`"


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def _lines_of(pattern: re.Pattern[str], text: str) -> list[int]:
    plain = _plain_text(text) if pattern.flags & re.MULTILINE == 0 else text
    found = islice(pattern.finditer(plain), _MAX_LINES)
    return [plain.count("\n", 0, match.start()) + 1 for match in found]


def _plain_text(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")


@lru_cache(maxsize=512)
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    words = [re.escape(word) for word in _plain_text(phrase).split()] or [r"(?!)"]
    # A letter or digit next to the phrase makes it another word. An underscore does not: it joins words in
    # names.
    opens = r"(?<![^\W_])" if re.match(r"\w", _plain_text(phrase).strip() or " ") else ""
    closes = r"(?![^\W_])" if re.search(r"\w$", _plain_text(phrase).strip() or " ") else ""
    return re.compile(opens + _BETWEEN_WORDS.join(words) + closes)
