"""The words of a text with their lines and stems, and a search for phrases among them."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import msgspec

from agentx.synthesis.language.words import stem

_UNSPACED = "぀-ヿ㐀-䶿一-鿿豈-﫿ｦ-ﾟ"
_LETTER = rf"[^\W_{_UNSPACED}][\u0300-\u036f\u200c\u200d]*+"
_TOKEN = re.compile(rf"[{_UNSPACED}]|(?:{_LETTER})++(?:['’](?:{_LETTER})++)*+")
_COUNTED = re.compile(rf"[{_UNSPACED}]|(?:{_LETTER}|_)++(?:['’.,/‐‑-](?:{_LETTER}|_)++)*+")
_JOIN = re.compile(r"[ \t*_~]*+(?:[-‐‑/]|\n[ \t>]*)?[ \t*_~]*+")
_TOLD = 5


class Token(msgspec.Struct, frozen=True):
    """A word of a text, or one character of a script without spaces.

    Attributes:
        text: The word as written.
        line: From 1.
        stem: Its English stem.
        before: The text between the previous word and this one.
    """

    text: str
    line: int
    stem: str
    before: str

    @property
    def word(self) -> str:
        """The word in lower case, with a plain apostrophe."""
        return plain(self.text)

    @property
    def joins(self) -> bool:
        """Whether it can form a phrase with the previous word."""
        return _JOIN.fullmatch(self.before) is not None


Phrase = tuple[Token, ...]
"""The words of a term."""

Form = Callable[[Token, Token], bool]
"""Returns whether a wanted word and a found word with the same stem count as the same."""


class Words:
    """The words of a text."""

    def __init__(self, text: str) -> None:
        self.all = tokens(text)
        self._places: dict[str, list[int]] = {}
        for place, token in enumerate(self.all):
            self._places.setdefault(token.stem, []).append(place)

    def find(self, wanted: Phrase, same: Form) -> Iterator[int]:
        """Yield the places of a phrase: the index of its first word in ``all``."""
        for place in self._places.get(wanted[0].stem, ()) if wanted else ():
            said = self.all[place : place + len(wanted)]
            matches = len(said) == len(wanted) and all(map(same, wanted, said))
            if matches and all(token.joins for token in said[1:]):
                yield place


def tokens(text: str) -> list[Token]:
    """Return the words of a text, in order."""
    found: list[Token] = []
    line, end = 1, 0
    for match in _TOKEN.finditer(text):
        before = text[end : match.start()]
        line += before.count("\n")
        found.append(Token(match[0], line, _stem(match[0]), before))
        end = match.end()
    return found


def phrase(text: str) -> Phrase:
    """Return the words of a term."""
    return tuple(tokens(text))


def count(text: str) -> int:
    """Count the words of a text.

    A word is a run of letters and digits including inner hyphens and points, or a single character of a
    script without spaces.
    """
    return sum(1 for _ in _COUNTED.finditer(text))


def plain(word: str) -> str:
    """Return a word in lower case, with its characters normalised."""
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'")


@lru_cache(maxsize=1 << 14)
def singular(word: str) -> str:
    """Return an English word in the singular, without a possessive.

    >>> singular("Entries"), singular("boxes"), singular("ledger's"), singular("class")
    ('entry', 'box', 'ledger', 'class')
    """
    bare = plain(word).removesuffix("'s").removesuffix("'")
    if len(bare) > len("ties") and bare.endswith("ies"):
        return f"{bare[:-3]}y"
    if bare.endswith(("sses", "shes", "ches", "xes", "zes")):
        return bare[:-2]
    return (
        bare[:-1]
        if bare.endswith("s") and len(bare) > len("gas") and not bare.endswith(("ss", "us", "is"))
        else bare
    )


def is_one_word(wanted: Token, said: Token) -> bool:
    """Return whether two words are the same, in singular or plural.

    An abbreviation in capitals matches only capitals.
    """
    if len(wanted.text) > 1 and wanted.text.isupper() and not said.text.removesuffix("s").isupper():
        return False
    return singular(wanted.text) == singular(said.text)


def is_longer(wanted: Token, said: Token) -> bool:
    """Return whether a word is another one or is formed from it ("whitelisted")."""
    return said.word.startswith(wanted.word[:-1])


def told_lines(lines: Sequence[int]) -> str:
    """Return line numbers in words; of many, the first five.

    >>> told_lines([3, 3, 9, 12])
    'Lines 3, 9 and 12'
    """
    each = sorted(set(lines))
    named = [str(line) for line in each[:_TOLD]]
    if len(each) > _TOLD:
        named.append(f"{len(each) - _TOLD} more")
    first = ", ".join(named[:-1])
    return f"Line {named[0]}" if len(named) == 1 else f"Lines {first} and {named[-1]}"


@lru_cache(maxsize=1 << 15)
def _stem(word: str) -> str:
    bare = plain(word)
    return stem(bare) if bare.isascii() else bare.removesuffix("'s")
