"""The one matcher of regular expressions that come as data: from a history, an item, a check, a setting.

Such a pattern may be written to take for ever. Where RE2 can match it, that takes time in proportion to the
text, and other threads go on meanwhile. The rest is matched by another process, which is ended when its time
is up; RE2 first looks whether the text can match at all. What is not decided then raises :class:`Undecided`,
and whoever asked must ask a person: neither "it matches" nor "it does not" would be true.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import re2

from agentx.storage.errors import AgentXError
from agentx.storage.matching import translation

LIMIT_S = 2.0
"""How long another process may take over one pattern."""

_SPENT_S, _WINDOW_S = 20.0, 60.0
"""How long patterns may be waited for in vain, of each minute: a history may bring thousands of them."""

_MOST_COST = 5e8
"""Instructions of RE2 times bytes of text, of which it does 250 million in a second at worst."""

_SHOWN = 80


class Undecided(AgentXError):
    """Whether a pattern matches could not be found out: it is invalid, or takes too long."""


class _Forms(NamedTuple):
    """A pattern for RE2; ``None`` where RE2 cannot say it.

    Attributes:
        ascii: Matches the same, in texts of ASCII.
        other: Matches the same, in any text.
        loose: Matches at least the same, in any text.
        needs_end: Whether the first two are right only for texts that do not end in a line break.
    """

    ascii: Any
    other: Any
    loose: Any
    needs_end: bool


def fault(pattern: str) -> str:
    """Return why something is no regular expression that can be used; empty if it is one.

    >>> fault("a+"), fault("a(")
    ('', 'missing ), unterminated subpattern at position 1')
    """
    try:
        translation.parsed(pattern, multiline=True)
    except ValueError as error:
        return str(error)
    return ""


def lines(pattern: str, text: str, *, most: int = 1, multiline: bool = False) -> list[int]:
    r"""Return the lines of the first matches in a text, from 1.

    Args:
        pattern: A regular expression of Python.
        text: The text.
        most: How many at most.
        multiline: Whether ``^`` and ``$`` match at each line.

    Raises:
        Undecided: The pattern is invalid, or takes too long.

    >>> lines("^b+", "a\nbb\nb", most=5, multiline=True)
    [2, 3]
    """
    return _matched(_Question(pattern, multiline=multiline, whole=False, most=most), (text,))[0]


def matches_any(pattern: str, texts: Iterable[str]) -> bool:
    """Return whether a pattern matches somewhere in one of several texts.

    Raises:
        Undecided: The pattern is invalid, or takes too long.

    >>> matches_any("^prod", ["--to", "production"])
    True
    """
    return any(_matched(_Question(pattern, multiline=False, whole=False, most=1), tuple(texts)))


def matches_whole(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text.

    Raises:
        Undecided: The pattern is invalid, or takes too long.

    >>> matches_whole("[a-z_]+[.]py", "app.py"), matches_whole("[a-z]+", "app.py")
    (True, False)
    """
    return bool(_matched(_Question(pattern, multiline=False, whole=True, most=1), (text,))[0])


class _Question(NamedTuple):
    pattern: str
    multiline: bool
    whole: bool
    most: int


def _matched(question: _Question, texts: tuple[str, ...]) -> list[list[int]]:
    """Return for each text the lines of its matches."""
    forms = _forms(question.pattern, question.multiline, question.whole)
    found: list[list[int]] = []
    open_: list[int] = []
    for number, text in enumerate(texts):
        known = _by_re2(forms, text, question.most)
        if known is None:
            open_.append(number)
        found.append(known or [])
    if open_:
        for number, one in zip(open_, _elsewhere(question, [texts[n] for n in open_]), strict=True):
            found[number] = one
    return found


# --- RE2 --------------------------------------------------------------------------------------------------


def _by_re2(forms: _Forms, text: str, most: int) -> list[int] | None:
    """Return the lines of the matches; ``None`` if RE2 cannot tell, or not soon enough."""
    content = text.encode("utf-8", "replace")
    exact = forms.ascii if text.isascii() else forms.other
    if forms.needs_end and text.endswith("\n"):
        exact = None
    form = exact or forms.loose
    if form is None or form.programsize * len(content) > _MOST_COST:
        return None
    if exact is None:
        return None if form.search(content) else []
    found: list[int] = []
    place, line, counted = 0, 1, 0
    while len(found) < most and place <= len(content) and (match := form.search(content, place)):
        start, end = match.span()
        line += content.count(b"\n", counted, start)
        found.append(line)
        counted, place = start, end
        if start == end:  # on to the next character
            place += 1
            while place < len(content) and content[place] & 0xC0 == 0x80:  # noqa: PLR2004 - a continuation
                place += 1
    return found


@lru_cache(maxsize=512)
def _forms(pattern: str, multiline: bool, whole: bool) -> _Forms:  # noqa: FBT001 - for the cache
    try:
        tree = translation.parsed(pattern, multiline=multiline)
    except ValueError as error:
        raise Undecided(f"`{_shown(pattern)}` is no regular expression: {error}.") from error
    return _Forms(
        _compiled(tree, whole, ascii_only=True, loose=False),
        _compiled(tree, whole, ascii_only=False, loose=False),
        _compiled(tree, whole, ascii_only=False, loose=True),
        translation.needs_whole_end(tree),
    )


def _compiled(tree: Any, whole: bool, *, ascii_only: bool, loose: bool) -> Any:  # noqa: FBT001
    options = re2.Options()
    options.log_errors = False
    for repeats in (True, False) if loose else (True,):
        try:
            text = translation.written(tree, ascii_only=ascii_only, loose=loose, repeats=repeats)
            return re2.compile((rf"\A(?:{text})\z" if whole else text).encode(), options)
        except (translation.NotWritten, re2.error):
            continue
    return None


# --- another process --------------------------------------------------------------------------------------


class _Patience:
    """What was waited for in vain lately: it is not tried again at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: dict[_Question, float] = {}

    def is_over(self, question: _Question) -> bool:
        with self._lock:
            since = time.monotonic() - _WINDOW_S
            self._lost = {one: moment for one, moment in self._lost.items() if moment > since}
            return question in self._lost or len(self._lost) * LIMIT_S >= _SPENT_S

    def lost(self, question: _Question) -> None:
        with self._lock:
            self._lost[question] = time.monotonic()


_PATIENCE = _Patience()


def _elsewhere(question: _Question, texts: list[str]) -> list[list[int]]:
    """Return for each text the lines of its matches, found by another process.

    Raises:
        Undecided: It took too long, or could not be started.
    """
    too_late = Undecided(f"Whether `{_shown(question.pattern)}` matches could not be found out in time.")
    if _PATIENCE.is_over(question):
        raise too_late
    request = json.dumps({**question._asdict(), "texts": texts, "limit_s": LIMIT_S})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("child.py"))],
            input=request.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=True,
            cwd="/",
            env={},
        )
        found: list[list[int]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _PATIENCE.lost(question)
        raise too_late from error
    return found


def _shown(pattern: str) -> str:
    return pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}…"
