"""What every agent needs at its start: rules, demands, flows, tools, lessons, and where the work stands.

It is the same for every agent, whatever its task, and ordered with the least changing part first: as the
beginning of a system prompt that part stays in a provider's prompt cache. The output of tools is quoted, and
no lesson is based on it alone.
"""

import msgspec

from agentx.context.assembler import TITLES as WORK_TITLES
from agentx.context.current_work import WorkPage
from agentx.context.rendering import Context, ContextItem, memory_line, on_one_line, reworded
from agentx.context.service import check_budget
from agentx.engine.engine import Engine
from agentx.engine.moment_parser import state_at
from agentx.synthesis.language.tokens import cut
from agentx.synthesis.memory.items import CapabilityDetail, FlowDetail, MemoryItem, sort_of
from agentx.synthesis.memory.policies import Section
from agentx.synthesis.memory.vitality import vitality
from agentx.synthesis.state.flows import standing
from agentx.synthesis.state.flows import told as record_of
from agentx.synthesis.state.state import State

BUDGET = 2_000
"""Default token budget."""

LESSONS = 20
"""Maximum number of lessons; the strongest ones with the highest vitality are chosen."""

TITLES: dict[Section, str] = {
    "mission": "Mission and rules",
    "rules": "What the user demands (holds for everything you write and say)",
    "rejections": "What the user ruled out (do not suggest it again)",
    "flows": "Flows (how things are done here; `agentx flow show ID` tells the steps)",
    "capabilities": "Capabilities (what exists here, and whether it works)",
    "lessons": "Lessons (from experience)",
    "problems": "Open problems (until the same check passes)",
    "state": WORK_TITLES["state"],
    "candidates": WORK_TITLES["candidates"],
    "stopped": WORK_TITLES["stopped"],
}

_OF_A_ROLE = ("north_star", "rule", "flow", "capability", "learning")
"""Kinds and sorts that may concern one agent only. The user's demands and rejections reach every agent."""

_SAID_TOKENS = 30


def boot(engine: Engine, agent: str = "", *, max_tokens: int = BUDGET, seq: int | None = None) -> Context:
    """Return what an agent is given at its start, including what concerns its role only.

    ``seq`` is the event whose state is shown; ``None`` for now.

    Raises:
        UsageError: The budget is not positive.
    """
    check_budget(max_tokens)
    state = engine.told(engine.snapshot()) if seq is None else state_at(engine, seq)
    return start_of(state, agent, max_tokens)


def start_of(state: State, agent: str, max_tokens: int) -> Context:
    """Do the same as :func:`boot` for a state."""
    own = {
        name: item
        for name, item in state.items.items()
        if sort_of(item) not in _OF_A_ROLE or item.agent in ("", agent)
    }
    page = WorkPage(
        msgspec.structs.replace(state, items=own),
        TITLES,
        max_tokens,
        more="agentx memory list",
        counted=frozenset(TITLES),
    )
    page.must(weak_rules=False)
    page.weak_rules()
    page.reserve_end()
    kept = page.reserve_work()
    listed = page.listed
    # None that only a tool's output supports
    known = (item for item in page.state.active("knowledge") if sort_of(item) == "learning")
    learned = [item for item in known if item.trust != "material"]
    learned.sort(
        key=lambda item: (-round(item.score * vitality(item, state.at), 1), item.created_seq, item.id)
    )
    lines = [
        *(_flow(item) for item in page.state.active("flow")),
        *(_capability(item) for item in page.state.active("capability")),
        *(
            memory_line(item, "lessons", "")
            if item.trust in ("user", "engine")
            else _with_facts(item, "lessons", "an agent's word")
            for item in learned[:LESSONS]
        ),
    ]
    for line in lines:
        if line.id not in listed:
            page.fit(line, line.text)
    page.held -= kept
    page.standing()
    page.rest(fill=True)
    page.end()
    return page.done()


def _flow(item: MemoryItem) -> ContextItem:
    detail = item.detail
    if not isinstance(detail, FlowDetail):
        return memory_line(item, "flows", "")
    calls = [f"“{on_one_line(trigger)}”" for trigger in detail.triggers]
    count, record = len(detail.steps), record_of(detail)
    works = "" if record == "never used" else "works in "
    facts = [
        f"when asked to {' or '.join(calls)}" if calls else "",
        f"{count} step{'s' * (count != 1)}",
        f"{'broken, ' * (standing(detail) == 'broken')}{works}{record}",
        "ask the user for approval first" if detail.needs_approval else "",
    ]
    return _with_facts(item, "flows", "; ".join(filter(None, facts)))


def _capability(item: MemoryItem) -> ContextItem:
    detail = item.detail
    if not isinstance(detail, CapabilityDetail):
        return memory_line(item, "capabilities", "")
    output = f": “{on_one_line(cut(detail.said, _SAID_TOKENS))}”" if detail.said else ""
    on = f" on {detail.checked_at[:10]}" if detail.checked_at else ""
    works = {True: f"worked{on}", False: f"did not work{on}{output}", None: "never tried"}[detail.works]
    return _with_facts(item, "capabilities", works)


def _with_facts(item: MemoryItem, section: Section, facts: str) -> ContextItem:
    """Render a memory item on a line, with additional facts about it."""
    line = memory_line(item, section, "")
    return reworded(line, f"{line.text} ({facts})")
