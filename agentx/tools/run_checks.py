"""Evaluate the checks of rules at the end of a run: commands that must follow a change, or pass after one."""

from collections.abc import Iterable, Iterator
from itertools import chain

from agentx.config import CheckSection
from agentx.engine.engine import Engine
from agentx.engine.moment_parser import events_at
from agentx.quality.sandbox import isolation_for, run_in_copy
from agentx.storage.events.types import Event, ToolCallExecuted, changes_of
from agentx.synthesis.enforcement.evaluate import Evaluation, evaluate_run
from agentx.synthesis.enforcement.runs import RunStep
from agentx.synthesis.memory.checks import FollowUpCheck, ProgramCheck
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem, checks_of
from agentx.tools.quality_tools import sandbox_policy
from agentx.trust.trust import Restricted


def has_run_checks(engine: Engine) -> bool:
    """Return whether an active rule has a check at the end of a run."""
    late = ProgramCheck | FollowUpCheck
    return any(isinstance(check, late) for item in engine.checked() for check in checks_of(item))


def evaluate_end(
    engine: Engine, events: Iterable[Event], message: str, *, programs: bool = True
) -> tuple[Evaluation, tuple[str, ...]]:
    """Evaluate the checks at the end of a run.

    Args:
        engine: The workspace's engine.
        events: The events of the run.
        message: The user's message that it works on.
        programs: Whether to run the commands of checks; without them they are not evaluated.

    Returns:
        The evaluation, and a note for each command that could not be run.
    """
    unchecked: list[str] = []
    outcomes: dict[str, str | None] = {}

    def run(command: str) -> str | None:
        if command not in outcomes:
            try:
                outcomes[command] = _outcome(engine, command) if programs else None
            except Restricted as error:
                outcomes[command] = None
                unchecked.append(f"`{command}` could not be checked: {error}")
        return outcomes[command]

    evaluation = evaluate_run(engine.checked(), list(_steps(events)), run, message=message)
    return evaluation, tuple(unchecked)


def failing_checks(engine: Engine, run: str, message: str = "", *, since: int = 0) -> list[MemoryItem]:
    """Return the open problems that a run answers for, whenever they were opened.

    These are the checks that failed in it or in its subagents, and those that its task names.

    Args:
        engine: The workspace's engine.
        run: The run.
        message: The user's message that it works on.
        since: Its beginning: what opened later in no run at all counts as well.
    """
    found = [(item, item.detail) for item in engine.log.state.active("hot_issue")]
    issues = [(item, detail) for item, detail in found if isinstance(detail, HotIssueDetail)]
    failed = {item.id: {detail.last_seq, *(one.seq for one in item.evidence)} for item, detail in issues}
    runs = {event.seq: event.run for event in events_at(engine.log, chain.from_iterable(failed.values()))}

    def own(seq: int) -> bool:
        name = runs.get(seq, run)
        return name == run or name.startswith(f"{run}/") or (not name and seq > since)

    said = message.casefold()
    return [
        item
        for item, detail in issues
        if any(map(own, failed[item.id])) or any(name.casefold() in said for name in _names(detail))
    ]


def _names(issue: HotIssueDetail) -> Iterator[str]:
    """Yield what a message may call a check: its name, its file, with and without the directories."""
    for name in (issue.check, issue.check.rpartition("::")[2], issue.path, issue.suite):
        yield from (one for one in (name, name.rpartition("/")[2]) if len(one) >= _NAME_CHARACTERS)


_NAME_CHARACTERS = 5
"""A shorter name may be any word of a message."""


def _steps(events: Iterable[Event]) -> Iterator[RunStep]:
    for event in events:
        if isinstance(event.data, ToolCallExecuted):
            yield RunStep(
                paths=tuple(made.path for made in changes_of(event)),
                command=event.data.command,
                succeeded=event.data.status == "SUCCEEDED" and event.data.exit_code == 0,
            )


def _outcome(engine: Engine, command: str) -> str:
    """Run a command in a copy of the artifacts, whose changes are dropped; empty if it passes."""
    section = CheckSection(command=command)
    policy = sandbox_policy(engine, "the check of a rule")
    if isolation_for(policy)[0] == "none":
        engine.trust.require_commands()
    engine.edits.scan(noticed="scan")
    result = run_in_copy(
        engine.artifacts.root,
        command,
        timeout_s=section.timeout_s,
        max_output_bytes=section.max_output_bytes,
        policy=policy,
    )
    if result.timed_out:
        return f"was ended after {section.timeout_s:g} s"
    return "" if result.exit_code == 0 else f"ended with exit status {result.exit_code}"
