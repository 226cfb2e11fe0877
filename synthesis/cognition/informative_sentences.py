"""Split memories into sentences, rate how informative each is, and select the best for an answer.

A sentence is informative if its words are rare among the memories found with it (the sum of their idf). A
greeting or "That's great!" says almost nothing, "I moved here from Lisbon" says a lot. What speakers say
about themselves counts more than what they say about others, and so do names, numbers and quotations: they
are what most questions ask for. Questions count next to nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache

from agentx.storage.index.analysis import analyse
from agentx.synthesis.language.words import STOP_WORDS

LEAST_INFORMATION = 2.5
"""Information of a sentence without content words, about that of a common word."""

WANTED_WEIGHT = 1.5
"""Weight at which words of the question count once more."""

OF_ONESELF = 1.6
"""Factor for a sentence in the first person."""

SPECIFIC = 0.4
"""Bonus for each name, number or quotation in a sentence, as a share of its information."""

MOST_SPECIFICS = 2
"""At most this many of them count."""

QUESTION_SHARE = 0.05
"""Factor for a question."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_LATER_WORD = re.compile(r"(?<!\A)\b[^\W\d_][\w'’]+")
_NUMBER_OR_QUOTATION = re.compile(r"\d+|[\"“][^\"”]+[\"”]")
_FIRST_PERSON = re.compile(r"\b(?:i|i['’](?:m|ve|ll|d)|my|me|we|we['’]ve|our|us)\b", re.IGNORECASE)


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of a text's content words.

    >>> sorted(terms_of("Where did she go hiking?"))
    ['go', 'hike']
    >>> sorted(terms_of("What does she do because of the rain?"))
    ['rain']
    """
    return frozenset[str]().union(*map(_terms, sentences(text)))


@lru_cache(maxsize=1 << 15)
def _terms(sentence: str) -> frozenset[str]:
    """Return the stems of one sentence; cached, as memories recur and stemming is the main cost."""
    return frozenset(analyse(sentence)) - _stopped()


@cache
def _stopped() -> frozenset[str]:
    """Return the stop words, both unchanged and as stems: "doe" of "does"."""
    return STOP_WORDS | frozenset(term for word in STOP_WORDS for term in analyse(word))


class Rarity:
    """How rare words are among the memories that were found together."""

    def __init__(self, texts: Iterable[str]) -> None:
        each = [terms_of(text) for text in texts]
        often, total = Counter(term for terms in each for term in terms), len(each)
        self._idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in often.items()}
        self._unknown = math.log(2 * total + 2)

    def of(self, terms: Iterable[str]) -> float:
        """Return the sum of the idf of terms (Lucene's form, never negative).

        >>> Rarity(["the dog barks", "the dog sleeps"]).of(["bark"]) > Rarity(["dog", "dog"]).of(["dog"])
        True
        """
        return math.fsum(self._idf.get(term, self._unknown) for term in terms)  # exact in any order of a set


@lru_cache(maxsize=1 << 13)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a text; cached, as memories recur.

    >>> sentences("Hi! I moved house.")
    ('Hi!', 'I moved house.')
    """
    return tuple(sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip())


def told(text: str, rarity: Rarity) -> float:
    """Return the information of a text's best sentence, questions aside; 0 if there is none."""
    stated = (sentence for sentence in sentences(text) if not sentence.endswith("?"))
    return max((rarity.of(_terms(sentence)) for sentence in stated), default=0.0)


def information(
    sentence: str, rarity: Rarity, wanted: AbstractSet[str] = frozenset(), people: Collection[str] = ()
) -> float:
    """Return how informative a sentence is.

    Args:
        sentence: One of :func:`sentences`.
        rarity: How rare words are.
        wanted: Terms of the question, which count more.
        people: Speakers; their names are a form of address, not information.

    >>> rarity = Rarity(["Hey Ann! That's great!", "Thanks Ann! How are you?", "Great to hear, Ann!"])
    >>> said = ["That's great, Ann!", "Where is the kitten?", "The kitten sleeps.", "My kitten is Tom."]
    >>> [round(information(sentence, rarity, people=["Ann"])) for sentence in said]
    [3, 0, 7, 15]
    """
    terms = _terms(sentence)
    known = LEAST_INFORMATION + rarity.of(terms) + WANTED_WEIGHT * rarity.of(terms & wanted)
    if sentence.endswith("?"):
        return QUESTION_SHARE * known
    of_oneself, names, others = _form(sentence)
    specifics = others + sum(name not in people for name in names)
    return known * (OF_ONESELF if of_oneself else 1.0) * (1 + SPECIFIC * min(specifics, MOST_SPECIFICS))


@lru_cache(maxsize=1 << 15)
def _form(sentence: str) -> tuple[bool, tuple[str, ...], int]:
    """Return whether a sentence is in the first person, the names in it, and its numbers and quotations."""
    return (
        bool(_FIRST_PERSON.search(sentence)),
        tuple(word for word in _LATER_WORD.findall(sentence) if word[0].isupper() and word[1] not in "'’"),
        len(_NUMBER_OR_QUOTATION.findall(sentence)),
    )
