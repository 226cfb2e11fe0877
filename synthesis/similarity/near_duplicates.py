"""Items that say the same in other words: by their content words, and never where they differ in what turns a sentence round.

Two texts are near-duplicates where they share most stems of what they are about (Jaccard), synonyms counted as one. "Always"
and "never", "before" and "after", another number or another name make another sentence, however many words they share; and so
do words that changed places: "tabs, not spaces", "spaces, not tabs".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from math import ceil
from operator import eq

import msgspec

from agentx.synthesis.language.words import content_words, subject_words, vocabulary, words_of
from agentx.synthesis.memory.items import MemoryItem

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
    "optional required some"
)
_BINDING = vocabulary(
    "not over from to into onto in instead rather than before after if when unless until then by with without for on at as of"
)
_PAUSE = re.compile(r"[,;:!?()]|\.(?!\w)")
_BOUND = 2
"""So many words behind one that binds them are told from others."""

_NAME = re.compile(r"[^\s,;:!?\"'`()\[\]{}]*[\d_/\\.@#-][^\s,;:!?\"'`()\[\]{}]*\w")


class Meaning(msgspec.Struct, frozen=True):
    """What a text says, as far as two texts are compared.

    Attributes:
        words: Stems of what it is about.
        denies: Whether it says that something is not to be.
        turns: The small words in it that would turn it round.
        names: Numbers, paths and identifiers.
        bound: What follows each word that binds what follows it: what is "not", and what another is "over".
    """

    words: frozenset[str]
    denies: bool
    turns: frozenset[str]
    names: frozenset[str]
    bound: dict[str, list[tuple[str, ...]]]

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
        bound=_bound(text),
    )


def _bound(text: str) -> dict[str, list[tuple[str, ...]]]:
    bound: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for part in _PAUSE.split(text):
        behind: tuple[str, ...] = ()
        for word in reversed(words_of(part)):
            if (binding := word.casefold()) in _BINDING:
                bound[binding].append(behind)
                behind = ()
            else:
                behind = (*subject_words(word), *behind)[:_BOUND]
    return dict(bound)


def _same_order(first: Meaning, second: Meaning) -> bool:
    """Whether each word that binds in both binds the same, as far as both say."""
    return all(
        all(map(eq, one, other))
        for binding in first.bound.keys() & second.bound.keys()
        for one, other in zip(first.bound[binding], second.bound[binding], strict=False)
    )


def likeness(one: str, other: str) -> float:
    """How alike two texts are that say the same, from 0.74 to 1; 0 where they do not.

    >>> likeness("Run the unit tests before each deploy.", "Before every deploy, run the tests")
    1.0
    >>> likeness("Deploy on Fridays.", "Never deploy on Fridays.")
    0.0
    """
    first, second = meaning(one), meaning(other)
    return _alike(first, second) if first.must_agree == second.must_agree else 0.0


def _alike(one: Meaning, other: Meaning) -> float:
    first, second = one.words, other.words
    common = len(first & second)
    least = SWAPPED if common < len(first) and common < len(second) else SAME
    alike = common / (len(first) + len(second) - common) if common else 0.0
    return alike if alike >= least and _same_order(one, other) else 0.0


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
    meanings = {item.id: meaning(item.text) for item in group}
    often = Counter(word for said in meanings.values() for word in said.words)
    places: defaultdict[str, list[str]] = defaultdict(list)
    for item in sorted(group, key=lambda item: (item.id in fresh, item.created_seq, item.id)):
        said = meanings[item.id]
        rarest = _rarest(said.words, often)
        if item.id in fresh:
            for other in dict.fromkeys(name for word in rarest for name in places[word]):
                if alike := _alike(said, meanings[other]):
                    found[item.id][other] = found[other][item.id] = alike
        for word in rarest:
            places[word].append(item.id)


def _rarest(words: frozenset[str], often: Mapping[str, int]) -> list[str]:
    """As many of the rarest words as must hold one that a set that is alike shares."""
    ordered = sorted(words, key=lambda word: (often[word], word))
    return ordered[: len(ordered) - ceil(SAME * len(ordered)) + 1]
