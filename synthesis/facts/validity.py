"""Select memories by when they were true: now, earlier, or at a time that a question names.

A memory that a later one superseded is linked with it. So a question finds either, and gets the one that was
true at the time that it asks for.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Literal

import msgspec

from agentx.synthesis.language.dates import dates_in
from agentx.synthesis.memory.items import MemoryItem, NoteDetail

SUPERSEDES, SUPERSEDED_BY = "supersedes", "superseded_by"
_CHAINED = (SUPERSEDES, SUPERSEDED_BY)

_FIRST = re.compile(
    r"\b(?:original(?:ly)?|initial(?:ly)?|at first|in the first place|to begin with|the first time"
    r"|first (?:of all )?(?:say|said|tell|told|plan|planned|agree|agreed|quoted?|ask|asked|want|wanted)"
    r"|in the beginning|at the (?:start|beginning))\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:before|used? to|previous(?:ly)?|former(?:ly)?|earlier|back then|in the past|at the time|no longer"
    r"|prior to|until (?:then|now|recently)|the old|last time|once)\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"\b(?:until|till|up to|up until|before|prior to)\s+(?:the\s+)?$", re.IGNORECASE)
_SINCE = re.compile(
    r"\b(?:from|as of|since|starting|after|effective)\s+(?:on\s+)?(?:the\s+)?$", re.IGNORECASE
)
_WILL = re.compile(r"\b(?:will|going to|gonna|shall|won['’]t|\w+['’]ll|soon|upcoming)\b", re.IGNORECASE)
_DID = re.compile(r"\b(?:was|were|did|had|wasn['’]t|weren['’]t|didn['’]t|hadn['’]t)\b", re.IGNORECASE)

FAR = "9999-12-31"


class Period(msgspec.Struct, frozen=True):
    """The time that a question asks about.

    Attributes:
        sort: ``now``, ``first`` (the first of several values), ``before`` (the one before the present one),
            or ``at`` (a time that it names, or the future).
        first: The first day of that time, and ``last`` the last one, in ISO 8601; both the same for a day.
    """

    sort: Literal["now", "first", "before", "at"]
    first: str
    last: str


def asked_period(question: str, now: str) -> Period:
    """Return the time that a question asks about; ``now`` is the time at which it is asked, in ISO 8601.

    >>> asked_period("What was the rent before?", "2026-06-02T09:00:00Z").sort
    'before'
    >>> asked_period("What did I pay until May?", "2026-06-02T09:00:00Z").last
    '2026-04-30'
    >>> asked_period("What is the rent?", "2026-06-02T09:00:00Z").sort
    'now'
    """
    day = now[:10]
    if _FIRST.search(question):
        return Period("first", "", day)
    for one in dates_in(question, now):
        first, last = one.first.isoformat(), one.last.isoformat()
        lead = question[: one.start] + question[one.start : one.end].partition(" ")[0] + " "
        if _UNTIL.search(question[: one.start]) or _UNTIL.search(lead):
            if last < day or (first <= day and _DID.search(question)):
                before = min(first, day) if one.first == one.last else first
                return Period("at", "", _day_before(before) if before == first else before)
            continue
        if first > day or _SINCE.search(question[: one.start]):
            return Period("at", first, first) if first > day else Period("now", day, day)
        if _DID.search(question) or _BEFORE.search(question):
            return Period("at", first, last)
    if _BEFORE.search(question):
        return Period("before", "", day)
    return Period("at", FAR, FAR) if _WILL.search(question) else Period("now", day, day)


def valid_at(names: Iterable[str], items: Mapping[str, MemoryItem], when: Period) -> list[str]:
    """Return memories in order, each replaced by those of its chain that were true at a time.

    A memory stays where nothing in its chain was: then what is known of another time is all there is.
    """
    found: dict[str, None] = {}
    for name in names:
        if name not in items:
            continue
        if _alone(items[name]):
            found[name] = None
            continue
        linked = (items[one] for one in chain_of(name, items))
        # One that ended without a time was merged into another: it is not what was true earlier
        chain = [one for one in linked if until(one) or one.status in ("active", "dormant")]
        found.update(dict.fromkeys(one.id for one in _true(chain, when) or [items[name]]))
    return list(found)


def since(item: MemoryItem) -> str:
    """Return when a memory became true: when its message says, or when that was said."""
    return (item.detail.valid_from if isinstance(item.detail, NoteDetail) else "") or item.created_at


def until(item: MemoryItem) -> str:
    """Return when a memory ceased to be true; empty while it is true."""
    return item.detail.valid_to if isinstance(item.detail, NoteDetail) else ""


def is_true(item: MemoryItem, now: str) -> bool:
    """Return whether a memory has not been superseded, or only from a later time on."""
    return item.status in ("active", "dormant") or until(item) > now


def former(item: MemoryItem, items: Mapping[str, MemoryItem]) -> Iterator[MemoryItem]:
    """Yield the memories that one took the place of."""
    for link in item.links:
        if link.relation == SUPERSEDES and link.target in items:
            yield items[link.target]


def _true(chain: list[MemoryItem], when: Period) -> list[MemoryItem]:
    if when.sort in ("first", "before"):
        ended = [one for one in chain if until(one)]
        best = (min if when.sort == "first" else max)(ended, key=until, default=None)
        return [one for one in ended if best is not None and until(one) == until(best)]
    if when.sort == "now":
        return [one for one in chain if since(one)[:10] <= when.last and not _over(one, when.last)]
    overlap = [one for one in chain if since(one)[:10] <= when.last and not _over(one, when.first)]
    # Of a period without a beginning, only its end is asked for
    return overlap if when.first else [one for one in overlap if not _over(one, when.last)]


def _over(item: MemoryItem, day: str) -> bool:
    """Return whether a memory had ceased to be true on a day."""
    return "" < until(item)[:10] <= day


def chain_of(name: str, items: Mapping[str, MemoryItem]) -> list[str]:
    """Return a memory with all that it superseded and that superseded it, oldest first."""
    if name in items and _alone(items[name]):
        return [name]
    seen, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in seen and one in items:
            seen.add(one)
            waiting += [link.target for link in items[one].links if link.relation in _CHAINED]
    return sorted(seen, key=lambda one: (since(items[one]), items[one].created_seq, one))


def _alone(item: MemoryItem) -> bool:
    """Return whether a memory has not superseded another one, nor been superseded."""
    return not any(link.relation in _CHAINED for link in item.links)


def _day_before(day: str) -> str:
    return (date.fromisoformat(day) - timedelta(1)).isoformat()
