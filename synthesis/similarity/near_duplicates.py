"""Find near-duplicate items by their content words, unless they differ in a word that reverses the meaning.

Two texts are near-duplicates if they share most stems of their content words (Jaccard), with synonyms counted
as one. "Always" and "never", "before" and "after", another number or another name make a different sentence,
however many words are shared. So do words that changed places: "tabs, not spaces", "spaces, not tabs".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache
from math import ceil
from operator import eq

import msgspec

from agentx.synthesis.language.words import content_words, subject_words, vocabulary, words_of
from agentx.synthesis.memory.items import MemoryItem

SAME = 0.74
"""Jaccard share of content words from which two texts (such as two demands) say the same."""

SWAPPED = 0.85
"""The same share if each text has a word that the other lacks: it may be the only difference between two
rules.
"""

_NEGATIONS = vocabulary(
    """
    never no not none nothing without avoid don don't doesn't didn't isn't aren't won't can't cannot
    shouldn't mustn't stop forbid forbidden refuse except unless
    """
)
_TURNS = vocabulary(
    """
    before after above below over under until since more less fewer most least only first last both either
    old new enable disable off out down start open close add remove allow deny increase decrease manually
    automatically optional required some
    """
)
_BINDING = vocabulary(
    """
    not over from to into onto in instead rather than before after if when unless until then by with without
    for on at as of
    """
)
_PAUSE = re.compile(r"[,;:!?()]|\.(?!\w)")
_BOUND = 2
"""Number of words compared after a binding word."""

_NAME = re.compile(r"[^\s,;:!?\"'`()\[\]{}]*[\d_/\\.@#-][^\s,;:!?\"'`()\[\]{}]*\w")


class Meaning(msgspec.Struct, frozen=True):
    """What a text says, as far as it is compared.

    Attributes:
        words: Stems of its content words.
        denies: Whether it negates something.
        turns: The small words in it that would reverse its meaning.
        bound: The words that follow each binding word: what is "not", and what another is "over".
    """

    words: frozenset[str]
    denies: bool
    turns: frozenset[str]
    names: frozenset[str]
    bound: dict[str, list[tuple[str, ...]]]

    @property
    def must_agree(self) -> tuple[bool, frozenset[str], frozenset[str]]:
        """What must be equal in all wordings of one statement."""
        return self.denies, self.turns, self.names


@lru_cache(maxsize=16_384)
def meaning(text: str) -> Meaning:
    """Parse what a text says.

    >>> meaning("Never deploy before the tests pass").denies
    True
    """
    bound: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for part in _PAUSE.split(text):
        behind: tuple[str, ...] = ()
        for word in reversed(words_of(part)):
            if (binding := word.casefold()) in _BINDING:
                bound[binding].append(behind)
                behind = ()
            else:
                behind = (*subject_words(word), *behind)[:_BOUND]
    words = {word.casefold().replace("’", "'") for word in words_of(text)}
    return Meaning(
        words=subject_words(text) or content_words(text),
        denies=bool(words & _NEGATIONS),
        turns=frozenset(words & _TURNS),
        names=frozenset(match.casefold().rstrip(".-") for match in _NAME.findall(text)),
        bound=dict(bound),
    )


def likeness(one: str, other: str) -> float:
    """Return how similar two near-duplicate texts are, from 0.74 to 1; 0 if they are not near-duplicates.

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
    if alike < least:
        return 0.0
    # Each binding word in both texts must bind the same words, as far as both go.
    same_order = all(
        all(map(eq, mine, theirs))
        for binding in one.bound.keys() & other.bound.keys()
        for mine, theirs in zip(one.bound[binding], other.bound[binding], strict=False)
    )
    return alike if same_order else 0.0


Likenesses = dict[str, dict[str, float]]
"""By the id of an item, the ids of its near-duplicates and their similarity."""


def near_duplicates(items: Iterable[MemoryItem], fresh: Collection[str]) -> Likenesses:
    """Find items that say the same and apply to the same domain, agent and scope.

    Only pairs with an id in ``fresh`` are checked; the others were compared before. Each pair is returned
    from both sides.
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
    """Compare the items of one group.

    Two similar sets of words share one of the rarest words of each (prefix filter, Chaudhuri et al. 2006).
    """
    meanings = {item.id: meaning(item.text) for item in group}
    often = Counter(word for one in meanings.values() for word in one.words)
    places: defaultdict[str, list[str]] = defaultdict(list)
    for item in sorted(group, key=lambda item: (item.id in fresh, item.created_seq, item.id)):
        own = meanings[item.id]
        ordered = sorted(own.words, key=lambda word: (often[word], word))
        rarest = ordered[: len(ordered) - ceil(SAME * len(ordered)) + 1]
        if item.id in fresh:
            for other in dict.fromkeys(name for word in rarest for name in places[word]):
                if alike := _alike(own, meanings[other]):
                    found[item.id][other] = found[other][item.id] = alike
        for word in rarest:
            places[word].append(item.id)
