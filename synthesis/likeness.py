"""Items that say the same in other words: by their content words, and never where they differ in what turns a sentence round.

Two texts are near-duplicates where they share most stems of what they are about (Jaccard), synonyms counted as one. "Always"
and "never", "before" and "after", another number or another name make another sentence, however many words they share.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from math import ceil

import msgspec

from agentx.synthesis.demands.words import content_words, subject_words, vocabulary, words_of
from agentx.synthesis.items import MemoryItem

SAME = 0.74
"""Share of common content words from which two texts say the same, as of two demands."""

SWAPPED = 0.85
"""The same where each has a word that the other has not: it may be the one thing in which two rules differ."""

_NEGATIONS = vocabulary(
    "never no not none nothing without avoid don don't doesn't didn't isn't aren't won't can't cannot shouldn't mustn't "
    "stop forbid forbidden refuse except unless"
)
_TURNS = vocabulary(
    "before after above below over under until since more less fewer most least only first last both either old new "
    "enable disable off out down start open close add remove allow deny increase decrease manually automatically "
    "optional required"
)
_NAME = re.compile(r"[^\s,;:!?\"'`()\[\]{}]*[\d_/\\.@#-][^\s,;:!?\"'`()\[\]{}]*\w")


class Meaning(msgspec.Struct, frozen=True):
    """What a text says, as far as two texts are compared.

    Attributes:
        words: Stems of what it is about.
        denies: Whether it says that something is not to be.
        turns: The small words in it that would turn it round.
        names: Numbers, paths and identifiers.
    """

    words: frozenset[str]
    denies: bool
    turns: frozenset[str]
    names: frozenset[str]

    @property
    def must_agree(self) -> tuple[bool, frozenset[str], frozenset[str]]:
        """What no two wordings of one thing differ in."""
        return self.denies, self.turns, self.names


@lru_cache(maxsize=16_384)
def meaning(text: str) -> Meaning:
    """What a text says.

    >>> meaning("Never deploy before the tests pass").denies
    True
    """
    said = {word.casefold().replace("’", "'") for word in words_of(text)}
    return Meaning(
        words=subject_words(text) or content_words(text),
        denies=bool(said & _NEGATIONS),
        turns=frozenset(said & _TURNS),
        names=frozenset(match.casefold().rstrip(".-") for match in _NAME.findall(text)),
    )


def likeness(one: str, other: str) -> float:
    """How alike two texts are that say the same, from 0.74 to 1; 0 where they do not.

    >>> likeness("Run the unit tests before each deploy.", "Before every deploy, run the tests")
    1.0
    >>> likeness("Deploy on Fridays.", "Never deploy on Fridays.")
    0.0
    """
    first, second = meaning(one), meaning(other)
    return _alike(first.words, second.words) if first.must_agree == second.must_agree else 0.0


def _alike(first: frozenset[str], second: frozenset[str]) -> float:
    common = len(first & second)
    least = SWAPPED if common < len(first) and common < len(second) else SAME
    alike = common / (len(first) + len(second) - common) if common else 0.0
    return alike if alike >= least else 0.0


Likenesses = dict[str, dict[str, float]]
"""By the id of an item, the ids of those that say the same, and how alike they are."""


def near_duplicates(items: Iterable[MemoryItem], fresh: Collection[str]) -> Likenesses:
    """Find the items that say the same and apply to the same: in one domain, for one agent, in one scope.

    Args:
        items: What is compared.
        fresh: Ids; only pairs with one of these are looked for, for the others were compared before.

    Returns:
        The pairs, each from both sides.
    """
    found: Likenesses = defaultdict(dict)
    groups: defaultdict[object, list[MemoryItem]] = defaultdict(list)
    for item in items:
        groups[item.domain, item.agent, item.scope, meaning(item.text).must_agree].append(item)
    for group in groups.values():
        if any(item.id in fresh for item in group):
            _compare(group, fresh, found)
    return found


def _compare(group: list[MemoryItem], fresh: Collection[str], found: Likenesses) -> None:
    """Two sets of words that are alike share one of the rarest words of each (prefix filter, Chaudhuri et al. 2006)."""
    sets = {item.id: meaning(item.text).words for item in group}
    often = Counter(word for words in sets.values() for word in words)
    places: defaultdict[str, list[str]] = defaultdict(list)
    for item in sorted(group, key=lambda item: (item.id in fresh, item.created_seq, item.id)):
        words = sets[item.id]
        rarest = _rarest(words, often)
        if item.id in fresh:
            for other in dict.fromkeys(name for word in rarest for name in places[word]):
                if alike := _alike(words, sets[other]):
                    found[item.id][other] = found[other][item.id] = alike
        for word in rarest:
            places[word].append(item.id)


def _rarest(words: frozenset[str], often: Mapping[str, int]) -> list[str]:
    """As many of the rarest words as must hold one that a set that is alike shares."""
    ordered = sorted(words, key=lambda word: (often[word], word))
    return ordered[: len(ordered) - ceil(SAME * len(ordered)) + 1]
