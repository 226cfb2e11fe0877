"""Route a task to an agent: find the matching flow, the capabilities it needs, and the agent that has them.

Nothing is guessed: an agent is named only if a flow, a capability or a mission of its role shares words with
the task.
"""

import shlex
from collections.abc import Sequence

import msgspec

from agentx.synthesis.memory.items import CapabilityDetail, FlowDetail, MemoryItem
from agentx.synthesis.state.flows import FlowMatch, terms
from agentx.synthesis.state.state import State

ENOUGH = 0.5
"""Share of a capability's words from which it is needed."""

MISSION_WORDS = 2
"""Number of words shared with a mission from which a task goes to its agent, if nothing else matches."""

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
    wanted = set(terms(asked))
    if flow is not None and isinstance(flow.item.detail, FlowDetail):
        wanted |= {word for text in (flow.item.text, *flow.item.detail.steps) for word in terms(text)}
    own = {item.id: set(terms(item.text)) for item in state.active("capability")}
    enough = {name for name, words in own.items() if words and len(wanted & words) / len(words) >= ENOUGH}
    needed = [item for item in state.active("capability") if item.id in enough]
    agent, why = _agent(state, asked, flow, needed)
    if not agent:
        return Dispatch(flow=None, agent="", why=why)
    best: dict[str, Need] = {}
    for item in needed:
        need = Need(item=item, has=item.agent in ("", agent))
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


def _agent(state: State, asked: str, flow: FlowMatch | None, needed: Sequence[MemoryItem]) -> tuple[str, str]:
    """Return the role, and the reason for choosing it."""
    if flow is not None and flow.item.agent:
        return flow.item.agent, f"the flow {flow.item.id} is its own"
    own = [item for item in needed if item.agent]
    if own:
        roles = list(dict.fromkeys(item.agent for item in own))
        # The role with the most working capabilities; of equal ones, the first named.
        role = max(roles, key=lambda one: (_count(own, one, works=True), _count(own, one), -roles.index(one)))
        return role, f"it has {', '.join(item.text for item in own if item.agent == role)}"
    words = set(terms(asked))
    missions = (item for item in state.active("north_star") if item.agent)
    shared = {item.id: len(words & set(terms(item.text))) for item in missions}
    nearest = max(shared, key=lambda name: shared[name], default="")
    if nearest and shared[nearest] >= MISSION_WORDS:
        return state.items[nearest].agent, f"it is what its mission is about ({nearest})"
    if flow is not None or needed:
        return ANYBODY, "no agent is assigned to it: any agent can do it"
    return "", (
        "No flow, capability or mission shares words with the task. Add a flow (`agentx flow add`) or a "
        "capability (`agentx agent capability add`), or run the task as it is (`agentx run`)."
    )


def _count(items: Sequence[MemoryItem], role: str, *, works: bool = False) -> int:
    return sum(
        item.agent == role
        and (not works or not isinstance(item.detail, CapabilityDetail) or item.detail.works is not False)
        for item in items
    )
