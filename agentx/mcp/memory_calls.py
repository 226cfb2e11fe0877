"""The tools of the default profile: what is known, what happened, and what is to be remembered."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast

import msgspec

from agentx.mcp.catalogue import (
    MOST_ITEMS,
    CheckWanted,
    ContextWanted,
    HistoryWanted,
    MemoryWanted,
    RememberWanted,
    SearchWanted,
    SettleWanted,
    TasksWanted,
)
from agentx.mcp.messages import McpAnswer, UserQuestion
from agentx.memory import editing, remembering
from agentx.policy import approvals
from agentx.storage.errors import UsageError
from agentx.storage.events.types import AgentMessageSent, Event, UserMessageSent
from agentx.storage.text import one_line, shorten
from agentx.synthesis.judgement.settling import SettleVerdict
from agentx.synthesis.memory.items import MemoryItem, followed_from, status_in_words
from agentx.workspace import Workspace

_WINDOW = 8
_LIST_WORDS = 40
_EVIDENCE = 10

NEEDS_WORDS = ("constraint", "rejection")
"""Kinds that only the user's own words make."""


def context(ws: Workspace, given: ContextWanted, agent: str) -> McpAnswer:
    """Return what the agent must not forget and what is relevant, and what it may settle."""
    made = ws.get_relevant_context(given.message, max_tokens=given.max_tokens, tier=given.tier)
    parts = [made.text]
    if ws.config.memory.settle and (waiting := ws.to_settle(given.message, agent=agent)):
        lines = "\n".join(one.render() for one in waiting)
        parts.append(f"## To settle (call `settle` for each that you can judge)\n{lines}\n")
    if made.omitted:
        parts.append(
            f"[{len(made.omitted)} left out for want of room: raise max_tokens, or call `search` or "
            "`read_memory`.]\n"
        )
    return McpAnswer(text="\n".join(parts))


def search(ws: Workspace, given: SearchWanted, _agent: str) -> McpAnswer:
    """Return the passages that were found, each with its place."""
    arguments: dict[str, Any] = {"query": given.query, "k": given.k, "path": given.path}
    if given.kind:
        arguments["kind"] = given.kind
    found = ws.tools.body("search_memory")(ws.tools, None, **arguments)
    return McpAnswer(text=found.render())


def remember(ws: Workspace, given: RememberWanted, agent: str, *, may_ask: bool) -> McpAnswer:
    """Remember something; the user's trust is for what a recorded message of the user proves."""
    unproven = not remembering.is_proven(ws.engine, given.quote)
    if unproven and may_ask and (given.quote or given.kind in NEEDS_WORDS):
        text = one_line(given.text)
        question = f"Remember this as yours ({given.kind}, holds until you end it)?\n\n{text}"
        return McpAnswer(ask=UserQuestion(text=question, remember=(given.kind, text)))
    kept = remembering.remember(ws.engine, given.kind, given.text, given.quote, by=f"agent:{agent}")
    return McpAnswer(text=kept.render())


def settle(ws: Workspace, given: SettleWanted, agent: str) -> McpAnswer:
    """Apply the agent's verdict on a candidate, as far as the user's words prove it."""
    if not ws.config.memory.settle:
        raise UsageError(
            "Settling by agents is off (memory.settle); the user settles: `agentx memory review`."
        )
    verdict = SettleVerdict(**msgspec.structs.asdict(given))
    settled = ws.settle_candidates([verdict], by=f"agent:{agent}")
    return McpAnswer(text=settled.render(), failed=bool(settled.refused))


def check(ws: Workspace, given: CheckWanted, agent: str) -> McpAnswer:
    """Return the gate's verdict on an action."""
    verdict = ws.gates.before(given.action, tool=given.tool, arguments=given.arguments, agent=agent)
    return McpAnswer(text=verdict.text)


def tasks(ws: Workspace, given: TasksWanted, _agent: str) -> McpAnswer:
    """Return open tasks, failing checks and calls that wait."""
    state = ws.state
    parts = [
        _part("Open tasks", list(state.active("task")), "read_memory kind=task"),
        _part("Failing checks", list(state.active("hot_issue")), "read_memory kind=hot_issue"),
    ]
    if given.done:
        closed = [*state.active("task", status="closed"), *state.active("task", status="retired")]
        parts.append(_part("Done or dropped", closed, "read_memory kind=task status=closed"))
    waiting = [
        f"- {call.call_id}: {one_line(call.tool)}, waits for the user: `agentx approve {call.call_id}`"
        for call in approvals.waiting(ws.engine)
    ]
    unknown = [
        f"- {call.call_id}: {one_line(call.tool)}, begun; nobody knows whether it was done"
        for call in state.pending.values()
        if not call.awaits_approval
    ]
    for title, lines in (("Waiting for approval", waiting), ("Outcome unknown", unknown)):
        parts += ["\n".join([f"## {title}", *lines[:MOST_ITEMS]])] * bool(lines)
    return McpAnswer(text="\n\n".join(filter(None, parts)) or "Nothing is open.")


