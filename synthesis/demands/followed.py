"""Rules of followed workspaces beside a workspace's own: which of them hold here.

A rule that another workspace's user stated holds here under the name ``WORKSPACE:ID``. It is data: a check of
it stops an action or asks, and never runs a program nor writes a text.

What is said in the workspace itself is more specific. So one of its own demands ends a contrary ``prefer`` of
a followed workspace here. A contrary ``must`` stays, and both name each other. Clocks of two machines cannot
be compared, so it does not matter which was said first.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.demands.lifecycle import contrary_demands, marks
from agentx.synthesis.memory.checks import Check, ContentCheck, PathCheck, ProgramCheck, TextCheck
from agentx.synthesis.memory.items import (
    CONTRARY,
    FOLLOWED,
    ConstraintDetail,
    Link,
    MemoryItem,
    RejectionDetail,
    Scope,
    checks_of,
    followed_id,
)
from agentx.synthesis.state.state import State

HASH_SHOWN = 12
"""Characters of the hash of an event that is named as the source of a rule."""

_MOST_PATTERN = 1_000
_REPEATED_GROUP = re.compile(r"\)\s*[*+{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_MOST_REPEATS = 3
"""Repetitions in one regular expression: with more of them, or in groups, a text can make it very slow."""


class InForce(msgspec.Struct, frozen=True):
    """A state with the followed rules that hold here.

    Attributes:
        state: The workspace's own state, with the followed rules among its items.
        gave_way: By the id of a followed preference that does not hold here, the id of the own demand.
    """

    state: State
    gave_way: Mapping[str, str] = {}


def stated(state: State, said: Mapping[int, str]) -> Iterator[MemoryItem]:
    """Yield the rules that the user of another workspace stated, as they hold elsewhere, without its name.

    Args:
        state: The other workspace's state.
        said: The hash of each of its events that is by a user.
    """
    for item in state.active("constraint", "rejection"):
        seqs = [one.seq for one in item.evidence if one.seq in said]
        if item.trust != "user" or not seqs:
            continue
        yield msgspec.structs.replace(
            item,
            links=(Link(FOLLOWED, f"event {seqs[0]} ({said[seqs[0]][:HASH_SHOWN]})"),),
            detail=_as_data(item),
            pinned=False,
            created_seq=0,
            changed_seq=0,
        )


def named(item: MemoryItem, name: str) -> MemoryItem:
    """Return a rule that :func:`stated` yielded with the name of its workspace here."""
    links = tuple(Link(FOLLOWED, f"{name}, {link.target}") for link in item.links)
    return msgspec.structs.replace(item, id=followed_id(name, item.id), links=links)


def _as_data(item: MemoryItem) -> ConstraintDetail | RejectionDetail:
    detail = item.detail
    if not isinstance(detail, ConstraintDetail | RejectionDetail):  # a forged item
        return ConstraintDetail()
    return msgspec.structs.replace(detail, checks=tuple(_harmless(item, detail)))


def _harmless(item: MemoryItem, detail: ConstraintDetail | RejectionDetail) -> Iterator[Check]:
    """Yield the checks that only stop an action or ask, and that are quick on every text."""
    own: Collection[Check] | None = None
    for check in detail.checks:
        if isinstance(check, ProgramCheck):
            continue
        if not all(map(_is_quick, _expressions(check))):
            modality = detail.modality if isinstance(detail, ConstraintDetail) else "must_not"
            own = compile_checks(item.text, modality, item.scope) if own is None else own
            if check not in own:
                continue
        yield msgspec.structs.replace(check, mode="deny") if check.mode == "fix" else check


def _expressions(check: Check) -> tuple[str, ...]:
    match check:
        case TextCheck() | ContentCheck():
            return check.patterns
        case PathCheck():
            return (check.name,)
    return ()


def _is_quick(pattern: str) -> bool:
    return (
        len(pattern) <= _MOST_PATTERN
        and not _REPEATED_GROUP.search(pattern)
        and len(_REPEAT.findall(pattern)) <= _MOST_REPEATS
    )


def marks_of(items: Iterable[MemoryItem]) -> dict[str, tuple[str, ...]]:
    """Return the marks of each demand among some rules, by id; a contrary demand shares one of them."""
    return {
        item.id: tuple(sorted(marks(item.text, item.detail.modality)))
        for item in items
        if isinstance(item.detail, ConstraintDetail)
    }


class Merger:
    """Adds one set of followed rules to states; what was compared once is not compared again.

    Args:
        items: The followed rules, nearest workspace first.
        marked: The marks of each demand among them, as :func:`marks_of` returns them.
    """

    def __init__(self, items: Sequence[MemoryItem], marked: Mapping[str, Sequence[str]]) -> None:
        self._items = tuple(items)
        self._marked: dict[str, list[MemoryItem]] = {}
        for item in items:
            for mark in marked.get(item.id, ()):
                self._marked.setdefault(mark, []).append(item)
        self._contrary: dict[tuple[str, str, Scope], tuple[MemoryItem, ...]] = {}

    def merged(self, state: State) -> InForce:
        """Return a state with the followed rules; a rule that the workspace has itself comes once."""
        if not self._items:
            return InForce(state)
        held = {_said(item) for item in state.active("constraint", "rejection")}
        followed = {item.id: item for item in self._items if _said(item) not in held}
        items, gave_way = dict(state.items), dict[str, str]()
        for own in state.active("constraint"):
            for other in self._contrary_to(own):
                if other.id not in followed:
                    continue
                if isinstance(other.detail, ConstraintDetail) and other.detail.modality == "prefer":
                    gave_way[other.id] = own.id
                    continue
                items[own.id] = _linked(items[own.id], other.id)
                followed[other.id] = _linked(followed[other.id], own.id)
        left = {name: item for name, item in followed.items() if name not in gave_way}
        return InForce(msgspec.structs.replace(state, items=left | items), gave_way)

    def _contrary_to(self, own: MemoryItem) -> tuple[MemoryItem, ...]:
        modality = own.detail.modality if isinstance(own.detail, ConstraintDetail) else "must"
        key = (own.text, modality, own.scope)
        if key not in self._contrary:
            shared = (self._marked.get(mark, ()) for mark in sorted(marks(own.text, modality)))
            near = {item.id: item for items in shared for item in items}
            found = contrary_demands(own.text, modality, near.values())
            self._contrary[key] = tuple(one for one in found if own.scope in (one.scope, Scope()))
        return self._contrary[key]


def _linked(item: MemoryItem, other: str) -> MemoryItem:
    return msgspec.structs.replace(item, links=(*item.links, Link(CONTRARY, other)))


def _said(item: MemoryItem) -> tuple[object, ...]:
    """Return what a rule says, by which the same rule of two workspaces is recognised."""
    modality = item.detail.modality if isinstance(item.detail, ConstraintDetail) else ""
    return (
        item.kind,
        item.text,
        item.scope,
        item.until,
        modality,
        bool(item.perhaps_ended_by),
        checks_of(item),
    )


def nearest(groups: Iterable[Iterable[MemoryItem]]) -> list[MemoryItem]:
    """Return the rules of several workspaces, each that says the same once: the first."""
    found: dict[tuple[object, ...], MemoryItem] = {}
    for group in groups:
        for item in group:
            found.setdefault(_said(item), item)
    return list(found.values())
