"""Weighs whether a sentence may outlive its message, as a demand or as a rejection of what the agent did."""

import re
from typing import Literal, NamedTuple

from agentx.synthesis.demands.tables import doubt as table

_MARKS = re.compile(r"^(?:\d{1,2}[.)]\s+|[-+>•]\s+)+|[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
"""List numbers and emphasis."""

_MAX_CHARACTERS = 600
"""A longer sentence is weighed by its beginning."""

_TOLD = 3


class Doubt(NamedTuple):
    """What a sentence may be.

    Attributes:
        kind: A demand or a rejection, whichever weighs more.
        weight: Its weight; a candidate weighs more than 0.
        signs: Names of the signs that weigh most, the heaviest first.
    """

    kind: Literal["demand", "rejection"]
    weight: float
    signs: tuple[str, ...]


def weigh(words: str, *, first: bool, alone: bool, words_of_message: int) -> Doubt:
    """Return what a sentence of the user's own words may be.

    Args:
        words: The sentence, with inline quotes masked.
        first: Whether it is the first sentence of its message.
        alone: Whether it is the only one.
        words_of_message: Number of the user's own words in the message.

    >>> weigh("tests go next to the code, never elsewhere", first=True, alone=True, words_of_message=8).kind
    'demand'
    """
    bare = _MARKS.sub("", words[:_MAX_CHARACTERS].strip())
    length = len(bare.split())
    length = len(bare.split())
    found = [sign for sign in table.SIGNS if sign.pattern.search(bare)]
    places = [
        weights
        for holds, weights in (
            (first, table.FIRST),
            (alone, table.ALONE),
            (length <= table.SHORT_WORDS, table.SHORT),
            (length > table.LONG_WORDS, table.LONG),
            (words_of_message > table.LONG_MESSAGE_WORDS, table.IN_LONG),
        )
        if holds
    ]
    demand = table.DEMAND + sum(sign.demand for sign in found) + sum(place[0] for place in places)
    rejection = table.REJECTION + sum(sign.rejection for sign in found) + sum(place[1] for place in places)
    if demand >= rejection:
        heavy = sorted((sign for sign in found if sign.demand > 0), key=lambda sign: -sign.demand)
        return Doubt("demand", demand, tuple(sign.name for sign in heavy[:_TOLD]))
    heavy = sorted((sign for sign in found if sign.rejection > 0), key=lambda sign: -sign.rejection)
    return Doubt("rejection", rejection, tuple(sign.name for sign in heavy[:_TOLD]))
