"""Nightly memory maintenance of rules, near-duplicates, lessons and resolved items.

A pure function of a state, a time, and the uses and tasks since the last maintenance. Nights are the
midnights (UTC) between the two times. Each is processed in turn, so the next run catches up on a missed one.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from agentx.storage.clock import stamp
from agentx.synthesis.learning.merging import (
    MERGED,
    PROPOSED,
    STANDING,
    age,
    merged,
    rank,
    told_apart,
    wordings,
)
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import (
    ARCHIVED,
    Evidence,
    Link,
    MemoryItem,
    RuleDetail,
    Status,
    free_id,
    joined,
    sort_of,
    superseded_by,
)
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.similarity.near_duplicates import near_duplicates, no_likeness
from agentx.synthesis.similarity.paraphrase import Likeness
from agentx.synthesis.state.rule_lifecycle import (
    ACTIVE,
    AGAIN,
    RuleOutcome,
    after_night,
    after_task,
    detail_of,
    fades,
    has_faded,
    is_critical,
    strengthened,
    tasks_of,
)
from agentx.synthesis.state.state import State

RESOLVED_DAYS = 3
"""Days after which closed items are retired."""

STRONGEST = 12.0
"""Maximum strength that a memory gains by use; at this strength, half its vitality is left after an unused
year."""

MEASURED = 2
"""Number of the engine's measurements that make a lesson a rule without the user's words."""

PATCHED = tuple(name for name in Patch.__struct_fields__ if name != "id")
"""The fields of an item that a change can set."""


class Use(msgspec.Struct, frozen=True):
    """How a memory was recalled since the last maintenance: on how many days, and when last."""

    days: int
    at: str


What = Literal[
    "faded", "asleep", "retired", "merged", "proposed", "promoted", "woken", "stronger", "archived", "used"
]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What maintenance did to one item.

    Attributes:
        what: ``faded`` (passed over), ``asleep`` (dormant), ``retired``, ``merged`` (into an equivalent
            item), ``proposed`` (perhaps equivalent to another one), ``promoted`` (a new rule), ``woken``,
            ``stronger``, ``archived`` or ``used``.
        score: The score before.
    """

    what: What
    item: MemoryItem
    score: float


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """The result of maintenance.

    Attributes:
        since: Time of the last maintenance; empty if there was none.
        changes: One per new or changed item.
        done: The same, for display to the user.
    """

    nights: int
    since: str
    until: str
    changes: tuple[Change, ...]
    done: tuple[Done, ...]


def upkeep(
    state: State,
    now: str,
    uses: Mapping[str, Use] | None = None,
    outcomes: Sequence[RuleOutcome] = (),
    near: Likeness = no_likeness,
) -> Upkeep:
    """Return what maintenance changes at a time, catching up on every night since the last one.

    Args:
        state: The current state; it is not changed.
        now: The current time, in the format of :attr:`agentx.storage.events.types.Event.at`.
        uses: What was recalled since the last maintenance, by item.
        outcomes: What the tasks since then did with the rules whose situation came up, in order.
        near: Cosine of the meanings of two texts.
    """
    earliest = min((item.created_at for item in state.items.values() if item.created_at), default=now)
    passed = nights(state.maintained_at or earliest, now)
    work = _Work(state, near)
    work.use(uses or {})
    work.count(outcomes)
    for night in passed:
        work.fade()
        work.tidy(stamp(night))
    if _read(now) is not None:
        work.tidy(now)
    changes, done = _told(state.items, work.items)
    return Upkeep(nights=len(passed), since=state.maintained_at, until=now, changes=changes, done=done)


def nights(since: str, now: str) -> list[datetime]:
    """Return the midnights (UTC) after one time, up to and including another.

    >>> [f"{night:%d}" for night in nights("2026-01-01T09:00:00.000000Z", "2026-01-03T00:00:00.000000Z")]
    ['02', '03']
    """
    first, last = _read(since), _read(now)
    if first is None or last is None:
        return []
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    days = (last - midnight).days
    return [midnight + timedelta(days=day) for day in range(1, days + 1)]


