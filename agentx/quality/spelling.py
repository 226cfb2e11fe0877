"""Known misspellings, from codespell's dictionary.

Only its data is used, read once when first needed: one line for each misspelling, as codespell documents it
(``misspelling->correction``, several corrections end in a comma, a reason may follow). Its one public function prints,
and reads settings from the current directory; a process for each text would cost more than the text.
A dictionary of mistakes, unlike one of words, says nothing against names, jargon and new words.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

ACRONYM = 5
"""Words in capitals up to this length are names of something."""

_WORD = re.compile(r"[\w'’-]+")

_AMERICAN = (
    ("our", "or"),
    ("ll", "l"),
    ("ys", "yz"),
    ("tre", "ter"),
    ("tred", "tered"),
    ("fence", "fense"),
    ("tence", "tense"),
)
"""How British words become American in ways that leave no doubt: ``program`` or ``practice`` are British too."""

_BRITISH_TOO = frozenset({"meter", "meters", "miter"})


def misspellings(
    lines: Sequence[str], *, language: str, known: frozenset[str]
) -> Iterator[tuple[int, str, str]]:
    """Find known misspellings.

    Args:
        lines: What to check.
        language: ``en``; ``en-GB`` and ``en-US`` also find what is written the other way.
        known: Words in lower case that are right here.

    Yields:
        Line from 1, the word, and what it should be.

    Example:
        >>> list(misspellings(["We recieved teh colour."], language="en-US", known=frozenset()))
        [(1, 'recieved', 'received'), (1, 'teh', 'the'), (1, 'colour', 'color')]
    """
    corrections = _dictionary()
    dialect = _dialect(language)
    for number, line in enumerate(lines, 1):
        for match in _WORD.finditer(line):
            word = match[0].strip("_'’-")
            plain = word.lower().replace("’", "'")
            correction = corrections.get(plain) or dialect.get(plain)
            if correction and plain not in known and not _is_name(word, correction):
                yield number, word, correction


def _is_name(word: str, correction: str) -> bool:
    """Whether it is rather a name: a short word in capitals, or a capitalized one that could be meant as several others."""
    return (word.isupper() and len(word) <= ACRONYM) or (word.istitle() and " or " in correction)


def _entries(name: str) -> Iterator[tuple[str, str]]:
    for line in (files("codespell_lib") / "data" / name).read_text("utf-8").splitlines():
        wrong, _, right = line.partition("->")
        corrections, comma, reason = right.rpartition(",")
        if not comma:
            yield wrong.lower(), right.strip()
        elif not reason.strip():  # with a reason, it is right somewhere
            yield wrong.lower(), " or ".join(part.strip() for part in corrections.split(","))


@functools.cache
def _dictionary() -> dict[str, str]:
    return dict(_entries("dictionary.txt"))


@functools.cache
def _dialect(language: str) -> dict[str, str]:
    if language not in {"en-GB", "en-US"}:
        return {}
    american = dict(_entries("dictionary_en-GB_to_en-US.txt"))
    if language == "en-US":
        return american
    return {
        us: gb
        for gb, us in american.items()
        if us not in _BRITISH_TOO and any(gb.replace(*change) == us for change in _AMERICAN)
    }
