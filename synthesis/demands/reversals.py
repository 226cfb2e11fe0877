"""Finds what a sentence does to existing rules: ends, allows, changes or narrows one, or says its end came.

Most of these words mean nothing on their own ("actually, use spaces"). They count only if they match exactly
one existing rule (:mod:`agentx.synthesis.demands.targets`). The deciding words are in
:mod:`agentx.synthesis.demands.tables.endings`.
"""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.demands.reading.clause import lead_length
from agentx.synthesis.demands.tables import endings
from agentx.synthesis.demands.tables.vocabulary import FEATURES, Modality
from agentx.synthesis.language.sentences import Span, clauses

MAX_QUOTE = 400
"""Number of characters of a sentence kept as evidence."""


_PART = re.compile(r"[^,;:\s](?:[^,;:.]|\.(?=\w)){2,200}")
"""A part of a sentence between commas and full stops."""


class Retraction(msgspec.Struct, frozen=True, kw_only=True):
    """Words that end a rule.

    Attributes:
        what: Which rule, in the user's words.
        evidence: Its position in the message.
        sure: Whether the words can mean nothing else; otherwise only a temporary rule ends.
        of: The sort of rule that such words end: ``must``, ``must_not`` or, if empty, either.
        several: Whether all matching rules are meant.
        alone: Whether the sentence has no other meaning if no such rule exists.
    """

    what: str
    evidence: Span
    sure: bool
    of: str = ""
    several: bool = False
    alone: bool = True


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """Takes back the statement just before ("scratch that"); ``named`` if it says that it was a rule."""

    evidence: Span
    named: bool


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """Words that allow what may have been ruled out.

    ``what`` names it. ``act`` is true for an action, which may be allowed only once.
    """

    what: str
    evidence: Span
    act: bool = False


