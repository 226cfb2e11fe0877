"""The extractor ``grading``: updates flows, rules and lessons when a finished task is graded.

One entry in the state records how the task went; grading the same task again updates it. A lesson becomes a
lesson with the trust of whoever graded, so an agent's grading of its own work never becomes a user's
rule. A lesson without a check, flow or script is marked as not permanent yet.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import CapabilityChecked, Event, TaskGraded
from agentx.storage.text import one_line, shorten
from agentx.synthesis.memory.conclusions import Add, Change, Patch
from agentx.synthesis.memory.items import (
    CapabilityDetail,
    Evidence,
    FlowDetail,
    MemoryItem,
    NoteDetail,
    RuleDetail,
    Status,
    Trust,
    item_id,
    joined,
    sort_of,
)
from agentx.synthesis.similarity.near_duplicates import likeness
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.flows import graded as flow_graded
from agentx.synthesis.state.rule_lifecycle import (
    AGAIN,
    detail_of,
    has_faded,
    reinforced,
    strengthened,
    triggered,
    violated,
)
from agentx.synthesis.state.state import State

MADE = ("check", "flow", "script", "rule")
"""What a lesson can be made into; of these, only a rule has no automation.

The record also holds the name: ``script:scripts/deploy.sh``."""

NOT_PERMANENT = "Not permanent yet: it is only words."
"""The reason of a lesson that nothing enforces."""

_COMPARED = 100
_SAID_CHARACTERS = 120


class Grading:
    """Draws conclusions from graded tasks and checked capabilities."""

    name = "grading"
    version = 1
    reads = (TaskGraded, CapabilityChecked)

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the changes of a grading or a capability check; nothing for other events."""
        match event.data:
            case TaskGraded() as graded:
                return tuple(_graded(event, graded, state))
            case CapabilityChecked() as checked:
                return tuple(_checked(event, checked, state, read))
        return ()


def trust_of(actor: str) -> Trust:
    """Return the trust level of an actor."""
    known: dict[str, Trust] = {"user": "user", "engine": "engine", "agent": "agent"}
    return known.get(Actor.parse(actor).role, "material")


def lasts(made: str) -> bool:
    """Return whether a lesson was made into more than words.

    >>> lasts("script:scripts/deploy.sh"), lasts("rule"), lasts("")
    (True, False, False)
    """
    return made not in ("", "rule")


def is_only_words(item: MemoryItem) -> bool:
    """Return whether an item is an active lesson or rule without a check, flow or script."""
    if item.kind == "rule":
        detail = item.detail
        return item.status == "active" and not (isinstance(detail, RuleDetail) and detail.enforced_by)
    return sort_of(item) == "learning" and item.status == "active" and item.reason == NOT_PERMANENT


def rule_that_says(state: State, text: str, domain: str = "") -> MemoryItem | None:
    """Return the active, dormant or faded rule that says the same as a lesson; the closest if several."""
    rules = (item for item in state.items.values() if item.kind == "rule" and item.domain == domain)
    standing = (item for item in rules if item.status in ("active", "dormant") or has_faded(item))
    near = [(likeness(item.text, text), item) for item in standing]
    best = max(near, key=lambda one: one[0], default=(0.0, None))
    return best[1] if best[0] else None


def _graded(event: Event, graded: TaskGraded, state: State) -> Iterator[Change]:
    trust = trust_of(event.actor)
    if trust != "material":
        yield from _counted(event, graded, state)
        yield from _entered(event, graded, state, trust)
    if graded.lesson:
        yield from _learned(event, graded, state, trust)


def _counted(event: Event, graded: TaskGraded, state: State) -> Iterator[Change]:
    """Update the flow's record and the rules that were kept or broken."""
    flow = state.items.get(graded.flow)
    if flow is not None and isinstance(flow.detail, FlowDetail):
        yield flow_graded(flow, graded, event.at)
    said_again = rule_that_says(state, graded.lesson, graded.domain) if graded.lesson else None
    for name in dict.fromkeys((*graded.broke, *graded.kept)):
        rule = state.items.get(name)
        if rule is not None and rule.kind == "rule" and rule != said_again:
            yield (violated if name in graded.broke else reinforced)(rule, event.at)


