"""Compare two freely worded rules by their meaning, and by what makes two rules of like sentences.

An embedder alone cannot decide: with MiniLM, "Log every request" and "Log every response" are nearer to each
other than most rewordings are. So two texts are one rule only if nothing in them differs that could matter:
numbers, names, negation, permission, order, direction, and words that exclude each other. Each content word
needs a counterpart: the same word, or one that fits into the other sentence without a change of its meaning.
If only such a counterpart is missing, the two may be one rule, and a person decides.
"""

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import cache
from typing import Literal

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.similarity.contrasts import exclude, is_contrasted, is_of_a_class
from agentx.synthesis.similarity.normal_form import (
    NormalForm,
    changes_direction,
    changes_roles,
    normal_form,
    same,
    stem_of,
    turns_order,
)

Verdict = Literal["same", "perhaps", "apart"]
"""Whether two texts are one rule; ``perhaps`` is for a person to decide."""

Likeness = Callable[[str, str], float]
"""Cosine of the meanings of two texts; 0 if there is no embedder."""

BUILT_ALIKE = 0.6
"""Share of equal words in sequence from which what differs between two texts differs on purpose."""

SUBSTITUTE = 0.88
"""Cosine of a text and the same text with another word, from which the two words mean the same in it."""

FREE = 0.65
"""Cosine of two texts of one rule where some words are other ones."""

FEWER = 0.75
"""Cosine of two texts of one rule where one has one word more."""

CLOSE = 0.84
"""Cosine from which a few words may differ that are neither names nor members of a class."""

FEW = 3
"""Number of these words in both texts."""

ENOUGH = 2
"""Content words in both of two texts that are merged although other words differ."""

ALONE = 0.08
"""By how much the cosine of a proposal is higher where only one content word is in both texts."""

PERHAPS = 0.6
"""Cosine of two texts that may be one rule."""

_LIGHT = vocabulary(
    """
    go come get happen occur apply take put do make give see look deal handle concern relate belong contain
    include appear stand carry bring follow precede receive touch turn treat stay become remain again
    together back away beforehand afterwards already still well fully completely person people thing time way
    kind sort case part moment whatever anew afresh unit number type form level tell say mention state
    """
)
"""Words that carry no meaning by themselves in most rules."""

_ABSENT = vocabulary("away free clear hidden")
"""Words that deny something without a negation: "keep the key hidden"."""

_SMALL = vocabulary(
    """
    only first last next new old more fewer less most own both off out same other during below above between
    since against atmost atleast
    """
)
"""Small words that one of two wordings may have alone."""

_SMALL_OPPOSITES = (
    ("first", "last"), ("new", "old"), ("more", "fewer"), ("more", "less"), ("below", "above"),
    ("atmost", "atleast"),
)  # fmt: skip

