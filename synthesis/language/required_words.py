"""The words of which a text must have at least one for a regular expression to match.

Searching a sentence for some hundred patterns takes most of the time of reading it. Few of their words are in
it, which is found a dozen times faster than that the pattern does not match.
"""

import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any

_FEWEST_CHARACTERS = 2
_MOST_WORDS = 120
_ASCII = 128

Search = Callable[..., re.Match[str] | None]


def filtered(compiled: re.Pattern[str]) -> Search:
    """Return the pattern's ``search``, which looks for the words first where there are some.

    >>> filtered(re.compile("(?:you|we) can", re.IGNORECASE))("now We can go").group()
    'We can'
    """
    search, words = compiled.search, required_words(compiled)
    if not words:
        return search

    def find(text: str, *span: int) -> re.Match[str] | None:
        if text.isascii():  # in other texts, letters may have several lower cases
            lower = text.lower()
            for word in words:
                if word in lower:
                    return search(text, *span)
            return None
        return search(text, *span)

    return find


def required_words(compiled: re.Pattern[str]) -> tuple[str, ...]:
    """Return the words, in lower case; empty if there are none, or too many to save time.

    >>> required_words(re.compile("(?:never|don't) .+ again"))
    (' again',)
    >>> required_words(re.compile(r"(?:never|don't) ?"))
    ("don't", 'never')
    """
    try:
        parsed = importlib.import_module("re._parser").parse(compiled.pattern, compiled.flags)
        return tuple(sorted(_best(parsed) or ()))
    except (
        ImportError,
        AttributeError,
        re.error,
        TypeError,
        ValueError,
    ):  # Python's own parser is not public
        return ()


def _best(parsed: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """Return the alternatives of that part of a sequence which says most."""
    found, run = list[frozenset[str]](), ""
    for code, argument in [*parsed, ("END", None)]:
        name = str(code)
        if name == "LITERAL" and argument < _ASCII:
            run += chr(argument).lower()
            continue
        if name in ("AT", "ASSERT", "ASSERT_NOT"):  # nothing between the letters
            continue
        found.append(frozenset([run]))
        run = ""
        if (inner := _inner(name, argument)) is not None:
            found.append(inner)
    usable = [one for one in found if len(one) <= _MOST_WORDS and min(map(len, one)) >= _FEWEST_CHARACTERS]
    return max(usable, key=lambda one: (min(map(len, one)), -len(one)), default=None)


def _inner(name: str, argument: Any) -> frozenset[str] | None:
    match name:
        case "SUBPATTERN":
            return _best(argument[-1])
        case "ATOMIC_GROUP":
            return _best(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if argument[0]:
            return _best(argument[2])
        case "BRANCH":
            parts = [_best(one) for one in argument[1]]
            if None not in parts:
                return frozenset().union(*(one for one in parts if one))
    return None
