"""Checks at the end of a run: a command that must follow a change, or must pass after one."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from agentx.synthesis.enforcement.breaches import Breach
from agentx.synthesis.memory.checks import FollowUpCheck, ProgramCheck
from agentx.synthesis.shell.command_line import ProgramCall, steps


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded call of a run.

    Attributes:
        paths: The files that it changed.
        command: The command line that it ran.
        succeeded: Whether the command exited with status 0.
    """

    paths: tuple[str, ...] = ()
    command: str = ""
    succeeded: bool = False


TryProgram = Callable[[str], str | None]
"""Runs a command: empty if it exits with status 0, else how it ended; ``None`` if it cannot be run."""


def missing_follow_up(check: FollowUpCheck, after: Sequence[RunStep], path: str) -> Iterator[Breach]:
    """Yield a breach if no step after the last change ran the command with success.

    >>> check = FollowUpCheck(command="make generate")
    >>> list(missing_follow_up(check, [RunStep(command="cd api && make -j4 generate", succeeded=True)], "a"))
    []
    """
    runs = [step for step in after if _runs(check.command, step.command)]
    if any(step.succeeded and _decides(check.command, step.command) for step in runs):
        return
    how = "did not succeed" if runs else "was not run"
    yield Breach(reason=f"`{check.command}` {how} after the last change of {path}.")


def failing_program(check: ProgramCheck, run: TryProgram) -> Iterator[Breach] | None:
    """Return a breach if the command fails, none if it passes; ``None`` if it cannot be run."""
    how = run(check.command)
    if how is None:
        return None
    return iter([Breach(reason=f"`{check.command}` {how}.")] if how else [])


def _runs(wanted: str, command: str) -> bool:
    """Return whether a command line runs every program of another one, each with at least its arguments."""
    return bool(command) and all(_found(one, command) for one in steps(wanted))


def _decides(wanted: str, command: str) -> bool:
    """Return whether the exit status of a command line is 0 only if the wanted programs succeed."""
    return all(
        any(
            call.follower in ("", "&&") and call.group_follower in ("", "&&") for call in _found(one, command)
        )
        for one in steps(wanted)
    )


def _found(wanted: ProgramCall, command: str) -> list[ProgramCall]:
    return [
        call
        for call in steps(command)
        if call.program == wanted.program and _in_order(wanted.arguments, call.arguments)
    ]


def _in_order(wanted: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether arguments occur among others, in their order."""
    rest = iter(given)
    return all(argument in rest for argument in wanted)
