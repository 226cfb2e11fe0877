"""What a pipeline may use: agents that are sent, tokens and US dollars. It is looked at before each agent is sent.

Those at work have not used yet what they will. For them stands what the plan estimates, so that a limit is not overrun because
many are at work at once; who would come next waits until one of them has ended, and what it used is known.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import msgspec

from agentx.pipelines.costs import Price, price_in, takes_of
from agentx.synthesis.pipelines.definition.plan import Plan, Step
from agentx.synthesis.pipelines.dispatching.estimates import Estimator
from agentx.synthesis.pipelines.running.progress import Progress

_LOOK_UP_S = 0.5
"""Who waits looks up so often whether a person wants it all to stop."""


class Leave(msgspec.Struct):
    """Whether one more agent may be sent.

    Attributes:
        refused: Why not; empty where it may.
        sent: Whether it was; who could not be sent after all counts as none.
    """

    refused: str = ""
    sent: bool = False


class Allowance:
    """Counts what a pipeline uses against its limits; many threads may ask at once.

    Args:
        plan: The pipeline.
        stopped: Whether nobody more is to be sent, whatever is left.
    """

    def __init__(self, plan: Plan, stopped: Callable[[], bool]) -> None:
        self._plan = plan
        self._limits = plan.pipeline.limits
        self._progress = Progress("")
        self._stopped = stopped
        self._sent = 0
        self._at_work: dict[int, tuple[int, float]] = {}
        self._prices: dict[str, Price | None] = {}
        self._ended = threading.Condition()

    def begin(self, progress: Progress) -> None:
        """Count from what was used so far, which others keep up."""
        self._progress, self._sent = progress, progress.dispatches

    def reached(self) -> str:
        """The limit that is reached, in words; empty for none."""
        return self._reached(0, 0.0)

    @contextmanager
    def one_more(self, step: Step, tokens: int, model: str) -> Iterator[Leave]:
        """Send one more agent, if that may be.

        Args:
            step: What it is sent for.
            tokens: Of its prompt.
            model: Who plays it; empty for a program, which uses neither tokens nor money that anyone counts.
        """
        leave = Leave(self._ask(self._expected(step, tokens, model)))
        try:
            yield leave
        finally:
            with self._ended:
                if not leave.refused:
                    del self._at_work[threading.get_ident()]
                    self._sent -= not leave.sent
                self._ended.notify_all()

    def _ask(self, expected: tuple[int, float]) -> str:
        with self._ended:
            while not (said := self.reached() or ("it was stopped" if self._stopped() else "")):
                tokens = sum(one for one, _ in self._at_work.values())
                cost_usd = sum(one for _, one in self._at_work.values())
                if not (self._at_work and self._reached(tokens, cost_usd)):
                    self._sent += 1
                    self._at_work[threading.get_ident()] = expected
                    return ""
                self._ended.wait(_LOOK_UP_S)
        return said

    def _reached(self, tokens: int, cost_usd: float) -> str:
        used = self._progress.usage
        tokens += used.prompt_tokens + used.completion_tokens
        cost_usd += used.cost_usd
        amounts = (
            ("max_dispatches", self._sent, f"{self._sent:,} dispatches"),
            ("max_tokens", tokens, f"{tokens:,} tokens"),
            ("max_cost_usd", cost_usd, f"{cost_usd:.2f} USD"),
        )
        limits = ((name, amount, told, getattr(self._limits, name)) for name, amount, told in amounts)
        return next((f"{told} ({name})" for name, amount, told, limit in limits if 0 < limit <= amount), "")

    def _expected(self, step: Step, tokens: int, model: str) -> tuple[int, float]:
        """Tokens and US dollars that an agent will use, as the plan has it; nothing where nobody limits them."""
        if not model or not (self._limits.max_tokens or self._limits.max_cost_usd):
            return 0, 0.0
        shown, written = takes_of(tokens, self._estimator.written(step))
        if model not in self._prices:
            self._prices[model] = price_in(self._plan, model) if self._limits.max_cost_usd else None
        price = self._prices[model]
        return shown + written, price.of(shown, written) if price else 0.0

    @cached_property
    def _estimator(self) -> Estimator:
        return Estimator(self._plan, lambda _read: {})
