"""Executors: whoever carries out a prompt. They get the prompt and tools, and nothing of the history."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from agentx.storage.events import RunStatus
from agentx.synthesis.model.port import Usage
from agentx.tools.base import ToolSet


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of carrying out a prompt.

    Attributes:
        status: How it ended.
        summary: What was done, in the executor's own words.
        reason: Why it did not complete, for a person.
        steps: How often a model was asked.
        usage: What that used.
    """

    status: RunStatus = "COMPLETED"
    summary: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = Usage()


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """All that an executor gets.

    Attributes:
        prompt: What to do.
        tools: What it may call, with :meth:`~agentx.tools.base.ToolSet.call`; each call is on record.
        time_limit_s: How long it may take; 0 for no limit.
    """

    prompt: str
    tools: ToolSet
    time_limit_s: float = 0.0


class Executor(Protocol):
    """Carries out a prompt."""

    @property
    def name(self) -> str:
        """Stands in ``RunStarted.model``."""
        ...

    def execute(self, assignment: Assignment) -> Outcome:
        """Carry it out; what it raises ends the run ``FAILED``."""
        ...


class Function(msgspec.Struct, frozen=True):
    """An executor that is a function of an assignment; what it returns is its summary, or its whole outcome."""

    name: str
    run: Callable[[Assignment], str | Outcome]

    def execute(self, assignment: Assignment) -> Outcome:
        """Call it."""
        said = self.run(assignment)
        return said if isinstance(said, Outcome) else Outcome(summary=said)
