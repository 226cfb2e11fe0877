"""Finds what a sentence may do to existing rules: end, allow, change or narrow one, or say that its end came.

Most of these words mean nothing on their own ("actually, use spaces"). They count only if they fit an
existing rule (:mod:`agentx.synthesis.demands.targets`). The deciding words are in
:mod:`agentx.synthesis.demands.tables.endings`.
"""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.demands.tables import endings
from agentx.synthesis.language.sentences import Span, clauses

MAX_QUOTE = 400
"""Number of characters of a sentence kept as evidence."""

_NEAR_BEFORE, _NEAR_AFTER = 200, 120
"""Number of characters around a sentence in which a rule may be named."""

_PART = re.compile(r"[^,;:\s](?:[^,;:.]|\.(?=\w)){2,200}")
"""A part of a sentence between commas and full stops."""


class Retraction(msgspec.Struct, frozen=True, kw_only=True):
    """Words that end a rule.

    Attributes:
        what: The part of the sentence that names the rule.
        evidence: The sentence.
        wide: The sentence and the words around it, in which the rule may be named instead.
        place: Words that limit what is said to a place; empty if none do.
        sure: Whether the words can mean nothing else.
        of: The sort of rule that such words end: ``must``, ``must_not`` or, if empty, either.
        several: Whether all matching rules are meant.
        alone: Whether the sentence has no other meaning if no such rule exists.
    """

    what: str
    evidence: Span
    wide: str = ""
    place: str = ""
    sure: bool = True
    of: str = ""
    several: bool = False
    alone: bool = True


class Permission(Retraction, frozen=True, kw_only=True):
    """Words that allow what may have been ruled out."""

    of: str = "must_not"


