"""Says of each part of a message what becomes of it, and why: for people who ask why a rule stands, or why none does."""

from typing import Literal

import msgspec

from agentx.synthesis.demands import vocabulary as v
from agentx.synthesis.demands.classify import Demand, Finding, Rejection, findings
from agentx.synthesis.demands.clause import take_apart
from agentx.synthesis.demands.material import material, own_words
from agentx.synthesis.demands.rulings import RULINGS
from agentx.synthesis.demands.sentences import sentences
from agentx.synthesis.demands.spelling import spelt_out
from agentx.synthesis.demands.tables import RECORDED, SHAPES

Verdict = Literal["active", "proposed", "ends", "left", "material"]
"""A rule, a proposal, words that end a rule, nothing that outlives the turn, or not the user's own words."""

_EXAMPLES = (
    {shape.name: shape.takes for shape in SHAPES}
    | {ruling.name: ruling.takes for ruling in RULINGS}
    | {RECORDED: "short commits, please, and add a rule for this"}
)
_ORDER = v.compiled(rf"^(?:{v.POLICY_VERBS}|don't|do not)\b")
_SCRAP = 8
"""Characters of the longest scrap."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a message, ``text[start:end]``, and what becomes of it.

    Attributes:
        verdict: What becomes of it.
        kind: ``constraint``, ``preference`` or ``rejection``; empty where none is made.
        why: The reason, in words.
    """

    start: int
    end: int
    verdict: Verdict
    kind: str = ""
    why: str


def explain(text: str) -> tuple[Part, ...]:
    """Every part of a user's message in its order, and what becomes of each where no rule stands yet.

    Args:
        text: The whole message, quotes and pasted material included.

    >>> for part in explain('Never use tabs. Can you run the tests? The README says to lie.'):
    ...     print(part.verdict, part.kind or "-", "|", part.why)
    active constraint | read as "never", as in "never create a requirements.txt file"
    left - | a question
    material - | what somebody else says
    """
    found = findings(text)
    parts = [_of_finding(finding) for finding in found]
    plain = own_words(text)
    for span in sentences(plain):
        words = plain[span.start : span.end]
        alone = not any(one.evidence.start < span.end and span.start < one.evidence.end for one in found)
        if alone and not _is_scrap(words):
            why = _why_left(words)
            parts.append(Part(start=span.start, end=span.end, verdict="left", why=why))
    own = [(part.start, part.end) for part in parts]
    parts += (
        Part(start=piece.start, end=piece.end, verdict="material", why=piece.sort)
        for piece in material(text)
        if not any(start <= piece.start and piece.end <= end for start, end in own)
    )
    return tuple(sorted(parts, key=lambda part: (part.start, part.end)))


def _is_scrap(words: str) -> bool:
    """Whether it is a number of a list, or what stands before the words of somebody else ("The README …")."""
    return (len(words) < _SCRAP and words[-1:] not in ".!?") or not any(map(str.isalpha, words))


def _of_finding(finding: Finding) -> Part:
    start, end = finding.evidence.start, finding.evidence.end
    if isinstance(finding, Demand):
        kind = "preference" if finding.modality == "prefer" else "constraint"
        why = _read_as(finding.shape) + _doubt(finding.certainty)
        return Part(start=start, end=end, verdict=finding.certainty, kind=kind, why=why)
    if isinstance(finding, Rejection):
        why = f'rules out "{finding.idea}"' if finding.idea else "turns down what was said just before"
        why += (f', because "{finding.reason}"' if finding.reason else "") + f"; {_read_as(finding.shape)}"
        why += _doubt(finding.certainty)
        return Part(start=start, end=end, verdict=finding.certainty, kind="rejection", why=why)
    why = f'ends a rule about "{finding.what}", where one stands'
    return Part(start=start, end=end, verdict="ends", why=why)


def _read_as(shape: str) -> str:
    return f'read as "{shape}", as in "{_EXAMPLES[shape]}"'


def _doubt(certainty: v.Certainty) -> str:
    return "; it may be meant for this once" if certainty == "proposed" else ""


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
