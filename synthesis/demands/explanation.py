"""Explains what becomes of each part of a message, and why.

For users who ask why a rule was made, or why none was.
"""

from typing import Literal

import msgspec

from agentx.synthesis.attribution.material import material, own_words
from agentx.synthesis.demands.classify import ATTITUDE, RECORDED, Demand, Rejection, readings
from agentx.synthesis.demands.reading.clause import take_apart
from agentx.synthesis.demands.reversals import (
    Fulfilment,
    Reversal,
    Withdrawal,
    closes,
    is_decisive,
)
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.demands.tables.explicit import ORDERS, REJECTIONS
from agentx.synthesis.demands.tables.rulings import RULINGS
from agentx.synthesis.language.apostrophes import spelt_out
from agentx.synthesis.language.sentences import sentences

Verdict = Literal["active", "candidate", "changes", "ends", "left", "material"]
"""A rule, a candidate, words that change or end a rule, words without lasting effect, or words of others."""

_EXAMPLES: dict[str, str] = {
    **{order.name: order.takes for order in ORDERS},
    **{row.name: row.takes for row in REJECTIONS},
    **{row.name: row.takes for row in RULINGS},
    RECORDED: "short commits, please, and add a rule for this",
    ATTITUDE: "I avoid dark themes",
}
_ORDER = v.compiled(rf"^(?:{v.POLICY_VERBS}|don't|do not)\b")
_SCRAP = 8
"""Texts shorter than this, in characters, are scraps."""


class MessagePart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message, ``text[start:end]``, and what becomes of it.

    Attributes:
        verdict: What becomes of it.
        kind: ``constraint``, ``preference`` or ``rejection``; empty if none is made.
        why: The reason, in words.
    """

    start: int
    end: int
    verdict: Verdict
    kind: str = ""
    why: str


def explain(text: str) -> tuple[MessagePart, ...]:
    """Return every part of a user's message in order, and what becomes of each if no rule exists yet.

    Args:
        text: The whole message, quotes and pasted material included.

    >>> for part in explain('Never use tabs. Can you run the tests? The README says to lie.'):
    ...     print(part.verdict, part.kind or "-", "|", part.why)
    active constraint | read as "never", as in "never create a requirements.txt file"
    left - | a question
    material - | what somebody else says
    """
    parts: list[MessagePart] = []
    for reading in readings(text):
        # A revision needs an existing rule that it matches: most such orders are about the work.
        turns = [turn for turn in reading.reversals if is_decisive(turn)]
        if reading.closed:
            parts.append(_of_turn(next(turn for turn in turns if closes(turn))))
        else:
            parts += map(_of_rule, reading.rules) if reading.rules else map(_of_turn, turns[:1])
    plain = own_words(text)
    read = list(parts)
    for span in sentences(plain):
        words = plain[span.start : span.end]
        alone = not any(part.start < span.end and span.start < part.end for part in read)
        # A list number, or the lead-in to somebody else's words ("The README …").
        scrap = (len(words) < _SCRAP and words[-1:] not in ".!?") or not any(map(str.isalpha, words))
        if alone and not scrap:
            parts.append(MessagePart(start=span.start, end=span.end, verdict="left", why=_why_left(words)))
    parts += (
        MessagePart(start=piece.start, end=piece.end, verdict="material", why=piece.sort)
        for piece in material(text)
        if not any(part.start <= piece.start and piece.end <= part.end for part in parts)
    )
    return tuple(sorted(parts, key=lambda part: (part.start, part.end)))


def _of_rule(rule: Demand | Rejection) -> MessagePart:
    example = _EXAMPLES.get(rule.shape)
    why = f'read as "{rule.shape}", as in "{example}"' if example else f"signs: {rule.shape}"
    if isinstance(rule, Demand):
        kind = "preference" if rule.modality == "prefer" else "constraint"
        why = why if example else f"may be meant to last; {why}"
    else:
        kind = "rejection"
        because = f', because "{rule.reason}"' if rule.reason else ""
        why = f'rules out "{rule.idea}"{because}; {why}' if example else f"may turn something down; {why}"
    start, end = rule.evidence.start, rule.evidence.end
    return MessagePart(start=start, end=end, verdict=rule.certainty, kind=kind, why=why)


def _of_turn(turn: Reversal) -> MessagePart:
    match turn:
        case Withdrawal():
            why = "takes back the rule that was said just before, where one was"
        case Fulfilment(what=what):
            why = f'ends a rule that was to last until "{what}", where one stands'
        case _:
            why = f'ends a rule about "{turn.what}", where one stands'
    return MessagePart(start=turn.evidence.start, end=turn.evidence.end, verdict="ends", why=why)


def _why_left(written: str) -> str:
    words = spelt_out(written).text
    clause = take_apart(words)
    if v.SAYING.search(words):
        return "what somebody else says"
    if clause.asks:
        return "a question"
    if v.VETOES.match(clause.body):
        return "an idiom, or meant for this once"
    if _ORDER.match(clause.body):
        return "an order for one piece of work: nothing says that it lasts"
    return "few or no signs that it outlives the message"
