"""Classifies the sentences of a message as lasting demand, rejection, reversal of a rule, or none of these.

Explicit wordings (:mod:`agentx.synthesis.demands.tables.explicit`) and attitudes
(:mod:`agentx.synthesis.demands.tables.attitudes`) are certain. Any other sentence that may outlive its
message is a candidate (:mod:`agentx.synthesis.demands.tables.doubt`).
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec

from agentx.synthesis.attribution.material import (
    doubtful_words,
    own_words,
    straighten,
    unclaimed_words,
)
from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.demands.doubt import Doubt, weigh
from agentx.synthesis.demands.reading.clause import Clause, has, lead_length, take_apart
from agentx.synthesis.demands.reading.rulings import ruled_out_after, ruled_out_in
from agentx.synthesis.demands.reading.scope import reach_of
from agentx.synthesis.demands.reversals import (
    Reversal,
    Withdrawal,
    after_withdrawal,
    closes,
    quoted,
    reports,
    reversals,
)
from agentx.synthesis.demands.tables import attitudes, explicit
from agentx.synthesis.demands.tables import doubt as doubts
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.demands.tables.explicit import ExplicitOrder
from agentx.synthesis.language.apostrophes import Spelt, spelt_out
from agentx.synthesis.language.sentences import Span, clauses, sentences
from agentx.synthesis.language.verbs import is_base_verb
from agentx.synthesis.language.words import content_words, vocabulary
from agentx.synthesis.memory.items import Scope

_MAX_QUOTE = 400
_MAX_CLAUSE = 1_200
_COURTESY = re.compile(r"^(?:can|could|would|will) (?:you|we) (?!not\b)(?:please |kindly )?", re.IGNORECASE)
_PLEASE = re.compile(r"(^|[,;] )please ", re.IGNORECASE)
_SAID_BEFORE = re.compile(
    r"(?P<said>.{3,400}?)[\s,;:.–—-]*\b(?:(?:and|so|please|also|then|can you|could you)\s+)*$",
    re.IGNORECASE | re.DOTALL,
)
"""What a sentence states before it asks to have this recorded."""

_POINTS_BACK = re.compile(
    r"\W*(?:[\w'-]+ ){0,3}(?:it|its|them|they|these|those|this|that|one)\b(?! [\w-]+(?:ly|s)\b(?<!is))",
    re.IGNORECASE,
)
"""A pronoun among the first words, whose meaning is in the sentence before."""

_QUOTED_SHARE = 0.3
"""A sentence of which more than this is quoted is not a candidate: its words are mostly those of others."""

_SAME_PARAGRAPH = 2
_OPEN_QUOTE = re.compile(r"(?:^|\s)['\"]\w")
"""A quotation mark that is not closed in its sentence."""

_REFUSALS = vocabulary("nope nah no not rather sorry don't thanks please way")
"""A rejection of these words only names nothing; the sentence after it is its reason."""

_EDGES = " \t\r\n,;:-–—"


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """A lasting demand found in a message.

    Attributes:
        text: The demand as a sentence, in the user's words.
        evidence: Its position in the message, at most 400 characters.
        certainty: ``active`` if it is certain, ``candidate`` if it is likely.
        shape: What it was read as: the name of a row, or the signs of a candidate.
        ordered: Whether it has the form of an order, so that a repetition makes it certain.
    """

    text: str
    evidence: Span
    modality: v.Modality
    certainty: v.Certainty
    scope: Scope
    until: str
    for_now: bool
    shape: str
    ordered: bool = True


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """An idea that the user ruled out.

    Attributes:
        idea: Its name in the user's words; empty if they only point to it ("this is not right").
        certainty: ``active`` only if it clearly goes beyond one call.
        shape: What it was read as: the name of a row, or the signs of a candidate.
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


BRIEF_CHARACTERS = 3_000
"""A message with more characters of own words than this is a brief.

A brief describes one piece of work. What would be certain elsewhere is only a candidate here, and what would
be a candidate is ignored.
"""

