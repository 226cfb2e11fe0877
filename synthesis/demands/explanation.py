"""Explains what becomes of each part of a message, and why.

For users who ask why a rule was made, or why none was.
"""

from typing import Literal

import msgspec

from agentx.synthesis.demands.classify import ATTITUDE, RECORDED, Demand, Rejection, readings
from agentx.synthesis.demands.reading.clause import take_apart
from agentx.synthesis.demands.reading.material import material, own_words
from agentx.synthesis.demands.reversals import (
    Fulfilment,
    Reversal,
    Withdrawal,
    closes,
    is_decisive,
)
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.demands.tables.explicit import ORDERS, REJECTIONS
from agentx.synthesis.language.apostrophes import spelt_out
from agentx.synthesis.language.sentences import sentences

Verdict = Literal["active", "candidate", "changes", "ends", "left", "material"]
"""A rule, a candidate, words that change or end a rule, words without lasting effect, or words of others."""

_EXAMPLES: dict[str, str] = {
    **{order.name: order.takes for order in ORDERS},
    **{row.name: row.takes for row in REJECTIONS},
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
        # Echoes and revisions need an existing rule that they match: most such orders are about the work.
        turns = [turn for turn in reading.reversals if is_decisive(turn)]
        if reading.closed:
            parts.append(_of_turn(next(turn for turn in turns if closes(turn))))
        else:
            parts += map(_of_rule, reading.rules) if reading.rules else map(_of_turn, turns[:1])
    own = [(part.start, part.end) for part in parts]
    plain = own_words(text)
    for span in sentences(plain):
        words = plain[span.start : span.end]
        alone = not any(start < span.end and span.start < end for start, end in own)
        # A list number, or the lead-in to somebody else's words ("The README …").
        scrap = (len(words) < _SCRAP and words[-1:] not in ".!?") or not any(map(str.isalpha, words))
        if alone and not scrap:
            why = _why_left(words)
            parts.append(MessagePart(start=span.start, end=span.end, verdict="left", why=why))
    own = [(part.start, part.end) for part in parts]
    parts += (
        MessagePart(start=piece.start, end=piece.end, verdict="material", why=piece.sort)
        for piece in material(text)
        if not any(start <= piece.start and piece.end <= end for start, end in own)
    )
    return tuple(sorted(parts, key=lambda part: (part.start, part.end)))


def _of_rule(rule: Demand | Rejection) -> MessagePart:
    start, end = rule.evidence.start, rule.evidence.end
    doubt = "; it may be meant for this once" if rule.certainty == "candidate" else ""
    if isinstance(rule, Demand):
        kind = "preference" if rule.modality == "prefer" else "constraint"
        return MessagePart(
            start=start, end=end, verdict=rule.certainty, kind=kind, why=_read_as(rule.shape) + doubt
        )
    why = f'rules out "{rule.idea}"' if rule.idea else "turns down what was said just before"
    why += (f', because "{rule.reason}"' if rule.reason else "") + f"; {_read_as(rule.shape)}{doubt}"
    return MessagePart(start=start, end=end, verdict=rule.certainty, kind="rejection", why=why)


def _of_turn(turn: Reversal) -> MessagePart:
    start, end = turn.evidence.start, turn.evidence.end
    match turn:
        case Withdrawal():
            why = "takes back the rule that was said just before, where one was"
        case Fulfilment(what=what):
            why = f'ends a rule that was to last until "{what}", where one stands'
        case _:
            why = f'ends a rule about "{turn.what}", where one stands'
    return MessagePart(start=start, end=end, verdict="ends", why=why)


def _read_as(shape: str) -> str:
    example = _EXAMPLES.get(shape)
    return f'read as "{shape}", as in "{example}"' if example else f"its signs: {shape}"


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
    return "no order, no wish and no refusal"
