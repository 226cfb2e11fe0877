"""Known misspellings, found by the program typos, which ships in the Python package of that name.

Its dictionary lists mistakes and their corrections. So, unlike a dictionary of words, it accepts names,
jargon and new words. The program reads standard input only (``--isolated``: no configuration file); the
process takes about 10 ms.
"""

import functools
import re
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import groupby

import msgspec

from agentx.storage.errors import AgentXError
from agentx.storage.extras import QUALITY, needs

ACRONYM = 5
"""Words in capitals up to this length count as names."""

TIMEOUT_S = 30.0
FOUND = (0, 2)
"""The program's exit statuses without and with misspellings."""

_WORD = re.compile(r"[\w'’-]+")
_AROUND = "_'’-"


class SpellingUnavailable(AgentXError):
    """The program typos is missing or cannot run."""


class _TypoLine(msgspec.Struct, frozen=True):
    """A line of the program's output; ``byte_offset`` counts from the beginning of the line."""

    type: str
    line_num: int = 0
    byte_offset: int = 0
    typo: str = ""
    corrections: tuple[str, ...] = ()


def misspellings(
    lines: Sequence[str], *, language: str, known: frozenset[str]
) -> Iterator[tuple[int, str, str]]:
    """Find known misspellings.

    The lines have no lone surrogates. ``en-GB`` and ``en-US`` also report the spelling of the other variety.
    ``known`` are words to accept, in lower case.

    Yields:
        Line number (from 1), the word, and its correction.

    Raises:
        SpellingUnavailable: The program typos is missing or cannot run.

    Example:
        >>> list(misspellings(["We recieved teh colour."], language="en-US", known=frozenset()))
        [(1, 'recieved', 'received'), (1, 'teh', 'the'), (1, 'colour', 'color')]
    """
    for number, found_here in groupby(_typos(lines, language), key=lambda found: found.line_num):
        words = _words(lines[number - 1])
        for found in found_here:
            if words.get(found.byte_offset) == found.typo and found.typo.lower() not in known:
                correction = " or ".join(found.corrections)
                is_oxford = found.typo.replace("iz", "is") == correction  # British too: ``organize``
                is_acronym = found.typo.isupper() and len(found.typo) <= ACRONYM
                is_name = is_acronym or (found.typo.istitle() and " or " in correction)
                if not is_oxford and not is_name:
                    yield number, found.typo, correction


def _typos(lines: Sequence[str], language: str) -> list[_TypoLine]:
    locale = language.lower() if language in {"en-GB", "en-US"} else "en"
    command = [_program(), "--isolated", "--binary", "--format", "json", "--locale", locale, "-"]
    text = "\n".join(lines).encode()
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, env={}, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SpellingUnavailable(f"The program typos cannot run: {error}.") from error
    if done.returncode not in FOUND:
        raise SpellingUnavailable(f"The program typos failed with exit status {done.returncode}.")
    try:
        said = msgspec.json.Decoder(_TypoLine).decode_lines(done.stdout)
    except msgspec.DecodeError as error:
        raise SpellingUnavailable(f"The program typos printed unexpected output: {error}.") from error
    return [found for found in said if found.type == "typo"]


@functools.cache
def _program() -> str:
    with needs(QUALITY, SpellingUnavailable):
        files = metadata.files("typos") or []
    for file in files:
        if file.name == "typos":
            return str(file.locate())
    raise SpellingUnavailable("The package typos contains no program: pip install --force-reinstall typos.")


def _words(line: str) -> dict[int, str]:
    """Return the words of a line by their byte offset.

    The program also checks the parts of ``snake_case``, ``CamelCase`` and ``mis-parse``. Those need not be
    words.
    """
    words = {}
    seen = place = 0
    for match in _WORD.finditer(line):
        word = match[0].strip(_AROUND)
        start = match.start() + len(match[0]) - len(match[0].lstrip(_AROUND))
        place += len(line[seen:start].encode())
        seen = start
        words[place] = word
    return words