MOST_CANDIDATES = 2
"""Maximum number of candidates from one message, the ones that weigh most."""

RECORDED = "asked to be recorded"
ATTITUDE = "attitude"
"""Names of what is read without a row of the tables."""

MOST_OF_A_BRIEF = 5
"""Maximum number of candidates from a brief, the first ones; a user will not review more."""


@lru_cache(maxsize=32)
def readings(text: str) -> tuple[Reading, ...]:
    """Return the readings of each sentence of a user's message, in order; sentences without any are skipped.

    Args:
        text: The whole message, quotes and pasted material included.

    >>> said = "Hi! Never create a requirements.txt file; use pyproject.toml instead. Thanks"
    >>> [rule.text for reading in readings(said) for rule in reading.rules]
    ['Never create a requirements.txt file; use pyproject.toml instead.']
    >>> readings("can you run the tests?")
    ()
    """
    return tuple(_readings(text))


def _readings(text: str) -> Iterator[Reading]:
    spelt = spelt_out(text)
    plain = own_words(spelt.text)
    message = _Message(plain, straighten(spelt.text), tuple(sentences(plain)))
    found: list[Reading] = []
    for number, sentence in enumerate(message.spans):
        turns = tuple(reversals(plain, message.original, sentence))
        withdrawn = any(isinstance(turn, Withdrawal) for turn in turns)
        own = after_withdrawal(plain, sentence) if withdrawn else sentence
        rules = tuple(_sure(message, own))
        if number and not found[-1].rules:
            rules = tuple(_explained(message, number, rule) for rule in rules)
        found.append(Reading(turns, rules))
    for number in range(len(found)):
        _record(message, found, number)
    brief = _is_long(plain)
    if not brief:
        _doubt(message, found)
    others = doubtful_words(spelt.text) if any(one.reversals or one.rules for one in found) else ()
    nobodys = unclaimed_words(spelt.text) if any(one.reversals for one in found) else ()
    left = MOST_OF_A_BRIEF
    for span, one in zip(message.spans, found, strict=True):
        turns, rules = one.reversals, one.rules
        if turns and (_meets(span, nobodys) or reports(plain[span.start : span.end])):
            turns = ()
        if _meets(span, others):
            # Words that may be somebody else's end or change no rule, and no new rule is certain.
            turns = ()
            rules = doubted(rules)
        if brief:
            rules = doubted(rules[:left])
            left -= len(rules)
        if turns or rules:
            yield Reading(_as_written(turns, spelt), _as_written(rules, spelt))


def is_brief(text: str) -> bool:
    """Return whether a message has so many own words that it was written, or pasted, at length."""
    return len(text) > BRIEF_CHARACTERS and _is_long(own_words(text))


def _is_long(plain: str) -> bool:
    return sum(map(len, plain.replace(NAME, "").split())) > BRIEF_CHARACTERS


def doubted(rules: tuple[Demand | Rejection, ...]) -> tuple[Demand | Rejection, ...]:
    """Return rules as candidates."""
    return tuple(msgspec.structs.replace(rule, certainty="candidate") for rule in rules)


def _meets(span: Span, others: Sequence[Span]) -> bool:
    return any(part.start < span.end and span.start < part.end for part in others)


_Placed = TypeVar("_Placed", Reversal, Demand | Rejection)


def _as_written(found: tuple[_Placed, ...], spelt: Spelt) -> tuple[_Placed, ...]:
    if not spelt.added:
        return found
    return tuple(msgspec.structs.replace(one, evidence=spelt.written(one.evidence)) for one in found)


