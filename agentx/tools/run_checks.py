"""Evaluate the checks of rules at the end of a run: commands that must follow a change, or pass after one."""

from collections.abc import Iterable, Iterator

from agentx.config import CheckSection
from agentx.engine.engine import Engine
from agentx.quality.sandbox import isolation_for, run_in_copy
from agentx.storage.events.types import Event, ToolCallExecuted, changes_of
from agentx.synthesis.enforcement.evaluate import Evaluation, evaluate_run
from agentx.synthesis.enforcement.runs import RunStep
from agentx.synthesis.memory.checks import FollowUpCheck, ProgramCheck
from agentx.synthesis.memory.items import checks_of
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
