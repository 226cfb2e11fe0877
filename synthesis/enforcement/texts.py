"""Checks of text: phrases and patterns that may not be written."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from agentx.storage.matching import matcher
from agentx.synthesis.enforcement.breaches import Breach, CheckedChange, Side, undecided
from agentx.synthesis.enforcement.paths import INVISIBLE
from agentx.synthesis.memory.checks import TextCheck

_BETWEEN_WORDS = r"[\s_*`~\-]{1,8}"
"""Characters allowed between the words of a phrase: a line break, a hyphen, emphasis."""

_MAX_LINES = 100


def forbidden_texts(check: TextCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each phrase or pattern that occurs more often than before."""
    if change.after is None or "files" not in check.places:
        return
    after, before = _texts(change, "after"), _texts(change, "before")
    for form in _forms(check):
        try:
            now = form.lines(after)
            more = bool(now) and len(now) > len(form.lines(before))
        except matcher.Undecided as why:
            yield undecided(why, change.path)
            continue
        if more:
            earlier = set(before.whole.splitlines())
            lines = after.whole.splitlines()
            fresh = [line for line in now if line > len(lines) or lines[line - 1] not in earlier]
            line = (fresh or now)[0]
            yield Breach(reason=f"Line {line} of {change.path} {form.said}.", line=line)


def forbidden_in_answer(check: TextCheck, text: str) -> Iterator[Breach]:
    """Yield a breach for each phrase or pattern that occurs in an answer."""
    if "answers" in check.places:
        yield from _forbidden_in(check, text, "The answer")


def forbidden_in_command(check: TextCheck, command: str) -> Iterator[Breach]:
    """Yield a breach for each phrase or pattern that occurs in a command line."""
    if "commands" in check.places:
        yield from _forbidden_in(check, command, "The command")


def _forbidden_in(check: TextCheck, text: str, what: str) -> Iterator[Breach]:
    texts = _Texts(text, _plain_text(text))
    for form in _forms(check):
        try:
            lines = form.lines(texts)
        except matcher.Undecided as why:
            yield undecided(why, what[0].lower() + what[1:])
            continue
        if lines:
            yield Breach(reason=f"{what} {form.said}.", line=lines[0])


class _Texts(NamedTuple):
    """A text as written, and as phrases are looked for in it."""

    whole: str
    plain: str


class _Form(NamedTuple):
    """A phrase or a pattern: its words, which every match contains, and what a match says.

    Attributes:
        phrase: The phrase as a pattern of ours; ``None`` for a pattern of somebody else.
        pattern: The pattern of somebody else.
        words: The words of the phrase.
        said: What a match says.
    """

    phrase: re.Pattern[str] | None
    pattern: str
    words: tuple[str, ...]
    said: str

    def lines(self, texts: _Texts) -> list[int]:
        """Return the lines on which it occurs, at most 100.

        Raises:
            Undecided: The pattern is invalid, or takes too long.
        """
        if self.phrase is None:
            return matcher.lines(self.pattern, texts.whole, most=_MAX_LINES, multiline=True)
        text = texts.plain
        if not all(word in text for word in self.words):
            return []
        found = islice(self.phrase.finditer(text), _MAX_LINES)
        return [text.count("\n", 0, match.start()) + 1 for match in found]


def _texts(change: CheckedChange, side: Side) -> _Texts:
    text = change.text(side)
    return change.once(("texts", side), lambda: _Texts(text, _plain_text(text)))


def _forms(check: TextCheck) -> Iterator[_Form]:
    yield from map(_phrase, check.phrases)
    yield from map(_pattern, check.patterns)


def _pattern(pattern: str) -> _Form:
    return _Form(None, pattern, (), said=f"matches `{pattern}`")


def _plain_text(text: str) -> str:
    return INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")


@lru_cache(maxsize=512)
def _phrase(phrase: str) -> _Form:
    plain = _plain_text(phrase).strip()
    words = tuple(plain.split())
    # A letter or digit next to the phrase makes it another word. An underscore does not: it joins words in
    # names.
    opens = r"(?<![^\W_])" if re.match(r"\w", plain) else ""
    closes = r"(?![^\W_])" if re.search(r"\w$", plain) else ""
    form = _BETWEEN_WORDS.join(map(re.escape, words)) or r"(?!)"
    return _Form(re.compile(opens + form + closes), "", words, said=f"says “{phrase}”")
