"""What a file of rules says now, compared with what memory knows and what the file said before."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

import msgspec

from agentx.synthesis.memory.items import WOULD_END, MemoryItem, Scope, Status
from agentx.synthesis.rule_files.statements import RuleKind, same_words

ALIKE = 0.6
"""Minimum similarity of two texts (the ratio of ``difflib``) for one to be the other in new words."""

GONE = "It is no longer in "
"""First words of the reason of a proposal that ended because its file changed."""

_STANDING: tuple[Status, ...] = ("active", "dormant")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a file states.

    Attributes:
        text: Its words.
        kind: What it would be.
        scope: Where it would apply.
        where: Its place, for people: ``AGENTS.md:12``.
        start: First character of the place in the text that was read, from 0.
        end: One past the last one.
        quote: The words of that place.
    """

    text: str
    kind: RuleKind
    scope: Scope = Scope()
    where: str
    start: int = 0
    end: int = 0
    quote: str = ""


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """What would change.

    Attributes:
        added: Rules that nobody knows.
        reworded: Rules that an item states in other words, with that item.
        removed: Items that stand, and that the file no longer states.
        withdrawn: Proposals of this file that it no longer states.
    """

    added: tuple[Found, ...] = ()
    reworded: tuple[tuple[Found, MemoryItem], ...] = ()
    removed: tuple[MemoryItem, ...] = ()
    withdrawn: tuple[MemoryItem, ...] = ()


def differences(
    found: Sequence[Found],
    former: Iterable[MemoryItem],
    items: Mapping[str, MemoryItem],
    *,
    again: bool = False,
) -> Differences:
    """Compare what a file states with memory.

    Args:
        found: What it states now.
        former: The items that it stated before.
        items: All items by id. What any of them says, in whatever status, is not proposed again; a rule that
            a person rejected or ended stays so.
        again: Whether a removal is proposed again after a person rejected it: it was in the file again.
    """
    former = [items[item.id] for item in former if item.id in items]
    known = {words for item in items.values() if not item.reason.startswith(GONE) for words in _words(item)}
    stated = {same_words(one.text) for one in found}
    fresh = [one for one in found if same_words(one.text) not in known]
    gone = [item for item in former if not stated.intersection(_words(item))]
    pairs: list[tuple[Found, MemoryItem]] = []
    alike = sorted(
        (
            (_likeness(one.text, item.text), place, one, item)
            for place, one in enumerate(fresh)
            for item in gone
        ),
        key=lambda row: (-row[0], row[1]),
    )
    for ratio, _, one, item in alike:
        if ratio >= ALIKE and not any(one is had or item is was for had, was in pairs):
            pairs.append((one, item))
    taken = {item.id for _, item in pairs}
    left = [item for item in gone if item.id not in taken]
    asked = {
        link.target
        for item in items.values()
        for link in item.links
        if link.relation == WOULD_END and not (again and item.status != "candidate")
    }
    return Differences(
        added=tuple(
            one for one in fresh if not any(one is had and item.status in _STANDING for had, item in pairs)
        ),
        reworded=tuple((one, item) for one, item in pairs if item.status in _STANDING),
        removed=tuple(item for item in left if item.status in _STANDING and item.id not in asked),
        withdrawn=tuple(item for item in gone if item.status == "candidate"),
    )


def _words(item: MemoryItem) -> set[str]:
    return {same_words(item.text), *(same_words(one.quote) for one in item.evidence if one.quote)}


def _likeness(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, same_words(one), same_words(other), autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= ALIKE else 0.0
