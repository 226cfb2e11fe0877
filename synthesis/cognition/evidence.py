"""Find what was told that answers a question, without a model.

Messages are compared with a question by meaning (of the nearest sentence, and of the whole message), by the
words that they share, and by time. Of messages that are alike, the latest is taken: the rent that was told
last is the rent. Meaning comes from vectors; without them, words alone decide.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType

import msgspec

from agentx.storage.index.analysis import analyse
from agentx.storage.index.port import Vector
from agentx.synthesis.language.values import Wanted, fit, names, values, wanted
from agentx.synthesis.language.verbs import base_of
from agentx.synthesis.language.words import STOP_WORDS, vocabulary, words_of

Embed = Callable[[Sequence[str]], Mapping[str, Vector]]
"""Returns vectors of unit length by text, without those that could not be made."""

MOST_MESSAGES = 4
"""Maximum number of messages for an answer, before those that a later one replaces are left out."""

SHARED, NEWER = 0.3, 0.5
"""Weights of the shared words, and of time: 0 for the oldest message, 1 for the latest. A cosine weighs 1."""

ALIKE, ALIKE_WORDS = 0.35, 0.3
"""The later of two messages replaces the earlier one from this cosine, or without vectors from this share of
common words."""

FAINT = 0.4
"""A message with less than this share of the best score is left out."""

LEAST, SURE = 0.6, 1.1
"""Minimum score of the best message, time aside, for an answer, and for one without reserve."""

LEAST_WORDS, SURE_WORDS = 0.3, 0.8
"""The same without vectors."""

MOST_TEXT = 400
"""Maximum characters that are told of one message."""

_LEAD = re.compile(
    r"^(?:(?:so|and|but|well|ok(?:ay)?|hey|please|right|actually|by the way|also)[,\s]+)*"
    r"(?:(?:(?:can|could) you )?(?:please )?(?:tell|remind) me (?:again )?"
    r"|do you (?:know|remember) |any idea )?",
    re.IGNORECASE,
)
_ASKING = vocabulary("who whom whose what when where why how which much many long old tell remind")


class Sentence(msgspec.Struct, frozen=True):
    """A sentence that the user told.

    Attributes:
        memory: Id of its memory.
        order: Grows with the time at which it was told; equal for sentences of one message.
    """

    text: str
    memory: str
    order: int


class AnswerEvidence(msgspec.Struct, frozen=True):
    """What one message tells about a question.

    Attributes:
        text: Its sentences, as many as there is room for, the best one among them.
        memory: Id of the memory of the best one.
        support: How well it supports an answer, from 0 to 1.
        sure: Whether an answer needs no reserve: the best message is near enough to the question, and has a
            value of the type asked for.
    """

    text: str
    memory: str
    support: float
    sure: bool


@lru_cache(maxsize=1 << 14)
def content(text: str) -> Mapping[str, str]:
    """Return the content words of a text by stem; cached, as memories recur.

    >>> content("What does Anna's sister pay?")
    mappingproxy({'anna': 'Anna', 'sister': 'sister', 'pay': 'pay'})
    """
    found: dict[str, str] = {}
    for word in words_of(text):
        plain, stems = _word(word)
        for stem in stems:
            found.setdefault(stem, plain)
    return MappingProxyType(found)


@lru_cache(maxsize=1 << 14)
def _word(word: str) -> tuple[str, tuple[str, ...]]:
    """Return a word without an apostrophe, and its stems; cached, as stemming is the main cost."""
    plain = re.sub(r"['’]s?$", "", word)
    return plain, tuple(stem for stem in analyse(base_of(plain)) if stem not in _stems_of(STOP_WORDS))


@cache
def _stems_of(words: frozenset[str]) -> frozenset[str]:
    return words | frozenset(stem for word in words for stem in analyse(word))


class Question:
    """A question, as what it asks for and what it is about.

    Attributes:
        text: The question without "Can you tell me".
        wanted: Type of the value that it asks for.
        words: Its content words by stem.
        anchors: Those that name one thing: names and numbers.
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


