"""Find near-duplicate items: other wordings of one statement, in the same domain, agent and scope.

Two texts say the same if their normal forms (:mod:`agentx.synthesis.similarity.normal_form`) agree: the same
content words, with synonyms as one, and nothing that changes the meaning. Rules and lessons are also compared
by meaning (:mod:`agentx.synthesis.similarity.paraphrase`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

import msgspec

from agentx.synthesis.language.words import vocabulary, words_of
from agentx.synthesis.memory.items import MemoryItem, sort_of
from agentx.synthesis.similarity.normal_form import normal_form, same
from agentx.synthesis.similarity.paraphrase import Likeness, Verdict, compare

_SHARED = 2
"""Content words that two texts share if only their normal forms are compared; fewer if one has fewer."""

_NEGATIONS = vocabulary(
    """
    never no not none nothing without avoid don don't doesn't didn't isn't aren't won't can't cannot
    shouldn't mustn't stop forbid forbidden refuse except unless
    """
)
_NAME = re.compile(r"[^\s,;:!?\"'`()\[\]{}]*[\d_/\\.@#-][^\s,;:!?\"'`()\[\]{}]*\w")


class Meaning(msgspec.Struct, frozen=True):
    """What a sentence says of an idea: whether it negates something, and the names in it."""

    denies: bool
    names: frozenset[str]


@lru_cache(maxsize=16_384)
def meaning(text: str) -> Meaning:
    """Parse what a sentence says of an idea.

    >>> meaning("Never deploy before the tests pass").denies
    True
    """
    words = {word.casefold().replace("’", "'") for word in words_of(text)}
    names = frozenset(match.casefold().rstrip(".-") for match in _NAME.findall(text))
    return Meaning(bool(words & _NEGATIONS), names)


def likeness(one: str, other: str) -> float:
    """Return 1 if two texts are wordings of one statement; otherwise 0.

    >>> likeness("Run the unit tests before each deploy.", "Before every deploy, run the tests")
    1.0
    >>> likeness("Deploy on Fridays.", "Never deploy on Fridays.")
    0.0
    """
    return float(same(normal_form(one), normal_form(other)))


class Duplicates(msgspec.Struct, frozen=True):
    """Pairs of items that say the same.

    Attributes:
        same: By the id of an item, the ids of its near-duplicates.
        perhaps: Pairs for a person to decide, the older item first.
    """

    same: dict[str, set[str]]
    perhaps: list[tuple[str, str]]


def no_likeness(one: str, other: str) -> float:
    """Return 0: no embedder is available."""
    del one, other
    return 0.0


def near_duplicates(
    items: Iterable[MemoryItem], fresh: Collection[str], near: Likeness = no_likeness
) -> Duplicates:
    """Find items that say the same and apply to the same domain, agent and scope.

    Only pairs with an id in ``fresh`` are compared; the others were compared before.

    Args:
        items: All items that may be merged.
        fresh: Ids of those that are new or changed.
        near: Cosine of the meanings of two texts; it is asked about rules and lessons only.
    """
    found = Duplicates({}, [])
    groups: defaultdict[object, list[MemoryItem]] = defaultdict(list)
    for item in items:
        groups[item.domain, item.agent, item.scope].append(item)
    for group in groups.values():
        for older, younger in _pairs(sorted(group, key=lambda item: (item.created_seq, item.id)), fresh):
            verdict = _verdict(older, younger, near)
            if verdict == "same":
                found.same.setdefault(older.id, set()).add(younger.id)
                found.same.setdefault(younger.id, set()).add(older.id)
            elif verdict == "perhaps":
                found.perhaps.append((older.id, younger.id))
    return found


def _pairs(group: list[MemoryItem], fresh: Collection[str]) -> Iterator[tuple[MemoryItem, MemoryItem]]:
    """Yield each pair with a fresh item whose texts share words, the older item first."""
    if not any(item.id in fresh for item in group):
        return
    words = [normal_form(item.text).words for item in group]
    having: defaultdict[str, list[int]] = defaultdict(list)
    for place, some in enumerate(words):
        for word in some:
            having[word].append(place)
    for place, item in enumerate(group):
        if item.id not in fresh:
            continue
        shared = Counter(other for word in words[place] for other in having[word] if other != place)
        for other, many in sorted(shared.items()):
            compared = group[other].id in fresh and other < place
            few = min(len(words[place]), len(words[other]), _SHARED)
            if not compared and (many >= few or _are_freely_worded(item, group[other])):
                yield group[min(place, other)], group[max(place, other)]


def _are_freely_worded(one: MemoryItem, other: MemoryItem) -> bool:
    return {sort_of(one), sort_of(other)} <= {"rule", "learning"}


def _verdict(older: MemoryItem, younger: MemoryItem, near: Likeness) -> Verdict:
    if _are_freely_worded(older, younger):
        return compare(older.text, younger.text, near)
    return "same" if same(normal_form(older.text), normal_form(younger.text)) else "apart"