class _Message(NamedTuple):
    """A message: the user's own words, the same with those of others, and the sentences of both."""

    plain: str
    original: str
    spans: tuple[Span, ...]

    def words(self, span: Span) -> str:
        return self.plain[span.start : span.end]

    def with_antecedent(self, number: int) -> Span:
        """Return a sentence, with the one before it if a pronoun points there."""
        span = self.spans[number]
        if not number or not _POINTS_BACK.match(self.words(span)):
            return span
        before = self.spans[number - 1]
        # Nothing of others may be between them.
        between = self.original[before.end : span.start]
        near = not between.strip(" .-") and between.count("\n") < _SAME_PARAGRAPH
        return Span(before.start, span.end) if near and span.end - before.start <= _MAX_QUOTE else span


def _explained(message: _Message, number: int, rule: Demand | Rejection) -> Demand | Rejection:
    """Return a demand with the sentence before it, if a pronoun in it has its meaning there."""
    whole, sentence = message.with_antecedent(number), message.spans[number]
    if whole == sentence or isinstance(rule, Rejection) or not _POINTS_BACK.match(rule.text):
        return rule
    before = message.original[whole.start : sentence.start].strip()
    return msgspec.structs.replace(rule, text=as_sentence(f"{before} {rule.text}"), evidence=whole)


def _record(message: _Message, found: list[Reading], number: int) -> None:
    """Make an order certain where the message asks to record it ("… , add a rule for this").

    The order is in the same sentence or in the one before it.
    """
    sentence = message.spans[number]
    words = message.words(sentence)
    asked = v.TO_BE_RECORDED.search(words)
    if not asked or not _insists(take_apart(words), polite=True):
        return
    head = _SAID_BEFORE.match(words, 0, asked.start())
    if head and len(content_words(head["said"])) > 1:
        meant = Span(sentence.start, sentence.start + head.end("said"))
    else:
        number = max(0, number - 1)
        meant = message.spans[number]
    stated = message.words(meant)
    if meant != sentence and not found[number].rules and _is_order(stated):
        rule = _demand(message, meant, meant, _modality(stated), "active", RECORDED)
        found[number] = Reading(found[number].reversals, (rule,))


def _modality(words: str) -> v.Modality:
    return "must_not" if v.FEATURES["negated"].search(words) else "must"


# --- what is certain ------------------------------------------------------------------------------


def _sure(message: _Message, sentence: Span) -> Iterator[Demand | Rejection]:
    """Yield what a sentence demands or rules out for certain."""
    words = message.words(sentence)
    if v.SAYING.search(words):
        return
    if ruled_out := _ruled_out(message, sentence):
        yield ruled_out
        return
    found = False
    for part in clauses(message.plain, sentence):
        if demand := _ordered(message, sentence, part) or _attitude(message, sentence, part):
            found = True
            yield demand
    against = None if found else _against(message, sentence)
    if against and against.certainty == "active":
        yield against


def _bare(words: str) -> str:
    return words[lead_length(words) :]


def _ordered(message: _Message, sentence: Span, part: Span) -> Demand | None:
    """Return the demand that a clause makes in an explicit wording."""
    words = message.words(part)[:_MAX_CLAUSE]
    clause = take_apart(words)
    clause.attached = part.start > sentence.start
    if v.VETOES.match(clause.body) or v.VETOES.match(_bare(words)) or not _insists(clause):
        return None
    for order in explicit.ORDERS:
        for form in clause.forms:
            match = order.pattern.match(form)
            if match and _lasts(order, match, clause, form):
                modality = "must_not" if match.groupdict().get("not") else order.modality
                if modality == order.modality and v.SOFTENED.match(clause.frames + clause.body):
                    modality = "prefer"
                found = _demand(message, sentence, part, modality, "active", order.name)
                # A masked quote may be a file name, and an order about one file is one piece of work.
                is_folder = found.scope.paths and found.scope.paths[0].endswith("/**")
                return found if order.name != explicit.HANDS_OFF_ROW or is_folder else None
    return None


