"""The bounds of a run: steps, tokens, cost, time, and repetitions of the same call."""

import time

from agentx.agents.run_types import Limits
from agentx.storage.events.types import RunStatus
from agentx.synthesis.model.port import Usage
from agentx.synthesis.state.state import PendingCall

RAISE = "`agentx run` goes on, and limits.{} in agentx.toml allows more"
"""Tells the user how to raise a limit, by its name."""


class RunStops(Exception):  # not an error: a run ends
    """Ends a run from any place in the code.

    Attributes:
        status: How it ended.
        reason: One sentence for the user.
        waiting: The call that waits for approval.
    """

    def __init__(self, status: RunStatus, reason: str, waiting: PendingCall | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.waiting = waiting


class RunLimiter:
    """Counts what a run uses from now on, and stops it where a limit is reached, with advice to raise it.

    Attributes:
        steps: Number of model calls so far.
        usage: Their tokens and costs.
    """

    def __init__(self, limits: Limits, advice: str = RAISE) -> None:
        self.steps = 0
        self.usage = Usage()
        self._limits = limits
        self._advice = advice
        self._until = time.monotonic() + limits.max_time_s
        self._last = ("", "")
        self._repeats = 0

    @property
    def answer_time_s(self) -> float:
        """Time limit of the next answer, in seconds."""
        return min(self._limits.answer_time_s, self._until - time.monotonic())

    def begin_step(self) -> None:
        """Count a model call.

        Raises:
            RunStops: The limit of steps, tokens, costs or time is reached.
        """
        limits, used = self._limits, self.usage
        tokens = used.prompt_tokens + used.completion_tokens
        self._stop_if(self.steps >= limits.max_steps, f"{limits.max_steps} steps", "max_steps")
        self._stop_if(tokens >= limits.max_tokens, f"{limits.max_tokens:,} tokens", "max_tokens")
        self._stop_if(used.cost_usd >= limits.max_cost_usd, f"{limits.max_cost_usd:g} USD", "max_cost_usd")
        self.check_time()
        self.steps += 1

    def has_room(self) -> bool:
        """Return whether another model call is within the limits."""
        limits, used = self._limits, self.usage
        return (
            self.steps < limits.max_steps
            and used.prompt_tokens + used.completion_tokens < limits.max_tokens
            and used.cost_usd < limits.max_cost_usd
            and time.monotonic() < self._until
        )

    def check_time(self) -> None:
        """Stop the run where its time is up.

        Raises:
            RunStops: The time is up.
        """
        self._stop_if(time.monotonic() >= self._until, f"{self._limits.max_time_s:g} seconds", "max_time_s")

    def spend(self, usage: Usage) -> None:
        """Count what a model call used."""
        self.usage += usage

    def check_repeats(self, name: str, arguments: str) -> None:
        """Stop an agent that repeats itself.

        Raises:
            RunStops: It has made the same call too often in a row.
        """
        self._repeats = self._repeats + 1 if (name, arguments) == self._last else 1
        self._last = (name, arguments)
        if self._repeats > self._limits.max_repeats:
            raise RunStops(
                "LIMIT_REACHED",
                f"It went round in circles: {name[:60]} with the same arguments "
                f"{self._repeats} times in a row.",
            )

    def _stop_if(self, reached: bool, what: str, name: str) -> None:  # noqa: FBT001 - reads as a sentence
        if reached:
            raise RunStops("LIMIT_REACHED", f"It has used its {what}; {self._advice.format(name)}.")
