"""Merge two items that say the same: at night, or by a person who accepts a proposal."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from agentx.synthesis.memory.items import (
    TRUST_ORDER,
    Kind,
    Link,
    MemoryItem,
    RuleDetail,
    Status,
    joined,
    superseded_by,
)
from agentx.synthesis.state.rule_lifecycle import ACTIVE, AGAIN, detail_of, is_critical, risen

MERGED: tuple[Kind, ...] = ("rule", "knowledge")
"""Kinds whose near-duplicates are merged, each sort by itself."""

APART = "differs_from"
"""Relation between items that the user separated; they are never merged again."""

PROPOSED = "perhaps_same_as"
"""Relation to an older item that a person may merge this one into."""

STANDING: tuple[Status, ...] = ("active", "dormant")


def merged(item: MemoryItem, taken: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return an item that took in others, and those others, retired; all wordings stay, linked both ways."""
    every = (item, *taken)
    detail = item.detail
    if isinstance(detail, RuleDetail):
        details = [detail_of(one) for one in every]
        detail = RuleDetail(
            violations=sum(one.violations for one in details),
            enforced_by=next((one.enforced_by for one in details if one.enforced_by), ""),
            checks=next((one.checks for one in details if one.checks), ()),
            reached=max(one.reached for one in details),
            arose=sum(one.arose for one in details),
        )
    score = risen(max(one.score for one in every), AGAIN)
    awake = score >= ACTIVE or any(one.status == "active" for one in every)
    *names, last = [one.id for one in taken]
    taken_in = f"{', '.join(names)} and {last}, which say" if names else f"{last}, which says"
    winner = msgspec.structs.replace(
        item,
        status="active" if awake else item.status,
        score=score,
        strength=max(one.strength for one in every),
        used_at=max(one.used_at or one.created_at for one in every),
        evidence=joined(*(one.evidence for one in every if one.trust == item.trust)),
        links=(*_settled(item), *(Link("supersedes", one.id) for one in taken)),
        detail=detail,
        reason=f"It took in {taken_in} the same.",
    )
    return [winner, *(_retired(one, into=item.id) for one in taken)]


def _retired(item: MemoryItem, *, into: str) -> MemoryItem:
    links = (*_settled(item), Link("superseded_by", into))
    return msgspec.structs.replace(item, status="retired", links=links, reason=f"{into} says the same.")


def _settled(item: MemoryItem) -> tuple[Link, ...]:
    return tuple(link for link in item.links if link.relation != PROPOSED)


def separated(item: MemoryItem, *others: str) -> tuple[Link, ...]:
    """Return the links of an item that a person separated from others, whatever linked them before."""
    links = (link for link in item.links if link.target not in others)
    return (*links, *(Link(APART, other) for other in others))


def told_apart(one: MemoryItem, other: MemoryItem) -> bool:
    """Return whether the user separated two items, by name or by separating both from a third."""
    apart = (
        {item.id, *(link.target for link in item.links if link.relation == APART)} for item in (one, other)
    )
    return not set.isdisjoint(*apart)


def proposed_for(item: MemoryItem, items: Mapping[str, MemoryItem]) -> MemoryItem | None:
    """Return the item that a person may merge an item into; ``None`` if nothing is proposed any more."""
    links = (link.target for link in item.links if link.relation == PROPOSED)
    others = (items.get(target) for target in links if item.status in STANDING)
    return next((one for one in others if one and one.status in STANDING and one.kind == item.kind), None)


def age(item: MemoryItem) -> tuple[int, str]:
    """Return a sort key, older items first."""
    return item.created_seq, item.id


def rank(item: MemoryItem) -> tuple[bool, bool, int, float, int, tuple[int, str]]:
    """Return a sort key, better items first: pinned, critical, more trusted, stronger, with more evidence."""
    trust = TRUST_ORDER.index(item.trust)
    return not item.pinned, not is_critical(item), trust, -item.score, -len(item.evidence), age(item)


def wordings(item: MemoryItem, items: Mapping[str, MemoryItem]) -> Iterator[MemoryItem]:
    """Yield the items that were merged into an item, and those merged into them."""
    for link in item.links:
        other = items.get(link.target)
        if (
            link.relation == "supersedes"
            and other
            and superseded_by(other) == item.id
            and other.text != item.text
        ):
            yield other
            yield from wordings(other, items)
