"""The limits of a pipeline: dispatches, tokens and US dollars. They are checked before each dispatch.

The final usage of agents that are still working is unknown, so the plan's estimate counts for them. Without
it, parallel agents could overrun a limit. If the estimates would exceed a limit, the next agent waits until a
working one has ended and its usage is known.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import msgspec

from agentx.pipelines.costs import StepPrice, price_in, takes_of
from agentx.synthesis.pipelines.definition.plan import Plan, Step
from agentx.synthesis.pipelines.dispatching.estimates import Estimator
from agentx.synthesis.pipelines.running.pipeline_progress import Progress

_LOOK_UP_S = 0.5
"""Interval at which a waiting thread checks whether the user has stopped the pipeline."""


class Leave(msgspec.Struct):
    """Permission to send one more agent.

    Attributes:
        refused: Why it was refused; empty where it was granted.
        sent: Whether the agent was really sent. One that could not be sent after all is not counted.
    """

    refused: str = ""
    sent: bool = False


class Allowance:
    """Counts what a pipeline uses against its limits; thread-safe.

    ``stopped`` returns whether no more agents are to be sent, whatever is left of the limits.
    """

    def __init__(self, plan: Plan, stopped: Callable[[], bool]) -> None:
        self._plan, self._limits = plan, plan.pipeline.limits
        self._stopped = stopped
        self._progress, self._sent = Progress(""), 0
        self._at_work: dict[int, tuple[int, float]] = {}
        self._prices: dict[str, StepPrice | None] = {}
        self._ended = threading.Condition()

    def begin(self, progress: Progress) -> None:
        """Start counting from earlier usage; the caller keeps ``progress`` up to date."""
        self._progress, self._sent = progress, progress.dispatches

    def rest(self, seconds: float) -> bool:
        """Wait; return whether the pipeline was stopped meanwhile."""
        end = time.monotonic() + seconds
        while not self._stopped() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_UP_S))
        return self._stopped()

    def follow(self, plan: Plan) -> None:
        """Count for another plan of the same pipeline from now on."""
        self._plan = plan
        self.__dict__.pop("_estimator", None)

    def reached(self) -> str:
        """Return the limit that is reached, as a phrase; empty for none."""
        return self._reached(0, 0.0)

    @contextmanager
    def one_more(self, step: Step, tokens: int, model: str) -> Iterator[Leave]:
        """Ask to send one more agent, and count it while it works.

        ``tokens`` are those of its prompt. ``model`` is empty for a program, whose tokens and costs are not
        counted.
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
                tokens, costs = zip((0, 0.0), *self._at_work.values(), strict=True)
                if not (self._at_work and self._reached(sum(tokens), sum(costs))):
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
        """Return the tokens and US dollars that the plan expects an agent to use; zeros without a limit."""
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