class Fulfilment(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that something has happened, which may be the end condition of a rule."""

    what: str
    evidence: Span


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """A statement about the present or the past, which may be the end condition of a rule in other words."""

    what: str
    evidence: Span


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """Takes back the statement just before ("scratch that"); ``named`` if it says that it was a rule."""

    evidence: Span
    named: bool


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """Another choice, in words that change something ("make that 4 spaces").

    It is a rule only if an existing one is changed by it. ``turned`` is true if the words change something
    even if the choice is unknown.
    """

    text: Span
    evidence: Span
    unwanted: str
    turned: bool


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """An exception to a rule named by ``what``, or to the one just before.

    With ``only``, the rule applies from now on only where the words say.
    """

    what: str
    words: Span
    evidence: Span
    only: bool


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """An order that may be meant only once; it repeats a rule if one says the same."""

    text: str
    modality: str
    evidence: Span
    points: bool


Reversal = Retraction | Permission | Withdrawal | Fulfilment | Occurrence | Revision | Amendment | Echo


def closes(one: Reversal) -> bool:
    """Return whether a sentence with this reading is only about existing rules, even if there is none."""
    return isinstance(one, Retraction) and one.alone and one.sure and not one.place


def is_decisive(one: Reversal) -> bool:
    """Return whether such a reading has precedence over a certain demand in the same sentence."""
    return isinstance(one, Withdrawal | Fulfilment) or (isinstance(one, Retraction) and one.sure)


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
    bare = words[_lead(words) :]
    parts = [Span(*match.span()) for match in _PART.finditer(plain, sentence.start, sentence.end)]
    if endings.QUESTION.search(bare):
        if endings.ASKED_CHANGE.match(bare):
            yield from _revised(plain, original, sentence)
        # "The freeze ended, so what is next?" states something before it asks.
        yield from _fulfilled(plain, original, sentence, parts[:-1])
        return
    for text in (words, bare):
        if match := endings.WITHDRAWN.match(text):
            yield Withdrawal(evidence=quoted(sentence), named=bool(match["rule"]))
            break
    signs = list(_signs(plain, original, sentence, parts))
    yield from (one for one in signs if one.alone)
    yield from _amended(plain, original, sentence)
    yield from _fulfilled(plain, original, sentence, [sentence, *parts])
    yield from _revised(plain, original, sentence)
    yield from (one for one in signs if not one.alone)
    yield from _echoed(plain, original, sentence, parts)


def _lead(words: str) -> int:
    match = endings.LEAD.match(words)
    return match.end() if match else 0


def _signs(plain: str, original: str, sentence: Span, parts: list[Span]) -> Iterator[Retraction]:
    begin, end = max(0, sentence.start - _NEAR_BEFORE), sentence.end + _NEAR_AFTER
    # Names are masked in the user's own words, and so are quotes outside the sentence
    near = plain[begin : sentence.start] + original[sentence.start : sentence.end] + plain[sentence.end : end]
    for span in dict.fromkeys((sentence, *parts) if len(parts) > 1 else (sentence,)):
        words = plain[span.start : span.end]
        begins = _lead(words)
        bare = words[begins:].rstrip(" .!")
        if endings.ONCE.search(bare) or endings.DOUBTED.search(bare) or len(bare) > MAX_QUOTE:
            continue
        sign = next(
            (one for one in endings.SIGNS if one.pattern.search(bare) or one.pattern.search(words)), None
        )
        if sign is None or endings.KEEPS.search(bare) or endings.CONDITIONAL.match(bare):
            continue
        if not sign.lifts and endings.FORBIDS.search(bare):
            continue
        place = endings.PLACE.search(bare)
        kind = Retraction if sign.lifts else Permission
        yield kind(
            what=original[span.start + begins : span.start + begins + len(bare)],
            evidence=quoted(sentence),
            wide=near,
            place=place.group() if place else "",
            sure=sign.sure and not endings.AT_HAND.search(bare),
            of=sign.of,
            several=bool(endings.SEVERAL.search(bare)),
            alone=sign.alone,
        )


def _fulfilled(plain: str, original: str, sentence: Span, spans: list[Span]) -> Iterator[Reversal]:
    for span in dict.fromkeys(spans):
        said = plain[span.start : span.end]
        happened = endings.HAPPENED.search(said[_lead(said) :])
        if (happened or endings.PAST.search(said)) and not endings.NOT_YET.search(said):
            kind = Fulfilment if happened else Occurrence
            yield kind(what=original[span.start : span.end], evidence=quoted(sentence))


def _amended(plain: str, original: str, sentence: Span) -> Iterator[Reversal]:
    words = plain[sentence.start : sentence.end]
    begins = _lead(words)
    bare = words[begins:].rstrip(" .!")
    for pattern in (endings.EXCEPT, endings.ONLY):
        match = pattern.match(bare)
        if (
            match
            and not endings.ONCE.search(match["place"] or match["other"])
            and not endings.AT_HAND.search(bare)
        ):
            start = sentence.start + begins
            yield Amendment(
                what=unmasked(match["what"] or "", words, original, sentence),
                words=Span(start, start + len(bare)),
                evidence=quoted(sentence),
                only=pattern is endings.ONLY,
            )
            return


def _revised(plain: str, original: str, sentence: Span) -> Iterator[Reversal]:
    whole = plain[sentence.start : sentence.end]
    shifted = bool(endings.SHIFTED.search(whole))
    if not shifted and not endings.CHANGES.search(whole):
        return
    pieces = (Span(*match.span()) for match in _PART.finditer(plain, sentence.start, sentence.end))
    for part in dict.fromkeys((*clauses(plain, sentence), *pieces)):
        words = plain[part.start : part.end]
        begins = _lead(words)
        if len(words) - begins > MAX_QUOTE or endings.DOUBTED.search(words):
            continue
        if endings.ONCE.search(words) or endings.AT_HAND.search(words):
            continue
        gone = endings.UNWANTED.search(words)
        yield Revision(
            text=Span(part.start + begins, part.end),
            evidence=quoted(sentence),
            unwanted=unmasked(gone["gone"] or gone["swapped"], words, original, part) if gone else "",
            turned=shifted,
        )


def _echoed(plain: str, original: str, sentence: Span, parts: list[Span]) -> Iterator[Reversal]:
    for part in parts:
        start = part.start + _lead(plain[part.start : part.end])
        bare = plain[start : part.end]
        order = endings.ORDERS.match(bare)
        if order and not endings.ONCE.search(bare):
            modality = "must_not" if order["ban"] else "must"
            yield Echo(
                text=original[start : part.end],
                modality=modality,
                evidence=quoted(sentence),
                points=bool(endings.POINTS.search(bare)),
            )


def after_withdrawal(plain: str, sentence: Span) -> Span:
    """Return a sentence without a leading "scratch that"."""
    for begins in (0, _lead(plain[sentence.start : sentence.end])):
        if match := endings.WITHDRAWN.match(plain[sentence.start + begins : sentence.end]):
            rest = sentence.start + begins + match.end()
            while rest < sentence.end and not plain[rest].isalnum():
                rest += 1
            return Span(rest, sentence.end)
    return sentence