def _entered(event: Event, graded: TaskGraded, state: State, trust: Trust) -> Iterator[Change]:
    """Resolve a task that passed, keep one that failed open; a task that is graded again keeps its entry."""
    why = f": {graded.lesson.rstrip('.')}" if graded.lesson and not graded.passed else ""
    reason = "It passed." if graded.passed else f"It failed{why}."
    status: Status = "closed" if graded.passed else "active"
    place = Evidence(event.seq, 0, len(graded.task), graded.task)
    known = _same_task(event, graded, state)
    if known is None:
        item = MemoryItem(
            id=item_id("task", event.seq),
            kind="task",
            text=graded.task,
            short=shorten(graded.task),
            domain=graded.domain,
            agent=Actor.parse(event.actor).name if trust == "agent" else "",
            evidence=(place,),
            trust=trust,
            status=status,
            reason=reason,
        )
        yield Add(item)
    # a run that completed has already closed it
    elif not (known.status == status == "closed" and event.run):
        evidence = joined(known.evidence, (place,))
        yield Patch(id=known.id, status=status, reason=reason, evidence=evidence, used_at=event.at)


def _same_task(event: Event, graded: TaskGraded, state: State) -> MemoryItem | None:
    run = state.last_run
    began = run.seq if run is not None and event.run and run.run == event.run else 0
    tasks = (
        item
        for item in reversed(state.items.values())
        if item.kind == "task" and item.status in ("active", "closed") and not item.by_hand
    )
    for item in islice(tasks, _COMPARED):
        mine = began and any(place.seq == began for place in item.evidence)
        if mine or (item.domain == graded.domain and likeness(item.text, graded.task)):
            return item
    return None


def _learned(event: Event, graded: TaskGraded, state: State, trust: Trust) -> Iterator[Change]:
    """Record a lesson: strengthen the rule that already says it; otherwise add or update one learning."""
    start = len(graded.task) + 1
    place = Evidence(event.seq, start, start + len(graded.lesson), graded.lesson)
    lasting = graded.made if lasts(graded.made) else ""
    rule = rule_that_says(state, graded.lesson, graded.domain) if trust != "material" else None
    if rule is not None:
        yield _rule_again(event, graded, rule, trust, lasting, place)
        return
    reason = f"It was made a {lasting.replace(':', ', ')}." if lasting else NOT_PERMANENT
    lessons = (item for item in reversed(state.items.values()) if sort_of(item) == "learning")
    # An agent's lesson never rests on a user's.
    alike = (
        one for one in lessons if (one.status, one.trust, one.domain) == ("active", trust, graded.domain)
    )
    known = next((item for item in alike if likeness(item.text, graded.lesson)), None)
    if known is None:
        item = MemoryItem(
            id=item_id("knowledge", event.seq),
            kind="knowledge",
            text=graded.lesson,
            short=shorten(graded.lesson),
            domain=graded.domain,
            evidence=(place,),
            trust=trust,
            reason=reason,
            detail=NoteDetail(lasting, "learning"),
        )
        yield Add(item)
        return
    made = NoteDetail(lasting, "learning") if lasting else known.detail
    yield Patch(
        id=known.id,
        used_at=event.at,
        evidence=joined(known.evidence, (place,)),
        detail=made,
        reason=reason if lasting or made == NoteDetail(sort="learning") else known.reason,
    )


def _rule_again(
    event: Event, graded: TaskGraded, rule: MemoryItem, trust: Trust, lasting: str, place: Evidence
) -> Patch:
    """Update the rule that a lesson repeats; only the user and the engine's measurements strengthen it."""
    weighs = trust in ("user", "engine")
    if rule.id in graded.broke:
        patch = violated(rule, event.at)
    elif weighs:
        patch = strengthened(rule, event.at, AGAIN, "it was learned again")
    else:
        patch = triggered(rule, event.at)
    if lasting:
        known = patch.detail if isinstance(patch.detail, RuleDetail) else detail_of(rule)
        patch = msgspec.structs.replace(patch, detail=msgspec.structs.replace(known, enforced_by=lasting))
    if trust == rule.trust:
        patch = msgspec.structs.replace(patch, evidence=joined(rule.evidence, (place,)))
    return patch


def _checked(event: Event, checked: CapabilityChecked, state: State, read: ReadBody) -> Iterator[Change]:
    """Record the output of the last run of a capability's command, if the user or the engine reported it."""
    item = state.items.get(checked.item)
    if item is None or trust_of(event.actor) not in ("user", "engine"):
        return
    if isinstance(item.detail, CapabilityDetail):
        lines = (one_line(line) for line in read(checked.output).splitlines())
        said = next((line[:_SAID_CHARACTERS] for line in lines if line), "")
        works = checked.exit_code == 0
        detail = CapabilityDetail(command=item.detail.command, works=works, said=said, checked_at=event.at)
        yield Patch(id=item.id, detail=detail, used_at=event.at)
