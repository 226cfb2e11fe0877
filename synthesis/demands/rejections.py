"""Finds the idea that a sentence rules out; the words that decide stand in :mod:`agentx.synthesis.demands.rulings`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentx.synthesis.demands.clause import lead_length
from agentx.synthesis.demands.material import NAME
from agentx.synthesis.demands.rulings import (
    BARE_REFUSAL,
    BEYOND_ONE_CALL,
    NO_REJECTION,
    OPENINGS,
    REASON,
    RULINGS,
    Ruling,
)
from agentx.synthesis.demands.vocabulary import FEATURES, compiled
from agentx.synthesis.demands.words import content_words

_TURN = compiled(
    r"\s+(?:but|though|however)\s+|[,;]\s+(?=(?:ignore|disregard|leave|revert|undo|scrap|ditch)\b)"
)
"""Where a sentence turns against something, so that what follows is tried on its own."""

_MIN_WORDS = 2
"""Content words of a sentence that can tell later what was meant; "not true" and "this is wrong" cannot."""


class RuledOut(NamedTuple):
    """What a sentence rules out.

    Attributes:
        idea: Its name in the user's words; empty where they only point to it ("this is not right").
        reason: Why, where the sentence says so; otherwise empty.
        lasts: Whether the words go beyond the call that they answer.
    """

    idea: str
    reason: str
    lasts: bool


def ruled_out(sentence: str, clauses: Sequence[str], *, before: str = "") -> RuledOut | None:
    """The idea that a sentence rules out, or ``None``.

    Args:
        sentence: A sentence of the user's own words, inline quotes blanked out.
        clauses: Its clauses.
        before: What stands right before it: a bare "No!" there belongs to it.

    >>> ruled_out("hmm, I feel the prefix is redundant", [])
    RuledOut(idea='the prefix', reason='', lasts=False)
    >>> ruled_out("no, this is fine", [])
    """
    if BARE_REFUSAL.search(before):
        sentence = f"no, {sentence}"
    if NO_REJECTION.match(sentence):
        return None
    forms = list(_forms([turn for part in (sentence, *clauses) for turn in (part, *_TURN.split(part)[1:])]))
    for ruling in RULINGS:
        for words, asks in forms:
            if ruling.mood in ("either", "asked" if asks else "said") and (
                found := _tried(ruling, words, sentence)
            ):
                return found
    return None


def _forms(parts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each part without what opens it and as it stands, and whether it asks."""
    for part in dict.fromkeys(parts):
        asks = bool(FEATURES["question"].search(part))
        bare = part
        while length := lead_length(bare) or _opening(bare):
            bare = bare[length:]
        yield bare, asks
        if bare != part:
            yield part, asks


def _opening(words: str) -> int:
    match = OPENINGS.match(words)
    return match.end() if match else 0


def _tried(ruling: Ruling, words: str, sentence: str) -> RuledOut | None:
    match = ruling.pattern.search(words)
    if not match:
        return None
    named = next((text for key, text in match.groupdict().items() if key.startswith("idea") and text), "")
    idea = named.strip() if content_words(named.replace(NAME, "x")) else ""
    if ruling.lasts == "always" and not idea:
        return None
    if not idea and len(content_words(sentence.replace(NAME, "x"))) < _MIN_WORDS:
        return None
    lasts = ruling.lasts == "always" or (
        ruling.lasts == "if it says so" and bool(BEYOND_ONE_CALL.search(sentence))
    )
    reason = REASON.search(sentence)
    return RuledOut(idea, reason["reason"] if reason else "", lasts and bool(idea))
