"""Restores omitted apostrophes, so that "dont" is read like "don't"."""

import re
from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

from agentx.synthesis.language.sentences import Span

_NOT_NAMED = r"(?<![\w'`/.@-])"
_NEGATED = (
    rf"{_NOT_NAMED}(?:do|does|did|is|are|was|were|has|have|had|wo|ca|could|would|should|must|need|ai)n"
    r"(?=t(?![\w'`/-]))"
)
_SHORTENED = (
    rf"{_NOT_NAMED}(?:that|what|here|there)(?=s(?![\w'`/-]))|{_NOT_NAMED}(?:you|they)(?=(?:re|ve|ll) )"
    rf"|{_NOT_NAMED}we(?=ve )|{_NOT_NAMED}i(?=(?:m|ve) [a-z])"
    # "lets" is also a verb, "ill" an adjective, and "its" owns things.
    r"|(?:(?<![^\n])|(?<=[.!?,] )|\b(?:ok|okay|so|and|but|no|nah|yes|yeah) )let(?=s [a-z])"
    r"|(?:(?<![^\n])|(?<=[.!?,] )|\b(?:ok|okay|so|and|but|no|yes) )i(?=ll [a-z])"
    rf"|{_NOT_NAMED}it(?=s (?:a|an|the|not|no|just|too|very|so|really|still|already|only|also|ok|okay|fine"
    r"|good|better|wrong|bad|always|never|important"
    r"|all|been|going|supposed|meant|redundant|confusing|pointless|useless|unnecessary|overkill|because"
    r"|better|more|my|your|our|there|here|being)\b)"
)
_LEFT_OUT = re.compile(f"{_NEGATED}|{_SHORTENED}", re.IGNORECASE)
"""The text before an omitted apostrophe."""


class Spelt(NamedTuple):
    """A text with its apostrophes, and the offsets of those that were added."""

    text: str
    added: tuple[int, ...]

    def written(self, span: Span) -> Span:
        """Convert a span of this text into a span of the text as it was written."""
        return Span(*(offset - bisect_left(self.added, offset) for offset in (span.start, span.end)))


def spelt_out(text: str) -> Spelt:
    """Return a text with its omitted apostrophes restored.

    >>> spelt = spelt_out("we dont need it, its too much")
    >>> spelt.text
    "we don't need it, it's too much"
    >>> spelt.written(Span(18, 23))
    Span(start=17, end=21)
    """
    places = [match.end() for match in _LEFT_OUT.finditer(text)]
    if not places:
        return Spelt(text, ())
    bounds = [0, *places, len(text)]
    parts = (text[start:end] for start, end in pairwise(bounds))
    return Spelt("'".join(parts), tuple(place + number for number, place in enumerate(places)))
