"""Classifies the sentences of a message as lasting demand, rejection, reversal of a rule, or none of these.

This module only holds the order of the checks. The deciding words are in
:mod:`agentx.synthesis.demands.tables.orders`, :mod:`agentx.synthesis.demands.tables.rulings` and
:mod:`agentx.synthesis.demands.tables.endings`.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import msgspec

from agentx.synthesis.demands.reading.clause import Clause, has, is_base_verb, lead_length, take_apart
from agentx.synthesis.demands.reading.material import doubtful_words, own_words, straighten
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.demands.rejections import ruled_out
from agentx.synthesis.demands.reversals import (
    Echo,
    Fulfilment,
    Permission,
    Retraction,
    Reversal,
    Withdrawal,
    after_withdrawal,
    closes,
    quoted,
    reversals,
    unmasked,
)
from agentx.synthesis.demands.tables import orders
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.demands.tables.demand_row import Shape
from agentx.synthesis.demands.tables.sources import NAME
from agentx.synthesis.language.apostrophes import Spelt, spelt_out
from agentx.synthesis.language.sentences import Span, clauses, sentences
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.items import Scope

_MAX_QUOTE = 400
_MAX_CLAUSE = 1_200
_MAX_BEFORE = 40
_COURTESY = re.compile(r"^(?:can|could|would|will) (?:you|we) (?!not\b)(?:please |kindly )?", re.IGNORECASE)
_PLEASE = re.compile(r"(^|[,;] )please ", re.IGNORECASE)
_SAID_BEFORE = re.compile(
    r"(?P<said>.{3,400}?)[\s,;:.–—-]*\b(?:(?:and|so|please|also|then|can you|could you)\s+)*$",
    re.IGNORECASE | re.DOTALL,
)
"""What a sentence states before it asks to have this recorded."""

_PRACTICES = {"our practice", "what we use here", "the rule is", "our convention"}
_EDGES = " \t\r\n,;:-–—"


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """A lasting demand found in a message.

    Attributes:
        text: The demand as a sentence, in the user's words.
        evidence: Its position in the message, at most 400 characters.
        certainty: ``active`` if it is certain, ``candidate`` if it is likely.
        shape: Name of the row of :data:`agentx.synthesis.demands.tables.orders.SHAPES` that matched.
    """

    text: str
    evidence: Span
    modality: v.Modality
    certainty: v.Certainty
    scope: Scope
    until: str
    for_now: bool
    shape: str


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """An idea that the user ruled out.

    Attributes:
        idea: Its name in the user's words; empty if they only point to it ("this is not right").
        certainty: ``active`` only if it clearly goes beyond one call.
        shape: Name of the row of :data:`agentx.synthesis.demands.tables.rulings.RULINGS` that matched.
    """

    text: str
    evidence: Span
    idea: str
    reason: str
    certainty: v.Certainty
    shape: str


class Reading(msgspec.Struct, frozen=True):
    """Possible readings of one sentence.

    The reversals are changes to existing rules. The rules are new ones, which count only if no reversal
    applies.

    Attributes:
        reversals: Changes to existing rules, the most certain first.
        rules: New rules, in the order of the sentence.
    """

    reversals: tuple[Reversal, ...]
    rules: tuple[Demand | Rejection, ...]

    @property
    def closed(self) -> bool:
        """Whether the sentence is only about existing rules, even if no such rule exists."""
        return any(closes(one) for one in self.reversals)


Finding = Demand | Rejection | Retraction | Permission | Fulfilment

BRIEF_CHARACTERS = 3_000
"""A message with more characters of own words than this is a brief.

