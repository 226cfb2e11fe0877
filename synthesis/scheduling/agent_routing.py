"""Route a task to an agent by its flow, its missions and the capabilities that it has.

An agent is named only if a flow, a capability or a mission of its role has to do with the task.
"""

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

import msgspec

from agentx.synthesis.language.requests import acts
from agentx.synthesis.language.verbs import is_base_verb
from agentx.synthesis.language.words import words_of
from agentx.synthesis.memory.items import CapabilityDetail, FlowDetail, MemoryItem
from agentx.synthesis.state.flows import FlowMatch, terms
from agentx.synthesis.state.state import State

ENOUGH = 0.5
"""Share of a capability's words from which it is needed."""

MISSION_WORDS = 2
"""Number of words shared with a mission from which the task is about it.

One is enough if it is of the task's object. If that leaves several agents alike, none is named.
"""

NEEDED, BROKEN, USEFUL, MISSION = 2.0, 0.5, 1.0, 1.0
"""Weights of an agent: per needed capability, per needed one that does not work, for a useful one that works,
and for a mission, to which its share of the task's words is added.
"""

_MEANS = """
send mail email newsletter letter campaign subscriber
publish deploy release upload host hosting server site website
pay payment bank invoice transfer
call phone sms
post tweet social network
commit push repository git github gitlab
book calendar schedule invite meeting
"""
"""Rows of tasks and of the means for them: to send a newsletter takes a mail account."""

