"""Composes commit messages: who did what, what else was recorded, and which events the commit holds.

A message is made from the events that the commit is the first to hold. The subject reports the most
significant of them; for a write, with the thought that led to it. The body lists the others, one per line.
The trailers tie the commit to the log (``AgentX-Event: 9-12``). Text from a model loses its newlines, because
it could forge a trailer, and characters that would truncate a message (NUL) or garble ``git log``.
"""

import re
from collections.abc import Sequence
from typing import Any

from agentx.recording.pipeline_messages import tell_pipeline
from agentx.storage.events.actor import Actor
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued, FieldExplained
from agentx.storage.events.pipeline_events import FileAmended, PipelineEnded, StageProved
from agentx.storage.events.schedule_events import DuePassed, ScheduleRemoved, ScheduleSet
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    ApprovalDecided,
    ArtifactChanged,
    CapabilityChecked,
    ContextProvided,
    Event,
    EventsPurged,
    FileChange,
    Purged,
    RunEnded,
    RunStarted,
    SourceScanned,
    TaskGraded,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
    WorkspaceCreated,
    WorkspaceForked,
    WriteReverted,
)
from agentx.storage.git.repository import HOST
from agentx.storage.text import one_line
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import HotIssueDetail, shorten

SUBJECT_CHARACTERS = 72
BODY_LINES = 40
WORDS = 60
"""Maximum number of words quoted from a message, a thought or a denial."""

_VERBS = {
    "write_file": "Edit",
    "edit_file": "Edit",
    "delete_file": "Delete",
    "add": "Add",
    "undo": "Undo",
    "restore": "Restore",
    "append_log": "Note in",
}
"""What each tool did to its files."""

NUMBERS = 10
"""Maximum number of purged events that are listed."""


def compose(
    events: Sequence[Event], *, actor: str = "", files: Sequence[str] = ()
) -> tuple[str, tuple[str, str]]:
    """Make a commit's message and author.

    Args:
        events: The events that the commit is the first to hold, in order.
        actor: Who acts; by default the actor of the most significant event.
        files: Files beside the log that the commit holds as well.

    Returns:
        The message, and name and address of the author.
    """
    told = [event for event in events if tell(event)]
    leading = max(told, key=lambda event: (rank(event), event.seq)) if told else None
    reason = _reason(leading, events) if leading else None
    subject = one_line(tell(leading)) if leading else _plain_subject(events, files)
    if reason:
        subject = f"{subject}: {one_line(shorten(_thought(reason), WORDS))}"
    author = actor or (leading.actor if leading else "engine:workspace")
    lines = [tell(event) for event in told if event not in (leading, reason)]
    if len(lines) > BODY_LINES:
        lines = [*lines[:BODY_LINES], f"and {len(lines) - BODY_LINES} more"]
    parts = [subject]
    if len(subject) > SUBJECT_CHARACTERS:
        parts = [subject[: SUBJECT_CHARACTERS - 1].rstrip() + "…", subject]
    if lines:
        parts.append("\n".join(f"- {one_line(line)}" for line in lines))
    if events:
        first, last = events[0].seq, events[-1].seq
        span = str(first) if first == last else f"{first}-{last}"
        parts.append(f"AgentX-Event: {span}\nAgentX-Actor: {one_line(author)}")
    return "\n\n".join(parts) + "\n", author_of(author)


def _reason(leading: Event, events: Sequence[Event]) -> Event | None:
    """Return the agent's last thought before a write: the reason for it."""
    if not (isinstance(leading.data, ToolCallExecuted) and leading.data.changes):
        return None
    thoughts = [
        event
        for event in events
        if _thought(event)
        and (event.actor, event.run) == (leading.actor, leading.run)
        and event.seq < leading.seq
    ]
    return thoughts[-1] if thoughts else None


def _thought(event: Event) -> str:
    return event.data.body.text.strip() if isinstance(event.data, AgentThoughtProcess) else ""


def _plain_subject(events: Sequence[Event], files: Sequence[str]) -> str:
    """Return the subject of a commit without events worth reporting."""
    if files:
        return f"Change {', '.join(files)}"
    return f"Record {len(events)} event{'s' * (len(events) != 1)}"


