"""Find near-duplicate items: other wordings of one statement, in the same domain, agent and scope.

Two texts say the same if their normal forms (:mod:`agentx.synthesis.similarity.normal_form`) agree: the same
content words, with synonyms as one, and nothing that changes the meaning. A word more or another one makes
another rule. Embeddings do not decide here: with MiniLM, "Log every request …" and "Log every response …" are
nearer to each other than most rewordings are.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec

from agentx.synthesis.language.words import vocabulary, words_of
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.similarity.normal_form import NormalForm, normal_form, same

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


Likenesses = dict[str, dict[str, float]]
"""By the id of an item, the ids of its near-duplicates and their similarity."""

_RAREST = 2
"""Two wordings differ in one word at most, so each has one of the two rarest words of the other."""


def near_duplicates(items: Iterable[MemoryItem], fresh: Collection[str]) -> Likenesses:
    """Find items that say the same and apply to the same domain, agent and scope.

    Only pairs with an id in ``fresh`` are checked; the others were compared before. Each pair is returned
    from both sides.
    """
    found: Likenesses = defaultdict(dict)
    groups: defaultdict[object, list[MemoryItem]] = defaultdict(list)
    for item in items:
        groups[item.domain, item.agent, item.scope, normal_form(item.text).key].append(item)
    for group in groups.values():
        if any(item.id in fresh for item in group):
            _compare(group, fresh, found)
    return found


def _compare(group: list[MemoryItem], fresh: Collection[str], found: Likenesses) -> None:
    """Compare the items of one group, each fresh one with those that have one of its rarest words."""
    statements: dict[str, NormalForm] = {item.id: normal_form(item.text) for item in group}
    often = Counter(word for one in statements.values() for word in one.words)
    holding: defaultdict[str, list[str]] = defaultdict(list)
    for item in sorted(group, key=lambda item: (item.created_seq, item.id)):
        for word in statements[item.id].words:
            holding[word].append(item.id)
    for item in group:
        if item.id in fresh:
            own = statements[item.id]
            rarest = sorted(own.words, key=lambda word: (often[word], word))[:_RAREST]
            for other in dict.fromkeys(name for word in rarest for name in holding[word]):
                if other != item.id and same(own, statements[other]):
                    found[item.id][other] = found[other][item.id] = 1.0
