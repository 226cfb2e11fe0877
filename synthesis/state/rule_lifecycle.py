"""The life of a rule: decay by opportunities, what reinforces or wakes it, and the rules for every agent.

A score belongs to the band of its integer part, so 8.7 is an 8. Code never raises a score to 9 or more: only
the user makes a rule critical, and only the user can end a critical one.
"""

import msgspec

from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import MemoryItem, RuleDetail, Status, superseded_by
from agentx.synthesis.memory.policies import POLICIES
from agentx.synthesis.memory.vitality import RETIRED_AFTER, SLEEPS_AFTER, weight
from agentx.synthesis.state.state import State

CRITICAL = 9.0
"""Score from which a rule never fades; only the user can end it."""

ACTIVE = 5.0
"""Score below which a rule is dormant: kept and searchable, but not loaded. New lessons and rules that wake
start here.
"""

ENDED = 3.0
"""Score below which a rule is retired. If its words are stated again, it comes back."""

HIGHEST = 8.9
"""Highest score that code can give."""

KEPT = 0.25
"""Gain of a rule each time a task followed it."""

BROKEN = 0.5
"""Gain each time a task broke it: a rule that is broken needs more weight, not less."""

AGAIN = 0.5
"""Gain when a rule is stated again, or merged with a rule that says the same."""

UNREACHED = 200
"""Tasks after which a rule made from a lesson is dormant if its situation never came up, and one made by hand
ranks last.
"""


def is_critical(item: MemoryItem) -> bool:
    """Return whether an item is a rule that only the user can end."""
    return item.kind == "rule" and item.score >= CRITICAL


def fades(item: MemoryItem) -> bool:
    """Return whether a rule can become dormant or be retired because tasks pass it over."""
    standing = item.status in ("active", "dormant")
    return item.kind == "rule" and standing and not item.pinned and item.score < CRITICAL


def detail_of(item: MemoryItem) -> RuleDetail:
    """Return the detail of a rule; an empty one if it was written without."""
    return item.detail if isinstance(item.detail, RuleDetail) else RuleDetail()


def is_passed_over(item: MemoryItem) -> bool:
    """Return whether so many tasks passed a rule over that its situation alone does not wake it."""
    return detail_of(item).passed_over >= SLEEPS_AFTER


def has_faded(item: MemoryItem) -> bool:
    """Return whether a rule is retired because tasks passed it over, or because its score fell too low.

    A rule the user ended has neither, and only the user can bring it back.
    """
    faded = item.score < ENDED or detail_of(item).passed_over >= RETIRED_AFTER
    return item.kind == "rule" and item.status == "retired" and faded and not superseded_by(item)


def standing_as(score: float) -> Status:
    """Return the status of a new rule with this score.

    >>> standing_as(5.0), standing_as(4.5), standing_as(2.5)
    ('active', 'dormant', 'retired')
    """
    return "active" if score >= ACTIVE else "dormant" if score >= ENDED else "retired"


# --- opportunities ------------------------------------------------------------------------------------------


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a task in which a rule's situation came up did with the rule.

    Attributes:
        rule: Id of the rule.
        at: Time of the task's last event.
        kept: Whether it kept the rule.
        broke: Whether it broke the rule, or was denied by it.
        unknown: Whether nothing shows what it did with the rule, so that it does not count against it.
        graded: Whether a grade named the rule, so that its score has changed already.
    """

    rule: str
    at: str
    kept: bool = False
    broke: bool = False
    unknown: bool = False
    graded: bool = False


def tasks_of(state: State) -> int:
    """Return about how many tasks a workspace has had: its runs, the user's messages or the grades."""
    return max(state.counts.get(name, 0) for name in ("RunStarted", "UserMessageSent", "TaskGraded"))


def after_task(item: MemoryItem, outcome: RuleOutcome, tasks: int) -> MemoryItem:
    """Return a rule after a task in which its situation came up.

    A task that kept it ends the streak of tasks that passed it over; each other task adds one, unless nothing
    shows what it did.

    Args:
        item: An active or dormant rule.
        outcome: What the task did.
        tasks: :func:`tasks_of` the workspace.
    """
    if not outcome.graded and (outcome.broke or outcome.kept):
        patch = (violated if outcome.broke else reinforced)(item, outcome.at)
        item = msgspec.structs.replace(item, **patch.fields())
    detail = detail_of(item)
    over = 0 if outcome.kept or not fades(item) else detail.passed_over + (not outcome.unknown)
    item = msgspec.structs.replace(
        item, detail=msgspec.structs.replace(detail, passed_over=over, reached=tasks, arose=detail.arose + 1)
    )
    if over < SLEEPS_AFTER:
        return item
    status: Status = "retired" if over >= RETIRED_AFTER else "dormant"
    reason = f"{over} tasks in a row passed it over."
    return msgspec.structs.replace(item, status=status, reason=reason)


