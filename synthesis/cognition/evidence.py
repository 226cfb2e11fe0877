"""Rank what was told by how well it answers a question, and decide whether anything does.

A sentence is evidence if it has a value of the type asked for, names what the question names, and is near to
it in meaning. What was told around it counts, too: "She pays 900" is about whoever the sentence before names.
Meaning comes from vectors; without them, words alone decide.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import takewhile

import msgspec

from agentx.storage.index.analysis import analyse
from agentx.storage.index.port import Vector
from agentx.synthesis.language.values import Wanted, fit, names, types, values, wanted
from agentx.synthesis.language.verbs import base_of
from agentx.synthesis.language.words import STOP_WORDS, vocabulary, words_of

Embed = Callable[[Sequence[str]], Mapping[str, Vector]]
"""Returns vectors of unit length by text, without those that could not be made."""

SAME_MESSAGE, JUST_BEFORE = 0.8, 0.6
"""Weight of a word of the question that is only in the same message, or in the one just before."""

FEWEST_WORDS = 3
"""A sentence with fewer content words is about what was told just before it."""

SIMILAR, EQUAL = 0.45, 0.9
"""Cosines of two words from which they are related, and from which they mean the same."""

RELATED_WEIGHT = 0.8

COMPOUND = 0.6
"""Weight of a word that is a part of another one, of :data:`FEWEST_LETTERS` at least."""

FEWEST_LETTERS = 4

SAME_PHRASE = 0.15
"""Bonus for three words in sequence that are also in the question: "for a living"."""

MEANING, AROUND, TYPE = 0.7, 0.5, 0.5
"""Weights of the cosine of sentence and question; in it, of that of the whole message; and of the type."""

TYPED = 0.8
"""Weight of a word that only names the type, in a sentence with a value of that type."""

ASTRAY = 0.3
"""What a sentence loses that has none of the names and numbers of a question."""

COMPARED = 30
"""Number of best sentences whose words are compared with the question by meaning."""

SAME_SLOT, SAME_MATTER = 0.4, 0.12
"""A later sentence with a score this near to the best, and about the same, is newer: where a type of value is
asked for, and where none is."""

BESIDE = 0.6
"""Where no type is asked for, a neighbour in the message with a score this near is told, too."""

COVERED = 0.5
"""From this weight on, a word of the question is covered."""

HINTED = 0.2
"""Minimum weight of the word for what is asked for: "deposit" of "the neighbour's deposit"."""

CERTAIN = 0.7
"""Minimum fit of a value that is found by way of another sentence."""

FEW_COVERED, NEAR = 0.25, 0.4
"""With a smaller mean weight of the other words, a sentence must be this near in meaning."""

_LEAD = re.compile(
    r"^(?:(?:so|and|but|well|ok(?:ay)?|hey|please|right|actually|by the way|also)[,\s]+)*"
    r"(?:(?:(?:can|could) you )?(?:please )?(?:tell|remind) me (?:again )?"
    r"|do you (?:know|remember) |any idea )?",
    re.IGNORECASE,
)
_ANAPHOR = re.compile(
    r"^(?:(?:and|but|so|well|also|then|now|still|yes|no|though)\W+)*"
    r"(?:he|she|it|they|his|hers?|its|theirs?|this|that|these|those|there|him|them|both)\b",
    re.IGNORECASE,
)
_WHICH = re.compile(
    r"\b(?:what|which|how many|how much)\s+(?P<what>[^\W\d_]+(?:\s[^\W\d_]+){0,2})", re.IGNORECASE
)
_OWNED = re.compile(r"\b[^\W\d_]\w*(?:['’]s|s['’])\s+(?P<what>[^\W\d_]+(?:\s[^\W\d_]+){0,2})")
_DESCRIBED = re.compile(r"\b(?:the|my|our) \w+(?: \w+)? (?:of|who|that|which|whose)\b", re.IGNORECASE)
_ASKING = vocabulary("who whom whose what when where why how which much many long old tell remind")


class Sentence(msgspec.Struct, frozen=True):
    """A sentence that the user told.

    Attributes:
        memory: Id of its memory.
        order: Grows with the time at which it was told; equal for sentences of one message.
        place: Its place among the sentences of its message, from 0.
        message: All that is remembered of the message.
        before: What was told just before the message; empty if nothing was.
    """

    text: str
    memory: str
    order: int
    place: int = 0
    message: str = ""
    before: str = ""

    @property
    def leans(self) -> bool:
        """Whether it is about what was told just before it: by a pronoun, or because it is a fragment."""
        return (
            bool(_ANAPHOR.match(self.text))
            or len(content(self.text)) < FEWEST_WORDS
            or not any(names(self.text))
        )


class Match(msgspec.Struct, frozen=True):
    """How well a sentence answers a question.

    Attributes:
        covered: Weight from 0 to 1 of each content word of the question, by stem.
        fits: How well it has a value of the type asked for.
        near: Cosine of the question and the sentence; 0 without vectors.
    """

    sentence: Sentence
    score: float
    covered: Mapping[str, float]
    fits: float
    near: float

    @property
    def support(self) -> float:
        """How well it supports an answer, from 0 to 1."""
        shared = math.fsum(self.covered.values()) / max(1, len(self.covered))
        return max(0.0, min(1.0, max(shared, self.near)))


def content(text: str) -> dict[str, str]:
    """Return the content words of a text by stem.

    >>> content("What does Anna's sister pay?")
    {'anna': 'Anna', 'sister': 'sister', 'pay': 'pay'}
    """
    found: dict[str, str] = {}
    for word in words_of(text):
        plain = re.sub(r"['’]s?$", "", word)
        for stem in analyse(base_of(plain)):
            if stem not in _stems_of(STOP_WORDS):
                found.setdefault(stem, plain)
    return found


@cache
def _stems_of(words: frozenset[str]) -> frozenset[str]:
    return words | frozenset(stem for word in words for stem in analyse(word))


class Question:
    """A question, as what it asks for and what it is about.

    Attributes:
        wanted: Type of the value that it asks for.
        words: Its content words by stem.
        anchors: Those that name one thing: names and numbers.
        typed: Those that only name the type: "rent" of a question about money.
        phrases: Its sequences of three words.
        asked_for: Those for what is asked for: "bank" of "Ben's bank", "school" of "which school".
    """

    def __init__(self, text: str) -> None:
        self.text = _LEAD.sub("", text)
        self.wanted: Wanted = wanted(self.text)
        asking = _stems_of(_ASKING)
        self.words = {stem: word for stem, word in content(self.text).items() if stem not in asking}
        days = {
            stem for one in values(self.text) if one.kind in ("date", "time") for stem in content(one.text)
        }
        named = {stem for one in names(self.text) for stem in content(one.text)}
        marked = {stem for stem in self.words if stem in named or any(map(str.isdigit, stem))}
        self.anchors = frozenset(marked - days)
        self.typed = (
            frozenset(stem for stem, word in self.words.items() if types(self.wanted, word)) - self.anchors
        )
        self.phrases = _phrases(self.text)
        self.asked_for = self._asked_for() - self.anchors - self.typed

    def _asked_for(self) -> frozenset[str]:
        """Return the noun of "which school" or, without such a form, of "Ben's old school"."""
        for form in (_WHICH, _OWNED):
            for match in form.finditer(self.text):
                phrase = list(
                    takewhile(lambda word: word.casefold() not in STOP_WORDS, match["what"].split())
                )
                if found := content(" ".join(phrase)).keys() & self.words.keys():
                    return frozenset(found if not found & self.typed else ())
        return frozenset()


def ranked(question: Question, told: Sequence[Sentence], embed: Embed) -> list[Match]:
    """Return all sentences, best first."""
    if not told:
        return []
    weights = _weights(question, told)
    lower = frozenset(word for one in told for word in words_of(one.text) if word.islower())
    texts = [question.text, *(text for one in told for text in _around(one))]
    vectors = embed(list(dict.fromkeys(texts)))
    first = [_match(question, one, weights, vectors, lower, {}) for one in told]
    first.sort(key=lambda one: (-one.score, -one.sentence.order, one.sentence.place))
    if not vectors:
        return first
    # Only the best are worth comparing word by word
    near = _related(question, [one.sentence for one in first[:COMPARED]], embed)
    again = [_match(question, one.sentence, weights, vectors, lower, near) for one in first[:COMPARED]]
    return sorted(
        [*again, *first[COMPARED:]], key=lambda one: (-one.score, -one.sentence.order, one.sentence.place)
    )


def _compound(stem: str, other: str) -> bool:
    """Return whether a word is a part of a longer one: "wood" of "rosewood"."""
    return FEWEST_LETTERS <= len(stem) < len(other) and (other.startswith(stem) or other.endswith(stem))


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    words = [word.casefold() for word in words_of(text)]
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _around(one: Sentence) -> list[str]:
    return [
        one.text,
        one.message or one.text,
        *([f"{one.before} {one.message}"] if one.before and one.leans else []),
    ]


def _weights(question: Question, told: Sequence[Sentence]) -> dict[str, float]:
    often = Counter(stem for one in told for stem in content(one.text))
    total = len(told)
    idf = {stem: math.log(1 + (total - often[stem] + 0.5) / (often[stem] + 0.5)) for stem in question.words}
    whole = math.fsum(idf.values()) or 1.0
    return {stem: value / whole for stem, value in idf.items()}


def _related(question: Question, told: Sequence[Sentence], embed: Embed) -> dict[tuple[str, str], float]:
    """Return how related words of the question and of sentences are, from 0 to 1."""
    asked = [word for stem, word in question.words.items() if stem not in question.anchors]
    said = dict.fromkeys(word for one in told for word in content(one.message or one.text).values())
    vectors = embed(list(dict.fromkeys(word.casefold() for word in (*asked, *said))))
    found: dict[tuple[str, str], float] = {}
    for word in asked:
        if (mine := vectors.get(word.casefold())) is None:
            continue
        for other in said:
            if (theirs := vectors.get(other.casefold())) is not None and (
                cosine := float(mine @ theirs)
            ) > SIMILAR:
                found[word, other] = RELATED_WEIGHT * min(1.0, (cosine - SIMILAR) / (EQUAL - SIMILAR))
    return found


def _match(
    question: Question,
    one: Sentence,
    weights: Mapping[str, float],
    vectors: Mapping[str, Vector],
    lower: frozenset[str],
    related: Mapping[tuple[str, str], float],
) -> Match:
    own, whole = content(one.text), content(one.message or one.text)
    before = content(one.before) if one.leans else {}
    covered = {}
    for stem, word in question.words.items():
        part = COMPOUND if any(_compound(stem, other) for other in own) else 0.0
        told = SAME_MESSAGE if stem in whole else JUST_BEFORE if stem in before else part
        best = 1.0 if stem in own else told
        best = max([best, *(related.get((word, other), 0.0) for other in own.values())])
        covered[stem] = max([best, *(0.85 * related.get((word, other), 0.0) for other in whole.values())])
    fits = fit(question.wanted, one.text, question.text, lower)
    covered |= {stem: max(covered[stem], TYPED * fits) for stem in question.typed}
    words = math.fsum(weights[stem] * covered[stem] for stem in covered)
    astray = math.fsum(1 - covered[stem] for stem in question.anchors) / max(1, len(question.anchors))
    near = around = 0.0
    if (asked := vectors.get(question.text)) is not None:
        cosines = [float(asked @ vectors[text]) if text in vectors else 0.0 for text in _around(one)]
        near, around = cosines[0], max(cosines[:2] + [0.9 * cosine for cosine in cosines[2:]])
    words += SAME_PHRASE * bool(question.phrases & _phrases(one.text))
    score = words - ASTRAY * astray + MEANING * ((1 - AROUND) * near + AROUND * around) + TYPE * fits
    return Match(one, score, covered, fits, near)


def answering(
    question: Question,
    told: Sequence[Sentence],
    embed: Embed,
    *,
    past: bool = False,
    true: Callable[[str], Collection[str]] = lambda name: (name,),
) -> list[Match]:
    """Return the sentences that answer a question, in the order of their telling; none if nothing does.

    Args:
        question: The question.
        told: What may answer it.
        embed: Makes vectors.
        past: Whether it asks for a former value: of several for the same, that before the latest is taken.
        true: Returns the ids of the memories that were true at the time asked for, where one is known to
            have taken the place of another.
    """
    found = ranked(question, told, embed)
    if not found:
        return []
    best = chosen(question, found, past=False)
    if two := _by_way_of(question, found):
        return two
    if not answers(question, best, told, with_meaning=any(one.near for one in found)):
        return []
    names = true(best.sentence.memory)
    if best.sentence.memory not in names:
        best = next((one for one in found if one.sentence.memory in names), best)
    elif past and len(names) == 1:
        best = chosen(question, found, past=True)
    return _whole(question, best, found)


def chosen(question: Question, found: Sequence[Match], *, past: bool) -> Match:
    """Return the sentence to answer with: of those that tell the same as the best one, the latest."""
    best = found[0]
    typed = question.wanted not in ("any", "reason")
    about = _covered(question, best)

    def same(one: Match) -> bool:
        shared = _covered(question, one)
        fits = one.fits >= min(best.fits, 0.8)
        least = len(about) / 2 if typed and not past else len(about)
        return fits and about & question.anchors <= shared and len(shared & about) >= least

    near = best.score - (SAME_SLOT if typed else SAME_MATTER)
    alike = [one for one in found if one.score >= near and same(one)]
    orders = sorted({one.sentence.order for one in alike})
    order = orders[-2] if past and len(orders) > 1 else orders[-1]
    return next(one for one in alike if one.sentence.order == order)


def answers(question: Question, best: Match, told: Sequence[Sentence], *, with_meaning: bool) -> bool:
    """Return whether the best sentence answers a question at all.

    It does not if it has no value of the type asked for, if a name or number of the question was never told,
    if nothing in it hints at what is asked for, or if too little else is shared.
    """
    if not best.fits or any(all(stem not in content(one.text) for one in told) for stem in question.anchors):
        return False
    covered = best.covered
    if question.asked_for and max(covered[stem] for stem in question.asked_for) < HINTED:
        return False
    literal = {stem for stem in question.typed if covered[stem] == 1}
    others = [covered[stem] for stem in covered if stem not in question.anchors | question.typed - literal]
    if not others:
        return bool(covered) and max(covered.values()) >= COVERED
    if not with_meaning and question.anchors:
        return question.anchors <= _covered(question, best)
    return sum(others) / len(others) >= FEW_COVERED or best.near >= NEAR


def _by_way_of(question: Question, found: Sequence[Match]) -> list[Match]:
    """Return two sentences for a question on a thing that is described: "the owner of the van".

    The first tells who or what that is, by a name; the second has the value, for that name.
    """
    described = _DESCRIBED.search(question.text)
    if question.wanted in ("any", "reason") or described is None:
        return []
    tail = content(question.text[described.end() :]).keys() & question.words.keys()
    often = {stem: sum(one.covered[stem] == 1 for one in found) for stem in tail}
    told = {stem: 1 / count for stem, count in often.items() if count}
    if not told:
        return []
    first = max(
        found, key=lambda one: (sum(told[stem] for stem in told if one.covered[stem] == 1), one.score)
    )
    known = {one.text.casefold() for one in names(question.text)}
    linked = {
        one.text
        for one in names(f"{first.sentence.message} {first.sentence.before}")
        if one.text.casefold() not in known
    }
    rest = question.words.keys() - _covered(question, first) - question.typed
    for one in sorted(found, key=lambda one: (-len(rest & _covered(question, one)), -one.score)):
        named = {other.text for other in names(one.sentence.text)}
        if one.sentence.order != first.sentence.order and one.fits >= CERTAIN and linked & named:
            return [first, one]
    return []


def _covered(question: Question, one: Match) -> frozenset[str]:
    """Return the words of a question that a sentence covers by more than its type of value."""
    return frozenset(
        stem for stem, weight in one.covered.items() if weight >= (1.0 if stem in question.typed else COVERED)
    )


def _whole(question: Question, best: Match, found: Sequence[Match]) -> list[Match]:
    """Return the answering sentence with the one that it leans on, and neighbours that tell as much."""
    mates = {one.sentence.place: one for one in found if one.sentence.order == best.sentence.order}
    place = best.sentence.place
    kept = {place}
    if best.sentence.leans and place - 1 in mates:
        kept.add(place - 1)
    if question.wanted in ("any", "reason"):
        kept |= {
            other
            for other in (place - 1, place + 1)
            if other in mates and mates[other].score >= best.score - BESIDE
        }
    return [mates[one] for one in sorted(kept)]


_CONTRAST = re.compile(
    r",?\s+(?:instead of|rather than|and not|not)\s+(?:the |a |an )?[€£$]?[\w.,]*\w(?=\s*(?:$|[.,;:!)]))",
    re.IGNORECASE,
)
_FROM_TO = re.compile(
    r"\s+from [€£$]?[\w.,]*\w(?: \w+)?(?=\s(?:up |down |back )?to )|(?<=\d)(k?) from [€£$]?\d[\w.,]*\w",
    re.IGNORECASE,
)


def present(text: str, question: Question) -> str:
    """Return a text without the former value that it names beside the present one.

    >>> present("The build takes 6 minutes instead of 19.", Question("How long does the build take?"))
    'The build takes 6 minutes.'
    """
    if question.wanted in ("any", "reason", "person", "place"):
        return _CONTRAST.sub("", text)
    return _FROM_TO.sub(r"\1", _CONTRAST.sub("", text))