def _insists(clause: Clause, *, polite: bool = False) -> bool:
    """Return whether a clause can be an order: a question only if it is polite and says how long it lasts."""
    if not clause.asks:
        return True
    insists = polite or "please" in clause.whole.lower() or v.FEATURES["standing"].search(clause.whole)
    return bool(insists and v.FEATURES["polite_question"].search(clause.whole))


def _is_order(words: str) -> bool:
    """Return whether words have the form of an order, however long it lasts."""
    clause = take_apart(words[:_MAX_CLAUSE])
    return not clause.asks and any(
        order.pattern.match(form) for order in explicit.ORDERS for form in clause.forms
    )


def _lasts(order: ExplicitOrder, match: re.Match[str], clause: Clause, form: str) -> bool:
    verb = match.groupdict().get("verb")
    return (not verb or is_base_verb(verb)) and any(
        all(has(name.lstrip("!"), clause, form, match) != name.startswith("!") for name in needs.split())
        for needs in order.lasts_if
    )


def _demand(
    message: _Message, sentence: Span, part: Span, modality: v.Modality, certainty: v.Certainty, shape: str
) -> Demand:
    """Return the demand of a part of a sentence, with its scope and its end."""
    said = message.words(part)
    own = Span(part.start + lead_length(said), part.end)
    words = " ".join(message.original[own.start : own.end].split())
    reach = reach_of(words)
    return Demand(
        text=as_sentence(words),
        evidence=sentence if sentence.end - sentence.start <= _MAX_QUOTE else quoted(own),
        modality=modality,
        certainty=certainty,
        scope=reach.scope,
        until=reach.until,
        for_now=bool(reach.until or v.FEATURES["for_now"].search(said)),
        shape=shape,
    )


def _attitude(message: _Message, sentence: Span, part: Span) -> Demand | None:
    """Return the preference that a clause states about the user, in general."""
    start = part.start
    words = message.words(part)[:_MAX_CLAUSE]
    ends = [*(match.span() for match in attitudes.PARTS.finditer(words)), (len(words), len(words))]
    for end, following in ends:
        said = message.plain[start : part.start + end]
        if not attitudes.NOT_IN_GENERAL.search(said) and any(
            _is_attitude(match, said) for frame in attitudes.ATTITUDES if (match := frame.search(said))
        ):
            return _demand(message, sentence, Span(start, part.end), "prefer", "active", ATTITUDE)
        start = part.start + following
    return None


def _is_attitude(match: re.Match[str], said: str) -> bool:
    groups = match.groupdict()
    asks = v.FEATURES["question"].search(said) and not groups.get("stated")
    at_hand = attitudes.AT_HAND.match(match["object"] or "x")
    mild = groups.get("mild") and attitudes.MILD_AT_HAND.match(match["object"])
    return not (asks or at_hand or mild)


def _ruled_out(message: _Message, sentence: Span) -> Rejection | None:
    """Return the idea that a sentence rules out for good."""
    words = message.words(sentence)
    if v.FEATURES["question"].search(words):
        return None
    for row in explicit.REJECTIONS:
        match = row.pattern.search(_bare(words))
        if match is None or not (row.says_so or explicit.BEYOND_ONE_CALL.search(words)):
            continue
        found = next(text for key, text in match.groupdict().items() if key.startswith("idea") and text)
        if content_words(found.replace(NAME, "x")):
            at = sentence.start + words.index(found)
            idea = explicit.HERE.sub("", message.original[at : at + len(found)].strip())
            return _rejection(message, sentence, idea, "active", row.name)
    return None


def _against(message: _Message, sentence: Span, number: int = 0) -> Rejection | None:
    """Return the thing that a sentence is against by its grammar: certain only if it says that it lasts.

    Args:
        message: The message.
        sentence: The sentence.
        number: Its number, if it may be a short "no" to the sentence before it.
    """
    words = message.words(sentence)
    before = message.spans[number - 1] if number else None
    answers = ruled_out_after(message.words(before), words) if before else None
    found = answers or ruled_out_in(words)
    if found is None or not found.says_so:
        return None
    whole = Span(before.start, sentence.end) if answers and before else sentence
    at = whole.start + message.words(whole).find(found.things[0])
    idea = message.original[at : at + len(found.things[0])]
    return _rejection(message, whole, idea, "active" if found.lasts else "candidate", found.wording)


