"""Finds the idea that a sentence rules out.

The deciding words are in :mod:`agentx.synthesis.demands.tables.rulings`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentx.synthesis.demands.reading.clause import lead_length
from agentx.synthesis.demands.tables.rejection_row import Ruling
from agentx.synthesis.demands.tables.rulings import (
    ASTONISHED,
    BARE_REFUSAL,
    BECAUSE,
    BEYOND_ONE_CALL,
    HERE,
    NO_REJECTION,
    OPENINGS,
    REASON,
    RULINGS,
)
from agentx.synthesis.demands.tables.sources import NAME
from agentx.synthesis.demands.tables.vocabulary import FEATURES, compiled
from agentx.synthesis.language.words import content_words

_TURN = compiled(
    r"\s+(?:but|though|however|except that)\s+|\s+(?:because|since|cause|cuz)\s+"
    r"(?=(?:there(?:'s| is) no|we don't|i don't|it's not|that's not|it isn't|it doesn't)\b)|[,;]\s+"
    r"(?=(?:ignore|disregard|leave|revert|undo|scrap|ditch)\b)"
)
"""Where a sentence turns against something, so that the rest is tried separately."""

_PART = compiled(r"[,;]")

_MIN_WORDS = 2
"""Minimum number of content words that still show later what was meant.

"Not true" and "this is wrong" do not.
"""


class RuledOut(NamedTuple):
    """What a sentence rules out.

    Attributes:
        idea: Its name in the user's words; empty if they only point to it ("this is not right").
        reason: Why, if the sentence says so; otherwise empty.
        lasts: Whether the words go beyond the call that they answer.
        clause: Index of the clause in which it begins, from 0.
        ruling: Name of the row of :data:`agentx.synthesis.demands.tables.rulings.RULINGS` that matched.
    """

    idea: str
    reason: str
    lasts: bool
    clause: int
    ruling: str


def ruled_out(sentence: str, clauses: Sequence[str], *, before: str = "") -> RuledOut | None:
    """Return the idea that a sentence rules out, or ``None``.

    Args:
        sentence: A sentence of the user's own words, with inline quotes masked.
        clauses: Its clauses.
        before: The text right before it: a bare "No!" there belongs to it.

    >>> ruled_out("hmm, I feel the prefix is redundant", [])
    RuledOut(idea='the prefix', reason='', lasts=False, clause=0, ruling='poor')
    >>> ruled_out("no, this is fine", [])
    """
    if BARE_REFUSAL.search(before):
        sentence = f"no, {sentence}"
    if astonished := ASTONISHED.search(before):
        sentence = f"{astonished['word']}? {sentence}"
    if NO_REJECTION.match(sentence):
        return None
    whole = [*_forms(0, sentence)]
    parts = [*(form for clause in enumerate(clauses) for form in _forms(*clause)), *whole]
    for ruling in RULINGS:
        for form in whole if ruling.alone else parts:
            if ruling.mood in ("either", "asked" if form.asks else "said") and (
                found := _tried(ruling, form, sentence)
            ):
                return found
    return None


class _Form(NamedTuple):
    words: str
    asks: bool
    clause: int


def _forms(clause: int, words: str) -> Iterator[_Form]:
    """Yield a clause and what follows a turn in it, each without its opening words and as written."""
    for part in (words, *_TURN.split(words)[1:]):
        asks = bool(FEATURES["question"].search(part))
        bare = _bare(part)
        yield _Form(bare, asks, clause)
        if bare != part:
            yield _Form(part, asks, clause)


def _bare(words: str) -> str:
    while length := lead_length(words) or ((opening := OPENINGS.match(words)) and opening.end()):
        words = words[length:]
    return words


def _tried(ruling: Ruling, form: _Form, sentence: str) -> RuledOut | None:
    match = ruling.pattern.search(form.words)
    if not match:
        return None
    key = next((key for key, text in match.groupdict().items() if key.startswith("idea") and text), "")
    if key and FEATURES["bounds"].search(_PART.split(form.words[match.start(key) :], maxsplit=1)[0]):
        return None
    named = _bare(match[key]) if key else ""
    idea = named.strip() if content_words(named.replace(NAME, "x")) else ""
    if ruling.lasts == "always" and not idea:
        return None
    if not (idea or ruling.alone) and len(content_words(_bare(sentence).replace(NAME, "x"))) < _MIN_WORDS:
        return None
    lasts = ruling.lasts == "always" or (
        ruling.lasts == "if it says so" and bool(BEYOND_ONE_CALL.search(sentence))
    )
    begins = sentence.find(form.words) + match.start(key) if key else 0
    idea, reason = _reasoned(idea, sentence, begins)
    return RuledOut(idea, reason, lasts and bool(idea), form.clause, ruling.name)


def _reasoned(idea: str, sentence: str, begins: int) -> tuple[str, str]:
    """Return an idea without the reason and the place after it, and the reason given in the sentence.

    Args:
        idea: The part that its pattern matched; may be empty.
        sentence: The whole sentence.
        begins: Position of the idea in it, or a little before.
    """
    at = sentence.find(idea, max(0, begins))
    why = BECAUSE.search(sentence, at) if idea and at >= 0 else None
    named = sentence[at : why.start()] if why and why.start() < at + len(idea) else idea
    if idea and not content_words(named.replace(NAME, "x")):
        # "Stop suggesting these: …" names the idea after the colon.
        return idea.removeprefix(named).lstrip(" :–—-"), ""
    reason = why or REASON.search(sentence)
    return HERE.sub("", named.strip()), reason["reason"].strip() if reason else ""
