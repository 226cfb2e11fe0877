"""What a hook may tell of the record: what tools returned, files hold and agents report is named, not shown.

Most hosts hand on what a hook says in the voice of the system or the developer. What anyone could have
written must not speak in that voice: of it only stands what it is, and where to read it.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from agentx.context.rendering import ContextItem, reworded
from agentx.engine.moment_parser import events_at
from agentx.storage.events.actor import Actor
from agentx.storage.events.types import AgentMessageSent, Event, ToolCallExecuted, UserMessageSent
from agentx.storage.text import one_line
from agentx.synthesis.gates.action_gate import GateVerdict, Line
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem

if TYPE_CHECKING:
    from agentx.workspace import Workspace

HOW = "These are only named: the tool `search` of agentx shows what they say."
"""Stands below the title of what is recalled, if something in it is only named."""

_EVENT = re.compile(r"event (\d+)")
_CHECK_CHARACTERS = 200


def named(ws: "Workspace", items: Sequence[ContextItem], run: str) -> list[ContextItem]:
    """Return items of a context as a hook may tell them.

    Args:
        ws: The workspace.
        items: The items.
        run: The session that is told: its own answers are its own words.
    """
    seqs = {int(found[1]) for item in items if (found := _EVENT.match(item.source))}
    events = {event.seq: event for event in events_at(ws.engine.log, seqs)}
    return [_named(ws, item, events, run) for item in items]


def _named(ws: "Workspace", item: ContextItem, events: dict[int, Event], run: str) -> ContextItem:
    memory = ws.engine.log.state.items
    known = memory.get(item.id) or memory.get(_symbol(item))
    found = _EVENT.match(item.source)
    event = events.get(int(found[1])) if found else None
    if known is not None and item.section == "problems":
        return reworded(item, _problem(known)) if isinstance(known.detail, HotIssueDetail) else item
    if known is not None:
        # An agent's notes of where the work stands are told at a start; recalled, they are but reports.
        told = ("user", "engine") if item.section == "recalled" else ("user", "engine", "agent")
        sort = known.kind.replace("_", " ")
        return item if known.trust in told else reworded(item, f"- [{known.id}] {sort} ({known.trust})")
    if item.kind == "tool" and item.section == "state" and event is not None:
        tool = getattr(event.data, "tool", "a call")
        return reworded(
            item, f"- {tool} was begun (event {event.seq}) and has no result: its outcome is unknown."
        )
    if item.section not in ("recalled", "stopped") or item.kind == "run":
        return item
    users = event is not None and Actor.parse(event.actor).is_user
    own = event is not None and item.section == "stopped" and event.run == run
    if own or (users and "\n" not in item.text.strip()):
        return item
    where = item.source.partition(" (")[0]  # without a heading of the file
    return reworded(item, f"- {where}: {_what(event)}" if event is not None else f"- {where}")


def named_verdict(ws: "Workspace", verdict: GateVerdict) -> GateVerdict:
    """Return a verdict whose notes only name scripts of the workspace, and what tools or models reported."""
    items = ws.engine.log.state.items

    def line(one: Line) -> Line:
        known = items.get(one.id)
        reported = known is not None and known.trust in ("reported", "material")
        return msgspec.structs.replace(one, text="", why="") if reported or one.kind == "script" else one

    parts = (msgspec.structs.replace(one, lines=tuple(map(line, one.lines))) for one in verdict.sections)
    return msgspec.structs.replace(verdict, sections=tuple(parts))


def _symbol(item: ContextItem) -> str:
    """Return the id of a recalled memory item, which its line begins with."""
    return item.text.partition("[")[2].partition("]")[0] if item.kind == "memory" else ""


def _problem(item: MemoryItem) -> str:
    assert isinstance(item.detail, HotIssueDetail)
    check = one_line(item.detail.check)[:_CHECK_CHARACTERS]
    state = "fails" if not item.detail.silenced else "is not shown to pass"
    seq = item.detail.last_seq or item.created_seq
    return f"- [{item.id}] {item.detail.runner}: {check} {state} (event {seq})"


def _what(event: Event) -> str:
    """Return what an event holds, in words of our own."""
    match event.data:
        case ToolCallExecuted(tool=tool, status=status, exit_code=code):
            exited = f", exit status {code}" if code else ""
            return f"what the tool {tool} returned ({status.lower()}{exited})"
        case AgentMessageSent(final=True):
            return f"an answer of {event.actor}"
        case AgentMessageSent():
            return f"a message of {event.actor}"
        case UserMessageSent():
            return "a message of the user, of several lines"
    return "a record of the host"
