"""Types that a run takes and returns: limits, observer, approval callback, result."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from agentx.config import Config
from agentx.storage.events.types import RunStatus
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.synthesis.model.port import Reply, ToolCall, Usage
from agentx.synthesis.state.state import PendingCall

if TYPE_CHECKING:
    from agentx.context.assembler import Context
    from agentx.tools.toolset import ToolResult


class Approval(msgspec.Struct, frozen=True):
    """The user's decision on a call that waits for approval.

    Attributes:
        approved: Whether it may run.
        reason: The user's reason, which the agent reads and memory keeps; empty for none.
    """

    approved: bool
    reason: str = ""


AskPerson = Callable[[PendingCall], Approval]
"""Asks the user at the terminal whether a call may run."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a run; it ends with ``LIMIT_REACHED`` when one is reached.

    Attributes:
        max_steps: Maximum number of model calls.
        max_tokens: Tokens of all prompts and answers together.
        max_cost_usd: Costs in US dollars, as far as the provider's price is known.
        max_time_s: Duration in seconds.
        max_repeats: Maximum number of the same call in a row.
        context_tokens: Size of the context at each step.
        conversation_tokens: Approximate size of the conversation, without the context. Beyond it, the oldest
            results are shortened.
        answer_time_s: Duration of one answer of the model, in seconds.
    """

    max_steps: int = 40
    max_tokens: int = 400_000
    max_cost_usd: float = 5.0
    max_time_s: float = 1_800.0
    max_repeats: int = 4
    context_tokens: int = 8_000
    conversation_tokens: int = 80_000
    answer_time_s: float = 120.0

    @classmethod
    def of(cls, config: Config) -> "Limits":
        """Return the limits that ``agentx.toml`` sets."""
        limits = config.limits
        return cls(
            max_steps=limits.max_steps,
            max_tokens=limits.max_tokens,
            max_cost_usd=limits.max_cost_usd,
            max_time_s=limits.max_time_s,
            context_tokens=limits.context_tokens,
            answer_time_s=config.model.timeout_s,
        )


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        run: Its id.
        answer: The model's answer; empty where there is none.
        reason: One sentence for the user; empty where the status is enough.
        violations: Rules that the delivered answer breaks, although it was sent back once.
        waiting: The call that waits for approval.
    """

    run: str
    status: RunStatus
    answer: str = ""
    reason: str = ""
    steps: int = 0
    usage: Usage = Usage()
    violations: tuple[Violation, ...] = ()
    waiting: PendingCall | None = None


class Observer:
    """Is notified of the events of a run as they happen; this base class ignores them."""

    def run_started(self, run: str, model: str, message: str, *, resumed: bool) -> None:
        """A run started or resumed."""

    def step_started(self, number: int, context: "Context") -> None:
        """The model is about to be called, with this context."""

    def text_arrived(self, text: str) -> None:
        """Some text of the model arrived."""

    def reply_ended(self, reply: Reply) -> None:
        """The model's reply is complete: a thought where it calls tools, otherwise an answer."""

    def tool_started(self, call: ToolCall) -> None:
        """A tool is about to run."""

    def tool_ended(self, call: ToolCall, result: "ToolResult") -> None:
        """A tool returned."""

    def answer_sent_back(self, violations: Sequence[Violation], objection: str) -> None:
        """An answer was rejected; without violations, it was empty or cut off."""

    def run_ended(self, result: RunResult) -> None:
        """The run is over."""
