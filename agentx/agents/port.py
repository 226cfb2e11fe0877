"""What a run is given and what it gives back: limits, someone who watches, someone to ask, the result."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from agentx.config import Config
from agentx.storage.events.types import RunStatus
from agentx.synthesis.gates.enforcement import Violation
from agentx.synthesis.model.port import Reply, ToolCall, Usage
from agentx.synthesis.state.state import PendingCall

if TYPE_CHECKING:
    from agentx.context.assembler import Context
    from agentx.tools.toolset import ToolResult


class Approval(msgspec.Struct, frozen=True):
    """A person's word on a call that waits for it.

    Attributes:
        approved: Whether it may run.
        reason: Why, or why not, in their words: the agent reads it, and memory keeps it. Empty for none.
    """

    approved: bool
    reason: str = ""


AskPerson = Callable[[PendingCall], Approval]
"""Asks the person at the terminal whether a call may run."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may use; it ends with ``LIMIT_REACHED`` when one is reached.

    Attributes:
        max_steps: Calls of the model.
        max_tokens: Tokens of all prompts and answers together.
        max_cost_usd: Cost, as far as the provider's price is known.
        max_time_s: Duration.
        max_repeats: How often the same call may be made in a row.
        context_tokens: Size of the context at each step.
        conversation_tokens: Size of the conversation beside it, about; beyond, its oldest results are shortened.
        answer_time_s: Duration of one answer of the model.
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
        """The limits that ``agentx.toml`` sets."""
        said = config.limits
        return cls(
            max_steps=said.max_steps,
            max_tokens=said.max_tokens,
            max_cost_usd=said.max_cost_usd,
            max_time_s=said.max_time_s,
            context_tokens=said.context_tokens,
            answer_time_s=config.model.timeout_s,
        )


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        run: Its id.
        answer: The model's answer; empty where there is none.
        reason: One sentence for a person; empty where the status says it all.
        violations: What the delivered answer breaks, although it was sent back once.
        waiting: The call that waits for a person's word.
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
    """Is told what happens in a run while it happens; this one ignores it all."""

    def run_started(self, run: str, model: str, message: str, *, resumed: bool) -> None:
        """A run began, or went on."""

    def step_started(self, number: int, context: "Context") -> None:
        """The model is about to be asked, with this context."""

    def text_arrived(self, text: str) -> None:
        """Some words of the model."""

    def reply_ended(self, reply: Reply) -> None:
        """The model's reply is whole: a thought where it calls tools, otherwise an answer."""

    def tool_started(self, call: ToolCall) -> None:
        """A tool is about to run."""

    def tool_ended(self, call: ToolCall, result: "ToolResult") -> None:
        """A tool answered."""

    def answer_sent_back(self, violations: Sequence[Violation], objection: str) -> None:
        """An answer was not accepted; without violations it was empty or cut off."""

    def run_ended(self, result: RunResult) -> None:
        """The run is over."""