def _part(title: str, items: list[MemoryItem], rest: str) -> str:
    if not items:
        return ""
    lines = [_line(item) for item in items[-MOST_ITEMS:]]
    more = [f"[{len(items) - len(lines)} older ones: {rest}]"] if len(items) > len(lines) else []
    return "\n".join([f"## {title}", *lines, *more])


def _line(item: MemoryItem) -> str:
    status = "" if item.status == "active" else f" ({status_in_words(item)})"
    trust = "" if item.trust == "user" else f", trust {item.trust}"
    return f"- [{item.id}] {item.kind}{trust}{status}: {one_line(shorten(item.text, _LIST_WORDS))}"


def history(ws: Workspace, given: HistoryWanted, _agent: str) -> McpAnswer:
    """Return events, one line each, or one event in full."""
    if given.seq:
        event = next(iter(ws.events(given.seq - 1)), None)
        if event is None or event.seq != given.seq:
            raise UsageError(f"Event {given.seq} does not exist; the latest is {ws.state.seq}.")
        return McpAnswer(text=_in_full(ws, event))
    if given.after >= 0:
        found = list(islice(_matching(ws.events(given.after), given.type), given.limit))
        more = f"[More: history after={found[-1].seq}]" if len(found) == given.limit else ""
    else:
        found = list(_latest(ws, given))
        begin = found[0].seq if found else 1
        more = f"[Earlier: history after={max(0, begin - 1 - 2 * given.limit)}]" if begin > 1 else ""
    lines = [line_of(event) for event in found] or ["No such event."]
    return McpAnswer(text="\n".join(filter(None, [*lines, more])))


def _latest(ws: Workspace, given: HistoryWanted) -> Iterable[Event]:
    """Return the latest events that match; only the end of the log is read if it has enough of them."""
    seq, window = ws.state.seq, _WINDOW * given.limit
    while True:
        found = deque(_matching(ws.events(max(0, seq - window)), given.type), maxlen=given.limit)
        if len(found) == given.limit or window >= seq:
            return found
        window *= _WINDOW


def _matching(events: Iterable[Event], wanted: str) -> Iterator[Event]:
    return (event for event in events if (event.type == wanted if wanted else event.describe()))


def line_of(event: Event) -> str:
    """Return an event in one line."""
    text = one_line(event.describe()).removeprefix(f"{event.actor} ") or event.type
    return f"{event.seq} {event.at[:19].replace('T', ' ')} {one_line(event.actor)}: {text}"


def _in_full(ws: Workspace, event: Event) -> str:
    data = event.data
    if isinstance(data, UserMessageSent | AgentMessageSent):
        return f"{line_of(event)}\n\n{ws.read_body(data.body)}"
    return f"{line_of(event)}\n\n{msgspec.json.format(msgspec.json.encode(data), indent=1).decode()}"


def read_memory(ws: Workspace, given: MemoryWanted, _agent: str) -> McpAnswer:
    """Return one item with what it rests on, or a page of items."""
    if given.id:
        return McpAnswer(text=shown(editing.find(ws.engine, given.id, ws.told)))
    status = None if given.status == "all" else given.status
    items = ws.memory(cast("Any", given.kind or None), status=status)
    ids = [item.id for item in items]
    if given.after and given.after not in ids:
        raise UsageError(
            f"No item {one_line(given.after)!r} is in this list; leave out `after` to begin anew."
        )
    begin = ids.index(given.after) + 1 if given.after else 0
    page = items[begin : begin + MOST_ITEMS]
    left = len(items) - begin - len(page)
    lines = [_line(item) for item in page] or ["No such item."]
    more = [f"[{left} more: the same with after={page[-1].id}]"] if left else []
    return McpAnswer(text="\n".join([*lines, *more]))


def shown(item: MemoryItem) -> str:
    """Return an item with everything that an agent may want to know of it."""
    evidence = [f"- event {one.seq}: “{one_line(one.quote)}”" for one in item.evidence[-_EVIDENCE:]]
    left = len(item.evidence) - len(evidence)
    rows = {
        "status": status_in_words(item),
        "trust": item.trust,
        "until": item.until,
        "worded by": item.worded_by,
        "reason": item.reason,
        "followed from": followed_from(item),
        "answers": item.answers.quote if item.answers else "",
        "perhaps ended by": item.perhaps_ended_by[-1].quote if item.perhaps_ended_by else "",
        "links": ", ".join(f"{link.relation} {link.target}" for link in item.links),
    }
    facts = [f"{name}: {one_line(value)}" for name, value in rows.items() if value]
    more = [f"[{left} earlier ones]"] if left else []
    return "\n".join([f"[{item.id}] {item.kind}: {item.text}", *facts, "rests on:", *evidence, *more])