class Fulfilment(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that something has happened, which may be the end condition of a rule."""

    what: str
    evidence: Span


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """Another choice, in words that change something ("make that 4 spaces").

    It is a rule only if an existing one is changed by it.
    """

    text: Span
    evidence: Span
    unwanted: str


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """An exception to a rule, or its narrowing.

    Attributes:
        what: Which rule, in the user's words; empty for the one just before.
        words: The exception, as written in the message.
        evidence: The sentence.
        only: Whether the rule applies from now on only where the words say.
        of: The sort of rule that it can be about: ``must``, ``must_not`` or, if empty, either.
    """

    what: str
    words: Span
    evidence: Span
    only: bool
    of: str = ""


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """An order that may be meant only once; it repeats a rule if one says the same."""

    text: str
    modality: Modality
    evidence: Span


Reversal = Retraction | Withdrawal | Permission | Fulfilment | Revision | Amendment | Echo


def closes(one: Reversal) -> bool:
    """Return whether a sentence with this reading is only about existing rules, even if there is none."""
    return (isinstance(one, Retraction) and one.alone) or (isinstance(one, Permission) and not one.act)


def is_decisive(one: Reversal) -> bool:
    """Return whether such a reading has precedence over a certain demand in the same sentence."""
    return not isinstance(one, Revision | Amendment | Echo) and (not isinstance(one, Retraction) or one.alone)


def quoted(sentence: Span) -> Span:
    """Return a sentence as evidence: at most 400 characters of it."""
    return Span(sentence.start, min(sentence.end, sentence.start + MAX_QUOTE))


def unmasked(piece: str, words: str, original: str, sentence: Span) -> str:
    """Return a part of a sentence's own words with the names that were masked in it."""
    at = words.find(piece)
    return original[sentence.start + at : sentence.start + at + len(piece)] if at >= 0 else piece


def reversals(plain: str, original: str, sentence: Span) -> Iterator[Reversal]:
    """Yield what a sentence may do to existing rules, the most certain first; at most one is applied.

    Args:
        plain: The user's own words (:func:`agentx.synthesis.demands.reading.material.own_words`).
        original: The message with typographic quotes straightened.
        sentence: The position of the sentence.
    """
    words = plain[sentence.start : sentence.end]
    if not FEATURES["question"].search(words):
        begins = lead_length(words)
        bare = words[begins:]
        for reading in (_withdrawn, _retracted, _amended, _allowed, _fulfilled):
            yield from reading(_Sentence(plain, original, sentence, words, bare, begins))
        yield from _revised(plain, original, sentence)
        yield from _echoed(plain, original, sentence)
    elif endings.ASKED_CHANGE.match(words[lead_length(words) :]):
        yield from _revised(plain, original, sentence)


class _Sentence(msgspec.Struct, frozen=True):
    plain: str
    original: str
    span: Span
    words: str
    bare: str
    begins: int

    def named(self, piece: str) -> str:
        return unmasked(piece, self.words, self.original, self.span)


def _withdrawn(said: _Sentence) -> Iterator[Reversal]:
    for text in (said.words, said.bare):
        if match := endings.WITHDRAWN.match(text):
            yield Withdrawal(evidence=quoted(said.span), named=bool(match["rule"]))
            return


def _retracted(said: _Sentence) -> Iterator[Reversal]:
    for row in endings.RETRACTIONS:
        if match := row.pattern.search(said.bare):
            yield Retraction(
                what=said.named(match["what"]),
                evidence=quoted(said.span),
                sure=row.sure,
                of=row.of,
                several=bool(endings.SEVERAL.search(said.bare)),
                alone=row.alone,
            )


def _amended(said: _Sentence) -> Iterator[Reversal]:
    bare = said.bare.rstrip(" .!")
    for row in endings.AMENDMENTS:
        match = row.pattern.match(bare)
        if match and not endings.ONCE.search(match["place"]):
            start = said.span.start + said.begins
            yield Amendment(
                what=said.named(match.groupdict().get("what") or ""),
                words=Span(start, start + len(bare)),
                evidence=quoted(said.span),
                only=row.only,
                of=row.of,
            )
            return


def _allowed(said: _Sentence) -> Iterator[Reversal]:
    for pattern, act in endings.PERMISSIONS:
        if match := pattern.match(said.bare):
            yield Permission(what=said.named(match["what"]), evidence=quoted(said.span), act=act)


def _fulfilled(said: _Sentence) -> Iterator[Reversal]:
    if FEATURES["negated"].search(said.words) or endings.CONDITIONAL.match(said.bare):
        return
    for pattern in endings.FULFILLED:
        if match := pattern.search(said.bare):
            yield Fulfilment(what=said.named(match["what"]), evidence=quoted(said.span))
            return


def _revised(plain: str, original: str, sentence: Span) -> Iterator[Reversal]:
    whole = plain[sentence.start : sentence.end]
    changes = endings.CHANGES.search(whole)
    pieces = (Span(*match.span()) for match in _PART.finditer(plain, sentence.start, sentence.end))
    for part in dict.fromkeys((*clauses(plain, sentence), *(pieces if changes else ()))):
        words = plain[part.start : part.end]
        begins = lead_length(words)
        bare = words[begins:]
        if len(bare) > MAX_QUOTE or endings.ONCE.search(words) or endings.DOUBTED.search(words):
            continue
        if changes or endings.LIMIT_IS_FINE.search(words):
            gone = endings.UNWANTED.search(words)
            yield Revision(
                text=Span(part.start + begins, part.end),
                evidence=quoted(sentence),
                unwanted=unmasked(gone["gone"] or gone["swapped"], words, original, part) if gone else "",
            )


def _echoed(plain: str, original: str, sentence: Span) -> Iterator[Reversal]:
    for part in _PART.finditer(plain, sentence.start, sentence.end):
        words = part.group()
        bare = words[lead_length(words) :]
        order = endings.ORDERS.match(bare)
        if order and not FEATURES["deictic"].search(bare):
            text = original[part.end() - len(bare) : part.end()]
            yield Echo(text=text, modality="must_not" if order["ban"] else "must", evidence=quoted(sentence))


def after_withdrawal(plain: str, sentence: Span) -> Span:
    """Return a sentence without a leading "scratch that"."""
    for begins in (0, lead_length(plain[sentence.start : sentence.end])):
        if match := endings.WITHDRAWN.match(plain[sentence.start + begins : sentence.end]):
            rest = sentence.start + begins + match.end()
            while rest < sentence.end and not plain[rest].isalnum():
                rest += 1
            return Span(rest, sentence.end)
    return sentence