A brief describes one piece of work. What would be certain elsewhere is only a candidate here, and what would
be a candidate is ignored.
"""

MOST_OF_A_BRIEF = 5
"""Maximum number of candidates from a brief, the first ones; a user will not review more."""


def findings(text: str) -> tuple[Finding, ...]:
    """Return everything in a user's message that concerns rules, in order, regardless of existing rules.

    Args:
        text: The whole message, quotes and pasted material included.

    >>> said = "Hi! Never create a requirements.txt file; use pyproject.toml instead. Thanks"
    >>> [f.text for f in findings(said)]
    ['Never create a requirements.txt file; use pyproject.toml instead.']
    >>> findings("can you run the tests?")
    ()
    """
    found: list[Finding] = []
    for reading in readings(text):
        endings = [one for one in reading.reversals if isinstance(one, Retraction | Permission | Fulfilment)]
        if reading.closed:
            found.append(next(one for one in endings if closes(one)))
        elif reading.rules:
            found += reading.rules
        else:
            found += [one for one in endings if isinstance(one, Fulfilment)]
    return tuple(found)


def readings(text: str) -> Iterator[Reading]:
    """Yield the readings of each sentence of a user's message, in order; sentences without any are skipped.

    Args:
        text: The whole message, quotes and pasted material included.
    """
    spelt = spelt_out(text)
    plain = own_words(spelt.text)
    original = straighten(spelt.text)
    spans = list(sentences(plain))
    found = []
    for sentence in spans:
        turns = tuple(reversals(plain, original, sentence))
        withdrawn = any(isinstance(turn, Withdrawal) for turn in turns)
        own = after_withdrawal(plain, sentence) if withdrawn else sentence
        found.append(Reading(turns, tuple(_rules(plain, original, own))))
    for number in range(len(spans)):
        _record(plain, original, spans[max(0, number - 1) : number + 1], found, number)
    doubted = doubtful_words(spelt.text) if any(one.reversals or one.rules for one in found) else ()
    found = [
        _doubted(one) if any(part.start < span.end and span.start < part.end for part in doubted) else one
        for span, one in zip(spans, found, strict=True)
    ]
    brief, left = _is_long(plain), MOST_OF_A_BRIEF
    # A rejection that only points ("this is no good either") is dropped if another one names its idea.
    rejected = [rule for reading in found for rule in reading.rules if isinstance(rule, Rejection)]
    kept = [rejection for rejection in rejected if rejection.idea] or rejected[:1]
    for reading in found:
        rules = tuple(rule for rule in reading.rules if not isinstance(rule, Rejection) or rule in kept)
        rules = _as_written(rules, spelt)
        if brief:
            certain = tuple(rule for rule in rules if rule.certainty == "active")[:left]
            rules = tuple(msgspec.structs.replace(rule, certainty="candidate") for rule in certain)
            left -= len(rules)
        if reading.reversals or rules:
            yield Reading(_as_written(reading.reversals, spelt), rules)


def is_brief(text: str) -> bool:
    """Return whether a message is a brief.

    It is one if it has so many own words that it was written, or pasted, at length.
    """
    return len(text) > BRIEF_CHARACTERS and _is_long(own_words(text))


def _is_long(plain: str) -> bool:
    return sum(map(len, plain.replace(NAME, "").split())) > BRIEF_CHARACTERS


def _doubted(reading: Reading) -> Reading:
    """Downgrade a reading of words that may be somebody else's.

    No rule ends or changes, and no new rule is certain.
    """
    if not reading.rules and all(isinstance(turn, Echo) for turn in reading.reversals):
        return reading
    return Reading((), tuple(msgspec.structs.replace(rule, certainty="candidate") for rule in reading.rules))


_Placed = TypeVar("_Placed", Reversal, Demand | Rejection)


def _as_written(found: tuple[_Placed, ...], spelt: Spelt) -> tuple[_Placed, ...]:
    if not spelt.added:
        return found
    return tuple(msgspec.structs.replace(one, evidence=spelt.written(one.evidence)) for one in found)


def _record(plain: str, original: str, spans: list[Span], found: list[Reading], number: int) -> None:
    """Make a demand lasting where the message asks to record it ("… , add a rule for this").

    The demand is in the same sentence or in the one before it.
    """
    sentence = spans[-1]
    words = plain[sentence.start : sentence.end]
    asked = v.TO_BE_RECORDED.search(words)
    if not asked or (
        v.FEATURES["question"].search(words) and not v.FEATURES["polite_question"].search(words)
    ):
        return
    head = _SAID_BEFORE.match(words, 0, asked.start())
    within = head is not None and _states(head["said"])
    if not within and len(spans) == 1:
        return
    meant = Span(sentence.start, sentence.start + head.end("said")) if head and within else spans[0]
    at = number if within else number - 1
    demands = [rule for rule in _rules(plain, original, meant) if isinstance(rule, Demand)]
    lasting = tuple(msgspec.structs.replace(demand, certainty="active") for demand in demands)
    if not lasting and _states(plain[meant.start : meant.end]):
        stated = original[meant.start : meant.end]
        lasting = (
            Demand(
                text=as_sentence(stated[lead_length(stated) :]),
                evidence=quoted(meant),
                modality="must_not" if v.FEATURES["negated"].search(stated) else "must",
                certainty="candidate",
                scope=reach_of(stated).scope,
                until="",
                for_now=False,
                shape=orders.RECORDED,
            ),
        )
    if lasting:
        found[at] = Reading(found[at].reversals, lasting)


def _states(words: str) -> bool:
    """Return whether words can be a rule at all."""
    return (
        len(content_words(words)) > 1
        and not v.FEATURES["question"].search(words)
        and not v.SAYING.search(words)
    )


def _rules(plain: str, original: str, sentence: Span) -> Iterator[Demand | Rejection]:
    if v.SAYING.search(plain, sentence.start, sentence.end):
        return
    ruling = _ruling(plain, original, sentence)
    if ruling and ruling.certainty == "active":
        yield ruling
        return
    demands = [d for part in clauses(plain, sentence) if (d := _demand(plain, original, sentence, part))]
    yield from demands
    if ruling and not demands:
        yield ruling


def _bare(words: str) -> str:
    return (
        words[v.LEAD_INS.match(words).end() :]  # type: ignore[union-attr]
        if v.LEAD_INS.match(words)
        else words
    )


# --- demands --------------------------------------------------------------------------------------


def _demand(plain: str, original: str, sentence: Span, part: Span) -> Demand | None:
    words = plain[part.start : min(part.end, part.start + _MAX_CLAUSE)]
    clause = take_apart(words)
    clause.attached = part.start > sentence.start
    if (
        clause.asks
        and v.RHETORICAL.match(_bare(words))
        and not any(v.FEATURES[name].search(words) for name in ("standing", "ever", "for_now", "until"))
    ):
        return None
    if v.VETOES.match(clause.body) or v.VETOES.match(_bare(words)):
        return None
    for shape in orders.SHAPES:
        for candidate in (words,) if shape.anywhere else clause.forms:
            match = shape.pattern.search(candidate) if shape.anywhere else shape.pattern.match(candidate)
            if match and (certainty := _grade(shape, match, clause, candidate)):
                found = _build(original, sentence, part, clause, shape, match, certainty)
                # A masked quote may be a file name, and an order about one file is one piece of work.
                is_folder = found.scope.paths and found.scope.paths[0].endswith("/**")
                return found if shape.name != orders.FROZEN or is_folder else None
    return None


def _grade(shape: Shape, match: re.Match[str], clause: Clause, candidate: str) -> v.Certainty | None:
    if clause.asks and not shape.anywhere and not v.FEATURES["polite_question"].search(clause.whole):
        return None
    verb = match.groupdict().get("verb")
    if verb is not None and not is_base_verb(verb):
        return None
    has_feature = partial(has, clause=clause, candidate=candidate, match=match)
    for needs, certainty in shape.grades:
        if all(has_feature(name.lstrip("!")) != name.startswith("!") for name in needs.split()):
            if (
                clause.asks
                and shape.name == "order"
                and not (has_feature("standing") or has_feature("process"))
            ):
                return None
            # A question can be an order all the same.
            insists = "please" in clause.whole.lower() or v.FEATURES["standing"].search(clause.whole)
            return "candidate" if clause.asks and shape.modality != "prefer" and not insists else certainty
    return None


def _build(
    original: str,
    sentence: Span,
    part: Span,
    clause: Clause,
    shape: Shape,
    match: re.Match[str],
    certainty: v.Certainty,
) -> Demand:
    groups = match.groupdict()
    begins = match.start("text") if groups.get("text") else match.start()
    start = part.start + (begins if shape.anywhere else lead_length(clause.whole))
    text = as_sentence(original[start : part.end])
    reach = reach_of(" ".join(original[start : part.end].split()))
    temporary = bool(reach.until) or bool(v.FEATURES["for_now"].search(clause.whole))
    evidence = (
        sentence
        if sentence.end - sentence.start <= _MAX_QUOTE
        else Span(start, min(part.end, start + _MAX_QUOTE))
    )
    modality = shape.modality
    negated = v.FEATURES["negated"].search(clause.whole)
    if (modality == "must" and groups.get("not")) or (negated and shape.name in _PRACTICES):
        modality = "must_not"
    elif v.SOFTENED.match(clause.frames + clause.body):
        modality = "prefer"
    return Demand(
        text=text,
        evidence=evidence,
        modality=modality,
        certainty=certainty,
        scope=reach.scope,
        until=reach.until,
        for_now=temporary,
        shape=shape.name,
    )


def as_sentence(words: str) -> str:
    """Return the user's words as a sentence.

    White space is collapsed, "please" is dropped after a comma, and the first letter is capitalised.
    """
    text = _COURTESY.sub("", " ".join(words.split()))
    text = _PLEASE.sub(r"\1", text).strip(_EDGES).rstrip("?")
    return text[:1].upper() + text[1:]


# --- rejections -----------------------------------------------------------------------------------


def _ruling(plain: str, original: str, sentence: Span) -> Rejection | None:
    words = plain[sentence.start : sentence.end]
    parts = list(clauses(plain, sentence))
    texts = [plain[part.start : min(part.end, part.start + _MAX_CLAUSE)] for part in parts]
    found = ruled_out(words, texts, before=plain[max(0, sentence.start - _MAX_BEFORE) : sentence.start])
    if not found:
        return None
    # Text before the clause is mostly about something else; text after it is mostly the reason.
    start = parts[found.clause].start if found.clause else sentence.start
    own = quoted(Span(start, sentence.end))
    return Rejection(
        text=as_sentence(original[own.start : own.end]),
        evidence=own,
        idea=as_sentence(unmasked(found.idea, words, original, sentence)),
        reason=as_sentence(unmasked(found.reason, words, original, sentence)),
        certainty="active" if found.lasts else "candidate",
        shape=found.ruling,
    )
