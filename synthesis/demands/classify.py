"""Classifies the sentences of a message as lasting demand, rejection, reversal of a rule, or none of these.

Explicit wordings (:mod:`agentx.synthesis.demands.tables.explicit`) and attitudes
(:mod:`agentx.synthesis.demands.tables.attitudes`) are certain. Any other sentence that may outlive its
message is a candidate (:mod:`agentx.synthesis.demands.tables.doubt`).
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from agentx.synthesis.demands.doubt import Doubt, weigh
from agentx.synthesis.demands.reading.attribution import reports
from agentx.synthesis.demands.reading.clause import Clause, has, is_base_verb, lead_length, take_apart
from agentx.synthesis.demands.reading.material import (
    doubtful_words,
    own_words,
    straighten,
    unclaimed_words,
)
from agentx.synthesis.demands.reading.scope import reach_of
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
)
from agentx.synthesis.demands.tables import attitudes, explicit
from agentx.synthesis.demands.tables import doubt as doubts
from agentx.synthesis.demands.tables import vocabulary as v
from agentx.synthesis.demands.tables.explicit import Order
from agentx.synthesis.demands.tables.sources import NAME
from agentx.synthesis.language.apostrophes import Spelt, spelt_out
from agentx.synthesis.language.sentences import Span, clauses, sentences
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

_PRACTICES = {"our practice", "the rule is"}
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


Finding = Demand | Rejection | Retraction | Permission | Fulfilment

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
        found.append(Reading(turns, tuple(_sure(plain, original, own))))
    for number in range(1, len(spans)):
        if not any(one.rules for one in found[number - 1 : number]):
            whole = _with_antecedent(plain, original, spans, number)
            found[number] = _explained(found[number], original, spans[number], whole)
    for number in range(len(spans)):
        _record(plain, original, spans[max(0, number - 1) : number + 1], found, number)
    brief = _is_long(plain)
    if not brief:
        _doubt(plain, original, spans, found)
    others = doubtful_words(spelt.text) if any(one.reversals or one.rules for one in found) else ()
    nobodys = unclaimed_words(spelt.text) if any(one.reversals for one in found) else ()
    left = MOST_OF_A_BRIEF
    for span, read in zip(spans, found, strict=True):
        one = _unended(read, plain[span.start : span.end], within=_meets(span, nobodys))
        theirs = _meets(span, others)
        reading = _doubted(one) if theirs else one
        rules = _as_written(reading.rules, spelt)
        if brief:
            rules = tuple(msgspec.structs.replace(rule, certainty="candidate") for rule in rules[:left])
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


def _meets(span: Span, others: Sequence[Span]) -> bool:
    return any(part.start < span.end and span.start < part.end for part in others)


def _unended(reading: Reading, words: str, *, within: bool) -> Reading:
    """Return a reading that ends and changes no rule by words that may be somebody else's.

    Args:
        reading: The reading of a sentence.
        words: The sentence.
        within: Whether it is in a paragraph that nothing shows to be the user's.
    """
    if not reading.reversals or not (within or reports(words)):
        return reading
    kept = tuple(turn for turn in reading.reversals if isinstance(turn, Echo))
    return Reading(kept, reading.rules)


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
    demands = [rule for rule in _sure(plain, original, meant) if isinstance(rule, Demand)]
    lasting = tuple(msgspec.structs.replace(demand, certainty="active") for demand in demands)
    if not lasting and _states(plain[meant.start : meant.end]):
        stated = original[meant.start : meant.end]
        lasting = (
            Demand(
                text=as_sentence(stated[lead_length(stated) :]),
                evidence=quoted(meant),
                modality="must_not" if v.FEATURES["negated"].search(stated) else "must",
                certainty="active" if _is_order(plain[meant.start : meant.end]) else "candidate",
                scope=reach_of(stated).scope,
                until="",
                for_now=False,
                shape=RECORDED,
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


# --- what is certain ------------------------------------------------------------------------------


def _sure(plain: str, original: str, sentence: Span) -> Iterator[Demand | Rejection]:
    """Yield what a sentence demands or rules out for certain."""
    words = plain[sentence.start : sentence.end]
    if v.SAYING.search(words):
        return
    if ruled_out := _ruled_out(original, sentence, words):
        yield ruled_out
        return
    for part in clauses(plain, sentence):
        demand = _ordered(plain, original, sentence, part) or _attitude(plain, original, sentence, part)
        if demand:
            yield demand


def _bare(words: str) -> str:
    leads = v.LEAD_INS.match(words)
    return words[leads.end() :] if leads else words


def _ordered(plain: str, original: str, sentence: Span, part: Span) -> Demand | None:
    words = plain[part.start : min(part.end, part.start + _MAX_CLAUSE)]
    clause = take_apart(words)
    clause.attached = part.start > sentence.start
    lasts = any(v.FEATURES[name].search(words) for name in ("standing", "ever", "for_now", "until"))
    if clause.asks and v.RHETORICAL.match(_bare(words)) and not lasts:
        return None
    if v.VETOES.match(clause.body) or v.VETOES.match(_bare(words)):
        return None
    for order in explicit.ORDERS:
        for candidate in (words,) if order.anywhere else clause.forms:
            match = order.pattern.search(candidate) if order.anywhere else order.pattern.match(candidate)
            if match and _lasts(order, match, clause, candidate):
                found = _build(original, sentence, part, clause, order, match)
                # A masked quote may be a file name, and an order about one file is one piece of work.
                is_folder = found.scope.paths and found.scope.paths[0].endswith("/**")
                return found if order.name != explicit.HANDS_OFF_ROW or is_folder else None
    return None


def _is_order(words: str) -> bool:
    """Return whether words have the form of an order, however long it lasts."""
    clause = take_apart(words[:_MAX_CLAUSE])
    return not clause.asks and any(
        order.pattern.match(form) for order in explicit.ORDERS if not order.anywhere for form in clause.forms
    )


def _lasts(order: Order, match: re.Match[str], clause: Clause, candidate: str) -> bool:
    asked = clause.asks and not order.anywhere
    if asked and not v.FEATURES["polite_question"].search(clause.whole):
        return False
    verb = match.groupdict().get("verb")
    if verb is not None and not is_base_verb(verb):
        return False
    feature = partial(has, clause=clause, candidate=candidate, match=match)
    lasts = any(
        all(feature(name.lstrip("!")) != name.startswith("!") for name in needs.split())
        for needs in order.lasts_if
    )
    # A question is certain only if it insists.
    insists = "please" in clause.whole.lower() or v.FEATURES["standing"].search(clause.whole)
    return lasts and (not clause.asks or bool(insists))


def _build(
    original: str, sentence: Span, part: Span, clause: Clause, order: Order, match: re.Match[str]
) -> Demand:
    groups = match.groupdict()
    begins = match.start("text") if groups.get("text") else match.start()
    start = part.start + (begins if order.anywhere else lead_length(clause.whole))
    modality = order.modality
    negated = v.FEATURES["negated"].search(clause.whole)
    if (modality == "must" and groups.get("not")) or (negated and order.name in _PRACTICES):
        modality = "must_not"
    elif v.SOFTENED.match(clause.frames + clause.body):
        modality = "prefer"
    own = Span(start, part.end)
    return _demand(original, sentence, own, modality, "active", order.name, clause.whole)


def _demand(
    original: str,
    sentence: Span,
    own: Span,
    modality: v.Modality,
    certainty: v.Certainty,
    shape: str,
    whole: str,
) -> Demand:
    """Return a demand with its scope and its end.

    Args:
        original: The message, with typographic quotes straightened.
        sentence: The evidence.
        own: What becomes the text.
        modality: Its modality.
        certainty: Its certainty.
        shape: What it was read as.
        whole: The words that say how long it lasts.
    """
    words = " ".join(original[own.start : own.end].split())
    reach = reach_of(words)
    fits = sentence.end - sentence.start <= _MAX_QUOTE
    return Demand(
        text=as_sentence(words),
        evidence=sentence if fits else quoted(own),
        modality=modality,
        certainty=certainty,
        scope=reach.scope,
        until=reach.until,
        for_now=bool(reach.until) or bool(v.FEATURES["for_now"].search(whole)),
        shape=shape,
    )


def _attitude(plain: str, original: str, sentence: Span, part: Span) -> Demand | None:
    """Return the preference that a clause states about the user, in general."""
    start = part.start
    words = plain[part.start : min(part.end, part.start + _MAX_CLAUSE)]
    ends = [*(match.span() for match in attitudes.PARTS.finditer(words)), (len(words), len(words))]
    for end, following in ends:
        said = plain[start : part.start + end]
        if not attitudes.NOT_IN_GENERAL.search(said):
            for frame in attitudes.ATTITUDES:
                match = frame.search(said)
                if match is None or attitudes.AT_HAND.match(match["object"] or "x"):
                    continue
                groups = match.groupdict()
                asks = attitudes.QUESTION.search(said) and not groups.get("stated")
                mild = groups.get("mild") and attitudes.MILD_AT_HAND.match(match["object"])
                if asks or mild or (groups.get("chosen") and attitudes.EVENT.search(match["object"])):
                    continue
                own = Span(start + lead_length(said), part.end)
                return _demand(original, sentence, own, "prefer", "active", ATTITUDE, said)
        start = part.start + following
    return None


def _ruled_out(original: str, sentence: Span, words: str) -> Rejection | None:
    """Return the idea that a sentence rules out for good."""
    for row in explicit.REJECTIONS:
        match = row.pattern.search(_bare(words))
        if match is None or v.FEATURES["question"].search(words):
            continue
        found = next(text for key, text in match.groupdict().items() if key.startswith("idea") and text)
        if not content_words(found.replace(NAME, "x")):
            continue
        if not row.says_so and not explicit.BEYOND_ONE_CALL.search(words):
            continue
        at = sentence.start + words.index(found)
        idea = explicit.HERE.sub("", original[at : at + len(found)].strip())
        return _rejection(original, sentence, idea, "active", row.name)
    return None


def _rejection(original: str, sentence: Span, idea: str, certainty: v.Certainty, shape: str) -> Rejection:
    own = quoted(sentence)
    because = explicit.BECAUSE.search(original, own.start, own.end)
    idea = explicit.BECAUSE.split(idea, maxsplit=1)[0]
    return Rejection(
        text=as_sentence(original[own.start : own.end]),
        evidence=own,
        idea=as_sentence(idea),
        reason=as_sentence(because["reason"]) if because else "",
        certainty=certainty,
        shape=shape,
    )


# --- what is in doubt -----------------------------------------------------------------------------


def _doubt(plain: str, original: str, spans: Sequence[Span], found: list[Reading]) -> None:
    """Add the sentences that may outlive the message: at most two, those that weigh most."""
    number_of_words = sum(len(plain[span.start : span.end].split()) for span in spans)
    weighed: list[tuple[Doubt, int]] = []
    explains = -1
    for number, span in enumerate(spans):
        words = plain[span.start : span.end]
        others = words.count(NAME) > _QUOTED_SHARE * len(words) or bool(_OPEN_QUOTE.search(words))
        if found[number].closed or v.SAYING.search(words) or others or not any(map(str.isalpha, words)):
            continue
        one = weigh(words, first=number == 0, alone=len(spans) == 1, words_of_message=number_of_words)
        if one.kind == "rejection" and one.weight > 0 and _names_nothing(words):
            explains = number + 1
        if one.weight > 0 and number != explains and not found[number].rules:
            weighed.append((one, number))
    weighed.sort(key=lambda pair: -pair[0].weight)
    for place, (one, number) in enumerate(weighed[:MOST_CANDIDATES]):
        if place and one.weight < doubts.SECOND:
            break
        span = _with_antecedent(plain, original, spans, number)
        shape = ", ".join(one.signs)
        words = plain[span.start : span.end]
        if one.kind == "demand" or reach_of(words).until:
            modality: v.Modality = "must_not" if v.FEATURES["negated"].search(words) else "must"
            own = Span(span.start + lead_length(words), span.end)
            made = _demand(original, span, own, modality, "candidate", shape, words)
            rule: Demand | Rejection = msgspec.structs.replace(made, ordered=_is_order(words))
        elif _names_nothing(words) and number + 1 < len(spans):
            after = spans[number + 1]
            whole = Span(span.start, after.end)
            reason = as_sentence(original[after.start : after.end])
            idea = _bare(original[span.start : span.end])
            made_of_both = _rejection(original, whole, idea, "candidate", shape)
            rule = msgspec.structs.replace(made_of_both, reason=reason)
        else:
            rule = _rejection(original, span, _bare(original[span.start : span.end]), "candidate", shape)
        found[number] = Reading(found[number].reversals, (rule,))


def _explained(reading: Reading, original: str, sentence: Span, whole: Span) -> Reading:
    """Return a reading whose demands include the sentence before them, in which a pronoun has its meaning."""
    if whole == sentence or not any(isinstance(rule, Demand) for rule in reading.rules):
        return reading
    before = original[whole.start : sentence.start].strip()
    rules = tuple(
        msgspec.structs.replace(rule, text=as_sentence(f"{before} {rule.text}"), evidence=whole)
        if isinstance(rule, Demand) and _POINTS_BACK.match(rule.text)
        else rule
        for rule in reading.rules
    )
    return Reading(reading.reversals, rules)


def _names_nothing(words: str) -> bool:
    return not content_words(words.replace(NAME, "x")) - _REFUSALS


def _with_antecedent(plain: str, original: str, spans: Sequence[Span], number: int) -> Span:
    """Return a sentence, with the one before it if a pronoun points there."""
    span = spans[number]
    if not number or not _POINTS_BACK.match(plain[span.start : span.end]):
        return span
    before = spans[number - 1]
    # Nothing of others may be between them.
    between = original[before.end : span.start]
    near = not between.strip(" .-") and between.count("\n") < _SAME_PARAGRAPH
    return Span(before.start, span.end) if near and span.end - before.start <= _MAX_QUOTE else span


# --- text -----------------------------------------------------------------------------------------


def as_sentence(words: str) -> str:
    """Return the user's words as a sentence.

    White space is collapsed, "please" is dropped after a comma, and the first letter is capitalised.
    """
    text = _COURTESY.sub("", " ".join(words.split()))
    text = _PLEASE.sub(r"\1", text).strip(_EDGES).rstrip("?")
    return text[:1].upper() + text[1:]