class _ToldMessage:
    """The sentences of one message, compared with a question."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.sentences = sentences
        self.text = " ".join(one.text for one in sentences)
        self.words = frozenset[str]().union(*(content(one.text) for one in sentences))
        self.best = sentences[0]
        self.score = self.rank = 0.0

    def compare(
        self, question: Question, weights: Mapping[str, float], vectors: Mapping[str, Vector]
    ) -> None:
        """Score it by its best sentence."""
        asked = vectors.get(question.text)

        def near(text: str) -> float:
            return float(asked @ vectors[text]) if asked is not None and text in vectors else 0.0

        def shared(words: Collection[str]) -> float:
            return math.fsum(weight for stem, weight in weights.items() if stem in words)

        scores = [near(one.text) + SHARED * shared(content(one.text)) for one in self.sentences]
        place = max(range(len(scores)), key=scores.__getitem__)
        self.best = self.sentences[place]
        self.score = scores[place] + near(self.text)
        if asked is None:
            self.score = shared(content(self.best.text)) + shared(self.words)

    def alike(self, other: "_ToldMessage", vectors: Mapping[str, Vector]) -> bool:
        """Return whether both tell of the same matter."""
        pairs = ((self.best.text, other.best.text), (self.text, other.text))
        known = [(vectors[one], vectors[two]) for one, two in pairs if {one, two} <= vectors.keys()]
        if known:
            return max(float(one @ two) for one, two in known) > ALIKE
        fewest = min(len(self.words), len(other.words))
        return bool(fewest) and len(self.words & other.words) / fewest > ALIKE_WORDS

    def evidence(self, *, sure: bool) -> AnswerEvidence:
        """Return the sentences around the best one that there is room for."""
        place = first = last = self.sentences.index(self.best)
        room = MOST_TEXT - len(self.best.text)
        for one in sorted(range(len(self.sentences)), key=lambda one: abs(one - place)):
            if one in (first - 1, last + 1) and len(self.sentences[one].text) < room:
                room -= len(self.sentences[one].text) + 1
                first, last = min(first, one), max(last, one)
        text = " ".join(one.text for one in self.sentences[first : last + 1])
        support = max(0.0, min(1.0, self.score / (2 + SHARED)))
        return AnswerEvidence(text, self.best.memory, round(support, 4), sure)


def answering(
    question: Question,
    told: Sequence[Sentence],
    embed: Embed,
    *,
    past: bool = False,
    true: Callable[[str], Collection[str]] = lambda name: (name,),
) -> list[AnswerEvidence]:
    """Return what answers a question, in the order of its telling; nothing if nothing does.

    Args:
        question: The question.
        told: What may answer it.
        embed: Makes vectors.
        past: Whether it asks for a former value; then a later message does not replace an earlier one.
        true: Returns the ids of the memories that were true at the time asked for, where one is known to
            have taken the place of another.
    """
    messages = _messages([one for one in told if one.memory in true(one.memory)])
    if any(all(stem not in one.words for one in messages) for stem in question.anchors):
        return []
    texts = [text for one in messages for text in (one.text, *(part.text for part in one.sentences))]
    vectors = embed(list(dict.fromkeys([question.text, *texts])))
    weights = _weights(question, messages)
    for place, one in enumerate(messages):
        one.compare(question, weights, vectors)
        one.rank = one.score + (0.0 if past else NEWER * place / len(messages))
    best = sorted(messages, key=lambda one: -one.rank)[:MOST_MESSAGES]
    score = max((one.score for one in best), default=0.0)
    least, sure = (LEAST, SURE) if question.text in vectors else (LEAST_WORDS, SURE_WORDS)
    if score < least:
        return []
    kept: list[_ToldMessage] = []
    for one in sorted(best, key=lambda one: -one.best.order):
        named = question.anchors & one.words
        # What is told of Hannah does not replace what is told of Dennis
        newer = [later for later in kept if named <= later.words and one.alike(later, vectors)]
        if one.score >= FAINT * score and (past or not newer):
            kept.append(one)
    fits = any(fit(question.wanted, one.text, question.text) for one in kept)
    return [one.evidence(sure=fits and score >= sure) for one in reversed(kept)]


def _messages(told: Sequence[Sentence]) -> list[_ToldMessage]:
    """Return the messages of sentences, oldest first."""
    found: defaultdict[int, list[Sentence]] = defaultdict(list)
    for one in told:
        found[one.order].append(one)
    return [_ToldMessage(found[order]) for order in sorted(found)]


def _weights(question: Question, messages: Sequence[_ToldMessage]) -> dict[str, float]:
    """Return the share of each word of the question, by its rarity."""
    often = Counter(stem for one in messages for stem in one.words)
    total = len(messages)
    idf = {stem: math.log(1 + (total - often[stem] + 0.5) / (often[stem] + 0.5)) for stem in question.words}
    whole = math.fsum(idf.values()) or 1.0
    return {stem: value / whole for stem, value in idf.items()}


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
