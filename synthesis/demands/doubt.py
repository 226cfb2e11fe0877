"""Weighs whether a sentence may outlive its message, as a demand or as a rejection of what the agent did."""

import re
from typing import Literal, NamedTuple

from agentx.synthesis.demands.tables import doubt as table

_MARKS = re.compile(r"^(?:\d{1,2}[.)]\s+|[-+>•]\s+)+|[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
"""List numbers and emphasis."""

_MAX_CHARACTERS = 600
"""A longer sentence is weighed by its beginning."""

_NAMED = 3

_PLACES = (table.FIRST, table.ALONE, table.SHORT, table.LONG, table.IN_LONG)


class Doubt(NamedTuple):
    """What a sentence may be.

    Attributes:
        kind: A rejection, if it weighs enough as one and not clearly more as a demand.
        weight: Its weight; a candidate weighs at least 0.
        signs: Names of the signs that weigh most, the heaviest first.
    """

    kind: Literal["demand", "rejection"]
    weight: float
    signs: tuple[str, ...]


def signs(words: str, *, first: bool, alone: bool, words_of_message: int) -> tuple[bool, ...]:
    """Return which signs a sentence has, in the order of the table, and then which places it has.

    Args:
        words: The sentence, with inline quotes masked.
        first: Whether it is the first sentence of its message.
        alone: Whether it is the only one.
        words_of_message: Number of the user's own words in the message.
    """
    bare = _MARKS.sub("", words[:_MAX_CHARACTERS].strip())
    length = len(bare.split())
    return (
        *(bool(sign.pattern.search(bare)) for sign in table.SIGNS),
        first,
        alone,
        length <= table.SHORT_WORDS,
        length > table.LONG_WORDS,
        words_of_message > table.LONG_MESSAGE_WORDS,
    )


def weigh(words: str, *, first: bool, alone: bool, words_of_message: int) -> Doubt:
    """Return what a sentence of the user's own words may be; arguments as in :func:`signs`.

    >>> weigh("tests go next to the code, never elsewhere", first=True, alone=True, words_of_message=8).kind
    'demand'
    """
    found = signs(words, first=first, alone=alone, words_of_message=words_of_message)
    weights = (*((sign.demand, sign.rejection) for sign in table.SIGNS), *_PLACES)
    demand = table.DEMAND + sum(weight[0] for weight, has in zip(weights, found, strict=True) if has)
    rejection = table.REJECTION + sum(weight[1] for weight, has in zip(weights, found, strict=True) if has)
    kind: Literal["demand", "rejection"] = (
        "demand" if demand >= rejection + table.DEMAND_MARGIN or rejection < 0 else "rejection"
    )
    named = [(getattr(sign, kind), sign.name) for sign, has in zip(table.SIGNS, found, strict=False) if has]
    heavy = sorted((one for one in named if one[0] > 0), key=lambda one: -one[0])
    return Doubt(kind, round(max(demand, rejection), 2), tuple(name for _, name in heavy[:_NAMED]))