def _rejection(message: _Message, sentence: Span, idea: str, certainty: v.Certainty, shape: str) -> Rejection:
    own = quoted(sentence)
    because = explicit.BECAUSE.search(message.original, own.start, own.end)
    return Rejection(
        text=as_sentence(message.original[own.start : own.end]),
        evidence=own,
        idea=as_sentence(explicit.BECAUSE.split(idea, maxsplit=1)[0]),
        reason=as_sentence(because["reason"]) if because else "",
        certainty=certainty,
        shape=shape,
    )


# --- what is in doubt -----------------------------------------------------------------------------


def _doubt(message: _Message, found: list[Reading]) -> None:
    """Add the sentences that may outlive the message: at most two, those that weigh most."""
    spans = message.spans
    number_of_words = sum(len(message.words(span).split()) for span in spans)
    weighed: list[tuple[Doubt, int]] = []
    explains = -1
    for number, span in enumerate(spans):
        words = message.words(span)
        others = words.count(NAME) > _QUOTED_SHARE * len(words) or bool(_OPEN_QUOTE.search(words))
        if found[number].closed or v.SAYING.search(words) or others or not any(map(str.isalpha, words)):
            continue
        one = weigh(words, first=number == 0, alone=len(spans) == 1, words_of_message=number_of_words)
        if one.kind == "rejection" and one.weight >= 0 and _names_nothing(words):
            explains = number + 1
        if one.weight >= 0 and number != explains and not found[number].rules:
            weighed.append((one, number))
    weighed.sort(key=lambda pair: -pair[0].weight)
    for place, (one, number) in enumerate(weighed[:MOST_CANDIDATES]):
        if not place or one.weight >= doubts.SECOND:
            found[number] = Reading(found[number].reversals, (_candidate(message, number, one),))
    left = MOST_CANDIDATES - len(weighed)
    for number, span in enumerate(spans):
        if left > 0 and not found[number].rules and (against := _against(message, span, number)):
            found[number] = Reading(found[number].reversals, (against,))
            left -= 1


def _candidate(message: _Message, number: int, doubt: Doubt) -> Demand | Rejection:
    """Return the candidate that a sentence is."""
    span = message.with_antecedent(number)
    words = message.words(span)
    shape = ", ".join(doubt.signs)
    against = _against(message, message.spans[number], number)
    if against and against.evidence.start < message.spans[number].start:
        return against
    if doubt.kind == "demand" or reach_of(words).until:
        made = _demand(message, span, span, _modality(words), "candidate", shape)
        return msgspec.structs.replace(made, ordered=_is_order(words))
    idea = against.idea if against else _bare(message.original[span.start : span.end])
    if number + 1 == len(message.spans) or not _names_nothing(words):
        return _rejection(message, span, idea, "candidate", shape)
    after = message.spans[number + 1]
    rejection = _rejection(message, Span(span.start, after.end), idea, "candidate", shape)
    reason = as_sentence(message.original[after.start : after.end])
    return msgspec.structs.replace(rejection, reason=reason)


def _names_nothing(words: str) -> bool:
    return not content_words(words.replace(NAME, "x")) - _REFUSALS


# --- text -----------------------------------------------------------------------------------------


def as_sentence(words: str) -> str:
    """Return the user's words as a sentence.

    White space is collapsed, "please" is dropped after a comma, and the first letter is capitalised.
    """
    text = _COURTESY.sub("", " ".join(words.split()))
    text = _PLEASE.sub(r"\1", text).strip(_EDGES).rstrip("?")
    return text[:1].upper() + text[1:]