def _read(at: str) -> datetime | None:
    """Parse an event's time; return ``None`` if it is damaged."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def makes_a_rule(item: MemoryItem) -> bool:
    """Return whether a lesson may become a rule.

    It must rest on the user's words, or on at least two measurements by the engine. A lesson that rests only
    on an agent, a tool or a file never may, however often it is repeated.
    """
    measured = len({one.seq for one in item.evidence}) >= MEASURED
    return _may_teach(item) and item.status == "active" and (item.trust == "user" or measured)


def _may_teach(item: MemoryItem) -> bool:
    return sort_of(item) == "learning" and item.trust in ("user", "engine")


class _Work:
    """Memory during maintenance; items are immutable values, and each step replaces some."""

    def __init__(self, state: State, near: Likeness) -> None:
        self.items = dict(state.items)
        self._tasks = tasks_of(state)
        compared = [
            item
            for item in self.items.values()
            if item.kind in MERGED
            and (item.status in STANDING or (item.kind == "rule" and item.status == "retired"))
        ]
        last = max(
            (item.changed_seq for item in compared if item.changed_at == state.maintained_at),
            default=state.maintained,
        )  # by events, as the clock may have been set back
        fresh = {item.id for item in compared if item.changed_seq > last or makes_a_rule(item)}
        duplicates = near_duplicates(compared, fresh, near)
        self._alike, self._perhaps = duplicates.same, duplicates.perhaps
        self._fading = [item.id for item in self.items.values() if fades(item)]
        self._noes: dict[int, list[Evidence]] = {}
        for item in self.items.values():
            ended = item.by_hand and item.status == "retired" and not superseded_by(item)
            if ended and item.kind in ("constraint", "rejection"):
                for place in item.evidence:
                    self._noes.setdefault(place.seq, []).append(place)
        self._lessons = [item.id for item in self.items.values() if _may_teach(item)]
        self._resolved = [
            item.id
            for item in self.items.values()
            if item.status == "closed"
            and POLICIES[item.kind].section in ("state", "problems")
            and not item.pinned
        ]

    def use(self, uses: Mapping[str, Use]) -> None:
        """Slow the fading of recalled items: strength grows by one for each day of use."""
        for name, use in uses.items():
            item = self.items.get(name)
            if item is not None and POLICIES[item.kind].decay in ("logistic", "ebbinghaus"):
                again = use.at[:10] == item.used_at[:10]  # that day has already been counted
                strength = max(item.strength, min(item.strength + use.days - again, STRONGEST))
                self._set(item, strength=strength, used_at=max(use.at, item.used_at))

    def count(self, outcomes: Sequence[RuleOutcome]) -> None:
        """Strengthen the rules that tasks kept, and count the tasks that passed a rule over."""
        for outcome in outcomes:
            item = self.items.get(outcome.rule)
            if item is not None and item.kind == "rule" and item.status in STANDING:
                self.items[item.id] = after_task(item, outcome, self._tasks)

    def fade(self) -> None:
        """Lay aside the rules whose situation did not come up for long."""
        for name in self._fading:
            self.items[name] = after_night(self.items[name], self._tasks)
        self._fading = [name for name in self._fading if fades(self.items[name])]

    def tidy(self, at: str) -> None:
        """Merge, promote and retire what existed at a time."""
        self._merge(at)
        self._propose()
        self._promote(at)
        latest = stamp(datetime.fromisoformat(at) - timedelta(days=RESOLVED_DAYS))
        for name in [name for name in self._resolved if self.items[name].changed_at <= latest]:
            self._resolved.remove(name)
            reason = f"{ARCHIVED} on {self.items[name].changed_at[:10]}."
            self._set(self.items[name], status="retired", reason=reason)

    def _merge(self, at: str) -> None:
        """Merge equivalent items into the best one; the wordings that an item took in before count, too."""
        for group in self._groups(at):
            left = group
            while left:
                item, *others = left
                # Pinned and critical items stay, and so do those that the user separated.
                kept = [one for one in others if one.pinned or is_critical(one) or told_apart(item, one)]
                if taken := sorted((one for one in others if one not in kept), key=age):
                    self.items |= {one.id: one for one in merged(item, taken)}
                left = kept

    def _groups(self, at: str) -> list[list[MemoryItem]]:
        """Return the standing items that say the same, directly or by a third one, in groups, best first."""
        groups: list[list[MemoryItem]] = []
        done = set[str]()
        for name in self._alike:
            group, open_ = list[MemoryItem](), [self._survivor(name)]
            while open_:
                item = open_.pop()
                if item.id in done or not _stood(item, at) or (group and item.kind != group[0].kind):
                    continue
                done.add(item.id)
                group.append(item)
                open_ += (self._survivor(other) for other in self._alike_to(item))
            groups.append(sorted(group, key=rank))
        return sorted((group for group in groups if group[1:]), key=lambda group: rank(group[0]))

    def _alike_to(self, item: MemoryItem) -> Iterator[str]:
        """Yield the ids of what says the same as an item, or as one that it took in."""
        for one in (item, *wordings(item, self.items)):
            yield from sorted(self._alike.get(one.id, ()))

    def _propose(self) -> None:
        """Let a person decide on pairs that may say the same."""
        for older, younger in self._perhaps:
            one, other = self.items[older], self.items[younger]
            if one.kind != other.kind or not {one.status, other.status} <= set(STANDING):
                continue
            if not told_apart(one, other) and not any(link.target == older for link in other.links):
                reason = f"Perhaps it says the same as {older}; `agentx memory review` asks you."
                self._set(other, links=(*other.links, Link(PROPOSED, older)), reason=reason)

    def _promote(self, at: str) -> None:
        """Promote lessons to rules, or strengthen the rules that already say the same."""
        self._lessons = [name for name in self._lessons if self.items[name].status == "active"]
        for name in self._lessons:
            lesson = self.items[name]
            if not makes_a_rule(lesson) or max(lesson.created_at, lesson.changed_at) > at:
                continue
            if self._refused(lesson):
                continue
            rules = [self._survivor(other) for other in sorted(self._alike.get(name, ()))]
            rules = [rule for rule in rules if rule.kind == "rule"]
            awake = [rule for rule in rules if rule.status in STANDING or has_faded(rule)]
            same = [rule for rule in awake if not told_apart(rule, lesson)]
            if same:
                self._repeat(min(same, key=rank), lesson)
            elif not rules:  # a rule that the user ended or took back stays so
                self._make_rule(lesson, at)

    def _refused(self, lesson: MemoryItem) -> bool:
        """Return whether the user retired a demand or rejection that came from the same words."""
        return any(
            one.seq == no.seq and one.start < no.end and no.start < one.end
            for one in lesson.evidence
            for no in self._noes.get(one.seq, ())
        )

    def _repeat(self, rule: MemoryItem, lesson: MemoryItem) -> None:
        at = lesson.used_at or lesson.created_at
        stronger = strengthened(rule, at, AGAIN, f"{lesson.id} says it again")
        evidence = joined(rule.evidence, lesson.evidence) if rule.trust == lesson.trust else rule.evidence
        pinned = rule.pinned or lesson.pinned
        self._set(rule, **stronger.fields() | {"evidence": evidence, "pinned": pinned})
        self._end_lesson(lesson, rule.id, f"{rule.id} says it.")

    def _make_rule(self, lesson: MemoryItem, at: str) -> None:
        seq = lesson.evidence[0].seq if lesson.evidence else lesson.created_seq
        name = free_id("rule", seq, self.items)
        basis = "on your words" if lesson.trust == "user" else "on what was measured more than once"
        self.items[name] = MemoryItem(
            id=name,
            kind="rule",
            text=lesson.text,
            short=lesson.short,
            domain=lesson.domain,
            agent=lesson.agent,
            scope=lesson.scope,
            score=ACTIVE,
            used_at=at,
            evidence=lesson.evidence,
            trust=lesson.trust,
            links=(Link("learned_from", lesson.id),),
            detail=RuleDetail(reached=self._tasks),
            reason=f"Made of the lesson {lesson.id}, which rests {basis}.",
            pinned=lesson.pinned,
        )
        self._fading.append(name)
        for other in sorted(self._alike.get(lesson.id, ())):
            self._alike.setdefault(other, set()).add(name)
        self._end_lesson(lesson, name, f"It became the rule {name}.")

    def _end_lesson(self, lesson: MemoryItem, rule: str, reason: str) -> None:
        links = (*lesson.links, Link("superseded_by", rule))
        self._set(lesson, status="retired", links=links, reason=reason)
        if fades(self.items[rule]) and rule not in self._fading:
            self._fading.append(rule)

    def _survivor(self, name: str) -> MemoryItem:
        """Return the item, or the one it was merged into."""
        item = self.items[name]
        seen = set[str]()
        while (after := superseded_by(item)) in self.items and after not in seen:
            seen.add(after)
            item = self.items[after]
        return item

    def _set(self, item: MemoryItem, **fields: object) -> None:
        self.items[item.id] = msgspec.structs.replace(item, **fields)


def _stood(item: MemoryItem, at: str) -> bool:
    return item.status in STANDING and (item.created_at or item.used_at) <= at


def _told(
    before: Mapping[str, MemoryItem], after: Mapping[str, MemoryItem]
) -> tuple[tuple[Change, ...], tuple[Done, ...]]:
    """Return the changes from one memory to another, one per item."""
    changes: list[Change] = []
    done: list[Done] = []
    for name, item in after.items():
        old = before.get(name)
        if old is item:
            continue
        if old is None:
            changes.append(Add(item))
            what: What = "promoted" if item.status in STANDING else "retired"
            done.append(Done(what=what, item=item, score=ACTIVE))
        elif fields := {f: getattr(item, f) for f in PATCHED if getattr(item, f) != getattr(old, f)}:
            changes.append(Patch(id=name, **fields))
            successor = superseded_by(item)
            counted = fields.keys() == {"detail"} and not _is_passed_over_more(old, item)
            # Of a lesson that became a new rule, the rule is reported instead.
            if not counted and (not successor or successor in before):
                done.append(Done(what=became(old, item), item=item, score=old.score))
    return tuple(changes), tuple(done)


def became(old: MemoryItem, new: MemoryItem) -> What:
    """Return in one word what happened to an item."""
    if new.status != old.status:
        if new.status == "retired" and superseded_by(new):
            return "merged"
        return "archived" if old.status == "closed" else _TURNED[new.status]
    if new.links != old.links and new.links[-1].relation == PROPOSED:
        return "proposed"
    if new.score < old.score or _is_passed_over_more(old, new):
        return "faded"
    return "stronger" if new.score > old.score or new.links != old.links else "used"


def _is_passed_over_more(old: MemoryItem, new: MemoryItem) -> bool:
    return detail_of(new).passed_over > detail_of(old).passed_over


_TURNED: dict[Status, What] = {
    "active": "woken",
    "dormant": "asleep",
    "retired": "retired",
}