def after_night(item: MemoryItem, tasks: int) -> MemoryItem:
    """Return a rule after a night: dormant if it was made from a lesson whose situation never came up.

    One whose situation came up once stays: tasks without it do not count against a rule.

    Args:
        item: Any item.
        tasks: :func:`tasks_of` the workspace.
    """
    if not fades(item):
        return item
    detail = detail_of(item)
    if detail.arose:
        return item
    if not detail.reached and tasks:
        return msgspec.structs.replace(item, detail=msgspec.structs.replace(detail, reached=tasks))
    if item.by_hand or item.status != "active" or not is_unreached(item, tasks):
        return item
    reason = f"Its situation did not come up in {tasks - detail.reached} tasks."
    return msgspec.structs.replace(item, status="dormant", reason=reason)


def is_unreached(item: MemoryItem, tasks: int) -> bool:
    """Return whether a rule's situation never came up, in at least :data:`UNREACHED` tasks."""
    detail = detail_of(item)
    return not detail.arose and bool(detail.reached) and tasks - detail.reached >= UNREACHED


# --- what reinforces a rule ---------------------------------------------------------------------------------


def reinforced(item: MemoryItem, at: str) -> Patch:
    """Reinforce a rule that a task followed.

    Adds :data:`KEPT`, and ends the streak of tasks that passed it over. Wakes it if dormant or faded.

    Args:
        item: The rule. If it is not a rule, or the user ended it, only the time of use changes.
        at: Time, formatted like :attr:`agentx.storage.events.types.Event.at`.
    """
    return strengthened(item, at, KEPT, "a task kept it")


def violated(item: MemoryItem, at: str) -> Patch:
    """Count a violation of a rule and add :data:`BROKEN` to its score.

    Wakes it if dormant or faded, unless it was passed over too often: a rule that is only ever broken fades.

    Args:
        item: As for :func:`reinforced`.
        at: Time.
    """
    if not _in_play(item):
        return Patch(id=item.id, used_at=max(at, item.used_at))
    detail = msgspec.structs.replace(detail_of(item), violations=detail_of(item).violations + 1)
    return _raised(item, at, BROKEN, "a task broke it", detail)


def triggered(item: MemoryItem, at: str) -> Patch:
    """Wake a dormant or faded rule whose situation came up, unless it was passed over too often.

    Args:
        item: As for :func:`reinforced`.
        at: Time.
    """
    detail = detail_of(item)
    detail = msgspec.structs.replace(detail, reached=0, arose=max(detail.arose, 1))
    return _raised(item, at, 0.0, "its situation came up", detail)


def strengthened(item: MemoryItem, at: str, gain: float, why: str) -> Patch:
    """Raise the score of a rule, and end the streak of tasks that passed it over.

    Args:
        item: As for :func:`reinforced`.
        at: Time.
        gain: Amount to add, up to :data:`HIGHEST`.
        why: The cause, for the recorded reason.
    """
    detail = msgspec.structs.replace(detail_of(item), passed_over=0, reached=0)
    return _raised(item, at, gain, why, detail)


def _raised(item: MemoryItem, at: str, gain: float, why: str, detail: RuleDetail) -> Patch:
    at = max(at, item.used_at)
    if not _in_play(item):
        return Patch(id=item.id, used_at=at)
    score = risen(item.score, gain)
    patch = Patch(id=item.id, used_at=at, score=score)
    if detail != detail_of(item):
        patch = msgspec.structs.replace(patch, detail=detail)
    if (score >= ACTIVE and item.status == "active") or detail.passed_over >= SLEEPS_AFTER:
        return patch
    score = max(score, ACTIVE)
    slept = "had faded away" if item.status == "retired" else "slept"
    reason = f"It {slept} and is back at {score:g}: {why}."
    return msgspec.structs.replace(patch, score=score, status="active", reason=reason)


def risen(score: float, gain: float) -> float:
    """Return a score plus a gain. Code cannot raise it to critical.

    >>> risen(8.75, 0.5), risen(9.5, 0.5)
    (8.9, 9.5)
    """
    return max(score, round(min(score + gain, HIGHEST), 2))


def _in_play(item: MemoryItem) -> bool:
    return item.kind == "rule" and (item.status in ("active", "dormant") or has_faded(item))


# --- rules for every agent ----------------------------------------------------------------------------------


def boot_rules(state: State) -> list[MemoryItem]:
    """Return the rules given to every agent at its start.

    These are all critical or pinned ones, then the strongest, up to 20. The fewer tasks passed a rule over,
    the stronger it is; those whose situation never came up come last.

    Args:
        state: What is concluded.

    Returns:
        The strongest first; of equal ones, the older first.
    """
    tasks = tasks_of(state)
    rules = sorted(
        state.active("rule"),
        key=lambda item: (
            not item.pinned,
            not is_critical(item) and is_unreached(item, tasks),
            -weight(item),
            item.created_seq,
            item.id,
        ),
    )
    must = [item for item in rules if item.pinned or is_critical(item)]
    others = [item for item in rules if not (item.pinned or is_critical(item))]
    return [*must, *others[: max(0, POLICIES["rule"].shown - len(must))]]