_HEDGES = vocabulary("unless except without until instead some few")
"""Small words that limit a rule, or that deny a part of it."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def compare(one: str, other: str, likeness: Likeness) -> Verdict:
    """Decide whether two texts are wordings of one rule.

    >>> compare("Use UTC in all timestamps.", "All timestamps should be in UTC.", lambda one, other: 0.0)
    'same'
    """
    mine, theirs = normal_form(one), normal_form(other)
    if same(mine, theirs):
        return "same"
    if _is_built_alike(mine, theirs) or _contradict(mine, theirs) or _oppose(mine, theirs):
        return "apart"
    here, there = _unmatched(mine, theirs), _unmatched(theirs, mine)
    shared = len((mine.words & theirs.words) - _light())
    near = likeness(one, other)
    if not here and not there:
        agree = shared > 0
    elif shared < ENOUGH:
        agree = False
    elif here and there and near >= CLOSE and len(here) + len(there) <= FEW:
        agree = not _limits(one, other, here, there)
    elif here and there:
        agree = near >= FREE and _have_counterparts(one, other, likeness)
    else:
        agree = near >= FEWER and len(extra := here or there) == 1 and not is_of_a_class(extra[0])
    if agree and not _is_doubtful(mine, theirs):
        return "same"
    unsure = near >= PERHAPS + ALONE * (shared < ENOUGH)
    return "perhaps" if shared and (agree or unsure) else "apart"


@cache
def _light() -> frozenset[str]:
    return frozenset(map(stem_of, _LIGHT))


def _is_built_alike(one: NormalForm, other: NormalForm) -> bool:
    return SequenceMatcher(None, _sequence(one), _sequence(other), autojunk=False).ratio() >= BUILT_ALIKE


def _sequence(form: NormalForm) -> list[str]:
    content = iter(form.shape[1])
    return [said or next(content) for said in form.shape[0]]


def _contradict(one: NormalForm, other: NormalForm) -> bool:
    """Return whether numbers, names, negation, order or direction differ."""
    soft, others = one.marks & _SMALL, other.marks & _SMALL
    return (
        (_denies(one) != _denies(other) and not (_unmatched(one, other) and _unmatched(other, one)))
        or _hard(one, other) != _hard(other, one)
        or any(
            {a, b} <= soft ^ others and {a, b} != soft & {a, b} != others & {a, b}
            for a, b in _SMALL_OPPOSITES
        )
        or (one.shape[0] == other.shape[0] and one.shape[1] != other.shape[1])
        or turns_order(one, other)
        or (one.denies == other.denies and changes_direction(one, other))
    )


def _is_doubtful(one: NormalForm, other: NormalForm) -> bool:
    """Return whether a permission, an exception, a negation, a role or a preposition may differ."""
    return (
        one.permits != other.permits
        or _denies(one) != _denies(other)
        or bool((one.marks ^ other.marks) & _HEDGES)
        or changes_roles(one, other)
    )


def _denies(form: NormalForm) -> bool:
    return form.denies != bool(_ABSENT & {*form.shape[0], *form.words})


def _hard(form: NormalForm, other: NormalForm) -> frozenset[str]:
    """Return the marks that both texts must have, save for names that are words of the other text."""
    marks = form.marks - _SMALL - _HEDGES - {"1"}
    return frozenset(mark for mark in marks if stem_of(mark.strip("./#-") or mark) not in other.words)


def _limits(one: str, other: str, here: list[str], there: list[str]) -> bool:
    """Return whether one of some words is a name or a member of a class, so that it limits a rule."""
    said = [(one, word) for word in here] + [(other, word) for word in there]
    return any(
        is_of_a_class(word) or any(_is_name(text, name) for name in _said(text, word)) for text, word in said
    )


def _oppose(one: NormalForm, other: NormalForm) -> bool:
    """Return whether a word that only one text has excludes one that only the other has."""
    mine, theirs = set(one.shape[1]), set(other.shape[1])
    return any(exclude(word, against) for word in mine - theirs for against in theirs - mine)


def _unmatched(one: NormalForm, other: NormalForm) -> list[str]:
    """Return the content words of a text that the other one lacks; "rebuild" counts as "build"."""
    again = {"re" + word for word in other.words}
    return [
        word
        for word in sorted(one.words - other.words - _light() - again)
        if word.removeprefix("re") not in other.words
    ]


def _have_counterparts(one: str, other: str, likeness: Likeness) -> bool:
    """Return whether each word that only one text has, the one with fewer such words, fits the other."""
    mine, theirs = normal_form(one), normal_form(other)
    here, there = _unmatched(mine, theirs), _unmatched(theirs, mine)
    if len(here) > len(there):
        one, other, mine, theirs, here, there = other, one, theirs, mine, there, here
    if any(_is_name(other, said) for word in there for said in _said(other, word)):
        return False
    candidates = sorted({*theirs.words, *theirs.shape[1]} - mine.words)
    return all(any(_fits(one, other, word, instead, likeness) for instead in candidates) for word in here)


def _fits(one: str, other: str, word: str, instead: str, likeness: Likeness) -> bool:
    """Return whether two words mean the same in the two texts: each fits into the other's place."""
    if is_contrasted(word) or is_contrasted(instead):
        return False
    mine, theirs = next(_said(one, word), ""), next(_said(other, instead), "")
    if not mine or not theirs or _is_name(one, mine) or _is_name(other, theirs):
        return False
    near = likeness(one, one.replace(mine, theirs, 1)) + likeness(other, other.replace(theirs, mine, 1))
    return near / 2 >= SUBSTITUTE


def _is_name(text: str, word: str) -> bool:
    """Return whether a word has a capital or a digit, although it does not begin the text."""
    return word != word.lower() and not text.lstrip("\"'`*([- ").startswith(word)


def _said(text: str, word: str) -> Iterator[str]:
    """Yield the words of a text with this stem, as they are written."""
    return (match.group() for match in _WORD.finditer(text) if stem_of(match.group()) == word)
