"""Find the step of a flow that a lesson or rule concerns, so that it can be shown right before that step."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from agentx.synthesis.language.words import is_weak
from agentx.synthesis.memory.items import FlowDetail, MemoryItem, sort_of
from agentx.synthesis.state.flows import terms_as_said

MOST = 2
"""Maximum number of lessons before a step."""

ENOUGH = 1 / 2
"""Share of the weight of a step's words that a lesson must have, if it shares one word."""

ENOUGH_OF_SEVERAL = 1 / 3
"""The same if it shares several words."""

Lessons = Mapping[int, tuple[MemoryItem, ...]]
"""The lessons that concern a step, by its number from 1, the nearest first."""


def lessons_before(items: Iterable[MemoryItem], flow: MemoryItem) -> Lessons:
    """Return the active lessons and rules that concern a step of a flow; each at its nearest step.

    Words that few of the steps and lessons have weigh most.

    Args:
        items: The memory.
        flow: The flow.

    >>> flow = MemoryItem(id="f-1", kind="flow", text="x", detail=FlowDetail(("Build.", "Upload the pages.")))
    >>> rule = MemoryItem(id="r-2", kind="rule", text="Upload the index page last.")
    >>> {step: [one.id for one in found] for step, found in lessons_before([rule], flow).items()}
    {2: ['r-2']}
    """
    if not isinstance(flow.detail, FlowDetail):
        return {}
    steps = dict(enumerate(map(_weighty, flow.detail.steps), start=1))
    about = frozenset().union(*steps.values())
    lessons = {item.id: item for item in items if _is_lesson(item, flow)}
    words = {name: shared for name, item in lessons.items() if (shared := _weighty(item.text) & about)}
    spread = Counter(word for own in (*steps.values(), *words.values()) for word in own)
    whole = len(steps) + len(lessons)

    def weigh(own: frozenset[str]) -> float:
        return sum(math.log(1 + whole / spread[word]) for word in own)

    found: defaultdict[int, list[tuple[float, MemoryItem]]] = defaultdict(list)
    for name, own in words.items():
        shares = {number: weigh(own & step) / (weigh(step) or 1.0) for number, step in steps.items()}
        nearest = max(shares, key=lambda number: shares[number])
        if shares[nearest] >= (ENOUGH_OF_SEVERAL if len(own & steps[nearest]) > 1 else ENOUGH):
            found[nearest].append((shares[nearest], lessons[name]))
    return {
        number: tuple(item for _, item in sorted(near, key=lambda one: (-one[0], one[1].created_seq))[:MOST])
        for number, near in sorted(found.items())
    }


def _is_lesson(item: MemoryItem, flow: MemoryItem) -> bool:
    theirs = not flow.agent or item.agent in ("", flow.agent)
    return item.status == "active" and theirs and (item.kind == "rule" or sort_of(item) == "learning")


def _weighty(text: str) -> frozenset[str]:
    return frozenset(term for term, own in terms_as_said(text) if not is_weak(own))
