"""Finds what a sentence may do to existing rules: end, allow or change one, or say that its end came.

Most of these words mean nothing on their own ("actually, use spaces"). They count only if they fit an
existing rule (:mod:`agentx.synthesis.demands.targets`). The deciding words are in
:mod:`agentx.synthesis.demands.tables.endings`.
"""

import re
from collections.abc import Iterator

import msgspec

from agentx.synthesis.attribution import sources
from agentx.synthesis.demands.tables import endings
from agentx.synthesis.language.sentences import Span, clauses

MAX_QUOTE = 400
"""Number of characters of a sentence kept as evidence."""

_NEAR_BEFORE, _NEAR_AFTER = 200, 120
"""Number of characters around a sentence in which a rule may be named."""

_PART = re.compile(r"[^,;:\s](?:[^,;:.]|\.(?=\w)){2,200}")
"""A part of a sentence between commas and full stops."""


class Reversal(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence may do to existing rules; each subclass is one way.

    Attributes:
        what: The words that name the rule, its end or another choice.
        evidence: The sentence.
        sure: Whether the words can mean nothing else.
        of: The sort of rule that is meant: ``must``, ``must_not`` or, if empty, either.
    """

    what: str = ""
    evidence: Span
    sure: bool = True
    of: str = ""


class Retraction(Reversal, frozen=True, kw_only=True):
    """Words that end a rule.

    Attributes:
        wide: The sentence and the words around it, in which the rule may be named instead.
        place: Words that limit what is said to a place; empty if none do.
        alone: Whether the sentence has no other meaning if no such rule exists.
    """

    wide: str = ""
    place: str = ""
    alone: bool = True


class Permission(Retraction, frozen=True, kw_only=True):
    """Words that allow what may have been ruled out."""


class Fulfilment(Reversal, frozen=True, kw_only=True):
    """A statement that something has happened, which may be the end condition of a rule."""


class Occurrence(Reversal, frozen=True, kw_only=True):
    """A statement about the present or the past, which may be the end condition of a rule in other words."""


class Withdrawal(Reversal, frozen=True, kw_only=True):
    """Takes back the statement just before ("scratch that")."""


class Revision(Reversal, frozen=True, kw_only=True):
    """Another choice ("make that 4 spaces"): a rule only if an existing one is changed by it.

    It is sure if the words change something even if the choice is unknown.
    """

    unwanted: str


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
        plain: The user's own words (:func:`agentx.synthesis.attribution.material.own_words`).
        original: The message with typographic quotes straightened.
        sentence: The position of the sentence.
    """
    parts = [Span(*match.span()) for match in _PART.finditer(plain, sentence.start, sentence.end)]
    words = plain[_bare(plain, sentence).start : sentence.end]
    if endings.QUESTION.search(words):
        # "The freeze ended, so what is next?" states something before it asks.
        yield from _fulfilled(plain, original, sentence, parts[:-1])
        return
    if after_withdrawal(plain, sentence) != sentence:
        yield Withdrawal(evidence=quoted(sentence))
    signs = list(_signs(plain, original, sentence, parts))
    yield from (one for one in signs if one.alone)
    yield from _fulfilled(plain, original, sentence, [sentence, *parts])
    yield from _revised(plain, original, sentence, parts)
    yield from (one for one in signs if not one.alone)


def after_withdrawal(plain: str, sentence: Span) -> Span:
    """Return a sentence without a leading "scratch that"."""
    match = endings.WITHDRAWN.match(plain[sentence.start : sentence.end])
    return Span(sentence.start + match.end(), sentence.end) if match else sentence


def _bare(plain: str, span: Span) -> Span:
    """Return a part of a sentence without the words before its statement, and without its last full stop."""
    words = plain[span.start : span.end].rstrip(" .!")
    match = endings.LEAD.match(words)
    return Span(span.start + (match.end() if match else 0), span.start + len(words))


def _signs(plain: str, original: str, sentence: Span, parts: list[Span]) -> Iterator[Retraction]:
    begin, end = max(0, sentence.start - _NEAR_BEFORE), sentence.end + _NEAR_AFTER
    # Names are masked in the user's own words, and so are quotes outside the sentence
    near = plain[begin : sentence.start] + original[sentence.start : sentence.end] + plain[sentence.end : end]
    for span in dict.fromkeys((sentence, *parts) if len(parts) > 1 else (sentence,)):
        own = _bare(plain, span)
        start, end = own.start, own.end
        words, bare = plain[span.start : span.end], plain[start:end]
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
        yield (Retraction if sign.lifts else Permission)(
            what=original[start:end],
            evidence=quoted(sentence),
            wide=near,
            place=place.group() if place else "",
            sure=sign.sure and not endings.AT_HAND.search(bare),
            of=sign.of,
            alone=sign.alone,
        )


def _fulfilled(plain: str, original: str, sentence: Span, spans: list[Span]) -> Iterator[Reversal]:
    for span in dict.fromkeys(spans):
        words = plain[span.start : span.end]
        happened = endings.HAPPENED.search(plain[_bare(plain, span).start : span.end])
        if (happened or endings.PAST.search(words)) and not endings.NOT_YET.search(words):
            kind = Fulfilment if happened else Occurrence
            yield kind(what=original[span.start : span.end], evidence=quoted(sentence))


def _revised(plain: str, original: str, sentence: Span, parts: list[Span]) -> Iterator[Reversal]:
    whole = plain[sentence.start : sentence.end]
    sure = bool(endings.SHIFTED.search(whole))
    if not sure and not endings.CHANGES.search(whole):
        return
    for part in dict.fromkeys((*clauses(plain, sentence), *parts)):
        words, start = plain[part.start : part.end], _bare(plain, part).start
        once = any(one.search(words) for one in (endings.DOUBTED, endings.ONCE, endings.AT_HAND))
        if once or part.end - start > MAX_QUOTE:
            continue
        gone = endings.UNWANTED.search(words)
        unwanted = unmasked(gone["gone"] or gone["swapped"], words, original, part) if gone else ""
        yield Revision(
            what=original[start : part.end], unwanted=unwanted, evidence=quoted(sentence), sure=sure
        )


def reports(words: str) -> bool:
    """Return whether a sentence speaks of words or of a case, so that it ends no rule itself.

    It reports somebody's words, asks to write some, supposes something or is about another project.

    >>> reports("the docs say that pushing is allowed again"), reports("pushing is allowed again")
    (True, False)
    """
    if sources.MENTIONS.search(words):
        return True
    rest = [words[match.end() :] for match in sources.REPORT.finditer(words)]
    signs = (*(sign.pattern for sign in endings.SIGNS), endings.HAPPENED, endings.SHIFTED, endings.CHANGES)
    return any(sign.search(said) for said in rest for sign in signs)
