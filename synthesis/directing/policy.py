"""Decide when to ask the director again: the reuse policy of the active directive, as pure code over history.

A condition looks at one event and decides whether it ends the directive. A program registers its own::

    @condition("inbox_full")
    def inbox_full(event: Event, argument: str) -> bool: ...

A directive names the condition in ``invalidate_on``. If the condition takes an argument, it follows a colon
(``tool_error:send_email``).
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import DirectiveFailed
from agentx.storage.events.types import Event, RunEnded, ToolCallExecuted, UserMessageSent
from agentx.synthesis.directing.instructions import is_thanks
from agentx.synthesis.memory.conclusions import Add, Concluded, Patch
from agentx.synthesis.memory.items import PREFIXES, Kind
from agentx.synthesis.state.state import DirectiveRecord, is_instruction

Condition = Callable[[Event, str], bool]
"""Returns whether an event ends a directive; the second argument is the text after the colon."""

CONDITIONS: dict[str, Condition] = {}
"""All registered conditions, by name."""

C = TypeVar("C", bound=Condition)


class Decision(msgspec.Struct, frozen=True):
    """Whether to ask the director before the next run.

    Attributes:
        cause: Number of the event that ended the directive; 0 if none did.
    """

    direct: bool
    why: str
    cause: int = 0


def condition(name: str) -> Callable[[C], C]:
    """Register a condition under a name.

    Raises:
        UsageError: The name is taken, empty, or has a colon, so that it looks like a name with an argument.
    """
    if not name or ":" in name or name in CONDITIONS:
        raise UsageError(
            f"A condition cannot be called {name!r}: it is taken, empty or has a colon. Choose another name."
        )

    def register(check: C) -> C:
        CONDITIONS[name] = check
        return check

    return register


def decide(serving: DirectiveRecord | None, events: Iterable[Event]) -> Decision:
    """Decide whether to ask the director before the next run.

    The events are those after ``serving.through`` that concern the directive, in order. A new instruction of
    the user always ends it. After a failure of the director, it is asked again before the next run.
    """
    if serving is None:
        return Decision(True, "there is no directive yet")
    always = (*serving.policy.invalidate_on, "user_instructions_changed")
    conditions = [name.partition(":") for name in dict.fromkeys(always)]
    for name, _, _ in conditions:
        if name not in CONDITIONS:
            unknown = f"nothing here knows the condition {name}, so the directive is not relied on"
            return Decision(True, unknown)
    for event in events:
        if isinstance(event.data, DirectiveFailed):
            return Decision(True, f"the director failed at event {event.seq}", event.seq)
        for name, colon, argument in conditions:
            if CONDITIONS[name](event, argument):
                return Decision(True, f"{name}{colon}{argument} at event {event.seq}", event.seq)
    limit, directive = serving.policy.valid_for_runs, f"the directive of event {serving.seq}"
    if serving.runs >= limit:
        return Decision(True, f"{directive} has served its {limit} run{'s' * (limit != 1)}")
    return Decision(False, f"{directive} serves: this is run {serving.runs + 1} of {limit}")


@condition("executor_failed")
def executor_failed(event: Event, _argument: str) -> bool:
    """Return whether a run failed or reached a limit."""
    return isinstance(event.data, RunEnded) and event.data.status in ("FAILED", "LIMIT_REACHED")


@condition("user_instructions_changed")
def user_instructions_changed(event: Event, _argument: str) -> bool:
    """Return whether the event is a user's instruction; a message that only thanks is none."""
    said = event.data
    return isinstance(said, UserMessageSent) and is_instruction(event) and not is_thanks(said.body.text)


@condition("tool_error")
def tool_error(event: Event, argument: str) -> bool:
    """Return whether a tool failed or was denied, other than as a repeat: the named tool, or any."""
    call = event.data
    if not isinstance(call, ToolCallExecuted) or call.repeats:
        return False
    return call.status != "SUCCEEDED" and argument in ("", call.tool)


@condition("hot_issue_opened")
def hot_issue_opened(event: Event, _argument: str) -> bool:
    """Return whether a check began to fail."""
    return _changed(event, "hot_issue", opened=True)


@condition("constraint_changed")
def constraint_changed(event: Event, _argument: str) -> bool:
    """Return whether a demand or rejection of the user, or the mission, changed."""
    return any(_changed(event, kind) for kind in _STANDING)


_STANDING: tuple[Kind, ...] = ("constraint", "rejection", "north_star")


def _changed(event: Event, kind: Kind, *, opened: bool = False) -> bool:
    """Return whether an item of this kind was added, or its text or status changed.

    With ``opened``, only an item that was added or became active again counts.
    """
    if not isinstance(event.data, Concluded):
        return False
    for change in event.data.changes:
        if isinstance(change, Add) and change.item.kind == kind and change.item.status == "active":
            return True
        if isinstance(change, Patch) and change.id.startswith(f"{PREFIXES[kind]}-"):
            fields = change.fields()
            if fields.get("status") == "active" or (not opened and fields.keys() & {"status", "text"}):
                return True
    return False