ANYBODY = "main"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A capability that is needed.

    Attributes:
        has: Whether the chosen agent has it.
    """

    item: MemoryItem
    has: bool

    @property
    def works(self) -> bool | None:
        """Result of its last check; ``None`` if it was never checked."""
        return self.item.detail.works if isinstance(self.item.detail, CapabilityDetail) else None


class Dispatch(msgspec.Struct, frozen=True, kw_only=True):
    """The agent chosen for a task.

    Attributes:
        flow: The flow that fits best; ``None`` for none.
        agent: The role; empty if nothing fits.
        why: The reason in one sentence; or that nothing fits, and what to do.
        ready: Whether the agent has all of them and none is known not to work.
        command: The command that starts the task; empty if nothing fits.
    """

    flow: FlowMatch | None
    agent: str
    why: str
    needs: tuple[Need, ...] = ()
    ready: bool = False
    command: str = ""


def dispatch(state: State, asked: str, flows: Sequence[FlowMatch]) -> Dispatch:
    """Choose an agent for a task; the flows that match it are given best first."""
    flow = flows[0] if flows else None
    staff = _Staff(state, asked, flow)
    agent, why = staff.best()
    if not agent:
        return Dispatch(flow=None, agent="", why=why)
    best: dict[str, Need] = {}
    for item in staff.needs(agent):
        need = Need(item=item, has=staff.has(agent, item))
        known = best.get(item.text.casefold())
        if known is None or (need.has, need.works is True) > (known.has, known.works is True):
            best[item.text.casefold()] = need
    needs = tuple(best.values())
    role = "" if agent == ANYBODY else f"--agent {shlex.quote(agent)} "
    return Dispatch(
        flow=flow,
        agent=agent,
        why=why,
        needs=needs,
        ready=all(need.has and need.works is not False for need in needs),
        command=f"agentx run {role}{shlex.quote(asked)}",
    )


class _Staff:
    """The agents that a task may go to, weighed by their capabilities and missions.

    Attributes:
        needed: The capabilities that the task or its flow names.
        useful: Those that are a means for it.
    """

    def __init__(self, state: State, asked: str, flow: FlowMatch | None) -> None:
        self.state, self.flow = state, flow
        self.said = {term: word for word in words_of(asked) for term in terms(word)}
        self.asked = set(terms(asked))
        self.objects = _objects(asked)
        named = self.asked
        if flow is not None and isinstance(flow.item.detail, FlowDetail):
            named = named.union(*map(terms, (flow.item.text, *flow.item.detail.steps)))
        capabilities = {item.id: (item, set(terms(item.text))) for item in state.active("capability")}
        self.needed = [
            item for item, own in capabilities.values() if own and len(named & own) / len(own) >= ENOUGH
        ]
        means = _rows_of(self.asked)
        self.useful = [
            item
            for item, own in capabilities.values()
            if item not in self.needed and not means.isdisjoint(_rows_of(own))
        ]
        self.missions = [(item, set(terms(item.text))) for item in state.active("north_star") if item.agent]
        self.by_domain: defaultdict[str, set[str]] = defaultdict(set)
        for item, _ in self.missions:
            if item.domain:
                self.by_domain[item.domain.casefold()].add(item.agent)

    def owners(self, item: MemoryItem) -> set[str]:
        """Return the agents that have a capability: its own, or those of its domain; empty for all."""
        return {item.agent} if item.agent else self.by_domain.get(item.domain.casefold(), set())

    def has(self, agent: str, item: MemoryItem) -> bool:
        """Return whether an agent has a capability."""
        owners = self.owners(item)
        return not owners or agent in owners

    def needs(self, agent: str) -> list[MemoryItem]:
        """Return what an agent needs for the task: the useful capabilities only if it has them."""
        return [*self.needed, *(item for item in self.useful if agent in self.owners(item))]

    def best(self) -> tuple[str, str]:
        """Return the role, and the reason for choosing it."""
        if self.flow is not None and self.flow.item.agent:
            return self.flow.item.agent, f"the flow {self.flow.item.id} is its own"
        missions = self._fitting()
        able = [*self.needed, *self.useful]
        roles = dict.fromkeys([role for item in able for role in sorted(self.owners(item))] + [*missions])
        if not roles:
            return self._nobody()
        weights = {role: self._weight(role, missions) for role in roles}
        role = max(weights, key=lambda one: weights[one])  # of equal ones, the first
        why = [item.text for item in self.needs(role) if role in self.owners(item)]
        if not why and sum(weight == weights[role] for weight in weights.values()) > 1:
            return self._nobody()
        parts = [f"it has {', '.join(dict.fromkeys(why))}"] if why else []
        if role in missions:
            mission, shared, _ = missions[role]
            about = ", ".join(self.said.get(word, word) for word in shared)
            parts.append(f"its mission is about {about} ({mission.id})")
        return role, " and ".join(parts)

    def _nobody(self) -> tuple[str, str]:
        if self.flow is not None or self.needed:
            return ANYBODY, "no agent is assigned to it: any agent can do it"
        return "", (
            "No flow, capability or mission shares words with the task. Add a flow (`agentx flow add`) or a "
            "capability (`agentx agent capability add`), or run the task as it is (`agentx run`)."
        )

    def _weight(self, role: str, missions: "_Missions") -> float:
        needed = [_works(item) for item in self.needed if role in self.owners(item)]
        useful = any(role in self.owners(item) and _works(item) for item in self.useful)
        mission = MISSION + missions[role][2] if role in missions else 0.0
        return sum(NEEDED if works else BROKEN for works in needed) + USEFUL * useful + mission

    def _fitting(self) -> "_Missions":
        """Return, by role, its mission that is most about the task, the words, and their share."""
        spread: Counter[str] = Counter()
        by_role: defaultdict[str, set[str]] = defaultdict(set)
        for item, own in self.missions:
            by_role[item.agent] |= own
        for own in by_role.values():
            spread.update(own)
        weight = {word: math.log(1 + len(by_role) / (spread[word] or 1)) for word in self.asked}
        found: _Missions = {}
        for item, own in self.missions:
            shared = sorted(self.asked & own)
            share = sum(weight[word] for word in shared) / (sum(weight.values()) or 1.0)
            before = found[item.agent][2] if item.agent in found else 0.0
            if (self.objects & own or len(shared) >= MISSION_WORDS) and share > before:
                found[item.agent] = item, shared, share
        return found


_Missions = dict[str, tuple[MemoryItem, list[str], float]]


def _objects(asked: str) -> set[str]:
    """Return the words of what a task acts on."""
    found: set[str] = set()
    for act in acts(asked, is_base_verb):
        found |= set(terms(asked[act.topic.start : act.topic.end])) - set(terms(act.head))
    return found


@cache
def _means() -> dict[str, int]:
    rows = enumerate(row.split() for row in _MEANS.split("\n"))
    return {term: number for number, row in rows for word in row for term in terms(word)}


def _rows_of(words: set[str]) -> set[int]:
    rows = _means()
    return {rows[word] for word in words if word in rows}


def _works(item: MemoryItem) -> bool:
    return not isinstance(item.detail, CapabilityDetail) or item.detail.works is not False