def author_of(actor: str) -> tuple[str, str]:
    """Return the Git identity of an actor, so that ``git blame`` and ``git shortlog`` show who did what.

    >>> author_of("agent:writer")
    ('agent:writer', 'writer@agent.agentx.invalid')
    """
    role, name = Actor.parse(actor)
    safe = "".join(c if c.isalnum() or c in "-._" else "-" for c in name or role)
    host = "".join(c if c.isalnum() or c == "-" else "-" for c in role) or "engine"
    shown = one_line(actor).replace("<", "(").replace(">", ")")
    # Git rejects a name without letters or digits.
    return shown if any(map(str.isalnum, shown)) else host, f"{safe or host}@{host}{HOST}"


def through(trailers: dict[str, str]) -> int:
    """Return the last event that a commit holds, by its trailers; 0 if it is not one of ours."""
    last = trailers.get("AgentX-Event", "").rpartition("-")[2]
    return int(last) if re.fullmatch("[0-9]{1,18}", last) else 0


def rank(event: Event) -> int:  # noqa: C901, PLR0912 - one line for each type of event
    """Return how significant an event is for the subject of a commit."""
    match event.data:
        case WorkspaceCreated() | WorkspaceForked() | EventsPurged():
            return 9
        case ToolCallExecuted(changes=changes) if changes:
            return 8
        case ArtifactChanged():
            return 8
        case StageProved(changes=changes):
            return 8 if changes else 3
        case PipelineEnded():
            return 6
        case ToolCallExecuted(status="DENIED"):
            return 7
        case Concluded(changes=changes) if any(map(_is_turn, changes)):
            return 7
        case TaskGraded() if event.actor.startswith("engine:"):
            return 1  # what the run did is more significant
        case AgentMessageSent(final=True) | TaskGraded():
            return 6
        case ToolCallExecuted(exit_code=int()) | UserMessageSent():
            return 5
        case Concluded(changes=changes) if changes:
            return 4
        case ContextProvided() | RunStarted() | RunEnded():
            return 1
        case _:
            return 2


def tell(event: Event) -> str:  # noqa: C901, PLR0912 - one line for each type of event
    """Describe an event in one line for the user; empty if it is not worth reporting."""
    match event.data:
        case WorkspaceCreated(title=title):
            return f"Create workspace: {title}"
        case WorkspaceForked(at=at):
            return f"Fork at event {at}"
        case UserMessageSent(body=body):
            return f"{event.actor} said: {shorten(body.text, WORDS)}"
        case AgentMessageSent(body=body, final=final):
            return f"{event.actor} {'answered' if final else 'said'}: {shorten(body.text, WORDS)}"
        case AgentThoughtProcess(body=body):
            return f"{event.actor} thought: {shorten(body.text, WORDS)}" if body.text else ""
        case ToolCallExecuted() as call:
            return _tell_call(call)
        case ToolCallRequested(tool=tool, awaits_approval=True):
            return f"{event.actor} asks for a person's word on {tool}"
        case ApprovalDecided(approved=approved, call_id=call_id):
            return f"{event.actor} {'approved' if approved else 'refused'} {call_id}"
        case ArtifactChanged(changes=changes):
            return f"Edit outside: {describe(changes)}"
        case WriteReverted(path=path):
            return f"Set back {path}: its write was cut off"
        case Concluded(extractor="maintenance", changes=changes) if changes:
            return f"Maintain memory: {len(changes)} item{'s' * (len(changes) != 1)}"
        case Concluded(changes=changes) if changes:
            return "; ".join(_tell_change(change) for change in changes[:3])
        case RunStarted(agent=agent, model=model):
            return f"Run {event.run} starts ({agent}, {model})"
        case RunEnded(status=status, steps=steps, reason=reason):
            after = f" after {steps} step{'s' * (steps != 1)}" if steps else ""
            why = f": {shorten(reason, WORDS)}" if reason and status != "COMPLETED" else ""
            return f"Run {event.run} ends: {status}{after}{why}"
        case TaskGraded(task=task, passed=passed, flow=flow):
            return f"Task {'passed' if passed else 'failed'}: {shorten(task, WORDS)}" + (
                flow and f" (by {flow})"
            )
        case CapabilityChecked(item=item, exit_code=exit_code):
            return f"Check {item}: {'it works' if exit_code == 0 else 'it does not work'}"
        case DirectiveIssued(summary=summary):
            return f"Direct: {shorten(summary, WORDS)}"
        case DirectiveFailed(error=error):
            return f"The director failed: {shorten(error, WORDS)}"
        case FieldExplained(field=field, resolver=resolver, value=value):
            return f"Explain the field {field}: {shorten(resolver or value, WORDS)}"
        case ScheduleSet(id=name, cron=cron, task=task):
            return f"Schedule {name} ({cron}): {shorten(task or 'heartbeat', WORDS)}"
        case ScheduleRemoved(id=name):
            return f"Remove the schedule {name}"
        case DuePassed(schedule=name, times=times, reason=reason):
            return f"Pass over {times} due time{'s' * (times != 1)} of {name}: {reason}"
        case FileAmended(path=path, reason=reason):
            return f"Amend {path}: {shorten(reason, WORDS)}"
        case SourceScanned(source=source, files=files):
            return f"Scan source {source}: {files} file{'s' * (files != 1)}"
        case EventsPurged(events=events, reason=reason):
            return f"Purge {_numbers(events)}" + (f": {reason}" if reason else "")
        case Purged():
            return f"{event.type} of event {event.seq} was purged"
        case _:
            return tell_pipeline(event)


