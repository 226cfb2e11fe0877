"""Split memories into sentences, rate how informative each is, and select the best for a buffer or an answer.

A sentence is informative if its words are rare among the memories found with it (the sum of their idf). A
greeting or "That's great!" says almost nothing, "I moved here from Lisbon" says a lot. What speakers say
about themselves counts more than what they say about others. A question counts nothing, unless it is all
there is.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache

from agentx.storage.index.analysis import analyse
from agentx.synthesis.language.tokens import count_tokens, cut
from agentx.synthesis.language.words import STOP_WORDS

Count = Callable[[str], int]
"""Counts the tokens of a text."""

TOLD_SHARE = 0.2
"""Minimum information of a sentence to be kept, relative to the best one; for the best-matching memory."""

OF_ONESELF = 1.6
"""Factor for a sentence in the first person."""

ANNOTATION_SHARE = 0.6
"""Factor for a line in square brackets (a picture's description): its words are rare, but not spoken."""

SHORT_WORDS = 8
"""A memory of at most this many words is kept whole; shorter sentences are rated as if of this length."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
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


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text.

    >>> sentences("Hi! I moved house.")
    ['Hi!', 'I moved house.']
    """
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def told(text: str, rarity: Rarity) -> float:
    """Return the information of a text's best sentence, questions aside; 0 if there is none."""
    stated = (sentence for sentence in sentences(text) if not sentence.endswith("?"))
    return max((rarity.of(_terms(sentence)) for sentence in stated), default=0.0)


def salient(
    text: str,
    rarity: Rarity,
    wanted: AbstractSet[str],
    most_tokens: int,
    count: Count = count_tokens,
    share: float = TOLD_SHARE,
) -> str:
    """Return the informative sentences of a memory, in order.

    A sentence that contains ``wanted`` terms of the question is more informative. Each needs at least
    ``share`` of the best one's information. The most informative come first, and a single one is cut.

    >>> rarity = Rarity(["Hey Ann! That's great!", "Thanks Ann! How are you?", "Great to hear, Ann!"])
    >>> said = "Hey Ann! That's great! I just adopted two kittens from the shelter. How are you?"
    >>> salient(said, rarity, frozenset(), 99, len)
    'I just adopted two kittens from the shelter.'
    """
    parts = sentences(text)
    if len(text.split()) <= SHORT_WORDS and count(text) <= most_tokens:
        return text
    weights = [_weight(part, rarity, wanted) for part in parts]
    if not any(weights):
        return cut(text, most_tokens)
    best, left = max(weights), most_tokens
    kept: list[int] = []
    for place in sorted(range(len(parts)), key=lambda place: (-weights[place], place)):
        size = count(f" {parts[place]}")
        if weights[place] >= share * best and size <= left:
            kept.append(place)
            left -= size
    if not kept:
        return cut(parts[weights.index(best)], most_tokens)
    return " ".join(parts[place] for place in sorted(kept))


def telling(question: str, texts: Mapping[str, int], most: int) -> list[str]:
    """Return the texts that answer a question, best first.

    Each text is chosen for what the earlier ones lack, so a question about two things is answered with both.
    If terms are still missing, one more text is added: the one that says most about the rest of the first
    text. For example, "the owner of the van" leads to the van, and its owner to where they work. Each text
    comes with a number that grows with time; of equal texts, the later one is chosen.

    >>> known = {"The van is Milan's.": 1, "Milan is a baker in Maribor.": 2, "It rains.": 3}
    >>> telling("Where does the van's owner work?", known, 3)
    ["The van is Milan's.", 'Milan is a baker in Maribor.']
    """
    asked, rarity = terms_of(question), Rarity(texts)
    terms = {text: terms_of(text) for text in texts}
    found: list[str] = []
    missing = asked
    while len(found) < most:
        left = [text for text in texts if text not in found and asked & terms[text]]
        if not left:
            break
        best = max(
            left,
            key=lambda text: (rarity.of(missing & terms[text]), rarity.of(asked & terms[text]), texts[text]),
        )
        found.append(best)
        missing -= terms[best]
    if found and missing and len(found) < most:
        beyond = terms[found[0]] - asked
        weights = {text: rarity.of(beyond & terms[text]) for text in texts if text not in found}
        best = max(weights, key=lambda text: (weights[text], texts[text]), default="")
        found += [best] if weights.get(best) else []
    return found


def _weight(sentence: str, rarity: Rarity, wanted: AbstractSet[str]) -> float:
    if sentence.endswith("?"):
        return 0.0
    terms = _terms(sentence)
    weight = (rarity.of(terms) + rarity.of(terms & wanted)) / math.sqrt(
        max(len(sentence.split()), SHORT_WORDS)
    )
    if sentence.startswith("[") and sentence.endswith("]"):
        return weight * ANNOTATION_SHARE
    return weight * OF_ONESELF if _FIRST_PERSON.search(sentence) else weight
