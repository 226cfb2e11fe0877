"""Statistics of a session: the distribution of each metric, spending, activations, and judge scores."""

import math
import statistics
from collections.abc import Sequence

import msgspec

from agentx.cognition.interactions import Interaction

MODULES = ("recognizer", "decayer", "activator", "response")
"""The modules that call a model, in the order of an interaction."""

BINS = 10
"""Number of equal bins from 0 to 1 in which judge scores are counted."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of a metric; ``std`` is the population's, percentiles are interpolated."""

    count: int
    mean: float
    std: float
    min: float
    max: float
    p50: float
    p95: float


class Tokens(msgspec.Struct, frozen=True):
    """Tokens that a module sent to its model and received from it."""

    prompt: int = 0
    completion: int = 0

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.prompt + self.completion


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The result of :class:`MetricsCollector`.

    Attributes:
        metrics: Each numeric metric by name; parts are named ``metric.part``. ``judge_score`` where there was
            a judge.
        tokens: By module.
        cost_usd: Sum of the known costs.
        activator_trigger_rate: Share of the interactions in which memories were fetched.
        judge_distribution: Number of answers per score, in ten bins: from 0 up to 0.1, …, from 0.9 up to 1.
        faults: Each fault, with its count.
    """

    interactions: int
    metrics: dict[str, Spread]
    tokens: dict[str, Tokens]
    total_tokens: int
    cost_usd: float
    activator_trigger_rate: float
    judge_distribution: tuple[int, ...]
    faults: dict[str, int]


class MetricsCollector:
    """Collects the metrics of a session's interactions."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._fetched: list[bool] = []
        self._faults: dict[str, int] = {}

    def take(self, one: Interaction) -> None:
        """Add an interaction."""
        self._fetched.append(one.metrics.activator_trigger_count > 0)
        self._gather("", msgspec.structs.asdict(one.metrics))
        if one.judge_score is not None:
            self._gather("", {"judge_score": one.judge_score})
        for fault in one.metrics.faults:
            self._faults[fault] = self._faults.get(fault, 0) + 1

    def _gather(self, prefix: str, metrics: dict[str, object]) -> None:
        for name, value in metrics.items():
            if isinstance(value, dict):
                self._gather(f"{prefix}{name}.", value)
            elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                self._values.setdefault(prefix + name, []).append(value)

    @property
    def collected(self) -> Collected:
        """The statistics so far."""
        tokens = {
            name: Tokens(self._sum(f"{name}_prompt_tokens"), self._sum(f"{name}_completion_tokens"))
            for name in MODULES
        }
        judged = [0] * BINS
        for score in self._values.get("judge_score", ()):
            judged[min(int(score * BINS), BINS - 1)] += 1
        return Collected(
            interactions=len(self._fetched),
            metrics={name: spread(values) for name, values in self._values.items()},
            tokens=tokens,
            total_tokens=sum(one.total for one in tokens.values()),
            cost_usd=sum(self._values.get("cost_usd", ())),
            activator_trigger_rate=sum(self._fetched) / len(self._fetched) if self._fetched else 0.0,
            judge_distribution=tuple(judged),
            faults=self._faults,
        )

    def _sum(self, name: str) -> int:
        return int(sum(self._values.get(name, ())))


def spread(values: Sequence[float]) -> Spread:
    """Return the distribution of values; there must be at least one.

    >>> spread([4, 1, 2, 3]).p50, spread([10, 20, 30]).p95
    (2.5, 29.0)
    """
    ordered = sorted(values)
    return Spread(
        count=len(ordered),
        mean=statistics.fmean(ordered),
        std=statistics.pstdev(ordered),
        min=ordered[0],
        max=ordered[-1],
        p50=_percentile(ordered, 0.5),
        p95=_percentile(ordered, 0.95),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