def _tell_call(call: ToolCallExecuted) -> str:
    if call.status == "DENIED":
        rules = ", ".join(call.denied_by) or "the settings"
        reason = shorten(call.output.text.removeprefix("Denied. "), WORDS)
        return f"Deny {f'{call.tool} {_target(call.arguments)}'.rstrip()}, against {rules}: {reason}"
    if call.tool == "move_file" and call.changes:
        return f"Move {call.arguments.get('path')} to {call.arguments.get('to')}"
    if call.changes:
        created = call.tool == "write_file" and not call.changes[0].before
        verb = "Create" if created else _VERBS.get(call.tool, f"{call.tool} changed")
        return f"{verb} {describe(call.changes)}"
    if call.exit_code is not None:
        return f"{call.tool}: {'passed' if call.status == 'SUCCEEDED' else 'failed'} (exit {call.exit_code})"
    outcome = "" if call.status == "SUCCEEDED" else f" ({call.status.lower()})"
    return f"Call {call.tool} {_target(call.arguments)}".rstrip() + outcome


def _tell_change(change: Any) -> str:
    if isinstance(change, Add):
        item = change.item
        if isinstance(item.detail, HotIssueDetail):
            return f"Hot issue {item.id} opens: {_check_name(item.detail)} fails"
        state = "" if item.status == "active" else f" ({item.status})"
        return f"New {item.kind.replace('_', ' ')} {item.id}{state}: {item.short or shorten(item.text)}"
    if _is_turn(change):
        detail = change.detail
        return (
            f"Hot issue {change.id} closes: {_check_name(detail)} "
            f"{'passes' if detail.ended == 'passed' else 'is gone'}"
        )
    status = change.fields().get("status")
    return f"{change.id} is {status}" if status else f"{change.id} changed"


def _is_turn(change: Any) -> bool:
    """Return whether a hot issue opens or closes."""
    if isinstance(change, Add):
        return isinstance(change.item.detail, HotIssueDetail)
    fields = change.fields()
    return fields.get("status") == "resolved" and isinstance(fields.get("detail"), HotIssueDetail)


def _check_name(detail: HotIssueDetail) -> str:
    return detail.check.rpartition("::")[2]


def describe(changes: Sequence[FileChange]) -> str:
    """Describe changed files in a few words.

    >>> describe([FileChange("a.py"), FileChange("b.py"), FileChange("c.py"), FileChange("d.py")])
    'a.py, b.py and 2 more'
    """
    names = [change.path for change in changes]
    shown = 3 if len(names) == 3 else 2  # noqa: PLR2004 - "and 1 more" is longer than the name
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _numbers(events: Sequence[int]) -> str:
    shown = ", ".join(map(str, events[:NUMBERS]))
    more = f" and {len(events) - NUMBERS} more" if len(events) > NUMBERS else ""
    return f"event{'s' * (len(events) != 1)} {shown}{more}"


def _target(arguments: dict[str, Any]) -> str:
    for name in ("query", "path", "command", "source"):
        if arguments.get(name):
            return shorten(str(arguments[name]), 8)
    return ""
